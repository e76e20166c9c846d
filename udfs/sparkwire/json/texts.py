"""Convert JSON values to texts and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparkwire.json import grammar
from sparkwire.json.escapes import ascii_size, write_ascii
from sparkwire.json.grammar import Kinds, character_at
from sparkwire.kernels.blocks import BLOCK, backslashes, letters_u, lowest
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bools, Bytes, Ints, copy, i64, int64, store_i32, store_u8, u8, uint64

_FFFD = int.from_bytes(b"fffd", "little")
_LAST_OF_BLOCK = uint64(1 << (BLOCK - 1))
_LOW_NIBBLES = uint64(0x0F0F0F0F0F0F0F0F)


@kernel
def measure_texts(data: Bytes, starts: Ints, sizes: Ints, kinds: Kinds, out: Ints) -> None:
    """Measure each value's text [bytes]: a string with its escapes decoded, any other value as written; -1 for NULL."""
    for i in range(kinds.size):
        if kinds[i] == grammar.ESCAPED:
            out[i] = text_size(data, starts[i], sizes[i])
        else:
            out[i] = sizes[i] if kinds[i] > grammar.NULL else -1


@kernel
def write_texts(data: Bytes, starts: Ints, sizes: Ints, kinds: Kinds, offsets: NDArray[Any], out: Bytes) -> None:
    """Write the texts that ``measure_texts`` measured."""
    for i in range(kinds.size):
        if kinds[i] == grammar.ESCAPED:
            write_text_value(out, int64(offsets[i]), data, starts[i], sizes[i])
        elif kinds[i] > grammar.NULL:
            copy(out, int64(offsets[i]), data, starts[i], sizes[i])
            if kinds[i] == grammar.OBJECT or kinds[i] == grammar.ARRAY:
                _mend(out, int64(offsets[i]), int64(offsets[i]) + sizes[i])


@kernel
def text_size(data: Bytes, start: int, size: int) -> int:
    """The size of a valid string in UTF-8, with its escapes decoded [bytes]."""
    pos, end, total = start, start + size, 0
    while pos < end:
        escape = u8(data, pos) == grammar.BACKSLASH
        character, pos = character_at(data, pos, end)
        total += _utf8_size(character) if escape else 1
    return total


@kernel
def write_text_value(out: Bytes, at: int, data: Bytes, start: int, size: int) -> int:
    """Write a valid string to ``out[at:]``, with its escapes decoded. Returns its end."""
    pos, end = start, start + size
    while pos < end:
        escape = u8(data, pos) == grammar.BACKSLASH
        character, pos = character_at(data, pos, end)
        if escape:
            at = _write_utf8(out, at, character)
        else:
            store_u8(out, at, np.uint8(character))
            at += 1
    return at


@kernel
def canonical_size(data: Bytes, start: int, size: int) -> int:
    """The size that ``write_canonical_value`` writes [bytes]."""
    pos, end, total = start, start + size, 2
    while pos < end:
        escape = u8(data, pos) == grammar.BACKSLASH
        character, pos = character_at(data, pos, end)
        if not escape:
            total += 1
        else:
            total += ascii_size(character) if character < 0x80 else _utf8_size(character)
    return total


@kernel
def write_canonical_value(out: Bytes, at: int, data: Bytes, start: int, size: int) -> int:
    """Write a valid string as JSON with quotes, and only the escapes that JSON requires. Returns its end."""
    pos, end = start, start + size
    store_u8(out, at, np.uint8(grammar.QUOTE))
    at += 1
    while pos < end:
        escape = u8(data, pos) == grammar.BACKSLASH
        character, pos = character_at(data, pos, end)
        if not escape:
            store_u8(out, at, np.uint8(character))
            at += 1
        elif character < 0x80:
            at = write_ascii(out, at, character)
        else:
            at = _write_utf8(out, at, character)
    store_u8(out, at, np.uint8(grammar.QUOTE))
    return at + 1


@kernel
def _utf8_size(character: int) -> int:
    if character < 0x80:
        return 1
    if character < 0x800:
        return 2
    return 3 if character < 0x10000 else 4


@kernel
def _write_utf8(out: Bytes, at: int, character: int) -> int:
    size = _utf8_size(character)
    lead = 0 if size == 1 else (0xF00 >> size) & 0xFF
    store_u8(out, at, np.uint8(lead | (character >> (6 * (size - 1)))))
    for k in range(1, size):
        store_u8(out, at + k, np.uint8(0x80 | ((character >> (6 * (size - 1 - k))) & 0x3F)))
    return at + size


@kernel
def measure_canonical(data: Bytes, starts: Ints, sizes: Ints, kinds: Kinds, out: Ints) -> None:
    """Measure each value as canonical JSON [bytes], which does not depend on how it was escaped. ABSENT is null."""
    for i in range(kinds.size):
        if kinds[i] == grammar.ESCAPED:
            out[i] = canonical_size(data, starts[i], sizes[i])
        elif kinds[i] == grammar.STRING:
            out[i] = sizes[i] + 2
        else:
            out[i] = sizes[i] if kinds[i] > grammar.NULL else 4


