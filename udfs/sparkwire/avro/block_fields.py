"""One field of a block's rows at once, for `straight`: from each row's place to the columns, or to its value and next place.

False where a row cannot be read, or a buffer has to grow.
"""

from __future__ import annotations

import numpy as np

from sparkwire.avro import ops
from sparkwire.avro.machine import Ints, Memory, Program
from sparkwire.avro.readers import HIGH_BITS, clear, pushed_together, read_varint, store_decimal, store_item
from sparkwire.kernels import Bytes, copy, i32, i64, int64, kernel, store_i32, store_i64, store_u8, u8, uint64
from sparkwire.kernels.blocks import high_bytes, lowest
from sparkwire.kernels.copy import CHUNK, copy_chunk
from sparkwire.kernels.slots import slot
from sparkwire.kernels.text import utf8_valid


@kernel
def read_varints(data: Bytes, places: Ints, ends: Ints, values: Ints, words: Ints, rows: int) -> bool:
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
        present = places[k] >= 0
        number = words[k] & 127 if present else 0
        places[k] += 1 if present else 0
        values[k] = (number >> 1) ^ -(number & 1)
        spare = min(spare, ends[k] - places[k] if present else 0)
    for k in range(rows if together & 128 else 0):
        stops = uint64(~words[k] & HIGH_BITS)
        size = min(lowest(stops) + 1, 64)
        present = places[k] >= 0
        places[k] += size >> 3 if present else 0
        values[k] = pushed_together(uint64(words[k]), size) if present else 0
        spare = min(spare, ends[k] - places[k] if present else 0)
        longest = max(longest, int64(stops == uint64(0) and present))
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
def store_numbers(code: Ints, pc: int, out: Bytes, values: Ints, first: int, rows: int) -> bool:
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
def store_texts(
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
def take_branches(out: Bytes, null: int, places: Ints, values: Ints, first: int, rows: int) -> bool:
    """Validity of a union of null and one other, by the branch."""
    beyond = False
    for k in range(rows):
        valid = places[k] >= 0 and values[k] != null
        beyond |= values[k] != 0 and values[k] != 1
        store_u8(out, first + k, np.uint8(valid))
        places[k] = places[k] if valid or places[k] < 0 else ~places[k]
    return not beyond


@kernel
def store_symbols(program: Program, memory: Memory, pc: int, places: Ints, values: Ints, first: int, rows: int) -> bool:
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
def store_decimals(
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
def store_booleans(out: Bytes, data: Bytes, places: Ints, ends: Ints, first: int, rows: int) -> bool:
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
def store_words(out: Bytes, wide: bool, data: Bytes, places: Ints, ends: Ints, first: int, rows: int) -> bool:
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
def skip(size: int, places: Ints, ends: Ints, values: Ints, rows: int) -> bool:
    """Step over ``size`` bytes, or over as many as each row's value says where it is -1."""
    for k in range(rows):
        step = values[k] if size < 0 else size
        if places[k] >= 0:
            if step < 0 or step > ends[k] - places[k]:
                return False
            places[k] += step
    return True


@kernel
def fill(code: Ints, pc: int, out: Bytes, places: Ints, first: int, rows: int) -> None:
    """A constant, zero in a row that is NULL."""
    for k in range(rows):
        if places[k] < 0:
            clear(out, first + k, code[pc + 2])
        else:
            store_item(out, first + k, code[pc + 2], code[pc + 3], code[pc + 4])
