"""Decompress payloads into a reused buffer, which is small enough to be in the cache when the parser reads it.

The plan of a codec finds the blocks of a payload (`framings`). Then a library decompresses each block.

The library is Cramjam. On record batches of 10 to 100 KB, it is as fast as pyarrow's codecs for lz4 and zstd. It is twice as
fast for snappy, and up to 1.7 times as fast for gzip. It decompresses into a buffer of the caller, which limits its output. If it
rejects gzip data, zlib reads the data, member by member.
"""

from __future__ import annotations

import sys
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import cramjam
import numpy as np

from sparkwire.base.error_codes import DECOMPRESS_FAILED, OK, TOO_LARGE, UNKNOWN_CODEC
from sparkwire.base.printable import printable
from sparkwire.core.column import INT32_MAX, Binary, arrays, empty, part
from sparkwire.kafka.batch_headers import MAGIC_2, HeaderBlock
from sparkwire.kafka.codecs import BY_ID, BY_NAME, CODECS, Plan
from sparkwire.kafka.entry_payloads import EntryPayloads
from sparkwire.kafka.framings import BAD_FRAME, Blocks
from sparkwire.kafka.layout import NONE, SMALLEST_RECORD
from sparkwire.kafka.messages import walk_set
from sparkwire.kernels import COPY_SLACK, Bytes, Ints, kernel

MAX_BATCH_BYTES = 268_435_456
MAX_VALUE_BYTES = 2_147_483_648
"""By default, a segment has 1 GiB. A value with a whole segment may decompress to twice that size."""
MAX_ANSWER_BYTES = 2 * MAX_VALUE_BYTES
"""The limit for all values that Spark passes at once: what one Arrow column can hold, and as much for the other columns."""
ROW_BYTES = 100
"""size of a record's columns without key, value and headers [bytes]"""

_ARENA_BYTES = 4 << 20  # fits the cache until it is parsed, and is large enough to make Python's overhead negligible
_BLOCKS_AT_ONCE = 4096  # number of blocks that are converted to Python numbers at a time
_GZIP = BY_NAME["gzip"].id
_GZIP_MEMBER = 256  # if the average member is smaller than this, zlib is faster than the library [bytes]
_MAGIC = b"\x1f\x8b\x08"  # start of a gzip member, including its method
_LEAST_MEMBER = 18  # header and trailer [bytes]
_FIRST_STEP, _SLICE = 64, 1 << 20  # [bytes] size of zlib's input and output in one call
_FULL = "failed to write whole buffer"  # cramjam's error message for a stream that is longer than its room
_NO_MEMORY = "not enough memory"  # zstd's error message for a failed allocation, but not for a window that is too large
_NOT_COUNTED = -1
_NO_PLAN = -2  # the result in place of a number of blocks, for a codec without a plan

OVER_LIMIT, FAILED, NO_ROOM = -1, -2, -3
"""results in place of a size"""

Block = tuple[int, int, int, int]
"""codec, start, size and room, as Python numbers, because these are faster than NumPy's in the loop over batches"""

DECODERS = {codec.id: codec.decoder for codec in CODECS if codec.decoder is not None}


class ParserInput(NamedTuple):
    """Entries and their decompressed payloads, for the parser."""

    entries: HeaderBlock
    payloads: EntryPayloads
    arena: Bytes


