"""Split a query over segments into tasks: the parts of the files that have its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby, pairwise
from typing import Final, NamedTuple

import numpy as np

from sparkwire.base.printable import value_error
from sparkwire.core.sources.follow import Lost, report_loss
from sparkwire.core.sources.storage import FileCut, OpenFile
from sparkwire.core.sources.table import FILE_COST, packed
from sparkwire.kafka.entry_payloads import OffsetRange
from sparkwire.kafka.files import remote
from sparkwire.kafka.files.entries import Entry, EntryId, RecordsDepth, header_at, read_entries
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.files.naming import Segment
from sparkwire.kafka.files.seek import END, FIRST, PAGE, Seeker, first_entry, split_positions
from sparkwire.kafka.files.transactions import (
    Aborted,
    LoggedBatch,
    PartitionTransactions,
    Tracker,
    aborted_in,
    aborted_in_remote,
    batch_of,
    open_after_remote,
    open_before,
)
from sparkwire.kafka.layout import NO_TIMESTAMP


class Expected(NamedTuple):
    """An entry that a segment must have at a position [bytes]."""

    position: int
    id: EntryId

    def is_in(self, log: Log) -> bool:
        entry = header_at(log, self.position)
        return entry is not None and entry.id == self.id


class Guard(NamedTuple):
    """The state of the log for which a part of a stream was planned, to detect that a file has changed since then."""

    log: str
    expected: tuple[Expected, ...]
    first: int
    """offset of the part's first record"""
    end: int
    """offset after the part's last record"""
    fails: bool
    """whether data loss fails the query"""


class SegmentPart(NamedTuple):
    """A part of a segment, which a task reads."""

    segment: Segment
    start: int
    """position of the first entry [bytes]"""
    stop: int
    """position before which the entries begin [bytes]"""
    first_offset: int
    """offset of the first selected record"""
    end_offset: int
    """offset after the last selected record"""
    aborted: tuple[Aborted, ...]
    guard: Guard | None = None
    """in a streaming query: checks that the segment has not changed"""
    following: int | None = None
    """first offset of the next segment, None if there is none or its name has no offset"""
    first_open: int | None = None
    """first offset of the first transaction that is open at the log's end, if the query needs it"""
    joined: bool = False
    """whether another part begins at ``stop``, so that an entry must end there"""


class Transacted(NamedTuple):
    """How a query uses transactions."""

    committed: bool
    """whether it omits rows of open and aborted transactions"""
    reported: bool
    """whether a column shows these rows"""


NOT_TRANSACTED: Final = Transacted(False, False)


class LogBounds(NamedTuple):
    """The query's bounds in each partition: offsets, and timestamps for look-ups as in Kafka [ms since epoch]."""

    first_offset: int | None = None
    end_offset: int | None = None
    first_timestamp: int | None = None
    end_timestamp: int | None = None


class SelectedRows(NamedTuple):
    """The bounds of the rows that the query's filters select. Other records need not be read."""

    first_offset: int = FIRST
    end_offset: int = END
    first_timestamp: int | None = None
    """[ms since epoch]"""


class Reach(NamedTuple):
    """The offsets of a partition, and its newest timestamp."""

    name: str
    first: int
    next: int
    """the offset after its last offset"""
    newest: int
    """largest timestamp of its last segment, as far as headers and index show it [ms since epoch]"""


def parts(
    segments: Sequence[Segment],
    bounds: LogBounds,
    selected: SelectedRows,
    transacted: Transacted,
    verify: bool,
    max_bytes: int,
) -> list[SegmentPart]:
    """The parts of segments that have the query's rows. A part has up to about ``max_bytes``.

    ValueError if the start is beyond the end of every partition.
    """
    result: list[SegmentPart] = []
    beyond: list[Reach] = []
    for _, log in groupby(segments, key=lambda segment: segment.log):
        partition = OpenPartition(list(log), verify)
        try:
            result += _parts_of(partition, bounds, selected, transacted, max_bytes, beyond)
        except remote.ManifestMismatchError:
            partition = OpenPartition(remote.replan(partition.segments), verify)
            result += _parts_of(partition, bounds, selected, transacted, max_bytes, beyond)
    if beyond and not result and len({segment.log for segment in segments}) == len(beyond):
        raise value_error(_beyond(bounds, beyond))
    return result


