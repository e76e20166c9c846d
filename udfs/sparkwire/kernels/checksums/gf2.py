"""Cyclic redundancy checks as polynomials over GF(2), and the constants that their kernels need.

A polynomial is a Python int; bit i is the coefficient of x^i. This code runs only when kernels are compiled.
"""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

IEEE = 0x104C11DB7  # zlib, Databus, Kafka's messages of magic 0 and 1
CASTAGNOLI = 0x11EDC6F41  # Kafka's record batches


class Checksum(NamedTuple):
    """A 32-bit reflected cyclic redundancy check."""

    name: str
    poly: int
    init: int  # the register before the first byte
    xorout: int  # xored with the register after the last byte


def product(a: int, b: int) -> int:
    """a * b."""
    total = 0
    while b:
        if b & 1:
            total ^= a
        a <<= 1
        b >>= 1
    return total


def divide(a: int, p: int) -> tuple[int, int]:
    """Quotient and remainder of a / p."""
    quotient = 0
    while (shift := a.bit_length() - p.bit_length()) >= 0:
        quotient ^= 1 << shift
        a ^= p << shift
    return quotient, a


def power(n: int, p: int) -> int:
    """x^n mod p; n may be negative, since p has a constant term and so x^-1 = (p + 1) / x."""
    base = 2 if n >= 0 else (p ^ 1) >> 1
    result = 1
    for bit in bin(abs(n))[2:]:
        result = divide(product(result, result), p)[1]
        if bit == "1":
            result = divide(product(result, base), p)[1]
    return result


def reflect(a: int, bits: int) -> int:
    """The lowest ``bits`` coefficients of a in reverse order: checksums keep x^0 in the highest bit."""
    return int(f"{a:0{bits}b}"[::-1], 2)


def fold(distance: int, p: int) -> tuple[int, int]:
    """The constants (k_low, k_high) that move a reflected 128-bit lane up by ``distance`` > 0 bits, modulo p.

    The carry-less product of two reflected 64-bit values is their product times x, hence the -1:
    ``clmul(lane.low, k_low) ^ clmul(lane.high, k_high) = lane * x^distance (mod p)``.
    """
    return reflect(power(distance + 63, p), 64), reflect(power(distance - 1, p), 64)


def narrow(distance: int, p: int) -> int:
    """The constant that reduces 64 reflected bits, ``distance`` bits before the end of a message, to the 96 bits above x^31.

    ``clmul(half, narrow) = half * x^(distance + 32) * x^32 (mod p)``, a lane whose last dword is 0.
    """
    return reflect(power(distance + 32, p), 32) << 1


def ahead(register: int, bits: int, p: int) -> int:
    """The 32-bit register after ``bits`` more zero bits; fewer if negative."""
    return reflect(divide(product(reflect(register, 32), power(bits, p)), p)[1], 32)


@functools.cache
def after_zeros(register: int, sizes: range, p: int) -> tuple[int, ...]:
    """The 32-bit register after each number of zero bytes in ``sizes``."""
    first = ahead(register, 8 * sizes.start, p)
    return tuple(itertools.accumulate(sizes[1:], lambda before, _: ahead(before, 8, p), initial=first))


def barrett(p: int) -> tuple[int, int]:
    """The constants (mu, p33) that reduce a lane from ``narrow`` to the 32-bit checksum.

    ``q = clmul(lane.low, mu)``; the checksum is dword 2 of ``lane ^ clmul(q.low, p33)``. The lane has at most degree
    95 above x^31, so the quotient mu has exactly 64 bits.
    """
    return reflect(divide(1 << 95, p)[0], 64), reflect(p, 33)


def byte_tables(p: int, count: int) -> NDArray[np.uint32]:
    """``tables[k][b]``: the register after byte b and k zero bytes."""
    return np.array([[ahead(b, 8 * (k + 1), p) for b in range(256)] for k in range(count)], np.uint32)


def shift_tables(p: int, size: int) -> NDArray[np.uint32]:
    """``tables[k][b]``: the register after ``size`` zero bytes, if its byte k (from the low end) was b and the others 0."""
    return np.array([[ahead(b << 8 * k, 8 * size, p) for b in range(256)] for k in range(4)], np.uint32)
