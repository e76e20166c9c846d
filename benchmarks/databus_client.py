"""The Databus client: dispatching compared with the Java dispatcher as a loop over struct; groups, windows, rows."""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from benchmarks.report import Row, below, faster, no_slower
from benchmarks.sql import discarded, local_spark
from benchmarks.timing import Timing, amount, interleave
from sparkwire.databus import Consumer, DataEvent, Registration, Result, callbacks, dispatch
from sparkwire.databus.client.buffer import split

EVENTS = amount(400_000, trial=4000)
LOOPED = amount(40_000, trial=2000)  # events that the loop reads; its time is scaled
WINDOW = 1_000  # data events of a window
VALUE = 200  # [bytes]
LARGE = amount(10_000_000, trial=2_000_000)  # data events of one window
CHUNK = 100_000  # data events of that window in one response
HEADER = 61  # [bytes]
SMALL_WINDOWS = amount(1_000_000, trial=1000)
STREAMS, STREAM = amount(16, trial=2), amount(100_000, trial=1000)  # in Spark: streams, and data events of each
_HEADER = struct.Struct(">bIihqhhqh16sI")
_KEY = struct.Struct(">q")


def wire(scn: int, source: int, key: int, value: bytes) -> bytes:
    """A V1 event."""
    crc = zlib.crc32(value, 0xFFFFFFFF) ^ 0xFFFFFFFF
    attributes = 1 if source > 0 else 0
    rest = _HEADER.pack(0, 0, 61 + len(value), attributes, scn, 0, 0, scn, source, bytes(16), crc)[5:] + _KEY.pack(key)
    return b"\0" + struct.pack(">I", zlib.crc32(rest, 0xFFFFFFFF) ^ 0xFFFFFFFF) + rest + value


@cache
def stream(events: int, window: int, size: int = VALUE) -> bytes:
    """Windows of two sources. Data events repeat 997 different ones, so that generating them is fast."""
    made = {source: [wire(7, source, k, bytes([k % 251]) * size) for k in range(997)] for source in (40, 41)}
    parts = []
    for scn, first in enumerate(range(0, events, window)):
        half = window // 2
        parts += [
            made[40 if k < half or window == 1 else 41][(first + k) % 997] for k in range(min(window, events - first))
        ]
        parts.append(wire(scn + 1, -2, 0, b""))
    return b"".join(parts)


class Nothing(Consumer):
    """A consumer whose callbacks do nothing."""


class Empty(Consumer):
    """A consumer that overrides `on_data_event` and does nothing there, so that it gets every event."""

    def on_data_event(self, event: DataEvent) -> Result:
        return Result.SUCCESS


class LoopEvent:
    """The header's fields, which the loop passes."""

    __slots__ = ("fields", "key", "value")

    def __init__(self, fields: tuple[Any, ...], key: int, value: memoryview) -> None:
        self.fields, self.key, self.value = fields, key, value


def loop(data: bytes, consumer: Any) -> int:
    """The Java dispatcher without errors, an event at a time: scan with both checksums, states, callbacks."""
    view, at, source, opened, seen = memoryview(data), 0, None, False, 0
    unpack, crc32 = _HEADER.unpack_from, zlib.crc32
    while at < len(data):
        fields = unpack(data, at)
        _, header_crc, length, _, scn, _, _, _, src_id, _, value_crc = fields
        if crc32(view[at + 5 : at + 61], 0xFFFFFFFF) ^ 0xFFFFFFFF != header_crc:
            break
        if crc32(view[at + 61 : at + length], 0xFFFFFFFF) ^ 0xFFFFFFFF != value_crc:
            break
        if src_id == -2:
            if opened:
                consumer.on_end_source(source, None)
                consumer.on_end_data_event_sequence(scn)
            consumer.on_checkpoint(scn)
            source, opened = None, False
        else:
            if not opened:
                consumer.on_start_data_event_sequence(scn)
                opened = True
            if source != src_id:
                if source is not None:
                    consumer.on_end_source(source, None)
                source = src_id
                consumer.on_start_source(source, None)
            (key,) = _KEY.unpack_from(data, at + 53)
            if consumer.on_data_event(LoopEvent(fields, key, view[at + 61 : at + length])) >= 200:
                break
            seen += 1
        at += length
    return seen


def dispatch_events(data: bytes, consumer: Consumer) -> None:
    outcome = dispatch([data], consumer)
    assert outcome.failure is None


