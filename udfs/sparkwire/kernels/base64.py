"""Decode Base64 as ``java.util.Base64.getDecoder()`` does, and encode it with padding.

The decoder accepts only the standard alphabet, without white space. The padding must be complete or absent. The decoder ignores
bits of the last character that do not belong to a byte.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, Ints, int64, store_i16, store_u8, u8

_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_LINE = 57  # [bytes] encoded in one line of 76 characters
_PADDING = ord("=")
_NEWLINE = int.from_bytes(rb"\n", "little")


def _values() -> Ints:
    values = np.full(256, -1, np.int64)
    values[_ALPHABET] = np.arange(64)
    return values


def _pairs() -> NDArray[np.int16]:
    """The two Base64 characters of each 12-bit number, the first one in the lower byte."""
    characters = _ALPHABET.astype(np.uint16)
    return (characters[:, None] | characters[None, :] << 8).astype(np.int16).ravel()


_VALUES = _values()
_PAIRS = _pairs()


@kernel
def measure_decoded(data: Bytes, offsets: NDArray[Any], sizes: Ints) -> None:
    """The decoded size of each row [bytes]; -1 if the row is not Base64."""
    for i in range(sizes.size):
        sizes[i] = _decoded_size(data, int64(offsets[i]), int64(offsets[i + 1]))


@kernel
def write_decoded(data: Bytes, offsets: NDArray[Any], sizes: Ints, at: NDArray[Any], out: Bytes) -> None:
    """Decode the rows to ``out[at[i]:]``. ``sizes`` comes from ``measure_decoded``; rows with a size below 1 are skipped."""
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
    """The end of the characters before the padding. Padding is recognized only if it completes the last group of four."""
    if end == start or (end - start) % 4 != 0 or u8(data, end - 1) != _PADDING:
        return end
    return end - 2 if u8(data, end - 2) == _PADDING else end - 1


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


@kernel
def base64_size(size: int) -> int:
    """The number of characters that encode ``size`` bytes."""
    return (size + 2) // 3 * 4


@kernel
def write_base64_lines(out: Bytes, at: int, data: Bytes, start: int, size: int, writing: bool) -> int:
    r"""Write ``data[start:start + size]`` as Base64, with ``\n`` after every full line of 76 characters."""
    if not writing:
        return at + base64_size(size) + size // _LINE * 2
    end = start + size
    while start + _LINE <= end:
        at = _write_groups(out, at, data, start, start + _LINE)
        store_i16(out, at, _NEWLINE, True)
        at += 2
        start += _LINE
    whole = end - (end - start) % 3
    at = _write_groups(out, at, data, start, whole)
    return _write_last_group(out, at, data, whole, end)


@kernel
def write_base64(out: Bytes, at: int, data: Bytes, start: int, size: int, writing: bool) -> int:
    """Write ``data[start:start + size]`` as padded Base64 in one line."""
    if not writing:
        return at + base64_size(size)
    whole = start + size - size % 3
    at = _write_groups(out, at, data, start, whole)
    return _write_last_group(out, at, data, whole, start + size)


@kernel
def _write_groups(out: Bytes, at: int, data: Bytes, pos: int, end: int) -> int:
    while pos < end:
        bits = int64(u8(data, pos)) << 16 | int64(u8(data, pos + 1)) << 8 | int64(u8(data, pos + 2))
        store_i16(out, at, _PAIRS[bits >> 12], True)
        store_i16(out, at + 2, _PAIRS[bits & 0xFFF], True)
        pos += 3
        at += 4
    return at


@kernel
def _write_last_group(out: Bytes, at: int, data: Bytes, pos: int, end: int) -> int:
    if pos == end:
        return at
    bits = int64(u8(data, pos)) << 16
    if pos + 1 < end:
        bits |= int64(u8(data, pos + 1)) << 8
    store_i16(out, at, _PAIRS[bits >> 12], True)
    store_u8(out, at + 2, _ALPHABET[bits >> 6 & 63] if pos + 1 < end else np.uint8(_PADDING))
    store_u8(out, at + 3, np.uint8(_PADDING))
    return at + 4
