"""Find an offset or a timestamp in a segment, as Kafka does: through its indexes where they agree with it, else by its headers.

An index has no checksum, and may be cut, zeroed, damaged, or of another file. So where it points is believed only if an intact
entry is there that begins before what is looked for; else the entry of the index before it is tried, and at last the
beginning of the segment. From there on headers are read. A wrong index makes a search longer, and never changes what it finds.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.files.log import Log
from sparkwire.files.naming import Segment
from sparkwire.files.storage import Cut, Source
from sparkwire.formats.kafka.framing import entry_end
from sparkwire.formats.kafka.layout import BATCH, MAGIC, MESSAGE_1, NO_TIMESTAMP, OVERHEAD
from sparkwire.kernels import Bytes, i8, i32, i64, int64, kernel

Ints = npt.NDArray[np.int64]

PAGE = 64 << 10
"""what a search reads at once [bytes]"""
LARGEST_INDEX = 64 << 20
"""an index beyond that is not looked at [bytes]"""
_TRIED = 8

_LAST_DELTA = BATCH["last_offset_delta"].offset
_MAX_TIMESTAMP = BATCH["timestamp"].offset
_TIMESTAMP = OVERHEAD + MESSAGE_1["timestamp"].offset


class Entry(NamedTuple):
    """A framed entry that was found."""

    position: int
    first: int
    """its offset as stored: in magic 2 that of its first record, before that of its last"""
    last: int
    max_timestamp: int
    """[ms since epoch], `NO_TIMESTAMP` for none"""
    size: int


@kernel
def first_reaching(data: Bytes, size: int, offset: int, timestamp: int) -> int:
    """Where the first entry is whose last offset and largest timestamp are not below these; ``size`` if none does.

    ``data[:size]`` are whole entries.
    """
    pos = int64(0)
    while pos < size:
        _, last, time = entry_numbers(data, pos)
        if last >= offset and time >= timestamp:
            break
        pos = entry_end(data, pos)
    return pos


@kernel
def entry_numbers(data: Bytes, pos: int) -> tuple[int, int, int]:
    """Offset as stored, last offset and largest timestamp of the entry at ``pos``."""
    offset = i64(data, pos, False)
    magic = i8(data, pos + MAGIC)
    if magic == 2:
        last = offset + int64(i32(data, pos + _LAST_DELTA, False))
        return offset, last, i64(data, pos + _MAX_TIMESTAMP, False)
    time = i64(data, pos + _TIMESTAMP, False) if magic == 1 else int64(NO_TIMESTAMP)
    return offset, offset, time


def first_entry(log: Log, position: int, offset: int, timestamp: int = -(2**63)) -> Entry | None:
    """The first entry from ``position`` on whose last offset and largest timestamp are not below these."""
    while position < log.source.size:
        run = log.framed(position, log.source.size)
        size = len(run.data)
        at = int(first_reaching(run.data, size, offset, timestamp))
        if at < size:
            return _entry(run.data, position, at)
        position = position + size if size else log.damage(position).stop
    return None


def last_entry(log: Log, position: int) -> Entry | None:
    """The last entry from ``position`` on."""
    found = None
    while position < log.source.size:
        run = log.framed(position, log.source.size)
        at, size = 0, len(run.data)
        while at < size:
            after = int(entry_end(run.data, at))
            if after >= size:
                found = _entry(run.data, position, at)
            at = after
        position = position + size if size else log.damage(position).stop
    return found


def _entry(data: Bytes, position: int, at: int) -> Entry:
    first, last, time = entry_numbers(data, at)
    return Entry(position + at, int(first), int(last), int(time), int(entry_end(data, at)) - at)


# -- indexes


class Index(NamedTuple):
    """The entries of an index, up to the first that does not increase; keys are relative offsets or timestamps."""

    keys: Ints
    values: Ints


def offset_index(segment: Segment) -> Index:
    """Relative offsets and positions of the segment's `.index`; empty where there is none."""
    return _index(segment, ".index", [("key", ">i4"), ("value", ">i4")])


def time_index(segment: Segment) -> Index:
    """Timestamps [ms since epoch] and relative offsets of the segment's `.timeindex`; empty where there is none."""
    return _index(segment, ".timeindex", [("key", ">i8"), ("value", ">i4")])


def _index(segment: Segment, suffix: str, layout: list[tuple[str, str]]) -> Index:
    raw = beside(segment, suffix)
    width = np.dtype(layout).itemsize
    entries = np.frombuffer(raw[: len(raw) // width * width], layout)
    keys, values = entries["key"].astype(np.int64), entries["value"].astype(np.int64)
    # The zeros that fill an active segment's index, and whatever else does not increase, are no entries.
    rises = (np.diff(keys) > 0) & (np.diff(values) > 0)
    good = len(keys) if rises.all() else int(np.argmin(rises)) + 1
    return Index(keys[:good], values[:good])


def beside(segment: Segment, suffix: str) -> bytes:
    """The segment's file of another suffix; empty where there is none, or it cannot be read, or is too large.

    Or is cut just now: an active segment's index is larger than its entries, until the segment rolls.
    """
    if segment.base_offset is None:
        return b""
    stem = segment.file.basename.partition(".")[0]
    try:
        with Source(segment.file.beside(stem + suffix)) as source:
            return source.view(0, source.size).tobytes() if source.size <= LARGEST_INDEX else b""
    except (OSError, Cut):  # without an index there are the headers
        return b""


class Seeker:
    """Look-ups in one segment."""

    def __init__(self, log: Log, segment: Segment) -> None:
        self.log = log
        self.segment = segment
        self.base = segment.base_offset or 0

    @cached_property
    def offsets(self) -> Index:
        return offset_index(self.segment)

    @cached_property
    def times(self) -> Index:
        return time_index(self.segment)

    def begin_before(self, offset: int) -> int:
        """Position of an entry that begins at or before ``offset``: the nearest that the index knows and the segment has."""
        known = int(np.searchsorted(self.offsets.keys, offset - self.base, "right"))
        for position in self.offsets.values[max(0, known - _TRIED) : known][::-1].tolist():
            if self.log.is_intact(position):
                first, _, _ = entry_numbers(self.log.source.view(position, BATCH.size), 0)
                if first <= offset:
                    return int(position)
        return 0

    def find_offset(self, offset: int) -> Entry | None:
        """The first entry whose last offset is at least ``offset``."""
        return first_entry(self.log, self.begin_before(offset), offset)

    def find_timestamp(self, timestamp: int, offset: int) -> Entry | None:
        """The first entry that may have a record from ``offset`` on that is not older than ``timestamp`` [ms since epoch]."""
        start = max(self._begin_before_timestamp(timestamp), self.begin_before(offset))
        return first_entry(self.log, start, offset, timestamp)

    def _begin_before_timestamp(self, timestamp: int) -> int:
        """Position of an entry before which none is as young as ``timestamp``."""
        times = self.times
        known = int(np.searchsorted(times.keys, timestamp, "right"))
        for k in range(known - 1, max(-1, known - 1 - _TRIED), -1):
            entry = self.find_offset(self.base + int(times.values[k]))
            if entry is not None and entry.max_timestamp == times.keys[k]:
                return entry.position
        return 0

    def last(self) -> Entry | None:
        """The last entry."""
        known = self.offsets.values
        for position in known[: -_TRIED - 1 : -1].tolist():
            if self.log.is_intact(position):
                return last_entry(self.log, int(position))
        return last_entry(self.log, 0)
