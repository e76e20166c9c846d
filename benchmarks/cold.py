"""The first query of a fresh session: registration, imports, kernels compiled or loaded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql.datasource import DataSource

import sparkwire
from benchmarks.report import Row, below, no_slower
from benchmarks.timing import Timing, amount

PACKAGE = Path(sparkwire.__file__).parent
ROUNDS = amount(3, trial=1)
QUERIES = {
    "identity": "SELECT max(identity(value)) FROM events",
    "sparkwire": "SELECT max(dbus_sequence(value)), max(dbus_error(value)) FROM events",
}


class Empty(DataSource):  # type: ignore[misc]  # PySpark is not typed
    """A source that nobody reads: to register a first one, Spark starts a Python process that looks for others."""

    @classmethod
    def name(cls) -> str:
        return "empty"


def rows() -> list[Row]:
    """The claims about a fresh session."""
    with tempfile.TemporaryDirectory() as folder:
        warm = copy_of_package(folder, "warm")
        child("sparkwire", warm)
        taken: dict[str, list[float]] = {
            "register": [],
            "source": [],
            "identity": [],
            "warm": [],
            "cold": [],
            "compile": [],
        }
        for k in range(ROUNDS):
            register, identity = child("identity", warm)
            taken["register"].append(register)
            taken["source"].append(child("source", warm)[0])
            taken["identity"].append(identity)
            taken["warm"].append(child("sparkwire", warm)[1])
            taken["cold"].append(child("sparkwire", copy_of_package(folder, f"cold{k}"))[1])
            taken["compile"].append(child("compile", copy_of_package(folder, f"compile{k}"))[1])
    timings = {name: Timing(tuple(seconds)) for name, seconds in taken.items()}
    later = beyond(timings["warm"], timings["identity"])
    ours = beyond(timings["register"], timings["source"])
    return [
        below("first register of a session, beyond what it takes to register an empty source", ours, "s", 1.0),
        below("first query, warm cache: later than the identity UDF's", later, "s", 0.8),
        no_slower("first query, cold cache", timings["cold"], "compiling alone", timings["compile"], 2.5),
    ]


def beyond(some: Timing, floor: Timing) -> Timing:
    """How much longer each round took [s]."""
    return Timing(tuple(a - b for a, b in zip(some.samples, floor.samples, strict=True)))


def copy_of_package(folder: str, name: str) -> Path:
    """A package of its own, so that its compile cache, which lies in it, is empty."""
    path = Path(folder, name)
    shutil.copytree(PACKAGE, path / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    return path


def child(what: str, package: Path) -> tuple[float, float]:
    """Seconds that registration and the first query (or compiling) take in a process of its own."""
    settings = {"PYTHONPATH": str(package), "XDG_CACHE_HOME": str(package), "PYSPARK_PYTHON": sys.executable}
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | settings
    command = [sys.executable, "-m", "benchmarks.cold", what]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    registered, answered = json.loads(run.stdout.splitlines()[-1])
    return registered, answered


def measure(what: str) -> tuple[float, float]:
    """In the child."""
    if what == "compile":
        return 0.0, compile_alone()
    # Imported here, where it is measured with the rest.
    from benchmarks import databus, sql

    with sql.local_spark() as spark:
        spark.sql("SELECT 1").collect()  # what a session's first query takes is no work of ours
        began = time.perf_counter()
        if what == "source":
            spark.dataSource.register(Empty)
            return time.perf_counter() - began, 0.0
        sparkwire.register(spark)
        registered = time.perf_counter() - began
        sql.register_floor(spark)
        rows = [(bytes(row),) for row in databus.events(1000).to_pylist()]
        spark.createDataFrame(rows, "value BINARY").createOrReplaceTempView("events")
        began = time.perf_counter()
        spark.sql(QUERIES[what]).collect()
        return registered, time.perf_counter() - began


def compile_alone() -> float:
    """Both functions of the query over one event, with nothing in the cache."""
    from benchmarks import databus
    from sparkwire import FUNCTIONS

    column = databus.events(1)
    began = time.perf_counter()
    for name in ("dbus_sequence", "dbus_error"):
        FUNCTIONS[name].decode(column)
    return time.perf_counter() - began


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
