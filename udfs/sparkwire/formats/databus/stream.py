"""Events one behind the other, as they lie on the wire: where each begins, what is wrong, where to go on.

A header whose checksum is right can be trusted to tell its event's length. Behind anything else the
walk looks for the next such header, and what it skips is one row. So bytes too short for a header are a torn
tail only if no such header follows. A header of more than 64 KiB is read in its place, but not searched for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.builders import Column
from sparkwire.column import binary_of, empty, from_codes, gather, lists, primitive
from sparkwire.errors import ERRORS, OK
from sparkwire.formats.databus import event
from sparkwire.formats.databus.accessors import status_codes
from sparkwire.formats.databus.event import NUMBERS, SPANS, UNKNOWN
from sparkwire.formats.databus.layout import MIN_LENGTH, NO_VARIANT, STATUSES, V1_BIG, V2_BIG
from sparkwire.kernels import Bytes, Ints, int64, kernel, u8

# A search tries every byte. Without a bound on the header, bytes made to look like one long header
# after the other would cost the square of their size; keys of this size are not seen in practice.
_SEARCHED_HEADER: Final = 1 << 16  # [bytes]


@kernel
def stream_variant(data: Bytes, start: int, size: int, previous: int) -> int:
    """Version and byte order at a place of a stream: magic word, header checksum, the event before."""
    if size < 1 or (u8(data, start) != 0 and u8(data, start) != 2):
        return NO_VARIANT
    variant = event.magic_variant(data, start, size)
    if variant != NO_VARIANT:
        return variant
    big = V2_BIG if u8(data, start) == 2 else V1_BIG
    variant = event.checked_variant(data, start, size, big)
    if variant != NO_VARIANT:
        return variant
    return big + 1 if event.is_little(previous) else big


@kernel
def stream_header_error(data: Bytes, start: int, size: int, variant: int) -> int:
    """The first thing wrong with the header at a place of a stream; ``OK``: its length can be trusted."""
    checks = 1 if variant != NO_VARIANT and event.header_is_right(data, start, size, variant) else 0
    return event.header_error(data, start, size, variant, checks)


@kernel
def is_header(data: Bytes, start: int, size: int, previous: int) -> bool:
    """Whether an event begins here beyond doubt, at a cost that does not grow with ``size``."""
    version = u8(data, start)
    if version == 0:
        # Zeros have a right checksum, and a length below any event's.
        if not (_v1_length_holds(data, start, size, V1_BIG) or _v1_length_holds(data, start, size, V1_BIG + 1)):
            return False
    elif version != 2 or event.magic_variant(data, start, size) == NO_VARIANT:
        return False
    variant = stream_variant(data, start, min(size, _SEARCHED_HEADER), previous)
    end = event.header_end(data, start, size, variant)
    return end <= _SEARCHED_HEADER and stream_header_error(data, start, size, variant) == OK


@kernel
def _v1_length_holds(data: Bytes, start: int, size: int, variant: int) -> bool:
    return event.total_length(data, start, size, variant) >= MIN_LENGTH


@kernel
def next_header(data: Bytes, start: int, end: int, previous: int) -> int:
    """The first place behind ``start`` where an event begins beyond doubt, ``end`` if there is none."""
    for pos in range(start + 1, end):
        if is_header(data, pos, end - pos, previous):
            return int64(pos)
    return int64(end)


@kernel
def count_events(data: Bytes, offsets: npt.NDArray[Any], counts: npt.NDArray[np.int32]) -> None:
    """How many rows each stream gives, as ``split_events`` writes them; ``counts[row + 1]`` ends up as its end."""
    counts[0] = 0
    for row in range(offsets.size - 1):
        pos, end = int64(offsets[row]), int64(offsets[row + 1])
        previous, found = NO_VARIANT, 0
        while pos < end:
            pos, previous, _ = step(data, pos, end, previous)
            found += 1
        counts[row + 1] = counts[row] + found


@kernel
def step(data: Bytes, pos: int, end: int, previous: int) -> tuple[int, int, int]:
    """Where the row that begins at ``pos`` ends, the variant to remember for the next, and the header's error."""
    variant = stream_variant(data, pos, end - pos, previous)
    error = stream_header_error(data, pos, end - pos, variant)
    if error != OK:
        return next_header(data, pos, end, previous), previous, error
    length = event.total_length(data, pos, end - pos, variant)
    return min(pos + length, end), variant, error


@kernel
def split_events(
    data: Bytes,
    offsets: npt.NDArray[Any],
    ends: npt.NDArray[np.int32],
    positions: npt.NDArray[np.int32],
    starts: Ints,
    sizes: Ints,
    errors: npt.NDArray[np.int8],
    part_starts: Ints,
    part_sizes: Ints,
    numbers: Ints,
) -> None:
    """Position, span and error of every row of every stream; the last three arrays are one row of scratch."""
    for row in range(offsets.size - 1):
        first, end = int64(offsets[row]), int64(offsets[row + 1])
        pos, previous = first, NO_VARIANT
        for k in range(ends[row], ends[row + 1]):
            after, previous, error = step(data, pos, end, previous)
            if error == OK:
                error = body_error(data, pos, end - pos, previous, part_starts, part_sizes, numbers)
            positions[k] = pos - first
            starts[k] = pos
            sizes[k] = after - pos
            errors[k] = error
            pos = after


@kernel
def body_error(
    data: Bytes,
    start: int,
    size: int,
    variant: int,
    part_starts: Ints,
    part_sizes: Ints,
    numbers: Ints,
) -> int:
    """The first thing wrong behind the sound header of the event at ``start``."""
    length = event.total_length(data, start, size, variant)
    bounded = event.read_parts(data, start, size, variant, 0, part_starts, part_sizes, numbers)
    end = event.header_end(data, start, size, variant)
    computed = event.value_crc(data, start, size, variant, end, length)
    checks = event.value_checks(data, start, size, variant, end, length, computed)
    return event.body_error(size, length, bounded, checks)


class Stream:
    """A column of streams, split into rows."""

    def __init__(self, column: pa.Array) -> None:
        self.data, offsets, _ = binary_of(column)
        self._ends = empty(len(column) + 1, np.int32)
        count_events(self.data, offsets, self._ends)
        rows = int(self._ends[-1])
        self.positions = empty(rows, np.int32)
        self.starts, self.sizes = empty(rows, np.int64), empty(rows, np.int64)
        self.errors = empty(rows, np.int8)
        scratch = [np.full((k, 1), UNKNOWN, np.int64) for k in (SPANS, SPANS, NUMBERS)]
        split_events(self.data, offsets, self._ends, self.positions, self.starts, self.sizes, self.errors, *scratch)

    def lists(self, found: pa.Array) -> pa.Array:
        """``found``, an item for each row of each stream, as an ARRAY for each stream."""
        return lists(self._ends, found)


def _event(stream: Stream) -> pa.Array:
    return gather(stream.data, stream.starts, stream.sizes, pa.binary())


TABLE: Final[Sequence[Column[Stream]]] = (
    Column(
        "position", "INT", "Where the row begins in the stream [bytes].", lambda stream: primitive(stream.positions)
    ),
    Column("event", "BINARY", "Its bytes: an event, a torn one, or what was skipped.", _event),
    Column(
        "status",
        "STRING",
        "OK, PARTIAL (bytes are missing) or ERR, as dbus_status.",
        lambda stream: from_codes(status_codes(stream.errors), STATUSES),
    ),
    Column(
        "error",
        "STRING",
        "The first thing wrong, as dbus_error; NULL for an intact event.",
        lambda stream: from_codes(stream.errors, ERRORS),
    ),
)
