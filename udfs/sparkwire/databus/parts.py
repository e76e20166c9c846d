"""Kernels that locate the parts of one event: key, value, metadata and digests.

An event is ``data[start:start + size]``. A kernel notes a part only after it has checked that its bytes are inside the event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparkwire.databus import layout
from sparkwire.databus.event_kernels import UNKNOWN, header_end, is_little, is_v2, key_type, total_length
from sparkwire.kernels import Bytes, Ints, i16, i32, int64, kernel, u16

_V2_ATTRIBUTES = layout.V2["attributes"].offset

# The rows of `PartSpans.starts` and `sizes`, then the rows of `numbers`: stored sizes and schema versions.
KEY, VALUE, DIGEST, METADATA, METADATA_DIGEST, KEY_DIGEST = range(6)
SPANS = 6
VALUE_SIZE, VERSION, METADATA_VERSION, KEY_VERSION = range(4)
NUMBERS = 4
NO_NUMBER = -(1 << 40)


class PartSpans(NamedTuple):
    """Starts, sizes and numbers of the parts of events; `UNKNOWN` or `NO_NUMBER` for a part that was not found."""

    starts: Ints
    """(SPANS, rows) [bytes from the start of the data]"""
    sizes: Ints
    """(SPANS, rows) [bytes]"""
    numbers: Ints
    """(NUMBERS, rows)"""


def one_row() -> PartSpans:
    """Arrays for one row, in which no part is found yet."""
    return PartSpans(*(np.full((k, 1), UNKNOWN, np.int64) for k in (SPANS, SPANS, NUMBERS)))


@kernel
def clear_row(spans: PartSpans, row: int) -> None:
    """Mark every part of a row as not found."""
    for k in range(SPANS):
        spans.starts[k, row] = 0
        spans.sizes[k, row] = UNKNOWN
    for k in range(NUMBERS):
        spans.numbers[k, row] = NO_NUMBER


@kernel
def read_part(
    data: Bytes,
    start: int,
    size: int,
    at: int,
    little: bool,
    row: int,
    spans: PartSpans,
    content: int,
    digest: int,
    version: int,
) -> int:
    """Locate data and digest of the part at ``at``. Return the part's end, ``UNKNOWN`` if it cannot be read."""
    if at < 0 or at + 4 > size:
        return int64(UNKNOWN)
    length = int64(i32(data, start + at, little))
    if content == VALUE and length >= 0:
        spans.numbers[VALUE_SIZE, row] = length
    if at + layout.PART_SIZE > size:
        return int64(UNKNOWN)
    attributes = int64(i16(data, start + at + 4, little))
    spans.numbers[version, row] = attributes >> 2
    if attributes & 3 > 1:
        return int64(UNKNOWN)
    digest_size = layout.MD5_SIZE if attributes & 3 == 0 else layout.CRC32_SIZE
    at += layout.PART_SIZE
    if at + digest_size <= size:
        spans.starts[digest, row] = start + at
        spans.sizes[digest, row] = digest_size
    at += digest_size
    if length < 0:
        return int64(UNKNOWN)
    if at + length <= size:
        spans.starts[content, row] = start + at
        spans.sizes[content, row] = length
    return at + length


@kernel
def read_parts(data: Bytes, start: int, size: int, variant: int, row: int, spans: PartSpans) -> bool:
    """Locate key, value, metadata and digests of one event. Return whether key and parts are within their bounds.

    The spans of parts that are not found stay unchanged.
    """
    if is_v2(variant):
        return _read_v2_parts(data, start, size, variant, row, spans)
    return _read_v1_parts(data, start, size, variant, row, spans)


@kernel
def read_key(data: Bytes, start: int, size: int, variant: int, row: int, spans: PartSpans) -> None:
    """Locate the key's bytes of one event, and the other spans of the key that `read_parts` notes."""
    if is_v2(variant):
        if size >= _V2_ATTRIBUTES + 2:
            _read_v2_key(data, start, size, variant, row, spans)
    else:
        _read_v1_key(data, start, size, variant, row, spans)


@kernel
def _read_v1_parts(data: Bytes, start: int, size: int, variant: int, row: int, spans: PartSpans) -> bool:
    value = _read_v1_key(data, start, size, variant, row, spans)
    length = total_length(data, start, size, variant)
    if value == UNKNOWN or length < value:
        return False
    spans.numbers[VALUE_SIZE, row] = length - value
    if length <= size:
        spans.starts[VALUE, row] = start + value
        spans.sizes[VALUE, row] = length - value
    return True


@kernel
def _read_v1_key(data: Bytes, start: int, size: int, variant: int, row: int, spans: PartSpans) -> int:
    """Return the end of the key, ``UNKNOWN`` if it cannot be read."""
    value = header_end(data, start, size, variant)
    if value != layout.V1_BYTES_HEADER:
        return value
    return _read_bytes_key(data, start, size, layout.V1_KEY, is_little(variant), row, spans)


@kernel
def _read_bytes_key(data: Bytes, start: int, size: int, at: int, little: bool, row: int, spans: PartSpans) -> int:
    """Locate the key whose size is at ``at``. Return the key's end, ``UNKNOWN`` if it cannot be read."""
    first = at + 4
    if size < first:
        return int64(UNKNOWN)
    key_size = int64(i32(data, start + at, little))
    if key_size < 0:
        return int64(UNKNOWN)
    if first + key_size <= size:
        spans.starts[KEY, row] = start + first
        spans.sizes[KEY, row] = key_size
    return first + key_size


@kernel
def _read_v2_parts(data: Bytes, start: int, size: int, variant: int, row: int, spans: PartSpans) -> bool:
    if size < _V2_ATTRIBUTES + 2:
        return False
    little = is_little(variant)
    body = header_end(data, start, size, variant)
    key_end = _read_v2_key(data, start, size, variant, row, spans)
    valid_key = 0 <= key_end <= body
    if body < layout.V2_KEY:
        return False
    attributes = int64(u16(data, start + _V2_ATTRIBUTES, little))
    end = body
    if attributes & layout.V2_METADATA:
        end = read_part(data, start, size, end, little, row, spans, METADATA, METADATA_DIGEST, METADATA_VERSION)
    if attributes & layout.V2_PAYLOAD:
        end = read_part(data, start, size, end, little, row, spans, VALUE, DIGEST, VERSION)
    return valid_key and 0 <= end <= total_length(data, start, size, variant)


@kernel
def _read_v2_key(data: Bytes, start: int, size: int, variant: int, row: int, spans: PartSpans) -> int:
    """Return the end of the key, ``UNKNOWN`` if it cannot be read."""
    kind = key_type(data, start, variant)
    little = is_little(variant)
    if kind == layout.SCHEMA_KEY:
        return read_part(data, start, size, layout.V2_KEY, little, row, spans, KEY, KEY_DIGEST, KEY_VERSION)
    if kind == layout.LONG_KEY:
        return int64(layout.V2_KEY + 8)
    if kind == layout.NO_KEY:
        # Databus reports this only when a client reads the key.
        return int64(layout.V2_KEY)
    return _read_bytes_key(data, start, size, layout.V2_KEY, little, row, spans)
