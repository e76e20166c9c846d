"""The parts of Avro data that the machine reads: varints, decimals, and number conversions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from sparkwire.base.error_codes import BAD_FIELD, TRUNCATED
from sparkwire.kernels import Bytes, int64, kernel, store_i32, store_i64, store_u8, u8, uint64

MAX_LENGTH: Final = (1 << 31) - 1  # [bytes or items] the limit of Avro's Java
MAX_EMPTY_ITEMS: Final = 1024
"""limit of items without bytes (null, records without fields) in one datum; the size of the data does not bound them"""
DIGITS: Final = 38  # of a DECIMAL
HIGH_BITS: Final = int64(-0x7F7F7F7F7F7F7F80)  # 8080808080808080

_SEVENS: Final[Any] = (
    *(np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00)),
    *(np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000)),
    *(np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000)),
)
_LIMITS = np.array(
    [10**digits - 1 >> shift & (1 << 64) - 1 for digits in range(DIGITS + 1) for shift in (0, 64)], np.uint64
)
"""the largest number for each count of digits, as low word and high word"""


@kernel
def read_varint(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    """An Avro int or long and the position after it. A negative position is the complement of an error code."""
    if pos >= end:
        return int64(0), ~TRUNCATED
    byte = int64(u8(data, pos))
    pos += 1
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), pos
    value, shift = byte & 127, 7
    while pos < end:
        byte = int64(u8(data, pos))
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return int64(uint64(value) >> uint64(1)) ^ -(value & 1), pos
        shift += 7
        if shift > 63:
            return int64(0), ~BAD_FIELD
    return int64(0), ~TRUNCATED


@kernel
def pushed_together(word: int, size: int) -> int:
    """Decode a varint of at most eight bytes from one little-endian word; ``size`` is its size [bits]."""
    word &= ~uint64(0) >> uint64(64 - size)
    word = (word & _SEVENS[0]) | ((word & _SEVENS[1]) >> uint64(1))
    word = (word & _SEVENS[2]) | ((word & _SEVENS[3]) >> uint64(2))
    word = (word & _SEVENS[4]) | ((word & _SEVENS[5]) >> uint64(4))
    return int64(word >> uint64(1)) ^ -int64(word & uint64(1))


@kernel
def is_double(value: int) -> bool:
    """Whether a DOUBLE can hold this number exactly: at most 53 bits from its first to its last 1 bit."""
    word = uint64(value) if value >= 0 else ~uint64(value) + uint64(1)
    return bool(word == uint64(0) or word // (word & (~word + uint64(1))) < uint64(1 << 53))


@kernel
def store_item(out: Bytes, at: int, width: int, low: int, high: int) -> None:
    """Store item ``at`` of a column of numbers; ``high`` counts only if they are 16 bytes wide."""
    if width == 1:
        store_u8(out, at, np.uint8(low))
    elif width == 4:
        store_i32(out, at << 2, low, True)
    else:
        store_i64(out, at * width, low, True)
        if width == 16:
            store_i64(out, (at << 4) + 8, high, True)


@kernel
def clear(out: Bytes, at: int, width: int) -> None:
    """Store zero as item ``at``."""
    store_item(out, at, width, int64(0), int64(0))


@kernel
def decimal_words(data: Bytes, pos: int, size: int) -> tuple[int, int, bool]:
    """Low and high word of a big-endian two's complement number, and whether it fits into these two words."""
    if size == 0:
        return uint64(0), uint64(0), False
    sign = uint64(0) if u8(data, pos) < 128 else ~uint64(0)
    while size > 16:
        if uint64(u8(data, pos)) != sign & uint64(255):
            return uint64(0), uint64(0), False
        pos += 1
        size -= 1
    low = high = sign
    for k in range(size):
        high = (high << uint64(8)) | (low >> uint64(56))
        low = (low << uint64(8)) | uint64(u8(data, pos + k))
    return low, high, (high >> uint64(63)) == (sign & uint64(1))


@kernel
def fits_digits(low: int, high: int, digits: int) -> bool:
    """Whether a number of two words has at most ``digits`` digits."""
    if int64(high) < 0:
        low = ~low + uint64(1)
        high = ~high + uint64(1 if low == uint64(0) else 0)
    return bool(high < _LIMITS[2 * digits + 1] or (high == _LIMITS[2 * digits + 1] and low <= _LIMITS[2 * digits]))


@kernel
def times_ten(low: int, high: int) -> tuple[int, int]:
    """Multiply a number of two words by ten."""
    small = (low & uint64(0xFFFFFFFF)) * uint64(10)
    large = (low >> uint64(32)) * uint64(10) + (small >> uint64(32))
    word = (large << uint64(32)) | (small & uint64(0xFFFFFFFF))
    return word, high * uint64(10) + (large >> uint64(32))


@kernel
def tenth(low: int, high: int) -> tuple[int, int, bool]:
    """Divide a number of two words by ten; also whether the remainder is 0."""
    negative = int64(high) < 0
    if negative:
        low = ~low + uint64(1)
        high = ~high + uint64(1 if low == uint64(0) else 0)
    left, words = high % uint64(10), high // uint64(10)
    upper = (left << uint64(32)) | (low >> uint64(32))
    lower = ((upper % uint64(10)) << uint64(32)) | (low & uint64(0xFFFFFFFF))
    low, high = ((upper // uint64(10)) << uint64(32)) | (lower // uint64(10)), words
    exact = lower % uint64(10) == uint64(0)
    if negative:
        low = ~low + uint64(1)
        high = ~high + uint64(1 if low == uint64(0) else 0)
    return low, high, exact


@kernel
def store_scaled(out: Bytes, at: int, low: int, high: int, digits: int, shift: int) -> bool:
    """Store a number times ten to the power of ``shift`` as an Arrow decimal.

    Returns false if the number has more than ``digits`` digits before the shift, or is not an integer after it.
    """
    if not fits_digits(low, high, digits):
        return False
    while shift > 0:
        low, high = times_ten(low, high)
        shift -= 1
    while shift < 0:
        low, high, exact = tenth(low, high)
        if not exact:
            return False
        shift += 1
    store_i64(out, at, int64(low), True)
    store_i64(out, at + 8, int64(high), True)
    return True


@kernel
def store_decimal(out: Bytes, at: int, data: Bytes, pos: int, size: int, digits: int, shift: int) -> bool:
    """Store a decimal as ``store_scaled`` does. Also returns false if the decimal has no bytes."""
    low, high, whole = decimal_words(data, pos, size)
    return whole and store_scaled(out, at, low, high, digits, shift)
