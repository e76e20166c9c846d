"""Checksums of any range of a buffer in the same short time, however long the range.

A search in damaged bytes may meet a place at every few bytes that claims a checksum over much of what follows. A CRC that
starts with 0 is linear: from those of the buffer's beginnings, noted every ``BLOCK`` bytes, that of a range follows by two
products of polynomials. With A and B the first and the last border of a block within the range::

    crc(start..end) = ((crc(start..A) + crc(0..A)) * x^(8 (B - A)) + crc(0..B)) * x^(8 (end - B)) + crc(B..end)
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparkwire.kernels.crc import crc32_raw
from sparkwire.kernels.gf2 import IEEE, power, reflect
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, Ints
from sparkwire.kernels.number import int64

_BITS = 8
BLOCK = 1 << _BITS  # [bytes]
_SHORT = 4 * BLOCK  # [bytes] computed as it is
_LEVELS = 4  # of 256 powers each: ranges of up to 4 GiB


class Prefixes(NamedTuple):
    """Checksums of a buffer's beginnings, computed as far as one was asked for."""

    sums: NDArray[np.uint32]
    """that of the bytes from the first block on, by block"""
    known: Ints
    """the number of the first block, and how many sums there are"""
    powers: NDArray[np.uint32]
    """(levels, 256): x^(8 * n * 256^level)"""


def prefixes(start: int, end: int) -> Prefixes:
    """Room for ``data[start:end]``; memory is touched only where a long range is asked for."""
    first = (start + BLOCK - 1) >> _BITS
    sums = np.zeros(max(end - start, 0) // BLOCK + 2, np.uint32)
    return Prefixes(sums, np.array([first, 1], np.int64), _powers())


@functools.cache
def _powers() -> NDArray[np.uint32]:
    powers = [[reflect(power(8 * n << _BITS * level, IEEE), 32) for n in range(256)] for level in range(_LEVELS)]
    return np.array(powers, np.uint32)


@kernel
def range_crc(data: Bytes, start: int, end: int, before: Prefixes) -> np.uint32:
    """``crc32_raw`` of ``data[start:end]``, a range inside of what ``before`` is for."""
    if end - start <= _SHORT:
        return crc32_raw(data, start, end - start)
    first, last = (start + BLOCK - 1) >> _BITS, end >> _BITS
    _extend(data, last, before)
    base = before.known[0]
    total = crc32_raw(data, start, first * BLOCK - start) ^ before.sums[first - base]
    total = _moved(total, last - first, before) ^ before.sums[last - base]
    rest = end - last * BLOCK
    return np.uint32(_product(total, before.powers[0, rest]) ^ crc32_raw(data, last * BLOCK, rest))


@kernel
def _extend(data: Bytes, block: int, before: Prefixes) -> None:
    base, count = before.known[0], before.known[1]
    while base + count <= block:
        moved = _product(before.sums[count - 1], before.powers[1, 1])
        before.sums[count] = moved ^ crc32_raw(data, (base + count - 1) * BLOCK, BLOCK)
        count += 1
    before.known[1] = count


@kernel
def _moved(checksum: np.uint32, blocks: int, before: Prefixes) -> np.uint32:
    """The checksum after that many blocks of zeros."""
    level = 1
    while blocks:
        if blocks & 255:
            checksum = _product(checksum, before.powers[level, blocks & 255])
        blocks >>= 8
        level += 1
    return checksum


@kernel
def _product(a: np.uint32, b: np.uint32) -> np.uint32:
    """a * b modulo the polynomial, the coefficient of x^0 in the highest bit; without a branch, bits being random."""
    product, x, y = int64(0), int64(a), int64(b)
    for _ in range(32):
        product ^= y & -(x >> 31)
        x = (x << 1) & 0xFFFF_FFFF
        y = (y >> 1) ^ (_REFLECTED & -(y & 1))
    return np.uint32(product)


_REFLECTED = reflect(IEEE & 0xFFFF_FFFF, 32)
