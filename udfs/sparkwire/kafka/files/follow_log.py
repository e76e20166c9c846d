"""`kafka_log` as a stream: the position of a query in a log is an offset.

Incomplete data is left for the next batch: bytes after the last valid entry of the last segment, while that segment may grow, and
the zeros of a preallocated segment. A segment before another one is complete, so the query reads it to its end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from sparkwire.core.sources.follow import Follower, Lost, integer, may_grow, report_loss, text
from sparkwire.core.sources.storage import File, FileCut, OpenFile
from sparkwire.kafka.files.entries import Entry, EntryId, header_at
from sparkwire.kafka.files.kafka_log import find, part_bytes
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.files.log_rows import HIDDEN, LONGEST, LogQuery
from sparkwire.kafka.files.naming import Segment, base_offset_of
from sparkwire.kafka.files.plan import NOT_TRANSACTED, Expected, Guard, LogBounds, OpenPartition, SegmentPart
from sparkwire.kafka.files.seek import CLEANED, FIRST, checkpoint_of, last_entry, split_positions
from sparkwire.kafka.files.transactions import Tracker

_SCANNED = 1 << 20  # number of bytes to compare with zero at a time


class LastEntry(NamedTuple):
    """The last valid entry returned, and its position."""

    file: str
    position: int
    id: EntryId


class LogOffset(NamedTuple):
    """The end of the part of a log returned so far."""

    next: int
    """the next offset"""
    file: str
    """the segment at whose end it is"""
    position: int
    """position of its first byte not yet returned"""
    last: LastEntry | None = None
    first: int | None = None
    """start of a log that is new to the query"""


class ResumePosition(NamedTuple):
    """A position in the current segments at which reading resumes."""

    segment: int
    position: int
    last: tuple[int, Expected] | None = None
    """segment and position of the last entry returned"""


class LogFollower(Follower[Sequence[Segment], LogOffset]):
    """Follows the logs of a query over `kafka_log`."""

    source = "kafka_log"

    def __init__(self, query: LogQuery) -> None:
        super().__init__(query)
        if query.ending_offset is not None or query.ending_timestamp is not None:
            raise ValueError("kafka_log takes endingOffset and endingTimestamp in batch queries: a stream has no end")
        if HIDDEN in query.columns:
            raise ValueError(
                "kafka_log has hidden in batch queries only: a stream returns records before their transactions have ended"
            )
        self._trackers: dict[str, tuple[Tracker, LogOffset]] = {}

    def logs(self, may_be_empty: bool) -> Mapping[str, Sequence[Segment]]:
        query = self.query
        segments = find(query.paths, query.remote_path, query.encryption_keys, False, query.replicas, may_be_empty)
        name = _partition if query.replicas == LONGEST else _name
        return {name: list(some) for name, some in groupby(segments, key=name)}

    def size(self, part: SegmentPart) -> int:
        return part.segment.file.size

    # -- offsets

    def end(self, name: str, log: Sequence[Segment], begin: LogOffset | None) -> LogOffset:
        try:
            return self._end(name, log, begin)
        except FileCut:  # a broker that rolls a segment releases the space that it had allocated in advance
            return self._end(name, [*log[:-1], _with_current_size(log[-1])], begin)

    def _end(self, name: str, log: Sequence[Segment], begin: LogOffset | None) -> LogOffset:
        partition = OpenPartition(log, self.query.verify)
        with partition.opened:
            if begin is None:
                return self._joining(name, partition)
            try:
                at = resume_position(partition, begin)
            except Lost:
                return self._readable(name, partition, None, None)
            end = self._readable(name, partition, at, begin)
            place = ResumePosition(len(log) - 1, end.position)
            is_unchanged = end.file == log[-1].file.basename and end.next == begin.next
            return begin if is_unchanged and not list(_spans(partition, at, place)) else end

    def _joining(self, name: str, partition: OpenPartition) -> LogOffset:
        """The end of a new log, with its start."""
        end = self._readable(name, partition, None, None)
        first, _ = partition.range(LogBounds(self.query.starting_offset, None, self.query.starting_timestamp, None))
        return end._replace(first=end.next if first is None else max(first, partition.begins()))

    def _readable(
        self, name: str, partition: OpenPartition, at: ResumePosition | None, begin: LogOffset | None
    ) -> LogOffset:
        end = end_of(partition, at, begin)
        if self.query.committed:
            first_open = self._followed(name, partition, end).transactions().first_open
            if first_open is not None and first_open < end.next:
                if begin is not None and first_open <= begin.next:
                    return begin
                return before_offset(partition, first_open)
        return end

    def _followed(self, name: str, partition: OpenPartition, end: LogOffset) -> Tracker:
        """The transactions of a log up to ``end``, continued from the last call."""
        tracker, done = self._trackers.get(name, (Tracker(), None))
        at = ResumePosition(0, 0)
        if done is not None:
            try:
                at = resume_position(partition, done)
            except Lost:
                tracker = Tracker()
        for k, start, stop in _spans(partition, at, resume_position(partition, end)):
            tracker.follow(partition.seeker(k).log, start, stop, partition.before(k))
        self._trackers[name] = tracker, end
        return tracker

    # -- limits

    def bytes_between(self, log: Sequence[Segment], begin: LogOffset | None, end: LogOffset) -> int:
        partition = OpenPartition(log, self.query.verify)
        with partition.opened:
            try:
                return sum(stop - start for _, start, stop in _spans(partition, *_both(partition, begin, end)))
            except Lost:
                return 0  # `parts` reports the loss

    def nearer(self, log: Sequence[Segment], begin: LogOffset | None, end: LogOffset, share: int) -> LogOffset:
        partition = OpenPartition(log, self.query.verify)
        with partition.opened:
            from_, to = _both(partition, begin, end)
            for k, start, stop in _spans(partition, from_, to):
                entry, position = None, partition.seeker(k).log.source.size
                if stop - start > share and not log[k].file.compressed:
                    places = split_positions(partition.seeker(k), start, stop, share)
                    if places:
                        entry, position = places[0].before, places[0].position
                share -= stop - start
                if entry is None and share <= 0 and k < to.segment:
                    entry = partition.seeker(k).last()
                if entry is not None:
                    near = _after(partition, k, entry, position)._replace(first=end.first)
                    if k < to.segment and entry.stop < position:
                        # The offsets of its corrupt end are unknown.
                        near = near._replace(next=max(near.next, log[k + 1].base_offset or 0))
                    return near._replace(next=max(_first(begin, end), partition.before(k, near.next)))
        return end

    # -- parts between two offsets

    def parts(
        self, name: str, log: Sequence[Segment], begin: LogOffset | None, end: LogOffset
    ) -> Sequence[SegmentPart]:
        partition = OpenPartition(log, self.query.verify)
        with partition.opened:
            first = _first(begin, end)
            try:
                from_, to = _both(partition, begin, end)
                check_segments(partition, from_, to)
                planned = list(self._planned(name, partition, from_, to, begin, end))
            except Lost as lost:
                report_loss(name, f"offset {first}", lost, self.query.fail_on_data_loss)
                planned = list(partition.parts(first, end.next, NOT_TRANSACTED, part_bytes(self.query)))
            if self.query.committed:
                aborted = self._followed(name, partition, end_of(partition, None, None)).transactions().aborted
                planned = [part._replace(aborted=aborted) for part in planned]
            return planned

    def _planned(
        self,
        name: str,
        partition: OpenPartition,
        from_: ResumePosition,
        to: ResumePosition,
        begin: LogOffset | None,
        end: LogOffset,
    ) -> Iterator[SegmentPart]:
        first = _first(begin, end)
        # Without offsets in the names, offsets may go backward, so each file is read unchanged.
        named = partition.segments[0].base_offset is not None
        least = max(first if named or begin is None else FIRST, self.query.starting_offset or FIRST)
        for k, start, stop in _spans(partition, from_, to):
            segment, seeker = partition.segments[k], partition.seeker(k)
            places = [] if segment.file.compressed else split_positions(seeker, start, stop, part_bytes(self.query))
            positions = [start, *(cut.position for cut in places), stop]
            following = None if k == to.segment else _end_offset(partition, k)
            after = end.next if k == to.segment else partition.before(k, following or 0)
            offsets = [first, *(cut.before.last + 1 if cut.before else first for cut in places), after]
            entries = [_expected_at(seeker.log, position) for position in positions]
            entries[0] = entries[0] or _in_segment(from_.last, k)
            entries[-1] = _in_segment(to.last, k) if k == to.segment else _last_of(partition, k, start)
            if not segment.file.compressed:
                # The part treats this as the end of the file: these rows do not depend on later bytes.
                segment = segment._replace(file=segment.file._replace(size=stop))
            for i in range(len(positions) - 1):
                expected = tuple(entry for entry in entries[i : i + 2] if entry is not None)
                guard = Guard(name, expected, offsets[i], offsets[i + 1], self.query.fail_on_data_loss)
                stop_at = partition.before(k)
                part = SegmentPart(segment, positions[i], positions[i + 1], least, stop_at, (), guard, following)
                yield part._replace(joined=i + 2 < len(positions))
            first = after

    def report_missing(self, name: str, begin: LogOffset | None, end: LogOffset) -> None:
        offset = end.next if begin is None else begin.next
        report_loss(name, f"offset {offset}", Lost("it no longer exists"), self.query.fail_on_data_loss)

    # -- checkpoints

    def to_checkpoint(self, offset: LogOffset) -> Mapping[str, Any]:
        last = offset.last and [offset.last.file, offset.last.position, *offset.last.id]
        first = {} if offset.first is None else {"first": offset.first}
        return {"next": offset.next, "file": offset.file, "position": offset.position, "last": last} | first

    def offset_from(self, stored: Any) -> LogOffset:
        last = None
        if stored["last"] is not None:
            file, position, offset, crc, epoch = stored["last"]
            last = LastEntry(
                text(file), integer(position), EntryId(integer(offset), integer(crc), integer(epoch, -(2**31)))
            )
        first = integer(stored["first"], FIRST) if "first" in stored else None
        return LogOffset(integer(stored["next"]), text(stored["file"]), integer(stored["position"]), last, first)


def _name(segment: Segment) -> str:
    """The name of a log: its directory, or the file if its name has no offset."""
    return "".join(segment.log)


def _partition(segment: Segment) -> str:
    """The name of a partition, without the directory."""
    has_one = segment.topic is not None and segment.base_offset is not None
    return f"{segment.topic}-{segment.partition}" if has_one else _name(segment)


def _first(begin: LogOffset | None, end: LogOffset) -> int:
    """The first offset between two positions."""
    if begin is not None:
        return begin.next
    return FIRST if end.first is None else end.first


def _after(partition: OpenPartition, k: int, entry: Entry, position: int) -> LogOffset:
    """The offset after an entry of segment ``k``; all bytes before ``position`` were returned."""
    file = partition.segments[k].file.basename
    return LogOffset(entry.last + 1, file, position, LastEntry(file, entry.position, entry.id))


def _spans(partition: OpenPartition, from_: ResumePosition, to: ResumePosition) -> Iterator[tuple[int, int, int]]:
    """Each segment between two positions, with start and stop in it."""
    for k in range(from_.segment, to.segment + 1):
        start = from_.position if k == from_.segment else 0
        stop = to.position if k == to.segment else partition.seeker(k).log.source.size
        if start < stop:
            yield k, start, stop


def _expected_at(log: Log, position: int) -> Expected | None:
    """The entry framed at a position."""
    entry = header_at(log, position)
    return None if entry is None else Expected(position, entry.id)


def _in_segment(last: tuple[int, Expected] | None, k: int) -> Expected | None:
    return last[1] if last is not None and last[0] == k else None


def _last_of(partition: OpenPartition, k: int, start: int) -> Expected | None:
    """The last entry of a segment that is not the last segment; None if the entry begins before ``start``."""
    last = partition.seeker(k).last()
    return Expected(last.position, last.id) if last is not None and last.position >= start else None


def _both(partition: OpenPartition, begin: LogOffset | None, end: LogOffset) -> tuple[ResumePosition, ResumePosition]:
    """The positions of both offsets in the current segments; Lost as in `resume_position`."""
    to = resume_position(partition, end)
    if begin is not None:
        return resume_position(partition, begin), to
    return (ResumePosition(0, 0) if end.first is None else _beginning(partition, end.first)), to


def _with_current_size(segment: Segment) -> Segment:
    if segment.remote is not None:
        return segment  # segments in a bucket do not grow
    file = segment.file
    return segment._replace(file=file.sibling(file.basename)._replace(modified=file.modified))


# -- the position of a log


def resume_position(partition: OpenPartition, at: LogOffset) -> ResumePosition:
    """The position at which reading resumes after ``at``; Lost if that entry does not exist."""
    if at.last is None:
        return _at_offset(partition, at)
    found = _last_returned(partition, at.last)
    if found is None:
        return _at_offset(partition, at)
    k, entry = found
    if at.next > partition.before(k) and (end := partition.reach().next) < at.next:
        raise Lost(f"the log ends at offset {end} now")  # another segment has the later offsets
    last, log = (k, Expected(entry.position, entry.id)), partition.seeker(k).log
    if at.file != at.last.file:
        segment = segment_named(partition, at.file)
        if segment is not None and segment > k:
            return ResumePosition(segment, min(at.position, partition.seeker(segment).log.source.size), last)
        if k + 1 < len(partition.segments):
            raise Lost(f"{at.file} no longer exists")
        if entry.last + 1 != at.next:
            return _at_offset(partition, at._replace(last=None))._replace(last=last)
    # The position is after the entry and the corrupt bytes that follow it.
    position = at.position + entry.position - at.last.position if at.file == at.last.file else 0
    if position > entry.stop and log.is_valid(entry.stop):  # a broker has truncated them and appended new entries
        position = entry.stop
    return ResumePosition(k, min(log.source.size, max(position, entry.stop)), last)


def _last_returned(partition: OpenPartition, last: LastEntry) -> tuple[int, Entry] | None:
    """The segment of the last entry returned, and the entry: at its old position, else the entry with its offset."""
    k = segment_named(partition, last.file)
    if k is not None:
        entry = header_at(partition.seeker(k).log, last.position)
        if entry is not None and entry.id == last.id:
            return k, entry
    k = _holding(partition, last.id.offset)
    entry = partition.seeker(k).find_offset(last.id.offset)
    return (k, entry) if entry is not None and entry.id == last.id else None


def segment_named(partition: OpenPartition, file: str) -> int | None:
    """The segment with a file's name, or with its offset, as a compressed copy or a backup has."""
    offset = base_offset_of(file)
    for k, segment in enumerate(partition.segments):
        if segment.file.basename == file or (offset is not None and segment.base_offset == offset):
            return k
    return None


