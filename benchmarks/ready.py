"""The wheel with ready kernels: its size, the first call where the package has never been seen, and how fast its code is."""

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
from benchmarks.timing import Timing

ROUNDS = 5
FIRST = {"dbus_opcode": 0.5, "kafka_records": 1.0, "datahub_change": 1.0}
"""by function what its first call may take after the import [s of the process's own time]"""
RATES = ("dbus_opcode", "dbus_event", "dbus_events", "kafka_records", "kafka_batches", "datahub_change")
_MOST_BYTES = 12.0  # [MB]


def rows() -> list[Row]:
    """The claims, after both wheels have been built and unpacked."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "tools.wheels", folder], check=True, stdout=subprocess.DEVNULL)
        pure, ready = sorted(Path(folder).glob("*.whl"), key=lambda wheel: wheel.stat().st_size)
        size = ready.stat().st_size / 1e6
        for wheel, name in ((pure, "pure"), (ready, "ready")):
            zipfile.ZipFile(wheel).extractall(Path(folder, name))
        first = {name: [child(Path(folder, "ready"), "first", name) for _ in range(ROUNDS)] for name in FIRST}
        rates: dict[str, list[tuple[float, float]]] = {name: [] for name in RATES}
        for name in RATES * ROUNDS:
            rates[name].append((child(Path(folder, "ready"), "rate", name), child(Path(folder, "pure"), "rate", name)))
    return [
        below("wheel with ready kernels", Timing((size,)), "MB", _MOST_BYTES),
        *(below(f"first {name}, ready kernels", Timing(tuple(first[name])), "s", FIRST[name]) for name in FIRST),
        *(
            no_slower(f"{name}, ready kernels", timing(rates[name], 0), "compiled here", timing(rates[name], 1), 1.1)
            for name in RATES
        ),
    ]


def timing(pairs: list[tuple[float, float]], which: int) -> Timing:
    return Timing(tuple(pair[which] for pair in pairs))


def child(package: Path, what: str, name: str) -> float:
    """Seconds, in a process with an empty home directory; what is compiled is kept with the package for the next."""
    given = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_")}
    given |= {"PYTHONPATH": f"{package}:{Path.cwd()}", "HOME": str(package)}
    command = [sys.executable, "-P", "-m", "benchmarks.ready", what, name]
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


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
