"""Inflating: the blocks of a payload, decompressed into memory of the caller's.

Cramjam does what is large. Measured on record batches of 10 to 100 KB it is as fast as pyarrow's codecs for lz4 and zstd,
twice as fast for snappy, up to 1.7 times for gzip, and it decompresses into memory that it is given, so that what it may
write is bounded. Small blocks, and what it would read otherwise than Kafka, kernels decode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

import cramjam
import numpy as np

from sparkwire.column import empty
from sparkwire.formats.kafka.codecs import (
    GZIP_STREAM,
    LZ4_BLOCK,
    LZ4_CHECKED_RUN,
    LZ4_GROWTH,
    LZ4_STORED,
    SMALL,
    SNAPPY_BLOCK,
    STORED_BLOCK,
    XERIAL_RUN,
    ZSTD_STREAM,
    snappy_size,
)
from sparkwire.formats.kafka.gzip_members import BAD_MEMBER, NO_ROOM, Codes, codes, count_magics, inflate_members
from sparkwire.formats.kafka.small_blocks import lz4_block, snappy_block
from sparkwire.kernels import COPY_SLACK, Bytes, copy, i32, int64, kernel, u8, u32

_EXACT = (STORED_BLOCK, SNAPPY_BLOCK)  # say what they become
_STREAMS = (GZIP_STREAM, ZSTD_STREAM)

OVER_LIMIT = -1
FAILED = BAD_MEMBER
_GZIP_MEMBER = 256  # members of fewer bytes, on average, take less time here than in the library [bytes]
_FULL = "failed to write whole buffer"  # how cramjam says that a stream is longer than the room for it
_REFUSED = "not enough memory"  # how zstd says that it got none; a window beyond its bound it words otherwise


class Arena:
    """Memory that payloads are inflated into, one after the other; ``clear`` makes it free again."""

    def __init__(self, first: int) -> None:
        """``first``: what is taken when anything is inflated [bytes]."""
        self.used = 0
        self._first = first
        self._take(0)

    def _take(self, size: int) -> None:
        self.bytes = empty(size, np.uint8)
        self.view = self.bytes.data
        self.size = size

    @cached_property
    def codes(self) -> Codes:
        """What reading gzip members takes beside it."""
        return codes()

    def clear(self) -> None:
        self.used = 0

    def readonly(self) -> Bytes:
        """Its memory as kernels see it."""
        view = self.bytes.view()
        view.flags.writeable = False
        return view

    def reserve(self, size: int) -> None:
        """See that ``size`` bytes fit after those that are used."""
        if self.used + size > self.size:
            old = self.bytes
            self._take(max(self._first, 2 * self.size, self.used + size))
            self.bytes[: self.used] = old[: self.used]


def inflate(data: Bytes, planned: Iterable[tuple[int, int, int, int]], arena: Arena, limit: int) -> int:
    """Decompress a payload's blocks (kind, start, size, room) after what ``arena`` holds.

    Returns the size [bytes], ``OVER_LIMIT`` where it would exceed ``limit``, ``FAILED`` where a block cannot be read.
    Never takes more memory than ``limit`` and one block of lz4 (4 MiB).

    Raises
    ------
    MemoryError
        where memory is refused: that tells nothing about the bytes.
    """
    begin = arena.used
    end = begin + limit
    source = data.data
    for kind, start, size, room in planned:
        used = arena.used
        if kind in _STREAMS:
            written = _stream(kind, data, start, size, room, end - used, arena)
        elif room > end - used and kind in _EXACT:
            written = OVER_LIMIT
        else:
            arena.reserve(room + COPY_SLACK)
            if kind in DECODERS:
                written = _library(kind, source[start : start + size], arena.view[used : used + room])
            else:
                written = inflate_run(data, kind, start, start + size, arena.bytes, used, room, end - used)
        if written < 0 or used + written > end:
            arena.used = begin
            return FAILED if written == FAILED else OVER_LIMIT
        arena.used = used + written
    return arena.used - begin


def _library(kind: int, source: memoryview, out: memoryview) -> int:
    """What the library makes of a block or stream: its size, ``FAILED``, or ``NO_ROOM``."""
    try:
        return DECODERS[kind](source, out)
    except cramjam.DecompressionError as error:
        if _REFUSED in str(error):
            raise MemoryError(f"{error}") from error
        return NO_ROOM if _FULL in str(error) else FAILED


def _stream(kind: int, data: Bytes, start: int, size: int, room: int, left: int, arena: Arena) -> int:
    """A payload that does not say what it becomes, but for a guess: with more room each time, up to the bound."""
    source = data.data[start : start + size]
    many = kind == GZIP_STREAM and _GZIP_MEMBER * count_magics(data, start, start + size) > size
    while True:
        room = min(room, left)
        arena.reserve(room)
        # For one member the library is faster, for many small ones many times slower.
        written = NO_ROOM if many else _library(kind, source, arena.view[arena.used : arena.used + room])
        if written < 0 and kind == GZIP_STREAM:
            # There may be bytes after the last member, which the library refuses.
            written = inflate_members(data, start, start + size, arena.bytes, room, arena.codes, arena.used)
        if written != NO_ROOM:
            return FAILED if written < 0 else written
        if room == left:
            return OVER_LIMIT
        room = 4 * room + (64 << 10)


@kernel
def inflate_run(data: Bytes, kind: int, pos: int, end: int, out: Bytes, at: int, room: int, left: int) -> int:
    """Decompress small blocks with their framing, or one that takes all the ``room``: the size, ``OVER_LIMIT`` or ``FAILED``."""
    begin = at
    while pos < end:
        stored = False
        if kind == XERIAL_RUN:
            size = int64(i32(data, pos, False))
            room = snappy_size(data, pos + 4, pos + 4 + size)
            if room > left - (at - begin):
                return OVER_LIMIT
        else:
            word = int64(u32(data, pos, True))
            stored = word >= LZ4_STORED
            size = word & ~LZ4_STORED
            if size <= SMALL:
                room = size * LZ4_GROWTH
        pos += 4
        if stored:
            copy(out, at, data, pos, size)
            written = size
        elif kind == XERIAL_RUN:
            written = snappy_block(data, pos + _varint_width(data, pos), pos + size, out, at, room)
        else:
            written = lz4_block(data, pos, pos + size, out, at, room)
        if written < 0:
            return FAILED
        at += written
        if at - begin > left:
            return OVER_LIMIT
        pos += size + (4 if kind == LZ4_CHECKED_RUN else 0)
    return at - begin


@kernel
def _varint_width(data: Bytes, pos: int) -> int:
    width = 1
    while u8(data, pos + width - 1) >= 128:
        width += 1
    return width


def _gzip(source: memoryview, out: memoryview) -> int:
    return int(cramjam.gzip.decompress_into(source, out))


def _snappy(source: memoryview, out: memoryview) -> int:
    return int(cramjam.snappy.decompress_raw_into(source, out))


def _lz4(source: memoryview, out: memoryview) -> int:
    return int(cramjam.lz4.decompress_block_into(source, out, output_len=len(out)))


def _zstd(source: memoryview, out: memoryview) -> int:
    return int(cramjam.zstd.decompress_into(source, out))


def _stored(source: memoryview, out: memoryview) -> int:
    out[: len(source)] = source
    return len(source)


DECODERS: dict[int, Callable[[memoryview, memoryview], int]] = {
    STORED_BLOCK: _stored,
    GZIP_STREAM: _gzip,
    SNAPPY_BLOCK: _snappy,
    LZ4_BLOCK: _lz4,
    ZSTD_STREAM: _zstd,
}
