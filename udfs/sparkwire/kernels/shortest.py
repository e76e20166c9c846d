"""The shortest decimal that is read back as the same number of IEEE 754, of those the nearest: Schubfach.

Source: Raffaello Giulietti, "The Schubfach way to render doubles", 2021; the names are the paper's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, Int, store_u8
from sparkwire.kernels.number import int64, uint64
from sparkwire.kernels.text import decimal_width, write_decimal

SHORTEST_SLACK: Final = 32  # [bytes] that a number takes at most

_LOWEST_POWER, _HIGHEST_POWER = -292, 324
_PLAIN_ABOVE, _PLAIN_BELOW = -7, 21  # exponents of ten between which no exponent is written, as in JavaScript


def _powers() -> NDArray[np.uint64]:
    """Ten to each power, rounded up to 126 bits after the leading one: high word, low word."""
    words = []
    for power in range(_LOWEST_POWER, _HIGHEST_POWER + 1):
        shift = ((power * 1741647) >> 19) - 127
        if power >= 0:
            scaled = -(-(10**power) // (1 << shift)) if shift > 0 else 10**power << -shift
        else:
            scaled = -(-(1 << -shift) // 10**-power)
        words += [scaled >> 64, scaled & (1 << 64) - 1]
    return np.array(words, np.uint64)


_POWERS = _powers()


@intrinsic  # type: ignore[untyped-decorator]
def _high_word(typing_context: Any, a: Any, b: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, wide(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), emit


high_word: Callable[[Int, Int], int] = _high_word
"""The upper half of a product of two unsigned words."""


@kernel
def write_double(out: Bytes, at: int, bits: int) -> int:
    """Write the DOUBLE of these bits as JSON has it; what is no number as a JSON string. The place after it."""
    fraction, exponent = bits & ((1 << 52) - 1), (bits >> 52) & 0x7FF
    return _write(out, at, bits < 0, fraction, exponent, 52, 0x7FF, 1075)


@kernel
def write_float(out: Bytes, at: int, bits: int) -> int:
    """The same for a FLOAT."""
    fraction, exponent = bits & ((1 << 23) - 1), (bits >> 23) & 0xFF
    return _write(out, at, (bits >> 31) & 1 == 1, fraction, exponent, 23, 0xFF, 150)


@kernel
def _write(
    out: Bytes, at: int, negative: bool, fraction: int, exponent: int, width: int, special: int, bias: int
) -> int:
    if exponent == special:
        return _write_special(out, at, negative, fraction)
    if negative:
        store_u8(out, at, ord("-"))
        at += 1
    if exponent == 0 and fraction == 0:
        return _write_plain(out, at, int64(0), int64(0))
    digits, power = _shortest(fraction, exponent, width, bias)
    while digits % 10 == 0:
        digits //= 10
        power += 1
    return _write_plain(out, at, digits, power)


@kernel
def _write_special(out: Bytes, at: int, negative: bool, fraction: int) -> int:
    store_u8(out, at, ord('"'))
    at += 1
    if fraction != 0:
        for character in b"NaN":
            store_u8(out, at, character)
            at += 1
    else:
        if negative:
            store_u8(out, at, ord("-"))
            at += 1
        for character in b"Infinity":
            store_u8(out, at, character)
            at += 1
    store_u8(out, at, ord('"'))
    return at + 1


@kernel
def _shortest(fraction: int, exponent: int, width: int, bias: int) -> tuple[int, int]:
    """Digits and the power of ten that they are multiplied by."""
    c = uint64(fraction)
    q = int64(1) - bias
    if exponent != 0:
        c |= uint64(1) << uint64(width)
        q = exponent - bias
        if -width <= q <= 0 and c & ((uint64(1) << uint64(-q)) - uint64(1)) == uint64(0):
            return int64(c >> uint64(-q)), int64(0)
    closer = fraction == 0 and exponent > 1
    k = (q * 1262611 - (524031 if closer else 0)) >> 22
    h = uint64(q + ((-k * 1741647) >> 19) + 1)
    four, odd = uint64(4) * c, c & uint64(1)
    place = 2 * (-k - _LOWEST_POWER)
    lower = _scaled(place, (four - uint64(2) + uint64(1 if closer else 0)) << h) + odd
    middle = _scaled(place, four << h)
    upper = _scaled(place, (four + uint64(2)) << h) - odd
    s = middle >> uint64(2)
    if s >= uint64(10):
        tens = s // uint64(10)
        below, above = lower <= uint64(40) * tens, uint64(40) * tens + uint64(40) <= upper
        if below != above:
            return int64(tens) + (1 if above else 0), k + 1
    below, above = lower <= uint64(4) * s, uint64(4) * s + uint64(4) <= upper
    if below != above:
        return int64(s) + (1 if above else 0), k
    half = uint64(4) * s + uint64(2)
    up = middle > half or (middle == half and s & uint64(1) == uint64(1))
    return int64(s) + (1 if up else 0), k


@kernel
def _scaled(place: int, c: int) -> int:
    """A multiple of a power of ten, its lowest bit set where something is truncated."""
    high, low = _POWERS[place], _POWERS[place + 1]
    middle = high * c
    top, carry = high_word(high, c), high_word(low, c)
    middle += carry
    if middle < carry:
        top += uint64(1)
    return top | uint64(1 if middle > uint64(1) else 0)


@kernel
def _write_plain(out: Bytes, at: int, digits: int, power: int) -> int:
    count = decimal_width(digits)
    leading = power + count - 1
    if leading >= _PLAIN_BELOW or leading < _PLAIN_ABOVE:
        return _write_scientific(out, at, digits, count, leading)
    if power >= 0:
        write_decimal(out, at, digits, count)
        for k in range(power):
            store_u8(out, at + count + k, ord("0"))
        at += count + power
        store_u8(out, at, ord("."))
        store_u8(out, at + 1, ord("0"))
        return at + 2
    if leading >= 0:
        write_decimal(out, at + 1, digits, count)
        for k in range(leading + 1):
            store_u8(out, at + k, out[at + k + 1])
        store_u8(out, at + leading + 1, ord("."))
        return at + count + 1
    store_u8(out, at, ord("0"))
    store_u8(out, at + 1, ord("."))
    zeros = -leading - 1
    for k in range(zeros):
        store_u8(out, at + 2 + k, ord("0"))
    write_decimal(out, at + 2 + zeros, digits, count)
    return at + 2 + zeros + count


@kernel
def _write_scientific(out: Bytes, at: int, digits: int, count: int, leading: int) -> int:
    write_decimal(out, at + 1, digits, count)
    store_u8(out, at, out[at + 1])
    at += 1
    if count > 1:
        store_u8(out, at, ord("."))
        at += count
    store_u8(out, at, ord("e"))
    width = decimal_width(leading)
    write_decimal(out, at + 1, leading, width)
    return at + 1 + width
