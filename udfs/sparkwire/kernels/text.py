"""Texts: UTF-8 validation, decimal digits, and dates and times as ISO 8601.

A writer of a date or a time returns the position after its text.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, Ints, i64, int64, store_i16, store_u8, u8, uint64

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


# -- dates and times

_DAY: Final = 86_400  # [s]


@kernel
def millis_to_micros(millis: Ints, first: int, last: int, out: Ints) -> bool:
    """Convert milliseconds to microseconds. Returns whether all are between ``first`` and ``last`` [ms]."""
    inside = True
    for i in range(millis.size):
        inside &= (first <= millis[i]) & (millis[i] <= last)
        out[i] = millis[i] * 1000
    return inside


@kernel
def nanos_to_micros(nanos: Ints, out: Ints) -> None:
    """Convert nanoseconds to microseconds, rounded toward the past."""
    for i in range(nanos.size):
        out[i] = nanos[i] // 1000


@kernel
def write_date(out: Bytes, at: int, day: int) -> int:
    """Write days since the epoch as ``2020-01-31``, with Howard Hinnant's civil_from_days."""
    shifted = day + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    at = write_digits(out, at, year + era * 400 + (1 if month >= 10 else 0), 4)
    at = write_digits(out, write_character(out, at, ord("-")), month + 3 if month < 10 else month - 9, 2)
    return write_digits(out, write_character(out, at, ord("-")), of_year - (153 * month + 2) // 5 + 1, 2)


@kernel
def day_of(year: int, month: int, day: int) -> int:
    """The days since the epoch of a valid date, with Howard Hinnant's days_from_civil."""
    year -= 1 if month <= 2 else 0
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


@kernel
def days_in_month(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


@kernel
def write_timestamp(out: Bytes, at: int, millis: int) -> int:
    """Write milliseconds since the epoch as ``2020-01-31T23:59:59.999Z``."""
    seconds, day = millis // 1000, millis // (1000 * _DAY)
    at = write_character(out, write_date(out, at, day), ord("T"))
    at = write_digits(out, at, seconds // 3600 % 24, 2)
    at = write_digits(out, write_character(out, at, ord(":")), seconds // 60 % 60, 2)
    at = write_digits(out, write_character(out, at, ord(":")), seconds % 60, 2)
    at = write_digits(out, write_character(out, at, ord(".")), millis - seconds * 1000, 3)
    return write_character(out, at, ord("Z"))
