"""Framing: where each entry of log bytes begins, where the next one does, and what is wrong with it.

A row of a column is log bytes. The size of an entry leads to the next entry. If a size cannot be right, the next entry is at
the first position with a complete entry and a right checksum, if any. If only the checksum or the magic is wrong, the size
counts, unless

- no valid entry begins where it ends, but one begins before: the size was too large, or
- nothing like an entry begins where it ends, but a valid entry follows later: the size was too small.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.base.error_codes import BAD_LENGTH, BAD_MAGIC, CRC_MISMATCH, OK, TRUNCATED
from sparkwire.core.column import Binary, arrays, part
from sparkwire.kafka import layout
from sparkwire.kernels import Bytes, Ints, crc32, crc32c, i8, i32, int64, kernel, u32
from sparkwire.kernels.checksums.crc import CRC32, CRC32C
from sparkwire.kernels.checksums.range_crc import RangeSums, begin_row, range_crc, range_sums

BLOCK_ENTRIES = 1 << 14
EVERYTHING = 1 << 62  # more bytes than there are

# What a wrong checksum is: not looked for, but to find the way after other corruption; an error; none where the size of its
# entry is right, as a wrong one would hide what follows; with any other corruption the end. Or they have been found before.
IGNORED, REPORTED, BELIEVED, THE_END, GIVEN = range(5)

_SIZE_AT = layout.ENTRY["size"].offset
_MESSAGE_CRC = layout.MESSAGE_ENTRY_0["crc"].offset
_MESSAGE_COVERED = layout.MESSAGE_ENTRY_0["crc"].end
_MESSAGE_SIZE_0 = layout.MESSAGE_ENTRY_0.size
_MESSAGE_SIZE_1 = layout.MESSAGE_ENTRY_1.size
_BATCH_CRC = layout.BATCH["crc"].offset
_BATCH_COVERED = layout.BATCH["crc"].end


class FrameBlock(NamedTuple):
    """Some entries that follow each other, an item each. Positions count from the start of the column's data."""

    row: npt.NDArray[np.int32]
    begin: Ints
    stop: Ints
    """where the next entry begins, or the row ends"""
    reach: npt.NDArray[np.int32]
    """size of its readable header [bytes]; 0 for none"""
    whole: npt.NDArray[np.bool_]
    """whether ``stop`` is where its size says"""
    error: npt.NDArray[np.int8]


class EntrySums(NamedTuple):
    """What a search for valid entries keeps of the current row."""

    message: RangeSums
    batch: RangeSums


def entry_sums(row: int, longest: int) -> EntrySums:
    """For the row that begins at ``row``, and others of up to ``longest`` bytes."""
    return EntrySums(range_sums(CRC32, row, longest), range_sums(CRC32C, row, longest))


# What `Framing.progress` holds: the row, the position in the column's data, where the last search for a valid entry ended
# and the last row with corruption, -1 before any.
_ROW, POSITION, _FOUND, _DAMAGED = range(4)


class Framing(NamedTuple):
    """A column whose entries are found, and how far that has come."""

    data: Bytes
    offsets: Ints
    wrong_crc: int
    """what a wrong checksum is"""
    progress: Ints
    sums: EntrySums
    given: FrameBlock
    """the entries, one a row, where they have been found before"""

    @property
    def position(self) -> int:
        """Where the next entry begins."""
        return int(self.progress[POSITION])

    @property
    def most_entries(self) -> int:
        """Of the next block, 0 at the end."""
        if self.progress[_ROW] == len(self.offsets) - 1:
            return 0
        return min(BLOCK_ENTRIES, int(self.offsets[-1]) - self.position)


def framing_of(source: Binary, wrong_crc: int = REPORTED) -> Framing:
    """Before the first entry of a column."""
    first = int(source.offsets[0])
    progress = np.array([0, first, -1, -1], np.int64)
    # One type of offsets: the kernel does not compile again for the other.
    offsets = source.offsets.astype(np.int64, copy=False)
    return Framing(source.data, offsets, wrong_crc, progress, entry_sums(first, source.longest), arrays(FrameBlock, 0))


