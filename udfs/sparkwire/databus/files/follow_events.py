"""`databus` as a stream: a query's position in a stream of events is a boundary between two windows.

Only complete windows become rows. Incomplete data is left for the next batch: a window without its end, and bytes at the end of
a file that may grow, unless a later event proves them corrupt. A file does not grow once another file follows it. In a directory,
files are read in the order of their names. Later batches read files that appear later, and events appended to earlier files. If a
file that was read becomes shorter, or its events change, data is lost.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from sparkwire.core.sources.follow import Follower, integer, may_grow, text
from sparkwire.core.sources.loss import Lost, report_loss
from sparkwire.core.sources.storage import GZIP, File, OpenFile
from sparkwire.databus.files.databus_table import Begin, stream_parts, streams
from sparkwire.databus.files.event_rows import EventGuard, FilePart, tail_of
from sparkwire.databus.files.events import EventFile, EventRows
from sparkwire.databus.files.events_query import EventsQuery
from sparkwire.databus.files.windows import NO_SCN, OpenWindow, Windows, windows_of
from sparkwire.databus.layout import NO_VARIANT
from sparkwire.databus.stream import stream_variant

_EVERYTHING = 2**62


class ReadFile(NamedTuple):
    """A file that the query has read to its end."""

    name: int
    """checksum of its name"""
    size: int
    """number of bytes read"""
    tail: int
    """checksum of the bytes before its end"""


class UnreadFile(NamedTuple):
    """A file with unread bytes, and the position at which these begin."""

    file: File
    begin: int


class EventOffset(NamedTuple):
    """A position between two windows of a stream."""

    window: int
    """number of the next window"""
    file: str
    position: int
    """position of the first byte not yet returned"""
    previous: int
    """variant of the previous event"""
    tail: int = 0
    """checksum of the bytes before the position, if known"""
    scn: int = NO_SCN
    """SCN of the last window returned"""
    waits: bool = False
    """whether the file had more bytes, of a window without an end"""
    read: tuple[ReadFile, ...] = ()
    """the other files that were read to their end and still exist"""


FRONT = EventOffset(0, "", 0, NO_VARIANT, 0)


class EventFollower(Follower[Sequence[File], EventOffset]):
    """Follows the streams of a query over `databus`."""

    source = "databus"
    query: EventsQuery

    def logs(self, may_be_empty: bool) -> Mapping[str, Sequence[File]]:
        return {name.removesuffix(GZIP): files for name, files in streams(self.query, may_be_empty)}

    def size(self, part: FilePart) -> int:
        return part.file.size

    # -- offsets

    def end(self, name: str, log: Sequence[File], begin: EventOffset | None) -> EventOffset:
        return self._boundary(log, begin, _EVERYTHING)

    def bytes_between(self, log: Sequence[File], begin: EventOffset | None, end: EventOffset) -> int:
        try:
            return sum(stop - start for _, start, stop in _spans(log, resume_position(log, begin or FRONT), end))
        except Lost:
            return 0  # `parts` reports the loss

    def nearer(self, log: Sequence[File], begin: EventOffset | None, end: EventOffset, share: int) -> EventOffset:
        near = self._boundary(log, begin, share)
        return near if near.window < end.window else end

    def _boundary(self, log: Sequence[File], begin: EventOffset | None, budget: int) -> EventOffset:
        at = begin or FRONT
        try:
            resume_position(log, at)
        except Lost:
            at = after_loss(log, at)
        return last_boundary(log, at, budget)

    # -- parts between two offsets

    def parts(self, name: str, log: Sequence[File], begin: EventOffset | None, end: EventOffset) -> Sequence[FilePart]:
        at, scns = begin or FRONT, None
        try:
            at_end = resume_position(log, at)
            resume_position(log, end)
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
        # If a stream is a file, its name is the file's current name.
        stream = name if self.query.by_directory else file.name
        parts = stream_parts(stream, files, self.query.max_split_bytes, first)
        if scns is not None:
            return [part._replace(scns=scns) for part in parts]
        guard = EventGuard(name, _named(at), (at.scn, end.scn), self.query.fail_on_data_loss)
        begins = {plain_name(one.file): one.begin for one in files}
        return [
            self._guarded(part, guard._replace(is_first=part.start == begins[plain_name(part.file)]), at_end, end)
            for part in parts
        ]

    def _guarded(self, part: FilePart, guard: EventGuard, begin: EventOffset, end: EventOffset) -> FilePart:
        """A part, limited to ``end``, with the checksums of its file at the known positions."""
        known = [at for at in (begin, end) if at.file == plain_name(part.file) and at.position]
        if end.file == plain_name(part.file):
            part = part._replace(stop=min(part.stop, end.position))
        passed = [one for one in end.read if one.name == _key(part.file) and end.file != plain_name(part.file)]
        tails = tuple((at.position, at.tail) for at in known) + tuple((one.size, one.tail) for one in passed)
        return part._replace(guard=guard._replace(tails=tails))

    def report_missing(self, name: str, begin: EventOffset | None, end: EventOffset) -> None:
        at = begin or FRONT
        if at != end or at.waits or self.query.by_directory:
            report_loss(name, _named(at), Lost("it no longer exists"), self.query.fail_on_data_loss)

    # -- checkpoints

    def kept(self, offset: EventOffset) -> Mapping[str, Any]:
        return offset._asdict() | {"scn": None if offset.scn == NO_SCN else offset.scn}

    def offset_from(self, kept: Any) -> EventOffset:
        return EventOffset(
            integer(kept["window"]), text(kept["file"]), integer(kept["position"]), integer(kept["previous"], NO_VARIANT),
            integer(kept["tail"]),
            NO_SCN if kept["scn"] is None else integer(kept["scn"], NO_SCN),
            bool(kept["waits"]), tuple(ReadFile(*map(integer, one)) for one in kept["read"]),
        )  # fmt: skip


def _named(at: EventOffset) -> str:
    return f"window {at.window}" + (f", after SCN {at.scn}" if at.scn != NO_SCN else "")


# -- the position of a stream


def plain_name(file: File) -> str:
    """The name of a file without the suffix of compression."""
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
    """Whether the query has read the file to its end. Compressed files do not grow."""
    return any(one.name == _key(file) and (file.compressed or one.size == file.size) for one in at.read)


def _changed(files: Sequence[File], read: ReadFile) -> Lost | None:
    """The loss if a file that was read has changed since, else None."""
    for file in files:
        if _key(file) != read.name or file.compressed or file.size == read.size:
            continue
        if file.size < read.size:
            return Lost(f"{file.basename} ends at byte {file.size} now, and {read.size} bytes of it were read")
        with OpenFile(file) as source:
            if tail_of(source, read.size) != read.tail:
                return Lost(f"{file.basename} has other events before byte {read.size} now")
    return None


def resume_position(files: Sequence[File], at: EventOffset) -> EventOffset:
    """The position at which a stream resumes after ``at``: there, or at the beginning of the next file.

    Lost if that position no longer exists.
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
            raise Lost(f"{at.file} no longer exists")
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
    return _with_tails(files, front, begin)._replace(window=at.window, scn=at.scn)


