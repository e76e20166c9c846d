"""Find an offset or a timestamp in a segment as Kafka does: with its indexes if they agree with it, else by its headers.

An index has no checksum, and may be truncated, zeroed, corrupt, or belong to another file. So an index entry counts only under
two conditions: it points to a valid log entry before the target, and valid entries connect it with the previous index entry.
Otherwise the search tries the previous index entry, and finally the beginning of the segment. From there, it reads headers. A
wrong index makes a search longer. Only an index that fits the bytes inside a record's value can point there.
If a task begins there, the previous task does not end there, and the query fails (`decode.check_joined`).
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.base.error_codes import OK
from sparkwire.kafka.files import tier
from sparkwire.kafka.files.log import Block, Log
from sparkwire.kafka.files.naming import Segment
from sparkwire.kafka.framing import FrameBlock
from sparkwire.kafka.layout import BATCH, MAGIC, MESSAGE_1, NO_TIMESTAMP, OVERHEAD
from sparkwire.kernels import Bytes, i8, i32, i64, int64, kernel

Ints = npt.NDArray[np.int64]

PAGE = 64 << 10
"""size of a read in a search [bytes]"""
FIRST, END = -(2**63), 2**63
"""bounds of all possible offsets, the end exclusive"""
_TRIED = 8

_LAST_DELTA = BATCH["last_offset_delta"].offset
_MAX_TIMESTAMP = BATCH["max_timestamp"].offset
_TIMESTAMP = OVERHEAD + MESSAGE_1["timestamp"].offset


class FoundEntry(NamedTuple):
    """A framed entry that a search found."""

    position: int
    first: int
    """stored offset: of the first record in magic 2, of the last record in magic 0 and 1"""
    last: int
    max_timestamp: int
    """[ms since epoch], `NO_TIMESTAMP` for none"""
    size: int
    after: int
    """end of the previous valid entry; the bytes between are corrupt"""


@kernel
def first_reaching(data: Bytes, frames: FrameBlock, offset: int, timestamp: int) -> int:
    """Index of the first valid entry with at least this last offset and largest timestamp, else the number of entries."""
    for i in range(frames.begin.size):
        if frames.error[i] == OK:
            _, last, time = entry_numbers(data, int64(frames.begin[i]))
            if last >= offset and time >= timestamp:
                return i
    return frames.begin.size


@kernel
def entry_numbers(data: Bytes, pos: int) -> tuple[int, int, int]:
    """Stored offset, last offset and largest timestamp of the entry at ``pos``."""
    offset = i64(data, pos, False)
    magic = i8(data, pos + MAGIC)
    if magic == 2:
        last = offset + int64(i32(data, pos + _LAST_DELTA, False))
        return offset, last, i64(data, pos + _MAX_TIMESTAMP, False)
    time = i64(data, pos + _TIMESTAMP, False) if magic == 1 else int64(NO_TIMESTAMP)
    return offset, offset, time


def first_entry(log: Log, position: int, offset: int, timestamp: int = -(2**63)) -> FoundEntry | None:
    """The first entry from ``position`` on, the start of an entry, with at least this last offset and largest timestamp."""
    for block in log.blocks(position, log.source.size):
        at = int(first_reaching(block.data, block.frames, offset, timestamp))
        if at < len(block.frames.begin):
            return entry_of(block, at, position)
        position = _valid_until(block, at, position)
    return None


def last_entry(log: Log, position: int, stop: int = 2**63 - 1) -> FoundEntry | None:
    """The last entry that begins from ``position`` to before ``stop``."""
    last = None
    for block in log.blocks(position, min(stop, log.source.size)):
        valid = np.flatnonzero(block.frames.error == OK)
        if len(valid):
            last = entry_of(block, int(valid[-1]), position)
            position = last.position + last.size
    return last


def entry_of(block: Block, at: int, after: int = 0) -> FoundEntry:
    """A valid entry of a block; ``after`` is the end of the last valid entry before the block."""
    begin, stop = int(block.frames.begin[at]), int(block.frames.stop[at])
    first, last, time = entry_numbers(block.data, begin)
    return FoundEntry(
        block.position + begin, int(first), int(last), int(time), stop - begin, _valid_until(block, at, after)
    )


def _valid_until(block: Block, at: int, after: int) -> int:
    """The end of the last valid entry before the entry ``at``."""
    valid = np.flatnonzero(block.frames.error[:at] == OK)
    return block.position + int(block.frames.stop[valid[-1]]) if len(valid) else after


# -- indexes


class Index(NamedTuple):
    """The entries of an index up to the first that does not increase. Keys are relative offsets or timestamps."""

    keys: Ints
    values: Ints


def offset_index(segment: Segment) -> Index:
    """Relative offsets and positions of the segment's `.index`; empty if the file does not exist."""
    return _index(segment, ".index", [("key", ">i4"), ("value", ">i4")])


def time_index(segment: Segment) -> Index:
    """Timestamps [ms since epoch] and relative offsets of the segment's `.timeindex`; empty if the file does not exist."""
    return _index(segment, ".timeindex", [("key", ">i8"), ("value", ">i4")])


