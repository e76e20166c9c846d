"""The events of a file, a chunk at a time, in bounded memory, whatever the file's size.

The rows are those that `formats.databus.stream` finds in the same bytes: an event, or bytes that are none, up to the next
event that begins beyond doubt. Two bounds keep corruption from costing memory. Skipped bytes are rows of at most `SKIPPED` bytes
each; and a header that says it is longer than that is none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import OK, TRUNCATED
from sparkwire.core.column import empty
from sparkwire.core.sources.storage import OpenFile
from sparkwire.databus import event_kernels
from sparkwire.databus.layout import END_OF_PERIOD, NO_VARIANT, SCN_REGRESS, V1, V2
from sparkwire.databus.parts import PartSpans, one_row
from sparkwire.databus.stream import body_error, next_header, stream_header, stream_variant
from sparkwire.kernels import Bytes, Ints, i16, i32, i64, int64, kernel
from sparkwire.kernels.checksums.crc import CRC32_RAW
from sparkwire.kernels.checksums.range_crc import RangeSums, range_sums

CHUNK = 4 << 20
"""what is read at once [bytes]"""
SKIPPED = 16 << 20
"""the most that one row of skipped bytes has [bytes]"""
AHEAD = 1 << 16
"""how many bytes it takes from a place on to decide whether an event begins there [bytes]"""
LEAST = 45
"""about the size of the smallest event, which determines the room for rows [bytes]"""

_V1_SEQUENCE, _V2_SEQUENCE = V1["sequence"].offset, V2["sequence"].offset
_V1_SOURCE, _V2_SOURCE = V1["src_id"].offset, V2["src_id"].offset

# The end of the current bytes.
CHUNK_OF_FILE, FILE, GROWING_FILE = range(3)

# What a row is for windows.
DATA, CONTROL, END, REGRESS, BROKEN = range(5)


class EventRows(NamedTuple):
    """Rows one after the other."""

    position: int
    """of the first in the file [bytes]"""
    data: Bytes
    """valid until the next request"""
    ends: npt.NDArray[np.int32]
    """row ``i`` is ``data[ends[i]:ends[i + 1]]``"""
    kinds: npt.NDArray[np.int8]
    sequences: Ints
    """0 where a header cannot be read"""
    errors: npt.NDArray[np.int8]
    """the header's, or of bytes that are no event"""
    previous: int
    """the variant that the next row may take its byte order from"""

    @property
    def stop(self) -> int:
        """Where the next row begins in the file [bytes]."""
        return self.position + int(self.ends[-1])

    def array(self) -> pa.Array:
        """The rows as a column of bytes, not copied."""
        buffers = [None, pa.py_buffer(self.ends), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.binary(), len(self.kinds), buffers)

    def checked(self) -> npt.NDArray[np.int8]:
        """The errors, those of the bodies too."""
        errors = self.errors.copy()
        check_bodies(self.data, self.ends, errors, one_row())
        return errors


