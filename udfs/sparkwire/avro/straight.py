"""The machine for programs that run straight through: each instruction over a block of rows, before the next one.

In one row a field begins where the one before it ends, so the processor waits for each length; the same field of many rows
it reads at once. What a block needs beyond that (a row that is damaged, a buffer that has to grow) is left to `machine`,
which reads the block again, row by row: only there is it said what is wrong with a row.

A row's place is negative where it has no value for the next instruction: the complement of its place after a union's null,
``ABSENT`` in a row that is NULL.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparkwire.avro import ops
from sparkwire.avro.machine import Ints, Memory, Program
from sparkwire.avro.ops import LAST_VARINT, STEP
from sparkwire.avro.readers import HIGH_BITS, clear, pushed_together, read_varint, store_decimal
from sparkwire.errors import OK
from sparkwire.kernels import Bytes, copy, i32, i64, int64, kernel, prefetch, store_i32, store_i64, store_u8, u8, uint64
from sparkwire.kernels.blocks import high_bytes, lowest
from sparkwire.kernels.copy import CHUNK, copy_chunk
from sparkwire.kernels.slots import slot
from sparkwire.kernels.text import utf8_valid

ROWS: Final = 256
"""rows of a block: their data and what is made of them are to stay in the nearest cache"""
ABSENT: Final = -(1 << 63)
_AHEAD: Final = 1 << 14  # [bytes] about a block of short rows: so early are they asked for
_OPS: Final = {
    *(ops.INT, ops.LONG, ops.TEXT, ops.BYTES, ops.ENUM, ops.DECIMAL, ops.OPTION, ops.SKIP_VARINT, ops.SKIP_BYTES),
    *(ops.BOOLEAN, ops.FLOAT, ops.DOUBLE, ops.SKIP, ops.SET, ops.EMPTY),
}


def is_straight(code: Ints, entry: int) -> bool:
    """Whether a program has nothing else than what `run_straight` does."""
    words: list[int] = code.tolist()
    while words[entry] in _OPS:
        # A null goes on after the one instruction that it leaves out.
        if words[entry] == ops.OPTION and (words[entry + 3] != entry + 2 * STEP or words[entry + 4] < 0):
            return False
        entry += STEP
    return words[entry] == ops.END


@kernel
def run_straight(
    program: Program,
    memory: Memory,
    data: Bytes,
    starts: Ints,
    sizes: Ints,
    entry: int,
    first: int,
    errors: NDArray[np.int8],
) -> int:
    """Read the rows from ``first`` on, all by the program at ``entry``; where the block begins that `machine` has to read."""
    while first < starts.size:
        rows = min(ROWS, starts.size - first)
        if not _run_block(program, memory, data, starts, sizes, entry, first, rows):
            break
        errors[first : first + rows] = OK
        first += rows
    return first


@kernel
def _run_block(
    program: Program, memory: Memory, data: Bytes, starts: Ints, sizes: Ints, pc: int, first: int, rows: int
) -> bool:
    """Read ``rows`` rows from ``first`` on by the program at ``pc``; False, and nothing done, where `machine` has to."""
    code, used = program.code, memory.used
    places, ends, values, words = memory.block
    for k in range(rows):
        size = sizes[first + k]
        prefetch(data, starts[first + k] + _AHEAD)
        prefetch(data, starts[first + k] + _AHEAD + CHUNK)
        places[k] = starts[first + k] if size >= 0 else ABSENT
        ends[k] = starts[first + k] + size
    for k in range(memory.counters.size):
        memory.saved[k] = used[memory.counters[k]]
    done, optional = True, False
    while done and code[pc] != ops.END:
        op = code[pc]
        done = op > LAST_VARINT or _varints(data, places, ends, values, words, rows)
        if not done:
            pass
        elif op == ops.LONG or op == ops.INT:
            done = _numbers(code, pc, slot(memory.table, code[pc + 1]), values, first, rows)
        elif op == ops.TEXT or op == ops.BYTES:
            done = _texts(memory, code[pc + 1], op == ops.TEXT, data, places, ends, values, first, rows)
        elif op == ops.OPTION:
            done = _options(slot(memory.table, code[pc + 1]), code[pc + 2], places, values, first, rows)
        elif op == ops.ENUM:
            done = _symbols(program, memory, pc, places, values, first, rows)
        elif op == ops.DECIMAL:
            done = _decimals(slot(memory.table, code[pc + 1]), code[pc + 2], data, places, ends, values, first, rows)
        elif op == ops.BOOLEAN:
            done = _booleans(slot(memory.table, code[pc + 1]), data, places, ends, first, rows)
        elif op == ops.FLOAT or op == ops.DOUBLE:
            done = _words(slot(memory.table, code[pc + 1]), op == ops.DOUBLE, data, places, ends, first, rows)
        elif op == ops.SKIP or op == ops.SKIP_BYTES:
            done = _skipped(-1 if op == ops.SKIP_BYTES else code[pc + 1], places, ends, values, rows)
        elif op == ops.SET:
            _set(code, pc, slot(memory.table, code[pc + 1]), places, first, rows)
        elif op == ops.EMPTY:
            for k in range(first, first + rows):
                store_i32(slot(memory.table, code[pc + 1]), (k + 1) << 2, used[code[pc + 2]], True)
        if optional:
            for k in range(rows):
                places[k] = ~places[k] if ABSENT < places[k] < 0 else places[k]
        optional = op == ops.OPTION
        pc += STEP
    if not done:
        for k in range(memory.counters.size):
            used[memory.counters[k]] = memory.saved[k]
    return done


@kernel
def _varints(data: Bytes, places: Ints, ends: Ints, values: Ints, words: Ints, rows: int) -> bool:
    """The varint at each row's place, 0 where it has none; False where one cannot be read."""
    furthest = int64(0)
    for k in range(rows):
        furthest = max(furthest, places[k])
    if furthest + 8 > data.size:
        return _varints_one_by_one(data, places, ends, values, rows)
    together = int64(0)
    for k in range(rows):
        word = i64(data, max(places[k], 0), True)
        words[k] = word
        together |= word if places[k] >= 0 else 0
    # Without a branch in them: so these loops do eight rows at once.
    spare, longest = int64(0), int64(0)
    for k in range(rows if together & 128 == 0 else 0):  # one byte each, as branches, symbols and short sizes are
        there = places[k] >= 0
        number = words[k] & 127 if there else 0
        places[k] += 1 if there else 0
        values[k] = (number >> 1) ^ -(number & 1)
        spare = min(spare, ends[k] - places[k] if there else 0)
    for k in range(rows if together & 128 else 0):
        stops = uint64(~words[k] & HIGH_BITS)
        size = min(lowest(stops) + 1, 64)
        there = places[k] >= 0
        places[k] += size >> 3 if there else 0
        values[k] = pushed_together(uint64(words[k]), size) if there else 0
        spare = min(spare, ends[k] - places[k] if there else 0)
        longest = max(longest, int64(stops == uint64(0) and there))
    for k in range(rows if longest else 0):
        if places[k] >= 0 and ~words[k] & HIGH_BITS == 0:
            values[k], places[k] = read_varint(data, places[k] - 8, ends[k])
            spare = min(spare, places[k])
    return spare >= 0


