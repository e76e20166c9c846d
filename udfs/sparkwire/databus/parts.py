"""Kernels for the parts of one event: where key, value, metadata and digests are.

An event is ``data[start:start + size]``; a part counts only after a check that its bytes are inside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparkwire.databus import layout
from sparkwire.databus.event_kernels import UNKNOWN, header_end, is_little, is_v2, key_type, total_length
from sparkwire.kernels import Bytes, Ints, i16, i32, int64, kernel, u16

_V2_ATTRIBUTES = layout.V2["attributes"].offset

# The rows of `starts` and `sizes`, and those of `numbers`: sizes as announced, versions.
KEY, VALUE, DIGEST, METADATA, METADATA_DIGEST, KEY_DIGEST = range(6)
SPANS = 6
VALUE_SIZE, VERSION, METADATA_VERSION, KEY_VERSION = range(4)
NUMBERS = 4
NO_NUMBER = -(1 << 40)


class PartSpans(NamedTuple):
    """Where the parts of events are, and what they say of themselves; what is not found is `UNKNOWN` or `NO_NUMBER`."""

    starts: Ints
    """(SPANS, rows) [bytes from the start of the data]"""
    sizes: Ints
    """(SPANS, rows) [bytes]"""
    numbers: Ints
    """(NUMBERS, rows)"""


def one_row() -> PartSpans:
    """Room for one row, with nothing found."""
    return PartSpans(*(np.full((k, 1), UNKNOWN, np.int64) for k in (SPANS, SPANS, NUMBERS)))


@kernel
def clear_row(spans: PartSpans, row: int) -> None:
    """Nothing found yet."""
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
    """Note where the data and the digest of the part at ``at`` are; where it ends, ``UNKNOWN`` where nothing says it."""
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
    """Note where key, value, metadata and digests of one event are; whether key and parts keep their bounds.

    What is not found stays as it was.
    """
    if is_v2(variant):
        return _read_v2_parts(data, start, size, variant, row, spans)
    return _read_v1_parts(data, start, size, variant, row, spans)


@kernel
def read_key(data: Bytes, start: int, size: int, variant: int, row: int, spans: PartSpans) -> None:
    """Note where the key of one event is, where it has bytes, and with it what `read_parts` would note of it."""
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
    """Where the key ends, ``UNKNOWN`` where nothing says it."""
    value = header_end(data, start, size, variant)
    if value != layout.V1_BYTES_HEADER:
        return value
    return _read_bytes_key(data, start, size, layout.V1_KEY, is_little(variant), row, spans)


@kernel
def _read_bytes_key(data: Bytes, start: int, size: int, at: int, little: bool, row: int, spans: PartSpans) -> int:
    """Note where the key is whose size is at ``at``; where it ends, ``UNKNOWN`` where nothing says it."""
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
    intact = 0 <= key_end <= body
    if body < layout.V2_KEY:
        return False
    attributes = int64(u16(data, start + _V2_ATTRIBUTES, little))
    end = body
    if attributes & layout.V2_METADATA:
        end = read_part(data, start, size, end, little, row, spans, METADATA, METADATA_DIGEST, METADATA_VERSION)
    if attributes & layout.V2_PAYLOAD:
        end = read_part(data, start, size, end, little, row, spans, VALUE, DIGEST, VERSION)
    return intact and 0 <= end <= total_length(data, start, size, variant)


@kernel
def _read_v2_key(data: Bytes, start: int, size: int, variant: int, row: int, spans: PartSpans) -> int:
    """Where the key ends, ``UNKNOWN`` where nothing says it."""
    kind = key_type(data, start, variant)
    little = is_little(variant)
    if kind == layout.SCHEMA_KEY:
        return read_part(data, start, size, layout.V2_KEY, little, row, spans, KEY, KEY_DIGEST, KEY_VERSION)
    if kind == layout.LONG_KEY:
        return int64(layout.V2_KEY + 8)
    if kind == layout.NO_KEY:
        # Databus notices only when the key is requested.
        return int64(layout.V2_KEY)
    return _read_bytes_key(data, start, size, layout.V2_KEY, little, row, spans)