def framing_of_row(data: Bytes, wrong_crc: int) -> Framing:
    """The same of a single row."""
    return framing_of(Binary(data, np.array([0, len(data)], np.int64), None), wrong_crc)


def framing_of_entries(data: Bytes, frames: FrameBlock) -> tuple[Binary, Framing]:
    """Entries that have been found, each a separate row."""
    offsets = np.append(frames.begin, frames.stop[-1])
    framing = Framing(data, offsets, GIVEN, np.array([0, offsets[0], -1, -1], np.int64), entry_sums(0, 0), frames)
    return Binary(data, offsets, None), framing


def frame_blocks(framing: Framing) -> Iterator[FrameBlock]:
    """All entries of all rows in order."""
    while room := framing.most_entries:
        block = arrays(FrameBlock, room)
        yield part(block, 0, find_entries(framing, EVERYTHING, block, 0))


@kernel
def smallest(magic: int) -> int:
    """Smallest ``size`` of an entry [bytes]."""
    if magic == 2:
        return layout.SMALLEST[2]
    return layout.SMALLEST[1] if magic == 1 else layout.SMALLEST[0]


@kernel
def frame_error(data: Bytes, pos: int, end: int) -> int:
    """What is wrong with the entry at ``pos``, its checksum apart."""
    if end - pos < layout.OVERHEAD:
        return TRUNCATED
    size = int64(i32(data, pos + _SIZE_AT, False))
    if size < layout.LEAST_SIZE:
        return BAD_LENGTH
    if size > end - pos - layout.OVERHEAD:
        return TRUNCATED
    magic = i8(data, pos + layout.MAGIC)
    if magic < 0 or magic > 2:
        return BAD_MAGIC
    return OK if size >= smallest(magic) else BAD_LENGTH


@kernel
def entry_end(data: Bytes, pos: int) -> int:
    """Where the entry at ``pos`` ends by its size."""
    return pos + layout.OVERHEAD + int64(i32(data, pos + _SIZE_AT, False))


@kernel
def crc_ok(data: Bytes, pos: int) -> bool:
    """Whether the checksum of the well-framed entry at ``pos`` is right."""
    end = entry_end(data, pos)
    if i8(data, pos + layout.MAGIC) == 2:
        covered = pos + _BATCH_COVERED
        return bool(crc32c(data, covered, end - covered) == u32(data, pos + _BATCH_CRC, False))
    covered = pos + _MESSAGE_COVERED
    return bool(crc32(data, covered, end - covered) == u32(data, pos + _MESSAGE_CRC, False))


@kernel
def crc_ok_in_row(data: Bytes, pos: int, sums: EntrySums) -> bool:
    """The same in bounded time, for a search that asks at every position, and for sizes that may be wrong."""
    end = entry_end(data, pos)
    if i8(data, pos + layout.MAGIC) == 2:
        crc = range_crc(data, pos + _BATCH_COVERED, end, sums.batch)
        return bool(crc == u32(data, pos + _BATCH_CRC, False))
    return bool(range_crc(data, pos + _MESSAGE_COVERED, end, sums.message) == u32(data, pos + _MESSAGE_CRC, False))


@kernel
def next_valid(data: Bytes, pos: int, stop: int, end: int, largest: int, sums: EntrySums) -> int:
    """The first position from ``pos`` on at which a whole entry with a right checksum is, else ``stop``.

    ``end``: where the entries end, perhaps beyond ``data``. Entries of more than ``largest`` bytes are not looked for; ``data``
    has those that begin before ``stop``.
    """
    while pos < stop:
        if (
            frame_error(data, pos, end) == OK
            and entry_end(data, pos) - pos <= largest
            and crc_ok_in_row(data, pos, sums)
        ):
            return pos
        pos += 1
    return stop