@kernel
def _varints_one_by_one(data: Bytes, places: Ints, ends: Ints, values: Ints, rows: int) -> bool:
    """The same near the end of the data, where no word can be loaded."""
    for k in range(rows):
        values[k] = 0
        if places[k] >= 0:
            values[k], places[k] = read_varint(data, places[k], ends[k])
            if places[k] < 0:
                return False
    return True


@kernel
def _numbers(code: Ints, pc: int, out: Bytes, values: Ints, first: int, rows: int) -> bool:
    """Values as a column of INT or BIGINT; zero is within all bounds."""
    least, most = int64(0), int64(0)
    for k in range(rows):
        least, most = min(least, values[k]), max(most, values[k])
    if least < code[pc + 2] or most > code[pc + 3]:
        return False
    factor = code[pc + 4]
    if code[pc] == ops.LONG:
        for k in range(rows):
            store_i64(out, (first + k) << 3, values[k] * factor, True)
    else:
        for k in range(rows):
            store_i32(out, (first + k) << 2, values[k], True)
    return True


@kernel
def _texts(
    memory: Memory,
    number: int,
    is_text: bool,
    data: Bytes,
    places: Ints,
    ends: Ints,
    values: Ints,
    first: int,
    rows: int,
) -> bool:
    """As many bytes as each row's value says, to the slots of their offsets and bytes; text has to be UTF-8."""
    offsets, out = slot(memory.table, number), slot(memory.table, number + 1)
    place, total, spare = memory.used[number + 1], int64(0), int64(0)
    for k in range(rows):
        left = ends[k] - places[k] if places[k] >= 0 else int64(0)
        spare = min(spare, min(values[k], left - values[k]))
        total += values[k]
    if spare < 0 or place + total > memory.room[number + 1]:
        return False
    for k in range(rows):
        size, pos = values[k], places[k]
        odd = ~uint64(0) if is_text and size > 0 else uint64(0)
        if 0 < size <= CHUNK and pos + CHUNK <= data.size:
            odd &= high_bytes(data, pos) & (~uint64(0) >> uint64(CHUNK - size))
            copy_chunk(out, place, data, pos)
        else:
            copy(out, place, data, pos, size)
        if odd != uint64(0) and not utf8_valid(data, pos, size):
            return False
        place += size
        store_i32(offsets, (first + k + 1) << 2, place, True)
        places[k] = pos + size
    memory.used[number + 1] = place
    return True