def _index(segment: Segment, suffix: str, layout: list[tuple[str, str]]) -> Index:
    raw = sibling_of(segment, suffix)
    width = np.dtype(layout).itemsize
    entries = np.frombuffer(raw[: len(raw) // width * width], layout)
    keys, values = entries["key"].astype(np.int64), entries["value"].astype(np.int64)
    # Zeros fill an active segment's index; these and other values that do not increase are not entries.
    rises = (np.diff(keys) > 0) & (np.diff(values) > 0)
    good = len(keys) if rises.all() else int(np.argmin(rises)) + 1
    return Index(keys[:good], values[:good])


def sibling_of(segment: Segment, suffix: str) -> bytes:
    """The segment's file with another suffix; empty if it does not exist, cannot be read, or is too large.

    Also empty if a broker truncates it now: an active segment's index is larger than its entries until the segment rolls.
    """
    if segment.remote is not None:
        return tier.sibling_of(segment, suffix)
    if segment.base_offset is None:
        return b""
    stem = segment.file.basename.partition(".")[0]
    return tier.small_file(segment.file.sibling(stem + suffix))


def log_dir_file(segment: Segment, name: str) -> bytes:
    """A file beside the segment's folder; empty if it does not exist."""
    folder = segment.file.folder
    return tier.small_file(segment.file._replace(path=folder).sibling(name))


class Seeker:
    """Look-ups in one segment."""

    def __init__(self, log: Log, segment: Segment) -> None:
        self.log = log
        self.segment = segment
        self.base: int = segment.base_offset or 0
        self._proved: dict[int, bool] = {}

    @cached_property
    def offsets(self) -> Index:
        return offset_index(self.segment)

    @cached_property
    def times(self) -> Index:
        return time_index(self.segment)

    def begin_before(self, offset: int) -> int:
        """Position of an entry at or before ``offset``: the nearest one that the index has and the segment confirms."""
        keys, positions = self.offsets
        known = int(np.searchsorted(keys, offset - self.base, "right"))
        for k in range(known - 1, max(-1, known - 1 - _TRIED), -1):
            if self.is_entry(k) and self.entry_at(int(positions[k])).first <= self.base + int(keys[k]):
                return int(positions[k])
        return 0

    def is_entry(self, k: int) -> bool:
        """Whether a log entry begins at the position of index entry ``k``.

        Valid entries must connect it with the position of the previous index entry or with the front.
        """
        if k not in self._proved:
            before, position = (int(self.offsets.values[at]) if at >= 0 else 0 for at in (k - 1, k))
            self._proved[k] = self.log.is_valid(position) and leads_to(self.log, before, position)
        return self._proved[k]

    def entry_at(self, position: int) -> FoundEntry:
        """The entry that begins at a position."""
        return entry_of(next(self.log.blocks(position, position + 1)), 0)

    def find_offset(self, offset: int) -> FoundEntry | None:
        """The first entry whose last offset is at least ``offset``."""
        return first_entry(self.log, self.begin_before(offset), offset)

    def find_timestamp(self, timestamp: int, offset: int) -> FoundEntry | None:
        """The first entry that may have a record from ``offset`` on that is not older than ``timestamp`` [ms since epoch]."""
        start = max(self._begin_before_timestamp(timestamp), self.begin_before(offset))
        return first_entry(self.log, start, offset, timestamp)

    def _begin_before_timestamp(self, timestamp: int) -> int:
        """Position of an entry before which all entries are older than ``timestamp``."""
        keys, offsets = self.times
        known = int(np.searchsorted(keys, timestamp, "right"))
        for k in range(known - 1, max(-1, known - 1 - _TRIED), -1):
            entry = self.find_offset(self.base + int(offsets[k]))
            if entry is not None and entry.max_timestamp == keys[k]:
                before = self.find_offset(self.base + int(offsets[k - 1])) if k else None
                younger = first_entry(self.log, before.position if before else 0, FIRST, int(keys[k]) + 1)
                if younger is None or younger.position > entry.position:
                    return entry.position
        return 0

    def end(self) -> int:
        """The end of the last entry."""
        last = self.last()
        return last.position + last.size if last else 0

    def last(self) -> FoundEntry | None:
        """The last entry."""
        return last_entry(self.log, self.near_the_end(0))

    def last_before(self, position: int) -> FoundEntry | None:
        """The last entry that ends at or before a position."""
        known = int(np.searchsorted(self.offsets.values, position))
        for k in range(known - 1, max(-1, known - 1 - _TRIED), -1):
            if self.is_entry(k):
                return last_entry(self.log, int(self.offsets.values[k]), position)
        return last_entry(self.log, 0, position)

    def near_the_end(self, floor: int) -> int:
        """Position of the last entry that the index has and the segment confirms, at least ``floor``."""
        for k in range(len(self.offsets.values) - 1, max(-1, len(self.offsets.values) - 1 - _TRIED), -1):
            if self.offsets.values[k] <= floor:
                break
            if self.is_entry(k):
                return int(self.offsets.values[k])
        return floor


def leads_to(log: Log, position: int, entry: int) -> bool:
    """Whether consecutive valid entries connect ``position`` with ``entry``, both starts of entries."""
    for block in log.blocks(position, entry):
        if (block.frames.error != OK).any():
            return False
        position = block.stop
    return position == entry
