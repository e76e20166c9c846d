"""Blocks too small for a call of a library: lz4 and snappy decoded by kernels, many of them in one call.

Nobody frames blocks of a few bytes but to make decompression slow: a library's call takes as long as decoding some hundred
bytes. Kernels accept what the libraries accept: for lz4 that is what `LZ4_decompress_safe` does, down to how far from the end
the last match may lie.
"""

from __future__ import annotations

import numpy as np

from sparkwire.kafka import codecs
from sparkwire.kafka.codecs import snappy_size
from sparkwire.kernels import Bytes, copy, i32, int64, kernel, store_u8, u8, u16, u32

_LAST_LITERALS = 5  # [bytes] at the end of a block that are literals
_MATCH_LIMIT = 12  # [bytes] before the end of the room for it in which no match begins
_MIN_MATCH = 4  # [bytes]
_RUN = 15  # from here on a length goes on in the bytes that follow


@kernel
def inflate_run(data: Bytes, kind: int, pos: int, end: int, out: Bytes, at: int, room: int, left: int) -> int:
    """Decompress small blocks with their framing, or one that takes all the ``room``: the size, ``OVER_LIMIT`` or ``FAILED``."""
    begin = at
    while pos < end:
        stored = False
        if kind == codecs.XERIAL_RUN:
            size = int64(i32(data, pos, False))
            room = snappy_size(data, pos + 4, pos + 4 + size)
            if room > left - (at - begin):
                return codecs.OVER_LIMIT
        else:
            word = int64(u32(data, pos, True))
            stored = word >= codecs.LZ4_STORED
            size = word & ~codecs.LZ4_STORED
            if size <= codecs.SMALL:
                room = size * codecs.LZ4_GROWTH
        pos += 4
        if stored:
            copy(out, at, data, pos, size)
            written = size
        elif kind == codecs.XERIAL_RUN:
            written = snappy_block(data, pos + _varint_width(data, pos), pos + size, out, at, room)
        else:
            written = lz4_block(data, pos, pos + size, out, at, room)
        if written < 0:
            return codecs.FAILED
        at += written
        if at - begin > left:
            return codecs.OVER_LIMIT
        pos += size + (4 if kind == codecs.LZ4_CHECKED_RUN else 0)
    return at - begin


@kernel
def _varint_width(data: Bytes, pos: int) -> int:
    width = 1
    while u8(data, pos + width - 1) >= 128:
        width += 1
    return width


@kernel
def lz4_block(source: Bytes, pos: int, end: int, out: Bytes, at: int, room: int) -> int:
    """Decode the block ``source[pos:end]`` to ``out[at:at + room]``; its size, or ``FAILED``."""
    start, limit = at, at + room
    while pos < end:
        token = int64(u8(source, pos))
        pos += 1
        size = token >> 4
        if size == _RUN:
            size, pos = _lz4_length(source, pos, end - _RUN, size)
            if pos < 0:
                return codecs.FAILED
        if at + size > limit - _MATCH_LIMIT or pos + size > end - 3 - _LAST_LITERALS:
            # Literals so near to either end are the last sequence.
            if pos + size != end or at + size > limit:
                return codecs.FAILED
            copy(out, at, source, pos, size)
            return at + size - start
        copy(out, at, source, pos, size)
        at += size
        pos += size
        offset = int64(u16(source, pos, True))
        pos += 2
        size = token & 15
        if size == _RUN:
            size, pos = _lz4_length(source, pos, end - _LAST_LITERALS + 1, size)
            if pos < 0:
                return codecs.FAILED
        size += _MIN_MATCH
        if offset > at - start or at + size > limit - _LAST_LITERALS:
            return codecs.FAILED
        _repeat(out, at, offset, size)
        at += size
    return codecs.FAILED


@kernel
def _lz4_length(source: Bytes, pos: int, last: int, size: int) -> tuple[int, int]:
    """A length that goes on, and the position after it; -1 where it reaches ``last``."""
    if pos >= last:
        return size, -1
    while True:
        byte = int64(u8(source, pos))
        pos += 1
        size += byte
        if pos > last:
            return size, -1
        if byte < 255:
            return size, pos


@kernel
def snappy_block(source: Bytes, pos: int, end: int, out: Bytes, at: int, room: int) -> int:
    """Decode the elements ``source[pos:end]`` of a block, which are to fill ``out[at:at + room]``: ``room`` or ``FAILED``."""
    start, limit = at, at + room
    while pos < end:
        tag = int64(u8(source, pos))
        pos += 1
        kind = tag & 3
        if kind == 0:
            size = tag >> 2
            if size >= 60:
                width = size - 59
                if width > end - pos:
                    return codecs.FAILED
                size = _little(source, pos, width)
                pos += width
            size += 1
            if size > end - pos or size > limit - at:
                return codecs.FAILED
            copy(out, at, source, pos, size)
            pos += size
        else:
            width = 4 if kind == 3 else kind
            if width > end - pos:
                return codecs.FAILED
            offset = _little(source, pos, width)
            size = 1 + (tag >> 2)
            if kind == 1:
                offset |= (tag >> 5) << 8
                size = 4 + ((tag >> 2) & 7)
            pos += width
            if offset == 0 or offset > at - start or size > limit - at:
                return codecs.FAILED
            _repeat(out, at, offset, size)
        at += size
    return room if at == limit else codecs.FAILED


@kernel
def _little(source: Bytes, pos: int, width: int) -> int:
    """A little-endian number of 1 to 4 bytes."""
    value = int64(0)
    for i in range(width):
        value |= int64(u8(source, pos + i)) << (8 * i)
    return value


@kernel
def _repeat(out: Bytes, at: int, offset: int, size: int) -> None:
    """Copy what lies ``offset`` bytes before, which may be what is being written; zeros for an offset of 0, as lz4 does."""
    if offset >= size:
        copy(out, at, out, at - offset, size)
        return
    for i in range(size):
        store_u8(out, at + i, u8(out, at + i - offset) if offset else np.uint8(0))
