"""Columns of records: growing ones, with room for the largest possible result of the entries to parse next, and Arrow's."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.core.column import (
    INT32_MAX,
    Binary,
    bitmap,
    bools_of,
    checked_total,
    empty,
    maps,
    rooms,
    without_repeats,
)
from sparkwire.json.columns import item_offsets
from sparkwire.kafka.layout import NO_TIMESTAMP, SMALLEST_RECORD
from sparkwire.kafka.search import SearchPattern
from sparkwire.kernels import COPY_SLACK, Ints, kernel

_PART_ROWS = (
    1 << 14
)  # number of texts that are converted to Python at a time, because a Python string takes many times its bytes


def binary(
    offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8], valid: npt.NDArray[np.bool_] | None
) -> pa.Array:
    """BINARY: row ``i`` is ``data[offsets[i]:offsets[i + 1]]``; ``data`` may be longer than needed."""
    buffers = [bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(data).slice(0, int(offsets[-1]))]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def text(column: pa.Array) -> pa.Array:
    """BINARY as STRING; bytes that are not UTF-8 become U+FFFD."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        parts = (column[start : start + _PART_ROWS] for start in range(0, len(column), _PART_ROWS))
        return pa.concat_arrays([_repaired(part) for part in parts])


def _repaired(column: pa.Array) -> pa.Array:
    different = pc.dictionary_encode(column)
    decoded = pa.array([key.as_py().decode("utf-8", "replace") for key in different.dictionary], pa.string())
    return decoded.take(different.indices)


def decode_headers_map(headers: pa.Array) -> pa.Array:
    """A map for each row, with keys in the order of their last headers. Headers without a key are omitted."""
    ends = item_offsets(headers)
    keys, values = headers.flatten().flatten()  # only of rows that are not NULL
    if keys.null_count:
        present = keys.is_valid()
        ends = np.concatenate(([0], np.cumsum(bools_of(present)))).astype(np.int32)[ends]
        keys, values = keys.filter(present), values.filter(present)
    # Spark may pass columns with 64-bit offsets.
    ends, (keys, values) = without_repeats(ends, keys.cast(pa.string()), values.cast(pa.binary()))
    return maps(ends, keys, values, bools_of(headers.is_valid()) if headers.null_count else None)


Offsets = npt.NDArray[np.int32]

# Bits of `RecordColumns.present`: which fields of a record are not NULL. `messages` has the first three, too.
HAS_TIME, HAS_KEY, HAS_VALUE, HAS_OFFSET, HAS_SEQUENCE, HAS_HEADERS = (1 << bit for bit in range(6))
ALL_PRESENT = 63

# Counters of `RecordColumns.used`; the last has the bits of the fields that every record has.
RECORDS, KEY_BYTES, VALUE_BYTES, HEADERS, HEADER_KEY_BYTES, HEADER_VALUE_BYTES, COMMON = range(7)
COUNTERS = 7

NO_CODE = -1
"""stands for no timestamp type and no control type"""

_AHEAD_BYTES = 2 << 20  # extra room for the next keys and values
_FIRST_BYTES = 1 << 17
_RECORD_BYTES = 40  # size of a record without its key and value [bytes]


class SelectedColumns(NamedTuple):
    """The parts of a record to copy. Other parts are skipped."""

    key: bool
    value: bool
    headers: bool
    pattern: SearchPattern
    """records that do not match it are skipped"""


class RecordColumns(NamedTuple):
    """Columns of records and of their headers. In columns of ends, item 0 is 0."""

    offset: Ints
    timestamp: Ints
    """[ms since epoch]"""
    timestamp_type: npt.NDArray[np.int8]
    sequence: npt.NDArray[np.int32]
    control: npt.NDArray[np.int8]
    error: npt.NDArray[np.int8]
    present: npt.NDArray[np.uint8]
    key_ends: Offsets
    value_ends: Offsets
    header_ends: Offsets
    key: npt.NDArray[np.uint8]
    value: npt.NDArray[np.uint8]
    header_key_ends: Offsets
    header_value_ends: Offsets
    header_key: npt.NDArray[np.uint8]
    header_value: npt.NDArray[np.uint8]
    header_valid: npt.NDArray[np.bool_]
    used: Ints
    """number of used items, by counter"""


