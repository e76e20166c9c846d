"""Compute the checksum of any range of a row in a short time that does not depend on the range's length.

A search in corrupt bytes may find a checksum over a long range every few bytes. Computing each from its first byte would take
quadratic time. Instead, the checksums of the row's prefixes are stored for every ``STEP`` bytes. The checksum of a range
follows by two products of polynomials. A and B are the first and the last stored position within the range::

    crc(start..end) = ((crc(start..A) + crc(0..A)) * x^(8 (B - A)) + crc(0..B)) * x^(8 (end - B)) + crc(B..end)

A residue is a ``uint32`` with the coefficient of x^0 in its highest bit, as in checksums.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sparkwire.kernels.checksums import gf2
from sparkwire.kernels.checksums.crc import CRC32, CRC32_RAW, CRC32C, crc32, crc32_raw, crc32c
from sparkwire.kernels.checksums.gf2 import Checksum, power, reflect
from sparkwire.kernels.checksums.instruction_sets import LONG, MACHINES, WORD, Isa, Machine, compiled_isa
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, Ints, int64, uint64

# -- products modulo the polynomial of a checksum


class Modulus(NamedTuple):
    """A polynomial P of degree 32, reflected."""

    inverse: np.uint64
    """x^64 / P, in 33 bits"""
    polynomial: np.uint64
    """P, in 33 bits"""


@functools.cache
def modulus(p: int) -> Modulus:
    return Modulus(np.uint64(gf2.reflect(gf2.divide(1 << 64, p)[0], 33)), np.uint64(gf2.reflect(p, 33)))


def _carryless(machine: Machine) -> Callable[[Any, Any], int]:
    @intrinsic  # type: ignore[untyped-decorator]
    def multiply(typing_context: Any, a: Any, c: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            empty = ir.Constant(ir.VectorType(LONG, 2), [0, 0])
            left, right = (builder.insert_element(empty, value, WORD(0)) for value in args)
            return builder.extract_element(machine.multiply(builder, left, right, 0, 0), WORD(0))

        return types.uint64(types.uint64, types.uint64), emit

    return multiply  # type: ignore[no-any-return]


def _product() -> Callable[[np.uint32, np.uint32, Modulus], np.uint32]:
    isa = compiled_isa()
    if isa is Isa.PORTABLE:
        return by_bits
    carryless = _carryless(MACHINES[isa])

    @kernel(key=isa.name)
    def by_multiplication(a: np.uint32, b: np.uint32, p: Modulus) -> np.uint32:
        """Barrett's method: divide the upper half by P and subtract the multiple of P."""
        whole = carryless(uint64(a), uint64(b)) << uint64(1)  # 64 bits; the highest is that of x^0
        quotient = carryless(whole & uint64(0xFFFF_FFFF), p.inverse) & uint64(0xFFFF_FFFF)
        return np.uint32((whole ^ carryless(quotient, p.polynomial)) >> uint64(32))

    return by_multiplication


@kernel
def by_bits(a: np.uint32, b: np.uint32, p: Modulus) -> np.uint32:
    """Multiply by one coefficient of ``a`` after the other, without branches, because the bits are random."""
    product, x, y = int64(0), int64(a), int64(b)
    low = int64(p.polynomial >> uint64(1))
    for _ in range(32):
        product ^= y & -(x >> 31)
        x = (x << 1) & 0xFFFF_FFFF
        y = (y >> 1) ^ (low & -(y & 1))
    return np.uint32(product)


times: Callable[[np.uint32, np.uint32, Modulus], np.uint32] = _product()
"""``times(a, b, p)``: a * b modulo P"""


# -- checksums of ranges

_BITS = 6
STEP: Final = 1 << _BITS  # [bytes] one block of the widest register
_SHORT = 4 * STEP  # [bytes] shorter ranges are computed directly
_LEVEL_BITS = 13
_LEVELS = 2  # ranges of up to 4 GiB
_KINDS = (CRC32, CRC32_RAW, CRC32C)


