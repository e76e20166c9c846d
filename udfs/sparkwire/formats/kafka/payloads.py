"""Payloads: what each entry holds, decompressed where it is compressed.

Compressed payloads are inflated into memory that is used again and again, as much of them as is still in the cache when
it is parsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.column import Binary, empty
from sparkwire.errors import BAD_RECORD, DECOMPRESS_FAILED, OK, TOO_LARGE, UNKNOWN_CODEC
from sparkwire.formats.kafka import codecs
from sparkwire.formats.kafka.batch_headers import MAGIC_0, MAGIC_2, Fields, HeaderBlock
from sparkwire.formats.kafka.codecs import BAD_FRAME, Blocks, plan
from sparkwire.formats.kafka.framing import FrameBlock
from sparkwire.formats.kafka.inflate import OVER_LIMIT, Arena, inflate
from sparkwire.formats.kafka.layout import (
    BATCH_CODECS,
    BATCH_SIZE,
    CODEC_MASK,
    ENTRY,
    LEAST_SIZE,
    LEGACY_CODECS,
    NONE,
    OVERHEAD,
    SMALLEST_RECORD,
)
from sparkwire.formats.kafka.message import content, within
from sparkwire.formats.kafka.output import INT32_MAX
from sparkwire.kernels import Bytes, Ints, i32, int64, kernel

_SIZE = ENTRY["size"].offset

MAX_CELL_BYTES = 2_147_483_648
"""What a broker holds in a segment is 1 GiB, unless it is told otherwise: a cell with all of one may become twice that."""
ARENA_BYTES = 4 << 20  # still in the cache when it is parsed, and too much for Python's part of a filling to count


class OffsetRange(NamedTuple):
    """Which entries are opened: those that may have records from offset ``first`` to before ``end``."""

    first: int
    end: int


EVERY_OFFSET = OffsetRange(-(2**63), 2**63 - 1)


class Payloads(NamedTuple):
    """What is in the entries of a block, an item each."""

    codec: npt.NDArray[np.int8]
    first: Ints
    last: Ints
    """its bytes; when decompressed, those in the arena"""
    inflated: npt.NDArray[np.bool_]
    skipped: npt.NDArray[np.bool_]
    """whether all its records are outside of the offsets asked for"""
    blocks: Ints
    """end of its blocks in the plan"""


class Opened(NamedTuple):
    """Entries and their payloads, ready to be parsed."""

    entries: HeaderBlock
    payloads: Payloads
    arena: Bytes


def open_payloads(
    source: Binary,
    blocks: Iterable[HeaderBlock],
    wanted: OffsetRange,
    max_batch_bytes: int,
    max_cell_bytes: int = MAX_CELL_BYTES,
) -> Iterator[Opened]:
    """All entries in order, their payloads located and inflated; what is yielded is valid until the next is asked for.

    ``max_batch_bytes``: bound of what one compressed payload may become, ``max_cell_bytes``: of what all those of a row
    may become as records, ``ROW_BYTES`` each and their content [bytes].
    """
    inflater = _Inflater(source, min(max_batch_bytes, INT32_MAX), max_cell_bytes)
    for block in blocks:
        payloads = payloads_of(len(block.variant))
        if locate(source.data, block, wanted, payloads):
            yield from inflater.inflated(block, payloads)
        else:
            yield Opened(block, payloads, source.data)


def payloads_of(entries: int) -> Payloads:
    """Room for what is in so many entries."""
    return Payloads(
        codec=empty(entries, np.int8),
        first=empty(entries, np.int64),
        last=empty(entries, np.int64),
        inflated=empty(entries, np.bool_),
        skipped=empty(entries, np.bool_),
        blocks=empty(entries, np.int64),
    )


# -- where they lie


@kernel
def locate(data: Bytes, entries: HeaderBlock, wanted: OffsetRange, out: Payloads) -> bool:
    """Say where the payloads of entries lie; whether one is compressed. Entries that cannot be opened get their error."""
    frames, fields = entries.frames, entries.fields
    compressed = False
    for i in range(frames.begin.size):
        out.codec[i] = NONE
        out.inflated[i] = False
        out.skipped[i] = False
        out.first[i] = out.last[i] = frames.stop[i]
        if frames.error[i] == OK:
            if _is_outside(fields, i, entries.variant[i] == MAGIC_2, wanted):
                out.skipped[i] = True
            elif entries.variant[i] == MAGIC_2:
                frames.error[i] = _locate_batch(frames, fields, i, out)
            else:
                frames.error[i] = _locate_message(data, frames, fields, i, out)
            compressed |= out.codec[i] != NONE and frames.error[i] == OK
    return compressed


@kernel
def _is_outside(fields: Fields, i: int, is_batch: bool, wanted: OffsetRange) -> bool:
    """Whether an entry has no record within the offsets wanted; a wrapper tells its last offset only."""
    first = fields.offset[i]
    last = first + fields.last_offset_delta[i]
    wrapper = not is_batch and fields.attributes[i] & CODEC_MASK != NONE
    return bool(last < wanted.first or (first >= wanted.end and not wrapper))


@kernel
def _locate_batch(frames: FrameBlock, fields: Fields, i: int, out: Payloads) -> int:
    codec = fields.attributes[i] & CODEC_MASK
    if codec >= BATCH_CODECS:
        return UNKNOWN_CODEC
    if fields.record_count[i] < 0:
        return BAD_RECORD
    if fields.record_count[i] > 0:
        out.first[i] = frames.begin[i] + BATCH_SIZE
        out.codec[i] = codec
    return OK


@kernel
def _locate_message(data: Bytes, frames: FrameBlock, fields: Fields, i: int, out: Payloads) -> int:
    codec = fields.attributes[i] & CODEC_MASK
    out.first[i] = frames.begin[i] + OVERHEAD
    if codec == NONE:
        return OK
    if codec >= LEGACY_CODECS:
        return UNKNOWN_CODEC
    found = content(data, out.first[i], frames.stop[i])
    if not within(found.value, found.value_size, frames.stop[i]) or found.value_size < 0:
        return BAD_RECORD
    out.first[i] = found.value
    out.last[i] = found.value + found.value_size
    out.codec[i] = codec
    return OK


# -- what they become

ROW_BYTES = 100
"""what the columns of a record take, its key, value and headers apart [bytes]"""
NOT_COUNTED = -1


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


class _Inflater:
    """Memory for what payloads become, and how much the row at hand has become so far."""

    def __init__(self, source: Binary, limit: int, cell_limit: int) -> None:
        self._source = source
        self._limit = limit
        self._cell_limit, self._cell_bytes = cell_limit, 0
        self._arena = Arena(ARENA_BYTES)
        self._row, self._row_bytes = -1, 0  # its size and what its compressed entries have become

    def inflated(self, entries: HeaderBlock, payloads: Payloads) -> Iterator[Opened]:
        """The entries of a block some of which are compressed, by arenas full."""
        planned = planned_blocks(self._source.data, entries, payloads)
        compressed = np.flatnonzero((payloads.codec != NONE) & (entries.frames.error == OK))
        # As Python's own numbers: what is done for a batch may take no longer than the library does.
        blocks = list(zip(*(column.tolist() for column in planned), strict=True)) if len(compressed) else []
        start, entries_of_block = 0, len(entries.variant)
        while start < entries_of_block:
            compressed = compressed[self._inflate(entries, payloads, blocks, compressed) :]
            stop = int(compressed[0]) if len(compressed) else entries_of_block
            yield Opened(_part(entries, start, stop), _sliced(payloads, start, stop), self._arena.readonly())
            self._arena.clear()
            start = stop

    def _inflate(
        self,
        entries: HeaderBlock,
        payloads: Payloads,
        blocks: list[tuple[int, int, int, int]],
        compressed: Ints,
    ) -> int:
        """Open some of the ``compressed`` entries, until the arena is as full as the cache; how many."""
        frames = entries.frames
        ends = payloads.blocks[compressed].tolist()
        begins = np.where(compressed > 0, payloads.blocks[compressed - 1], 0).tolist()
        # Messages of magic 0 and 1 do not say how many they are.
        counts = np.where(entries.variant == MAGIC_2, entries.fields.record_count, NOT_COUNTED)[compressed].tolist()
        sizes: list[int] = []
        starts: list[int] = []
        arena, data, offsets = self._arena, self._source.data, self._source.offsets
        for row, count, begin, end in zip(frames.row[compressed].tolist(), counts, begins, ends, strict=True):
            if arena.used > ARENA_BYTES:
                break
            if row != self._row:
                # Whatever a row holds, its own records fit into one Arrow column.
                self._row, self._row_bytes, self._cell_bytes = row, int(offsets[row + 1] - offsets[row]), 0
            start = arena.used
            limit = min(self._limit, INT32_MAX - self._row_bytes, self._cell_limit - self._cell_bytes)
            size = inflate(data, blocks[begin:end], arena, limit) if limit >= 0 else OVER_LIMIT
            if size == OVER_LIMIT:
                # What was decompressed in vain counts, too: else a row of bombs could take any time.
                self._cell_bytes += max(limit, 0)
            elif size >= 0:
                rows = min(count, size // SMALLEST_RECORD)
                if count == NOT_COUNTED:
                    rows = count_messages(arena.bytes, start, start + size)
                if self._cell_bytes + size + ROW_BYTES * rows > self._cell_limit:
                    arena.used, size = start, OVER_LIMIT
                else:
                    self._row_bytes += size
                    self._cell_bytes += size + ROW_BYTES * rows
            starts.append(start)
            sizes.append(size)
        done = compressed[: len(sizes)]
        first, size_of = np.array(starts, np.int64), np.array(sizes, np.int64)
        failed = size_of < 0
        frames.error[done[failed]] = np.where(size_of[failed] == OVER_LIMIT, TOO_LARGE, DECOMPRESS_FAILED)
        opened = done[~failed]
        payloads.inflated[opened] = True
        payloads.first[opened] = first[~failed]
        payloads.last[opened] = (first + size_of)[~failed]
        return len(sizes)


def _part(entries: HeaderBlock, start: int, stop: int) -> HeaderBlock:
    """Some of its entries, the arrays shared."""
    frames, fields, variant = entries
    return HeaderBlock(
        FrameBlock._make(column[start:stop] for column in frames),
        Fields._make(column[start:stop] for column in fields),
        variant[start:stop],
    )


def _sliced(payloads: Payloads, start: int, stop: int) -> Payloads:
    return Payloads._make(column[start:stop] for column in payloads)


def planned_blocks(data: Bytes, entries: HeaderBlock, payloads: Payloads) -> Blocks:
    """What compressed payloads are made of."""
    planned = codecs.blocks(8 * len(entries.variant))  # a batch has one or a few
    count = plan_blocks(data, entries, payloads, planned)
    if count > len(planned.kind):
        planned = codecs.blocks(count)
        count = plan_blocks(data, entries, payloads, planned)  # fewer, now that small ones find their run
    return Blocks._make(column[:count] for column in planned)


@kernel
def plan_blocks(data: Bytes, entries: HeaderBlock, payloads: Payloads, out: Blocks) -> int:
    """Plan how compressed payloads are opened; how many blocks there are, which may be more than ``out`` has room for.

    Entries that cannot be opened get their error.
    """
    frames = entries.frames
    count = 0
    for i in range(frames.begin.size):
        if payloads.codec[i] != NONE and frames.error[i] == OK:
            header_checked = entries.variant[i] != MAGIC_0
            planned = plan(data, payloads.first[i], payloads.last[i], payloads.codec[i], header_checked, out, count)
            if planned == BAD_FRAME:
                frames.error[i] = DECOMPRESS_FAILED
            else:
                count = planned
        payloads.blocks[i] = count
    return count