def dispatching() -> Iterator[Row]:
    data, short = stream(EVENTS, WINDOW), stream(LOOPED, WINDOW)
    assert loop(short, Nothing()) == LOOPED
    taken = interleave(
        {
            "nothing": lambda: dispatch_events(data, Nothing()),
            "empty": lambda: dispatch_events(data, Empty()),
            "loop": lambda: loop(short, Nothing()),
        },
        rounds=5,
    )
    peer, looped = "the dispatcher as a loop over struct and zlib", scaled(taken["loop"])
    yield faster("dispatch, a consumer that does nothing", taken["nothing"], peer, looped, 20, EVENTS, "data events")
    yield faster("dispatch, every event handed over", taken["empty"], peer, looped, 2, EVENTS, "data events")
    rate = Timing(tuple(sample / EVENTS * 1e6 for sample in taken["nothing"].samples))
    yield below("a data event of it (400,000 events/s are 2.5 us)", rate, "us", 2.5)


def scaled(taken: Timing) -> Timing:
    return Timing(tuple(sample * EVENTS / LOOPED for sample in taken.samples))


def small_windows() -> Iterator[Row]:
    data = stream(SMALL_WINDOWS, 1, 8)
    taken = interleave({"windows": lambda: dispatch_events(data, Nothing())}, rounds=3)["windows"]
    yield below("a window of one event (50,000 windows/s are 20 us)", taken.per(SMALL_WINDOWS / 1e6), "us", 20)


def large_windows() -> Iterator[Row]:
    """One window of 10 M events compared with one of 1 M: time for each event, and peak memory of a process."""
    chunk = large_chunk()

    def run(events: int) -> Callable[[], None]:
        return lambda: dispatch_chunks(events // CHUNK, chunk)

    taken = interleave({"large": run(LARGE), "small": run(LARGE // 10)}, rounds=3)
    large, small = taken["large"].per(LARGE), taken["small"].per(LARGE // 10)
    yield no_slower("an event of a window of 10 M", large, "of a window of 1 M", small, 1.15)
    peaks = {events: peak_of(events) for events in (LARGE, LARGE // 10)}
    ratio = Timing((peaks[LARGE] / peaks[LARGE // 10],))
    theirs = f"{peaks[LARGE // 10]} MiB"
    yield Row(
        "the peak of a process, a window of 10 M", f"{peaks[LARGE]} MiB", "a window of 1 M", theirs, ratio, 1.1, True
    )


def large_chunk() -> bytes:
    """Data events of a window that continues."""
    return stream(CHUNK, CHUNK, 8)[: CHUNK * (HEADER + 8)]


def peak_of(events: int) -> int:
    """Peak memory in a separate process [MiB]."""
    code = f"from benchmarks.databus_client import large_window_peak; print(large_window_peak({events}))"
    return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def large_window_peak(events: int) -> int:
    """Peak memory of this process after one window with ``events`` events [MiB]."""
    dispatch_chunks(events // CHUNK, large_chunk())
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) >> 10


def dispatch_chunks(count: int, chunk: bytes) -> None:
    outcome = dispatch((chunk for _ in range(count)), Nothing())
    assert outcome.failure is None
    assert outcome.checkpoint is not None  # the checkpoint at the threshold


class Waits(Consumer):
    """A consumer that waits a millisecond for every event, like one that writes to a database."""

    def on_data_event(self, event: DataEvent) -> Result:
        time.sleep(0.001)
        return Result.SUCCESS


def groups() -> Iterator[Row]:
    data = stream(800, 400, 8)
    taken = interleave(
        {
            "four": lambda: dispatch_group(data, 4),
            "one": lambda: dispatch_group(data, 1),
        },
        rounds=3,
    )
    yield faster("a group of 4, 1 ms an event", taken["four"], "one consumer", taken["one"], 3.5, 800, "events")


def dispatch_group(data: bytes, size: int) -> None:
    dispatch([data], Registration([Waits() for _ in range(size)]))


def in_spark() -> Iterator[Row]:
    """`callbacks(df)` on Parquet with a file for each stream; rows go to the noop sink."""
    with local_spark() as spark:
        for window, size in ((10, 8), (1000, 200)):
            with tempfile.TemporaryDirectory() as folder:
                write_streams(Path(folder), split(stream(STREAM, window, size))[0].cast(pa.binary()))
                ours = callbacks(spark.read.parquet(folder), tasks=4)
                made = ours.count()
                taken = interleave({"ours": discarded(ours)}, rounds=3)["ours"]
            work = f"a row of callbacks(df), windows of {window} changes of {size} B, local[2]"
            yield below(work, taken.per(made / 1e6), "us", 10)


def write_streams(folder: Path, events: pa.Array) -> None:
    for k in range(STREAMS):
        names, position = pa.repeat(f"stream {k}", len(events)), pa.array(np.arange(len(events)))
        table = pa.table({"stream": names, "position": position, "event": events})
        parquet.write_table(table, str(folder / f"{k}.parquet"))


def rows() -> list[Row]:
    """The claims of this group."""
    parts = (dispatching, small_windows, large_windows, groups, in_spark)
    return [row for part in parts for row in part()]
