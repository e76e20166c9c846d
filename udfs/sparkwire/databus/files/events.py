"""Read the events of a file in chunks, in bounded memory for files of any size.

The rows are the same as those of `databus.stream`: an event, or skipped bytes up to the next event that certainly begins. Two
bounds limit memory for corrupt files. A row of skipped bytes has at most `SKIPPED` bytes. A header that claims to be longer than
that is invalid.
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
"""size of a chunk [bytes]"""
SKIPPED = 16 << 20
"""largest size of a row of skipped bytes [bytes]"""
AHEAD = 1 << 16
"""number of bytes after a position that decide whether an event begins there [bytes]"""
LEAST = 45
"""approximate size of the smallest event, from which the room for rows follows [bytes]"""

_V1_SEQUENCE, _V2_SEQUENCE = V1["sequence"].offset, V2["sequence"].offset
_V1_SOURCE, _V2_SOURCE = V1["src_id"].offset, V2["src_id"].offset

# What the current bytes end with: more bytes follow, the end of the file, or the end of a file that may grow.
CHUNK_OF_FILE, FILE, GROWING_FILE = range(3)

# Kinds of rows, for the assignment to windows.
DATA, CONTROL, END, REGRESS, BROKEN = range(5)


class EventRows(NamedTuple):
    """Consecutive rows of a file."""

    position: int
    """position of the first row in the file [bytes]"""
    data: Bytes
    """the rows' bytes; valid until the next call of `EventFile.rows`"""
    ends: npt.NDArray[np.int32]
    """row ``i`` is ``data[ends[i]:ends[i + 1]]``"""
    kinds: npt.NDArray[np.int8]
    sequences: Ints
    """sequence of each event, 0 if its header cannot be read"""
    errors: npt.NDArray[np.int8]
    """error of the header, or of bytes that are not an event"""
    previous: int
    """variant of the last event; the next row may take its byte order from it"""

    @property
    def stop(self) -> int:
        """Where the next row begins in the file [bytes]."""
        return self.position + int(self.ends[-1])

    def array(self) -> pa.Array:
        """The rows as a BINARY column, without copying."""
        buffers = [None, pa.py_buffer(self.ends), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.binary(), len(self.kinds), buffers)

    def checked(self) -> npt.NDArray[np.int8]:
        """The errors, including errors of the bodies."""
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
    """Fill in the rows that begin before ``stop``, as far as the bytes in ``data`` suffice to classify them.

    Returns the number of rows, the variant of the last event, and the number of bytes that the next row needs. The last is 0 if
    the next row needs bytes that the file does not have yet. ``ends_with`` is what ``data`` ends with. ``bounds`` are `SKIPPED`
    and `AHEAD`.
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
            # To classify a position takes AHEAD bytes after it, or the end of the file.
            decided = size if at_end else size - ahead
            limit = min(decided, pos + skipped)
            after = next_header(data, pos, min(size, limit + ahead), previous, sums)
            if after > limit and limit < pos + skipped and not at_end:
                return count, previous, int64(skipped + ahead)
            if ends_with == GROWING_FILE and after >= limit and size - pos < skipped + ahead:
                return count, previous, 0  # no later event proves that these bytes are corrupt
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
    """Length of the event at ``pos`` [bytes]; 0 if no valid header is there."""
    variant, error = stream_header(data, pos, left, previous, sums)
    return event_kernels.total_length(data, pos, left, variant) if error == OK else int64(0)


@kernel
def check_bodies(
    data: Bytes,
    ends: npt.NDArray[np.int32],
    errors: npt.NDArray[np.int8],
    scratch: PartSpans,
) -> None:
    """Replace ``OK`` by the error of the event's body, if any; ``scratch`` has room for one row."""
    previous = int64(NO_VARIANT)
    for row in range(errors.size):
        if errors[row] == OK:
            start, size = int64(ends[row]), int64(ends[row + 1] - ends[row])
            variant = stream_variant(data, start, size, previous)
            errors[row] = body_error(data, start, size, variant, scratch)
            previous = variant


class EventFile:
    """Reads the rows of one file."""

    def __init__(self, source: OpenFile, chunk: int = 0) -> None:
        self.source = source
        self.chunk = chunk or CHUNK

    def rows(self, position: int, stop: int, previous: int, grows: bool = False) -> EventRows:
        """About a chunk of the rows that begin from ``position`` to before ``stop``; no rows at the end.

        Parameters
        ----------
        previous
            the variant of the previous event, `NO_VARIANT` at the beginning
        grows
            whether the file may grow. Then it omits a row that may be incomplete, and returns corrupt bytes only if an event
            follows them.
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
