"""The wheel with ready kernels: its size, the first call where the package has never been seen, and how fast its code is.

And the first query of an application whose executors a cluster has just started, beside the same one over a function that
gives back what it is given.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import pyarrow as pa

from benchmarks.report import Row, below, no_slower
from benchmarks.timing import Timing, amount
from tests.integration import cluster

ROUNDS = amount(5, trial=1)
FIRST = {"dbus_opcode": 0.5, "kafka_records": 1.0, "datahub_change": 1.0}
"""by function what its first call may take after the import [s of the process's own time]"""
RATES = ("dbus_opcode", "dbus_event", "dbus_events", "kafka_records", "kafka_batches", "datahub_change")
_MOST_BYTES = 12.0  # [MB]
_APPLICATIONS = amount(3, trial=1)
_QUERIES = {"dbus_opcode": "dbus_opcode(event)", "kafka_records": "size(kafka_records(segment))"}


def rows() -> list[Row]:
    """The claims, after both wheels have been built and unpacked."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "tools.wheels", folder], check=True, stdout=subprocess.DEVNULL)
        [pure] = Path(folder).glob("*-none-any.whl")
        [ready] = Path(folder).glob(f"*-cp{sys.version_info.major}{sys.version_info.minor}-*.whl")
        size = ready.stat().st_size / 1e6
        for wheel, name in ((pure, "pure"), (ready, "ready")):
            zipfile.ZipFile(wheel).extractall(Path(folder, name))
        first = {name: [child(Path(folder, "ready"), "first", name) for _ in range(ROUNDS)] for name in FIRST}
        rates: dict[str, list[tuple[float, float]]] = {name: [] for name in RATES}
        for name in RATES * ROUNDS:
            rates[name].append((child(Path(folder, "ready"), "rate", name), child(Path(folder, "pure"), "rate", name)))
        queries = first_queries(Path(folder, "ready"))
    return [
        below("wheel with ready kernels", Timing((size,)), "MB", _MOST_BYTES),
        *(below(f"first {name}, ready kernels", Timing(tuple(first[name])), "s", FIRST[name]) for name in FIRST),
        *(
            no_slower(f"{name}, ready kernels", timing(rates[name], 0), "compiled here", timing(rates[name], 1), 1.1)
            for name in RATES
        ),
        *(below(f"{name} over an identity, first query of new executors", queries[name], "s", 2.0) for name in queries),
    ]


def first_queries(package: Path) -> dict[str, Timing]:
    """What the first query takes beyond that of an identity [s], each in an application of its own."""
    taken: dict[str, list[float]] = {name: [] for name in _QUERIES}
    with cluster.running(package / "cluster") as running:
        for _ in range(_APPLICATIONS):
            identity = child(package, "query", "identity", running.address)
            for name, samples in taken.items():
                samples.append(child(package, "query", name, running.address) - identity)
    return {name: Timing(tuple(samples)) for name, samples in taken.items()}


def timing(pairs: list[tuple[float, float]], which: int) -> Timing:
    return Timing(tuple(pair[which] for pair in pairs))


def child(package: Path, *what: str) -> float:
    """Seconds, in a process with an empty home directory; what is compiled is kept with the package for the next."""
    given = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_")}
    given |= {"PYTHONPATH": f"{package}:{Path.cwd()}", "HOME": str(package), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-P", "-m", "benchmarks.ready", *what]
    return float(json.loads(subprocess.run(command, env=given, capture_output=True, text=True, check=True).stdout))


def measure(what: str, name: str) -> float:
    """In the child: what the first call takes, or the best of many over a column of samples."""
    from sparkwire.catalogue import FUNCTIONS, SAMPLES

    sample = {"dbus_events": "stream", "kafka_records": "segment", "kafka_batches": "segment", "datahub_change": "blob"}
    value = SAMPLES[sample.get(name, "event")]
    column = pa.array([value] * (1 if what == "first" else 20_000), pa.binary())
    began = time.process_time()
    FUNCTIONS[name].decode(column)
    taken = time.process_time() - began
    for _ in range(0 if what == "first" else 10):
        began = time.process_time()
        FUNCTIONS[name].decode(column)
        taken = min(taken, time.process_time() - began)
    return taken


def query(name: str, address: str) -> float:
    """In the child: the time of an application's first query."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    import sparkwire
    from sparkwire.catalogue import SAMPLES

    builder = SparkSession.builder.master(address).config("spark.ui.enabled", "false")
    for variable in ("PYTHONPATH", "HOME"):
        builder = builder.config(f"spark.executorEnv.{variable}", os.environ[variable])
    spark = builder.getOrCreate()
    sparkwire.register(spark)
    rows = spark.range(1000).select(*(F.lit(bytes(SAMPLES[name])).alias(name) for name in ("event", "segment")))
    identity = F.arrow_udf(lambda column: column, "binary")
    expression = identity("event") if name == "identity" else F.expr(_QUERIES[name])
    began = time.perf_counter()
    rows.select(expression).collect()
    taken = time.perf_counter() - began
    spark.stop()
    return taken


if __name__ == "__main__":
    what, *given = sys.argv[1:]
    print(json.dumps(query(*given) if what == "query" else measure(what, *given)))
