"""XXH32, the checksum of lz4 frames."""

from __future__ import annotations

import numpy as np

from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, u8, u32

_P1, _P2, _P3, _P4, _P5 = (np.uint32(p) for p in (2654435761, 2246822519, 3266489917, 668265263, 374761393))


@kernel
def _rotated(x: np.uint32, bits: int) -> np.uint32:
    return np.uint32((x << np.uint32(bits)) | (x >> np.uint32(32 - bits)))


@kernel
def _round(lane: np.uint32, word: np.uint32) -> np.uint32:
    return np.uint32(_rotated(np.uint32(lane + np.uint32(word * _P2)), 13) * _P1)


@kernel
def xxh32(data: Bytes, start: int, size: int) -> np.uint32:
    """XXH32 of ``data[start:start + size]`` with seed 0."""
    pos = start
    end = start + size
    if size >= 16:
        a = np.uint32(_P1 + _P2)
        b = _P2
        c = np.uint32(0)
        d = np.uint32(np.uint32(0) - _P1)
        while pos <= end - 16:
            a = _round(a, np.uint32(u32(data, pos, True)))
            b = _round(b, np.uint32(u32(data, pos + 4, True)))
            c = _round(c, np.uint32(u32(data, pos + 8, True)))
            d = _round(d, np.uint32(u32(data, pos + 12, True)))
            pos += 16
        h = np.uint32(_rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18))
    else:
        h = _P5
    h = np.uint32(h + np.uint32(size))
    while pos <= end - 4:
        h = np.uint32(_rotated(np.uint32(h + np.uint32(u32(data, pos, True) * _P3)), 17) * _P4)
        pos += 4
    while pos < end:
        h = np.uint32(_rotated(np.uint32(h + np.uint32(np.uint32(u8(data, pos)) * _P5)), 11) * _P1)
        pos += 1
    h = np.uint32((h ^ (h >> np.uint32(15))) * _P2)
    h = np.uint32((h ^ (h >> np.uint32(13))) * _P3)
    return h ^ (h >> np.uint32(16))
