"""Logical types as text: plain decimals, UUIDs, durations. Each gives the place after what it writes."""

from __future__ import annotations

from typing import Final

import numpy as np

from sparkwire.kernels import Bytes, int64, kernel, store_u8, u8, uint64
from sparkwire.kernels.json_text import write_hexadecimal
from sparkwire.kernels.load import u32
from sparkwire.kernels.text import decimal_width, write_character, write_decimal, write_digits

LOGICAL_SLACK: Final = 96  # [bytes] that any of these takes at most


@kernel
def write_scaled(out: Bytes, at: int, low: int, high: int, scale: int) -> int:
    """A number of two words with so many digits after its point."""
    if int64(high) < 0:
        at = write_character(out, at, ord("-"))
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
            at = write_character(out, at, ord("-"))
        at = write_hexadecimal(out, at, data, pos + k, 1)
    return at


@kernel
def write_duration(out: Bytes, at: int, data: Bytes, pos: int) -> int:
    """Months, days and milliseconds, as ``P1M2DT3.004S``."""
    at = write_character(out, at, ord("P"))
    for k in range(2):
        count = int64(u32(data, pos + 4 * k, True))
        width = decimal_width(count)
        write_decimal(out, at, count, width)
        at = write_character(out, at + width, ord("M") if k == 0 else ord("D"))
    at = write_character(out, at, ord("T"))
    millis = int64(u32(data, pos + 8, True))
    width = decimal_width(millis // 1000)
    write_decimal(out, at, millis // 1000, width)
    at = write_character(out, at + width, ord("."))
    return write_character(out, write_digits(out, at, millis % 1000, 3), ord("S"))
