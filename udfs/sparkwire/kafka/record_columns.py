"""Columns of records while they grow: room for all that the entries parsed next can give."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.core.column import INT32_MAX, Binary, checked_total, empty, rooms
from sparkwire.kafka.layout import SMALLEST_RECORD
from sparkwire.kafka.sought import Sought
from sparkwire.kernels import COPY_SLACK, Ints

Offsets = npt.NDArray[np.int32]

# Bits of `RecordColumns.present`: which fields of a record are not NULL.
HAS_OFFSET, HAS_TIME, HAS_SEQUENCE, HAS_KEY, HAS_VALUE, HAS_HEADERS = (1 << bit for bit in range(6))
ALL_PRESENT = 63

# Counters of `RecordColumns.used`; the last are the fields that every record has.
RECORDS, KEY_BYTES, VALUE_BYTES, HEADERS, HEADER_KEY_BYTES, HEADER_VALUE_BYTES, COMMON = range(7)
COUNTERS = 7

_AHEAD_BYTES = 2 << 20  # room for keys and values that come next, wherever they go
_FIRST_BYTES = 1 << 17
_RECORD_BYTES = 40  # of a record without its key and value [bytes]


class SelectedColumns(NamedTuple):
    """The parts of a record to copy; other parts cost no more than finding their end."""

    key: bool
    value: bool
    headers: bool
    sought: Sought
    """what a record must have, or it is skipped"""


class RecordColumns(NamedTuple):
    """Columns of records, and of headers. Ends of variable fields: item 0 is 0."""

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
    """their fill level, by counter"""


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
"""which columns grow with a counter"""


class GrowingColumns:
    """Columns that grow before the next data may not fit."""

    def __init__(self, source: Binary) -> None:
        self._first, self._total = int(source.offsets[0]), int(source.offsets[-1] - source.offsets[0])
        self.begin()

    def begin(self) -> None:
        """New columns, without records."""
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
        """About what the records take that are there [bytes]."""
        used = self.columns.used
        return int(used[RECORDS] * _RECORD_BYTES + used[KEY_BYTES] + used[VALUE_BYTES] + used[HEADER_VALUE_BYTES])

    def make_room(self, more: dict[int, int], position: int) -> None:
        """Make room for so many more items, by counter; ``position``: the end of the parsed part of the source."""
        used = self.columns.used.tolist()
        checked_total(max(used[counter] + items for counter, items in more.items()))
        if all(used[counter] + items + COPY_SLACK <= self._room[counter] for counter, items in more.items()):
            return
        larger = {}
        for counter, items in more.items():
            least = used[counter] + items + COPY_SLACK
            selected = self._expected(counter, least, used[counter], position)
            # Where one has to grow, others that soon would have to grow with it.
            if least > self._room[counter] or selected > 2 * self._room[counter]:
                self._room[counter] = selected
                for name in _DTYPES[counter]:
                    larger[name] = _grown(getattr(self.columns, name), used[counter] + 1, selected)
        self.columns = self.columns._replace(**larger)

    def _expected(self, counter: int, least: int, used: int, position: int) -> int:
        """How many items all will take, if it continues like this.

        But no more than four times ``least``, or than the source has: decompressed data may claim any size.
        """
        done = (position - self._first) / max(1, self._total)
        expected = int(used / done * 1.02) if done else 0
        # The next data must fit wherever their bytes go: all of them may be keys.
        expected += least - used + (_AHEAD_BYTES if counter in (KEY_BYTES, VALUE_BYTES) else 0)
        expected = min(expected, max(4 * least, self._total))
        # At the source's end it may continue otherwise than before: what grows by little grows often.
        return min(max(least, expected, self._room[counter] * 3 // 2), INT32_MAX + COPY_SLACK)


def _grown(column: npt.NDArray[Any], used: int, size: int) -> npt.NDArray[Any]:
    """The same with room for ``size`` items."""
    larger = empty(size, column.dtype)
    larger[:used] = column[:used]
    return larger