@kernel
def frame_rows(
    data: Bytes,
    ends_with: int,
    stop: int,
    previous: int,
    ends: npt.NDArray[np.int32],
    kinds: npt.NDArray[np.int8],
    sequences: Ints,
    errors: npt.NDArray[np.int8],
    bounds: tuple[int, int],
    sums: RangeSums,
) -> tuple[int, int, int]:
    """Fill in the rows that begin before ``stop`` and that ``data`` decides.

    Returns their number, the variant to remember, and how many bytes it takes to classify the next event. 0 if it needs more of
    the file only. ``ends_with``: what ``data`` ends with. ``bounds``: `SKIPPED` and `AHEAD`.
    """
    skipped, ahead = bounds
    final, at_end = ends_with == FILE, ends_with != CHUNK_OF_FILE
    pos, count, size = int64(0), 0, int64(data.size)
    ends[0] = 0
    while pos < size and pos < stop and count < kinds.size:
        left = size - pos
        variant, error = stream_header(data, pos, left, previous, sums)
        if error != OK and left < ahead and not at_end:
            return count, previous, int64(ahead)
        if error == TRUNCATED and not at_end:
            claimed = event_kernels.header_end(data, pos, left, variant)
            if left < claimed <= skipped:
                return count, previous, int64(claimed)
        sequence, kind = int64(0), int64(BROKEN)
        if error == OK:
            length = event_kernels.total_length(data, pos, left, variant)
            if length > left and not final:
                return count, previous, int64(length)
            after = min(pos + length, size)
            previous = variant
            little = event_kernels.is_little(variant)
            if event_kernels.is_v2(variant):
                sequence = i64(data, pos + _V2_SEQUENCE, little)
                source = int64(i32(data, pos + _V2_SOURCE, little))
            else:
                sequence = i64(data, pos + _V1_SEQUENCE, little)
                source = int64(i16(data, pos + _V1_SOURCE, little))
            kind = int64(DATA) if source >= 0 else int64(CONTROL)
            if source == END_OF_PERIOD:
                kind = int64(END)
            if source == SCN_REGRESS:
                kind = int64(REGRESS)
        else:
            # The bytes after a position decide it; at the end of the file, all remaining ones.
            decided = size if at_end else size - ahead
            limit = min(decided, pos + skipped)
            after = next_header(data, pos, min(size, limit + ahead), previous, sums)
            if after > limit and limit < pos + skipped and not at_end:
                return count, previous, int64(skipped + ahead)
            if ends_with == GROWING_FILE and after >= limit and size - pos < skipped + ahead:
                return count, previous, 0  # no event after it is there that proves it corrupt
            after = min(after, limit)
            if ends_with == GROWING_FILE and after + _length(data, after, size - after, previous, sums) > size:
                return count, previous, 0
        kinds[count] = kind
        sequences[count] = sequence
        errors[count] = error
        count += 1
        ends[count] = after
        pos = after
    return count, previous, 0


@kernel
def _length(data: Bytes, pos: int, left: int, previous: int, sums: RangeSums) -> int:
    """Of the event at ``pos`` [bytes]; 0 where no header is there."""
    variant, error = stream_header(data, pos, left, previous, sums)
    return event_kernels.total_length(data, pos, left, variant) if error == OK else int64(0)


@kernel
def check_bodies(
    data: Bytes,
    ends: npt.NDArray[np.int32],
    errors: npt.NDArray[np.int8],
    scratch: PartSpans,
) -> None:
    """Replace ``OK`` by what is wrong with the event's body; ``scratch`` has room for one row."""
    previous = int64(NO_VARIANT)
    for row in range(errors.size):
        if errors[row] == OK:
            start, size = int64(ends[row]), int64(ends[row + 1] - ends[row])
            variant = stream_variant(data, start, size, previous)
            errors[row] = body_error(data, start, size, variant, scratch)
            previous = variant


class EventFile:
    """The rows of one file."""

    def __init__(self, source: OpenFile, chunk: int = 0) -> None:
        self.source = source
        self.chunk = chunk or CHUNK

    def rows(self, position: int, stop: int, previous: int, grows: bool = False) -> EventRows:
        """The rows from ``position`` on that begin before ``stop``, about a chunk of them; none at the end.

        Parameters
        ----------
        previous
            the variant of the event before, `NO_VARIANT` at the beginning
        grows
            whether the file may grow: then none is given that its end may have cut, and corrupt bytes are where an event follows
        """
        wanted = max(AHEAD, min(self.chunk, stop - position + AHEAD))
        while True:
            data = self.source.view(position, wanted)
            at_end = position + len(data) == self.source.size
            ends_with = (GROWING_FILE if grows else FILE) if at_end else CHUNK_OF_FILE
            room = len(data) // LEAST + 16
            out = (empty(room + 1, np.int32), empty(room, np.int8), empty(room, np.int64), empty(room, np.int8))
            sums = range_sums(CRC32_RAW, 0, len(data))
            count, after, needed = frame_rows(data, ends_with, stop - position, previous, *out, (SKIPPED, AHEAD), sums)
            if count or at_end or not needed or needed <= len(data):
                ends, kinds, sequences, errors = (column[: count + (k == 0)] for k, column in enumerate(out))
                return EventRows(position, data, ends, kinds, sequences, errors, int(after))
            wanted = int(needed)
