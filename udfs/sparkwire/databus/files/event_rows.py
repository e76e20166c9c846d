"""The rows of `databus`: reads a part of a file, assigns events to windows, and selects columns and rows.

A window consists of the rows up to and including an end-of-period event. An SCN regress also begins a new window; the window
before it has no end. A corrupt row belongs to the window at its position. If it hides an end-of-period event, two windows become
one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import BAD_LENGTH, BAD_MAGIC, ERRORS, HEADER_CRC_MISMATCH, OK, WRONG_FORMAT
from sparkwire.core.builders import columns_of
from sparkwire.core.column import from_codes, gather, primitive
from sparkwire.core.sources.follow import Lost, report_loss
from sparkwire.core.sources.storage import File, FileCut, OpenFile
from sparkwire.core.sources.table import DROPMALFORMED, FAILFAST, PERMISSIVE, reject
from sparkwire.databus.event_fields import FIELDS, status_codes
from sparkwire.databus.files.events import DATA, END, REGRESS, SKIPPED, EventFile, EventRows
from sparkwire.databus.layout import NO_VARIANT, STATUSES
from sparkwire.databus.scan import Events
from sparkwire.kernels import Bools, Ints

# -- windows

NO_SCN = -(2**63)
"""the value for a missing SCN"""


class OpenWindow(NamedTuple):
    """The window that the next row continues, unless it begins a new one."""

    number: int = 0
    """number in the stream: 0, 1, …"""
    empty: bool = True
    """whether the window has no row yet"""
    start_scn: int = NO_SCN
    """sequence of its first data event"""
    data_events: int = 0


class WindowEnd(NamedTuple):
    """The SCNs of a window that later rows determine; `NO_SCN` if there is none."""

    start_scn: int
    scn: int


UNENDED = WindowEnd(NO_SCN, NO_SCN)


class Windows(NamedTuple):
    """The windows of some rows, with an item for each row."""

    number: Ints
    start_scn: Ints
    scn: Ints
    rank: Ints
    """number of data events of the window before the row"""
    begins: Bools
    """whether a window begins with the row"""
    after: OpenWindow


def windows_of(rows: EventRows, window: OpenWindow, ahead: Callable[[OpenWindow], WindowEnd] | None) -> Windows:
    """The windows of rows, of which the first may continue ``window``.

    ``ahead`` returns the end of the last window if that window continues after the rows. Without it, the window stays open.
    """
    kinds = rows.kinds
    begins = kinds == REGRESS
    begins[1:] |= kinds[:-1] == END
    begins[0] = window.empty or kinds[0] == REGRESS
    local = np.cumsum(begins) - int(window.empty)
    windows = int(local[-1]) + 1
    start, scn, data_before = (np.full(windows, fill, np.int64) for fill in (NO_SCN, NO_SCN, 0))
    is_data = kinds == DATA
    first_of, firsts = np.unique(local[is_data], return_index=True)
    start[first_of] = rows.sequences[is_data][firsts]
    ended = kinds == END
    scn[local[ended]] = rows.sequences[ended]
    if not window.empty and window.start_scn != NO_SCN:
        start[0] = window.start_scn
    total = np.cumsum(is_data) - is_data
    heads = np.flatnonzero(begins)
    data_before[local[heads]] = total[heads]
    if not window.empty:
        data_before[0] = -window.data_events
    rank = total - data_before[local]
    number, closed = window.number + windows - 1, bool(ended[-1])
    last = OpenWindow(number, False, int(start[-1]), int(rank[-1] + is_data[-1]))
    if not closed and ahead is not None:
        ending = ahead(last)
        start[-1] = ending.start_scn if start[-1] == NO_SCN else start[-1]
        scn[-1] = ending.scn
    after = OpenWindow(number + 1) if closed else last
    return Windows(window.number + local, start[local], scn[local], rank, begins, after)


def end_of_window(events: EventFile, position: int, previous: int, beyond: WindowEnd) -> WindowEnd:
    """The end of the window that is open at ``position``; ``beyond`` is its end in later files."""
    start = NO_SCN
    while True:
        rows = events.rows(position, events.source.size, previous)
        if not len(rows.kinds):
            return WindowEnd(beyond.start_scn if start == NO_SCN else start, beyond.scn)
        stops = np.flatnonzero((rows.kinds == END) | (rows.kinds == REGRESS))
        first = int(stops[0]) if len(stops) else len(rows.kinds)
        data = np.flatnonzero(rows.kinds[:first] == DATA)
        if start == NO_SCN and len(data):
            start = int(rows.sequences[data[0]])
        if len(stops):
            return WindowEnd(start, int(rows.sequences[first]) if rows.kinds[first] == END else NO_SCN)
        position, previous = rows.stop, rows.previous


# -- rows


class Start(NamedTuple):
    """The position at which a query starts."""

    scn: int
    skipped: int
    """number of data events to skip in the window with this SCN, -1 for the whole window"""


class EventsQuery(NamedTuple):
    """The options of a query, and its pushed-down columns and filters."""

    paths: tuple[str, ...]
    by_directory: bool
    columns: tuple[str, ...]
    mode: str
    sources: frozenset[int] | None
    start: Start | None
    max_split_bytes: int
    max_bytes_per_trigger: int | None
    fail_on_data_loss: bool


_CHECKED: Final = frozenset({"status", "error", "is_valid"})
_NO_HEADER: Final = (BAD_MAGIC, BAD_LENGTH, HEADER_CRC_MISMATCH)
_TAIL: Final = 256  # [bytes]
_END: Final = 2**62  # a position after the last event of any file
_OF_WINDOWS: Final = frozenset({"window", "window_start_scn", "window_scn"})


class FilePart(NamedTuple):
    """A part of a file, which a task reads."""

    file: File
    stream: str
    start: int
    """position of the first event [bytes]"""
    stop: int
    """position before which the events begin [bytes]"""
    previous: int
    """variant of the previous event"""
    window: OpenWindow
    beyond: WindowEnd
    """the end, in later files, of the window that is open at the end of this file"""
    scns: tuple[int, int] | None = None
    """after data loss: read only windows with SCNs greater than the first, up to the second"""
    guard: EventGuard | None = None
    """in a streaming query: checks that the file has not changed"""


class EventGuard(NamedTuple):
    """The state of a part's file at planning, to detect later changes."""

    stream: str
    resume_at: str
    scns: tuple[int, int]
    fails: bool
    is_first: bool = True
    """whether the part is the first of its file"""
    tails: tuple[tuple[int, int], ...] = ()
    """positions, each with its checksum `tail_of`"""


