"""The instructions of the two machines that read and write Avro: one word each, then five operands.

The first instructions read a varint. The machine reads it before it dispatches the instruction.
The machine that fills columns notes a BAD_FIELD value and continues after it.
"""

from __future__ import annotations

from typing import Final

STEP: Final = 6  # words of an instruction

# ---- Machine that fills columns (`column_machine`). `slot` is the number of a buffer, `at` the position in the current level.
(
    INT,  # slot, lowest, highest: an INT; BAD_FIELD if out of bounds
    LONG,  # slot, lowest, highest, factor: a BIGINT, times factor
    LONG_DIVIDED,  # slot, lowest, highest, divisor: a BIGINT; BAD_FIELD if the division has a remainder
    LONG_TO_FLOAT,  # slot, lowest, highest
    LONG_TO_DOUBLE,  # slot, lowest, highest, 1 if a number that a DOUBLE cannot hold exactly is BAD_FIELD
    LONG_TO_DECIMAL,  # slot, digits, power of ten, lowest, highest
    TEXT,  # slot of the offsets; the bytes are the next slot. UTF-8, or BAD_FIELD
    BYTES,  # the same, any bytes
    ENUM,  # slot, first span, count: the span with the number read; BAD_FIELD if out of range or if the span has no size
    DECIMAL,  # slot, digits, -, power of ten: bytes of a two's complement number, big-endian; more digits are BAD_FIELD
    UNION,  # first jump, count: continue at the jump target of the branch
    OPTION,  # slot of the validity, branch of null (0 or 1), where to continue for null, slot to clear for null or -1, its width
    #          or 0 for a text: a union of null and one other type
    BLOCK,  # level, slot of the offsets, minimum bytes of an item, where to continue after the last block,
    #        how much an item without bytes counts
    SKIP_VARINT,
    SKIP_BYTES,
    BOOLEAN,  # slot
    FLOAT,  # slot
    DOUBLE,  # slot
    FLOAT_TO_DOUBLE,  # slot
    FIXED,  # slot of the offsets, size [bytes]; -1 means all remaining bytes
    DECIMAL_FIXED,  # slot, digits, size [bytes], power of ten
    SKIP,  # size [bytes]
    LIST,  # level: an array or map begins
    NEXT,  # instruction of the block, 1 if the item takes a position in the level: an item has been read
    SET,  # slot, width, low word, high word: a constant
    SET_TEXT,  # slot of the offsets, span: a constant
    EMPTY,  # slot of the offsets, slot or level of the contents: no bytes or no items
    OPEN,  # level, count: a constant array or map begins
    ADD,  # the next item of a constant array or map
    CLOSE,  # level, slot of the offsets
    JUMP,  # instruction
    CALL,  # instruction
    RETURN,
    BAD,  # the value is BAD_FIELD; its placeholder is in the column already
    END,  # end of the row
) = range(35)
LAST_VARINT: Final = SKIP_BYTES

# ---- Machine that writes Avro (`to_avro`). `slot` is the number of a buffer of the columns.
(
    W_LONG,  # slot of 64-bit words, lowest, highest, divisor
    W_WORD,  # slot, size [bytes]: a FLOAT, DOUBLE or BOOLEAN as it is
    W_BYTES,  # slot of the offsets; the bytes are the next slot
    W_FIXED,  # the same, size [bytes]
    W_DECIMAL,  # slot, digits, size of the fixed [bytes] or 0
    W_BRANCH,  # branch: its number
    W_UNLESS,  # slot of the validity, instruction: continue there if the value is NULL
    W_LIST,  # slot of the offsets, where to continue
    W_NEXT,
    W_JUMP,  # instruction
    W_FAIL,
    W_END,
) = range(12)
