"""Checksums of any range of a row in the same short time, however long the range.

A search for the next intact entry may meet millions of positions that look like an entry reaching to the end of
the row; computing each checksum from scratch would take quadratic time. A CRC is linear: from the checksums of the row's
beginnings, noted every ``STEP`` bytes, that of any range follows by multiplying polynomials.

    crc(a..b) = crc(0..b) ^ crc(0..a) * x^(8 (b - a))
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.kernels.crc import crc32, crc32c
from sparkwire.kernels.gf2 import CASTAGNOLI, IEEE, byte_tables, power, reflect
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, u8
from sparkwire.kernels.number import int64

STEP_BITS = 8
STEP = 1 << STEP_BITS  # [bytes]


class RowSums(NamedTuple):
    """What a search keeps about the row that it last looked at; everything by checksum, 0 CRC-32, 1 CRC-32C."""

    sums: npt.NDArray[np.uint32]
    """(2, n): checksums of the first ``STEP * i`` bytes"""
    known: npt.NDArray[np.int64]
    """where the row starts, and how many of its sums are there"""
    places: npt.NDArray[np.int64]
    """(2, 3): where the last range began and ended, and its size"""
    values: npt.NDArray[np.uint32]
    """(2, 3): checksums up to those two places, and x^(8 * size)"""
    steps: npt.NDArray[np.uint32]
    """(2, 256): what a byte becomes in the register"""
    powers: npt.NDArray[np.uint32]
    """(2, levels, 4096): x^(8 * n * 4096^level)"""


ROW, COUNTS = 0, 1
_BEGIN, _END, _SIZE = range(3)
_LEVEL_BITS = 12
_LEVELS = 3  # ranges of up to 2^36 bytes
_NEAR = 64  # bytes that are gone through one by one [bytes]
_ONES = np.uint32(0xFFFFFFFF)


def row_sums(longest: int) -> RowSums:
    """Room for rows of up to ``longest`` bytes."""
    steps, powers = _constants()
    return RowSums(
        sums=np.empty((2, longest // STEP + 2), np.uint32),
        known=np.array([-1, 0, 0], np.int64),
        places=np.zeros((2, 3), np.int64),
        values=np.zeros((2, 3), np.uint32),
        steps=steps,
        powers=powers,
    )


@functools.cache
def _constants() -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    powers = np.empty((2, _LEVELS, 1 << _LEVEL_BITS), np.uint32)
    for which, polynomial in enumerate((IEEE, CASTAGNOLI)):
        for level in range(_LEVELS):
            fill_powers(
                np.uint32(reflect(power(8 << _LEVEL_BITS * level, polynomial), 32)), which, powers[which, level]
            )
    return np.array([byte_tables(p, 1)[0] for p in (IEEE, CASTAGNOLI)], np.uint32), powers


@kernel
def fill_powers(base: np.uint32, which: int, out: npt.NDArray[np.uint32]) -> None:
    """``base`` to the power of each index."""
    out[0] = np.uint32(1 << 31)
    for n in range(1, out.size):
        out[n] = _times(out[n - 1], base, which)


_REFLECTED_IEEE = reflect(IEEE & 0xFFFFFFFF, 32)
_REFLECTED_CASTAGNOLI = reflect(CASTAGNOLI & 0xFFFFFFFF, 32)


@kernel
def _times(a: np.uint32, b: np.uint32, which: int) -> np.uint32:
    """a * b modulo the polynomial, the coefficient of x^0 in the highest bit; without a branch, bits being random."""
    polynomial = int64(_REFLECTED_CASTAGNOLI if which else _REFLECTED_IEEE)
    product, x, y = int64(0), int64(a), int64(b)
    for _ in range(32):
        product ^= y & -(x >> 31)
        x = (x << 1) & 0xFFFFFFFF
        y = (y >> 1) ^ (polynomial & -(y & 1))
    return np.uint32(product)


@kernel
def _power(size: int, which: int, state: RowSums) -> np.uint32:
    """x^(8 * size)."""
    low = size & ((1 << _LEVEL_BITS) - 1)
    result = state.powers[which, 0, low]
    for level in range(1, _LEVELS):
        size >>= _LEVEL_BITS
        digit = size & ((1 << _LEVEL_BITS) - 1)
        if digit:
            result = _times(result, state.powers[which, level, digit], which)
    return np.uint32(result)


@kernel
def _crc(data: Bytes, start: int, size: int, which: int) -> np.uint32:
    return crc32(data, start, size) if which == 0 else crc32c(data, start, size)


@kernel
def _from_start(data: Bytes, row: int, end: int, which: int, state: RowSums) -> np.uint32:
    """Checksum of ``data[row:end]``; notes the sums on the way that are not there yet."""
    step = (end - row) >> STEP_BITS
    count = state.known[COUNTS + which]
    while count <= step:
        block = row + (count - 1) * STEP
        moved = _times(state.powers[which, 0, STEP], state.sums[which, count - 1], which)
        state.sums[which, count] = moved ^ _crc(data, block, STEP, which)
        count += 1
    state.known[COUNTS + which] = count
    rest = (end - row) & (STEP - 1)
    moved = _times(state.powers[which, 0, rest], state.sums[which, step], which)
    return np.uint32(moved ^ _crc(data, end - rest, rest, which))


@kernel
def _up_to(data: Bytes, row: int, pos: int, which: int, border: int, state: RowSums) -> np.uint32:
    """The same, from where the last range had this border if that is near before: a search goes on byte by byte."""
    at = state.places[which, border]
    value = state.values[which, border]
    if at <= pos <= at + _NEAR:
        value ^= _ONES
        while at < pos:
            value = (value >> np.uint32(8)) ^ state.steps[which, (value ^ np.uint32(u8(data, at))) & np.uint32(255)]
            at += 1
        value ^= _ONES
    else:
        value = _from_start(data, row, pos, which, state)
    state.places[which, border] = pos
    state.values[which, border] = value
    return np.uint32(value)


@kernel
def range_crc(data: Bytes, row: int, start: int, end: int, castagnoli: bool, state: RowSums) -> np.uint32:
    """Checksum of ``data[start:end]``, which lies in the row that begins at ``row``."""
    which = 1 if castagnoli else 0
    if end - start <= STEP:
        return _crc(data, start, end - start, which)
    if state.known[ROW] != row:
        state.known[ROW] = row
        for i in range(2):
            state.known[COUNTS + i] = 1
            state.sums[i, 0] = 0
            state.places[i, _BEGIN] = state.places[i, _END] = row
            state.values[i, _BEGIN] = state.values[i, _END] = 0
    before = _up_to(data, row, start, which, _BEGIN, state)
    whole = _up_to(data, row, end, which, _END, state)
    if state.places[which, _SIZE] != end - start:
        state.places[which, _SIZE] = end - start
        state.values[which, _SIZE] = _power(end - start, which, state)
    return np.uint32(whole ^ _times(state.values[which, _SIZE], before, which))
