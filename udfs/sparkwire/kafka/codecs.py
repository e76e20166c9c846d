"""The framings of compressed payloads: which blocks a payload has, and how long each can become at most.

They are read here, because what Kafka reads differs from what the libraries read:

- gzip: any number of members; what follows the last one is ignored; trailers are checked
- snappy: a raw block, or xerial framing (versions unchecked, a second header may follow, no empty chunk)
- lz4: one frame of version 1 with independent blocks and without dictionary; block checksums are verified, the content
  size and the content checksum are not; what follows the end mark is ignored. The checksum of the frame's header can be
  left unchecked, because that of magic 0 is wrong by custom (KAFKA-3160)
- zstd: frames and skippable frames to the end of the payload, windows of up to 2^27 bytes

Blocks of a few bytes are planned as a run: what is kept of them is not more than they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.base.errors import DECOMPRESS_FAILED, OK
from sparkwire.core.column import arrays, empty, part
from sparkwire.kafka.batch_headers import MAGIC_0, HeaderBlock
from sparkwire.kafka.entry_payloads import EntryPayloads
from sparkwire.kafka.layout import GZIP, LZ4, NONE, SNAPPY, ZSTD
from sparkwire.kernels import Bytes, Ints, i32, i64, int64, kernel, u8, u32
from sparkwire.kernels.checksums.xxh32 import xxh32

# What is answered in place of a count, or a size.
BAD_FRAME = -1
OVER_LIMIT, FAILED, NO_ROOM = -1, -2, -3

SMALL = 256  # blocks up to this size take less time here than the call of a library [bytes]
_RUN_ROOM = 1 << 20  # what small blocks may become at most that are decompressed in one go [bytes]

# How one block of a payload, or a run of small ones, is decompressed.
STORED_BLOCK, GZIP_STREAM, SNAPPY_BLOCK, LZ4_BLOCK, ZSTD_STREAM, LZ4_ALONE, LZ4_RUN, LZ4_CHECKED_RUN, XERIAL_RUN = (
    range(9)
)


class Blocks(NamedTuple):
    """What compressed payloads are made of, an item for each block."""

    kind: npt.NDArray[np.int8]
    start: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    """[bytes]"""
    room: npt.NDArray[np.int64]
    """what it becomes, at most [bytes]"""


def planned_blocks(data: Bytes, entries: HeaderBlock, payloads: EntryPayloads) -> tuple[Blocks, Ints]:
    """What compressed payloads are made of, and how many blocks there are up to the end of each entry.

    Entries whose payload cannot be opened get their error.
    """
    entry_count = len(entries.variant)
    planned, ends = arrays(Blocks, 8 * entry_count), empty(entry_count, np.int64)  # a batch has one or a few
    count = plan_blocks(data, entries, payloads, planned, ends)
    if count > len(planned.kind):
        planned = arrays(Blocks, count)
        count = plan_blocks(data, entries, payloads, planned, ends)  # fewer, now that small ones find their run
    return part(planned, 0, count), ends


@kernel
def plan_blocks(data: Bytes, entries: HeaderBlock, payloads: EntryPayloads, out: Blocks, ends: Ints) -> int:
    """Plan how payloads are opened; how many blocks there are, which may be more than ``out`` has room for."""
    frames = entries.frames
    count = 0
    for i in range(ends.size):
        if payloads.codec[i] != NONE and frames.error[i] == OK:
            header_checked = entries.variant[i] != MAGIC_0
            planned = _plan(data, payloads.first[i], payloads.last[i], payloads.codec[i], header_checked, out, count)
            if planned == BAD_FRAME:
                frames.error[i] = DECOMPRESS_FAILED
            else:
                count = planned
        ends[i] = count
    return count


@kernel
def _add(out: Blocks, count: int, kind: int, start: int, size: int, room: int) -> int:
    """Note a block, where there is room for the note."""
    if count < out.kind.size:
        out.kind[count] = kind
        out.start[count] = start
        out.size[count] = size
        out.room[count] = room
    return count + 1


@kernel
def _add_to_run(out: Blocks, count: int, first: int, kind: int, start: int, size: int, room: int) -> int:
    """Note a small block, framing included, with those before it where they are of this payload's plan."""
    last = count - 1
    follows = first <= last < out.kind.size and out.kind[last] == kind and out.start[last] + out.size[last] == start
    if follows and out.room[last] + room <= _RUN_ROOM:
        out.size[last] += size
        out.room[last] += room
        return count
    return _add(out, count, kind, start, size, room)


