"""The first query of a fresh session: registration, imports, kernels compiled or loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import Row, below, no_slower
from benchmarks.timing import Timing

ROUNDS = 3
QUERIES = {
    "identity": "SELECT max(identity(value)) FROM events",
    "sparkwire": "SELECT max(dbus_sequence(value)), max(dbus_error(value)) FROM events",
}


def rows() -> list[Row]:
    """The claims about a fresh session."""
    with tempfile.TemporaryDirectory() as folder:
        warm = str(Path(folder, "warm"))
        child("sparkwire", warm)
        taken: dict[str, list[float]] = {"register": [], "identity": [], "warm": [], "cold": [], "compile": []}
        for k in range(ROUNDS):
            register, identity = child("identity", warm)
            taken["register"].append(register)
            taken["identity"].append(identity)
            taken["warm"].append(child("sparkwire", warm)[1])
            cold = str(Path(folder, f"cold{k}"))
            taken["cold"].append(child("sparkwire", cold)[1])
            taken["compile"].append(child("compile", str(Path(folder, f"compile{k}")))[1])
    timings = {name: Timing(tuple(seconds)) for name, seconds in taken.items()}
    later = Timing(tuple(w - i for w, i in zip(timings["warm"].samples, timings["identity"].samples, strict=True)))
    return [
        below("first register of a session", timings["register"], "s", 1.5),
        below("first query, warm cache: later than the identity UDF's", later, "s", 0.8),
        no_slower("first query, cold cache", timings["cold"], "compiling alone", timings["compile"], 2.5),
    ]


def child(what: str, cache: str) -> tuple[float, float]:
    """Seconds that registration and the first query (or compiling) take in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.cold", what],
        env=os.environ | {"NUMBA_CACHE_DIR": cache, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=True,
    )
    registered, answered = json.loads(run.stdout.splitlines()[-1])
    return registered, answered


def measure(what: str) -> tuple[float, float]:
    """In the child."""
    if what == "compile":
        return 0.0, compile_alone()
    # Imported here, where it is measured with the rest.
    from benchmarks import databus, sql

    with sql.session() as spark:
        spark.catalog.dropTempView("sparkwire_functions")
        began = time.perf_counter()
        sql.register(spark)
        registered = time.perf_counter() - began
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
