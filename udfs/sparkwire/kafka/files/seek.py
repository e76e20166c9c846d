"""Find an offset or a timestamp in a segment as Kafka does: with its indexes if they agree with it, else by its entries.

An index has no checksum, and may be truncated, zeroed, corrupt, or belong to another file. So an index entry counts only under
two conditions: it points to a valid log entry before the target, and valid entries connect it with the previous index entry.
Otherwise the search tries the previous index entry, and finally the beginning of the segment. From there, it reads entries. A
wrong index makes a search longer. Only an index that fits the bytes inside a record's value can point there. If a task begins
there, the previous task does not end there, and the query fails (`entries.read_entries`).

Positions at which a segment can be split, and other small files of a segment, are found here, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.core.sources.storage import File, FileCut, OpenFile
from sparkwire.kafka.files.entries import Entry, read_entries
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.files.naming import Segment
from sparkwire.kafka.tiered.encryption_keys import Keys
from sparkwire.kafka.tiered.manifest import OFFSETS, PRODUCERS, TIMES, TRANSACTIONS, Manifest

Ints = npt.NDArray[np.int64]

PAGE = 64 << 10
"""size of a read in a search [bytes]"""
FIRST, END = -(2**63), 2**63
"""bounds of all possible offsets, the end exclusive"""
LOG_STARTS = "log-start-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"
LARGEST_INDEX = 64 << 20
"""an index larger than this has no effect [bytes]"""
LEAD = 256 << 10
"""number of bytes before a split that consecutive valid entries must have, if an earlier split is not nearer [bytes]"""
_TRIED = 8
_CHECKPOINTED = re.compile(r"^(\S+) (\d+) (\d{1,19})$", re.MULTILINE)
_PARTS = {".index": OFFSETS, ".timeindex": TIMES, ".snapshot": PRODUCERS, ".txnindex": TRANSACTIONS}
"""the parts of an object with a segment's indexes in a bucket"""


def first_entry(log: Log, position: int, offset: int, timestamp: int = -(2**63)) -> Entry | None:
    """The first entry from ``position`` on, the start of an entry, with at least this last offset and largest timestamp."""
    for block in read_entries(log, position, log.source.size):
        reaching = np.flatnonzero(block.is_valid & (block.last >= offset) & (block.max_timestamp >= timestamp))
        if len(reaching):
            return block.entry(int(reaching[0]), position)
        position = block.valid_until(len(block.positions), position)
    return None


def last_entry(log: Log, position: int, stop: int = 2**63 - 1) -> Entry | None:
    """The last entry that begins from ``position`` to before ``stop``."""
    last = None
    for block in read_entries(log, position, min(stop, log.source.size)):
        valid = np.flatnonzero(block.is_valid)
        if len(valid):
            last = block.entry(int(valid[-1]), position)
            position = last.stop
    return last


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

    In a bucket, a snapshot is that of the segment's end. On disk, it is empty if a broker truncates it now: an active segment's
    index is larger than its entries until the segment rolls.
    """
    file, remote = segment.file, segment.remote
    if remote is None:
        stem = file.basename.partition(".")[0]
        return b"" if segment.base_offset is None else small_file(file.sibling(stem + suffix))
    if remote.manifest is None:
        return b""
    if remote.manifest.is_plain_copy:
        return small_file(file.sibling(file.basename.removesuffix(".log") + suffix))
    return index_of(remote.indexes, remote.manifest, remote.keys, _PARTS[suffix])


def index_of(indexes: File | None, manifest: Manifest, keys: Keys, name: str) -> bytes:
    """One of a segment's indexes; empty if it does not exist or cannot be read."""
    span = manifest.indexes.get(name)
    if indexes is None or span is None or not span.size:
        return b""
    try:
        with OpenFile(indexes) as source:
            raw = source.read(span.position, span.size)
    except (OSError, FileCut):  # without an index there are the headers
        return b""
    if manifest.encryption is None:
        return raw
    return keys.decrypt(raw, *manifest.encryption) or b""


def small_file(file: File) -> bytes:
    """A file's content; empty if it does not exist, cannot be read, or is too large."""
    try:
        with OpenFile(file) as source:
            return source.view(0, source.size).tobytes() if source.size <= LARGEST_INDEX else b""
    except (OSError, FileCut):  # without an index there are the headers
        return b""


def checkpointed(text: bytes) -> dict[str, int]:
    """The offset of each partition in a checkpoint file of a log directory, without invalid lines."""
    lines = _CHECKPOINTED.findall(text.decode("utf-8", "replace"))
    return {f"{topic}-{int(partition)}": int(offset) for topic, partition, offset in lines}


def checkpoint_of(segment: Segment, name: str) -> int | None:
    """The offset of the segment's partition in a checkpoint file of its log directory, None if there is none."""
    text = small_file(segment.file._replace(path=segment.file.folder).sibling(name))
    return checkpointed(text).get(f"{segment.topic}-{segment.partition}")