def _parts_of(
    partition: OpenPartition,
    bounds: LogBounds,
    selected: SelectedRows,
    transacted: Transacted,
    max_bytes: int,
    beyond: list[Reach],
) -> list[SegmentPart]:
    """The parts of one partition. If the start is beyond its end, there are none, and it is added to ``beyond``."""
    with partition.opened:
        first, end = partition.range(bounds)
        if first is None:
            beyond.append(partition.reach())
            return []
        first, end = max(first, selected.first_offset), min(end, selected.end_offset)
        if selected.first_timestamp is not None and first < end:
            young = partition.offset_of(selected.first_timestamp, first)
            first = end if young is None else max(first, young)
        if first >= end:
            return []
        return list(partition.parts(first, end, transacted, max_bytes))


def _beyond(bounds: LogBounds, reaches: list[Reach]) -> str:
    if bounds.first_timestamp is not None:
        newest = max(reach.newest for reach in reaches)
        start = bounds.first_timestamp
        return f"startingTimestamp {start} is beyond the end: the newest record has {newest} [ms since epoch]"
    ends = ", ".join(f"{reach.name} has {reach.first} to {reach.next}" for reach in reaches[:5])
    return f"startingOffset {bounds.first_offset} is beyond the end: {ends}{', …' if len(reaches) > 5 else ''}"


