"""``dbus_key_partition``: which of n clients Databus's key filter gives an event to.

The filter takes ``abs(key) % n``. A LONG is its own number. Any other key is text: a decimal number is that number, as
``Long.parseLong`` reads it (digits of any script, a sign, nothing around them), and other text is its ``String.hashCode``.

Java's ``abs(-2^63)`` is negative, and an event with that key reaches no client of Databus; here the magnitude counts,
and it reaches one.

Source: `com.linkedin.databus2.core.filter.KeyModFilter` of linkedin/databus.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import argument_error
from sparkwire.core.column import empty, primitive
from sparkwire.databus.scan import Events
from sparkwire.kernels import Bools, Bytes, Ints, int64, kernel, u8, uint64
from sparkwire.kernels.json_text import malformed_size
from sparkwire.kernels.text import magnitude, utf8_step

_BEYOND: Final = 1 << 16  # code points that Java writes as two surrogates, of which none is a digit
_REPLACEMENT: Final = 0xFFFD
_LONG_DIGITS: Final = 19  # of 2^63; a number of more digits, zeros in front left out, is no LONG


def key_partition(column: pa.Array[Any], n: pa.Array[Any]) -> pa.Array[Any]:
    """INT: from 0 to ``n`` - 1, NULL where the key cannot be read."""
    counts = np.asarray(n.fill_null(1)).astype(np.int64)
    if len(counts) and counts.min() < 1:
        raise argument_error("dbus_key_partition", "n of at least 1", counts.min())
    events = Events(column)
    (starts, sizes), longs = events.keys, events.header.fields["key_long"]
    partitions, valid = empty(events.rows, np.int32), empty(events.rows, np.bool_)
    find_partitions(events.data, starts, sizes, longs, events.long_keys, counts, _digits(), partitions, valid)
    return primitive(partitions, valid)


@functools.cache
def _digits() -> npt.NDArray[np.int8]:
    """What a character of Unicode's first plane is worth as a digit, -1 for none."""
    return np.array([unicodedata.decimal(chr(c), -1) for c in range(_BEYOND)], np.int8)


@kernel
def find_partitions(
    data: Bytes,
    starts: Ints,
    sizes: Ints,
    longs: Ints,
    is_long: Bools,
    counts: Ints,
    digits: npt.NDArray[np.int8],
    partitions: npt.NDArray[np.int32],
    valid: Bools,
) -> None:
    """The partition of every row's key out of ``counts[row]``, and whether it has a key."""
    for row in range(partitions.size):
        valid[row] = is_long[row] or sizes[row] >= 0
        size = magnitude(longs[row])
        if not is_long[row]:
            size = _text_magnitude(data, starts[row], max(sizes[row], 0), digits)
        partitions[row] = int64(size % uint64(counts[row]))


@kernel
def _text_magnitude(data: Bytes, start: int, size: int, digits: npt.NDArray[np.int8]) -> int:
    """The absolute value of the number that a text says, of its hash where it says none."""
    pos, end = int64(start), int64(start + size)
    hashed, number, count = int64(0), uint64(0), int64(0)
    signed, negative, is_number = False, False, True
    while pos < end:
        step = utf8_step(data, pos, end)
        character = _code_point(data, pos, step)
        if character >= _BEYOND:
            character -= _BEYOND
            hashed = _hash(_hash(hashed, 0xD800 + (character >> 10)), 0xDC00 + (character & 0x3FF))
            is_number = False
        else:
            hashed = _hash(hashed, character)
            digit = int64(digits[character])
            if pos == start and (character == ord("-") or character == ord("+")):
                signed, negative = True, character == ord("-")
            elif digit < 0 or count == _LONG_DIGITS:
                is_number = False
            else:
                number = number * uint64(10) + uint64(digit)
                count += number != uint64(0)
        pos += step if step > 0 else malformed_size(data, pos, end)
    is_number = is_number and end - start > signed
    if is_number and number <= uint64(0x7FFF_FFFF_FFFF_FFFF) + uint64(negative):
        return number
    return magnitude(int64(np.int32(hashed)))


@kernel
def _hash(hashed: int, unit: int) -> int:
    """``String.hashCode``, one UTF-16 unit on; its lower 32 bits count."""
    return (31 * hashed + unit) & 0xFFFF_FFFF


@kernel
def _code_point(data: Bytes, pos: int, step: int) -> int:
    """The character of ``step`` bytes at ``pos``, U+FFFD for a malformed one."""
    lead = int64(u8(data, pos))
    if step < 2:
        return lead if step == 1 else _REPLACEMENT
    character = lead & (0x7F >> step)
    for k in range(1, step):
        character = character << 6 | int64(u8(data, pos + k)) & 63
    return character
