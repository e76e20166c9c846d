"""The instructions of the two machines, which read and write Avro: one word each, then five operands.

The first ones begin with a varint in the data: it is read before they are looked at.
In the machine that fills columns a value that is BAD_FIELD is noted, and reading goes on after it.
"""

from __future__ import annotations

from typing import Final

STEP: Final = 6  # words of an instruction

# ---- Machine that fills columns (`column_machine`). `slot` is the number of a buffer, `at` the place in the current level.
(
    INT,  # slot, lowest, highest: an INT; beyond the bounds BAD_FIELD
    LONG,  # slot, lowest, highest, factor: a BIGINT, times factor
    LONG_DIVIDED,  # slot, lowest, highest, divisor: a BIGINT; BAD_FIELD where something is left over
    LONG_TO_FLOAT,  # slot, lowest, highest
    LONG_TO_DOUBLE,  # slot, lowest, highest, 1 where another number than the DOUBLE is BAD_FIELD
    LONG_TO_DECIMAL,  # slot, digits, power of ten, lowest, highest
    TEXT,  # slot of the offsets; the bytes are the next slot. UTF-8, or BAD_FIELD
    BYTES,  # the same, any bytes
    ENUM,  # slot, first span, how many: the span by the number; BAD_FIELD beyond, or for a span that has no size
    DECIMAL,  # slot, digits, -, power of ten: bytes of a two's complement number, big-endian; more digits are BAD_FIELD
    UNION,  # first jump, how many: go on where the branch's jump says
    OPTION,  # slot of the validity, branch of null (0 or 1), where to go on for null, slot to clear for null or -1, its width
    #          or 0 for a text: a union of null and one other
    BLOCK,  # level, slot of the offsets, bytes that an item has at least, where to go on after the last block,
    #        what an item without bytes counts
    SKIP_VARINT,
    SKIP_BYTES,
    BOOLEAN,  # slot
    FLOAT,  # slot
    DOUBLE,  # slot
    FLOAT_TO_DOUBLE,  # slot
    FIXED,  # slot of the offsets, size [bytes]; all bytes that are left where it is -1
    DECIMAL_FIXED,  # slot, digits, size [bytes], power of ten
    SKIP,  # size [bytes]
    LIST,  # level: an array or map begins
    NEXT,  # instruction of the block, 1 where the item has a place in the level: an item has been read
    SET,  # slot, width, low word, high word: a constant
    SET_TEXT,  # slot of the offsets, span: a constant
    EMPTY,  # slot of the offsets, slot or level of what it has none of: no bytes, no items
    OPEN,  # level, how many: a constant array or map begins
    ADD,  # its next item
    CLOSE,  # level, slot of the offsets
    JUMP,  # instruction
    CALL,  # instruction
    RETURN,
    BAD,  # the value is BAD_FIELD; what stands for it has been put in its place
    END,  # of the row
) = range(35)
LAST_VARINT: Final = SKIP_BYTES

# ---- Machine that writes Avro (`writer_machine`). `slot` is the number of a buffer of the columns.
(
    W_LONG,  # slot of 64-bit words, lowest, highest, divisor
    W_WORD,  # slot, size [bytes]: a FLOAT, DOUBLE or BOOLEAN as it is
    W_BYTES,  # slot of the offsets; the bytes are the next slot
    W_FIXED,  # the same, size [bytes]
    W_DECIMAL,  # slot, digits, size of the fixed [bytes] or 0
    W_BRANCH,  # branch: its number
    W_UNLESS,  # slot of the validity, instruction: go on there where it is NULL
    W_LIST,  # slot of the offsets, where to go on
    W_NEXT,
    W_JUMP,  # instruction
    W_FAIL,
    W_END,
) = range(12)
