"""Where a segment can be cut, so that what is read in parts are the same rows.

A cut is a place at which a reader from the front arrives: before it are valid entries, one right after the other, for `LEAD`
bytes or from the last cut on. The entries there are found from the `.index`, where it agrees with the segment, else from
the entries before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparkwire.base.error_codes import OK
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.files.seek import FoundEntry, Seeker, entry_of

LEAD = 256 << 10
"""[bytes]"""
_TRIED = 8


class CutPlace(NamedTuple):
    """Between two entries."""

    position: int
    before: FoundEntry | None
    """the entry that ends there"""


def cuts(seeker: Seeker, start: int, stop: int, size: int) -> list[CutPlace]:
    """Places between ``start`` and ``stop`` at which to cut, ``size`` bytes apart or more where corruption allows no less.

    ``start`` is the position of an entry.
    """
    places: list[CutPlace] = []
    position = start
    while stop - position > size:
        nominal = position + size
        cut = _cut(seeker.log, _before(seeker, position, nominal - LEAD), nominal, stop, position)
        if cut is None:
            break
        places.append(cut)
        position = cut.position
    return places


def _before(seeker: Seeker, floor: int, position: int) -> int:
    """An entry at about ``position``, or ``floor``, which is one."""
    positions = seeker.offsets.values
    known = int(np.searchsorted(positions, position, "right"))
    for k in range(known - 1, max(-1, known - 1 - _TRIED), -1):
        if positions[k] <= floor:
            break
        if seeker.is_entry(k):
            return int(positions[k])
    return floor


def _cut(log: Log, position: int, nominal: int, stop: int, floor: int) -> CutPlace | None:
    """The first cut from ``nominal`` on; counts valid entries from ``position`` on."""
    first, before = position, None
    for block in log.blocks(position, stop):
        begins, corrupt = block.position + block.frames.begin, np.flatnonzero(block.frames.error != OK).tolist()
        low = 0
        for high in [*corrupt, len(begins)]:
            least = nominal if first == floor else max(nominal, first + LEAD)
            at = low + int(np.searchsorted(begins[low:high], least))
            if at < high:
                return CutPlace(int(begins[at]), entry_of(block, at - 1) if at > low else before)
            if high < len(begins):
                first, low = block.position + int(block.frames.stop[high]), high + 1
        before = entry_of(block, len(begins) - 1) if low < len(begins) else None
    return None
