"""`databus` as a stream: a query's position in a stream of events is a boundary between two windows.

Only complete windows become rows. Incomplete data waits for the next batch: a window without its end, and bytes at the end of a
file that may grow, unless a later event proves them corrupt. In a directory, a batch reads the files in the order of their names,
each from one position to another: an offset has the position in each file. Later batches read files that
appear later under any name, and events appended to earlier files. If a file that a query has read becomes shorter, or its events
change, this is data loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from sparkwire.core.sources.follow import Follower, Lost, integer, may_grow, report_loss, text
from sparkwire.core.sources.storage import GZIP, File, OpenFile
from sparkwire.databus.files.databus_table import UnreadFile, stream_parts, streams
from sparkwire.databus.files.event_rows import (
    NO_SCN,
    EventGuard,
    EventsQuery,
    FilePart,
    OpenWindow,
    Windows,
    tail_of,
    windows_of,
)
from sparkwire.databus.files.events import EventFile, EventRows
from sparkwire.databus.layout import NO_VARIANT
from sparkwire.databus.stream import stream_variant

_EVERYTHING = 2**62


class FilePosition(NamedTuple):
    """How far a query has read a file."""

    position: int
    """position of the first byte not yet returned"""
    tail: int
    """checksum of the bytes before it"""
    previous: int = NO_VARIANT
    """variant of the previous event, or `NO_VARIANT`"""
    waits: bool = False
    """whether the file had more bytes"""
    compressed: bool = False
    """whether the file was a compressed one, which does not grow"""


class EventOffset(NamedTuple):
    """A position between two windows of a stream."""

    window: int
    """number of the next window"""
    scn: int = NO_SCN
    """SCN of the last window returned"""
    files: Mapping[str, FilePosition] = {}
    """the position in each file that exists and has begun, by its name without the suffix of compression"""

    @property
    def waits(self) -> bool:
        """Whether a file had more bytes than the query has returned."""
        return any(one.waits for one in self.files.values())


class FileSpan(NamedTuple):
    """A file, and the part of it that a batch reads."""

    unread: UnreadFile
    stop: int


class Boundary(NamedTuple):
    """The place of a boundary between two windows."""

    window: int
    """number of the window after it"""
    scn: int
    """SCN of the last window before it that has one"""
    file: int
    """which of the unread files it is in"""
    position: int
    previous: int
    """variant of the event before it"""


FRONT = EventOffset(0)


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
        at = begin or FRONT
        try:
            check_position(log, at)
        except Lost:
            at = after_loss(log, at)
        return last_boundary(log, at, _EVERYTHING)

    def bytes_between(self, log: Sequence[File], begin: EventOffset | None, end: EventOffset) -> int:
        try:
            return sum(span.stop - span.unread.begin for span in _spans(log, begin or FRONT, end))
        except Lost:
            return 0  # `parts` reports the loss

    def nearer(self, log: Sequence[File], begin: EventOffset | None, end: EventOffset, share: int) -> EventOffset:
        at = begin or FRONT
        near = _nearer(log, at, [_limited(span) for span in _spans(log, at, end)], share)
        if near.window >= end.window:
            return end
        # Where it has read as much of a file as ``end`` has, it knows the same about the file.
        common = {name: at_end for name, at_end in end.files.items() if name in near.files}
        same = {name: at_end for name, at_end in common.items() if at_end.position == near.files[name].position}
        return near._replace(files={**near.files, **same})

    # -- parts between two offsets

    def parts(self, name: str, log: Sequence[File], begin: EventOffset | None, end: EventOffset) -> Sequence[FilePart]:
        at, scns = begin or FRONT, None
        resume_at = f"window {at.window}" + (f", after SCN {at.scn}" if at.scn != NO_SCN else "")
        try:
            check_position(log, at)
            check_position(log, end)
            spans = _spans(log, at, end)
        except Lost as lost:
            report_loss(name, resume_at, lost, self.query.fail_on_data_loss)
            scns = (at.scn, end.scn)
            spans = _spans(log, after_loss(log, at), None)
        if not spans:
            return []
        # If a stream is a file, its name is the file's current name.
        stream = name if self.query.by_directory else spans[0].unread.file.name
        parts = stream_parts(stream, [_limited(span) for span in spans], self.query.max_split_bytes, at.window)
        if scns is not None:
            return [part._replace(scns=scns) for part in parts]
        guard = EventGuard(name, resume_at, (at.scn, end.scn), self.query.fail_on_data_loss)
        begins = {plain_name(span.unread.file): span.unread.begin for span in spans}
        return [
            _guarded(part, guard._replace(is_first=part.start == begins[plain_name(part.file)]), at, end)
            for part in parts
        ]

    def report_missing(self, name: str, begin: EventOffset | None, end: EventOffset) -> None:
        at = begin or FRONT
        if at != end or at.waits or self.query.by_directory:
            resume_at = f"window {at.window}" + (f", after SCN {at.scn}" if at.scn != NO_SCN else "")
            report_loss(name, resume_at, Lost("it no longer exists"), self.query.fail_on_data_loss)

    # -- checkpoints

    def to_checkpoint(self, offset: EventOffset) -> Mapping[str, Any]:
        scn = None if offset.scn == NO_SCN else offset.scn
        return {"window": offset.window, "scn": scn, "files": {name: list(at) for name, at in offset.files.items()}}

    def offset_from(self, stored: Any) -> EventOffset:
        scn = NO_SCN if stored["scn"] is None else integer(stored["scn"], NO_SCN)
        return EventOffset(
            integer(stored["window"]), scn, {text(name): _position_from(*at) for name, at in stored["files"].items()}
        )


def _position_from(position: Any, tail: Any, previous: Any, waits: Any, compressed: Any) -> FilePosition:
    return FilePosition(
        integer(position), integer(tail), integer(previous, NO_VARIANT), waits is True, compressed is True
    )


def _limited(span: FileSpan) -> UnreadFile:
    """The file of a span as if it ended there. The size of a compressed file stays."""
    file = span.unread.file
    return span.unread if file.compressed else span.unread._replace(file=file._replace(size=span.stop))


def _guarded(part: FilePart, guard: EventGuard, begin: EventOffset, end: EventOffset) -> FilePart:
    """A part, limited to ``end``, with the checksums of its file at the positions of both offsets."""
    name = plain_name(part.file)
    positions = [offset.files[name] for offset in (begin, end) if name in offset.files]
    tails = tuple((at.position, at.tail) for at in positions if at.position)
    return part._replace(stop=min(part.stop, end.files[name].position), guard=guard._replace(tails=tails))


# -- the position of a stream


def plain_name(file: File) -> str:
    """The name of a file without the suffix of compression."""
    return file.basename.removesuffix(GZIP)


def unread(files: Sequence[File], at: EventOffset) -> list[UnreadFile]:
    """The files that may have bytes after a position."""
    begun = [(file, at.files.get(plain_name(file))) for file in files]
    return [
        UnreadFile(file, 0, NO_VARIANT) if read is None else UnreadFile(file, read.position, read.previous)
        for file, read in begun
        if read is None or not _is_as_read(file, read)
    ]


def _is_as_read(file: File, at: FilePosition) -> bool:
    """Whether the query has read all bytes of the file."""
    return not at.waits and (at.compressed if file.compressed else at.position == file.size)


def check_position(files: Sequence[File], at: EventOffset) -> None:
    """Check that the stream still has the events before a position, and files with unread bytes; else Lost.

    It does not open a file that is as long as the query has read it, except for the last one.
    """
    existing = {plain_name(file): file for file in files}
    last = max(at.files, default="")
    for name, position in at.files.items():
        if name not in existing:
            if position.waits:
                raise Lost(f"{name} no longer exists")
        elif name == last or not _is_as_read(existing[name], position):
            lost = _changed(existing[name], position)
            if lost is not None:
                raise lost


def _changed(file: File, at: FilePosition) -> Lost | None:
    """The loss if the bytes of a file before a position have changed, else None."""
    with OpenFile(file) as source:
        if source.size < at.position:
            return Lost(
                f"{file.basename} ends at byte {source.size} now, and the query has read {at.position} bytes of it"
            )
        if tail_of(source, at.position) != at.tail:
            return Lost(f"{file.basename} has other events before byte {at.position} now")
    return None


def after_loss(files: Sequence[File], at: EventOffset) -> EventOffset:
    """The position before the first new window, by its SCN, in files that differ from those read."""
    existing = {plain_name(file): file for file in files}
    same = {name: one for name, one in at.files.items() if name in existing and _changed(existing[name], one) is None}
    front, begin = EventOffset(at.window, at.scn, same), None
    rest = unread(files, front)
    for boundary in _boundaries(rest, front):
        if boundary.scn > at.scn:
            break
        begin = boundary
    return _at(files, front, rest, begin)._replace(window=at.window, scn=at.scn)


def _spans(files: Sequence[File], begin: EventOffset, end: EventOffset | None) -> list[FileSpan]:
    """What is between two offsets. Without ``end``, it reads to the end of the files.

    Lost if a file that has some of it no longer exists.
    """
    if end is not None:
        existing = {plain_name(file) for file in files}
        for name, position in end.files.items():
            before = begin.files.get(name)
            if name not in existing and (0 if before is None else before.position) < position.position:
                raise Lost(f"{name} no longer exists")
    spans = []
    for rest in unread(files, begin):
        if end is not None:
            at_end = end.files.get(plain_name(rest.file))
            stop = 0 if at_end is None else at_end.position
        elif rest.file.compressed:
            with OpenFile(rest.file) as source:
                stop = source.size
        else:
            stop = rest.file.size
        if rest.begin < stop:
            spans.append(FileSpan(rest, stop))
    return spans


# -- windows


def last_boundary(files: Sequence[File], start: EventOffset, budget: int) -> EventOffset:
    """The first boundary between two windows at least ``budget`` bytes after ``start``, else the last boundary."""
    rest = unread(files, start)
    return _at(files, start, rest, _reached(rest, _boundaries(rest, start), budget))


def _nearer(files: Sequence[File], start: EventOffset, rest: Sequence[UnreadFile], budget: int) -> EventOffset:
    """The same within files that end where the query is to end."""
    return _at(files, start, rest, _reached(rest, _boundaries(rest, start, is_whole=True), budget))


def _reached(rest: Sequence[UnreadFile], boundaries: Iterator[Boundary], budget: int) -> Boundary | None:
    before = list(accumulate((part.file.size - part.begin for part in rest), initial=0))
    last = None
    for last in boundaries:
        if before[last.file] + last.position - rest[last.file].begin >= budget:
            break
    return last


def _at(
    files: Sequence[File], start: EventOffset, rest: Sequence[UnreadFile], boundary: Boundary | None
) -> EventOffset:
    """The offset of a boundary after ``start``, with the checksums by which a later batch recognizes it."""
    if boundary is None:
        return start
    positions = dict(start.files)
    for number, part in enumerate(rest[: boundary.file + 1]):
        with OpenFile(part.file) as source:
            is_last = number == boundary.file
            position = boundary.position if is_last else source.size
            previous = boundary.previous if is_last else NO_VARIANT
            tail, waits = tail_of(source, position), position < source.size
        positions[plain_name(part.file)] = FilePosition(position, tail, previous, waits, part.file.compressed)
    existing = {plain_name(file) for file in files}
    positions = {name: positions[name] for name in sorted(positions) if name in existing}
    return EventOffset(boundary.window, boundary.scn, positions)


def _boundaries(files: Sequence[UnreadFile], start: EventOffset, is_whole: bool = False) -> Iterator[Boundary]:
    """The boundaries between windows after ``start``. ``is_whole``: whether no file may grow."""
    window, scn = OpenWindow(start.window), start.scn
    for k, (file, position, previous) in enumerate(files):
        grows = not is_whole and may_grow(file, k + 1 == len(files))
        with OpenFile(file) as source:
            events = EventFile(source)
            while len((rows := events.rows(position, source.size, previous, grows)).kinds):
                numbered = windows_of(rows, window, None)
                for at, number, before, ended in _between(rows, numbered, window, previous):
                    scn = scn if ended == NO_SCN else ended
                    yield Boundary(number, scn, k, at, before)
                window, position, previous = numbered.after, rows.stop, rows.previous
            if position < source.size:
                return  # the file ends within an event: what follows the event comes after it


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
