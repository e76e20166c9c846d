"""`databus` as a stream: the position of a query in a stream of events is a window.

Only complete windows become rows. Incomplete data are left for the next batch: a window without its end, and bytes at the end
of a file that may grow, unless a later event proves them corrupt. A file that another one follows has ended. In a directory,
files are read in the order of their names. A file that appears later is read later, and so are events appended to an earlier
file. If a file that was read becomes shorter, or has other events there, data are lost.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from sparkwire.core.sources.follow import Follower, may_grow, text, whole
from sparkwire.core.sources.loss import Lost, report_loss
from sparkwire.core.sources.storage import GZIP, File, OpenFile
from sparkwire.databus.files.databus_table import Begin, stream_parts, streams
from sparkwire.databus.files.event_rows import EventGuard, FilePart, tail_of
from sparkwire.databus.files.events import EventFile, EventRows
from sparkwire.databus.files.events_query import EventsQuery
from sparkwire.databus.files.windows import NO_SCN, Open, Windows, windows_of
from sparkwire.databus.layout import NO_VARIANT
from sparkwire.databus.stream import stream_variant

_EVERYTHING = 2**62


class ReadFile(NamedTuple):
    """A file that has been read to its end."""

    name: int
    """checksum of its name"""
    size: int
    """of what was read [bytes]"""
    tail: int
    """checksum of the bytes before its end"""


class UnreadFile(NamedTuple):
    """A file of which something has not been read, and where that begins."""

    file: File
    begin: int


class EventOffset(NamedTuple):
    """Between two windows of a stream."""

    window: int
    """number of the one that comes next"""
    file: str
    position: int
    """position of the first byte not yet returned"""
    previous: int
    """variant of the event before"""
    tail: int = 0
    """checksum of the bytes before the position, if known"""
    scn: int = NO_SCN
    """of the last window given"""
    waits: bool = False
    """whether more of the file was there, of a window without an end"""
    read: tuple[ReadFile, ...] = ()
    """the other files that have been read to their end and are still there"""


FRONT = EventOffset(0, "", 0, NO_VARIANT, 0)


class EventFollower(Follower[Sequence[File], EventOffset]):
    """Follows the streams of a query over `databus`."""

    source = "databus"
    query: EventsQuery

    def logs(self, may_be_empty: bool) -> Mapping[str, Sequence[File]]:
        return {name.removesuffix(GZIP): files for name, files in streams(self.query, may_be_empty)}

    def size(self, part: FilePart) -> int:
        return part.file.size

    # -- how far

    def end(self, name: str, log: Sequence[File], begin: EventOffset | None) -> EventOffset:
        return self._boundary(log, begin, _EVERYTHING)

    def bytes_between(self, log: Sequence[File], begin: EventOffset | None, end: EventOffset) -> int:
        try:
            return sum(stop - start for _, start, stop in _spans(log, standing(log, begin or FRONT), end))
        except Lost:
            return 0  # it leaves nothing out: the plan of its rows reports a loss

    def nearer(self, log: Sequence[File], begin: EventOffset | None, end: EventOffset, share: int) -> EventOffset:
        near = self._boundary(log, begin, share)
        return near if near.window < end.window else end

    def _boundary(self, log: Sequence[File], begin: EventOffset | None, budget: int) -> EventOffset:
        at = begin or FRONT
        try:
            standing(log, at)
        except Lost:
            at = after_loss(log, at)
        return last_boundary(log, at, budget)

    # -- what is between

    def parts(self, name: str, log: Sequence[File], begin: EventOffset | None, end: EventOffset) -> Sequence[FilePart]:
        at, scns = begin or FRONT, None
        try:
            at_end = standing(log, at)
            standing(log, end)
            spans = list(_spans(log, at_end, end))
        except Lost as lost:
            report_loss(name, _named(at), lost, self.query.fail_on_data_loss)
            at_end, scns = after_loss(log, at), (at.scn, end.scn)
            spans = list(_spans(log, at_end, None))
        if not spans:
            return []
        file = spans[0][0]
        first = Begin(at.window, at_end.previous if plain_name(file) == at_end.file else NO_VARIANT)
        files = [UnreadFile(file if file.compressed else file._replace(size=stop), at) for file, at, stop in spans]
        # A stream that is a file has the name that the file has now.
        stream = name if self.query.by_directory else file.name
        parts = stream_parts(stream, files, self.query.max_split_bytes, first)
        if scns is not None:
            return [part._replace(scns=scns) for part in parts]
        guard = EventGuard(name, _named(at), (at.scn, end.scn), self.query.fail_on_data_loss)
        begins = {plain_name(one.file): one.begin for one in files}
        return [
            self._guarded(part, guard._replace(leads=part.start == begins[plain_name(part.file)]), at_end, end)
            for part in parts
        ]

    def _guarded(self, part: FilePart, guard: EventGuard, begin: EventOffset, end: EventOffset) -> FilePart:
        """A part up to ``end``, and what its file has before the places known."""
        known = [at for at in (begin, end) if at.file == plain_name(part.file) and at.position]
        if end.file == plain_name(part.file):
            part = part._replace(stop=min(part.stop, end.position))
        passed = [one for one in end.read if one.name == _key(part.file) and end.file != plain_name(part.file)]
        tails = tuple((at.position, at.tail) for at in known) + tuple((one.size, one.tail) for one in passed)
        return part._replace(guard=guard._replace(tails=tails))

    def gone(self, name: str, begin: EventOffset | None, end: EventOffset) -> None:
        at = begin or FRONT
        if at != end or at.waits or self.query.by_directory:
            report_loss(name, _named(at), Lost("nothing of it is there any more"), self.query.fail_on_data_loss)

    # -- checkpoints

    def kept(self, offset: EventOffset) -> Mapping[str, Any]:
        return offset._asdict() | {"scn": None if offset.scn == NO_SCN else offset.scn}

    def offset_from(self, kept: Any) -> EventOffset:
        return EventOffset(
            whole(kept["window"]), text(kept["file"]), whole(kept["position"]), whole(kept["previous"], NO_VARIANT),
            whole(kept["tail"]),
            NO_SCN if kept["scn"] is None else whole(kept["scn"], NO_SCN),
            bool(kept["waits"]), tuple(ReadFile(*map(whole, one)) for one in kept["read"]),
        )  # fmt: skip


def _named(at: EventOffset) -> str:
    return f"window {at.window}" + (f", after SCN {at.scn}" if at.scn != NO_SCN else "")


# -- the position of a stream


def plain_name(file: File) -> str:
    """Of a file, compressed or not."""
    return file.basename.removesuffix(GZIP)


def _key(file: File) -> int:
    return zlib.crc32(plain_name(file).encode())


def unread(files: Sequence[File], at: EventOffset) -> list[UnreadFile]:
    """The files not yet read to their end, the current one first."""
    rest = [file for file in files if not _is_as_read(file, at)]
    read = {one.name: one.size for one in at.read}
    unread_files = [
        UnreadFile(file, at.position if plain_name(file) == at.file else read.get(_key(file), 0)) for file in rest
    ]
    return sorted(unread_files, key=lambda one: plain_name(one.file) != at.file)


def _is_as_read(file: File, at: EventOffset) -> bool:
    """Whether the query has read a file to its end. Compressed files do not grow."""
    return any(one.name == _key(file) and (file.compressed or one.size == file.size) for one in at.read)


def _changed(files: Sequence[File], read: ReadFile) -> Lost | None:
    """Why a file that has been read is another one now."""
    for file in files:
        if _key(file) != read.name or file.compressed or file.size == read.size:
            continue
        if file.size < read.size:
            return Lost(f"{file.basename} ends at byte {file.size} now, and {read.size} bytes of it were read")
        with OpenFile(file) as source:
            if tail_of(source, read.size) != read.tail:
                return Lost(f"{file.basename} has other events before byte {read.size} now")
    return None


def standing(files: Sequence[File], at: EventOffset) -> EventOffset:
    """Where a stream continues after ``at``: there, or at the beginning of the next file.

    Lost where that is not there.
    """
    for read in at.read:
        lost = _changed(files, read)
        if lost is not None:
            raise lost
    rest = unread(files, at)
    if not at.file:
        return at
    if not rest or plain_name(rest[0].file) != at.file:
        if at.waits:
            raise Lost(f"{at.file} is gone")
        return at._replace(position=0, previous=NO_VARIANT)
    file = rest[0].file
    with OpenFile(file) as source:
        if source.size < at.position:
            raise Lost(f"{file.basename} ends at byte {source.size} now")
        if tail_of(source, at.position) != at.tail:
            raise Lost(f"{file.basename} has other events before byte {at.position} now")
    return at


def after_loss(files: Sequence[File], at: EventOffset) -> EventOffset:
    """The position before the first new window, by its SCN, in files that differ from those read."""
    read = tuple(one for one in at.read if _changed(files, one) is None)
    front = FRONT._replace(window=at.window, scn=at.scn, read=read)
    begin = front
    for boundary in _boundaries(unread(files, front), front):
        if boundary.scn > at.scn:
            break
        begin = boundary
    return _found_again(files, front, begin)._replace(window=at.window, scn=at.scn)


def _spans(files: Sequence[File], begin: EventOffset, end: EventOffset | None) -> Iterator[tuple[File, int, int]]:
    """The files between two places, to their end without ``end``, and from where to where in each."""
    if end is not None and not end.file:
        return
    for file, start in unread(files, begin):
        is_last = end is not None and plain_name(file) == end.file
        if is_last and end is not None:
            stop = end.position
        elif file.compressed:
            with OpenFile(file) as source:
                stop = source.size
        else:
            stop = file.size
        if start < stop:
            yield file, start, stop
        if is_last:
            return


# -- windows


def last_boundary(files: Sequence[File], start: EventOffset, budget: int) -> EventOffset:
    """The first place between two windows at least ``budget`` bytes after ``start``, else the last."""
    last, rest = start, unread(files, start)
    sizes = accumulate((one.file.size - one.begin for one in rest), initial=0)
    before = {plain_name(one.file): size - one.begin for one, size in zip(rest, sizes)}  # noqa: B905
    for last in _boundaries(rest, start):
        if before[last.file] + last.position >= budget:
            break
    return _found_again(files, start, last)


def _found_again(files: Sequence[File], start: EventOffset, boundary: EventOffset) -> EventOffset:
    """A place after ``start``, and what it is found again by."""
    if boundary is start:
        return start
    rest = unread(files, start)
    names = [plain_name(one.file) for one in rest]
    at = names.index(boundary.file)
    with OpenFile(rest[at].file) as source:
        passed = {one.name: one for one in start.read} | {one.name: one for one in map(_read, rest[:at])}
        there = {_key(file) for file in files} - {_key(rest[at].file)}
        read = tuple(one for name, one in sorted(passed.items()) if name in there)
        return boundary._replace(
            tail=tail_of(source, boundary.position), waits=boundary.position < source.size, read=read
        )


def _read(one: UnreadFile) -> ReadFile:
    """The state of a file that the query has read to its end."""
    with OpenFile(one.file) as source:
        return ReadFile(_key(one.file), source.size, tail_of(source, source.size))


def _boundaries(files: Sequence[UnreadFile], start: EventOffset) -> Iterator[EventOffset]:
    """The places between two windows after ``start``; of their files those before are not named."""
    window, scn = Open(start.window), start.scn
    for k, (file, position) in enumerate(files):
        previous = start.previous if plain_name(file) == start.file else NO_VARIANT
        with OpenFile(file) as source:
            events = EventFile(source)
            grows = k + 1 == len(files) and may_grow(file)
            while len((rows := events.rows(position, source.size, previous, grows)).kinds):
                numbered = windows_of(rows, window, None)
                for at, number, before, ended in _between(rows, numbered, window, previous):
                    scn = scn if ended == NO_SCN else ended
                    yield EventOffset(number, plain_name(file), at, before, scn=scn)
                window, position, previous = numbered.after, rows.stop, rows.previous


def _between(rows: EventRows, numbered: Windows, window: Open, previous: int) -> Iterator[tuple[int, int, int, int]]:
    """Between two windows, but where rows begin with a new one: position, number, the variant and the SCN before."""
    for k in np.flatnonzero(numbered.begins).tolist():
        at, ended = int(rows.ends[k]), NO_SCN
        if k:
            first = int(rows.ends[k - 1])
            previous = int(stream_variant(rows.data, first, at - first, NO_VARIANT))
            ended = int(numbered.scn[k - 1])
        if k or not window.empty:
            yield rows.position + at, int(numbered.number[k]), previous, ended
    if numbered.after.empty:
        yield rows.stop, numbered.after.number, rows.previous, int(numbered.scn[-1])
