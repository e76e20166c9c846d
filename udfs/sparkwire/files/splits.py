"""Where a segment can be cut, so that what is read in parts are the same rows.

A cut is a place at which a reader from the front arrives for certain: before it stand intact entries, one right after the other,
for `LEAD` bytes or from the last cut on. Which entries stand there is found from the `.index`, where it points to an intact
entry, else from the headers before it.
"""

from __future__ import annotations

import numpy as np

from sparkwire.errors import OK
from sparkwire.files.log import Log
from sparkwire.files.seek import Index
from sparkwire.formats.kafka.framing import crc_ok, entry_end, frame_error
from sparkwire.kernels import Bytes, int64, kernel

LEAD = 256 << 10
"""[bytes]"""
_TRIED = 8


@kernel
def intact_chain(data: Bytes, end: int) -> int:
    """Where the intact entries that follow each other from the front end."""
    pos = int64(0)
    while pos < end and frame_error(data, pos, end) == OK and crc_ok(data, pos):
        pos = entry_end(data, pos)
    return pos


@kernel
def boundary(data: Bytes, end: int, least: int) -> int:
    """The first place from ``least`` on where an entry of the chain ``data[:end]`` begins or the chain ends."""
    pos = int64(0)
    while pos < least and pos < end:
        pos = entry_end(data, pos)
    return pos


def cuts(log: Log, start: int, stop: int, size: int, index: Index) -> list[int]:
    """Positions between ``start`` and ``stop`` at which to cut, ``size`` bytes apart or more where damage allows no less.

    ``start`` is the position of an entry.
    """
    found: list[int] = []
    position: int | None = start
    while position is not None and stop - position > size:
        nominal = position + size
        position = _cut(log, _before(log, position, nominal - LEAD, index), nominal, stop, position)
        if position is not None:
            found.append(position)
    return found


def _before(log: Log, floor: int, position: int, index: Index) -> int:
    """An entry at about ``position``, from ``floor`` on, which is one."""
    known = int(np.searchsorted(index.values, position, "right"))
    for at in index.values[max(0, known - _TRIED) : known][::-1].tolist():
        if at > floor and log.is_intact(at):
            return int(at)
    at = floor
    while at < position:
        run = log.framed(at, position)
        at = at + len(run.data) if len(run.data) else log.damage(at).stop
    return at


def _cut(log: Log, position: int, nominal: int, stop: int, floor: int) -> int | None:
    """The first cut from ``nominal`` on; intact entries are counted from ``position`` on."""
    first = position
    while position < stop:
        run = log.framed(position, stop)
        good = int(intact_chain(run.data, len(run.data)))
        least = nominal if first == floor else max(nominal, first + LEAD)
        at = position + int(boundary(run.data, good, least - position))
        if least <= at < stop:
            return at
        position += good
        if good < len(run.data) or not good:
            position = first = log.damage(position).stop
    return None
