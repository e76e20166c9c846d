"""Streams of events while they grow: how far each can be read in whole windows, and what lies between two such places.

A place is a file, a position in it where a window begins, and that window's number. What is not all there yet waits: a window
without its end, and what is torn at the end of a file that may grow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from sparkwire.files.databus import Begin, Query, stream_parts, streams
from sparkwire.files.event_rows import Part
from sparkwire.files.events import EventFile, Rows
from sparkwire.files.plan import FILE_COST, packed
from sparkwire.files.storage import File, Source
from sparkwire.files.windows import Open, Windows, windows_of
from sparkwire.formats.databus.layout import NO_VARIANT
from sparkwire.formats.databus.stream import stream_variant

Places = dict[str, list[Any]]
"""by stream, as JSON keeps it"""


class Place(NamedTuple):
    """Between two windows of a stream."""

    file: str
    position: int
    window: int
    previous: int
    """variant of the event before"""


class EventFollower:
    """Follows the streams of a query."""

    def __init__(self, asked: Query) -> None:
        self.asked = asked

    def initial(self) -> Places:
        return {}

    def latest(self, start: Mapping[str, Any]) -> Places:
        """How far every stream can be read now."""
        return self._places(start, dict.fromkeys(self._streams(), 2**62))

    def limited(self, start: Mapping[str, Any], end: Mapping[str, Any], max_bytes: int) -> Places:
        """The places of ``end``, or nearer ones, so that about ``max_bytes`` lie between ``start`` and them."""
        backlog = {
            name: sum(file.size - at for file, at in _files(files, _place(start, name), Place(*end[name])))
            for name, files in self._streams().items()
            if name in end
        }
        total = sum(backlog.values())
        if total <= max_bytes:
            return dict(end)
        near = self._places(start, {name: max(1, behind * max_bytes // total) for name, behind in backlog.items()})
        return {name: min(near.get(name, place), place) for name, place in end.items()}

    def _places(self, start: Mapping[str, Any], budgets: Mapping[str, int]) -> Places:
        found = dict(start)
        for name, files in self._streams().items():
            if name in budgets:
                place = last_boundary(files, _place(start, name), budgets[name])
                if place is not None:
                    found[name] = list(place)
        return found

    def tasks(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[tuple[Part, ...]]:
        """What lies between.

        Raises
        ------
        ValueError
            with failOnDataLoss where it is gone.
        """
        known = self._streams()
        parts: list[Part] = []
        for name in end:
            begin, stop = _place(start, name), Place(*end[name])
            if begin != stop:
                files = known.get(name, [])
                self._check_loss(name, files, begin, stop)
                ended = [
                    file._replace(size=stop.position) if file.basename == stop.file and not file.compressed else file
                    for file, _ in _files(files, begin, stop)
                ]
                at_first = begin is not None and bool(ended) and ended[0].basename == begin.file
                first = Begin(begin.position, begin.window, begin.previous) if begin is not None and at_first else None
                number = 0 if begin is None else begin.window
                found = stream_parts(name, ended, self.asked.max_split_bytes, first or Begin(0, number, NO_VARIANT))
                parts += [_ended(part, stop) for part in found]
        costs = [max(0, min(part.stop, part.file.size) - part.start) + FILE_COST for part in parts]
        return packed(parts, costs, self.asked.max_split_bytes)

    def _streams(self) -> dict[str, list[File]]:
        return dict(streams(self.asked))

    def _check_loss(self, name: str, files: list[File], begin: Place | None, stop: Place) -> None:
        sizes = {file.basename: 2**62 if file.compressed else file.size for file in files}
        for place in (begin, stop):
            if place is not None and self.asked.fail_on_data_loss and sizes.get(place.file, -1) < place.position:
                raise ValueError(
                    f"{name} has lost {place.file} up to byte {place.position}, which the query still has to read: "
                    "failOnDataLoss false goes on with what is there"
                )


def _ended(part: Part, stop: Place) -> Part:
    return part._replace(stop=min(part.stop, stop.position)) if part.file.basename == stop.file else part


def last_boundary(files: list[File], start: Place | None, budget: int) -> Place | None:
    """The first place between two windows at least ``budget`` bytes after ``start``, else the last; None if there is none."""
    found = None
    window = Open(start.window if start is not None else 0)
    before = 0  # bytes from the start to the file at hand
    for k, file in enumerate(files):
        if start is not None and file.basename < start.file:
            continue
        position, previous = 0, NO_VARIANT
        if start is not None and file.basename == start.file:
            position, previous = start.position, start.previous
            before = -position
        with Source(file) as source:
            events = EventFile(source)
            grows = k + 1 == len(files) and not file.compressed
            while len((rows := events.rows(position, source.size, previous, complete=grows)).kinds):
                numbered = windows_of(rows, window, None)
                for place in _boundaries(file, rows, numbered, window, previous):
                    found = place
                    if before + place.position >= budget:
                        return found
                window, position, previous = numbered.after, rows.stop, rows.previous
            before += source.size
    return found


def _boundaries(file: File, rows: Rows, numbered: Windows, window: Open, previous: int) -> Iterator[Place]:
    """The places in rows between two windows, but for the one at which they begin if ``window`` is a new one."""
    for k in np.flatnonzero(numbered.begins).tolist():
        at = int(rows.ends[k])
        if k:
            first = int(rows.ends[k - 1])
            previous = int(stream_variant(rows.data, first, at - first, NO_VARIANT))
        if k or not window.empty:
            yield Place(file.basename, rows.position + at, int(numbered.number[k]), previous)
    if numbered.after.empty:
        yield Place(file.basename, rows.stop, numbered.after.number, rows.previous)


def _files(files: list[File], start: Place | None, end: Place) -> list[tuple[File, int]]:
    """The files from ``start`` to ``end``, and where in each to begin."""
    return [
        (file, start.position if start is not None and file.basename == start.file else 0)
        for file in files
        if file.basename <= end.file and (start is None or file.basename >= start.file)
    ]


def _place(places: Mapping[str, Any], name: str) -> Place | None:
    return Place(*places[name]) if name in places else None