def tail_of(source: OpenFile, position: int) -> int:
    """A checksum of the last bytes before a position. It identifies the position in a stream."""
    first = max(0, position - _TAIL)
    return zlib.crc32(source.read(first, position - first))


def part_now(part: FilePart) -> FilePart | None:
    """The part to read now. If the file of a stream changed after planning, it is the planned windows in the current file.

    None if another part reads them. DataLossError if the file changed and data loss fails the query.
    """
    guard = part.guard
    if guard is None:
        return part
    try:
        now = part.file.as_it_is_now()
        with OpenFile(now) as source:
            if all(position <= source.size and tail_of(source, position) == tail for position, tail in guard.tails):
                return part._replace(file=now)
        lost = Lost(f"{part.file.basename} has other events than when it was listed")
    except (FileNotFoundError, FileCut) as error:
        lost = Lost(str(error))
    report_loss(guard.stream, guard.resume_at, lost, guard.fails)
    if not guard.is_first:  # the first part reads the whole file
        return None
    now = part.file.sibling(part.file.basename)
    return part._replace(file=now, stop=_END, previous=NO_VARIANT, scns=guard.scns)


def event_rows(query: EventsQuery, part: FilePart) -> Iterator[pa.RecordBatch]:
    """The rows of a part, a chunk at a time."""
    now = part_now(part)
    if now is None:
        return
    part = now
    with OpenFile(part.file) as source, OpenFile(part.file) as second:
        reader = _Reader(query, part, EventFile(second))
        events = EventFile(source)
        position, previous, window = part.start, part.previous, part.window
        stop = min(part.stop, source.size)
        while len((rows := events.rows(position, stop, previous)).kinds):
            windows = None
            if reader.needs_windows:
                windows = windows_of(rows, window, partial(reader.ahead, rows))
                window = windows.after
            yield reader.batch(rows, windows)
            position, previous = rows.stop, rows.previous