class Inflater:
    """Decompresses payloads, within limits for one payload and for the records of all payloads of a row [bytes].

    ``content`` and ``total`` limit the payloads of all rows together: their decompressed size, and their size as records.
    """

    def __init__(
        self, max_batch_bytes: int, max_value_bytes: int, content: int = sys.maxsize, total: int = sys.maxsize
    ) -> None:
        self._limit = min(max_batch_bytes, INT32_MAX)
        self._value_limit = max_value_bytes
        self._content, self._total = content, total  # the remainders of the limits
        self._arena = Arena(_ARENA_BYTES)
        self._row = -1  # the current row
        self._row_bytes = 0  # size of the row and its decompressed payloads
        self._record_bytes = 0  # size of the row's records

    def decompressed(self, source: Binary, entries: HeaderBlock, payloads: EntryPayloads) -> Iterator[ParserInput]:
        """The entries of a block in order, one full arena at a time. An item is valid until you take the next one."""
        error = entries.frames.error
        compressed = np.flatnonzero((payloads.codec != NONE) & (error == OK))
        if not len(compressed):
            yield ParserInput(entries, payloads, source.data)
            return
        planned, ends = planned_blocks(source.data, entries, payloads)
        blocks = _one_by_one(planned)
        compressed = compressed[error[compressed] == OK]
        start, stop_of_block = 0, len(error)
        while start < stop_of_block:
            compressed = compressed[self._fill(source, entries, payloads, blocks, ends, compressed) :]
            stop = int(compressed[0]) if len(compressed) else stop_of_block
            yield ParserInput(entries.part(start, stop), part(payloads, start, stop), self._arena.readonly())
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
        """Decompress some of the ``compressed`` entries, until the arena fills the cache. Return their number."""
        ends = block_ends[compressed].tolist()
        begins = np.where(compressed > 0, block_ends[compressed - 1], 0).tolist()
        # Wrappers of magic 0 and 1 do not state the number of their messages.
        counts = np.where(entries.variant == MAGIC_2, entries.fields.record_count, _NOT_COUNTED)[compressed].tolist()
        starts, sizes = list[int](), list[int]()
        for row, count, begin, end in zip(entries.frames.row[compressed].tolist(), counts, begins, ends, strict=True):
            if self._arena.used > _ARENA_BYTES:
                break
            if row != self._row:
                # The limit of a row guarantees that its records fit into one Arrow column.
                self._row, self._record_bytes = row, 0
                self._row_bytes = int(source.offsets[row + 1] - source.offsets[row])
            starts.append(self._arena.used)
            blocks_of_entry = islice(blocks, end - begin)
            sizes.append(self._decompress(source.data, blocks_of_entry, count))
            deque(blocks_of_entry, 0)  # skip the remaining blocks after a failure
        done = compressed[: len(sizes)]
        first, size_of = np.array(starts, np.int64), np.array(sizes, np.int64)
        failed = size_of < 0
        entries.frames.error[done[failed]] = np.where(size_of[failed] == OVER_LIMIT, TOO_LARGE, DECOMPRESS_FAILED)
        opened = done[~failed]
        payloads.inflated[opened] = True
        payloads.first[opened] = first[~failed]
        payloads.last[opened] = (first + size_of)[~failed]
        return len(sizes)

    def _decompress(self, data: Bytes, blocks: Iterable[Block], count: int) -> int:
        """Decompress a payload of ``count`` records of the current row. Return its size, ``OVER_LIMIT`` or ``FAILED``."""
        arena, start = self._arena, self._arena.used
        limit = min(self._limit, INT32_MAX - self._row_bytes, self._value_limit - self._record_bytes, self._content)
        size = inflate(data, blocks, arena, limit) if limit >= 0 else OVER_LIMIT
        if size == OVER_LIMIT:
            # A payload that exceeds the limit counts, too, else a row of compression bombs could take unlimited time.
            self._record_bytes += max(limit, 0)
        if size < 0:
            return size
        rows = min(count, size // SMALLEST_RECORD)
        if count == _NOT_COUNTED:
            rows, *_ = walk_set(arena.bytes, start, start + size)
        total = size + ROW_BYTES * rows
        if total > min(self._value_limit - self._record_bytes, self._total):
            arena.used = start
            return OVER_LIMIT
        self._row_bytes += size
        self._record_bytes += total
        self._content -= size
        self._total -= total
        return size


@kernel
def _plan_unknown(data: Bytes, start: int, end: int, codec: int, magic: int, out: Blocks, count: int) -> int:
    return _NO_PLAN


def _or(id: int, plan: Plan, others: Plan, key: str) -> Plan:
    """A plan that uses ``plan`` for the codec ``id`` and ``others`` for all other codecs."""

    @kernel(key=key)
    def planned(data: Any, start: int, end: int, codec: int, magic: int, out: Any, count: int) -> int:
        if codec == id:
            return plan(data, start, end, codec, magic, out, count)
        return others(data, start, end, codec, magic, out, count)

    return planned


def _of_every_codec() -> Plan:
    """One kernel for all codecs that have a plan."""
    planned, key = _plan_unknown, "plans of"
    for codec in CODECS:
        if codec.plan is not None:
            key += f" {codec.id} {codec.plan.__module__}.{codec.plan.__name__}"
            planned = _or(codec.id, codec.plan, planned, key)
    return planned


_plan = _of_every_codec()


def planned_blocks(data: Bytes, entries: HeaderBlock, payloads: EntryPayloads) -> tuple[Blocks, Ints]:
    """The blocks of compressed payloads, and the number of blocks up to the end of each entry.

    It sets the error of entries with an unreadable payload.
    """
    entry_count = len(entries.variant)
    planned, ends = arrays(Blocks, 8 * entry_count), empty(entry_count, np.int64)  # a batch has one block or a few
    count = plan_blocks(data, entries, payloads, planned, ends)
    if count > len(planned.codec):
        planned = arrays(Blocks, count)
        count = plan_blocks(data, entries, payloads, planned, ends)
    return part(planned, 0, count), ends


@kernel
def plan_blocks(data: Bytes, entries: HeaderBlock, payloads: EntryPayloads, out: Blocks, ends: Ints) -> int:
    """Plan the blocks of payloads; returns their number, which may exceed the room in ``out``."""
    frames = entries.frames
    count = 0
    for i in range(ends.size):
        if payloads.codec[i] != NONE and frames.error[i] == OK:
            first, last = payloads.first[i], payloads.last[i]
            planned = _plan(data, first, last, payloads.codec[i], entries.variant[i], out, count)
            if planned == _NO_PLAN:
                frames.error[i] = UNKNOWN_CODEC
            elif planned == BAD_FRAME:
                frames.error[i] = DECOMPRESS_FAILED
            else:
                count = planned
        ends[i] = count
    return count


def _one_by_one(planned: Blocks) -> Iterator[Block]:
    """Blocks in order, converted in pieces, so that many small blocks take little memory."""
    for start in range(0, len(planned.codec), _BLOCKS_AT_ONCE):
        piece = part(planned, start, start + _BLOCKS_AT_ONCE)
        yield from zip(*(column.tolist() for column in piece), strict=True)


class Arena:
    """A buffer for consecutive decompressed payloads; ``clear`` empties it."""

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
        """The buffer as a read-only array for kernels."""
        view = self.bytes.view()
        view.flags.writeable = False
        return view

    def append(self, content: bytes) -> None:
        """Append decompressed bytes."""
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
    """Decompress a payload's blocks (codec, start, size, room) and append them to ``arena``.

    Returns the size [bytes], ``OVER_LIMIT`` if it would exceed ``limit``, or ``FAILED`` if a block cannot be read. It allocates
    at most ``limit`` and one block of lz4 (4 MiB).

    MemoryError if memory runs out, which does not mean that the bytes are wrong.
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
    """Decompress a block or stream with the library. Return its size, ``FAILED``, or ``NO_ROOM``."""
    try:
        return DECODERS[codec](source, out)
    except cramjam.DecompressionError as error:
        if _NO_MEMORY in str(error):
            raise MemoryError(printable(f"{error}")) from error
        return NO_ROOM if _FULL in str(error) else FAILED


def _stream(codec: int, data: Bytes, start: int, size: int, room: int, left: int, arena: Arena) -> int:
    """Decompress a payload of unknown size. It begins with ``room``, a guess, and retries with more room, up to ``left``."""
    source = data.data[start : start + size]
    # For a single member, the library is faster than zlib; for many small members, it is many times slower.
    many = codec == _GZIP and _GZIP_MEMBER * bytes(source).count(_MAGIC) > size
    while True:
        room = min(room, left)
        arena.reserve(room)
        written = FAILED if many else _library(codec, source, arena.view[arena.used : arena.used + room])
        if written == FAILED and codec == _GZIP:
            # The library rejects bytes after the last member; Kafka does not.
            return _members(bytes(source), left, arena)
        if written != NO_ROOM:
            return FAILED if written < 0 else written
        if room == left:
            return OVER_LIMIT
        room = 4 * room + (64 << 10)


def _members(source: bytes, left: int, arena: Arena) -> int:
    """Decompress gzip member by member up to the last valid member, as Kafka does. Return the size, ``FAILED`` or
    ``OVER_LIMIT``.
    """
    begin, position, size = arena.used, 0, len(source)
    most = min(left + 1, _SLICE)
    while True:
        member, step = zlib.decompressobj(wbits=31), _FIRST_STEP
        while True:
            # It passes slices, because zlib copies the bytes after a member's end.
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
