"""The machine that writes JSON: it runs a program over each row's datum and writes text as it reads.

As in `column_machine`, one long function on purpose. Text for which there is no room ends the run before its row.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparkwire.avro import ops
from sparkwire.avro.column_machine import NO_ROOM, SchemaProgram
from sparkwire.avro.logical_text import LOGICAL_SLACK, write_duration, write_scaled, write_uuid
from sparkwire.avro.ops import J_LAST_VARINT, STEP
from sparkwire.avro.readers import LONGEST, MOST_EMPTY_ITEMS, decimal_words, fits_digits, read_varint
from sparkwire.base.error_codes import BAD_FIELD, BAD_LENGTH, OK, TRUNCATED
from sparkwire.kernels import COPY_SLACK, Bytes, copy, i32, i64, int64, kernel, store_u8, u8
from sparkwire.kernels.base64 import write_base64
from sparkwire.kernels.json_text import write_java_text
from sparkwire.kernels.shortest import write_double, write_float
from sparkwire.kernels.text import decimal_width, utf8_valid, write_decimal
from sparkwire.kernels.times import write_date, write_time, write_timestamp

Ints = NDArray[np.int64]

TEXT_SLACK: Final = LOGICAL_SLACK + COPY_SLACK
"""[bytes] that any step writes beside what it takes from the data"""
_ESCAPED: Final = 6  # [bytes] that one byte becomes at most
_FRAME: Final = 2  # what is left of a block and whether an item has been written; of a call where it goes on


@kernel
def run_json(
    program: SchemaProgram,
    data: Bytes,
    starts: Ints,
    sizes: Ints,
    first: int,
    offsets: NDArray[np.int32],
    out: Bytes,
    stack: Ints,
    errors: NDArray[np.int8],
    needed: Ints,
) -> int:
    """Write the rows from ``first`` on to ``out[offsets[row]:]``; the row for which there is no room, or how many rows there are.

    ``needed`` then says how much room it takes [bytes] to go on.
    """
    code, jumps, spans, constants = program.code, program.jumps, program.spans, program.constants
    for row in range(first, starts.size):
        at = int64(offsets[row])
        pos, end = starts[row], starts[row] + sizes[row]
        pc, depth, free, error = int64(0), 0, MOST_EMPTY_ITEMS, OK
        while sizes[row] >= 0:
            op = code[pc]
            value = int64(0)
            if at + TEXT_SLACK > out.size:
                needed[0] = at + TEXT_SLACK
                error = NO_ROOM
            elif op <= J_LAST_VARINT:
                value, pos = read_varint(data, pos, end)
                if pos < 0:
                    error = ~pos
            if error != OK:
                pass
            elif op == ops.J_SPAN or op == ops.J_ENUM:
                span = code[pc + 1] + value
                if op == ops.J_ENUM and (value < 0 or value >= code[pc + 2]):
                    error = BAD_FIELD
                elif at + spans[2 * span + 1] + TEXT_SLACK > out.size:
                    needed[0] = at + spans[2 * span + 1] + TEXT_SLACK
                    error = NO_ROOM
                else:
                    copy(out, at, constants, spans[2 * span], spans[2 * span + 1])
                    at += spans[2 * span + 1]
            elif op == ops.J_NUMBER:
                if value < code[pc + 1] or value > code[pc + 2]:
                    error = BAD_FIELD
                else:
                    width = decimal_width(value)
                    write_decimal(out, at, value, width)
                    at += width
            elif op == ops.J_TEXT or op == ops.J_BASE64:
                if value < 0 or value > LONGEST:
                    error = BAD_LENGTH
                elif value > end - pos:
                    error = TRUNCATED
                elif op == ops.J_TEXT and not utf8_valid(data, pos, value):
                    error = BAD_FIELD
                elif at + _ESCAPED * value + TEXT_SLACK > out.size:
                    needed[0] = at + _ESCAPED * value + TEXT_SLACK
                    error = NO_ROOM
                else:
                    store_u8(out, at, ord('"'))
                    if op == ops.J_TEXT:
                        at = write_java_text(out, at + 1, data, pos, value, True)
                    else:
                        at = write_base64(out, at + 1, data, pos, value)
                    store_u8(out, at, ord('"'))
                    at += 1
                    pos += value
            elif op == ops.J_UNION:
                if 0 <= value < code[pc + 2]:
                    pc = jumps[code[pc + 1] + value]
                    continue
                error = BAD_FIELD
            elif op == ops.J_JUMP:
                pc = code[pc + 1]
                continue
            elif op == ops.J_DOUBLE or op == ops.J_FLOAT:
                width = 8 if op == ops.J_DOUBLE else 4
                if width > end - pos:
                    error = TRUNCATED
                elif op == ops.J_DOUBLE:
                    at = write_double(out, at, i64(data, pos, True))
                else:
                    at = write_float(out, at, int64(i32(data, pos, True)))
                pos += width
            elif op == ops.J_BOOLEAN:
                if pos >= end:
                    error = TRUNCATED
                elif u8(data, pos) > 1:
                    error = BAD_FIELD
                else:
                    span = code[pc + 1] + int64(u8(data, pos))
                    copy(out, at, constants, spans[2 * span], spans[2 * span + 1])
                    at += spans[2 * span + 1]
                    pos += 1
            elif op == ops.J_DATE or op == ops.J_TIME or op == ops.J_TIMESTAMP:
                if value < code[pc + 1] or value > code[pc + 2]:
                    error = BAD_FIELD
                else:
                    store_u8(out, at, ord('"'))
                    if op == ops.J_DATE:
                        at = write_date(out, at + 1, value)
                    elif op == ops.J_TIME:
                        at = write_time(out, at + 1, value, code[pc + 3])
                    else:
                        at = write_timestamp(out, at + 1, value, code[pc + 3], code[pc + 4] != 0)
                    store_u8(out, at, ord('"'))
                    at += 1
            elif op == ops.J_NEXT:
                stack[depth - _FRAME] -= 1
                if stack[depth - _FRAME] == 0:
                    pc = code[pc + 1]
                else:
                    store_u8(out, at, ord(","))
                    at += 1
                    pc = code[pc + 1] + STEP
                continue
            elif op == ops.J_BLOCK:
                least = code[pc + 1]
                if value < 0:
                    value = -value
                    size, pos = read_varint(data, pos, end)
                    if pos < 0:
                        error = ~pos
                    elif size < 0 or size > LONGEST:
                        error = BAD_LENGTH
                    elif size > end - pos:
                        error = TRUNCATED
                if error != OK:
                    pass
                elif value == 0:
                    depth -= _FRAME
                    store_u8(out, at, np.uint8(code[pc + 3]))
                    at += 1
                    pc = code[pc + 2]
                    continue
                elif value < 0 or value > LONGEST or (least == 0 and value > free // code[pc + 4]):
                    error = BAD_LENGTH
                elif least > 0 and value > (end - pos) // max(least, 1):
                    error = TRUNCATED
                else:
                    if stack[depth - _FRAME + 1] != 0:
                        store_u8(out, at, ord(","))
                        at += 1
                    stack[depth - _FRAME], stack[depth - _FRAME + 1] = value, 1
                    free -= value * code[pc + 4] if least == 0 else 0
            elif op == ops.J_LIST or op == ops.J_CALL:
                if depth + _FRAME > stack.size:
                    error = BAD_LENGTH
                else:
                    stack[depth], stack[depth + 1] = pc + STEP, 0
                    depth += _FRAME
                    if op == ops.J_CALL:
                        pc = code[pc + 1]
                        continue
                    store_u8(out, at, np.uint8(code[pc + 1]))
                    at += 1
            elif op == ops.J_RETURN:
                depth -= _FRAME
                pc = stack[depth]
                continue
            elif op == ops.J_DECIMAL or op == ops.J_DECIMAL_FIXED:
                size = value if op == ops.J_DECIMAL else code[pc + 3]
                if size < 0 or size > LONGEST:
                    error = BAD_LENGTH
                elif size > end - pos:
                    error = TRUNCATED
                else:
                    low, high, whole = decimal_words(data, pos, size)
                    if not whole or not fits_digits(low, high, code[pc + 1]):
                        error = BAD_FIELD
                    else:
                        store_u8(out, at, ord('"'))
                        at = write_scaled(out, at + 1, low, high, code[pc + 2])
                        store_u8(out, at, ord('"'))
                        at += 1
                        pos += size
            elif op == ops.J_FIXED or op == ops.J_UUID or op == ops.J_DURATION:
                size = code[pc + 1]
                if size > end - pos:
                    error = TRUNCATED
                elif at + _ESCAPED * size + TEXT_SLACK > out.size:
                    needed[0] = at + _ESCAPED * size + TEXT_SLACK
                    error = NO_ROOM
                else:
                    store_u8(out, at, ord('"'))
                    if op == ops.J_FIXED:
                        at = write_base64(out, at + 1, data, pos, size)
                    elif op == ops.J_UUID:
                        at = write_uuid(out, at + 1, data, pos)
                    else:
                        at = write_duration(out, at + 1, data, pos)
                    store_u8(out, at, ord('"'))
                    at += 1
                    pos += size
            elif op == ops.J_END:
                break
            if error != OK:
                break
            pc += STEP
        if error == NO_ROOM:
            return row
        errors[row] = error
        offsets[row + 1] = at if error == OK else offsets[row]
    return int64(starts.size)
