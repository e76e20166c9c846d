"""Assign rows to windows: the number, the start SCN and the end SCN of each row's window.

A window consists of the rows up to and including an end-of-period event. An SCN regress also begins a new window; the window
before it has no end. A corrupt row belongs to the window at its position. If it hides an end-of-period event, two windows become
one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sparkwire.databus.files.events import DATA, END, REGRESS, EventFile, EventRows
from sparkwire.kernels import Bools, Ints

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
