"""Framing: the position, the end and the error of each entry of log bytes.

A row of a column contains log bytes. An entry's size determines the position of the next entry. If the size is impossible, the
next entry is at the first position with a complete entry and a valid checksum, if any. If only the checksum or the magic is
wrong, the size is used, except in two cases:

- no valid entry begins at the entry's end, but one begins before it: the size is too large;
- nothing like an entry begins at the entry's end, but a valid entry follows later: the size is too small.

``kafka_valid_bytes``, ``kafka_next_offset`` and ``kafka_search_offset`` read only as many headers as they need.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import BAD_LENGTH, BAD_MAGIC, CRC_MISMATCH, OK, TRUNCATED
from sparkwire.core.column import Binary, arrays, binary_of, empty, part, primitive, struct
from sparkwire.kafka import layout
from sparkwire.kernels import Bytes, Ints, crc32, crc32c, i8, i32, i64, int64, kernel, u32
from sparkwire.kernels.checksums.crc import CRC32, CRC32C
from sparkwire.kernels.checksums.range_crc import RangeSums, begin_row, range_crc, range_sums

BLOCK_ENTRIES = 1 << 14
EVERYTHING = 1 << 62  # more bytes than any column has

# How framing handles checksums.
# IGNORED: it computes them only to resume after other corruption. REPORTED: a wrong one is an error.
# BELIEVED: a wrong one is no error if the entry's size is right; a wrong size would hide the entries after it.
# THE_END: framing ends at any corruption. FRAMED: another framing has found the entries.
IGNORED, REPORTED, BELIEVED, THE_END, FRAMED = range(5)

_SIZE_AT = layout.ENTRY["size"].offset
_ZEROS = 8
"""number of bytes that a search compares with 0 at once"""
_MESSAGE_CRC = layout.MESSAGE_ENTRY_0["crc"].offset
_MESSAGE_COVERED = layout.MESSAGE_ENTRY_0["crc"].end
_MESSAGE_SIZE_0 = layout.MESSAGE_ENTRY_0.size
_MESSAGE_SIZE_1 = layout.MESSAGE_ENTRY_1.size
_BATCH_CRC = layout.BATCH["crc"].offset
_BATCH_COVERED = layout.BATCH["crc"].end


class FrameBlock(NamedTuple):
    """Consecutive entries, with an item for each. Positions count from the start of the column's data."""

    row: npt.NDArray[np.int32]
    begin: Ints
    stop: Ints
    """position of the next entry, or end of the row"""
    reach: npt.NDArray[np.int32]
    """size of the readable header [bytes]; 0 for none"""
    whole: npt.NDArray[np.bool_]
    """whether ``stop`` follows from the entry's size"""
    error: npt.NDArray[np.int8]


class EntrySums(NamedTuple):
    """Checksums of the current row, which make a search for valid entries fast."""

    message: RangeSums
    batch: RangeSums


def entry_sums(row: int, longest: int) -> EntrySums:
    """The sums for the row that begins at ``row``, and for other rows of up to ``longest`` bytes."""
    return EntrySums(range_sums(CRC32, row, longest), range_sums(CRC32C, row, longest))


# Items of `Framing.progress`: the row, the position in the column's data, the result of the last search for a valid entry, and
# the last corrupt row. The last two are -1 at the beginning.
_ROW, POSITION, _NEXT_ENTRY, _CORRUPT_ROW = range(4)


class Framing(NamedTuple):
    """A column whose entries are being found, and the progress."""

    data: Bytes
    offsets: Ints
    wrong_crc: int
    """how framing handles checksums: IGNORED, REPORTED, BELIEVED, THE_END or FRAMED"""
    progress: Ints
    sums: EntrySums
    framed: FrameBlock
    """the entries, one for each row, if ``wrong_crc`` is FRAMED"""

    @property
    def position(self) -> int:
        """Position of the next entry."""
        return int(self.progress[POSITION])

    @property
    def most_entries(self) -> int:
        """Largest possible number of entries in the next block, 0 at the end."""
        if self.progress[_ROW] == len(self.offsets) - 1:
            return 0
        return min(BLOCK_ENTRIES, int(self.offsets[-1]) - self.position)


def framing_of(source: Binary, wrong_crc: int = REPORTED) -> Framing:
    """The state before the first entry of a column."""
    first = int(source.offsets[0])
    progress = np.array([0, first, -1, -1], np.int64)
    # All offsets get one type, so that the kernel compiles only once.
    offsets = source.offsets.astype(np.int64, copy=False)
    return Framing(source.data, offsets, wrong_crc, progress, entry_sums(first, source.longest), arrays(FrameBlock, 0))


