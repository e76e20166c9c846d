"""Find positions at which a segment can be split, so that its parts have the same rows as the whole.

A split is a position that a reader from the front also reaches. To make sure, consecutive valid entries must precede it for
`LEAD` bytes, or from the previous split on. It finds entries with the `.index` if that agrees with the segment, else from the
previous entries.
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


class SplitPosition(NamedTuple):
    """A position between two entries."""

    position: int
    before: FoundEntry | None
    """the entry that ends there"""


def split_positions(seeker: Seeker, start: int, stop: int, size: int) -> list[SplitPosition]:
    """The splits between ``start`` and ``stop``, about ``size`` bytes apart; corruption can make a distance larger.

    ``start`` is the position of an entry.
    """
    places: list[SplitPosition] = []
    position = start
    while stop - position > size:
        nominal = position + size
        cut = _split(seeker.log, _before(seeker, position, nominal - LEAD), nominal, stop, position)
        if cut is None:
            break
        places.append(cut)
        position = cut.position
    return places


def _before(seeker: Seeker, floor: int, position: int) -> int:
    """The start of an entry at about ``position``, or ``floor``, which is such a start."""
    positions = seeker.offsets.values
    known = int(np.searchsorted(positions, position, "right"))
    for k in range(known - 1, max(-1, known - 1 - _TRIED), -1):
        if positions[k] <= floor:
            break
        if seeker.is_entry(k):
            return int(positions[k])
    return floor


def _split(log: Log, position: int, nominal: int, stop: int, floor: int) -> SplitPosition | None:
    """The first split from ``nominal`` on. It counts valid entries from ``position`` on."""
    first, before = position, None
    for block in log.blocks(position, stop):
        begins, corrupt = block.position + block.frames.begin, np.flatnonzero(block.frames.error != OK).tolist()
        low = 0
        for high in [*corrupt, len(begins)]:
            least = nominal if first == floor else max(nominal, first + LEAD)
            at = low + int(np.searchsorted(begins[low:high], least))
            if at < high:
                return SplitPosition(int(begins[at]), entry_of(block, at - 1) if at > low else before)
            if high < len(begins):
                first, low = block.position + int(block.frames.stop[high]), high + 1
        before = entry_of(block, len(begins) - 1) if low < len(begins) else None
    return None
