"""The lost offsets of rows with an error: the offsets between the valid entries before and after them.

Consecutive rows with errors are one hole, and the first row has its offsets. These include offsets next to the hole that
compaction has removed, because they cannot be distinguished from lost ones.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.core.column import primitive
from sparkwire.kafka.files.entries import Entries, Entry
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.files.plan import SegmentPart
from sparkwire.kafka.files.seek import END, FIRST, first_entry

COLUMNS: Final = {"first_lost": pa.int64(), "last_lost": pa.int64()}
DOCS: Final = {
    "first_lost": "The first offset that is lost at this row; NULL if none is, or if an earlier row of the same gap has it.",
    "last_lost": "The last offset that is lost; NULL also if the log ends within the gap.",
}

Ints = npt.NDArray[np.int64]
_UNKNOWN: Final = np.int64(FIRST)


class Holes:
    """Finds the holes of a part, across its pieces."""

    def __init__(self, log: Log, part: SegmentPart) -> None:
        self._log, self._part = log, part
        self._before = _UNKNOWN
        """last offset of the valid entry before the next piece"""
        if part.guard is not None:
            self._before = np.int64(part.guard.first - 1)
        elif part.first_offset > FIRST:
            self._before = np.int64(part.first_offset - 1)
        if part.start == 0 and part.segment.base_offset is not None:
            self._before = max(self._before, np.int64(part.segment.base_offset - 1))
        self._within = False
        """whether the entry before the next piece is corrupt"""
        self._after: tuple[int, Entry | None] | None = None
        """the start and the result of the last search for a valid entry"""

    def of_batches(self, block: Entries, corrupt: pa.Array) -> dict[str, pa.Array]:
        """The columns of entries; ``corrupt`` has their errors."""
        first, last = self._of_entries(block)
        inside = np.asarray(corrupt.is_valid()) & block.is_valid
        first[inside], last[inside] = _first_offsets(block)[inside], block.last[inside]
        return self._columns(first, last)

    def of_records(self, block: Entries) -> dict[str, pa.Array]:
        """The columns of the entries' records."""
        records = block.records
        rows = records.entry_of_row()
        first, last = (of_entries[rows] for of_entries in self._of_entries(block))
        inside = np.asarray(records.error().is_valid()) & block.is_valid[rows]
        if inside.any():
            exact, known = records.offset(), ~inside
            offsets = exact.fill_null(FIRST).to_numpy()
            known &= np.asarray(exact.is_valid())
            lowest, highest = _first_offsets(block)[rows], block.last[rows]
            before = _carried(np.where(known, offsets, _UNKNOWN), known, rows)
            after = _carried(np.where(known, offsets, _UNKNOWN)[::-1], known[::-1], rows[::-1])[::-1]
            first[inside] = np.where(before == _UNKNOWN, lowest, before + 1)[inside]
            last[inside] = np.where(after == _UNKNOWN, highest, after - 1)[inside]
        return self._columns(first, last)

    def _of_entries(self, block: Entries) -> tuple[Ints, Ints]:
        """First and last lost offset of each entry that begins a hole, `_UNKNOWN` for other entries."""
        intact = block.is_valid
        count = len(intact)
        first, last = np.full(count, _UNKNOWN), np.full(count, _UNKNOWN)
        lowest, highest = _first_offsets(block), block.last
        if not intact.all():
            begins = ~intact & ~np.concatenate(([self._within], ~intact[:-1]))
            whole = np.zeros(count, np.int64)
            before = _carried(np.where(intact, highest, _UNKNOWN), intact, whole)
            before = np.where(before == _UNKNOWN, self._before, before)
            after = _carried(np.where(intact, lowest, _UNKNOWN)[::-1], intact[::-1], whole)[::-1]
            if begins[-1] or (begins.any() and not intact[np.flatnonzero(begins)[-1] :].any()):
                after = np.where(after == _UNKNOWN, self._first_after(block.end), after)
            known = begins & (before != _UNKNOWN)
            first[known] = before[known] + 1
            known = begins & (after != _UNKNOWN)
            last[known] = after[known] - 1
        if intact.any():
            self._before = highest[intact][-1]
        self._within = not intact[-1]
        return first, last

    def _first_after(self, position: int) -> np.int64:
        """The offset of the first valid entry from a position on, or of the next segment."""
        since, first = self._after or (END, None)
        if since > position or (first is not None and first.position < position):
            first = first_entry(self._log, position, FIRST)
            self._after = position, first
        if first is not None:
            return np.int64(first.first)
        return _UNKNOWN if self._part.following is None else np.int64(self._part.following)

    def _columns(self, first: Ints, last: Ints) -> dict[str, pa.Array]:
        """The columns, limited to the query's offsets; NULL if no offset is lost."""
        first = np.where(first == _UNKNOWN, first, np.maximum(first, self._part.first_offset))
        if self._part.end_offset < END:
            last = np.minimum(last, self._part.end_offset - 1)
        known_range = (first == _UNKNOWN) | (last == _UNKNOWN) | (first <= last)
        return {
            "first_lost": primitive(first, known_range & (first != _UNKNOWN)),
            "last_lost": primitive(last, known_range & (last != _UNKNOWN)),
        }


def _first_offsets(block: Entries) -> Ints:
    """The first offset of each entry; that of a compressed message of magic 0 or 1 is unknown."""
    return np.where(block.headers.is_wrapper, _UNKNOWN, block.first)


def _carried(values: Ints, known: npt.NDArray[np.bool_], groups: npt.NDArray[np.integer]) -> Ints:
    """The last known value before each item in its group, `_UNKNOWN` if there is none."""
    places = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    places = np.concatenate(([-1], places[:-1]))
    within = (places >= 0) & (groups[places] == groups)
    return np.where(within, values[places], _UNKNOWN)