class OpenPartition:
    """The segments of one partition. It opens files on first use; close ``opened`` to close them all."""

    def __init__(self, segments: Sequence[Segment], verify: bool = True) -> None:
        self.segments: list[Segment] = list(segments)
        self.verify = verify
        self.opened: ExitStack[bool | None] = ExitStack()
        self._seekers: dict[int, Seeker] = {}

    def seeker(self, k: int) -> Seeker:
        """Look-ups in a segment. If another segment has the end of a segment in a bucket, look-ups cover the part before it."""
        if k not in self._seekers:
            segment = self.with_manifest(k)
            source = self.opened.enter_context(OpenFile(segment.file))
            seeker = Seeker(Log(source, self.verify, PAGE), segment)
            if segment.remote is not None and segment.remote.end is not None:
                entry = seeker.find_offset(segment.remote.end)
                source.size = source.size if entry is None else entry.position
            self._seekers[k] = seeker
        return self._seekers[k]

    def with_manifest(self, k: int) -> Segment:
        """A segment with its manifest; ManifestMismatchError if the names in a bucket do not determine the log."""
        if self.segments[k].remote is not None:
            self.segments[k] = remote.with_manifest(self.segments[k], self.following(k))
        return self.segments[k]

    def following(self, k: int) -> int | None:
        """The first offset of the next segment that has bytes, if it is in that segment's name.

        From this offset on, the next segment is the log, as in a broker (``LogSegments.floorSegment``). After an unclean
        shutdown, the end of the previous segment may have the same offsets.
        """
        after = (segment for segment in self.segments[k + 1 :] if segment.file.size != 0)
        return next((segment.base_offset for segment in after), None)

    def before(self, k: int, end: int = END) -> int:
        """The offset before which a segment is part of the log, at most ``end``."""
        following = self.following(k)
        return end if following is None else min(end, following)

    def range(self, bounds: LogBounds) -> tuple[int | None, int]:
        """The first and the end offset of the query; the first is None if the start is beyond the end."""
        first = self._least() if bounds.first_offset is None else max(bounds.first_offset, self._least())
        end = END if bounds.end_offset is None else bounds.end_offset
        if bounds.first_timestamp is not None:
            offset = self.offset_of(bounds.first_timestamp, first)
            if offset is None:
                return None, end
            first = max(first, offset)
        if bounds.end_timestamp is not None:
            offset = self.offset_of(bounds.end_timestamp, FIRST)
            end = end if offset is None else min(end, offset)
        return (None if bounds.first_offset is not None and self._is_beyond(first) else first), end

    def _least(self) -> int:
        """The first offset that the partition may have."""
        remote = self.segments[0].remote
        return FIRST if remote is None else remote.begins

    def _is_beyond(self, offset: int) -> bool:
        """Whether ``offset`` is greater than the partition's next offset."""
        last = len(self.segments) - 1
        base = self.segments[last].base_offset
        if offset == 0 or (base is not None and offset <= base) or self.seeker(last).find_offset(offset) is not None:
            return False
        return offset > self.reach().next

    def begins(self) -> int:
        """The partition's first offset: from the first segment's name, else from its first entry."""
        base = self.segments[0].base_offset
        if base is not None:
            base = max(base, self._least())
        else:
            first = first_entry(self.seeker(0).log, 0, FIRST)
            base = None if first is None else first.first
        return base or 0

    def reach(self) -> Reach:
        """The start and end of the partition."""
        last: Entry | None = None
        for k in range(len(self.segments) - 1, -1, -1):
            last = self.seeker(k).last()
            if last is not None:
                break
        file = self.segments[0].file
        name = file.folder.rsplit("/", 1)[-1] if self.segments[0].topic else file.name
        begin = self.begins()
        if last is None:
            return Reach(name, begin, begin, NO_TIMESTAMP)
        timestamps = self.seeker(k).times.keys
        return Reach(
            name,
            begin,
            last.last + 1,
            max(last.max_timestamp, int(timestamps[-1]) if len(timestamps) else NO_TIMESTAMP),
        )

    def offset_of(self, timestamp: int, offset: int) -> int | None:
        """Offset of the first record from ``offset`` on that is not older than ``timestamp`` [ms since epoch]."""
        depth = RecordsDepth((), OffsetRange(offset, END - 1))
        for k in self._holding(offset, END):
            seeker = self.seeker(k)
            entry = seeker.find_timestamp(timestamp, offset)
            before = self.before(k)
            while entry is not None and entry.first < before:
                for block in read_entries(seeker.log, entry.position, entry.position + 1, depth):
                    times = block.records.timestamp_ms().fill_null(-1).to_numpy(zero_copy_only=False)
                    offsets = block.records.offset().fill_null(-1).to_numpy(zero_copy_only=False)
                    good = np.flatnonzero((times >= timestamp) & (offsets >= offset) & (offsets < before))
                    if len(good):
                        return int(offsets[good[0]])
                entry = first_entry(seeker.log, entry.stop, offset, timestamp)
        return None

    def _holding(self, first: int, end: int) -> Iterator[int]:
        """The segments that may have offsets from ``first`` to before ``end``, according to their names."""
        for k, segment in enumerate(self.segments):
            following = self.following(k)
            if (following is None or first < following) and (segment.base_offset is None or end > segment.base_offset):
                yield k

    def parts(self, first: int, end: int, transacted: Transacted, max_bytes: int) -> Iterator[SegmentPart]:
        """The entries with offsets from ``first`` to before ``end``, in parts of about ``max_bytes``."""
        transactions = self.transactions(first) if any(transacted) else PartitionTransactions((), None)
        if transacted.committed and transactions.first_open is not None:
            end = min(end, transactions.first_open)
        for k in self._holding(first, end):
            for part in self._parts_of(k, first, end, max_bytes):
                yield (
                    part._replace(aborted=transactions.aborted, first_open=transactions.first_open)
                    if any(transacted)
                    else part
                )

    def transactions(self, first: int) -> PartitionTransactions:
        """The transactions aborted after the offset ``first``, possibly earlier ones, and the first that is open at the end.

        It reads the last segment, and the segments without the broker's files.
        """
        tracker, last = Tracker(), len(self.segments) - 1
        begin = next(self._holding(first, END), last)
        opened = self._open_after(begin - 1) if begin else None
        if opened is None:
            begin = 0
        else:
            tracker.skip_to((), opened)
        for k in range(begin, last + 1):
            opened = self._open_after(k)
            aborted = None if opened is None else self._aborted_in(k)
            if opened is None or aborted is None:
                source = self.seeker(k).log.source
                tracker.follow(Log(source), 0, source.size, self.before(k))
            else:
                tracker.skip_to(aborted, opened)
        return tracker.transactions()

    def _open_after(self, k: int) -> dict[int, int] | None:
        """The first offsets of the transactions that are open after a segment; None without a valid snapshot."""
        segment = self.with_manifest(k)
        if segment.remote is not None:
            return open_after_remote(segment) if segment.remote.end is None else None
        if k + 1 == len(self.segments):
            return None
        return open_before(self.segments[k + 1], self.segments[0].base_offset or 0, self._batch_at)

    def _aborted_in(self, k: int) -> list[Aborted] | None:
        segment, end = self.with_manifest(k), self.following(k)
        if segment.remote is not None:
            return aborted_in_remote(segment, END if end is None else end)
        return aborted_in(segment, end or 0, self.segments[0].base_offset or 0, self._batch_at)

    def _batch_at(self, offset: int) -> LoggedBatch | None:
        """The batch of magic 2 that contains an offset."""
        for k in self._holding(offset, offset + 1):
            log, entry = self.seeker(k).log, self.seeker(k).find_offset(offset)
            if entry is not None and entry.first <= offset:
                # With its checksum, as the whole segment is read if this does not agree.
                return batch_of(next(read_entries(Log(log.source), entry.position, entry.stop)))
        return None

    def _parts_of(self, k: int, first: int, end: int, max_bytes: int) -> Iterator[SegmentPart]:
        segment, following = self.segments[k], self.following(k)
        if is_named(segment):
            yield SegmentPart(segment, 0, segment.file.size, first, self.before(k, end), (), following=following)
            return
        base = segment.base_offset or 0
        is_cut = segment.remote is not None and segment.remote.end is not None
        start, stop = 0, segment.file.size
        if first > base or (end < END and (following is None or end < following)) or segment.file.compressed or is_cut:
            seeker = self.seeker(k)
            stop = seeker.log.source.size
            if first > base:
                entry = seeker.find_offset(first)
                start = entry.after if entry is not None else seeker.end()
            if end < END and (following is None or end < following):
                entry = seeker.find_offset(end)
                # An entry of magic 0 or 1 may also have earlier records.
                stop = stop if entry is None else entry.position + int(entry.first < end or entry.first == entry.last)
        if start >= stop:
            return
        places = [start]
        if stop - start > max_bytes and not segment.file.compressed:
            seeker = self.seeker(k)
            size = -(-(stop - start) // -(-(stop - start) // max_bytes))
            places += [cut.position for cut in split_positions(seeker, start, stop, size)]
        part = SegmentPart(segment, start, stop, first, self.before(k, end), (), following=following)
        for place, next_place in pairwise(places):
            yield part._replace(start=place, stop=next_place, joined=True)
        yield part._replace(start=places[-1])


def parts_now(part: SegmentPart, verify: bool, max_bytes: int) -> list[SegmentPart]:
    """The parts to read now. If the segment of a stream changed after planning, these are the current parts with its offsets.

    A file that replaces the segment counts as unchanged if it has the first and the last entry of the part.

    DataLossError if the segment changed and data loss fails the query.
    """
    guard = part.guard
    if guard is None:
        return parts_with_manifest(part, verify, max_bytes) if is_named(part.segment) else [part]
    try:
        now = part.segment._replace(file=part.segment.file.as_it_is_now())
        with OpenFile(now.file) as source:
            log = Log(source, verify)
            if all(entry.is_in(log) for entry in guard.expected):
                return [part._replace(segment=now)]
        lost = Lost(f"{part.segment.file.basename} has other bytes than when it was listed")
    except (FileNotFoundError, FileCut) as error:
        lost = Lost(str(error))
    report_loss(guard.log, f"offset {guard.first}", lost, guard.fails)
    file = part.segment.file
    current = part.segment if part.segment.remote else part.segment._replace(file=file.sibling(file.basename))
    partition = OpenPartition([current], verify)
    try:
        with partition.opened:
            parts = list(partition.parts(guard.first, guard.end, NOT_TRANSACTED, max_bytes))
    except FileNotFoundError:
        return []
    return [current._replace(aborted=part.aborted, following=part.following) for current in parts]


def is_named(segment: Segment) -> bool:
    """Whether a segment is in a bucket, and its manifest is not read yet."""
    return segment.remote is not None and segment.remote.manifest is None


def parts_with_manifest(part: SegmentPart, verify: bool, max_bytes: int) -> list[SegmentPart]:
    """The part with the segment's manifest. If the manifest contradicts the names, parts of other segments with its offsets."""
    try:
        segments = [remote.with_manifest(part.segment, part.following)]
    except remote.ManifestMismatchError:
        segments = remote.replan([part.segment])
    first = max(part.first_offset, part.segment.base_offset or 0)
    end = part.end_offset if part.following is None else min(part.end_offset, part.following)
    partition = OpenPartition(segments, verify)
    with partition.opened:
        parts = list(partition.parts(first, end, NOT_TRANSACTED, max_bytes))
    return [
        current._replace(
            aborted=part.aborted,
            first_open=part.first_open,
            following=current.following or part.following,
        )
        for current in parts
    ]


def tasks(parts: Sequence[SegmentPart], max_bytes: int) -> list[tuple[SegmentPart, ...]]:
    """Combine parts to tasks."""
    return packed(parts, [part.stop - part.start + FILE_COST for part in parts], max_bytes)
