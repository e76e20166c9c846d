"""Databus: headers to columns, and checksums, compared with struct and zlib, and with only reading the bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.report import Row, faster
from benchmarks.timing import amount, interleave
from sparkwire.databus import layout
from sparkwire.databus.scan import Events, read_headers
from sparkwire.kernels import Bytes, FieldPlace, field_reader, kernel

EVENTS = amount(2_000_000, trial=2000)
IN_CACHE = 4_000
TIMES = amount(100, trial=1)  # passes over the events in the cache in each round
SIZE = 260  # [bytes]
STRUCT_EVENTS = amount(50_000, trial=500)  # events that the struct loop reads; its time is scaled, because it is slow
_HEADER = struct.Struct(">bIiHqhhqh16sIq")


def events(n: int) -> pa.Array:
    """``n`` different valid V1 events of ``SIZE`` bytes with LONG keys."""
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


def into_columns(column: pa.Array, check: bool) -> Callable[[], object]:
    """The kernel without allocation: it writes to existing columns."""
    events = Events(column, check=True)
    header = events.header
    fields = tuple(header.fields.values())
    return lambda: read_headers(events.data, events.offsets, check, header.variants, fields, header.crcs, header.checks)


# It reads only the first byte of each event, but writes all columns.
_write_all = field_reader(
    [(FieldPlace(0, 1, True, False), *[None] * (len({*layout.V1.places, *layout.V2.places}) - 1))]
)


@kernel
def write_columns(data: Bytes, variants: npt.NDArray[np.int8], fields: tuple[npt.NDArray[Any], ...]) -> None:
    """Writes the same columns as into_columns, but reads almost nothing."""
    for row in range(variants.size):
        variants[row] = 1
        _write_all(data, row * SIZE, SIZE, 0, fields, row)


def columns_alone(column: pa.Array) -> Callable[[], object]:
    events = Events(column)
    header = events.header
    fields = tuple(header.fields.values())
    return lambda: write_columns(events.data, header.variants, fields)


def rows() -> list[Row]:
    """The claims about Databus headers and checksums."""
    return [*memory_rows(), *cache_rows()]


def memory_rows() -> list[Row]:
    """Two million events, columns allocated."""
    column = events(EVENTS)
    data = memoryview(column.buffers()[2])
    words = np.frombuffer(column.buffers()[2], np.uint64)
    assert checked(column) == 2 * EVENTS
    taken = interleave(
        {
            "headers": lambda: headers(column),
            "checked": lambda: checked(column),
            "np.sum": lambda: words.sum(),
            "struct": lambda: struct_headers(data, STRUCT_EVENTS),
            "struct + zlib": lambda: struct_checked(data, STRUCT_EVENTS),
        }
    )
    each = {name: t.per(STRUCT_EVENTS if "struct" in name else EVENTS) for name, t in taken.items()}
    work = "2 M Databus events of 260 B: fixed fields to columns"
    both = f"{work}, both CRCs checked"
    return [
        faster(work, each["headers"], "struct.unpack_from", each["struct"], 20, 1, "rows"),
        faster(work, each["headers"], "np.sum of the bytes", each["np.sum"], 0.525, 1, "rows"),
        faster(both, each["checked"], "struct + zlib", each["struct + zlib"], 25, 1, "rows"),
        faster(both, each["checked"], "np.sum of the bytes", each["np.sum"], 0.49, 1, "rows"),
    ]


def cache_rows() -> list[Row]:
    """Four thousand events that stay in the cache, only the kernel."""
    column = events(IN_CACHE)
    words = np.frombuffer(column.buffers()[2], np.uint64)
    fill, check, write = into_columns(column, check=False), into_columns(column, check=True), columns_alone(column)
    taken = interleave(
        {
            "headers": lambda: [fill() for _ in range(TIMES)],
            "checked": lambda: [check() for _ in range(TIMES)],
            "np.sum": lambda: [words.sum() for _ in range(TIMES)],
            "columns": lambda: [write() for _ in range(TIMES)],
        }
    )
    each = {name: t.per(TIMES * IN_CACHE) for name, t in taken.items()}
    work = "4,000 Databus events in cache: fixed fields to columns"
    return [
        faster(work, each["headers"], "np.sum of the bytes", each["np.sum"], 0.63, 1, "rows"),
        faster(work, each["headers"], "writing the columns alone", each["columns"], 0.75, 1, "rows"),
        faster(f"{work}, both CRCs checked", each["checked"], "np.sum of the bytes", each["np.sum"], 0.25, 1, "rows"),
    ]
