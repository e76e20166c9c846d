"""Logical types as text: ISO 8601 for dates and times, plain decimals, UUIDs. Each gives the place after what it writes."""

from __future__ import annotations

from typing import Final

import numpy as np

from sparkwire.kernels import Bytes, int64, kernel, store_u8, u8, uint64
from sparkwire.kernels.json_text import write_hexadecimal
from sparkwire.kernels.load import u32
from sparkwire.kernels.text import decimal_width, write_decimal

LOGICAL_SLACK: Final = 96  # [bytes] that any of these takes at most

_DAY: Final = 86_400  # [s]


@kernel
def write_digits(out: Bytes, at: int, value: int, width: int) -> int:
    """A number from 0 on with zeros before it."""
    k = at + width
    while k > at:
        k -= 1
        store_u8(out, k, np.uint8(48 + value % 10))
        value //= 10
    return at + width


@kernel
def _write(out: Bytes, at: int, character: int) -> int:
    store_u8(out, at, np.uint8(character))
    return at + 1


@kernel
def write_date(out: Bytes, at: int, day: int) -> int:
    """``2020-01-31`` from days since the epoch: Howard Hinnant's civil_from_days."""
    shifted = day + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    at = write_digits(out, at, year + era * 400 + (1 if month >= 10 else 0), 4)
    at = write_digits(out, _write(out, at, ord("-")), month + 3 if month < 10 else month - 9, 2)
    return write_digits(out, _write(out, at, ord("-")), of_year - (153 * month + 2) // 5 + 1, 2)


@kernel
def write_time(out: Bytes, at: int, value: int, digits: int) -> int:
    """``23:59:59.999`` from parts of a second since midnight, as many as the fraction's digits tell."""
    unit = 1000 if digits == 3 else (1_000_000 if digits == 6 else 1_000_000_000)
    seconds = value // unit
    at = write_digits(out, at, seconds // 3600, 2)
    at = write_digits(out, _write(out, at, ord(":")), seconds // 60 % 60, 2)
    at = write_digits(out, _write(out, at, ord(":")), seconds % 60, 2)
    return write_digits(out, _write(out, at, ord(".")), value - seconds * unit, digits)


@kernel
def write_timestamp(out: Bytes, at: int, value: int, digits: int, utc: bool) -> int:
    """``2020-01-31T23:59:59.999Z`` from parts of a second since the epoch; without Z where it is local."""
    day_parts = _DAY * (1000 if digits == 3 else (1_000_000 if digits == 6 else 1_000_000_000))
    day = value // day_parts
    at = _write(out, write_date(out, at, day), ord("T"))
    at = write_time(out, at, value - day * day_parts, digits)
    return _write(out, at, ord("Z")) if utc else at


@kernel
def write_scaled(out: Bytes, at: int, low: int, high: int, scale: int) -> int:
    """A number of two words with so many digits after its point."""
    if int64(high) < 0:
        at = _write(out, at, ord("-"))
        low = ~low + uint64(1)
        high = ~high + uint64(1 if low == uint64(0) else 0)
    # Digits from the last to the first, into the end of the room; then to their place.
    last = at + LOGICAL_SLACK - 8
    k, count = last, 0
    while count <= scale or low != uint64(0) or high != uint64(0):
        if count == scale and scale > 0:
            k -= 1
            store_u8(out, k, ord("."))
        low, high, digit = _divided_by_ten(low, high)
        k -= 1
        store_u8(out, k, np.uint8(48 + digit))
        count += 1
    for place in range(k, last):
        store_u8(out, at, u8(out, place))
        at += 1
    return at


@kernel
def _divided_by_ten(low: int, high: int) -> tuple[int, int, int]:
    """Quotient of two words and the rest, by the upper half first: 2**64 is 10 * 1844674407370955161 + 6."""
    upper, rest = high // uint64(10), high % uint64(10)
    lower = low // uint64(10) + rest * uint64(1844674407370955161)
    left = low % uint64(10) + rest * uint64(6)
    return lower + left // uint64(10), upper, int64(left % uint64(10))


@kernel
def write_uuid(out: Bytes, at: int, data: Bytes, pos: int) -> int:
    """Sixteen bytes as a UUID."""
    for k in range(16):
        if k == 4 or k == 6 or k == 8 or k == 10:
            at = _write(out, at, ord("-"))
        at = write_hexadecimal(out, at, data, pos + k, 1)
    return at


@kernel
def write_duration(out: Bytes, at: int, data: Bytes, pos: int) -> int:
    """Months, days and milliseconds, as ``P1M2DT3.004S``."""
    at = _write(out, at, ord("P"))
    for k in range(2):
        count = int64(u32(data, pos + 4 * k, True))
        width = decimal_width(count)
        write_decimal(out, at, count, width)
        at = _write(out, at + width, ord("M") if k == 0 else ord("D"))
    at = _write(out, at, ord("T"))
    millis = int64(u32(data, pos + 8, True))
    width = decimal_width(millis // 1000)
    write_decimal(out, at, millis // 1000, width)
    at = _write(out, at + width, ord("."))
    return _write(out, write_digits(out, at, millis % 1000, 3), ord("S"))
