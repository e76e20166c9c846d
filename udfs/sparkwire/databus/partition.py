"""``dbus_key_partition``: the client to which Databus's key filter assigns an event, out of n clients.

The filter computes ``abs(key) % n``. For a LONG key, it uses the key itself. Any other key is text. If ``Long.parseLong`` accepts
the text (digits of any script, an optional sign, nothing else), the filter uses that number, otherwise ``String.hashCode``.

In Java, ``abs(-2^63)`` is negative, so Databus delivers an event with that key to no client. This function uses the magnitude, so
it returns a client.

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
from sparkwire.json.escapes import malformed_size
from sparkwire.kernels import Bools, Bytes, Ints, int64, kernel, u8, uint64
from sparkwire.kernels.text import magnitude, utf8_step

_BEYOND: Final = 1 << 16  # code points from here on are two surrogates in Java; none of them is a digit
_REPLACEMENT: Final = 0xFFFD
_LONG_DIGITS: Final = 19  # digits of 2^63; a number with more digits, without leading zeros, is no LONG


def key_partition(column: pa.Array[Any], n: pa.Array[Any]) -> pa.Array[Any]:
    """INT: from 0 to ``n`` - 1, NULL if the key cannot be read."""
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
    """The digit value of each character of Unicode's first plane, -1 for no digit."""
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
    """The partition of every row's key, from 0 to ``counts[row] - 1``, and whether the row has a key."""
    for row in range(partitions.size):
        valid[row] = is_long[row] or sizes[row] >= 0
        size = magnitude(longs[row])
        if not is_long[row]:
            size = _text_magnitude(data, starts[row], max(sizes[row], 0), digits)
        partitions[row] = int64(size % uint64(counts[row]))


@kernel
def _text_magnitude(data: Bytes, start: int, size: int, digits: npt.NDArray[np.int8]) -> int:
    """The absolute value of a decimal text, or of the text's hash code if it is not a number."""
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
    """Add one UTF-16 unit to ``String.hashCode``; only the lower 32 bits count."""
    return (31 * hashed + unit) & 0xFFFF_FFFF


@kernel
def _code_point(data: Bytes, pos: int, step: int) -> int:
    """The character of ``step`` bytes at ``pos``, U+FFFD if it is malformed."""
    lead = int64(u8(data, pos))
    if step < 2:
        return lead if step == 1 else _REPLACEMENT
    character = lead & (0x7F >> step)
    for k in range(1, step):
        character = character << 6 | int64(u8(data, pos + k)) & 63
    return character
