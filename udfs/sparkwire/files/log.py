"""A segment read from anywhere in it, a chunk at a time, in bounded memory, whatever the file's size.

The entries are those that `formats.kafka` finds in the same bytes: each begins where the one before ends, and where that cannot
be, at the next place where an intact one is. Which entry follows one depends on the bytes from it on and on nothing before,
so it does not matter where a reader begins, so long as it begins at an entry.

Two bounds keep a damaged size from costing memory. An entry of more than `SEARCHED` bytes is believed only where another
entry, or the end of the file, follows it; and after damage none that large is looked for.
"""

from __future__ import annotations

from typing import NamedTuple

from sparkwire.errors import BAD_MAGIC, CRC_MISMATCH, OK
from sparkwire.files.storage import Source
from sparkwire.formats.kafka.framing import crc_ok, entry_end, entry_sums, frame_error, next_intact
from sparkwire.formats.kafka.layout import BATCH_SIZE
from sparkwire.kernels import Bytes, int64, kernel

CHUNK = 4 << 20
"""what is read at once [bytes]"""
SEARCHED = 16 << 20
"""the largest entry that is looked for after damage [bytes]"""


class Run(NamedTuple):
    """Whole entries, one after the other."""

    position: int
    """in the file [bytes]"""
    data: Bytes
    """valid until the next run is asked for"""


class Damage(NamedTuple):
    """Bytes that are no entry that can be read."""

    position: int
    """in the file [bytes]"""
    stop: int
    """where the next entry begins, or the file ends [bytes]"""
    whole: bool
    """whether ``stop`` is where its size says"""
    error: int
    header: Bytes
    """what of the bytes may be a header"""


@kernel
def chain(data: Bytes, start: int, end: int, stop: int) -> int:
    """Where the entries from ``start`` on end: at the first that is not whole, or that begins at ``stop`` or later."""
    pos = int64(start)
    while pos < stop and frame_error(data, pos, end) == OK:
        pos = entry_end(data, pos)
    return pos


class Log:
    """The entries of one file.

    Parameters
    ----------
    source
        the file
    verify
        whether an entry with a wrong checksum is damage
    chunk
        what is read at once, `CHUNK` unless it is given [bytes]
    """

    def __init__(self, source: Source, verify: bool = True, chunk: int = 0) -> None:
        self.source = source
        self.verify = verify
        self.chunk = chunk or CHUNK

    def framed(self, position: int, stop: int) -> Run:
        """The whole entries from ``position`` on that begin before ``stop``, about a chunk of them; none at damage.

        Their checksums have not been looked at.
        """
        wanted = max(BATCH_SIZE, min(self.chunk, stop - position))
        data = self.source.view(position, wanted)
        if frame_error(data, 0, self.source.size - position) != OK:
            return Run(position, data[:0])
        first = int(entry_end(data, 0))
        if first > wanted:
            if not self._is_credible(position, first):
                return Run(position, data[:0])
            data = self.source.view(position, first)
        return Run(position, data[: chain(data, 0, len(data), stop - position)])

    def _is_credible(self, position: int, size: int) -> bool:
        """Whether to load an entry that says it is so large."""
        return size <= SEARCHED or position + size == self.source.size or self._frame(position + size) == OK

    def _frame(self, position: int) -> int:
        """What is wrong with the entry at ``position``, its checksum apart."""
        return int(frame_error(self.source.view(position, BATCH_SIZE), 0, self.source.size - position))

    def is_intact(self, position: int) -> bool:
        """Whether a whole entry is at ``position`` whose checksum is right."""
        if not 0 <= position < self.source.size or self._frame(position) != OK:
            return False
        size = int(entry_end(self.source.view(position, BATCH_SIZE), 0))
        return self._is_credible(position, size) and bool(crc_ok(self.source.view(position, size), 0))

    def damage(self, position: int) -> Damage:
        """What is at ``position``, where no entry can be read, and where the next begins."""
        left = self.source.size - position
        header = self.source.view(position, BATCH_SIZE).copy()
        error = int(frame_error(header, 0, left))
        whole = error in (OK, BAD_MAGIC)
        stop = position + int(entry_end(header, 0)) if whole else self.source.size
        follows = whole and stop < self.source.size and self._frame(stop) == OK
        if not (follows and self.is_intact(stop)):
            found = self.search(position + 1)
            if not whole or found < stop or (found < self.source.size and not follows):
                whole, stop = False, found
        return Damage(position, stop, whole, CRC_MISMATCH if error == OK else error, header[: stop - position])

    def search(self, position: int) -> int:
        """The first place from ``position`` on at which an intact entry is; the end of the file if there is none."""
        while position < self.source.size:
            data = self.source.view(position, 2 * SEARCHED)
            found = int(next_intact(data, 0, len(data), entry_sums(0, len(data))))
            if position + len(data) == self.source.size:
                return position + found
            if found < SEARCHED:
                return position + found
            position += SEARCHED
        return self.source.size