def _holding(partition: OpenPartition, offset: int) -> int:
    """The segment that has an offset according to its name."""
    bases = [segment.base_offset or 0 for segment in partition.segments]
    return max(0, bisect_right(bases, offset) - 1)


def _beginning(partition: OpenPartition, first: int) -> ResumePosition:
    """The position of the first offset; Lost if the log begins later."""
    base = partition.segments[0].base_offset
    if base is not None and base > first:
        raise Lost(f"the log begins at offset {base} now")
    k = _holding(partition, first)
    if first <= (partition.segments[k].base_offset or 0):
        return ResumePosition(k, 0)
    entry = partition.seeker(k).find_offset(first)
    return ResumePosition(k, partition.seeker(k).end() if entry is None else entry.after)


def _at_offset(partition: OpenPartition, at: LogOffset) -> ResumePosition:
    """The position of the entry with the next offset, or the log's end if that is the next offset; Lost if neither exists."""
    begins, cleaned = _beginning(partition, at.next), first_uncleaned(partition.segments[0])
    base = partition.segments[0].base_offset
    end = max(partition.reach().next, partition.segments[-1].base_offset or 0)
    if end < at.next:
        raise Lost(f"the log ends at offset {end} now")
    if at.last is not None and (base is None or base <= at.last.id.offset) and at.last.id.offset >= cleaned:
        raise Lost(f"another record batch is at offset {at.last.id.offset} now")
    k = begins.segment
    entry = partition.seeker(k).find_offset(at.next)
    offset = (_end_offset(partition, k) or 0) if entry is None else entry.first
    if offset != at.next and at.next != partition.segments[k].base_offset and at.next >= cleaned:
        raise Lost(f"no record batch begins with that offset in {partition.segments[k].file.basename} now")
    return begins


