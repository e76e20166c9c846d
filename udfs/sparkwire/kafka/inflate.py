"""Decompress payloads into a reused buffer, small enough to be in the cache when the parser reads it.

Cramjam does it. On record batches of 10 to 100 KB it is as fast as pyarrow's codecs for lz4 and zstd. It is twice as fast for
snappy, and up to 1.7 times as fast for gzip. It decompresses into a buffer of the caller, which bounds its output. If it
rejects gzip data, zlib reads them, member by member.
"""

from __future__ import annotations

import sys
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import cramjam
import numpy as np

from sparkwire.base.error_codes import DECOMPRESS_FAILED, OK, TOO_LARGE
from sparkwire.core.column import INT32_MAX, Binary, empty, part
from sparkwire.kafka.batch_headers import MAGIC_2, HeaderBlock
from sparkwire.kafka.codecs import BY_ID, BY_NAME
from sparkwire.kafka.entry_payloads import EntryPayloads
from sparkwire.kafka.framings import Blocks
from sparkwire.kafka.layout import ENTRY, LEAST_SIZE, NONE, OVERHEAD, SMALLEST_RECORD
from sparkwire.kafka.plan_blocks import planned_blocks
from sparkwire.kernels import COPY_SLACK, Bytes, Ints, i32, int64, kernel

MAX_BATCH_BYTES = 268_435_456
MAX_VALUE_BYTES = 2_147_483_648
"""A segment has 1 GiB by default: a value with a complete segment may become twice that."""
MAX_ANSWER_BYTES = 2 * MAX_VALUE_BYTES
"""The same of all values that Spark passes at once: what one Arrow column holds, and as much for the other columns."""
ROW_BYTES = 100
"""what the columns of a record take, its key, value and headers apart [bytes]"""

_ARENA_BYTES = 4 << 20  # still in the cache when it is parsed, and too much for Python's part of a filling to count
_BLOCKS_AT_ONCE = 4096  # blocks that are Python's numbers at a time
_GZIP = BY_NAME["gzip"].id
_GZIP_MEMBER = 256  # members of fewer bytes, on average, take less time here than in the library [bytes]
_MAGIC = b"\x1f\x8b\x08"  # of a gzip member, its method with it
_LEAST_MEMBER = 18  # header and trailer [bytes]
_FIRST_STEP, _SLICE = 64, 1 << 20  # [bytes] that zlib is given, and gives, at once
_FULL = "failed to write whole buffer"  # how cramjam says that a stream is longer than the room for it
_REFUSED = "not enough memory"  # how zstd says that it got none; a window beyond its bound it words otherwise
_SIZE = ENTRY["size"].offset
_NOT_COUNTED = -1

OVER_LIMIT, FAILED, NO_ROOM = -1, -2, -3
"""what is returned in place of a size"""

Block = tuple[int, int, int, int]
"""codec, start, size and room, as Python's own numbers: what is done for a batch may take no longer than the library does"""


class Opened(NamedTuple):
    """Entries and their payloads, ready for the parser."""

    entries: HeaderBlock
    payloads: EntryPayloads
    arena: Bytes


