"""Write the contents of JSON strings as Jackson 1 does.

Each function writes to ``out[at:]`` and returns the position after it. If ``writing`` is false, it only measures, so that size
and text come from the same code. It may write up to eight extra bytes to ``out``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, i64, int64, store_i16, store_i32, store_i64, store_u8, u8
from sparkwire.kernels.text import utf8_step

_REPLACEMENT = 0xBDBFEF  # U+FFFD in UTF-8, little-endian
_HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_BACKSLASH = 0x5C
_ONES = int64(0x0101010101010101)


def _short_escapes() -> NDArray[np.uint8]:
    """The letter after the backslash for each ASCII character; 1 for a control character with a long escape, else 0."""
    letters = np.zeros(128, np.uint8)
    letters[:0x20] = 1
    for character, letter in zip(b'\b\t\n\f\r"\\', b'btnfr"\\', strict=True):
        letters[character] = letter
    return letters


_SHORT_ESCAPES = _short_escapes()


@kernel
def write_java_text(out: Bytes, at: int, data: Bytes, start: int, size: int, writing: bool) -> int:
    """Write UTF-8 as Jackson 1 escapes it. Malformed bytes become U+FFFD, as in Java."""
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
            character = int64(u8(data, pos))
            at = write_ascii(out, at, character) if writing else at + ascii_size(character)
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
    """Whether eight characters are all ASCII and need no escape."""
    # A byte below n borrows from its high bit. The byte above may also borrow, which only selects the slow path.
    quote, backslash = eight ^ (_ONES * 0x22), eight ^ (_ONES * 0x5C)
    return bool((eight | (eight - _ONES * 0x20) | (quote - _ONES) | (backslash - _ONES)) & (_ONES << 7) == 0)


@kernel
def ascii_size(character: int) -> int:
    """The size of an ASCII character in a JSON string [bytes]."""
    letter = _SHORT_ESCAPES[character]
    return 6 if letter == 1 else 2 if letter else 1


@kernel
def write_ascii(out: Bytes, at: int, character: int) -> int:
    """Write an ASCII character, escaped if necessary. Returns the position after it."""
    letter = _SHORT_ESCAPES[character]
    if letter == 1:
        return _write_escape(out, at, character, True)
    if letter == 0:
        store_u8(out, at, np.uint8(character))
        return at + 1
    store_i16(out, at, _BACKSLASH | int64(letter) << 8, True)
    return at + 2


@kernel
def _write_surrogates(out: Bytes, at: int, data: Bytes, pos: int, writing: bool) -> int:
    """Write a four-byte character as two escapes."""
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
    """The number of malformed bytes at ``pos`` that Java replaces by one U+FFFD.

    They are the longest prefix of a character, as Unicode recommends. For Java, an encoded surrogate is such a prefix or a
    complete character.
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
