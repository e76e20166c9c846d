"""Windows of events: which window a row is in, at what scn it began, at what it ended.

A window is the rows up to and with an end-of-period event. A SCN regress begins a new one, too; the one that it cuts has no
end. Corruption is in the window that it is in: where it hides an end-of-period event, two windows are one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sparkwire.databus.files.events import DATA, END, REGRESS, EventFile, EventRows
from sparkwire.kernels import Bools, Ints

NO_SCN = -(2**63)
"""if none exists"""


class Open(NamedTuple):
    """The window that the next row may be in."""

    number: int = 0
    """0, 1, … in its stream"""
    empty: bool = True
    """whether it has no row yet"""
    start_scn: int = NO_SCN
    """sequence of its first data event"""
    data_events: int = 0


class Ending(NamedTuple):
    """What is ahead for a window."""

    start_scn: int
    scn: int


UNENDED = Ending(NO_SCN, NO_SCN)


class Windows(NamedTuple):
    """The windows of some rows, an item for each row."""

    number: Ints
    start_scn: Ints
    scn: Ints
    rank: Ints
    """how many data events of the window are before the row"""
    begins: Bools
    """whether a window begins with the row"""
    after: Open


def windows_of(rows: EventRows, window: Open, ahead: Callable[[Open], Ending] | None) -> Windows:
    """Number rows whose first may continue ``window``.

    ``ahead`` returns the end of the last window if it continues after the rows; without it, the window stays open.
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
    last = Open(number, False, int(start[-1]), int(rank[-1] + is_data[-1]))
    if not closed and ahead is not None:
        ending = ahead(last)
        start[-1] = ending.start_scn if start[-1] == NO_SCN else start[-1]
        scn[-1] = ending.scn
    after = Open(number + 1) if closed else last
    return Windows(window.number + local, start[local], scn[local], rank, begins, after)


def ending(events: EventFile, position: int, previous: int, beyond: Ending) -> Ending:
    """What becomes of the window that is open at ``position``; ``beyond`` is what the end of the file leaves to later files."""
    start = NO_SCN
    while True:
        rows = events.rows(position, events.source.size, previous)
        if not len(rows.kinds):
            return Ending(beyond.start_scn if start == NO_SCN else start, beyond.scn)
        stops = np.flatnonzero((rows.kinds == END) | (rows.kinds == REGRESS))
        first = int(stops[0]) if len(stops) else len(rows.kinds)
        data = np.flatnonzero(rows.kinds[:first] == DATA)
        if start == NO_SCN and len(data):
            start = int(rows.sequences[data[0]])
        if len(stops):
            return Ending(start, int(rows.sequences[first]) if rows.kinds[first] == END else NO_SCN)
        position, previous = rows.stop, rows.previous
