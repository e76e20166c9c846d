"""Split concatenated events, as they are on the wire: where each event begins, its error, and where reading resumes.

A header with a valid checksum has a valid length. At any other bytes, the reader searches for the next such header, and the
skipped bytes are one row. So a remainder that is shorter than a header is a truncated tail only if no such header follows. A
header of more than 64 KiB is read at its position, but a search does not find it.

The cost is linear in the stream's size for all inputs. A row ends where the next row begins, and a search ends at the next row.
A long header's checksum follows from sums that `range_crc` computes once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import ERRORS, OK
from sparkwire.core.builders import Column
from sparkwire.core.column import binary_of, empty, from_codes, gather, lists, primitive
from sparkwire.databus import event_kernels, layout
from sparkwire.databus.event_fields import status_codes
from sparkwire.databus.parts import PartSpans, clear_row, one_row, read_parts
from sparkwire.kernels import Bytes, Ints, crc32_raw, i32, i64, int64, kernel, u8, u16, u32
from sparkwire.kernels.checksums.crc import CRC32_RAW
from sparkwire.kernels.checksums.range_crc import RangeSums, begin_row, range_crc, range_sums

_V1_LENGTH = layout.V1["length"].offset
_ZEROS = 8
"""number of bytes that a search compares with 0 at once"""
_V1_CRC = layout.V1["header_crc"].offset
_V1_ATTRIBUTES = layout.V1["attributes"].offset
_SEARCHED_HEADER: Final = 1 << 16  # [bytes] in practice, keys are shorter


class StreamRows(NamedTuple):
    """The rows of streams."""

    positions: npt.NDArray[np.int32]
    """positions in the row's stream [bytes]"""
    starts: Ints
    """positions in the data [bytes]"""
    sizes: Ints
    errors: npt.NDArray[np.int8]


@kernel
def stream_variant(data: Bytes, start: int, size: int, previous: int) -> int:
    """Version and byte order at a position of a stream, from magic word, header checksum and the previous event."""
    if size < 1 or (u8(data, start) != 0 and u8(data, start) != 2):
        return layout.NO_VARIANT
    variant = event_kernels.magic_variant(data, start, size)
    if variant != layout.NO_VARIANT:
        return variant
    if u8(data, start) == 2:
        return (
            layout.V2_BIG + 1 if event_kernels.is_little(previous) else layout.V2_BIG
        )  # without a magic word, the event is wrong in either order
    return _v1_header(data, start, size, previous)[0]


@kernel
def _v1_header(data: Bytes, start: int, size: int, previous: int) -> tuple[int, bool]:
    """The variant of a V1 event, and whether its header is complete with a valid checksum.

    The byte order is that of the previous event, unless the checksum is valid only in the other order.
    """
    variant = layout.V1_LITTLE if event_kernels.is_little(previous) else layout.V1_BIG
    if event_kernels.header_crc_ok(data, start, size, variant):
        return variant, True
    other = layout.V1_BIG if variant == layout.V1_LITTLE else layout.V1_LITTLE
    return (other, True) if event_kernels.header_crc_ok(data, start, size, other) else (variant, False)


@kernel
def stream_header(data: Bytes, start: int, size: int, previous: int, sums: RangeSums) -> tuple[int, int]:
    """The variant at a position of a stream, and the first error of its header. ``OK`` means that its length is valid."""
    if size < 1 or u8(data, start) != 0:
        variant = stream_variant(data, start, size, previous)
        return variant, _header_error(data, start, size, variant, sums)
    variant, intact = _v1_header(data, start, size, previous)
    return variant, event_kernels.header_error(data, start, size, variant, intact)


@kernel
def _header_error(data: Bytes, start: int, size: int, variant: int, sums: RangeSums) -> int:
    error = event_kernels.header_error(data, start, size, variant, 1)
    if error != OK:
        return error
    # From here on, the header is complete, and at least as long as a header must be.
    first, end = event_kernels.header_first(variant), event_kernels.header_end(data, start, size, variant)
    computed = int64(range_crc(data, start + first, start + end, sums))
    checks = 1 if computed == event_kernels.stored_header_crc(data, start, variant) else 0
    return event_kernels.header_error(data, start, size, variant, checks)


