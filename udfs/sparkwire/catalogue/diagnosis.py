"""Check the package in this Python process: versions, compile cache, checksum code, round trips. It needs no Spark."""

from __future__ import annotations

import importlib.metadata
import platform
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa

from sparkwire.base.printable import printable
from sparkwire.catalogue import FUNCTIONS, SAMPLES
from sparkwire.kafka.codecs import writable
from sparkwire.kernels.cache import cached_kernels, why_none
from sparkwire.kernels.checksums.instruction_sets import Isa, compiled_isa
from sparkwire.kernels.ready import state

PACKAGES: Final = ("sparkwire", "pyspark", "numba", "numpy", "pandas", "pyarrow", "cramjam")
_SLOW: Final = 5.0
"""A first call that takes longer than this has compiled kernels [s]."""


class ProcessFacts(NamedTuple):
    """The facts about one Python process, as values that JSON can hold."""

    host: str
    python: str
    versions: Mapping[str, str]
    """version by package, "missing" if it is not installed"""
    checksums: str
    ready: str
    """which of the package's precompiled kernels this process uses, or why it cannot use them"""
    cache: str
    """directory of the compile cache; empty if there is no cache"""
    no_cache: str
    """why there is no compile cache"""
    kernels: int
    """number of kernels in the cache before the first call"""
    trips: Mapping[str, float]
    """duration of the first call of each round trip [s]"""
    wrong: list[str]
    """round trips that failed, and why"""


def examine() -> ProcessFacts:
    """Collect the facts about this process. Run it before any other decoding, so that it measures first calls."""
    before = cached_kernels()
    trips: dict[str, float] = {}
    wrong = []
    for name, trip in ROUND_TRIPS.items():
        start = time.perf_counter()
        try:
            came_back = trip()
        except Exception as failed:  # noqa: BLE001  # the report shows any error
            wrong.append(f"{name}: {type(failed).__name__}: {failed}")
            continue
        trips[name] = round(time.perf_counter() - start, 3)
        if not came_back:
            wrong.append(f"{name}: other bytes than those given")
    return ProcessFacts(
        host=socket.gethostname(),
        python=platform.python_version(),
        versions={package: _version(package) for package in PACKAGES},
        checksums=compiled_isa().value,
        ready=state(),
        cache=f"{before.directory}{'' if before.writable else ' (read-only)'}" if before else "",
        no_cache="" if before else why_none(),
        kernels=before.files if before else 0,
        trips=trips,
        wrong=wrong,
    )


def _version(package: str) -> str:
    if package == "sparkwire":  # a source tree has no metadata
        return str(sys.modules[package].__version__)
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def _decode(name: str, *columns: pa.Array) -> pa.Array:
    return FUNCTIONS[name].decode(*columns)


def _databus() -> bool:
    events = pa.array([SAMPLES["event"]], pa.binary())
    return bool(_decode("to_dbus_event", _decode("dbus_event", events)).equals(events))


def _kafka(codec: str) -> Callable[[], bool]:
    def trip() -> bool:
        written = [{"key": b"k", "value": b"v" * 100, "timestamp_ms": 1}]
        constants = (pa.array([0]), pa.array([codec]), pa.array([2], pa.int32()))
        data = _decode("to_kafka_records", pa.array([written]), *constants)
        [records] = _decode("kafka_records", data).to_pylist()
        return [{field: record[field] for field in written[0]} for record in records] == written

    return trip


def _datahub() -> bool:
    blobs = pa.array([SAMPLES["blob"]], pa.binary())
    again = _decode("to_datahub_blob", _decode("datahub_change", blobs))
    return bool(_decode("datahub_change", again).equals(_decode("datahub_change", blobs)))


ROUND_TRIPS: Final[Mapping[str, Callable[[], bool]]] = {
    "Databus event": _databus,
    "DataHub message": _datahub,
    **{f"Kafka records, {codec}": _kafka(codec) for codec in writable()},
}


def advice(here: ProcessFacts, others: Sequence[ProcessFacts]) -> Iterator[str]:
    """Yield one line for each problem: what it is and how to fix it."""
    for other in others:
        differ = {p: v for p, v in other.versions.items() if v != here.versions[p] and p in ("sparkwire", "pyspark")}
        for package, version in differ.items():
            yield (
                f"{other.host} has {package} {version} and the driver {here.versions[package]}: "
                "install the same on both, or ship one archive to all (docs/cluster.md)."
            )
        if other.python.split(".")[:2] != here.python.split(".")[:2]:
            yield f"{other.host} runs Python {other.python} and the driver {here.python}: set PYSPARK_PYTHON to one of them."
    for process in (here, *others):
        if not process.cache:
            yield (
                f"{process.host} keeps no compiled kernels ({process.no_cache}): set NUMBA_CACHE_DIR to a directory that "
                "python -m sparkwire warm has filled (docs/cluster.md)."
            )
        slow = max(process.trips.values(), default=0.0)
        if slow > _SLOW:
            yield (
                f"{process.host} compiled kernels, up to {slow:.0f} s a call: run python -m sparkwire warm there, or ship its "
                "directory and set NUMBA_CACHE_DIR (docs/cluster.md)."
            )
        if process.checksums == Isa.PORTABLE.value:
            yield f"{process.host} has no carry-less multiplication: checksums come from tables, several times slower."
        yield from (f"{process.host} is broken: {what}; report this page as an issue." for what in process.wrong)


def page(title: str, process: ProcessFacts) -> Iterator[str]:
    """The printed lines about one process."""
    versions = ", ".join(f"{package} {version}" for package, version in process.versions.items())
    yield f"{title} {process.host}: Python {process.python}, {versions}"
    yield f"  checksums   {process.checksums}"
    yield f"  ready       {process.ready}"
    cache = f"{process.kernels} kernels in {process.cache}" if process.cache else f"none: {process.no_cache}"
    yield f"  cache       {cache}"
    trips = ", ".join(f"{name} {seconds:.3f} s" for name, seconds in process.trips.items())
    yield f"  round trips {trips}"
    yield from (f"  WRONG       {what}" for what in process.wrong)


@dataclass(frozen=True)
class Diagnosis:
    """The result of ``python -m sparkwire doctor``. Its ``str`` is the text to print."""

    session: tuple[str, ...]
    """lines about Spark: its version, its mode, and why it could not examine the executors"""
    driver: ProcessFacts
    executors: tuple[ProcessFacts, ...] = ()
    to_do: tuple[str, ...] = ()
    """how to fix each problem; empty if there are none"""

    def __str__(self) -> str:
        lines = [*self.session, *page("driver", self.driver)]
        for other in self.executors:
            lines += page("executor", other)
        lines += [f"TO DO: {what}" for what in self.to_do or ("nothing.",)]
        return "\n".join(map(printable, lines))

    __repr__ = __str__


def report(session: Sequence[str], here: ProcessFacts, others: Sequence[ProcessFacts], *more: str) -> Diagnosis:
    """Join the facts and the advice; ``more`` is further advice."""
    return Diagnosis(tuple(session), here, tuple(others), tuple(dict.fromkeys([*advice(here, others), *more])))


def facts_from(values: Mapping[str, Any]) -> ProcessFacts:
    """The facts from parsed JSON."""
    return ProcessFacts(**values)