def framing_of_entries(data: Bytes, frames: FrameBlock) -> tuple[Binary, Framing]:
    """A column that has each of the entries as a row, and its framing."""
    offsets = np.append(frames.begin, frames.stop[-1])
    framing = Framing(data, offsets, FRAMED, np.array([0, offsets[0], -1, -1], np.int64), entry_sums(0, 0), frames)
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
    """The error of the entry at ``pos``, except a wrong checksum."""
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
    """The end of the entry at ``pos`` according to its size."""
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
    """As `crc_ok`, but in bounded time, for a search over all positions and for sizes that may be wrong."""
    end = entry_end(data, pos)
    if i8(data, pos + layout.MAGIC) == 2:
        crc = range_crc(data, pos + _BATCH_COVERED, end, sums.batch)
        return bool(crc == u32(data, pos + _BATCH_CRC, False))
    return bool(range_crc(data, pos + _MESSAGE_COVERED, end, sums.message) == u32(data, pos + _MESSAGE_CRC, False))


@kernel
def next_valid(data: Bytes, pos: int, stop: int, end: int, largest: int, sums: EntrySums) -> int:
    """The first position from ``pos`` on with a complete entry and a valid checksum, else ``stop``.

    ``end`` is the end of the entries, which may be beyond ``data``. It does not find entries larger than ``largest`` bytes.
    ``data`` must have all bytes of smaller entries that begin before ``stop``.
    """
    while pos < stop:
        if pos + _SIZE_AT + _ZEROS <= data.size and i64(data, pos + _SIZE_AT, False) == 0:
            pos += _ZEROS - 3  # the sizes of entries at all these positions are 0, as in the unused part of a file
        elif (
            frame_error(data, pos, end) == OK
            and entry_end(data, pos) - pos <= largest
            and crc_ok_in_row(data, pos, sums)
        ):
            return pos
        else:
            pos += 1
    return stop


@kernel
def reach_of(data: Bytes, pos: int, stop: int, error: int) -> int:
    """Size of the readable header at ``pos`` [bytes]."""
    if error == BAD_LENGTH or stop - pos <= layout.MAGIC:
        return 0
    magic = i8(data, pos + layout.MAGIC)
    if magic < 0 or magic > 2:
        return layout.MAGIC + 1 if error == BAD_MAGIC else 0
    if magic == 2:
        return min(stop - pos, layout.BATCH_SIZE)
    return min(stop - pos, _MESSAGE_SIZE_1 if magic == 1 else _MESSAGE_SIZE_0)


@kernel
def size_is_plausible(stop: int, end: int, valid: int, follows: bool) -> bool:
    """Whether a corrupt entry ends at ``stop``, as its size says, and not at ``valid``.

    ``valid`` is the position of the first valid entry after it, else ``end``. ``follows`` is whether the bytes at ``stop`` look
    like an entry.
    """
    return valid >= stop and (valid >= end or follows)


@kernel
def find_entry(
    data: Bytes, pos: int, end: int, verify: bool, next_entry: int, corrupt: bool, sums: EntrySums
) -> tuple[int, int, bool, int]:
    """Error, stop and ``whole`` of the entry at ``pos`` of the row that ends at ``end``, and the new ``next_entry``."""
    error = frame_error(data, pos, end)
    whole = error == OK or error == BAD_MAGIC
    stop = entry_end(data, pos) if whole else end
    if error == OK and verify:
        # In a corrupt row, many sizes may be wrong and extend over the rest of the row, so the checksum must take bounded time.
        ok = crc_ok_in_row(data, pos, sums) if corrupt else crc_ok(data, pos)
        error = OK if ok else CRC_MISMATCH
    if error != OK:
        follows = whole and stop < end and frame_error(data, stop, end) == OK
        if not (follows and crc_ok_in_row(data, stop, sums)):
            if next_entry <= pos:
                next_entry = next_valid(data, pos + 1, end, end, EVERYTHING, sums)
            if not (whole and size_is_plausible(stop, end, next_entry, follows)):
                whole = False
                stop = next_entry
    return error, stop, whole, next_entry