def _spans(files: Sequence[File], begin: EventOffset, end: EventOffset | None) -> Iterator[tuple[File, int, int]]:
    """Each file between two offsets, with start and stop in it. Without ``end``, it reads to the end of the files."""
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
    """The first boundary between two windows at least ``budget`` bytes after ``start``, else the last boundary."""
    last, rest = start, unread(files, start)
    sizes = accumulate((one.file.size - one.begin for one in rest), initial=0)
    before = {plain_name(one.file): size - one.begin for one, size in zip(rest, sizes)}  # noqa: B905
    for last in _boundaries(rest, start):
        if before[last.file] + last.position >= budget:
            break
    return _with_tails(files, start, last)


def _with_tails(files: Sequence[File], start: EventOffset, boundary: EventOffset) -> EventOffset:
    """A boundary after ``start``, with the checksums by which a later batch recognizes it."""
    if boundary is start:
        return start
    rest = unread(files, start)
    names = [plain_name(one.file) for one in rest]
    at = names.index(boundary.file)
    with OpenFile(rest[at].file) as source:
        passed = {one.name: one for one in start.read} | {one.name: one for one in map(_read, rest[:at])}
        existing = {_key(file) for file in files} - {_key(rest[at].file)}
        read = tuple(one for name, one in sorted(passed.items()) if name in existing)
        return boundary._replace(
            tail=tail_of(source, boundary.position), waits=boundary.position < source.size, read=read
        )


def _read(one: UnreadFile) -> ReadFile:
    """The state of a file that the query has read to its end."""
    with OpenFile(one.file) as source:
        return ReadFile(_key(one.file), source.size, tail_of(source, source.size))


def _boundaries(files: Sequence[UnreadFile], start: EventOffset) -> Iterator[EventOffset]:
    """The boundaries between windows after ``start``, without checksums and without `EventOffset.read`."""
    window, scn = OpenWindow(start.window), start.scn
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


def _between(
    rows: EventRows, numbered: Windows, window: OpenWindow, previous: int
) -> Iterator[tuple[int, int, int, int]]:
    """Boundaries within ``rows``: position, number of the next window, variant and SCN before it."""
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