@kernel
def next_header(data: Bytes, start: int, end: int, previous: int, sums: RangeSums) -> int:
    """The first position after ``start`` at which an event certainly begins, ``end`` if there is none."""
    pos = int64(start) + 1
    while pos < end:
        if pos + _V1_LENGTH + _ZEROS <= end and i64(data, pos, False) == 0 and i64(data, pos + _V1_LENGTH, False) == 0:
            pos += _ZEROS - 3  # V1 events at all these positions have length 0, as in the unused part of a file
            continue
        version, size = u8(data, pos), end - pos
        may_be = (version == 0 and _may_be_v1(data, pos, size)) or (version == 2 and _may_be_v2(data, pos, size, sums))
        if may_be and stream_header(data, pos, size, previous, sums)[1] == OK:
            return pos
        pos += 1
    return int64(end)


@kernel
def _may_be_v1(data: Bytes, start: int, size: int) -> bool:
    """Whether a V1 header's length and checksum are valid in either byte order. It is fast, as it rejects most positions.

    Zeros have a valid checksum, but their length is below that of any event.
    """
    if size < layout.V1_BYTES_HEADER:
        return False
    end = 0
    computed = np.uint32(0)
    for little in (False, True):
        if i32(data, start + _V1_LENGTH, little) >= layout.MIN_LENGTH:
            has_bytes = int64(u16(data, start + _V1_ATTRIBUTES, little)) & layout.V1_BYTES_KEY
            last = layout.V1_BYTES_HEADER if has_bytes else layout.V1_LONG_HEADER
            if last <= size:
                if last != end:
                    end = last
                    computed = crc32_raw(data, start + _V1_LENGTH, end - _V1_LENGTH)
                if computed == u32(data, start + _V1_CRC, little):
                    return True
    return False


@kernel
def _may_be_v2(data: Bytes, start: int, size: int, sums: RangeSums) -> bool:
    """Whether a V2 header's magic word, lengths and checksum are valid."""
    variant = event_kernels.magic_variant(data, start, size)
    if variant == layout.NO_VARIANT or size < layout.V2_KEY:
        return False
    end = event_kernels.header_end(data, start, size, variant)
    if (
        end < layout.V2_KEY
        or end > min(size, _SEARCHED_HEADER)
        or end > event_kernels.total_length(data, start, size, variant)
    ):
        return False
    computed = int64(range_crc(data, start + event_kernels.header_first(variant), start + end, sums))
    return computed == event_kernels.stored_header_crc(data, start, variant)


@kernel
def split_events(
    data: Bytes,
    offsets: npt.NDArray[Any],
    sums: RangeSums,
    ends: npt.NDArray[np.int32],
    rows: StreamRows,
    scratch: PartSpans,
) -> None:
    """Position, span and error of every row of every stream; the rows of stream ``i`` end at ``ends[i + 1]``.

    ``scratch`` has room for one row.
    """
    k = ends[0] = 0
    for i in range(offsets.size - 1):
        first, end = int64(offsets[i]), int64(offsets[i + 1])
        begin_row(first, sums)
        pos, previous = first, layout.NO_VARIANT
        while pos < end:
            size = end - pos
            variant, error, length = next_event(data, pos, size, previous, sums, scratch)
            if length > 0:
                after = min(pos + length, end)
                previous = variant
            else:
                after = next_header(data, pos, end, previous, sums)
            rows.positions[k] = pos - first
            rows.starts[k] = pos
            rows.sizes[k] = after - pos
            rows.errors[k] = error
            k += 1
            pos = after
        ends[i + 1] = k


@kernel
def next_event(
    data: Bytes, start: int, size: int, previous: int, sums: RangeSums, scratch: PartSpans
) -> tuple[int, int, int]:
    """The event at a place of a stream: its variant, the first error, and its length, 0 if its header is not valid [bytes]."""
    length = _valid_v1(data, start, size, previous)
    if length > 0:
        return previous, OK, length
    variant, error = stream_header(data, start, size, previous, sums)
    if error != OK:
        return variant, error, int64(0)
    error = body_error(data, start, size, variant, scratch)
    return variant, error, event_kernels.total_length(data, start, size, variant)