@kernel
def find_entries(framing: Framing, budget: int, out: FrameBlock, count: int) -> int:
    """Append the next entries, about ``budget`` bytes, to the ``count`` entries in ``out``. Return the new count."""
    data, offsets, wrong_crc, progress, sums, framed = framing
    row, pos, next_entry, corrupt_row = (
        progress[_ROW],
        progress[POSITION],
        progress[_NEXT_ENTRY],
        progress[_CORRUPT_ROW],
    )
    first = pos
    while row < offsets.size - 1 and count < out.begin.size and pos - first < budget:
        end = offsets[row + 1]
        if wrong_crc == FRAMED:
            out.row[count] = row
            out.begin[count] = pos
            out.stop[count] = end
            out.reach[count] = framed.reach[row]
            out.whole[count] = framed.whole[row]
            out.error[count] = framed.error[row]
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
        if error == OK and (wrong_crc == IGNORED or (corrupt_row != row and crc_ok(data, pos))):
            stop = entry_end(data, pos)  # the fast path of nearly all entries, without a call
        elif wrong_crc == THE_END:
            row = offsets.size - 1
            break
        else:
            error, stop, whole, next_entry = find_entry(
                data, pos, end, wrong_crc != IGNORED, next_entry, corrupt_row == row, sums
            )
            corrupt_row = row if error != OK else corrupt_row
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
    progress[_ROW], progress[POSITION], progress[_NEXT_ENTRY], progress[_CORRUPT_ROW] = (
        row,
        pos,
        next_entry,
        corrupt_row,
    )
    return count


# -- the valid prefix of log bytes, and the position of an offset

_OFFSET = layout.ENTRY["offset"].offset
_LAST_DELTA = layout.BATCH["last_offset_delta"].offset


@kernel
def last_offset(data: Bytes, pos: int) -> int:
    """Offset of the last record of the well-framed entry at ``pos``."""
    offset = i64(data, pos + _OFFSET, False)
    return offset + int64(i32(data, pos + _LAST_DELTA, False)) if i8(data, pos + layout.MAGIC) == 2 else offset


@kernel
def valid_prefixes(data: Bytes, offsets: npt.NDArray[Any], sizes: npt.NDArray[np.int32], following: Ints) -> None:
    """Size of the valid entries at the front of each row [bytes], and the offset after the last of them."""
    for row in range(sizes.size):
        start, end = int64(offsets[row]), int64(offsets[row + 1])
        pos = start
        following[row] = 0
        while pos < end and frame_error(data, pos, end) == OK and crc_ok(data, pos):
            following[row] = last_offset(data, pos) + 1
            pos = entry_end(data, pos)
        sizes[row] = pos - start


def _prefixes(data: pa.Array) -> tuple[npt.NDArray[np.int32], Ints]:
    source = binary_of(data)
    sizes, following = empty(source.rows, np.int32), empty(source.rows, np.int64)
    valid_prefixes(source.data, source.offsets, sizes, following)
    return sizes, following


def decode_valid_bytes(data: pa.Array) -> pa.Array:
    return primitive(_prefixes(data)[0])


def decode_next_offset(data: pa.Array) -> pa.Array:
    sizes, following = _prefixes(data)
    return primitive(following, sizes > 0)


@kernel
def find_offsets(
    data: Bytes,
    offsets: npt.NDArray[Any],
    targets: Ints,
    sums: EntrySums,
    offsets_of_rows: Ints,
    positions: npt.NDArray[np.int32],
) -> None:
    """Offset and position of the first readable entry of each row whose last offset is at least the target, or -1."""
    for row in range(targets.size):
        start, end = int64(offsets[row]), int64(offsets[row + 1])
        pos, searched, damaged = start, int64(-1), False
        begin_row(start, sums.message)
        begin_row(start, sums.batch)
        positions[row] = -1
        offsets_of_rows[row] = 0
        while pos < end and positions[row] < 0:
            error, stop, whole, searched = find_entry(data, pos, end, False, searched, damaged, sums)
            damaged |= error != OK
            if whole and error != BAD_MAGIC and last_offset(data, pos) >= targets[row]:
                offsets_of_rows[row] = last_offset(data, pos)
                positions[row] = pos - start
            pos = stop


def decode_search_offset(data: pa.Array, target: pa.Array) -> pa.Array:
    source = binary_of(data)
    offsets, positions = empty(source.rows, np.int64), empty(source.rows, np.int32)
    targets = target.fill_null(0).to_numpy(zero_copy_only=False)
    sums = entry_sums(int(source.offsets[0]), source.longest)
    find_offsets(source.data, source.offsets, targets, sums, offsets, positions)
    some = positions >= 0
    return struct({"offset": primitive(offsets), "position": primitive(np.maximum(positions, 0))}, some)