class RangeSums(NamedTuple):
    """The checksums of one row's prefixes, computed on demand."""

    kind: int
    """the checksum, as an index into `_KINDS`"""
    sums: NDArray[np.uint32]
    """``sums[i]``: the checksum of the first ``STEP * i`` bytes"""
    extent: Ints
    """the start of the row, and the number of its computed sums"""
    powers: NDArray[np.uint32]
    """(1 + levels, 8192): x^(8 n), and x^(8 n STEP 8192^level)"""
    modulus: Modulus


def range_sums(checksum: Checksum, row: int, longest: int) -> RangeSums:
    """Create the sums for the row that begins at ``row``, and for other rows of up to ``longest`` bytes.

    Memory that is not used stays untouched.
    """
    sums = np.empty(longest // STEP + 2, np.uint32)
    sums[0] = 0
    polynomial = checksum.poly
    return RangeSums(
        _KINDS.index(checksum), sums, np.array([row, 1], np.int64), _powers(polynomial), modulus(polynomial)
    )


@functools.cache
def _powers(polynomial: int) -> NDArray[np.uint32]:
    powers = np.empty((1 + _LEVELS, 1 << _LEVEL_BITS), np.uint32)
    for at, size in enumerate((1, *(STEP << _LEVEL_BITS * level for level in range(_LEVELS)))):
        _fill(np.uint32(reflect(power(8 * size, polynomial), 32)), modulus(polynomial), powers[at])
    return powers


@kernel
def _fill(base: np.uint32, p: Modulus, out: NDArray[np.uint32]) -> None:
    """Set each item of ``out`` to ``base`` to the power of its index."""
    out[0] = np.uint32(1 << 31)
    for n in range(1, out.size):
        out[n] = times(out[n - 1], base, p)


@kernel
def begin_row(row: int, sums: RangeSums) -> None:
    """Prepare ``sums`` for the row that begins at ``row``."""
    sums.extent[0] = row
    sums.extent[1] = 1


@kernel
def range_crc(data: Bytes, start: int, end: int, sums: RangeSums) -> np.uint32:
    """The checksum of ``data[start:end]``, a range within the current row of ``sums``."""
    if end - start <= _SHORT:
        return _crc(data, start, end - start, sums.kind)
    row = sums.extent[0]
    first, last = (start - row + STEP - 1) >> _BITS, (end - row) >> _BITS
    if sums.extent[1] <= last:
        _extend(data, last, sums)
    at = row + (first << _BITS)
    total = _crc(data, start, at - start, sums.kind) ^ sums.sums[first]
    total = _after_steps(total, last - first, sums) ^ sums.sums[last]
    at = row + (last << _BITS)
    return np.uint32(times(total, sums.powers[0, end - at], sums.modulus) ^ _crc(data, at, end - at, sums.kind))


@kernel
def _crc(data: Bytes, start: int, size: int, kind: int) -> np.uint32:
    if kind == 0:
        return crc32(data, start, size)
    return crc32_raw(data, start, size) if kind == 1 else crc32c(data, start, size)


@kernel
def _extend(data: Bytes, last: int, sums: RangeSums) -> None:
    row, count = sums.extent[0], sums.extent[1]
    while count <= last:
        moved = times(sums.sums[count - 1], sums.powers[1, 1], sums.modulus)
        sums.sums[count] = moved ^ _crc(data, row + ((count - 1) << _BITS), int64(STEP), sums.kind)
        count += 1
    sums.extent[1] = count


@kernel
def _after_steps(checksum: np.uint32, steps: int, sums: RangeSums) -> np.uint32:
    """The checksum after ``steps * STEP`` zero bytes."""
    checksum = times(checksum, sums.powers[1, steps & ((1 << _LEVEL_BITS) - 1)], sums.modulus)
    if steps >> _LEVEL_BITS:
        checksum = times(checksum, sums.powers[2, steps >> _LEVEL_BITS], sums.modulus)
    return checksum
