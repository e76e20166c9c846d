"""Find the entries of log bytes: where each begins, where the next does, and whether it is sound.

A row of a column is log bytes; its entries are told by their sizes alone. Where a size cannot be right, the next entry is
the first position at which a whole entry stands whose checksum is right, or there is none. Where only the checksum or the
magic is wrong, the size is believed, unless

- no sound entry stands where it ends, but one stands before: the size was too large, or
- nothing like an entry stands where it ends, but a sound entry stands behind: the size was too small.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.column import Binary, empty
from sparkwire.errors import BAD_LENGTH, BAD_MAGIC, CRC_MISMATCH, OK, TRUNCATED
from sparkwire.formats.kafka.layout import (
    BATCH,
    BATCH_SIZE,
    ENTRY,
    LEAST_SIZE,
    MAGIC,
    MESSAGE_0,
    MESSAGE_0_SIZE,
    MESSAGE_1_SIZE,
    OVERHEAD,
    SMALLEST,
)
from sparkwire.formats.kafka.running import Running, range_crc, running
from sparkwire.kernels import Bytes, crc32, crc32c, i8, i32, int64, kernel, u32

Ints = npt.NDArray[np.int64]

SLAB_ENTRIES = 1 << 14
EVERYTHING = 1 << 62  # more bytes than there are

_SIZE_AT = ENTRY["size"].offset
_MESSAGE_CRC = OVERHEAD + MESSAGE_0["crc"].offset
_MESSAGE_COVERED = OVERHEAD + MESSAGE_0["crc"].end
_BATCH_CRC = BATCH["crc"].offset
_BATCH_COVERED = BATCH["crc"].end

# What `walk` keeps between two calls: the row, the position in it, where the last search ended, the last row with damage.
_ROW, POSITION, _FOUND, _DAMAGED = range(4)


class Slab(NamedTuple):
    """Some entries that follow each other, an item each. Positions count from the start of the column's data."""

    row: npt.NDArray[np.int32]
    begin: Ints
    stop: Ints
    """where the next entry begins, or the row ends"""
    reach: npt.NDArray[np.int32]
    """how many bytes of it are a header that can be read [bytes]; 0 where no header is known to stand"""
    whole: npt.NDArray[np.bool_]
    """whether ``stop`` is where its size says"""
    error: npt.NDArray[np.int8]


_SLAB_DTYPES = (np.int32, np.int64, np.int64, np.int32, np.bool_, np.int8)


def slab_of(entries: int) -> Slab:
    """Room for so many entries."""
    return Slab._make(empty(entries, dtype) for dtype in _SLAB_DTYPES)


def before_first(source: Binary) -> tuple[Ints, Running]:
    """What `walk` keeps, before the first entry of a column; ``state[POSITION]`` is how far it has come."""
    longest = int(np.diff(source.offsets).max(initial=0))
    return np.array([0, source.offsets[0], -1, -1], np.int64), running(longest)


def slabs(source: Binary, verify: bool) -> Iterator[Slab]:
    """All entries of all rows in order.

    ``verify``: compute every checksum; else checksums only help to find the way behind damage.
    """
    state, search = before_first(source)
    while state[POSITION] < source.offsets[-1]:
        slab = slab_of(SLAB_ENTRIES)
        count = walk(source.data, source.offsets, verify, EVERYTHING, state, search, slab, 0)
        yield part(slab, 0, count)


def part(slab: Slab, start: int, stop: int) -> Slab:
    """Some of its entries, the arrays shared."""
    return Slab._make(column[start:stop] for column in slab)


@kernel
def smallest(magic: int) -> int:
    """Smallest ``size`` of an entry [bytes]."""
    if magic == 2:
        return SMALLEST[2]
    return SMALLEST[1] if magic == 1 else SMALLEST[0]


@kernel
def frame(data: Bytes, pos: int, end: int) -> int:
    """What is wrong with the entry at ``pos``, its checksum apart."""
    if end - pos < OVERHEAD:
        return TRUNCATED
    size = int64(i32(data, pos + _SIZE_AT, False))
    if size < LEAST_SIZE:
        return BAD_LENGTH
    if size > end - pos - OVERHEAD:
        return TRUNCATED
    magic = i8(data, pos + MAGIC)
    if magic < 0 or magic > 2:
        return BAD_MAGIC
    return OK if size >= smallest(magic) else BAD_LENGTH