class Inflater:
    """Opens payloads, within bounds of what one may become, and of what all those of a row may become as records [bytes].

    ``content`` and ``total`` bound what those of all rows may become, by themselves and as records.
    """

    def __init__(
        self, max_batch_bytes: int, max_value_bytes: int, content: int = sys.maxsize, total: int = sys.maxsize
    ) -> None:
        self._limit = min(max_batch_bytes, INT32_MAX)
        self._value_limit = max_value_bytes
        self._content, self._total = content, total  # what is left of them
        self._arena = Arena(_ARENA_BYTES)
        self._row, self._row_bytes, self._cell_bytes = -1, 0, 0  # its size and what it has become; as records

    def opened(self, source: Binary, entries: HeaderBlock, payloads: EntryPayloads) -> Iterator[Opened]:
        """The entries of a block in order, one full arena at a time; an item is valid until the next request."""
        error = entries.frames.error
        compressed = np.flatnonzero((payloads.codec != NONE) & (error == OK))
        if not len(compressed):
            yield Opened(entries, payloads, source.data)
            return
        planned, ends = planned_blocks(source.data, entries, payloads)
        blocks = _one_by_one(planned)
        compressed = compressed[error[compressed] == OK]
        start, stop_of_block = 0, len(error)
        while start < stop_of_block:
            compressed = compressed[self._fill(source, entries, payloads, blocks, ends, compressed) :]
            stop = int(compressed[0]) if len(compressed) else stop_of_block
            yield Opened(entries.part(start, stop), part(payloads, start, stop), self._arena.readonly())
            self._arena.clear()
            start = stop

    def _fill(
        self,
        source: Binary,
        entries: HeaderBlock,
        payloads: EntryPayloads,
        blocks: Iterator[Block],
        block_ends: Ints,
        compressed: Ints,
    ) -> int:
        """Open some of the ``compressed`` entries, until the arena is as full as the cache; how many."""
        ends = block_ends[compressed].tolist()
        begins = np.where(compressed > 0, block_ends[compressed - 1], 0).tolist()
        # Messages of magic 0 and 1 do not say how many they are.
        counts = np.where(entries.variant == MAGIC_2, entries.fields.record_count, _NOT_COUNTED)[compressed].tolist()
        starts, sizes = list[int](), list[int]()
        for row, count, begin, end in zip(entries.frames.row[compressed].tolist(), counts, begins, ends, strict=True):
            if self._arena.used > _ARENA_BYTES:
                break
            if row != self._row:
                # Whatever a row holds, its own records fit into one Arrow column.
                self._row, self._cell_bytes = row, 0
                self._row_bytes = int(source.offsets[row + 1] - source.offsets[row])
            starts.append(self._arena.used)
            own = islice(blocks, end - begin)
            sizes.append(self._open(source.data, own, count))
            deque(own, 0)  # what is left of them, where one failed
        done = compressed[: len(sizes)]
        first, size_of = np.array(starts, np.int64), np.array(sizes, np.int64)
        failed = size_of < 0
        entries.frames.error[done[failed]] = np.where(size_of[failed] == OVER_LIMIT, TOO_LARGE, DECOMPRESS_FAILED)
        opened = done[~failed]
        payloads.inflated[opened] = True
        payloads.first[opened] = first[~failed]
        payloads.last[opened] = (first + size_of)[~failed]
        return len(sizes)

    def _open(self, data: Bytes, blocks: Iterable[Block], count: int) -> int:
        """Inflate a payload of the current row: its size, ``OVER_LIMIT`` or ``FAILED``. ``count``: of its records."""
        arena, start = self._arena, self._arena.used
        limit = min(self._limit, INT32_MAX - self._row_bytes, self._value_limit - self._cell_bytes, self._content)
        size = inflate(data, blocks, arena, limit) if limit >= 0 else OVER_LIMIT
        if size == OVER_LIMIT:
            # What was decompressed for nothing counts, too: else a row of bombs could take any time.
            self._cell_bytes += max(limit, 0)
        if size < 0:
            return size
        rows = min(count, size // SMALLEST_RECORD)
        if count == _NOT_COUNTED:
            rows = count_messages(arena.bytes, start, start + size)
        total = size + ROW_BYTES * rows
        if total > min(self._value_limit - self._cell_bytes, self._total):
            arena.used = start
            return OVER_LIMIT
        self._row_bytes += size
        self._cell_bytes += total
        self._content -= size
        self._total -= total
        return size


def _one_by_one(planned: Blocks) -> Iterator[Block]:
    """Blocks in order; the memory for many small ones is not much more than their size."""
    for start in range(0, len(planned.codec), _BLOCKS_AT_ONCE):
        piece = part(planned, start, start + _BLOCKS_AT_ONCE)
        yield from zip(*(column.tolist() for column in piece), strict=True)


@kernel
def count_messages(data: Bytes, pos: int, end: int) -> int:
    """How many messages a decompressed set has."""
    count = 0
    while end - pos >= OVERHEAD + LEAST_SIZE:
        size = int64(i32(data, pos + _SIZE, False))
        if size < LEAST_SIZE:
            break
        pos += OVERHEAD + size
        count += 1
    return count


class Arena:
    """Memory for decompressed payloads, one after the other; ``clear`` makes it free again."""

    def __init__(self, first: int) -> None:
        """``first``: the size of the first allocation [bytes]."""
        self.used = 0
        self._first = first
        self._take(0)

    def _take(self, size: int) -> None:
        self.bytes = empty(size, np.uint8)
        self.view = self.bytes.data
        self.size = size

    def clear(self) -> None:
        self.used = 0

    def readonly(self) -> Bytes:
        """Its memory as kernels see it."""
        view = self.bytes.view()
        view.flags.writeable = False
        return view

    def append(self, content: bytes) -> None:
        """Add a payload decompressed elsewhere."""
        self.reserve(len(content) + COPY_SLACK)
        self.view[self.used : self.used + len(content)] = content
        self.used += len(content)

    def reserve(self, size: int) -> None:
        """Make room for ``size`` more bytes."""
        if self.used + size > self.size:
            old = self.bytes
            self._take(max(self._first, 2 * self.size, self.used + size))
            self.bytes[: self.used] = old[: self.used]


def inflate(data: Bytes, planned: Iterable[Block], arena: Arena, limit: int) -> int:
    """Decompress a payload's blocks (codec, start, size, room) after what ``arena`` holds.

    Returns the size [bytes], ``OVER_LIMIT`` where it would exceed ``limit``, ``FAILED`` where a block cannot be read.
    Never takes more memory than ``limit`` and one block of lz4 (4 MiB).

    MemoryError if memory runs out, which says nothing about the bytes.
    """
    begin = arena.used
    end = begin + limit
    source = data.data
    for number, start, size, room in planned:
        used = arena.used
        codec = BY_ID[number]
        if codec.is_stream:
            written = _stream(number, data, start, size, room, end - used, arena)
        elif room > end - used and codec.says_size:
            written = OVER_LIMIT
        else:
            arena.reserve(room + COPY_SLACK)
            written = _library(number, source[start : start + size], arena.view[used : used + room])
        if written < 0 or used + written > end:
            arena.used = begin
            return FAILED if written == FAILED else OVER_LIMIT
        arena.used = used + written
    return arena.used - begin


def _library(codec: int, source: memoryview, out: memoryview) -> int:
    """What the library makes of a block or stream: its size, ``FAILED``, or ``NO_ROOM``."""
    try:
        return DECODERS[codec](source, out)
    except cramjam.DecompressionError as error:
        if _REFUSED in str(error):
            raise MemoryError(f"{error}") from error
        return NO_ROOM if _FULL in str(error) else FAILED


def _stream(codec: int, data: Bytes, start: int, size: int, room: int, left: int, arena: Arena) -> int:
    """A payload that does not say what it becomes, but for a guess: with more room each time, up to the bound."""
    source = data.data[start : start + size]
    # For one member the library is faster, for many small ones many times slower.
    many = codec == _GZIP and _GZIP_MEMBER * bytes(source).count(_MAGIC) > size
    while True:
        room = min(room, left)
        arena.reserve(room)
        written = FAILED if many else _library(codec, source, arena.view[arena.used : arena.used + room])
        if written == FAILED and codec == _GZIP:
            # There may be bytes after the last member, which the library rejects.
            return _members(bytes(source), left, arena)
        if written != NO_ROOM:
            return FAILED if written < 0 else written
        if room == left:
            return OVER_LIMIT
        room = 4 * room + (64 << 10)


def _members(source: bytes, left: int, arena: Arena) -> int:
    """Gzip, member by member, to the last that is one, as Kafka reads it: its size, ``FAILED`` or ``OVER_LIMIT``."""
    begin, position, size = arena.used, 0, len(source)
    most = min(left + 1, _SLICE)
    while True:
        member, step = zlib.decompressobj(wbits=31), _FIRST_STEP
        while True:
            # In slices: zlib copies the bytes after a member's end.
            taken = source[position : position + step]
            try:
                out = member.decompress(taken, most)
            except zlib.error:
                return FAILED
            if out:
                arena.append(out)
                if arena.used > begin + left:
                    return OVER_LIMIT
                most = min(begin + left - arena.used + 1, _SLICE)
            if member.eof:
                position += len(taken) - len(member.unused_data)
                break
            if not (taken or out):
                return FAILED
            position += len(taken) - len(member.unconsumed_tail)
            step = min(8 * step, _SLICE)
        if size - position <= _LEAST_MEMBER or not source.startswith(_MAGIC, position):
            return arena.used - begin


DECODERS = {codec.id: codec.decoder for codec in BY_ID.values() if codec.decoder is not None}
