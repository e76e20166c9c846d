"""Checksums by table look-up, for targets without carry-less multiplication.

Slice-by-8 processes eight bytes in each step with eight independent look-ups (Kounavis & Berry, *A Systematic Approach to
Building High Performance, Software-based, CRC Generators*, 2005). Each step depends on the previous one. So four streams run in
parallel over the quarters of a block, and each result is then moved past the later quarters. This is twice as fast as one
stream.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sparkwire.kernels.checksums import gf2
from sparkwire.kernels.checksums.gf2 import Checksum
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, Int, u8, u32

STREAM = 256  # [bytes] of one stream in a block
BLOCK = 4 * STREAM


def table_checksum(checksum: Checksum) -> Callable[[Bytes, Int, Int], np.uint32]:
    """``f(data, start, n)``: the checksum of ``data[start : start + n]``."""
    steps = gf2.byte_tables(checksum.poly, 8)
    skips = gf2.shift_tables(checksum.poly, STREAM)
    zero, first, last = np.uint32(0), np.uint32(checksum.init), np.uint32(checksum.xorout)

    @kernel(key=checksum.name)
    def by_table(data: Bytes, start: Int, n: Int) -> np.uint32:
        register = first
        pos, end = start, start + n
        while pos + BLOCK <= end:
            a, b, c, d = register, zero, zero, zero
            for at in range(pos, pos + STREAM, 8):
                a = _step(steps, a, data, at)
                b = _step(steps, b, data, at + STREAM)
                c = _step(steps, c, data, at + 2 * STREAM)
                d = _step(steps, d, data, at + 3 * STREAM)
            register = _skip(skips, _skip(skips, _skip(skips, a) ^ b) ^ c) ^ d
            pos += BLOCK
        while pos + 8 <= end:
            register = _step(steps, register, data, pos)
            pos += 8
        while pos < end:
            register = np.uint32(steps[0, np.uint8(register) ^ u8(data, pos)] ^ (register >> 8))
            pos += 1
        return np.uint32(register ^ last)

    return by_table


@kernel
def _step(tables: NDArray[np.uint32], register: np.uint32, data: Bytes, pos: Int) -> np.uint32:
    """The register after the eight bytes at ``pos``. The last four look-ups do not depend on ``register``."""
    x = u32(data, pos, True) ^ register
    near = tables[7, np.uint8(x)] ^ tables[6, np.uint8(x >> 8)]
    near ^= tables[5, np.uint8(x >> 16)] ^ tables[4, x >> 24]
    far = tables[3, u8(data, pos + 4)] ^ tables[2, u8(data, pos + 5)]
    far ^= tables[1, u8(data, pos + 6)] ^ tables[0, u8(data, pos + 7)]
    return np.uint32(near ^ far)


@kernel
def _skip(tables: NDArray[np.uint32], x: np.uint32) -> np.uint32:
    """The register after as many zero bytes as ``tables`` were built for."""
    low = tables[0, np.uint8(x)] ^ tables[1, np.uint8(x >> 8)]
    return np.uint32(low ^ tables[2, np.uint8(x >> 16)] ^ tables[3, x >> 24])
