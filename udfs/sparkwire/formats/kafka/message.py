"""Where the parts of one message of magic 0 or 1 lie: ``data[start:end]``, from its CRC on."""

from __future__ import annotations

from sparkwire.formats.kafka.layout import MESSAGE_0, MESSAGE_1
from sparkwire.kernels import Bytes, i8, i32, int64, kernel

NOWHERE = -1
"""a position that the bytes do not tell"""

MESSAGE_MAGIC = MESSAGE_0["magic"].offset
ATTRIBUTES = MESSAGE_0["attributes"].offset
TIMESTAMP = MESSAGE_1["timestamp"].offset
_KEY_0 = MESSAGE_0["key_size"].offset
_KEY_1 = MESSAGE_1["key_size"].offset


@kernel
def spans(data: Bytes, start: int, end: int) -> tuple[int, int, int, int]:
    """Key and value as ``(start, size, start, size)``, sizes as stored.

    A start is ``NOWHERE`` where its size is not there; a span may reach beyond ``end``. The magic is 0 or 1, its
    byte is there.
    """
    key = start + (_KEY_1 if i8(data, start + MESSAGE_MAGIC) == 1 else _KEY_0) + 4
    if key > end:
        return NOWHERE, int64(0), NOWHERE, int64(0)
    key_size = int64(i32(data, key - 4, False))
    value = key + max(key_size, 0) + 4
    if value > end:
        return key, key_size, NOWHERE, int64(0)
    return key, key_size, value, int64(i32(data, value - 4, False))


@kernel
def within(start: int, size: int, end: int) -> bool:
    """Whether a span is told and its bytes are there."""
    return start != NOWHERE and start + max(size, 0) <= end
