"""Segments while they grow: how far each log can be read, and what lies between two such places.

A place is a file, a position in it and the offset that comes next; it never changes what is before it. What is not all there yet
waits: bytes of the last segment after its last intact entry, torn, half written or allocated in advance. A segment that another
one follows is complete, and read to its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from sparkwire.files.kafka_log import Query, find, part_bytes
from sparkwire.files.log import Log
from sparkwire.files.naming import Segment
from sparkwire.files.plan import END, FIRST, Bounds, Part, Partition, tasks
from sparkwire.files.seek import PAGE, Seeker, entry_numbers
from sparkwire.files.splits import cuts
from sparkwire.files.storage import Cut, Source
from sparkwire.files.transactions import Aborted, Tracker
from sparkwire.formats.kafka.framing import crc_ok, entry_end
from sparkwire.formats.kafka.layout import BATCH_SIZE

_BLANK = 4096  # that many zeros are what a broker has allocated and not written [bytes]

Places = dict[str, list[Any]]
"""by log: a file's name, a position in it, the offset that comes next; as JSON keeps it"""


class Place(NamedTuple):
    """Up to where a log has been read."""

    file: str
    position: int
    offset: int
    """that comes next, -1 where it is not known"""


class Follower:
    """Follows the logs of a query from one call to the next."""

    def __init__(self, asked: Query) -> None:
        self.asked = asked
        if asked.ending_offset is not None or asked.ending_timestamp is not None:
            raise ValueError("kafka_log takes endingOffset and endingTimestamp in batch queries: a stream has no end")
        self._trackers: dict[str, tuple[Tracker, Place]] = {}

    def initial(self) -> Places:
        """Where to begin: only logs of which not all is asked for have a place."""
        bounds = Bounds(self.asked.starting_offset, None, self.asked.starting_timestamp, None)
        if bounds == Bounds():
            return {}
        found: Places = {}
        for name, segments in self._logs().items():
            partition = Partition(segments)
            with partition.opened:
                first, _ = partition.range(bounds)
                if first is None:
                    found[name] = list(self._end(segments, None))
                    continue
                begin = next(iter(partition.parts(first, END, False, END)), None)
                if begin is not None:
                    found[name] = list(Place(begin.segment.file.basename, begin.start, first))
        return found

    def latest(self, start: Mapping[str, Any]) -> Places:
        """How far every log can be read now."""
        logs = self._logs()
        ends = {name: list(self._readable(name, some, _place(start, name))) for name, some in logs.items()}
        return dict(start) | ends

    def limited(self, start: Mapping[str, Any], end: Mapping[str, Any], max_bytes: int) -> Places:
        """The places of ``end``, or nearer ones, so that about ``max_bytes`` lie between ``start`` and them."""
        logs = {name: some for name, some in self._logs().items() if name in end}
        backlog = {name: _bytes_between(some, _place(start, name), Place(*end[name])) for name, some in logs.items()}
        total = sum(backlog.values())
        near = dict(end)
        if total > max_bytes:
            for name, behind in backlog.items():
                share = max(1, behind * max_bytes // total)
                near[name] = list(_advanced(logs[name], _place(start, name), Place(*end[name]), share))
        return near

    def tasks(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[tuple[Part, ...]]:
        """What lies between.

        Raises
        ------
        ValueError
            with failOnDataLoss where it is gone.
        """
        logs = self._logs()
        parts: list[Part] = []
        for name in end:
            begin, stop = _place(start, name), Place(*end[name])
            if begin != stop:
                parts += self._parts(name, logs.get(name, []), begin, stop)
        return tasks(parts, self.asked.max_split_bytes)

    def _logs(self) -> dict[str, list[Segment]]:
        found = find(self.asked.paths)
        return {name: list(some) for name, some in groupby(found, key=_name)}

    # -- how far

    def _readable(self, name: str, segments: Sequence[Segment], start: Place | None) -> Place:
        end = self._end(segments, start)
        if self.asked.committed:
            first_open = self._followed(name, segments, end).found().first_open
            if first_open is not None:
                end = min(end, _place_of_offset(segments, first_open), key=lambda place: (place.file, place.position))
        return end if start is None else max(start, end, key=lambda place: (place.file, place.position))

    def _end(self, segments: Sequence[Segment], start: Place | None) -> Place:
        """After the last intact entry of the last segment."""
        last = segments[-1]
        try:
            return _end_of(last, start)
        except Cut:  # a broker that rolls a segment takes back what it had allocated in advance
            of_its_size_now = last.file.beside(last.file.basename)
            return _end_of(last._replace(file=of_its_size_now), start)

    def _followed(self, name: str, segments: Sequence[Segment], end: Place) -> Tracker:
        """The transactions of a log up to ``end``, from where they were followed to the last time."""
        tracker, done = self._trackers.get(name, (Tracker(), Place("", 0, -1)))
        for segment in segments:
            file = segment.file
            if done.file <= file.basename <= end.file:
                start = done.position if file.basename == done.file else 0
                with Source(file) as source:
                    stop = end.position if file.basename == end.file else source.size
                    reached = tracker.follow(Log(source), start, min(stop, source.size))
                    done = Place(file.basename, max(start, reached), -1)
        self._trackers[name] = tracker, done
        return tracker

    # -- what lies between

    def _parts(self, name: str, segments: Sequence[Segment], begin: Place | None, stop: Place) -> Iterator[Part]:
        by_file = {segment.file.basename: segment for segment in segments}
        self._check_loss(name, segments, by_file, begin, stop)
        aborted: tuple[Aborted, ...] = ()
        if self.asked.committed:
            aborted = self._followed(name, segments, self._end(segments, None)).found().aborted
        for file, segment in by_file.items():
            if file > stop.file or (begin is not None and file < begin.file):
                continue
            at_first = begin is not None and file == begin.file
            start = begin.position if begin is not None and at_first else 0
            with Source(segment.file) as source:
                last = min(stop.position, source.size) if file == stop.file else source.size
                seeker = Seeker(Log(source, chunk=PAGE), segment)
                # As if the file ended there: what has been added since is no part of these rows.
                ended = segment._replace(file=segment.file._replace(size=last))
                first = begin.offset if begin is not None and at_first and begin.offset >= 0 else FIRST
                first = max(first, FIRST if self.asked.starting_offset is None else self.asked.starting_offset)
                size = part_bytes(self.asked)
                places = [
                    start,
                    *(() if segment.file.compressed else cuts(seeker.log, start, last, size, seeker.offsets)),
                ]
                for at, following in zip(places, [*places[1:], last], strict=True):
                    if at < following:
                        yield Part(ended, at, following, first, END, aborted)

    def _check_loss(
        self, name: str, segments: Sequence[Segment], files: Mapping[str, Segment], begin: Place | None, stop: Place
    ) -> None:
        if not self.asked.fail_on_data_loss:
            return
        gone = None
        if begin is not None and begin.file not in files:
            later = [s.base_offset for s in segments if s.base_offset is not None and s.file.basename > begin.file]
            if not later or begin.offset < 0 or later[0] > begin.offset:
                gone = begin
        elif (
            begin is not None and files[begin.file].file.size < begin.position and not files[begin.file].file.compressed
        ):
            gone = begin
        elif stop.file not in files:
            gone = stop
        if gone is not None:
            raise ValueError(
                f"{name} has lost {gone.file} from byte {gone.position} on, which the query still has to read: "
                "failOnDataLoss false goes on with what is there"
            )


def _end_of(segment: Segment, start: Place | None) -> Place:
    file = segment.file
    floor = start.position if start is not None and start.file == file.basename else 0
    offset = start.offset if start is not None and floor else -1 if segment.base_offset is None else segment.base_offset
    with Source(file) as source:
        if file.compressed:
            return Place(file.basename, source.size, -1)
        position, following = intact_end(Seeker(Log(source, chunk=PAGE), segment), min(floor, source.size))
        return Place(file.basename, position, offset if following is None else following)


def intact_end(seeker: Seeker, floor: int) -> tuple[int, int | None]:
    """Where the last intact entry ends, from ``floor`` on, and the offset after it; None where there is no entry."""
    log, position, last = seeker.log, floor, None
    size = log.source.size
    for known in seeker.offsets.values[::-1].tolist():
        if known <= floor:
            break
        if log.is_intact(known):
            position = known
            break
    while position < size:
        run = log.framed(position, size)
        if len(run.data):
            at = 0
            while (after := int(entry_end(run.data, at))) < len(run.data):
                at = after
            last = position + at, position + after, int(entry_numbers(run.data, at)[1]), bool(crc_ok(run.data, at))
            position += after
        elif not log.source.view(position, _BLANK).any():
            break
        else:
            following = log.damage(position).stop
            if following >= size:
                break
            position = following
    if last is None:
        return floor, None
    begins, ends, offset, intact = last
    if intact:
        return ends, offset + 1
    return (begins, None) if begins <= floor else (begins, int(_first_offset(log, begins)))


def _first_offset(log: Log, position: int) -> int:
    return int(entry_numbers(log.source.view(position, BATCH_SIZE), 0)[0])


def _name(segment: Segment) -> str:
    """Of a log: its directory, or the file where its name tells no offset."""
    return segment.file.root + segment.file.folder if segment.base_offset is not None else segment.file.name


def _place(places: Mapping[str, Any], name: str) -> Place | None:
    return Place(*places[name]) if name in places else None


def _between(segments: Sequence[Segment], start: Place | None, end: Place) -> Iterator[tuple[Segment, int, int]]:
    """The files from ``start`` to ``end``, and their positions."""
    for segment in segments:
        file = segment.file.basename
        if file <= end.file and (start is None or file >= start.file):
            first = start.position if start is not None and file == start.file else 0
            yield segment, first, end.position if file == end.file else segment.file.size


def _bytes_between(segments: Sequence[Segment], start: Place | None, end: Place) -> int:
    return sum(max(0, last - first) for _, first, last in _between(segments, start, end))


def _advanced(segments: Sequence[Segment], start: Place | None, end: Place, share: int) -> Place:
    """The first place at least ``share`` bytes after ``start``, ``end`` if there is none."""
    some = list(_between(segments, start, end))
    for k, (segment, first, last) in enumerate(some):
        if last - first >= share and not segment.file.compressed:
            with Source(segment.file) as source:
                seeker = Seeker(Log(source, chunk=PAGE), segment)
                found = cuts(seeker.log, first, last, share, seeker.offsets)
                if found:
                    return Place(segment.file.basename, found[0], _first_offset(seeker.log, found[0]))
        share -= max(0, last - first)
        if share <= 0 and k + 1 < len(some):
            following = some[k + 1][0]
            return Place(following.file.basename, 0, -1 if following.base_offset is None else following.base_offset)
    return end


def _place_of_offset(segments: Sequence[Segment], offset: int) -> Place:
    """Where the entry with an offset begins."""
    for segment in reversed(segments):
        if segment.base_offset is None or segment.base_offset <= offset:
            with Source(segment.file) as source:
                entry = Seeker(Log(source, chunk=PAGE), segment).find_offset(offset)
                if entry is not None:
                    return Place(segment.file.basename, entry.position, offset)
    return Place(segments[0].file.basename, 0, offset)
