"""The grammar of JSON: find the ends of values, and decode characters.

JSON is exactly as in RFC 8259: NaN, trailing commas, raw control characters, and overlong or surrogate UTF-8 are corruption.

A *span* is ``(start, size, kind)``. The span of a string is between its quotes; that of any other value is its whole text.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparkwire.kernels.blocks import BLOCK, LANES, digit_run, lowest, stops
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, i64, int64, u8, u32, uint64
from sparkwire.kernels.text import utf8_step

Kinds: TypeAlias = NDArray[np.int8]

# The kinds of values. JSON's null is ABSENT if one value is selected, and NULL in a list of members.
ABSENT, NULL, STRING, ESCAPED, INTEGER, REAL, FALSE, TRUE, OBJECT, ARRAY = range(10)
"""ESCAPED: a string with a backslash. INTEGER: a number without fraction and exponent."""

QUOTE, BACKSLASH, COMMA, COLON, MINUS, PLUS, DOT, ZERO, NINE = b'"\\,:-+.09'
LEFT_BRACE, RIGHT_BRACE, LEFT_BRACKET, RIGHT_BRACKET = b"{}[]"
TO_RIGHT = RIGHT_BRACE - LEFT_BRACE  # the same for braces and brackets
TRUE_WORD, FALS_WORD, NULL_WORD = (int.from_bytes(word, "little") for word in (b"true", b"fals", b"null"))
REPLACEMENT = 0xFFFD
NONE = -1
WORD = 8  # [bytes]


def word_of(text: bytes) -> int:
    """What ``first_word`` makes of at most ``WORD`` bytes."""
    return int.from_bytes(text, "little", signed=len(text) == WORD)


@kernel
def first_word(data: Bytes, start: int, size: int) -> int:
    """The first bytes of ``data[start:start + size]`` as one little-endian number, at most ``WORD`` of them."""
    if size >= WORD:
        return i64(data, start, True)
    if start + WORD <= data.size:
        return i64(data, start, True) & ((1 << (8 * size)) - 1)
    word = 0
    for i in range(size):
        word |= int64(u8(data, start + i)) << (8 * i)
    return word


@kernel
def behind_mark(data: Bytes, pos: int, end: int) -> int:
    marked = end - pos >= 3 and u8(data, pos) == 0xEF and u8(data, pos + 1) == 0xBB and u8(data, pos + 2) == 0xBF
    return pos + 3 if marked else pos


@kernel
def blank(data: Bytes, pos: int, end: int) -> int:
    """The position after white space at ``pos``, at most ``end``."""
    while pos < end:
        c = u8(data, pos)
        if c > 0x20 or not (c == 0x20 or c == 0x0A or c == 0x0D or c == 0x09):
            return pos
        pos += 1
    return pos


@kernel
def scalar_end(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    """The end and kind of the number or literal at ``pos``; -1 if it is neither."""
    c = u8(data, pos)
    if c == MINUS or ZERO <= c <= NINE:
        return _number_end(data, pos, end)
    if pos + 4 <= end:
        word = u32(data, pos, True)
        if word == TRUE_WORD:
            return pos + 4, TRUE
        if word == NULL_WORD:
            return pos + 4, NULL
        if word == FALS_WORD and pos + 5 <= end and u8(data, pos + 4) == 0x65:
            return pos + 5, FALSE
    return -1, ABSENT


@kernel
def quick_number_end(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    """The end and kind of a simple number at ``pos``; -1 if ``scalar_end`` must decide."""
    if pos + 2 * LANES + 1 > data.size:
        return NONE, ABSENT
    digits = digit_run(data, pos)
    after, kind = pos + digits, INTEGER
    if digits == 0 or digits == LANES or (digits > 1 and u8(data, pos) == ZERO):
        return NONE, ABSENT
    if u8(data, after) == DOT:
        digits = digit_run(data, after + 1)
        after, kind = after + 1 + digits, REAL
        if digits == 0 or digits == LANES:
            return NONE, ABSENT
    c = u8(data, after)
    if after < end and (c == COMMA or c == RIGHT_BRACE or c == RIGHT_BRACKET):
        return after, kind
    return NONE, ABSENT


@kernel
def delimited(data: Bytes, pos: int, end: int) -> bool:
    """Whether a number or literal may end here. If not, the token is truncated or invalid."""
    if pos == end:
        return False
    c = u8(data, pos)
    return c == COMMA or c == RIGHT_BRACE or c == RIGHT_BRACKET or blank(data, pos, pos + 1) > pos


@kernel
def _number_end(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    if u8(data, pos) == MINUS:
        pos += 1
    digits = _digits(data, pos, end)
    if digits == pos or (u8(data, pos) == ZERO and digits > pos + 1):
        return -1, ABSENT
    pos, kind = digits, INTEGER
    if pos < end and u8(data, pos) == DOT:
        digits = _digits(data, pos + 1, end)
        if digits == pos + 1:
            return -1, ABSENT
        pos, kind = digits, REAL
    if pos < end and (u8(data, pos) | 0x20) == 0x65:
        pos += 1
        if pos < end and (u8(data, pos) == PLUS or u8(data, pos) == MINUS):
            pos += 1
        digits = _digits(data, pos, end)
        if digits == pos:
            return -1, ABSENT
        pos, kind = digits, REAL
    return pos, kind


@kernel
def _digits(data: Bytes, pos: int, end: int) -> int:
    while pos < end and ZERO <= u8(data, pos) <= NINE:
        pos += 1
    return pos


@kernel
def string_end(data: Bytes, pos: int, end: int) -> tuple[int, bool]:
    """The closing quote of the string whose first character is at ``pos``, and whether the string has escapes.

    Returns -1 if there is no closing quote, an escape is invalid, a control character is raw, or the bytes are not UTF-8.
    """
    escaped = False
    while pos < end:
        if pos + BLOCK <= data.size:
            ahead = stops(data, pos)
            if ahead == 0:
                pos += BLOCK
                continue
            pos += lowest(ahead)
            if pos >= end:
                break
        c = u8(data, pos)
        if c == QUOTE:
            return pos, escaped
        if c == BACKSLASH:
            escaped = True
            step = _escape_size(data, pos, end)
        else:
            step = utf8_step(data, pos, end) if c >= 0x20 else 0
            while (
                step > 1 and pos + step < end and u8(data, pos + step) >= 0x80
            ):  # such characters usually follow each other
                pos += step
                step = utf8_step(data, pos, end)
        if step == 0:
            break
        pos += step
    return -1, escaped


@kernel
def quick_string_end(data: Bytes, pos: int, end: int, block: int, ahead: int) -> tuple[int, int, int]:
    """The closing quote of a simple string whose opening quote is at ``pos``; -1 if ``string_end`` must decide.

    ``ahead`` has the `stops` of the ``BLOCK`` bytes at ``block`` that are still ahead; the function returns the remaining ones.
    Masks give all quotes of a block at once, so a step does not wait for a load at the previous quote.
    """
    if ahead == 0 and block + 2 * BLOCK <= data.size:
        block += BLOCK
        ahead = stops(data, block)
    if ahead == 0 or block + lowest(ahead) != pos:
        if pos + BLOCK > data.size:
            return NONE, block, ahead
        block, ahead = pos, stops(data, pos)  # a control character came first, or `pos` is after the block
    ahead &= ahead - uint64(1)
    if ahead == 0 and block + 2 * BLOCK <= data.size:
        block += BLOCK
        ahead = stops(data, block)
    close = block + lowest(ahead)
    if ahead == 0 or close >= end or u8(data, close) != QUOTE:
        return NONE, block, ahead
    return close, block, ahead & (ahead - uint64(1))


@kernel
def _escape_size(data: Bytes, pos: int, end: int) -> int:
    """The size of the escape whose backslash is at ``pos`` [bytes]; 0 if it is invalid."""
    if pos + 2 > end:
        return 0
    c = u8(data, pos + 1)
    if c == 0x75:  # u
        return 6 if pos + 6 <= end and _hexadecimal(data, pos + 2) >= 0 else 0
    plain = c == QUOTE or c == BACKSLASH or c == 0x2F
    control = c == 0x62 or c == 0x66 or c == 0x6E or c == 0x72 or c == 0x74  # b f n r t
    return 2 if plain or control else 0


@kernel
def _hexadecimal(data: Bytes, pos: int) -> int:
    """The value of four hexadecimal digits; -1 if one is invalid."""
    value = 0
    for i in range(4):
        c = int64(u8(data, pos + i))
        if ZERO <= c <= NINE:
            value = value * 16 + c - ZERO
        elif 0x61 <= (c | 0x20) <= 0x66:
            value = value * 16 + (c | 0x20) - 0x57
        else:
            return -1
    return value


@kernel
def character_at(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    """Decode one step of a valid string at ``pos``: the code point of an escape, or a byte; and the next position.

    Half a surrogate pair becomes U+FFFD.
    """
    c = int64(u8(data, pos))
    if c != BACKSLASH:
        return c, pos + 1
    c = int64(u8(data, pos + 1))
    if c == 0x75:
        high = _hexadecimal(data, pos + 2)
        if high < 0xD800 or high > 0xDFFF:
            return high, pos + 6
        if high < 0xDC00 and pos + 12 <= end and u8(data, pos + 6) == BACKSLASH and u8(data, pos + 7) == 0x75:
            low = _hexadecimal(data, pos + 8)
            if 0xDC00 <= low <= 0xDFFF:
                return 0x10000 + ((high - 0xD800) << 10) + low - 0xDC00, pos + 12
        return REPLACEMENT, pos + 6
    if c == 0x62:
        return 0x08, pos + 2
    if c == 0x66:
        return 0x0C, pos + 2
    if c == 0x6E:
        return 0x0A, pos + 2
    if c == 0x72:
        return 0x0D, pos + 2
    if c == 0x74:
        return 0x09, pos + 2
    return c, pos + 2


@kernel
def unescapes_to(data: Bytes, pos: int, end: int, keys: Bytes, at: int, size: int) -> bool:
    """Whether the unescaped string equals these UTF-8 bytes."""
    same = 0
    while same < size:
        if pos >= end:
            return False
        escape = u8(data, pos) == BACKSLASH
        character, pos = character_at(data, pos, end)
        width = 1
        if escape and character >= 0x80:
            width = 2 if character < 0x800 else 3 if character < 0x10000 else 4
        if same + width > size:
            return False
        for k in range(width):
            byte = character
            if width > 1:
                byte = character >> (6 * (width - 1 - k))
                byte = byte | ((0xF00 >> width) & 0xFF) if k == 0 else (byte & 0x3F) | 0x80
            if byte != keys[uint64(at + same + k)]:
                return False
        same += width
    return pos == end
