"""Kernels for one serialized event: its variant, the end of its header, its errors.

An event is ``data[start:start + size]``. Positions inside it count from its start [bytes]. A kernel reads a field only after
it has checked that the field's bytes are inside the row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sparkwire.base.error_codes import BAD_LENGTH, BAD_MAGIC, HEADER_CRC_MISMATCH, OK, TRUNCATED, VALUE_CRC_MISMATCH
from sparkwire.core.column import empty
from sparkwire.databus import layout
from sparkwire.databus.layout import BYTES_KEY, LONG_KEY
from sparkwire.kernels import Bools, Bytes, crc32_raw, i32, int64, kernel, u8, u16, u32

_V1_CRC = layout.V1["header_crc"].offset
_V1_COVERED = layout.V1["length"].offset
_V1_LENGTH = layout.V1["length"].offset
_V1_ATTRIBUTES = layout.V1["attributes"].offset
_V1_VALUE_CRC = layout.V1["value_crc"].offset
_V2_MAGIC = layout.V2["magic"].offset
_V2_HEADER_LENGTH = layout.V2["header_length"].offset
_V2_CRC = layout.V2["header_crc"].offset
_V2_COVERED = layout.V2["value_crc"].offset
_V2_VALUE_CRC = layout.V2["value_crc"].offset
_V2_LENGTH = layout.V2["length"].offset
_V2_ATTRIBUTES = layout.V2["attributes"].offset

UNKNOWN = -1  # a position, size or checksum that cannot be read


@kernel
def is_v2(variant: int) -> bool:
    return variant >= layout.V2_BIG


@kernel
def is_little(variant: int) -> bool:
    return variant in (layout.V1_LITTLE, layout.V2_LITTLE)


@kernel
def key_type(data: Bytes, start: int, variant: int) -> int:
    """The kind of key. The caller has checked that the attributes exist."""
    little = is_little(variant)
    if is_v2(variant):
        return ((int64(u16(data, start + _V2_ATTRIBUTES, little)) >> layout.V2_KEY_SHIFT) & layout.V2_KEY_MASK) - 1
    attributes = int64(u16(data, start + _V1_ATTRIBUTES, little))
    return layout.BYTES_KEY if attributes & layout.V1_BYTES_KEY else layout.LONG_KEY


@kernel
def total_length(data: Bytes, start: int, size: int, variant: int) -> int:
    """The stored length [bytes]; less than any valid length if its bytes are missing."""
    if is_v2(variant):
        return int64(i32(data, start + _V2_LENGTH, is_little(variant))) if size >= layout.V2_LENGTH_END else -(1 << 40)
    return int64(i32(data, start + _V1_LENGTH, is_little(variant))) if size >= _V1_LENGTH + 4 else -(1 << 40)


@kernel
def header_end(data: Bytes, start: int, size: int, variant: int) -> int:
    """The end of the header according to its own fields [bytes]; ``UNKNOWN`` if these are missing or negative."""
    if is_v2(variant):
        if size < _V2_HEADER_LENGTH + 4:
            return UNKNOWN
        return max(int64(i32(data, start + _V2_HEADER_LENGTH, is_little(variant))), UNKNOWN)
    if size < layout.V1_ATTRIBUTES_END:
        return UNKNOWN
    return layout.V1_BYTES_HEADER if key_type(data, start, variant) == layout.BYTES_KEY else layout.V1_LONG_HEADER


@kernel
def _range_crc(data: Bytes, start: int, size: int, first: int, last: int) -> int:
    """Checksum of the existing bytes from ``first`` to ``last``; 0 for an empty range."""
    if last <= first:
        return int64(0)
    if first >= size:
        return int64(UNKNOWN)
    return int64(crc32_raw(data, start + first, min(last, size) - first))


@kernel
def header_first(variant: int) -> int:
    """The start of the range of the header's checksum [bytes]."""
    return _V2_COVERED if is_v2(variant) else _V1_COVERED


@kernel
def is_whole(size: int, variant: int, end: int, length: int) -> bool:
    """Whether all bytes of both checksums' ranges exist."""
    fixed = layout.V2_KEY if is_v2(variant) else layout.V1_KEY
    return variant != layout.NO_VARIANT and fixed <= end <= length <= size


@kernel
def stored_header_crc(data: Bytes, start: int, variant: int) -> int:
    return int64(u32(data, start + (_V2_CRC if is_v2(variant) else _V1_CRC), is_little(variant)))


@kernel
def stored_value_crc(data: Bytes, start: int, variant: int) -> int:
    return int64(u32(data, start + (_V2_VALUE_CRC if is_v2(variant) else _V1_VALUE_CRC), is_little(variant)))


@kernel
def header_crc(data: Bytes, start: int, size: int, variant: int, end: int) -> int:
    """The checksum of a header that ends at ``end``, over the bytes that exist; ``UNKNOWN`` if its range is unknown."""
    if is_v2(variant) and size < _V2_HEADER_LENGTH + 4:
        return int64(UNKNOWN)
    # A V1 row that ends before the attributes is shorter than either kind of header.
    last = layout.V1_LONG_HEADER if end == UNKNOWN and not is_v2(variant) else end
    return _range_crc(data, start, size, header_first(variant), last)


@kernel
def value_crc(data: Bytes, start: int, size: int, variant: int, end: int, length: int) -> int:
    """The checksum of the bytes after the header that exist; ``UNKNOWN`` if its range is unknown."""
    if end == UNKNOWN or (is_v2(variant) and size < layout.V2_LENGTH_END):
        return int64(UNKNOWN)
    return _range_crc(data, start, size, end, length)


