"""Zigzag varints as in Kafka and Protocol Buffers: seven bits for each byte, the lowest bits first.

A reader returns ``(value, next)``: the number and the position after it, or -1 if ``data[pos:end]`` has no complete varint.
As in Kafka's own reader, an encoding may be longer than necessary, but not longer than the type allows. The reader drops bits
beyond the type's width.
"""

from __future__ import annotations

import numpy as np

from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, int64, store_u8, u8

VARINT_BYTES = 5
VARLONG_BYTES = 10


@kernel
def unsigned(data: Bytes, pos: int, end: int, longest: int) -> tuple[np.uint64, int]:
    """An unsigned varint of at most ``longest`` bytes."""
    value = np.uint64(0)
    last = min(end, pos + longest)
    shift = np.uint64(0)
    while pos < last:
        byte = np.uint64(u8(data, pos))
        pos += 1
        value |= (byte & np.uint64(127)) << shift
        if byte < np.uint64(128):
            return value, pos
        shift += np.uint64(7)
    return value, -1


@kernel
def varint(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    """A signed 32-bit number, widened to 64 bits."""
    if pos < end:
        low = int64(u8(data, pos))
        if low < 128:
            return (low >> 1) ^ -(low & 1), pos + 1
        if pos + 1 < end:
            high = int64(u8(data, pos + 1))
            if high < 128:
                low += (high - 1) << 7
                return (low >> 1) ^ -(low & 1), pos + 2
    raw, pos = unsigned(data, pos, end, VARINT_BYTES)
    folded = int64(raw & np.uint64(0xFFFFFFFF))
    return (folded >> 1) ^ -(folded & 1), pos


@kernel
def varlong(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    """A signed 64-bit number."""
    if pos < end:
        low = int64(u8(data, pos))
        if low < 128:
            return (low >> 1) ^ -(low & 1), pos + 1
        if pos + 1 < end:
            high = int64(u8(data, pos + 1))
            if high < 128:
                low += (high - 1) << 7
                return (low >> 1) ^ -(low & 1), pos + 2
    raw, pos = unsigned(data, pos, end, VARLONG_BYTES)
    return int64(raw >> np.uint64(1)) ^ -int64(raw & np.uint64(1)), pos


@kernel
def varint_size(value: int) -> int:
    """The size of the shortest encoding of a signed 32- or 64-bit number [bytes]."""
    rest = _folded(value) >> np.uint64(7)
    size = 1
    while rest != np.uint64(0):
        rest >>= np.uint64(7)
        size += 1
    return size


@kernel
def put_varint(out: Bytes, pos: int, value: int) -> int:
    """Write the shortest encoding of a signed 32- or 64-bit number to ``out[pos:]``. Returns the position after it."""
    rest = _folded(value)
    while rest >= np.uint64(128):
        store_u8(out, pos, np.uint8(rest | np.uint64(128)))
        rest >>= np.uint64(7)
        pos += 1
    store_u8(out, pos, np.uint8(rest))
    return pos + 1


@kernel
def _folded(value: int) -> np.uint64:
    return np.uint64((int64(value) << 1) ^ (int64(value) >> 63))
