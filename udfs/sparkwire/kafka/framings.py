"""The framings of compressed payloads: the blocks of a payload, and the largest decompressed size of each.

The package reads the framings itself, because Kafka accepts other data than the libraries do:

- gzip: any number of members, with their trailers checked; bytes after the last member are ignored
- snappy: a raw block, or xerial framing (versions unchecked, a second header may follow, no empty chunk)
- lz4: one frame of version 1 with independent blocks and without dictionary; the decoder verifies block checksums, but not the
  content size and the content checksum. Bytes after the end mark are ignored. It can skip the checksum of the frame's header,
  because in magic 0 that checksum is wrong by convention (KAFKA-3160)
- zstd: frames and skippable frames to the end of the payload, windows of up to 2^27 bytes

Each kernel here adds the blocks of a payload to a plan; `codecs` assigns the kernels to codecs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.kafka.layout import NONE
from sparkwire.kernels import Bytes, i32, i64, int64, kernel, u8, u32

BAD_FRAME = -1
"""the result in place of a number of blocks, if the payload cannot be read"""


class Blocks(NamedTuple):
    """The blocks of compressed payloads, with an item for each."""

    codec: npt.NDArray[np.int8]
    """codec that decompresses the block; NONE if the framing stores it uncompressed"""
    start: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    """[bytes]"""
    room: npt.NDArray[np.int64]
    """largest decompressed size [bytes]; a guess if the codec does not limit it"""


@kernel
def add_block(out: Blocks, count: int, codec: int, start: int, size: int, room: int) -> int:
    """Add a block if ``out`` has room for it. Return the new number of blocks."""
    if count < out.codec.size:
        out.codec[count] = codec
        out.start[count] = start
        out.size[count] = size
        out.room[count] = room
    return count + 1


# -- gzip

_GZIP_LEAST = 18  # header and trailer [bytes]
_GZIP_GROWTH = 1032  # a byte of deflate decompresses to at most this many bytes


@kernel
def plan_gzip(data: Bytes, start: int, end: int, codec: int, magic: int, out: Blocks, count: int) -> int:
    """One block: the whole payload."""
    return add_block(out, count, codec, start, end - start, _gzip_room(data, start, end))


@kernel
def _gzip_room(data: Bytes, start: int, end: int) -> int:
    """The size in the last trailer. It is a guess, because the trailer may be missing, or other bytes may follow it."""
    if end - start < _GZIP_LEAST:
        return 0
    return min(int64(u32(data, end - 4, True)), (end - start) * _GZIP_GROWTH)


# -- snappy

_XERIAL = int.from_bytes(bytes.fromhex("82534e4150505900"), "big", signed=True)
_XERIAL_HEADER = 16  # magic, version, compatible version [bytes]


@kernel
def plan_snappy(data: Bytes, start: int, end: int, codec: int, magic: int, out: Blocks, count: int) -> int:
    """A raw block, or the blocks of xerial framing."""
    if end - start < _XERIAL_HEADER or not _is_xerial(data, start):
        room = _snappy_size(data, start, end)
        return BAD_FRAME if room < 0 else add_block(out, count, codec, start, end - start, room)
    pos = start + _XERIAL_HEADER
    while pos < end:
        if end - pos >= _XERIAL_HEADER and _is_xerial(data, pos):
            pos += _XERIAL_HEADER
            continue
        if end - pos < 4:
            return BAD_FRAME
        size = int64(i32(data, pos, False))
        pos += 4
        if size <= 0 or size > end - pos:
            return BAD_FRAME
        room = _snappy_size(data, pos, pos + size)
        if room < 0:
            return BAD_FRAME
        count = add_block(out, count, codec, pos, size, room)
        pos += size
    return count


@kernel
def _is_xerial(data: Bytes, pos: int) -> bool:
    return i64(data, pos, False) == _XERIAL


@kernel
def _snappy_size(data: Bytes, pos: int, end: int) -> int:
    """The size that a raw block states [bytes], negative if it is missing or does not fit a Java int."""
    size = int64(0)
    for shift in range(0, 35, 7):
        if pos >= end:
            return BAD_FRAME
        byte = int64(u8(data, pos))
        size |= (byte & 127) << shift
        pos += 1
        if byte < 128:
            return size if size < 1 << 31 else BAD_FRAME
    return BAD_FRAME


# -- lz4

_LZ4_MAGIC = 0x184D2204
_LZ4_GROWTH = 255  # a byte of a block decompresses to at most this many bytes
LZ4_ROOM = 256
"""the room of a block is a multiple of this [bytes]; see `codecs.lz4_block`"""
_LZ4_STORED = 1 << 31
_LZ4_VERSION = 0xC0
_LZ4_INDEPENDENT = 0x20
_LZ4_BLOCK_CHECKSUM = 0x10
_LZ4_CONTENT_SIZE = 0x08
_LZ4_CONTENT_CHECKSUM = 0x04
_LZ4_RESERVED = 0x03


@kernel
def plan_lz4(data: Bytes, start: int, end: int, codec: int, magic: int, out: Blocks, count: int) -> int:
    """The blocks of one frame."""
    if end - start < 7 or u32(data, start, True) != np.uint32(_LZ4_MAGIC):
        return BAD_FRAME
    flags = int64(u8(data, start + 4))
    if flags & (_LZ4_VERSION | _LZ4_INDEPENDENT | _LZ4_RESERVED) != 0x40 | _LZ4_INDEPENDENT:
        return BAD_FRAME
    block_size = int64(u8(data, start + 5))
    if block_size & 0x8F or block_size < 0x40:
        return BAD_FRAME
    largest = int64(1) << (8 + 2 * (block_size >> 4))
    descriptor = 10 if flags & _LZ4_CONTENT_SIZE else 2
    pos = start + 4 + descriptor
    if pos >= end:
        return BAD_FRAME
    if magic != 0 and (xxh32(data, start + 4, descriptor) >> np.uint32(8)) & np.uint32(255) != u8(data, pos):
        return BAD_FRAME
    pos += 1
    while True:
        if end - pos < 4:
            return BAD_FRAME
        size = int64(u32(data, pos, True))
        pos += 4
        if size & ~_LZ4_STORED == 0:
            return BAD_FRAME if flags & _LZ4_CONTENT_CHECKSUM and end - pos < 4 else count
        stored = size >= _LZ4_STORED
        size &= ~_LZ4_STORED
        if size > largest or size > end - pos:
            return BAD_FRAME
        checksum = 4 if flags & _LZ4_BLOCK_CHECKSUM else 0
        if checksum and (end - pos - size < 4 or xxh32(data, pos, size) != u32(data, pos + size, True)):
            return BAD_FRAME
        if stored:
            count = add_block(out, count, NONE, pos, size, size)
        else:
            room = (size * _LZ4_GROWTH + LZ4_ROOM - 1) // LZ4_ROOM * LZ4_ROOM
            count = add_block(out, count, codec, pos, size, min(room, largest))
        pos += size + checksum


# -- zstd

_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE = 0x184D2A50
_ZSTD_BLOCK = 128 << 10


@kernel
def plan_zstd(data: Bytes, start: int, end: int, codec: int, magic: int, out: Blocks, count: int) -> int:
    """One block, or none."""
    return count if start == end else add_block(out, count, codec, start, end - start, _zstd_room(data, start, end))


@kernel
def _zstd_room(data: Bytes, pos: int, end: int) -> int:
    """Largest decompressed size of frames by their block headers, as far as these are readable. The library validates them."""
    room = int64(0)
    while end - pos >= 8:
        magic = int64(u32(data, pos, True))
        if magic & ~15 == _ZSTD_SKIPPABLE:
            pos += 8 + int64(u32(data, pos + 4, True))
            continue
        if magic != _ZSTD_MAGIC:
            return room
        descriptor = int64(u8(data, pos + 4))
        single = (descriptor >> 5) & 1
        dictionary = descriptor & 3
        content = descriptor >> 6
        pos += 5 + (1 - single)
        pos += 4 if dictionary == 3 else dictionary
        pos += single if content == 0 else 1 << content
        last = False
        while not last:
            if end - pos < 3:
                return room
            header = int64(u8(data, pos)) | int64(u8(data, pos + 1)) << 8 | int64(u8(data, pos + 2)) << 16
            last = header & 1 == 1
            kind = (header >> 1) & 3
            size = header >> 3
            room += _ZSTD_BLOCK if kind == 2 else size
            pos += 3 + (1 if kind == 1 else size)
        pos += 4 * ((descriptor >> 2) & 1)
    return room


# -- XXH32, the checksum of lz4 frames

_P1, _P2, _P3, _P4, _P5 = (np.uint32(p) for p in (2654435761, 2246822519, 3266489917, 668265263, 374761393))


@kernel
def _rotated(x: np.uint32, bits: int) -> np.uint32:
    return np.uint32((x << np.uint32(bits)) | (x >> np.uint32(32 - bits)))


@kernel
def _round(lane: np.uint32, word: np.uint32) -> np.uint32:
    return np.uint32(_rotated(np.uint32(lane + np.uint32(word * _P2)), 13) * _P1)


@kernel
def xxh32(data: Bytes, start: int, size: int) -> np.uint32:
    """XXH32 of ``data[start:start + size]`` with seed 0."""
    pos = start
    end = start + size
    if size >= 16:
        a = np.uint32(_P1 + _P2)
        b = _P2
        c = np.uint32(0)
        d = np.uint32(np.uint32(0) - _P1)
        while pos <= end - 16:
            a = _round(a, np.uint32(u32(data, pos, True)))
            b = _round(b, np.uint32(u32(data, pos + 4, True)))
            c = _round(c, np.uint32(u32(data, pos + 8, True)))
            d = _round(d, np.uint32(u32(data, pos + 12, True)))
            pos += 16
        h = np.uint32(_rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18))
    else:
        h = _P5
    h = np.uint32(h + np.uint32(size))
    while pos <= end - 4:
        h = np.uint32(_rotated(np.uint32(h + np.uint32(u32(data, pos, True) * _P3)), 17) * _P4)
        pos += 4
    while pos < end:
        h = np.uint32(_rotated(np.uint32(h + np.uint32(np.uint32(u8(data, pos)) * _P5)), 11) * _P1)
        pos += 1
    h = np.uint32((h ^ (h >> np.uint32(15))) * _P2)
    h = np.uint32((h ^ (h >> np.uint32(13))) * _P3)
    return h ^ (h >> np.uint32(16))