@kernel
def reach_of(data: Bytes, pos: int, stop: int, error: int) -> int:
    """How many bytes from ``pos`` on are a header that can be read."""
    if error == BAD_LENGTH or stop - pos <= layout.MAGIC:
        return 0
    magic = i8(data, pos + layout.MAGIC)
    if magic < 0 or magic > 2:
        return layout.MAGIC + 1 if error == BAD_MAGIC else 0
    if magic == 2:
        return min(stop - pos, layout.BATCH_SIZE)
    return min(stop - pos, _MESSAGE_SIZE_1 if magic == 1 else _MESSAGE_SIZE_0)


@kernel
def size_is_believed(stop: int, end: int, valid: int, follows: bool) -> bool:
    """Whether a corrupt entry ends at ``stop``, as its size says, and not at ``valid``.

    That is where the first valid entry after it begins, else ``end``. ``follows``: whether what begins at ``stop`` is like an
    entry.
    """
    return valid >= stop and (valid >= end or follows)


@kernel
def find_entry(
    data: Bytes, pos: int, end: int, verify: bool, next_entry: int, damaged: bool, sums: EntrySums
) -> tuple[int, int, bool, int]:
    """The entry at ``pos`` of the row that ends at ``end``: its error, its stop, whether it is whole, the new ``next_entry``."""
    error = frame_error(data, pos, end)
    whole = error == OK or error == BAD_MAGIC
    stop = entry_end(data, pos) if whole else end
    if error == OK and verify:
        # Where one size has lied others may, each over all that follows.
        ok = crc_ok_in_row(data, pos, sums) if damaged else crc_ok(data, pos)
        error = OK if ok else CRC_MISMATCH
    if error != OK:
        follows = whole and stop < end and frame_error(data, stop, end) == OK
        if not (follows and crc_ok_in_row(data, stop, sums)):
            if next_entry <= pos:
                next_entry = next_valid(data, pos + 1, end, end, EVERYTHING, sums)
            if not (whole and size_is_believed(stop, end, next_entry, follows)):
                whole = False
                stop = next_entry
    return error, stop, whole, next_entry


@kernel
def find_entries(framing: Framing, budget: int, out: FrameBlock, count: int) -> int:
    """Write the next entries, about ``budget`` bytes of them, after the ``count`` that ``out`` has; how many it has then."""
    data, offsets, wrong_crc, progress, sums, given = framing
    row, pos, next_entry, damaged = progress[_ROW], progress[POSITION], progress[_FOUND], progress[_DAMAGED]
    first = pos
    while row < offsets.size - 1 and count < out.begin.size and pos - first < budget:
        end = offsets[row + 1]
        if wrong_crc == GIVEN:
            out.row[count] = row
            out.begin[count] = pos
            out.stop[count] = end
            out.reach[count] = given.reach[row]
            out.whole[count] = given.whole[row]
            out.error[count] = given.error[row]
            count += 1
            row += 1
            pos = end
            continue
        if pos >= end:
            row += 1
            begin_row(pos, sums.message)
            begin_row(pos, sums.batch)
            continue
        error, whole = frame_error(data, pos, end), True
        if error == OK and (wrong_crc == IGNORED or (damaged != row and crc_ok(data, pos))):
            stop = entry_end(data, pos)  # nearly all go this way, and without a call
        elif wrong_crc == THE_END:
            row = offsets.size - 1
            break
        else:
            error, stop, whole, next_entry = find_entry(
                data, pos, end, wrong_crc != IGNORED, next_entry, damaged == row, sums
            )
            damaged = row if error != OK else damaged
            if error == CRC_MISMATCH and whole and wrong_crc == BELIEVED:
                error = OK
        out.row[count] = row
        out.begin[count] = pos
        out.stop[count] = stop
        out.reach[count] = reach_of(data, pos, stop, error)
        out.whole[count] = whole
        out.error[count] = error
        count += 1
        pos = stop
    progress[_ROW], progress[POSITION], progress[_FOUND], progress[_DAMAGED] = row, pos, next_entry, damaged
    return count