@kernel
def _plan(data: Bytes, start: int, end: int, codec: int, header_checked: bool, out: Blocks, count: int) -> int:
    """Add the blocks of the payload ``data[start:end]`` to the ``count`` that ``out`` has.

    Returns the new count, ``BAD_FRAME`` where the payload cannot be read.
    """
    if codec == ZSTD and start == end:
        return count
    if codec == LZ4:
        return _plan_lz4(data, start, end, header_checked, out, count)
    if codec == SNAPPY:
        return _plan_snappy(data, start, end, out, count)
    if codec == GZIP:
        return _add(out, count, GZIP_STREAM, start, end - start, _gzip_room(data, start, end))
    return _add(out, count, ZSTD_STREAM, start, end - start, _zstd_room(data, start, end))


# -- gzip

_GZIP_LEAST = 18  # header and trailer [bytes]
_GZIP_GROWTH = 1032  # no byte of deflate stands for more


@kernel
def _gzip_room(data: Bytes, start: int, end: int) -> int:
    """The size in the last trailer; a guess, because the trailer may be missing or followed by other bytes."""
    if end - start < _GZIP_LEAST:
        return 0
    return min(int64(u32(data, end - 4, True)), (end - start) * _GZIP_GROWTH)


# -- snappy

_XERIAL = int.from_bytes(bytes.fromhex("82534e4150505900"), "big", signed=True)
_XERIAL_HEADER = 16  # magic, version, compatible version [bytes]


@kernel
def _plan_snappy(data: Bytes, start: int, end: int, out: Blocks, count: int) -> int:
    if end - start < _XERIAL_HEADER or not _is_xerial(data, start):
        room = snappy_size(data, start, end)
        return BAD_FRAME if room < 0 else _add(out, count, SNAPPY_BLOCK, start, end - start, room)
    pos = start + _XERIAL_HEADER
    first = count
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
        room = snappy_size(data, pos, pos + size)
        if room < 0:
            return BAD_FRAME
        if size <= SMALL:
            count = _add_to_run(out, count, first, XERIAL_RUN, pos - 4, size + 4, room)
        else:
            count = _add(out, count, SNAPPY_BLOCK, pos, size, room)
        pos += size
    return count


@kernel
def _is_xerial(data: Bytes, pos: int) -> bool:
    return i64(data, pos, False) == _XERIAL


@kernel
def snappy_size(data: Bytes, pos: int, end: int) -> int:
    """The size that a raw block states [bytes], negative where it states none that Java could hold."""
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
LZ4_GROWTH = 255  # no byte of a block stands for more
LZ4_STORED = 1 << 31
_LZ4_VERSION = 0xC0
_LZ4_INDEPENDENT = 0x20
_LZ4_BLOCK_CHECKSUM = 0x10
_LZ4_CONTENT_SIZE = 0x08
_LZ4_CONTENT_CHECKSUM = 0x04
_LZ4_RESERVED = 0x03


@kernel
def _plan_lz4(data: Bytes, start: int, end: int, header_checked: bool, out: Blocks, count: int) -> int:
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
    if header_checked and (xxh32(data, start + 4, descriptor) >> np.uint32(8)) & np.uint32(255) != u8(data, pos):
        return BAD_FRAME
    pos += 1
    first = count
    while True:
        if end - pos < 4:
            return BAD_FRAME
        size = int64(u32(data, pos, True))
        pos += 4
        if size & ~LZ4_STORED == 0:
            return BAD_FRAME if flags & _LZ4_CONTENT_CHECKSUM and end - pos < 4 else count
        stored = size >= LZ4_STORED
        size &= ~LZ4_STORED
        if size > largest or size > end - pos:
            return BAD_FRAME
        room = size if stored else min(size * LZ4_GROWTH, largest)
        checksum = 4 if flags & _LZ4_BLOCK_CHECKSUM else 0
        if checksum and (end - pos - size < 4 or xxh32(data, pos, size) != u32(data, pos + size, True)):
            return BAD_FRAME
        kind = LZ4_CHECKED_RUN if checksum else LZ4_RUN
        if size <= SMALL:
            count = _add_to_run(out, count, first, kind, pos - 4, 4 + size + checksum, room)
        elif not stored and _looks_prefixed(data, pos, room):
            count = _add(out, count, LZ4_ALONE, pos - 4, 4 + size, room)
        else:
            count = _add(out, count, STORED_BLOCK if stored else LZ4_BLOCK, pos, size, room)
        pos += size + checksum


@kernel
def _looks_prefixed(data: Bytes, pos: int, room: int) -> bool:
    """Whether the library could take a block's first bytes for its size, and so read what no block is."""
    return bool(0 <= i32(data, pos, True) <= room)


# -- zstd

_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE = 0x184D2A50
_ZSTD_BLOCK = 128 << 10


@kernel
def _zstd_room(data: Bytes, pos: int, end: int) -> int:
    """What frames become at most by their block headers, as far as they can be read; the library judges them."""
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
