"""Databus: headers to columns, checksums, against struct and zlib and against reading the bytes at all."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.report import Row, faster
from benchmarks.timing import interleave
from sparkwire.formats.databus.scan import Events

EVENTS = 2_000_000
IN_CACHE = 4_000
SIZE = 260  # [bytes]
STRUCT_EVENTS = 50_000  # of which the struct loop reads, and its time is scaled: it takes seconds
_HEADER = struct.Struct(">bIiHqhhqh16sIq")


def events(n: int) -> pa.Array:
    """``n`` sound V1 events of ``SIZE`` bytes with LONG keys, no two alike."""
    rng = np.random.default_rng(7)
    rows = rng.integers(0, 256, (n, SIZE), np.uint8)
    rows[:, 0] = 0
    rows[:, 5:9] = np.frombuffer(struct.pack(">i", SIZE), np.uint8)
    rows[:, 9:11] = (0, 1)
    for row in rows:
        row[49:53] = np.frombuffer(struct.pack(">I", _crc(row[61:])), np.uint8)
        row[1:5] = np.frombuffer(struct.pack(">I", _crc(row[5:61])), np.uint8)
    offsets = np.arange(n + 1, dtype=np.int32) * SIZE
    return pa.Array.from_buffers(pa.binary(), n, [None, pa.py_buffer(offsets), pa.py_buffer(rows.ravel())])


def _crc(covered: npt.NDArray[np.uint8]) -> int:
    return zlib.crc32(covered.tobytes(), 0xFFFFFFFF) ^ 0xFFFFFFFF


def headers(column: pa.Array) -> int:
    """The fixed fields of every event."""
    return len(Events(column).header.fields)


def checked(column: pa.Array) -> int:
    """The fixed fields of every event and whether both checksums are right."""
    return int(Events(column, check=True).checked.checks.sum())


def struct_headers(data: memoryview, n: int) -> int:
    columns = list(zip(*(_HEADER.unpack_from(data, i * SIZE) for i in range(n)), strict=True))
    return len(columns)


def struct_checked(data: memoryview, n: int) -> int:
    right = 0
    for i in range(n):
        at = i * SIZE
        fields = _HEADER.unpack_from(data, at)
        header = zlib.crc32(data[at + 5 : at + 61], 0xFFFFFFFF) ^ 0xFFFFFFFF
        value = zlib.crc32(data[at + 61 : at + SIZE], 0xFFFFFFFF) ^ 0xFFFFFFFF
        right += (header == fields[1]) + (value == fields[10])
    return right


def rows() -> list[Row]:
    """The claims about Databus kernels."""
    column = events(EVENTS)
    data = memoryview(column.buffers()[2])
    words = np.frombuffer(column.buffers()[2], np.uint64)
    small = column[:IN_CACHE]
    assert checked(column) == 2 * EVENTS
    times = interleave(
        {
            "headers": lambda: headers(column),
            "checked": lambda: checked(column),
            "np.sum": lambda: words.sum(),
            "struct": lambda: struct_headers(data, STRUCT_EVENTS),
            "struct + zlib": lambda: struct_checked(data, STRUCT_EVENTS),
            "in cache": lambda: [headers(small) for _ in range(50)],
            "in cache, checked": lambda: [checked(small) for _ in range(50)],
        }
    )
    per_event = {name: t.per(n) for name, (t, n) in {
        "headers": (times["headers"], EVENTS),
        "checked": (times["checked"], EVENTS),
        "np.sum": (times["np.sum"], EVENTS),
        "struct": (times["struct"], STRUCT_EVENTS),
        "struct + zlib": (times["struct + zlib"], STRUCT_EVENTS),
        "in cache": (times["in cache"], 50 * IN_CACHE),
        "in cache, checked": (times["in cache, checked"], 50 * IN_CACHE),
    }.items()}  # fmt: skip
    return [
        faster("2 M events of 260 B: headers to columns", per_event["headers"], "struct.unpack_from",
               per_event["struct"], 20, 1, "rows"),
        faster("the same", per_event["headers"], "np.sum of the bytes", per_event["np.sum"], 0.54, 1, "rows"),
        faster("the same in cache, 4,000 events", per_event["in cache"], "struct.unpack_from",
               per_event["struct"], 96, 1, "rows"),
        faster("with both CRCs checked", per_event["checked"], "struct + zlib", per_event["struct + zlib"], 25, 1, "rows"),
        faster("the same", per_event["checked"], "np.sum of the bytes", per_event["np.sum"], 0.6, 1, "rows"),
        faster("the same in cache", per_event["in cache, checked"], "struct + zlib",
               per_event["struct + zlib"], 60, 1, "rows"),
    ]  # fmt: skip