@kernel
def next_of(data: Bytes, pos: int) -> int:
    """Where the entry at ``pos`` ends by its size."""
    return pos + OVERHEAD + int64(i32(data, pos + _SIZE_AT, False))


@kernel
def checks(data: Bytes, pos: int) -> bool:
    """Whether the checksum of the well-framed entry at ``pos`` is right."""
    end = next_of(data, pos)
    if i8(data, pos + MAGIC) == 2:
        covered = pos + _BATCH_COVERED
        return bool(crc32c(data, covered, end - covered) == u32(data, pos + _BATCH_CRC, False))
    covered = pos + _MESSAGE_COVERED
    return bool(crc32(data, covered, end - covered) == u32(data, pos + _MESSAGE_CRC, False))


@kernel
def _checks_in_row(data: Bytes, row: int, pos: int, search: Running) -> bool:
    """The same in bounded time, for a search that asks at every position, and for sizes that may lie."""
    end = next_of(data, pos)
    if i8(data, pos + MAGIC) == 2:
        crc = range_crc(data, row, pos + _BATCH_COVERED, end, True, search)
        return bool(crc == u32(data, pos + _BATCH_CRC, False))
    crc = range_crc(data, row, pos + _MESSAGE_COVERED, end, False, search)
    return bool(crc == u32(data, pos + _MESSAGE_CRC, False))


@kernel
def next_sound(data: Bytes, row: int, pos: int, end: int, search: Running) -> int:
    """The first position from ``pos`` on at which a whole entry stands whose checksum is right, else ``end``."""
    while pos < end:
        if frame(data, pos, end) == OK and _checks_in_row(data, row, pos, search):
            return pos
        pos += 1
    return end


@kernel
def _reach(data: Bytes, pos: int, stop: int, error: int) -> int:
    """How many bytes from ``pos`` on are a header that can be read."""
    if error == BAD_LENGTH or stop - pos <= MAGIC:
        return 0
    magic = i8(data, pos + MAGIC)
    if magic < 0 or magic > 2:
        return MAGIC + 1 if error == BAD_MAGIC else 0
    if magic == 2:
        return min(stop - pos, BATCH_SIZE)
    return min(stop - pos, OVERHEAD + (MESSAGE_1_SIZE if magic == 1 else MESSAGE_0_SIZE))


@kernel
def walk(
    data: Bytes,
    offsets: npt.NDArray[Any],
    verify: bool,
    budget: int,
    state: Ints,
    search: Running,
    out: Slab,
    count: int,
) -> int:
    """Write the entries from ``state`` on behind the ``count`` that ``out`` has, about ``budget`` bytes; how many it has then."""
    row, pos, found, damaged = state[_ROW], state[POSITION], state[_FOUND], state[_DAMAGED]
    first = pos
    while row < offsets.size - 1 and count < out.begin.size and pos - first < budget:
        end = int64(offsets[row + 1])
        if pos >= end:
            row += 1
            continue
        error = frame(data, pos, end)
        whole = error == OK or error == BAD_MAGIC
        stop = next_of(data, pos) if whole else end
        start = int64(offsets[row])
        if error == OK and verify:
            # Where one size has lied others may, each over all that follows.
            right = _checks_in_row(data, start, pos, search) if damaged == row else checks(data, pos)
            error = OK if right else CRC_MISMATCH
        if error != OK:
            damaged = row
            follows = whole and stop < end and frame(data, stop, end) == OK
            if not (follows and _checks_in_row(data, start, stop, search)):
                if found <= pos:
                    found = next_sound(data, start, pos + 1, end, search)
                if not whole or found < stop or (found < end and not follows):
                    whole = False
                    stop = found
        out.row[count] = row
        out.begin[count] = pos
        out.stop[count] = stop
        out.reach[count] = _reach(data, pos, stop, error)
        out.whole[count] = whole
        out.error[count] = error
        count += 1
        pos = stop
    state[_ROW], state[POSITION], state[_FOUND], state[_DAMAGED] = row, pos, found, damaged
    return count
