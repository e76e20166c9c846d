"""The machine that fills columns: it runs a program over each row's datum and stores each value in its column.

A *slot* is a buffer of one level. Level 0 has an item for each row. Each array or map of the schema has a separate level, with
an item for each of its items in all rows. A value that its type does not allow gets an error code, and reading continues after
it. If the data end too early, or the position of the next value is unknown, the row's items leave all levels.

`run` is deliberately one long function: a call that passes all these arrays costs more than reading a field.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparkwire.avro import ops, readers
from sparkwire.avro.ops import LAST_VARINT, STEP
from sparkwire.avro.readers import (
    clear,
    is_double,
    pushed_together,
    read_varint,
    store_decimal,
    store_item,
    store_scaled,
)
from sparkwire.base.error_codes import BAD_FIELD, BAD_LENGTH, OK, TRUNCATED
from sparkwire.kernels import Bytes, copy, i32, i64, int64, kernel, store_i32, store_i64, store_u8, u8, uint64
from sparkwire.kernels.blocks import BLOCK, high_bytes, lowest
from sparkwire.kernels.load import Table, float_to_double, long_to_double, long_to_float, slot
from sparkwire.kernels.text import utf8_valid

Ints = NDArray[np.int64]

NO_ROOM: Final = 99
"""not an error in the data: a buffer must grow"""
_BAD_VALUE: Final = 98
"""a value is BAD_FIELD, and the start of the next value is known"""
NOTE: Final = 3  # words: row, instruction, position in the level; the position is -1 if the whole row cannot be read
STACK: Final = 4096  # words: enough for 2048 nested arrays or calls
_FRAME = 2  # array or map: items left in the block, position in the outer level; call: return address


class SchemaProgram(NamedTuple):
    """The program of a schema; the module `program` writes it."""

    code: Ints
    """``STEP`` words for each instruction"""
    jumps: Ints
    """jump targets of the union branches"""
    spans: Ints
    """start and size of each text in ``constants``; a text with size -1 gives an error"""
    constants: Bytes


class Memory(NamedTuple):
    """The memory in which the columns are built."""

    table: Table
    """the slots"""
    notes: Ints
    """``NOTE`` words for each value that is BAD_FIELD"""
    used: Ints
    """used size of each slot of bytes [bytes], then of each level [items], then the number of notes"""
    room: Ints
    """the capacity of each, in the same order"""
    counters: Ints
    """the indexes in ``used`` that change"""
    saved: Ints
    """the values of these indexes before the current row"""
    stack: Ints
    needed: Ints
    """the buffer that was too small, as an index into ``used``, and the capacity that it needs"""


@kernel
def run(
    program: SchemaProgram,
    memory: Memory,
    data: Bytes,
    starts: Ints,
    sizes: Ints,
    entries: NDArray[np.int32],
    nothing: int,
    first: int,
    errors: NDArray[np.int8],
) -> int:
    """Decode the rows from ``first`` on. Returns the row at which a buffer was full, or the number of rows.

    A row's program begins at ``entries[row]``. The program at ``nothing`` fills in a row that is NULL or cannot be read.
    """
    code, jumps, spans, constants = program.code, program.jumps, program.spans, program.constants
    table, used, room, stack = memory.table, memory.used, memory.room, memory.stack
    counters, saved = memory.counters, memory.saved
    slots, notes = table.size // 2, used.size - 1
    for row in range(first, starts.size):
        for k in range(counters.size):
            saved[k] = used[counters[k]]
        error, failed, first_bad = OK, OK, int64(0)
        pos, end = starts[row], starts[row] + sizes[row]
        pc = int64(entries[row]) if sizes[row] >= 0 else nothing
        at, depth, free = int64(row), 0, readers.MAX_EMPTY_ITEMS
        while True:
            op = code[pc]
            value = int64(0)
            if op <= LAST_VARINT:
                # Most varints are read here, because a call costs as much as all other work for a field.
                if pos < end and u8(data, pos) < 128:
                    value = int64(u8(data, pos))
                    value = (value >> 1) ^ -(value & 1)
                    pos += 1
                elif pos + 8 <= end and ~i64(data, pos, True) & readers.HIGH_BITS != 0:
                    word = i64(data, pos, True)
                    size = lowest(uint64(~word & readers.HIGH_BITS)) + 1
                    value = pushed_together(uint64(word), size)
                    pos += size >> 3
                else:
                    value, pos = read_varint(data, pos, end)
                    if pos < 0:
                        error = ~pos
            if error != OK:
                pass
            elif op == ops.LONG:
                if code[pc + 2] <= value <= code[pc + 3]:
                    store_i64(slot(table, code[pc + 1]), at << 3, value * code[pc + 4], True)
                else:
                    error = _BAD_VALUE
            elif op == ops.INT:
                if code[pc + 2] <= value <= code[pc + 3]:
                    store_i32(slot(table, code[pc + 1]), at << 2, value, True)
                else:
                    error = _BAD_VALUE
            elif op <= ops.BYTES and op >= ops.TEXT:
                bytes_slot = code[pc + 1] + 1
                place = used[bytes_slot]
                ascii_size = value
                if op == ops.TEXT and 0 < value <= end - pos:
                    ascii_size = int64(0)
                    while ascii_size < value and pos + ascii_size + BLOCK <= data.size:
                        odd = high_bytes(data, pos + ascii_size)
                        if odd != uint64(0) and lowest(odd) < value - ascii_size:
                            break
                        ascii_size += BLOCK
                if value < 0 or value > readers.MAX_LENGTH:
                    error = BAD_LENGTH
                elif value > end - pos:
                    error = TRUNCATED
                elif ascii_size < value and not utf8_valid(data, pos + ascii_size, value - ascii_size):
                    error = _BAD_VALUE
                    pos += value
                elif place + value > room[bytes_slot]:
                    memory.needed[0], memory.needed[1] = bytes_slot, place + value
                    error = NO_ROOM
                else:
                    copy(slot(table, bytes_slot), place, data, pos, value)
                    used[bytes_slot] = place + value
                    store_i32(slot(table, bytes_slot - 1), (at + 1) << 2, place + value, True)
                    pos += value
            elif op >= ops.FLOAT and op <= ops.FLOAT_TO_DOUBLE:
                width = 8 if op == ops.DOUBLE else 4
                if width > end - pos:
                    error = TRUNCATED
                elif op == ops.DOUBLE:
                    store_i64(slot(table, code[pc + 1]), at << 3, i64(data, pos, True), True)
                elif op == ops.FLOAT:
                    store_i32(slot(table, code[pc + 1]), at << 2, i32(data, pos, True), True)
                else:
                    store_i64(slot(table, code[pc + 1]), at << 3, float_to_double(i32(data, pos, True)), True)
                pos += width
            elif op == ops.BOOLEAN:
                if pos >= end:
                    error = TRUNCATED
                else:
                    if u8(data, pos) > 1:
                        error = _BAD_VALUE
                    store_u8(slot(table, code[pc + 1]), at, u8(data, pos) & np.uint8(1))
                    pos += 1
            elif op == ops.UNION:
                if 0 <= value < code[pc + 2]:
                    pc = jumps[code[pc + 1] + value]
                    continue
                error = BAD_FIELD
            elif op == ops.OPTION:
                # A union of null and one other type: set the validity, then run the other type's code or jump behind it.
                store_u8(slot(table, code[pc + 1]), at, np.uint8(value != code[pc + 2]))
                if value == code[pc + 2]:
                    cleared, width = code[pc + 4], code[pc + 5]
                    if cleared >= 0 and width == 0:
                        store_i32(slot(table, cleared), (at + 1) << 2, used[cleared + 1], True)
                    elif cleared >= 0:
                        clear(slot(table, cleared), at, width)
                    pc = code[pc + 3]
                    continue
                if value != 1 - code[pc + 2]:
                    error = BAD_FIELD
            elif op == ops.ENUM or op == ops.SET_TEXT:
                span = code[pc + 2] + value
                bytes_slot = code[pc + 1] + 1
                place = used[bytes_slot]
                if (op == ops.ENUM and (value < 0 or value >= code[pc + 3])) or spans[2 * span + 1] < 0:
                    error = _BAD_VALUE
                elif place + spans[2 * span + 1] > room[bytes_slot]:
                    memory.needed[0], memory.needed[1] = bytes_slot, place + spans[2 * span + 1]
                    error = NO_ROOM
                else:
                    size = spans[2 * span + 1]
                    copy(slot(table, bytes_slot), place, constants, spans[2 * span], size)
                    used[bytes_slot] = place + size
                    store_i32(slot(table, bytes_slot - 1), (at + 1) << 2, place + size, True)
            elif op == ops.SET:
                store_item(slot(table, code[pc + 1]), at, code[pc + 2], code[pc + 3], code[pc + 4])
            elif op == ops.JUMP:
                pc = code[pc + 1]
                continue
            elif op == ops.NEXT:
                at += code[pc + 2]
                stack[depth - _FRAME] -= 1
                pc = code[pc + 1] if stack[depth - _FRAME] == 0 else code[pc + 1] + STEP
                continue
            elif op == ops.BLOCK:
                level, least = code[pc + 1], code[pc + 3]
                if value < 0:
                    # After a negative count comes the size of the block, for readers that skip it.
                    value = -value
                    size, pos = read_varint(data, pos, end)
                    if pos < 0:
                        error = ~pos
                    elif size < 0 or size > readers.MAX_LENGTH:
                        error = BAD_LENGTH
                    elif size > end - pos:
                        error = TRUNCATED
                if error != OK:
                    pass
                elif value == 0:
                    depth -= _FRAME
                    if level >= 0:
                        used[slots + level] = at
                        at = stack[depth + 1]
                        store_i32(slot(table, code[pc + 2]), (at + 1) << 2, used[slots + level], True)
                    else:
                        at = stack[depth + 1]
                    pc = code[pc + 4]
                    continue
                elif value < 0 or value > readers.MAX_LENGTH:
                    error = BAD_LENGTH
                elif value > (end - pos if least == 0 else (end - pos) // least) and least > 0:
                    error = TRUNCATED
                elif least == 0 and value > free // code[pc + 5]:
                    error = BAD_LENGTH
                elif level >= 0 and at + value > room[slots + level]:
                    memory.needed[0], memory.needed[1] = slots + level, at + value
                    error = NO_ROOM
                else:
                    stack[depth - _FRAME] = value
                    free -= value * code[pc + 5] if least == 0 else 0
            elif op == ops.LIST or op == ops.OPEN or op == ops.CALL:
                level = code[pc + 1]
                if depth + _FRAME > stack.size:
                    error = BAD_LENGTH
                elif op == ops.CALL:
                    stack[depth] = pc + STEP
                    depth += _FRAME
                    pc = level
                    continue
                elif op == ops.OPEN and used[slots + level] + code[pc + 2] > room[slots + level]:
                    memory.needed[0], memory.needed[1] = slots + level, used[slots + level] + code[pc + 2]
                    error = NO_ROOM
                else:
                    stack[depth + 1] = at
                    depth += _FRAME
                    at = used[slots + level] if level >= 0 else at
            elif op == ops.FIXED:
                size = code[pc + 2] if code[pc + 2] >= 0 else end - pos
                bytes_slot = code[pc + 1] + 1
                place = used[bytes_slot]
                if size > end - pos:
                    error = TRUNCATED
                elif place + size > room[bytes_slot]:
                    memory.needed[0], memory.needed[1] = bytes_slot, place + size
                    error = NO_ROOM
                else:
                    copy(slot(table, bytes_slot), place, data, pos, size)
                    used[bytes_slot] = place + size
                    store_i32(slot(table, bytes_slot - 1), (at + 1) << 2, place + size, True)
                    pos += size
            elif op == ops.DECIMAL or op == ops.DECIMAL_FIXED:
                size = value if op == ops.DECIMAL else code[pc + 3]
                if size < 0 or size > readers.MAX_LENGTH:
                    error = BAD_LENGTH
                elif size > end - pos:
                    error = TRUNCATED
                else:
                    out = slot(table, code[pc + 1])
                    if not store_decimal(out, at << 4, data, pos, size, code[pc + 2], code[pc + 4]):
                        error = _BAD_VALUE
                    pos += size
            elif op == ops.SKIP or op == ops.SKIP_BYTES:
                size = value if op == ops.SKIP_BYTES else code[pc + 1]
                if size < 0 or size > readers.MAX_LENGTH:
                    error = BAD_LENGTH
                elif size > end - pos:
                    error = TRUNCATED
                else:
                    pos += size
            elif op == ops.LONG_TO_DOUBLE or op == ops.LONG_TO_FLOAT:
                if value < code[pc + 2] or value > code[pc + 3]:
                    error = _BAD_VALUE
                elif op == ops.LONG_TO_DOUBLE:
                    store_i64(slot(table, code[pc + 1]), at << 3, long_to_double(value), True)
                    if code[pc + 4] == 1 and not is_double(value):
                        error = _BAD_VALUE
                else:
                    store_i32(slot(table, code[pc + 1]), at << 2, long_to_float(value), True)
            elif op == ops.LONG_DIVIDED:
                if value < code[pc + 2] or value > code[pc + 3] or value % code[pc + 4] != 0:
                    error = _BAD_VALUE
                else:
                    store_i64(slot(table, code[pc + 1]), at << 3, value // code[pc + 4], True)
            elif op == ops.LONG_TO_DECIMAL:
                high = ~uint64(0) if value < 0 else uint64(0)
                out = slot(table, code[pc + 1])
                if (
                    value < code[pc + 4]
                    or value > code[pc + 5]
                    or not store_scaled(out, at << 4, uint64(value), high, code[pc + 2], code[pc + 3])
                ):
                    error = _BAD_VALUE
            elif op == ops.EMPTY:
                store_i32(slot(table, code[pc + 1]), (at + 1) << 2, used[code[pc + 2]], True)
            elif op == ops.ADD:
                at += 1
            elif op == ops.CLOSE:
                depth -= _FRAME
                used[slots + code[pc + 1]] = at
                at = stack[depth + 1]
                store_i32(slot(table, code[pc + 2]), (at + 1) << 2, used[slots + code[pc + 1]], True)
            elif op == ops.RETURN:
                depth -= _FRAME
                pc = stack[depth]
                continue
            elif op == ops.BAD:
                error = _BAD_VALUE
            elif op == ops.END:
                break
            if error == OK:
                pc += STEP
                continue
            if error == _BAD_VALUE and used[notes] < room[notes]:
                if op == ops.TEXT or op == ops.ENUM:
                    store_i32(slot(table, code[pc + 1]), (at + 1) << 2, used[code[pc + 1] + 1], True)
                elif op != ops.BAD and op != ops.BOOLEAN:
                    narrow = op == ops.INT or op == ops.LONG_TO_FLOAT
                    wide = op == ops.DECIMAL or op == ops.DECIMAL_FIXED or op == ops.LONG_TO_DECIMAL
                    clear(slot(table, code[pc + 1]), at, 4 if narrow else 16 if wide else 8)
                memory.notes[NOTE * used[notes]] = row
                memory.notes[NOTE * used[notes] + 1] = pc
                memory.notes[NOTE * used[notes] + 2] = at
                used[notes] += 1
                if failed == OK:
                    failed, first_bad = BAD_FIELD, pc
                pc += STEP
                error = OK
                continue
            if error == _BAD_VALUE:
                memory.needed[0], memory.needed[1] = notes, used[notes] + 1
                error = NO_ROOM
            for k in range(counters.size):
                used[counters[k]] = saved[k]
            if error != NO_ROOM and (failed != OK or error == BAD_FIELD):
                # The first error counts. This one makes the whole row NULL.
                if used[notes] == room[notes]:
                    memory.needed[0], memory.needed[1] = notes, used[notes] + 1
                    error = NO_ROOM
                else:
                    memory.notes[NOTE * used[notes]] = row
                    memory.notes[NOTE * used[notes] + 1] = pc if failed == OK else first_bad
                    memory.notes[NOTE * used[notes] + 2] = -1
                    used[notes] += 1
            if error == NO_ROOM:
                return row
            pc, at, depth, failed, error = nothing, int64(row), 0, error if failed == OK else failed, OK
        errors[row] = failed
    return int64(starts.size)