@kernel
def _options(out: Bytes, null: int, places: Ints, values: Ints, first: int, rows: int) -> bool:
    """Validity of a union of null and one other, by the branch."""
    beyond = False
    for k in range(rows):
        valid = places[k] >= 0 and values[k] != null
        beyond |= values[k] != 0 and values[k] != 1
        store_u8(out, first + k, np.uint8(valid))
        places[k] = places[k] if valid or places[k] < 0 else ~places[k]
    return not beyond


@kernel
def _symbols(program: Program, memory: Memory, pc: int, places: Ints, values: Ints, first: int, rows: int) -> bool:
    """Texts of an enum, by their numbers."""
    number, first_span, count = program.code[pc + 1], program.code[pc + 2], program.code[pc + 3]
    spans, constants = program.spans, program.constants
    offsets, out = slot(memory.table, number), slot(memory.table, number + 1)
    place, room = memory.used[number + 1], memory.room[number + 1]
    least, most = int64(0), int64(0)
    for k in range(rows):
        least, most = min(least, values[k]), max(most, values[k])
    if least < 0 or most >= count:
        return False
    for k in range(rows):
        if places[k] >= 0:
            span = 2 * (first_span + values[k])
            size = spans[span + 1]
            if size < 0 or place + size > room:
                return False
            copy(out, place, constants, spans[span], size)
            place += size
        store_i32(offsets, (first + k + 1) << 2, place, True)
    memory.used[number + 1] = place
    return True


@kernel
def _decimals(
    out: Bytes, digits: int, data: Bytes, places: Ints, ends: Ints, values: Ints, first: int, rows: int
) -> bool:
    """Decimals, of as many bytes as each row's value says."""
    for k in range(rows):
        size, pos = values[k], places[k]
        if pos < 0:
            clear(out, first + k, 16)
            continue
        if size < 0 or size > ends[k] - pos or not store_decimal(out, (first + k) << 4, data, pos, size, digits):
            return False
        places[k] = pos + size
    return True


@kernel
def _booleans(out: Bytes, data: Bytes, places: Ints, ends: Ints, first: int, rows: int) -> bool:
    for k in range(rows):
        pos = places[k]
        if pos < 0:
            store_u8(out, first + k, np.uint8(0))
            continue
        if pos >= ends[k] or u8(data, pos) > 1:
            return False
        store_u8(out, first + k, u8(data, pos))
        places[k] = pos + 1
    return True


@kernel
def _words(out: Bytes, wide: bool, data: Bytes, places: Ints, ends: Ints, first: int, rows: int) -> bool:
    """Eight or four bytes of each row, as they are."""
    for k in range(rows):
        pos = places[k]
        if pos < 0:
            clear(out, first + k, 8 if wide else 4)
            continue
        places[k] = pos + (8 if wide else 4)
        if places[k] > ends[k]:
            return False
        if wide:
            store_i64(out, (first + k) << 3, i64(data, pos, True), True)
        else:
            store_i32(out, (first + k) << 2, i32(data, pos, True), True)
    return True


@kernel
def _skipped(size: int, places: Ints, ends: Ints, values: Ints, rows: int) -> bool:
    """Step over ``size`` bytes, or over as many as each row's value says where it is -1."""
    for k in range(rows):
        step = values[k] if size < 0 else size
        if places[k] >= 0:
            if step < 0 or step > ends[k] - places[k]:
                return False
            places[k] += step
    return True


@kernel
def _set(code: Ints, pc: int, out: Bytes, places: Ints, first: int, rows: int) -> None:
    """A constant, zero in a row that is NULL."""
    width = code[pc + 2]
    for k in range(rows):
        at = first + k
        if places[k] < 0:
            clear(out, at, width)
        elif width == 1:
            store_u8(out, at, np.uint8(code[pc + 3]))
        elif width == 4:
            store_i32(out, at << 2, code[pc + 3], True)
        else:
            store_i64(out, at * width, code[pc + 3], True)
            if width == 16:
                store_i64(out, (at << 4) + 8, code[pc + 4], True)
