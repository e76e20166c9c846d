"""The machine that writes Avro: it runs a program over the columns and appends each row's datum.

As in `column_machine`, `run_encode` is deliberately one long function. A row that the schema cannot hold is NULL.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparkwire.avro import ops
from sparkwire.avro.ops import STEP
from sparkwire.avro.readers import fits_digits
from sparkwire.kernels import COPY_SLACK, Bytes, copy, i64, int64, kernel, store_u8, u8, uint64
from sparkwire.kernels.load import Table, slot
from sparkwire.kernels.varint import put_varint

Ints = NDArray[np.int64]

WORD_SLACK: Final = 32 + COPY_SLACK
"""[bytes] upper limit of what an instruction writes in addition to the bytes that it copies"""
_FRAME = 3  # the end of the items, the position in the outer level, the first instruction of an item


@kernel
def run_encode(
    code: Ints,
    table: Table,
    valid: NDArray[np.bool_],
    first: int,
    offsets: NDArray[np.int32],
    out: Bytes,
    stack: Ints,
    needed: Ints,
) -> int:
    """Write the rows from ``first`` on to ``out[offsets[row]:]``.

    Returns the row at which ``out`` was full, or the number of rows. On input, ``valid`` marks the rows to write; on output,
    the rows that were written. ``needed`` is the size [bytes] that ``out`` must have to continue.
    """
    for row in range(first, valid.size):
        at, pos, pc, depth, written = int64(row), int64(offsets[row]), int64(0), 0, valid[row]
        while written:
            op = code[pc]
            if pos + WORD_SLACK > out.size:
                needed[0] = pos + WORD_SLACK
                return row
            if op == ops.W_LONG:
                value = i64(slot(table, code[pc + 1]), at << 3, True)
                if value < code[pc + 2] or value > code[pc + 3]:
                    written = False
                else:
                    pos = put_varint(out, pos, value // code[pc + 4])
            elif op == ops.W_BRANCH:
                pos = put_varint(out, pos, code[pc + 1])
            elif op == ops.W_UNLESS:
                if u8(slot(table, code[pc + 1]), at) == 0:
                    pc = code[pc + 2]
                    continue
            elif op == ops.W_BYTES or op == ops.W_FIXED:
                ends = slot(table, code[pc + 1])
                start = i64(ends, at << 3, True)
                size = i64(ends, (at + 1) << 3, True) - start
                if op == ops.W_FIXED and size != code[pc + 2]:
                    written = False
                elif pos + size + WORD_SLACK > out.size:
                    needed[0] = pos + size + WORD_SLACK
                    return row
                else:
                    if op == ops.W_BYTES:
                        pos = put_varint(out, pos, size)
                    copy(out, pos, slot(table, code[pc + 1] + 1), start, size)
                    pos += size
            elif op == ops.W_WORD:
                width = code[pc + 2]
                copy(out, pos, slot(table, code[pc + 1]), at * width, width)
                pos += width
            elif op == ops.W_LIST:
                ends = slot(table, code[pc + 1])
                start, end = i64(ends, at << 3, True), i64(ends, (at + 1) << 3, True)
                if start == end:
                    store_u8(out, pos, np.uint8(0))
                    pos += 1
                    pc = code[pc + 2]
                    continue
                pos = put_varint(out, pos, end - start)
                stack[depth], stack[depth + 1], stack[depth + 2] = end, at, pc + STEP
                depth += _FRAME
                at = start
            elif op == ops.W_NEXT:
                at += 1
                if at < stack[depth - _FRAME]:
                    pc = stack[depth - 1]
                    continue
                depth -= _FRAME
                at = stack[depth + 1]
                store_u8(out, pos, np.uint8(0))
                pos += 1
            elif op == ops.W_DECIMAL:
                words = slot(table, code[pc + 1])
                low, high = uint64(i64(words, at << 4, True)), uint64(i64(words, (at << 4) + 8, True))
                size = code[pc + 3] if code[pc + 3] > 0 else _decimal_size(low, high)
                if not fits_digits(low, high, code[pc + 2]) or size < _decimal_size(low, high):
                    written = False
                elif pos + size + WORD_SLACK > out.size:
                    needed[0] = pos + size + WORD_SLACK
                    return row
                else:
                    if code[pc + 3] == 0:
                        pos = put_varint(out, pos, size)
                    pos = _write_decimal(out, pos, low, high, size)
            elif op == ops.W_JUMP:
                pc = code[pc + 1]
                continue
            elif op == ops.W_FAIL:
                written = False
            elif op == ops.W_END:
                break
            pc += STEP
        valid[row] = written
        offsets[row + 1] = pos if written else offsets[row]
    return int64(valid.size)


@kernel
def _decimal_size(low: int, high: int) -> int:
    """The size of the shortest two's complement form of a number [bytes]."""
    size = 16
    while size > 1:
        first = _decimal_byte(low, high, size - 1)
        second = _decimal_byte(low, high, size - 2)
        if not ((first == 0 and second < 128) or (first == 255 and second >= 128)):
            break
        size -= 1
    return size


@kernel
def _decimal_byte(low: int, high: int, k: int) -> int:
    """Byte ``k`` of a number of two words; byte 0 is the lowest. Beyond the two words, the sign byte."""
    if k >= 16:
        return 255 if int64(high) < 0 else 0
    word = low if k < 8 else high
    return int64((word >> uint64(8 * (k & 7))) & uint64(255))


@kernel
def _write_decimal(out: Bytes, pos: int, low: int, high: int, size: int) -> int:
    for k in range(size):
        store_u8(out, pos + k, np.uint8(_decimal_byte(low, high, size - 1 - k)))
    return pos + size
