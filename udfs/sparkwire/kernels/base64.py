"""Base64 to bytes as ``java.util.Base64.getDecoder()`` reads it.

The standard alphabet and nothing else, no white space; the padding may be missing, but not in part; the bits of the last
character that belong to no byte are not looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, Ints, store_u8, u8
from sparkwire.kernels.number import int64

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_PAD = ord("=")


def _values() -> Ints:
    values = np.full(256, -1, np.int64)
    values[np.frombuffer(_ALPHABET, np.uint8)] = np.arange(64)
    return values


_VALUES = _values()


@kernel
def measure_base64(data: Bytes, offsets: NDArray[Any], sizes: Ints) -> None:
    """Size of what each row encodes [bytes], -1 for what is not Base64."""
    for i in range(sizes.size):
        sizes[i] = _decoded_size(data, int64(offsets[i]), int64(offsets[i + 1]))


@kernel
def write_base64(data: Bytes, offsets: NDArray[Any], sizes: Ints, at: NDArray[Any], out: Bytes) -> None:
    """Write what the rows encode to ``out[at[i]:]``; ``sizes`` from ``measure_base64``, nothing below 1."""
    for i in range(sizes.size):
        if sizes[i] > 0:
            _decode(data, int64(offsets[i]), sizes[i], int64(at[i]), out)


@kernel
def _decoded_size(data: Bytes, start: int, end: int) -> int:
    end = _without_padding(data, start, end)
    if (end - start) % 4 == 1:
        return -1
    good = int64(0)
    for pos in range(start, end):
        good |= _VALUES[u8(data, pos)]
    return (end - start) * 3 // 4 if good >= 0 else -1


@kernel
def _without_padding(data: Bytes, start: int, end: int) -> int:
    """Where the characters that encode end: padding counts only where it fills the last group of four."""
    if end == start or (end - start) % 4 != 0 or u8(data, end - 1) != _PAD:
        return end
    return end - 2 if u8(data, end - 2) == _PAD else end - 1


@kernel
def _decode(data: Bytes, pos: int, size: int, at: int, out: Bytes) -> None:
    bits, held = int64(0), 0
    done = at + size
    while at < done:
        bits = ((bits << 6) | _VALUES[u8(data, pos)]) & 0xFFFF
        pos, held = pos + 1, held + 6
        if held >= 8:
            held -= 8
            store_u8(out, at, np.uint8((bits >> held) & 0xFF))
            at += 1
