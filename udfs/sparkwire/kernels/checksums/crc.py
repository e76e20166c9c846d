"""Checksums of ``data[start : start + n]``, uint32, by the fastest method that the compiled code may use.

- ``crc32``: zlib's CRC; the start value is all ones, the result is inverted
- ``crc32_raw``: Databus's CRC; the same polynomial, the start value is 0, the result is not inverted
- ``crc32c``: Castagnoli's CRC, as in Kafka's record batches; the start value is all ones, the result is inverted

Kernels call these functions. Targets without carry-less multiplication look checksums up in tables. Slice-by-8 processes eight
bytes in each step with eight independent look-ups (Kounavis & Berry, *A Systematic Approach to Building High Performance,
Software-based, CRC Generators*, 2005). Each step depends on the previous one. So four streams run in parallel over the quarters
of a block, and each result is then moved past the later quarters. This is twice as fast as one stream.

A CRC is linear: flipping a bit changes the CRC by an amount that depends only on the bit's distance from the end. So the bit
that explains a wrong checksum can be found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sparkwire.kernels.checksums import gf2
from sparkwire.kernels.checksums.fold import checksum_function
from sparkwire.kernels.checksums.gf2 import Checksum
from sparkwire.kernels.checksums.instruction_sets import MACHINES, Isa, Machine, compiled_isa
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, Int, address, int64, u8, u32

ONES = 0xFFFFFFFF
CRC32 = Checksum("crc32", gf2.IEEE, ONES, ONES)
CRC32_RAW = Checksum("crc32_raw", gf2.IEEE, 0, 0)
CRC32C = Checksum("crc32c", gf2.CASTAGNOLI, ONES, ONES)
CHECKSUMS = (CRC32, CRC32_RAW, CRC32C)

Crc: TypeAlias = Callable[[Bytes, Int, Int], np.uint32]

STREAM = 256  # [bytes] of one stream in a block
BLOCK = 4 * STREAM


def _kernel_of(checksum: Checksum) -> Crc:
    isa = compiled_isa()
    return _looked_up(checksum) if isa is Isa.PORTABLE else _folded(checksum, MACHINES[isa])


def _folded(checksum: Checksum, machine: Machine) -> Crc:
    @intrinsic  # type: ignore[untyped-decorator]
    def fold(typing_context: Any, data: Any, start: Any, n: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            at = address(context, builder, signature.args[0], *args)
            return builder.call(checksum_function(builder.module, machine, checksum), [at, args[2]])

        return types.uint32(data, types.int64, types.int64), emit

    return fold  # type: ignore[no-any-return]


def _looked_up(checksum: Checksum) -> Crc:
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


crc32: Crc = _kernel_of(CRC32)
crc32_raw: Crc = _kernel_of(CRC32_RAW)
crc32c: Crc = _kernel_of(CRC32C)


# -- for Python


def checksum_of(name: str, data: Bytes, start: int, size: int) -> int:
    """The checksum with this name."""
    return int(_nth_checksum([each.name for each in CHECKSUMS].index(name), data, start, size))


@kernel
def _nth_checksum(number: int, data: Bytes, start: int, size: int) -> int:
    if number == 0:
        return int64(crc32(data, start, size))
    return int64(crc32_raw(data, start, size)) if number == 1 else int64(crc32c(data, start, size))


def flipped_bit(name: str, size: int, difference: int) -> tuple[int, int] | None:
    """The byte, counted from the end of ``size`` bytes, and the bit that explain a wrong checksum, if a single bit does.

    ``difference`` is the stored xor the computed checksum.
    """
    [poly] = [each.poly for each in CHECKSUMS if each.name == name]
    distance = int(_distance_of_bit(gf2.reflect(poly, 33) >> 1, size, difference))
    return None if distance < 0 else (distance // 8, 7 - distance % 8)


@kernel
def _distance_of_bit(polynomial: int, size: int, difference: int) -> int:
    """The distance of the flipped bit from the last bit, which is the highest of the last byte; -1 if none fits.

    ``polynomial`` is reflected and without its highest term. For each bit further from the end, the effect on the checksum is
    multiplied by x, which is one step of the shift register.
    """
    effect = int64(polynomial)
    for distance in range(8 * size):
        if effect == difference:
            return int64(distance)
        effect = effect >> 1 ^ (polynomial if effect & 1 else 0)
    return int64(-1)