# -- look-ups


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
        for k in self._confirmed(int(np.searchsorted(keys, offset - self.base, "right")), 0):
            if self.entry_at(int(positions[k])).first <= self.base + int(keys[k]):
                return int(positions[k])
        return 0

    def entry_before(self, position: int, floor: int = 0) -> int:
        """Position of an entry at or before ``position``: the nearest one that the index has and the segment confirms.

        It is at least ``floor``, which is such a position.
        """
        end = int(np.searchsorted(self.offsets.values, position, "right"))
        return next((int(self.offsets.values[k]) for k in self._confirmed(end, floor)), floor)

    def _confirmed(self, end: int, floor: int) -> Iterator[int]:
        """The index entries before number ``end``, the nearest first, that the segment confirms, and that are after ``floor``."""
        for k in range(end - 1, max(-1, end - 1 - _TRIED), -1):
            if self.offsets.values[k] <= floor:
                return
            if self.is_entry(k):
                yield k

    def is_entry(self, k: int) -> bool:
        """Whether a log entry begins at the position of index entry ``k``.

        Valid entries must connect it with the position of the previous index entry or with the front.
        """
        if k not in self._proved:
            before, position = (int(self.offsets.values[at]) if at >= 0 else 0 for at in (k - 1, k))
            self._proved[k] = self.log.is_valid(position) and leads_to(self.log, before, position)
        return self._proved[k]

    def entry_at(self, position: int) -> Entry:
        """The entry that begins at a position."""
        return next(read_entries(self.log, position, position + 1)).entry(0)

    def find_offset(self, offset: int) -> Entry | None:
        """The first entry whose last offset is at least ``offset``."""
        return first_entry(self.log, self.begin_before(offset), offset)

    def find_timestamp(self, timestamp: int, offset: int) -> Entry | None:
        """The first entry that may have a record from ``offset`` on that is not older than ``timestamp`` [ms since epoch]."""
        start = max(self._begin_before_timestamp(timestamp), self.begin_before(offset))
        return first_entry(self.log, start, offset, timestamp)

    def _begin_before_timestamp(self, timestamp: int) -> int:
        """Position of an entry before which all entries are older than ``timestamp``."""
        keys, offsets = self.times
        count = int(np.searchsorted(keys, timestamp, "right"))
        for k in range(count - 1, max(-1, count - 1 - _TRIED), -1):
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
        return last.stop if last else 0

    def last(self) -> Entry | None:
        """The last entry."""
        return last_entry(self.log, self.entry_before(self.log.source.size))

    def last_before(self, position: int) -> Entry | None:
        """The last entry that ends at or before a position."""
        return last_entry(self.log, self.entry_before(position - 1), position)


def leads_to(log: Log, position: int, entry: int) -> bool:
    """Whether consecutive valid entries connect ``position`` with ``entry``, both starts of entries."""
    for block in read_entries(log, position, entry):
        if not block.is_valid.all():
            return False
        position = block.end
    return position == entry


# -- splits


class SplitPosition(NamedTuple):
    """A position between two entries."""

    position: int
    before: Entry | None
    """the entry that ends there"""


def split_positions(seeker: Seeker, start: int, stop: int, size: int) -> list[SplitPosition]:
    """Positions at which a segment can be split, so that its parts have the same rows as the whole.

    They are between ``start``, the position of an entry, and ``stop``, about ``size`` bytes apart; corruption can make a distance
    larger. A reader from the front must also reach a split. So consecutive valid entries precede it for `LEAD` bytes, or from the
    previous split on. These are found with the `.index` if that agrees with the segment, else from the previous entries.
    """
    places: list[SplitPosition] = []
    position = start
    while stop - position > size:
        nominal = position + size
        cut = _split(seeker.log, seeker.entry_before(nominal - LEAD, position), nominal, stop, position)
        if cut is None:
            break
        places.append(cut)
        position = cut.position
    return places


def _split(log: Log, position: int, nominal: int, stop: int, floor: int) -> SplitPosition | None:
    """The first split from ``nominal`` on. It counts valid entries from ``position`` on."""
    first, before = position, None
    for block in read_entries(log, position, stop):
        begins, corrupt = block.positions, np.flatnonzero(~block.is_valid).tolist()
        low = 0
        for high in [*corrupt, len(begins)]:
            least = nominal if first == floor else max(nominal, first + LEAD)
            at = low + int(np.searchsorted(begins[low:high], least))
            if at < high:
                return SplitPosition(int(begins[at]), block.entry(at - 1) if at > low else before)
            if high < len(begins):
                first, low = int(block.stops[high]), high + 1
        before = block.entry(len(begins) - 1) if low < len(begins) else None
    return None
