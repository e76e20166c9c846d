"""Locate key and value of one message of magic 0 or 1. The message is ``data[start:end]``, from its CRC on."""

from __future__ import annotations

from typing import NamedTuple

from sparkwire.kafka.layout import LENGTH, MESSAGE_0, MESSAGE_1
from sparkwire.kernels import Bytes, i8, i32, int64, kernel

NOWHERE = -1
"""the position of a missing field"""

MESSAGE_MAGIC = MESSAGE_0["magic"].offset
_KEY_0 = MESSAGE_0["key_size"].end
_KEY_1 = MESSAGE_1["key_size"].end


class Content(NamedTuple):
    """Positions and stored sizes of key and value. The position is ``NOWHERE`` if the size field is missing."""

    key: int
    key_size: int
    value: int
    value_size: int


@kernel
def content(data: Bytes, start: int, end: int) -> Content:
    """Locate key and value; either may extend beyond ``end``. The caller has checked that the magic exists and is 0 or 1."""
    key = start + (_KEY_1 if i8(data, start + MESSAGE_MAGIC) == 1 else _KEY_0)
    if key > end:
        return Content(int64(NOWHERE), int64(0), int64(NOWHERE), int64(0))
    key_size = int64(i32(data, key - LENGTH, False))
    value = key + max(key_size, 0) + LENGTH
    if value > end:
        return Content(key, key_size, int64(NOWHERE), int64(0))
    return Content(key, key_size, value, int64(i32(data, value - LENGTH, False)))


@kernel
def within(start: int, size: int, end: int) -> bool:
    """Whether a field has a position and all its bytes exist."""
    return start != NOWHERE and start + max(size, 0) <= end