@kernel
def header_checks(data: Bytes, start: int, size: int, variant: int, end: int, computed: int) -> int:
    """1 if the header's checksum is right, 0 if wrong, ``UNKNOWN`` if a byte of its range is missing."""
    if end == UNKNOWN and not (is_v2(variant) and size >= _V2_HEADER_LENGTH + 4):
        return UNKNOWN
    if max(end, (_V2_CRC if is_v2(variant) else _V1_CRC) + 4) > size:
        return UNKNOWN
    return 1 if computed == stored_header_crc(data, start, variant) else 0


@kernel
def value_checks(data: Bytes, start: int, size: int, variant: int, end: int, length: int, computed: int) -> int:
    """1 if the value's checksum is right, 0 if wrong, ``UNKNOWN`` if a byte of its range is missing."""
    stored = _V2_VALUE_CRC if is_v2(variant) else _V1_VALUE_CRC
    if computed == UNKNOWN or size < stored + 4 or length > max(end, size):
        return UNKNOWN
    return 1 if computed == stored_value_crc(data, start, variant) else 0


@kernel
def header_crc_ok(data: Bytes, start: int, size: int, variant: int) -> bool:
    """Whether the header is complete and its checksum is right."""
    end = header_end(data, start, size, variant)
    return header_checks(data, start, size, variant, end, header_crc(data, start, size, variant, end)) == 1


@kernel
def magic_variant(data: Bytes, start: int, size: int) -> int:
    """The variant from the version byte and V2's magic word, ``NO_VARIANT`` if they do not determine the byte order."""
    if size < _V2_MAGIC + 4 or u8(data, start) != 2:
        return layout.NO_VARIANT
    if u32(data, start + _V2_MAGIC, False) == layout.MAGIC:
        return layout.V2_BIG
    return layout.V2_LITTLE if u32(data, start + _V2_MAGIC, True) == layout.MAGIC else layout.NO_VARIANT


@kernel
def checked_variant(data: Bytes, start: int, size: int, big: int) -> int:
    """The variant, ``big`` or ``big + 1``, in whose byte order the header's checksum is right."""
    big_checks = header_crc_ok(data, start, size, big)
    if big_checks == header_crc_ok(data, start, size, big + 1):
        return layout.NO_VARIANT
    return big if big_checks else big + 1


@kernel
def event_variant(data: Bytes, start: int, size: int) -> int:
    """Version and byte order of a row that is one event.

    The first of these that determines the byte order counts: V2's magic word, a stored length that equals the row's size, a
    header checksum that is right. The default is big-endian.
    """
    if size < 1 or (u8(data, start) != 0 and u8(data, start) != 2):
        return layout.NO_VARIANT
    variant = magic_variant(data, start, size)
    if variant != layout.NO_VARIANT:
        return variant
    big = layout.V2_BIG if u8(data, start) == 2 else layout.V1_BIG
    big_fits = total_length(data, start, size, big) == size
    if big_fits != (total_length(data, start, size, big + 1) == size):
        return big if big_fits else big + 1
    variant = checked_variant(data, start, size, big)
    return big if variant == layout.NO_VARIANT else variant


@kernel
def header_error(data: Bytes, start: int, size: int, variant: int, checks: int) -> int:
    """The first error of an event's header. ``OK`` means that its length is valid."""
    if size < 1:
        return TRUNCATED
    if variant == layout.NO_VARIANT:
        return BAD_MAGIC
    end = header_end(data, start, size, variant)
    length = total_length(data, start, size, variant)
    if is_v2(variant):
        if size < layout.V2_KEY:
            return TRUNCATED
        if u32(data, start + _V2_MAGIC, is_little(variant)) != layout.MAGIC:
            return BAD_MAGIC
        if end < layout.V2_KEY or end > length:
            return BAD_LENGTH
    elif end == UNKNOWN or size < end:
        return TRUNCATED
    elif length < layout.MIN_LENGTH:
        return BAD_LENGTH
    if size < end:
        return TRUNCATED
    return OK if checks == 1 else HEADER_CRC_MISMATCH


@kernel
def body_error(size: int, length: int, bounded: bool, checks: int) -> int:
    """The first error after a valid header."""
    if length > size:
        return TRUNCATED
    if not bounded:
        return BAD_LENGTH
    return OK if checks == 1 else VALUE_CRC_MISMATCH


@kernel
def find_opcodes(attributes: npt.NDArray[Any], variants: npt.NDArray[np.int8], out: npt.NDArray[np.int8]) -> None:
    """Index into ``OPCODES``, -1 for none. V1 has two bits; if both are set, it is UPSERT. V2 has a number; 3 is no opcode."""
    for row in range(out.size):
        bits = int64(attributes[row]) & layout.V2_OPCODE_MASK
        if bits == 3:
            out[row] = -1 if is_v2(variants[row]) else 0
        else:
            out[row] = bits - 1


def key_kinds(bits: npt.NDArray[Any], is_v2: Bools) -> npt.NDArray[np.int8]:
    """The kind of each key, from the attributes: a bit in V1, a number in V2."""
    kinds = empty(len(bits), np.int8)
    find_key_kinds(bits, is_v2, kinds)
    return kinds


@kernel
def find_key_kinds(bits: npt.NDArray[Any], is_v2: Bools, out: npt.NDArray[np.int8]) -> None:
    for row in range(out.size):
        if is_v2[row]:
            out[row] = ((int64(bits[row]) >> layout.V2_KEY_SHIFT) & layout.V2_KEY_MASK) - 1
        else:
            out[row] = BYTES_KEY if int64(bits[row]) & layout.V1_BYTES_KEY else LONG_KEY
