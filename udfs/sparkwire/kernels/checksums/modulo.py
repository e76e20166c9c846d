"""Multiply polynomials over GF(2) modulo the polynomial of a checksum, in kernels.

A residue is a ``uint32`` with the coefficient of x^0 in its highest bit, as in checksums.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sparkwire.kernels.checksums import gf2
from sparkwire.kernels.checksums.instruction_sets import LONG, MACHINES, WORD, Isa, Machine, compiled_isa
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import int64, uint64


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
