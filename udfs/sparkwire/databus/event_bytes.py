"""Kernels that write serialized events: they measure each event, then write its bytes."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.databus import layout
from sparkwire.databus.event_kernels import header_end, header_first, is_little, is_v2
from sparkwire.databus.parts import (
    DIGEST,
    KEY,
    KEY_DIGEST,
    KEY_VERSION,
    METADATA,
    METADATA_DIGEST,
    METADATA_VERSION,
    VALUE,
    VERSION,
)
from sparkwire.kernels import (
    Bytes,
    Ints,
    copy,
    crc32_raw,
    i32,
    i64,
    int64,
    kernel,
    store_i16,
    store_i32,
    store_i64,
    store_u8,
    variant_of,
)
from sparkwire.kernels.field_access import field_writer

_COMPUTED: Final = ("version", "magic", "header_length", "header_crc", "value_crc", "schema_id", "schema_version")
FIXED: Final = tuple(name for name in layout.FIELDS if name not in _COMPUTED)
"""The fixed fields from columns: all except those that the kernels here compute."""

_V1_CRC = layout.V1["header_crc"].offset
_V1_SCHEMA_ID = layout.V1["schema_id"].offset
_V1_VALUE_CRC = layout.V1["value_crc"].offset
_V2_MAGIC = layout.V2["magic"].offset
_V2_HEADER_LENGTH = layout.V2["header_length"].offset
_V2_CRC = layout.V2["header_crc"].offset
_V2_VALUE_CRC = layout.V2["value_crc"].offset


_TOGETHER: Final = 2
"""number of rows written before their checksums; with more rows, the processor would wait for memory"""

_write_fixed = field_writer(
    (
        (),  # NO_VARIANT has no fields
        *(variant_of(table, FIXED, little) for table in (layout.V1, layout.V2) for little in (False, True)),
    )
)


class Parts(NamedTuple):
    """The variable parts of events, by the span names of `parts`: KEY, VALUE, DIGEST …

    A metadata or payload part exists if its data exists; a missing digest is 16 zeros.
    """

    data: tuple[Bytes, ...]
    """the bytes of each span's column"""
    starts: Ints
    """(SPANS, rows), positions in the span's ``data`` [bytes]"""
    sizes: Ints
    """(SPANS, rows) [bytes], -1 for none"""
    versions: Ints
    """(NUMBERS, rows), the schema versions"""


@kernel
def measure_events(variants: npt.NDArray[np.int8], kinds: npt.NDArray[np.int8], parts: Parts, sizes: Ints) -> None:
    """Size of every event [bytes]."""
    for row in range(variants.size):
        key = _key_size(int64(kinds[row]), parts, row)
        if is_v2(int64(variants[row])):
            sizes[row] = layout.V2_KEY + key + _part_size(parts, row, METADATA, METADATA_DIGEST)
            sizes[row] += _part_size(parts, row, VALUE, DIGEST)
        else:
            sizes[row] = layout.V1_KEY + key + max(parts.sizes[VALUE, row], 0)


@kernel
def write_events(
    variants: npt.NDArray[np.int8],
    kinds: npt.NDArray[np.int8],
    fixed: tuple[Ints, ...],
    parts: Parts,
    offsets: npt.NDArray[np.int32],
    out: Bytes,
) -> None:
    """Write every event that has a size to ``out[offsets[row]:offsets[row + 1]]``.

    It writes rows in order, because a copy may overwrite the start of the next row. It computes checksums only after
    each `_TOGETHER` rows, because a processor stalls when it reads bytes that were just written.
    """
    for first in range(0, variants.size, _TOGETHER):
        stop = min(first + _TOGETHER, variants.size)
        for row in range(first, stop):
            start, end = int64(offsets[row]), int64(offsets[row + 1])
            if end > start:
                variant = int64(variants[row])
                _write_fixed(out, start, variant, fixed, row)
                if is_v2(variant):
                    _write_v2(out, start, is_little(variant), int64(kinds[row]), parts, row)
                else:
                    _write_v1(out, start, is_little(variant), int64(kinds[row]), parts, row)
        for row in range(first, stop):
            if offsets[row + 1] > offsets[row]:
                _write_value_crc(out, int64(offsets[row]), int64(offsets[row + 1]), int64(variants[row]))
        for row in range(first, stop):
            if offsets[row + 1] > offsets[row]:
                _write_header_crc(out, int64(offsets[row]), int64(offsets[row + 1]), int64(variants[row]))


@kernel
def _write_value_crc(out: Bytes, start: int, end: int, variant: int) -> None:
    body = start + header_end(out, start, end - start, variant)
    at = start + (_V2_VALUE_CRC if is_v2(variant) else _V1_VALUE_CRC)
    store_i32(out, at, crc32_raw(out, body, end - body), is_little(variant))


