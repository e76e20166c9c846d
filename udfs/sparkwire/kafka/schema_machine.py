"""The kernel that runs the programs of `schema`: a message's fields, step by step.

Every pass of a loop consumes bytes, so that a count that lies ends with the bytes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.base.errors import BAD_LENGTH, BAD_MAGIC, OK, TOO_LARGE, TRUNCATED
from sparkwire.kernels import Bytes, Ints, i8, i16, i32, i64, int64, kernel
from sparkwire.kernels.varint import VARINT_BYTES, unsigned

VERSION_SIZE: Final = 2  # [bytes]
MOST_COPIED: Final = 1 << 26
"""what the texts of the items of one message may come to, each item having that which is above it [bytes]"""

# The steps of a program: what is read, into which slot, whether it may be null, where a loop goes on.
I8, I16, I32, I64, STRING, BYTES, LOOP, NEXT, TAGS, EMIT, END = range(11)


class Found(NamedTuple):
    """What reading found: a row for each slot, a column for each message."""

    numbers: Ints
    there: npt.NDArray[np.bool_]
    """whether the slot has a number: the count of items, too"""
    starts: Ints
    sizes: Ints
    """of texts, -1 where there is none [bytes]"""
    errors: npt.NDArray[np.int8]
    ends: npt.NDArray[np.int32]
    """where the innermost items of each message end, see `Reader`"""
    item_numbers: Ints
    item_starts: Ints
    item_sizes: Ints


@kernel
def read_versions(data: Bytes, starts: Ints, sizes: Ints, versions: npt.NDArray[np.int16]) -> None:
    """The i16 that each message begins with, 0 where it is not there."""
    for row in range(starts.size):
        versions[row] = i16(data, starts[row], False) if sizes[row] >= VERSION_SIZE else 0


@kernel
def _unsigned(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    value, pos = unsigned(data, pos, end, VARINT_BYTES)
    return int64(value & np.uint64(0xFFFFFFFF)), pos


@kernel
def read_size(data: Bytes, pos: int, end: int, width: int, flexible: bool) -> tuple[int, int]:
    """The size or count at ``pos``, -1 for null, and the position after it, -1 where the bytes end before."""
    if flexible:
        raised, pos = _unsigned(data, pos, end)
        return raised - 1, pos
    if end - pos < width:
        return int64(0), int64(-1)
    return (int64(i16(data, pos, False)) if width == 2 else int64(i32(data, pos, False))), pos + width


@kernel
def skip_tags(data: Bytes, pos: int, end: int) -> int:
    """The position after tagged fields, -1 where the bytes end before."""
    count, pos = _unsigned(data, pos, end)
    while pos >= 0 and count > 0:
        _, pos = _unsigned(data, pos, end)
        if pos >= 0:
            size, pos = _unsigned(data, pos, end)
            pos = pos + size if pos >= 0 and size <= end - pos else int64(-1)
        count -= 1
    return pos


@kernel
def run(
    data: Bytes,
    starts: Ints,
    sizes: Ints,
    which: Ints,
    steps: Ints,
    flexible: npt.NDArray[np.bool_],
    emit: Ints,
    left: Ints,
    found: Found,
) -> None:
    """Read every message; items are written where there is room for them, counted else."""
    found.ends[0] = 0
    for row in range(starts.size):
        found.ends[row + 1] = found.ends[row]
        if sizes[row] < 0:
            found.errors[row] = OK
        elif sizes[row] < VERSION_SIZE:
            found.errors[row] = TRUNCATED
        elif which[row] < 0:
            found.errors[row] = BAD_MAGIC
        else:
            end = starts[row] + sizes[row]
            found.errors[row] = run_one(
                data, starts[row] + VERSION_SIZE, end, which[row], steps, flexible, emit, left, row, found
            )


@kernel
def run_one(
    data: Bytes,
    pos: int,
    end: int,
    step: int,
    steps: Ints,
    flexible: npt.NDArray[np.bool_],
    emit: Ints,
    left: Ints,
    row: int,
    found: Found,
) -> int:
    """Read the message ``data[pos:end]``: the first thing that is wrong with it."""
    depth, copied = int64(0), int64(0)
    while steps[step, 0] != END:
        what, slot, nullable = steps[step, 0], steps[step, 1], steps[step, 2] != 0
        step += 1
        if what <= I64:
            width = int64(1) << what
            if end - pos < width:
                return TRUNCATED
            if slot >= 0:
                found.numbers[slot, row] = read_number(data, pos, what)
                found.there[slot, row] = True
            pos += width
        elif what <= LOOP:
            size, pos = read_size(data, pos, end, 2 if what == STRING else 4, flexible[step - 1])
            if pos < 0:
                return TRUNCATED
            if size < (-1 if nullable else 0):
                return BAD_LENGTH
            if what == LOOP:
                if slot >= 0 and size >= 0:
                    found.numbers[slot, row] = size
                    found.there[slot, row] = True
                if size > 0:
                    left[depth] = size
                    depth += 1
                else:
                    step = steps[step - 1, 3]
                continue
            if size > end - pos:
                return TRUNCATED
            if slot >= 0:
                found.starts[slot, row] = pos
                found.sizes[slot, row] = size
            pos += max(size, 0)
        elif what == NEXT:
            left[depth - 1] -= 1
            if left[depth - 1] > 0:
                step = steps[step - 1, 3]
            else:
                depth -= 1
        elif what == TAGS:
            pos = skip_tags(data, pos, end)
            if pos < 0:
                return TRUNCATED
        else:
            copied += found.sizes[emit[0], row]
            if copied > MOST_COPIED:
                return TOO_LARGE
            put_item(emit, row, found)
    return OK


@kernel
def read_number(data: Bytes, pos: int, what: int) -> int:
    if what == I8:
        return int64(i8(data, pos))
    if what == I16:
        return int64(i16(data, pos, False))
    return int64(i32(data, pos, False)) if what == I32 else i64(data, pos, False)


@kernel
def put_item(emit: Ints, row: int, found: Found) -> None:
    """One more item of the message: the text and the number that were read last."""
    at = int64(found.ends[row + 1])
    if at < found.item_numbers.size:
        found.item_numbers[at] = found.numbers[emit[1], row]
        found.item_starts[at] = found.starts[emit[0], row]
        found.item_sizes[at] = found.sizes[emit[0], row]
    found.ends[row + 1] = at + 1