def _end_offset(partition: OpenPartition, k: int) -> int | None:
    """The offset after the last valid entry of a segment; the offset in its name if it has no valid entry."""
    last = partition.seeker(k).last()
    return partition.segments[k].base_offset if last is None else last.last + 1


def check_segments(partition: OpenPartition, from_: ResumePosition, to: ResumePosition) -> None:
    """Check that no segment is missing between two positions; Lost if one is missing."""
    for k in range(from_.segment, to.segment):
        following = partition.segments[k + 1].base_offset
        remote = partition.segments[k].remote
        if remote is not None and remote.lost:
            raise Lost(f"{partition.segments[k].file.name} cannot be read: {remote.lost}")
        end, size = _end_offset(partition, k), partition.seeker(k).log.source.size
        is_corrupt = partition.seeker(k).end() < size
        if following is None or end is None or end >= following or is_corrupt:
            continue
        if end >= first_uncleaned(partition.segments[0]):
            raise Lost(f"no segment has the offsets {end} to {following - 1}")


def first_uncleaned(segment: Segment) -> int:
    """The offset up to which a broker's log cleaner has rewritten record batches and left gaps."""
    cleaned = checkpoint_of(segment, CLEANED)
    return FIRST if cleaned is None else cleaned


# -- the end


def end_of(partition: OpenPartition, at: ResumePosition | None, begin: LogOffset | None) -> LogOffset:
    """The offset after the last valid entry. ``begin`` is the offset of ``at``, before which all is done."""
    final = len(partition.segments) - 1
    last, k = None, final + 1
    while last is None and k > (at.segment if at else 0):
        k -= 1
        seeker = partition.seeker(k)
        last = last_entry(seeker.log, at.position) if at is not None and k == at.segment else seeker.last()
    file = partition.segments[final].file
    ends = at.position if at is not None and at.segment == final else 0
    if last is not None and k == final:
        ends = last.stop
    position = _given_until(file, partition.seeker(final).log.source, ends)
    if last is not None:
        after = _after(partition, k, last, 0)
        # The name of an empty segment is the next offset.
        following = max(after.next, partition.segments[final].base_offset or 0)
        return after._replace(next=following, file=file.basename, position=position)
    if begin is not None:
        following = max(begin.next, partition.segments[final].base_offset or 0)
        return begin._replace(next=following, file=file.basename, position=position)
    return LogOffset(partition.segments[final].base_offset or 0, file.basename, position)


def _given_until(file: File, source: OpenFile, ends: int) -> int:
    """Where to stop in the last segment, whose last valid entry ends at ``ends``. Later bytes wait while it may grow."""
    if may_grow(file):
        return ends
    for position in range(ends, source.size, _SCANNED):
        if source.view(position, _SCANNED).any():
            return source.size
    return ends  # the rest is space that a broker has allocated


def before_offset(partition: OpenPartition, offset: int) -> LogOffset:
    """The offset before the entry that has ``offset``."""
    k = _holding(partition, offset)
    entry = partition.seeker(k).find_offset(offset)
    position = 0 if entry is None else entry.after
    at = k
    before = partition.seeker(k).last_before(position)
    while before is None and at > 0:
        at -= 1
        before = partition.seeker(at).last()
    file = partition.segments[k].file.basename
    if before is None:
        return LogOffset(offset, file, position)
    return _after(partition, at, before, 0)._replace(next=offset, file=file, position=position)