@kernel
def _write_header_crc(out: Bytes, start: int, end: int, variant: int) -> None:
    """Write the header's checksum; it covers the value's checksum."""
    first, last = header_first(variant), header_end(out, start, end - start, variant)
    at = start + (_V2_CRC if is_v2(variant) else _V1_CRC)
    store_i32(out, at, crc32_raw(out, start + first, last - first), is_little(variant))


@kernel
def _write_v1(out: Bytes, start: int, little: bool, kind: int, parts: Parts, row: int) -> None:
    """Write everything except the checksums."""
    store_u8(out, start, 0)
    _write_digest(out, start + _V1_SCHEMA_ID, parts, row, DIGEST)
    if parts.sizes[DIGEST, row] < 0:
        store_i16(out, start + _V1_SCHEMA_ID, parts.versions[VERSION, row], little)
    _write_data(out, _write_key(out, start + layout.V1_KEY, little, kind, parts, row), parts, row, VALUE)


@kernel
def _write_v2(out: Bytes, start: int, little: bool, kind: int, parts: Parts, row: int) -> None:
    """Write everything except the checksums."""
    store_u8(out, start, 2)
    store_i32(out, start + _V2_MAGIC, layout.MAGIC, little)
    at = _write_key(out, start + layout.V2_KEY, little, kind, parts, row)
    store_i32(out, start + _V2_HEADER_LENGTH, at - start, little)
    if parts.sizes[METADATA, row] >= 0:
        at = _write_part(out, at, little, parts, row, METADATA, METADATA_DIGEST, METADATA_VERSION)
    if parts.sizes[VALUE, row] >= 0:
        _write_part(out, at, little, parts, row, VALUE, DIGEST, VERSION)


@kernel
def _key_size(kind: int, parts: Parts, row: int) -> int:
    """Size of the key, including its length or its part's head [bytes]."""
    if kind == layout.LONG_KEY:
        return 8
    if kind == layout.BYTES_KEY:
        return int64(4 + max(parts.sizes[KEY, row], 0))
    return (
        0
        if kind == layout.NO_KEY
        else layout.PART_SIZE + _digest_size(parts, row, KEY_DIGEST) + max(parts.sizes[KEY, row], 0)
    )


@kernel
def _write_key(out: Bytes, at: int, little: bool, kind: int, parts: Parts, row: int) -> int:
    """Write the key and return its end. A LONG is a fixed field, so it is already written."""
    if kind == layout.LONG_KEY:
        return at + 8
    if kind == layout.BYTES_KEY:
        store_i32(out, at, max(parts.sizes[KEY, row], 0), little)
        return _write_data(out, at + 4, parts, row, KEY)
    return at if kind == layout.NO_KEY else _write_part(out, at, little, parts, row, KEY, KEY_DIGEST, KEY_VERSION)


@kernel
def _part_size(parts: Parts, row: int, content: int, digest: int) -> int:
    size = int64(parts.sizes[content, row])
    return 0 if size < 0 else layout.PART_SIZE + _digest_size(parts, row, digest) + size


@kernel
def _write_part(
    out: Bytes, at: int, little: bool, parts: Parts, row: int, content: int, digest: int, version: int
) -> int:
    """Write length, version, kind of digest, digest and data; return the part's end."""
    store_i32(out, at, max(parts.sizes[content, row], 0), little)
    digest_kind = 1 if parts.sizes[digest, row] == layout.CRC32_SIZE else 0
    store_i16(out, at + 4, parts.versions[version, row] << 2 | digest_kind, little)
    at = _write_digest(out, at + layout.PART_SIZE, parts, row, digest)
    return _write_data(out, at, parts, row, content)


@kernel
def _digest_size(parts: Parts, row: int, digest: int) -> int:
    return layout.CRC32_SIZE if parts.sizes[digest, row] == layout.CRC32_SIZE else layout.MD5_SIZE


@kernel
def _write_digest(out: Bytes, at: int, parts: Parts, row: int, digest: int) -> int:
    """Write the digest, 16 zeros for none; return its end."""
    size, start, data = parts.sizes[digest, row], parts.starts[digest, row], parts.data[digest]
    if size == layout.CRC32_SIZE:
        store_i32(out, at, i32(data, start, True), True)
        return at + layout.CRC32_SIZE
    store_i64(out, at, i64(data, start, True) if size > 0 else 0, True)
    store_i64(out, at + 8, i64(data, start + 8, True) if size > 0 else 0, True)
    return at + layout.MD5_SIZE


@kernel
def _write_data(out: Bytes, at: int, parts: Parts, row: int, content: int) -> int:
    size = int64(parts.sizes[content, row])
    if size <= 0:
        return at
    copy(out, at, parts.data[content], parts.starts[content, row], size)
    return at + size
