"""Gzip, member by member: for payloads that the library refuses, because something follows their last member.

Kafka reads such payloads. A library can be asked for one member at a time, but at such a price that a payload of empty
members takes minutes; here a member costs what its bytes do.

Source: RFC 1952; what is refused is what zlib refuses.
"""

from __future__ import annotations

import numpy as np

from sparkwire.kafka.codecs import FAILED
from sparkwire.kafka.deflate import Codes, inflate_blocks
from sparkwire.kernels import Bytes, crc32, int64, kernel, u8, u16, u32

_HEADER = 10  # [bytes]
_TRAILER = 8  # CRC-32, size [bytes]
_LEAST = _HEADER + _TRAILER
_MAGIC = 0x88B1F  # of three bytes, the method with it
_TEXT_FLAGS = 0xE0  # reserved
_HEADER_CRC, _EXTRA, _NAME, _COMMENT = 2, 4, 8, 16


@kernel
def count_magics(source: Bytes, pos: int, end: int) -> int:
    """How many members there can be at most: how often their first three bytes occur."""
    count = 0
    for at in range(pos, end - 2):
        count += u8(source, at) == 0x1F and u8(source, at + 1) == 0x8B and u8(source, at + 2) == 8
    return count


@kernel
def inflate_members(source: Bytes, pos: int, end: int, out: Bytes, room: int, work: Codes, start: int) -> int:
    """Decompress members to ``out[start:start + room]``; their size, ``FAILED`` or ``NO_ROOM``."""
    at, limit = start, start + room
    while True:
        pos = _after_header(source, pos, end)
        if pos < 0:
            return FAILED
        stop, pos = inflate_blocks(source, pos, end, out, at, limit, work)
        if stop < 0:
            return stop
        if end - pos < _TRAILER or u32(source, pos, True) != crc32(out, at, stop - at):
            return FAILED
        if u32(source, pos + 4, True) != np.uint32(stop - at):
            return FAILED
        at = stop
        pos += _TRAILER
        if end - pos <= _LEAST or int64(u32(source, pos, True)) & 0xFFFFFF != _MAGIC:
            return at - start


@kernel
def _after_header(source: Bytes, pos: int, end: int) -> int:
    """Where a member's compressed bytes begin, -1 where none does."""
    begin = pos
    if end - pos < _HEADER or int64(u32(source, pos, True)) & 0xFFFFFF != _MAGIC:
        return -1
    flags = int64(u8(source, pos + 3))
    pos += _HEADER
    if flags & _TEXT_FLAGS:
        return -1
    if flags & _EXTRA:
        if end - pos < 2:
            return -1
        pos += 2 + int64(u16(source, pos, True))
    for text in (_NAME, _COMMENT):
        if flags & text:
            while pos < end and u8(source, pos) != 0:
                pos += 1
            pos += 1
    if flags & _HEADER_CRC:
        if end - pos < 2 or int64(crc32(source, begin, pos - begin)) & 0xFFFF != int64(u16(source, pos, True)):
            return -1
        pos += 2
    return pos if pos <= end else -1
