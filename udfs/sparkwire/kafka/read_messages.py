"""Read single messages of magic 0 and 1 to columns, in one loop over the rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.base.error_codes import BAD_LENGTH, BAD_MAGIC, CRC_MISMATCH, OK, TRUNCATED, UNKNOWN_CODEC
from sparkwire.kafka.codecs import READABLE
from sparkwire.kafka.layout import (
    CODEC_MASK,
    LENGTH,
    LOG_APPEND_TIME,
    MESSAGE_0,
    MESSAGE_1,
    NO_TIMESTAMP,
)
from sparkwire.kernels import Bytes, copy, crc32, field_reader, i8, i32, int64, kernel, prefetch, variant_of

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


COVERED = MESSAGE_0["crc"].end
"""start of the range of the checksum [bytes]"""

_AHEAD = 4096  # [bytes]
_LINE = 64  # [bytes]

# The layouts of messages, by magic; the last is for an unknown magic.
MAGIC_0, MAGIC_1, UNKNOWN = range(3)


class MessageFields(NamedTuple):
    """The fields of messages, with an item for each message; 0 if a message lacks the field or its bytes."""

    crc: npt.NDArray[np.int64]
    magic: npt.NDArray[np.int8]
    attributes: npt.NDArray[np.int32]
    timestamp: npt.NDArray[np.int64]


class MessageContents(NamedTuple):
    """Results from the fields and from the bytes after them, with an item for each message."""

    present: npt.NDArray[np.uint8]
    """bits of the fields that are not NULL"""
    codec: npt.NDArray[np.int8]
    timestamp_type: npt.NDArray[np.int8]
    computed: npt.NDArray[np.int64]
    crc_ok: npt.NDArray[np.int8]
    """1 right, 0 wrong, -1 if bytes of its range are missing"""
    error: npt.NDArray[np.int8]
    key: npt.NDArray[np.int64]
    key_size: npt.NDArray[np.int32]
    key_ends: npt.NDArray[np.int32]
    """ends of the concatenated keys; item 0 is 0"""
    value: npt.NDArray[np.int64]
    value_size: npt.NDArray[np.int32]
    value_ends: npt.NDArray[np.int32]


# Bits of `MessageContents.present`.
HAS_CRC, HAS_MAGIC, HAS_ATTRIBUTES, HAS_TIME, HAS_KEY_SIZE, HAS_VALUE_SIZE, HAS_KEY, HAS_VALUE = (
    1 << bit for bit in range(8)
)
EVERYTHING = 255

_ATTRIBUTES_END = MESSAGE_0["attributes"].end
_TIMESTAMP_END = MESSAGE_1["timestamp"].end


_KNOWN_FIELDS = (variant_of(table, MessageFields._fields) for table in (MESSAGE_0, MESSAGE_1))
# For an unknown magic, only the magic and the fields before it can be read.
_UNKNOWN_FIELDS = variant_of(MESSAGE_0, [name if name in ("crc", "magic") else "" for name in MessageFields._fields])
_read_fields = field_reader([*_KNOWN_FIELDS, _UNKNOWN_FIELDS])


class Verdict(NamedTuple):
    """The error of a message, whether its checksum is right (1, 0, -1), and the computed checksum."""

    error: int
    crc_ok: int
    computed: int


@kernel
def read_messages(data: Bytes, offsets: npt.NDArray[Any], fields: MessageFields, out: MessageContents) -> int:
    """Fill ``fields`` and ``out``. Return the bits of ``present`` that all rows have."""
    common = EVERYTHING
    keys = values = int64(0)
    out.key_ends[0] = out.value_ends[0] = 0
    for row in range(offsets.size - 1):
        # This kernel does not pass the arrays to another one: that would cost more than the message.
        start, end = int64(offsets[row]), int64(offsets[row + 1])
        for line in range(start, end, _LINE):
            prefetch(data, line + _AHEAD)
        size = end - start
        variant = _variant(data, start, size)
        _read_fields(data, start, size, variant, fields, row)
        known = variant != UNKNOWN and size >= _ATTRIBUTES_END
        message = content(data, start, end) if known else Content(NOWHERE, int64(0), NOWHERE, int64(0))
        verdict = _verdict(data, start, end, variant, fields.crc[row], message)
        attributes = fields.attributes[row]
        codec = attributes & CODEC_MASK
        if not known or not READABLE[variant] >> codec & 1:
            codec = int64(-1)
        present = _present(size, variant, fields.timestamp[row], message, end)
        if present & HAS_KEY:
            keys += message.key_size
        if present & HAS_VALUE:
            values += message.value_size
        out.present[row] = present
        out.codec[row] = codec
        out.timestamp_type[row] = (1 if attributes & LOG_APPEND_TIME else 0) if known and variant == MAGIC_1 else -1
        out.key[row] = message.key
        out.key_size[row] = message.key_size
        out.key_ends[row + 1] = keys
        out.value[row] = message.value
        out.value_size[row] = message.value_size
        out.value_ends[row + 1] = values
        out.error[row] = UNKNOWN_CODEC if verdict.error == OK and codec < 0 else verdict.error
        out.crc_ok[row] = verdict.crc_ok
        out.computed[row] = verdict.computed
        common &= present
    return common


@kernel
def _variant(data: Bytes, start: int, size: int) -> int:
    if size <= MESSAGE_MAGIC:
        return int64(UNKNOWN)
    magic = int64(i8(data, start + MESSAGE_MAGIC))
    return magic if 0 <= magic <= 1 else int64(UNKNOWN)


@kernel
def _present(size: int, variant: int, timestamp: int, message: Content, end: int) -> int:
    """The bits of the fields that are not NULL."""
    present = (HAS_CRC if size >= COVERED else 0) | (HAS_MAGIC if size > MESSAGE_MAGIC else 0)
    if variant != UNKNOWN and size >= _ATTRIBUTES_END:
        present |= HAS_ATTRIBUTES
    if variant == MAGIC_1 and size >= _TIMESTAMP_END and timestamp != NO_TIMESTAMP:
        present |= HAS_TIME
    present |= (HAS_KEY_SIZE if message.key != NOWHERE else 0) | (HAS_VALUE_SIZE if message.value != NOWHERE else 0)
    present |= HAS_KEY if message.key_size >= 0 and within(message.key, message.key_size, end) else 0
    present |= HAS_VALUE if message.value_size >= 0 and within(message.value, message.value_size, end) else 0
    return present


@kernel
def copy_fields(data: Bytes, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int32], out: Bytes) -> None:
    """Copy keys or values, concatenated; they end at ``ends``."""
    for row in range(starts.size):
        size = int64(ends[row + 1]) - int64(ends[row])
        if size > 0:
            copy(out, int64(ends[row]), data, starts[row], size)


@kernel
def _verdict(data: Bytes, start: int, end: int, variant: int, crc: int, message: Content) -> Verdict:
    """Check a message. Its checksum covers the message, or all bytes if the end of the message is missing."""
    size = end - start
    if size < COVERED:
        return Verdict(int64(TRUNCATED), int64(-1), int64(0))
    computed = int64(crc32(data, start + COVERED, size - COVERED))
    crc_ok = computed == crc
    if variant == UNKNOWN and size > MESSAGE_MAGIC:
        return Verdict(int64(BAD_MAGIC), int64(crc_ok), computed)
    if not within(message.value, message.value_size, end):
        # If the checksum of these bytes is right, no byte is missing, so a size is wrong.
        if crc_ok and message.key != NOWHERE:
            return Verdict(int64(BAD_LENGTH), int64(1), computed)
        return Verdict(int64(TRUNCATED), int64(-1), computed)
    last = message.value + max(message.value_size, 0)
    if not crc_ok and last < end:
        computed = int64(crc32(data, start + COVERED, last - start - COVERED))
        crc_ok = computed == crc
    return Verdict(int64(OK if crc_ok else CRC_MISMATCH), int64(crc_ok), computed)
