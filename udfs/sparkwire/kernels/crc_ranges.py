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
from sparkwire.kernels.gf2 import CASTAGNOLI, IEEE, power, reflect
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes

STEP_BITS = 8
STEP = 1 << STEP_BITS  # [bytes]
_LONGEST_BITS = 40  # ranges of up to 2^40 bytes


class RowSums(NamedTuple):
    """What a search keeps about the row that it last looked at."""

    sums: npt.NDArray[np.uint32]
    """(2, n): checksums of the first ``STEP * i`` bytes; row 0 CRC-32, row 1 CRC-32C"""
    known: npt.NDArray[np.int64]
    """where the row starts, and how many of its sums are there, one count for each checksum"""
    polynomials: npt.NDArray[np.uint32]
    powers: npt.NDArray[np.uint32]
    """(2, bits): x^(8 * 2^k)"""


ROW, COUNTS = 0, 1


def row_sums(longest: int) -> RowSums:
    """Room for rows of up to ``longest`` bytes."""
    polynomials, powers = _constants()
    known = np.array([-1, 0, 0], np.int64)
    steps = longest // STEP + 2
    return RowSums(np.empty((2, steps), np.uint32), known, polynomials, powers)


@functools.cache
def _constants() -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    polynomials = [reflect(p & 0xFFFFFFFF, 32) for p in (IEEE, CASTAGNOLI)]
    powers = [[reflect(power(8 << k, p), 32) for k in range(_LONGEST_BITS)] for p in (IEEE, CASTAGNOLI)]
    return np.array(polynomials, np.uint32), np.array(powers, np.uint32)


@kernel
def _times(a: np.uint32, b: np.uint32, polynomial: np.uint32) -> np.uint32:
    """a * b modulo the polynomial, the coefficient of x^0 in the highest bit."""
    product = np.uint32(0)
    for bit in range(31, -1, -1):
        if (a >> np.uint32(bit)) & np.uint32(1):
            product ^= b
        b = (b >> np.uint32(1)) ^ (polynomial if b & np.uint32(1) else np.uint32(0))
    return product


@kernel
def _moved(checksum: np.uint32, size: int, which: int, state: RowSums) -> np.uint32:
    """``checksum`` times x^(8 * size)."""
    bit = 0
    while size:
        if size & 1:
            checksum = _times(state.powers[which, bit], checksum, state.polynomials[which])
        size >>= 1
        bit += 1
    return checksum


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
        moved = _times(state.powers[which, STEP_BITS], state.sums[which, count - 1], state.polynomials[which])
        state.sums[which, count] = moved ^ _crc(data, block, STEP, which)
        count += 1
    state.known[COUNTS + which] = count
    rest = (end - row) & (STEP - 1)
    return _moved(state.sums[which, step], rest, which, state) ^ _crc(data, end - rest, rest, which)


@kernel
def range_crc(data: Bytes, row: int, start: int, end: int, castagnoli: bool, state: RowSums) -> np.uint32:
    """Checksum of ``data[start:end]``, which lies in the row that begins at ``row``."""
    which = 1 if castagnoli else 0
    if end - start <= 4 * STEP:
        return _crc(data, start, end - start, which)
    if state.known[ROW] != row:
        state.known[ROW] = row
        for i in range(2):
            state.known[COUNTS + i] = 1
            state.sums[i, 0] = 0
    before = _from_start(data, row, start, which, state)
    return _from_start(data, row, end, which, state) ^ _moved(before, end - start, which, state)
