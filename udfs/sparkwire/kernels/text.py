"""Texts: UTF-8 validation and decimal digits."""

from __future__ import annotations

import numpy as np

from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, i64, int64, store_i16, store_u8, u8, uint64

_HIGH_BITS = int64(-0x7F7F7F7F7F7F7F80)  # 8080808080808080
_TWO_DIGITS = np.frombuffer(b"".join(b"%02d" % number for number in range(100)), np.int16)


@kernel
def utf8_valid(data: Bytes, start: int, size: int) -> bool:
    """Whether ``data[start:start + size]`` is UTF-8: no overlong form, no surrogate, nothing above U+10FFFF."""
    pos, end = int64(start), int64(start + size)
    while pos < end:
        if pos + 8 <= end and i64(data, pos, True) & _HIGH_BITS == 0:
            pos += 8
            continue
        step = utf8_step(data, pos, end)
        if step == 0:
            return False
        pos += step
    return True


@kernel
def utf8_step(data: Bytes, pos: int, end: int) -> int:
    """The size of the well-formed character at ``pos`` [bytes]; 0 if malformed (Unicode 15, table 3-7)."""
    lead = int64(u8(data, pos))
    if lead < 0x80:
        return 1
    if lead < 0xC2 or lead > 0xF4:
        return 0
    size = 2 if lead < 0xE0 else (3 if lead < 0xF0 else 4)
    if pos + size > end:
        return 0
    second = int64(u8(data, pos + 1))
    lowest, highest = 0x80, 0xBF
    if lead == 0xE0:
        lowest = 0xA0
    elif lead == 0xED:
        highest = 0x9F
    elif lead == 0xF0:
        lowest = 0x90
    elif lead == 0xF4:
        highest = 0x8F
    if second < lowest or second > highest:
        return 0
    for k in range(2, size):
        if u8(data, pos + k) & 0xC0 != 0x80:
            return 0
    return size


@kernel
def decimal_width(value: int) -> int:
    """The number of characters of ``value`` in decimal, including its sign."""
    rest = magnitude(value)
    width = 1 if value >= 0 else 2
    while rest >= uint64(10_000):
        width += 4
        rest //= uint64(10_000)
    return width + (rest >= uint64(10)) + (rest >= uint64(100)) + (rest >= uint64(1000))


@kernel
def magnitude(value: int) -> int:
    """The absolute value as an unsigned number, because int64 cannot hold that of its lowest number."""
    return uint64(value) if value >= 0 else uint64(0) - uint64(value)


@kernel
def write_decimal(out: Bytes, pos: int, value: int, width: int) -> None:
    """Write ``value`` in decimal to ``out[pos:pos + width]``; ``width`` comes from ``decimal_width``."""
    rest = magnitude(value)
    if value < 0:
        store_u8(out, pos, ord("-"))
    k = pos + width
    while rest >= uint64(10):
        k -= 2
        store_i16(out, k, _TWO_DIGITS[rest % uint64(100)], True)
        rest //= uint64(100)
    # If the number of digits is odd, the first digit remains.
    if k > pos + (value < 0):
        store_u8(out, k - 1, np.uint8(uint64(48) + rest))


@kernel
def same_bytes(a: Bytes, at: int, b: Bytes, start: int, size: int) -> bool:
    """Whether ``a[at:at + size]`` equals ``b[start:start + size]``."""
    done = int64(0)
    while size - done >= 8:
        if i64(a, at + done, True) != i64(b, start + done, True):
            return False
        done += 8
    while done < size:
        if u8(a, at + done) != u8(b, start + done):
            return False
        done += 1
    return True


@kernel
def write_digits(out: Bytes, at: int, value: int, width: int) -> int:
    """Write a nonnegative number, padded with zeros to ``width``. Returns its end."""
    k = at + width
    while k > at:
        k -= 1
        store_u8(out, k, np.uint8(48 + value % 10))
        value //= 10
    return at + width


@kernel
def write_character(out: Bytes, at: int, character: int) -> int:
    """Write one ASCII character. Returns its end."""
    store_u8(out, at, np.uint8(character))
    return at + 1