@kernel
def append_row(offset: int, timestamp: int, time_type: int, error: int, present: int, out: RecordColumns) -> None:
    """Append a record without sequence and control type, after its key and value."""
    row = out.used[RECORDS]
    if present & HAS_TIME and timestamp == NO_TIMESTAMP:
        present ^= HAS_TIME
    out.offset[row] = offset
    out.timestamp[row] = timestamp
    out.timestamp_type[row] = time_type
    out.sequence[row] = 0
    out.control[row] = NO_CODE
    out.error[row] = error
    out.present[row] = present
    out.key_ends[row + 1] = out.used[KEY_BYTES]
    out.value_ends[row + 1] = out.used[VALUE_BYTES]
    out.header_ends[row + 1] = out.used[HEADERS]
    out.used[COMMON] &= present
    out.used[RECORDS] = row + 1


_DTYPES: dict[int, dict[str, npt.DTypeLike]] = {
    RECORDS: {
        "offset": np.int64, "timestamp": np.int64, "timestamp_type": np.int8, "sequence": np.int32, "control": np.int8,
        "error": np.int8, "present": np.uint8, "key_ends": np.int32, "value_ends": np.int32, "header_ends": np.int32,
    },
    KEY_BYTES: {"key": np.uint8},
    VALUE_BYTES: {"value": np.uint8},
    HEADERS: {"header_key_ends": np.int32, "header_value_ends": np.int32, "header_valid": np.bool_},
    HEADER_KEY_BYTES: {"header_key": np.uint8},
    HEADER_VALUE_BYTES: {"header_value": np.uint8},
}  # fmt: skip
"""the columns that grow with each counter"""


class GrowingColumns:
    """Columns that grow when there may not be enough room for the next data."""

    def __init__(self, source: Binary) -> None:
        self._first, self._total = int(source.offsets[0]), int(source.offsets[-1] - source.offsets[0])
        self.begin()

    def begin(self) -> None:
        """Start new, empty columns."""
        size = min(_FIRST_BYTES, self._total)
        self._room = dict.fromkeys(_DTYPES, 1)
        self._room[RECORDS] = size // SMALLEST_RECORD + 2 + COPY_SLACK
        self._room[KEY_BYTES] = self._room[VALUE_BYTES] = size + COPY_SLACK
        columns: dict[str, Any] = {}
        for counter, names in _DTYPES.items():
            columns |= zip(names, rooms(self._room[counter], names.values()), strict=True)
        for name in ("key_ends", "value_ends", "header_ends", "header_key_ends", "header_value_ends"):
            columns[name][0] = 0
        used = np.zeros(COUNTERS, np.int64)
        used[COMMON] = ALL_PRESENT
        self.columns = RecordColumns(**columns, used=used)

    @property
    def size(self) -> int:
        """Approximate size of the records in the columns [bytes]."""
        used = self.columns.used
        return int(used[RECORDS] * _RECORD_BYTES + used[KEY_BYTES] + used[VALUE_BYTES] + used[HEADER_VALUE_BYTES])

    def make_room(self, more: dict[int, int], position: int) -> None:
        """Make room for ``more`` items, by counter; ``position`` is the end of the parsed part of the source."""
        used = self.columns.used.tolist()
        checked_total(max(used[counter] + items for counter, items in more.items()))
        if all(used[counter] + items + COPY_SLACK <= self._room[counter] for counter, items in more.items()):
            return
        larger = {}
        for counter, items in more.items():
            least = used[counter] + items + COPY_SLACK
            selected = self._expected(counter, least, used[counter], position)
            # If one column must grow, others that would soon have to grow do so now.
            if least > self._room[counter] or selected > 2 * self._room[counter]:
                self._room[counter] = selected
                for name in _DTYPES[counter]:
                    larger[name] = _grown(getattr(self.columns, name), used[counter] + 1, selected)
        self.columns = self.columns._replace(**larger)

    def _expected(self, counter: int, least: int, used: int, position: int) -> int:
        """The expected total number of items, extrapolated from the parsed part of the source.

        It is at most four times ``least``, or the size of the source if that is larger, because decompressed data may be of any
        size.
        """
        done = (position - self._first) / max(1, self._total)
        expected = int(used / done * 1.02) if done else 0
        # The next data must fit in any case: all their bytes may be keys.
        expected += least - used + (_AHEAD_BYTES if counter in (KEY_BYTES, VALUE_BYTES) else 0)
        expected = min(expected, max(4 * least, self._total))
        # The rest of the source may differ from the parsed part. A column grows by half at least, so that it does not grow often.
        return min(max(least, expected, self._room[counter] * 3 // 2), INT32_MAX + COPY_SLACK)


def _grown(column: npt.NDArray[Any], used: int, size: int) -> npt.NDArray[Any]:
    """The column with room for ``size`` items."""
    larger = empty(size, column.dtype)
    larger[:used] = column[:used]
    return larger