@kernel
def write_canonical(data: Bytes, starts: Ints, sizes: Ints, kinds: Kinds, offsets: NDArray[Any], out: Bytes) -> None:
    """Write the JSON that ``measure_canonical`` measured."""
    for i in range(kinds.size):
        at = int64(offsets[i])
        if kinds[i] == grammar.ESCAPED:
            write_canonical_value(out, at, data, starts[i], sizes[i])
        elif kinds[i] == grammar.STRING:
            copy(out, at, data, starts[i] - 1, sizes[i] + 2)
        elif kinds[i] > grammar.NULL:
            copy(out, at, data, starts[i], sizes[i])
        else:
            store_i32(out, at, grammar.NULL_WORD, True)


@kernel
def read_integers(data: Bytes, starts: Ints, sizes: Ints, kinds: Kinds, values: Ints, valid: Bools) -> None:
    """Read INTEGERs that fit into an int64. Any other value is 0 and not valid."""
    for i in range(kinds.size):
        values[i], valid[i] = 0, False
        if kinds[i] == grammar.INTEGER:
            values[i], valid[i] = read_integer(data, starts[i], sizes[i])


@kernel
def read_integer(data: Bytes, start: int, size: int) -> tuple[int, bool]:
    """The value of a valid INTEGER; 0 and false if it does not fit into an int64."""
    negative = u8(data, start) == grammar.MINUS
    pos, end = start + (1 if negative else 0), start + size
    if end - pos > 19:
        return int64(0), False
    value = uint64(0)
    while end - pos >= grammar.WORD:
        value = value * uint64(100_000_000) + _eight_digits(uint64(i64(data, pos, True)))
        pos += grammar.WORD
    while pos < end:  # 19 digits cannot overflow 64 bits
        value = value * uint64(10) + uint64(u8(data, pos) - grammar.ZERO)
        pos += 1
    if value > uint64(2**63 - 1) + uint64(1 if negative else 0):
        return int64(0), False
    return int64(uint64(0) - value if negative else value), True


@kernel
def _eight_digits(digits: int) -> int:
    """The value of eight digits; the first one is in the lowest byte."""
    pairs = (digits & _LOW_NIBBLES) * uint64(0x0A01) >> uint64(8) & uint64(0x00FF00FF00FF00FF)
    fours = pairs * uint64(0x00640001) >> uint64(16) & uint64(0x0000FFFF0000FFFF)
    return fours * uint64(0x0000271000000001) >> uint64(32)


@kernel
def write_objects(data: Bytes, starts: Ints, sizes: Ints, offsets: NDArray[Any], out: Bytes) -> None:
    """Copy valid objects unchanged, except for escapes that are half a surrogate pair."""
    for i in range(sizes.size):
        if sizes[i] > 0:
            copy(out, int64(offsets[i]), data, starts[i], sizes[i])
            _mend(out, int64(offsets[i]), int64(offsets[i]) + sizes[i])


@kernel
def _mend(out: Bytes, pos: int, end: int) -> None:
    """Overwrite each escape that is half a surrogate pair with that of U+FFFD, because some JSON readers reject it."""
    while pos < end:  # pos is never inside of an escape
        if pos + BLOCK <= out.size:
            escapes = backslashes(out, pos)
            if escapes & (letters_u(out, pos) >> uint64(1) | _LAST_OF_BLOCK) == 0:
                pos += BLOCK
                continue
            pos += lowest(escapes)
            if pos >= end:
                return
        if u8(out, pos) != grammar.BACKSLASH:
            pos += 1
        elif u8(out, pos + 1) != 0x75:
            pos += 2
        else:
            character, after = character_at(out, pos, end)
            if character == grammar.REPLACEMENT:
                store_i32(out, pos + 2, _FFFD, True)
            pos = after


@kernel
def join_lists(
    data: Bytes,
    starts: Ints,
    sizes: Ints,
    firsts: NDArray[Any],
    brackets: tuple[int, int],
    offsets: NDArray[Any],
    out: Bytes,
) -> None:
    """Join the spans ``firsts[i]`` to ``firsts[i + 1]`` of row ``i`` with commas, and put them in brackets."""
    for row in range(firsts.size - 1):
        at = int64(offsets[row])
        if at == offsets[row + 1]:
            continue
        store_u8(out, at, np.uint8(brackets[0]))
        at += 1
        for i in range(firsts[row], firsts[row + 1]):
            if i > firsts[row]:
                store_u8(out, at, np.uint8(grammar.COMMA))
                at += 1
            copy(out, at, data, starts[i], sizes[i])
            at += sizes[i]
        store_u8(out, at, np.uint8(brackets[1]))
        _mend(out, int64(offsets[row]), at)
