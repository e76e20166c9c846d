"""Checksums: CRC-32 and CRC-32C of ``data[start : start + n]``, uint32.

- ``crc32``: zlib's: starts with all ones, ends inverted
- ``crc32_raw``: Databus's: the same polynomial, starts with 0, ends as it is
- ``crc32c``: Castagnoli's, starts with all ones, ends inverted
"""

from __future__ import annotations

import numpy as np

from sparkwire.kernels import gf2
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes

_CRC32 = gf2.byte_tables(gf2.CRC32, 1)[0]
_CRC32C = gf2.byte_tables(gf2.CRC32C, 1)[0]


@kernel
def crc32(data: Bytes, start: int, n: int) -> np.uint32:
    register = np.uint32(0xFFFFFFFF)
    for at in range(start, start + n):
        register = _CRC32[(register ^ data[at]) & np.uint32(0xFF)] ^ (register >> np.uint32(8))
    return np.uint32(~register)


@kernel
def crc32_raw(data: Bytes, start: int, n: int) -> np.uint32:
    register = np.uint32(0)
    for at in range(start, start + n):
        register = _CRC32[(register ^ data[at]) & np.uint32(0xFF)] ^ (register >> np.uint32(8))
    return register


@kernel
def crc32c(data: Bytes, start: int, n: int) -> np.uint32:
    register = np.uint32(0xFFFFFFFF)
    for at in range(start, start + n):
        register = _CRC32C[(register ^ data[at]) & np.uint32(0xFF)] ^ (register >> np.uint32(8))
    return np.uint32(~register)
