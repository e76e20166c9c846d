"""Where the content of one message of magic 0 or 1 is: ``data[start:end]``, from its CRC on."""

from __future__ import annotations

from typing import NamedTuple

from sparkwire.kafka.layout import LENGTH, MESSAGE_0, MESSAGE_1
from sparkwire.kernels import Bytes, i8, i32, int64, kernel

NOWHERE = -1
"""a position that the bytes do not have"""

MESSAGE_MAGIC = MESSAGE_0["magic"].offset
_KEY_0 = MESSAGE_0["key_size"].end
_KEY_1 = MESSAGE_1["key_size"].end


class Content(NamedTuple):
    """Where key and value begin, ``NOWHERE`` where the size before is missing, and their sizes as stored."""

    key: int
    key_size: int
    value: int
    value_size: int


@kernel
def content(data: Bytes, start: int, end: int) -> Content:
    """Key and value; either may reach beyond ``end``. The magic is 0 or 1, its byte is there."""
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
    """Whether a field begins somewhere and its bytes are there."""
    return start != NOWHERE and start + max(size, 0) <= end