@kernel
def _valid_v1(data: Bytes, start: int, size: int, previous: int) -> int:
    """The length of a valid V1 event with a LONG key in the byte order of the one before, 0 for any other [bytes].

    Nearly all events are such, and for them no byte order has to be determined.
    """
    if (previous != layout.V1_BIG and previous != layout.V1_LITTLE) or size < layout.V1_LONG_HEADER:
        return int64(0)
    if u8(data, start) != 0 or event_kernels.key_type(data, start, previous) != layout.LONG_KEY:
        return int64(0)
    length = event_kernels.total_length(data, start, size, previous)
    if length < layout.V1_LONG_HEADER or length > size:
        return int64(0)
    # The header first: a wrong length must not cost a checksum of all the bytes that it covers.
    first, end = event_kernels.header_first(previous), layout.V1_LONG_HEADER
    if int64(crc32_raw(data, start + first, end - first)) != event_kernels.stored_header_crc(data, start, previous):
        return int64(0)
    value = int64(crc32_raw(data, start + end, length - end))
    return length if value == event_kernels.stored_value_crc(data, start, previous) else int64(0)


@kernel
def body_error(data: Bytes, start: int, size: int, variant: int, scratch: PartSpans) -> int:
    """The first error after the valid header of the event at ``start``."""
    length = event_kernels.total_length(data, start, size, variant)
    clear_row(scratch, 0)
    bounded = read_parts(data, start, size, variant, 0, scratch)
    end = event_kernels.header_end(data, start, size, variant)
    computed = event_kernels.value_crc(data, start, size, variant, end, length)
    checks = event_kernels.value_checks(data, start, size, variant, end, length, computed)
    return event_kernels.body_error(size, length, bounded, checks)


def most_rows(sizes: Ints) -> int:
    """The largest possible number of rows. A valid header has at least V2_KEY bytes; between two events is at most one row."""
    return int((2 * (sizes // layout.V2_KEY) + 1)[sizes > 0].sum())


class Stream:
    """A column of streams, split into rows."""

    def __init__(self, column: pa.Array) -> None:
        source = binary_of(column)
        self.data, offsets, _ = source
        self._ends = empty(len(column) + 1, np.int32)
        most = most_rows(np.diff(offsets).astype(np.int64))
        # Room for the largest possible number of rows; pages that are never written take no memory.
        rows = StreamRows(empty(most, np.int32), empty(most, np.int64), empty(most, np.int64), empty(most, np.int8))
        sums = range_sums(CRC32_RAW, int(offsets[0]), source.longest)
        split_events(self.data, offsets, sums, self._ends, rows, one_row())
        count = int(self._ends[-1])
        self.rows = StreamRows(rows.positions[:count], rows.starts[:count], rows.sizes[:count], rows.errors[:count])

    def lists(self, entries: pa.Array) -> pa.Array:
        """``entries``, an item for each row of each stream, as an ARRAY for each stream."""
        return lists(self._ends, entries)


def _event(stream: Stream) -> pa.Array:
    return gather(stream.data, stream.rows.starts, stream.rows.sizes, pa.binary())


TABLE: Final[Sequence[Column[Stream]]] = (
    Column(
        "position",
        "INT",
        "Position of the row in the stream [bytes].",
        lambda stream: primitive(stream.rows.positions),
    ),
    Column("event", "BINARY", "The row's bytes: an event, a truncated event, or skipped bytes.", _event),
    Column(
        "status",
        "STRING",
        "OK, PARTIAL (bytes are missing) or ERR, as dbus_status.",
        lambda stream: from_codes(status_codes(stream.rows.errors), layout.STATUSES),
    ),
    Column(
        "error",
        "STRING",
        "The first error, as dbus_error; NULL for a valid event.",
        lambda stream: from_codes(stream.rows.errors, ERRORS),
    ),
)