class _Reader:
    """Rows of one part as record batches."""

    def __init__(self, query: EventsQuery, part: FilePart, lookahead: EventFile) -> None:
        self.query = query
        self.part = part
        self._lookahead = lookahead
        filtered = query.start is not None or part.scns is not None
        self.needs_windows = filtered or not _OF_WINDOWS.isdisjoint(query.columns)
        self._needs_ends = filtered or not {"window_scn", "window_start_scn"}.isdisjoint(query.columns)
        self._last_end: tuple[int, WindowEnd] | None = None

    def ahead(self, rows: EventRows, window: OpenWindow) -> WindowEnd:
        """The end of the window that is open after ``rows``. It is read only once for each window."""
        if not self._needs_ends:
            return UNENDED
        if self._last_end is None or self._last_end[0] != window.number:
            self._last_end = window.number, end_of_window(self._lookahead, rows.stop, rows.previous, self.part.beyond)
        return self._last_end[1]

    def batch(self, rows: EventRows, windows: Windows | None) -> pa.RecordBatch:
        query = self.query
        checked = query.mode != PERMISSIVE or not _CHECKED.isdisjoint(query.columns)
        events = Events(rows.array())
        errors = self._of_file(rows, rows.checked() if checked else rows.errors, events)
        selected = self._selected(rows, windows, errors, events)
        if query.mode == FAILFAST:
            self._fail(rows, errors, selected)
        table = [column for column in FIELDS if column.name in query.columns and column.name not in _CHECKED]
        columns = columns_of(events, table)
        columns |= {name: make() for name, make in self._makers(rows, windows, errors).items() if name in query.columns}
        batch = pa.RecordBatch.from_pydict({name: columns[name] for name in query.columns})
        return batch if selected.all() else batch.filter(pa.array(selected))

    def _of_file(self, rows: EventRows, errors: npt.NDArray[np.int8], events: Events) -> npt.NDArray[np.int8]:
        """The errors. The first row gets WRONG_FORMAT if the file does not begin with an event and no event follows."""
        if rows.position or len(errors) == 0 or errors[0] not in _NO_HEADER:
            return errors
        size, end = self._lookahead.source.size, int(rows.ends[1])
        is_last = end == size or end == SKIPPED
        is_one_event = events.header.fields["length"][0] == size
        if not is_last or (errors[0] != BAD_MAGIC and (is_one_event or events.checked.checks[0][0] == 1)):
            return errors
        result = errors.copy()
        result[0] = WRONG_FORMAT
        return result

    def _makers(
        self, rows: EventRows, windows: Windows | None, errors: npt.NDArray[np.int8]
    ) -> dict[str, Callable[[], pa.Array]]:
        """The makers of the columns that are no fields of the event."""
        count = len(rows.kinds)
        starts = rows.ends[:-1]
        makers: dict[str, Callable[[], pa.Array]] = {
            "stream": lambda: pa.repeat(pa.scalar(self.part.stream), count),
            "file": lambda: pa.repeat(pa.scalar(self.part.file.name), count),
            "position": lambda: primitive(starts.astype(np.int64) + rows.position),
            "status": lambda: from_codes(status_codes(errors), STATUSES),
            "error": lambda: from_codes(errors, ERRORS),
            "is_valid": lambda: primitive(errors == OK),
            "event": lambda: gather(
                rows.data, starts.astype(np.int64), np.diff(rows.ends).astype(np.int64), pa.binary()
            ),
        }
        if windows is not None:
            makers |= {
                "window": lambda: primitive(windows.number),
                "window_start_scn": lambda: primitive(windows.start_scn, windows.start_scn != NO_SCN),
                "window_scn": lambda: primitive(windows.scn, windows.scn != NO_SCN),
            }
        return makers

    def _selected(
        self, rows: EventRows, windows: Windows | None, errors: npt.NDArray[np.int8], events: Events
    ) -> Bools:
        """The selected rows."""
        query, is_data = self.query, rows.kinds == DATA
        selected: Bools = np.ones(len(rows.kinds), np.bool_)
        if query.mode == DROPMALFORMED:
            selected &= errors == OK
        if query.sources is not None:
            of_sources = np.isin(events.header.fields["src_id"], list(query.sources))
            selected &= ~is_data | of_sources
        if query.start is not None and windows is not None:
            scn = np.where(windows.scn == NO_SCN, windows.start_scn, windows.scn)
            is_start = scn == query.start.scn
            selected &= (scn >= query.start.scn) | (scn == NO_SCN)
            selected &= (
                ~is_start if query.start.skipped < 0 else ~(is_start & is_data & (windows.rank < query.start.skipped))
            )
        if self.part.scns is not None and windows is not None:
            after, until = self.part.scns
            selected &= (windows.scn > after) & (windows.scn <= until)
        return selected

    def _fail(self, rows: EventRows, errors: npt.NDArray[np.int8], selected: Bools) -> None:
        wrong = np.flatnonzero((errors != OK) & selected)
        if len(wrong):
            position = rows.position + int(rows.ends[wrong[0]])
            reject(self.part.file, position, ERRORS[errors[wrong[0]]], "file of Databus events")
