"""What is between the quotes of a JSON string, written as Jackson 1 writes it.

Each function gives the place after what it writes to ``out[at:]``; with ``writing`` off it writes nothing and only
measures, so that size and text come from the same lines. ``out`` may be written ``WRITE_SLACK`` bytes over.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, i64, store_i16, store_i32, store_i64, store_u8, u8
from sparkwire.kernels.number import int64
from sparkwire.kernels.text import utf8_step

WRITE_SLACK: Final = 8  # [bytes]

_LINE = 57  # [bytes] that fill a line of 76 characters
_PADDING = ord("=")
_REPLACEMENT = 0xBDBFEF  # U+FFFD in UTF-8, first byte lowest
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_BACKSLASH = 0x5C
_ONES = int64(0x0101010101010101)


def _pairs() -> NDArray[np.int16]:
    """Two characters of Base64 for each number of twelve bits, the first one in the lower byte."""
    characters = _BASE64.astype(np.uint16)
    return (characters[:, None] | characters[None, :] << 8).astype(np.int16).ravel()


def _short_escapes() -> NDArray[np.uint8]:
    """The letter after the backslash, by ASCII character; 1 for the long form of a control character, else 0."""
    letters = np.zeros(128, np.uint8)
    letters[:0x20] = 1
    for character, letter in zip(b'\b\t\n\f\r"\\', b'btnfr"\\', strict=True):
        letters[character] = letter
    return letters


_PAIRS = _pairs()
_SHORT_ESCAPES = _short_escapes()


@kernel
def write_base64_lines(out: Bytes, at: int, data: Bytes, start: int, size: int, writing: bool) -> int:
    r"""Base64 of ``data[start:start + size]`` with ``\n`` after every 76 characters, of which the last may be the last."""
    if not writing:
        return at + (size + 2) // 3 * 4 + size // _LINE * 2
    end = start + size
    while start + _LINE <= end:
        at = _write_groups(out, at, data, start, start + _LINE)
        store_i16(out, at, _BACKSLASH | ord("n") << 8, True)
        at += 2
        start += _LINE
    whole = end - (end - start) % 3
    at = _write_groups(out, at, data, start, whole)
    return _write_last_group(out, at, data, whole, end)


@kernel
def write_base64(out: Bytes, at: int, data: Bytes, start: int, size: int) -> int:
    """Base64 of ``data[start:start + size]`` in one line, padded."""
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
    store_u8(out, at + 2, _BASE64[bits >> 6 & 63] if pos + 1 < end else np.uint8(_PADDING))
    store_u8(out, at + 3, np.uint8(_PADDING))
    return at + 4


@kernel
def write_hexadecimal(out: Bytes, at: int, data: Bytes, start: int, size: int, writing: bool) -> int:
    """Two digits a byte, in lower case."""
    if writing:
        for k in range(size):
            byte = int64(u8(data, start + k))
            store_u8(out, at + 2 * k, _HEX[byte >> 4] | 0x20)
            store_u8(out, at + 2 * k + 1, _HEX[byte & 15] | 0x20)
    return at + 2 * size


@kernel
def write_java_text(out: Bytes, at: int, data: Bytes, start: int, size: int, writing: bool) -> int:
    """``data[start:start + size]`` as Java reads UTF-8, malformed bytes as U+FFFD, and as Jackson 1 escapes it."""
    pos, end = int64(start), int64(start + size)
    while pos < end:
        if pos + 8 <= end and _is_plain(i64(data, pos, True)):
            if writing:
                store_i64(out, at, i64(data, pos, True), True)
            pos += 8
            at += 8
            continue
        step = utf8_step(data, pos, end)
        if step == 1:
            at = _write_ascii(out, at, int64(u8(data, pos)), writing)
        elif step == 4:
            at = _write_surrogates(out, at, data, pos, writing)
        elif step > 0:
            if writing:
                for k in range(step):
                    store_u8(out, at + k, u8(data, pos + k))
            at += step
        else:
            step = malformed_size(data, pos, end)
            if writing:
                store_i32(out, at, _REPLACEMENT, True)
            at += 3
        pos += step
    return at


@kernel
def _is_plain(eight: int) -> bool:
    """Whether eight characters are ASCII and none of them has to be escaped."""
    # A byte below n borrows from its high bit; so may the byte above it, which only costs the slow way.
    quote, backslash = eight ^ (_ONES * 0x22), eight ^ (_ONES * 0x5C)
    return bool((eight | (eight - _ONES * 0x20) | (quote - _ONES) | (backslash - _ONES)) & (_ONES << 7) == 0)


@kernel
def _write_ascii(out: Bytes, at: int, character: int, writing: bool) -> int:
    letter = _SHORT_ESCAPES[character]
    if letter == 1:
        return _write_escape(out, at, character, writing)
    if letter == 0:
        if writing:
            store_u8(out, at, np.uint8(character))
        return at + 1
    if writing:
        store_i16(out, at, _BACKSLASH | int64(letter) << 8, True)
    return at + 2


@kernel
def _write_surrogates(out: Bytes, at: int, data: Bytes, pos: int, writing: bool) -> int:
    """A character of four bytes as two escapes."""
    character = (
        (int64(u8(data, pos)) & 7) << 18
        | (int64(u8(data, pos + 1)) & 63) << 12
        | (int64(u8(data, pos + 2)) & 63) << 6
        | (int64(u8(data, pos + 3)) & 63)
    ) - 0x10000
    at = _write_escape(out, at, 0xD800 + (character >> 10), writing)
    return _write_escape(out, at, 0xDC00 + (character & 0x3FF), writing)


@kernel
def _write_escape(out: Bytes, at: int, unit: int, writing: bool) -> int:
    if writing:
        store_i16(out, at, _BACKSLASH | ord("u") << 8, True)
        for k in range(4):
            store_u8(out, at + 2 + k, _HEX[unit >> (12 - 4 * k) & 15])
    return at + 6


@kernel
def malformed_size(data: Bytes, pos: int, end: int) -> int:
    """How many bytes from ``pos`` on, none of which begins a character, Java replaces by one U+FFFD.

    They are the longest beginning of a character, as Unicode recommends; but to Java an encoded surrogate is the beginning of
    one, or a whole one.
    """
    lead = int64(u8(data, pos))
    if lead < 0xC2 or lead > 0xF4 or pos + 1 == end:
        return 1
    second = int64(u8(data, pos + 1))
    lowest = 0xA0 if lead == 0xE0 else (0x90 if lead == 0xF0 else 0x80)
    highest = 0x8F if lead == 0xF4 else 0xBF
    if lead < 0xE0 or second < lowest or second > highest:
        return 1
    surrogate = lead == 0xED
    if (lead < 0xF0 and not surrogate) or pos + 2 == end or u8(data, pos + 2) & 0xC0 != 0x80:
        return 2
    return 3
