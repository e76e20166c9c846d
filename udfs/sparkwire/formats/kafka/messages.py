"""``kafka_crc`` … ``kafka_message``: the fields of single messages of magic 0 and 1.

A message does not say how long it is: it ends where its value does, and what follows is not part of it. Kafka takes the
length from the entry around it and has its checksum cover all of that; so where bytes follow the value and the checksum
is not right without them, it is computed with them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.column import binary_of, empty, from_codes, primitive, timestamps
from sparkwire.errors import BAD_LENGTH, BAD_MAGIC, CRC_MISMATCH, ERRORS, OK, TRUNCATED, UNKNOWN_CODEC
from sparkwire.formats.kafka.layout import (
    CODEC_MASK,
    CODECS,
    LEGACY_CODECS,
    LOG_APPEND_TIME,
    MESSAGE_0,
    NO_TIMESTAMP,
    TIMESTAMP_TYPES,
)
from sparkwire.formats.kafka.message import ATTRIBUTES, MESSAGE_MAGIC, NOWHERE, TIMESTAMP, spans, within
from sparkwire.formats.kafka.output import INT32_MAX, binary, too_much
from sparkwire.kernels import COPY_SLACK, Bytes, copy, crc32, i8, i64, int64, kernel, prefetch, u32

Bools = npt.NDArray[np.bool_]

COVERED = MESSAGE_0["crc"].end
"""where what the checksum covers begins [bytes]"""

_AHEAD = 4096  # [bytes]
_LINE = 64  # [bytes]


class Fields(NamedTuple):
    """What is found in messages, an item each."""

    crc: npt.NDArray[np.int64]
    computed: npt.NDArray[np.int64]
    checks: npt.NDArray[np.int8]
    """1 right, 0 wrong, -1 where bytes that it covers are missing"""
    magic: npt.NDArray[np.int8]
    attributes: npt.NDArray[np.int32]
    codec: npt.NDArray[np.int8]
    stamp: npt.NDArray[np.int8]
    timestamp: npt.NDArray[np.int64]
    key: npt.NDArray[np.int64]
    key_size: npt.NDArray[np.int32]
    value: npt.NDArray[np.int64]
    value_size: npt.NDArray[np.int32]
    error: npt.NDArray[np.int8]
    there: npt.NDArray[np.uint8]
    key_ends: npt.NDArray[np.int32]
    """where the keys end when they lie one behind the other; item 0 is 0"""
    value_ends: npt.NDArray[np.int32]


_DTYPES = (
    np.int64, np.int64, np.int8, np.int8, np.int32, np.int8, np.int8, np.int64,
    np.int64, np.int32, np.int64, np.int32, np.int8, np.uint8,
)  # fmt: skip

# Bits of `Fields.there`: which answers are not NULL.
_CRC, _MAGIC, _ATTRIBUTES, _TIME, _KEY_SIZE, _VALUE_SIZE, _KEY, _VALUE = (1 << bit for bit in range(8))
_EVERYTHING = 255


@kernel
def read_messages(data: Bytes, offsets: npt.NDArray[Any], out: Fields) -> int:
    """Fill ``out``; the bits of ``there`` that all rows have."""
    common = _EVERYTHING
    keys = values = int64(0)
    out.key_ends[0] = out.value_ends[0] = 0
    for row in range(offsets.size - 1):
        # Only here are the arrays of `out` at hand: handing them on costs more than the message.
        start, end = int64(offsets[row]), int64(offsets[row + 1])
        for line in range(start, end, _LINE):
            prefetch(data, line + _AHEAD)
        there, magic, attributes, codec, stamp, timestamp = _header(data, start, end)
        key, key_size, value, value_size = NOWHERE, int64(0), NOWHERE, int64(0)
        if there & _ATTRIBUTES:
            key, key_size, value, value_size = spans(data, start, end)
        there |= (_KEY_SIZE if key != NOWHERE else 0) | (_VALUE_SIZE if value != NOWHERE else 0)
        if key_size >= 0 and within(key, key_size, end):
            there |= _KEY
            keys += key_size
        if value_size >= 0 and within(value, value_size, end):
            there |= _VALUE
            values += value_size
        error, checks, crc, computed = _verdict(data, start, end, there, key, key_size, value, value_size)
        out.there[row] = there
        out.magic[row] = magic
        out.attributes[row] = attributes
        out.codec[row] = codec
        out.stamp[row] = stamp
        out.timestamp[row] = timestamp
        out.key[row] = key
        out.key_size[row] = key_size
        out.key_ends[row + 1] = keys
        out.value[row] = value
        out.value_size[row] = value_size
        out.value_ends[row + 1] = values
        out.error[row] = UNKNOWN_CODEC if error == OK and codec < 0 else error
        out.checks[row] = checks
        out.crc[row] = crc
        out.computed[row] = computed
        common &= there
    return common


@kernel
def copy_fields(data: Bytes, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int32], out: Bytes) -> None:
    """Keys or values one behind the other, where ``ends`` says."""
    for row in range(starts.size):
        size = int64(ends[row + 1]) - int64(ends[row])
        if size > 0:
            copy(out, int64(ends[row]), data, starts[row], size)


@kernel
def _header(data: Bytes, start: int, end: int) -> tuple[int, int, int, int, int, int]:
    """What is there, magic, attributes, codec, timestamp type, timestamp; nothing behind an unknown magic."""
    size = end - start
    there = _CRC if size >= COVERED else 0
    if size <= MESSAGE_MAGIC:
        return there, int64(0), int64(0), int64(-1), int64(-1), int64(NO_TIMESTAMP)
    magic = int64(i8(data, start + MESSAGE_MAGIC))
    there |= _MAGIC
    if magic < 0 or magic > 1 or size <= ATTRIBUTES:
        return there, magic, int64(0), int64(-1), int64(-1), int64(NO_TIMESTAMP)
    there |= _ATTRIBUTES
    attributes = int64(i8(data, start + ATTRIBUTES))
    codec = attributes & CODEC_MASK
    codec = codec if codec < LEGACY_CODECS else int64(-1)
    if magic == 0:
        return there, magic, attributes, codec, int64(-1), int64(NO_TIMESTAMP)
    timestamp = int64(NO_TIMESTAMP)
    if size >= TIMESTAMP + 8:
        timestamp = i64(data, start + TIMESTAMP, False)
    there |= 0 if timestamp == NO_TIMESTAMP else _TIME
    return there, magic, attributes, codec, int64(1 if attributes & LOG_APPEND_TIME else 0), timestamp


@kernel
def _verdict(
    data: Bytes, start: int, end: int, there: int, key: int, key_size: int, value: int, value_size: int
) -> tuple[int, int, int, int]:
    """Error, whether the checksum is right, the checksum as stored and as computed."""
    size = end - start
    if size < COVERED:
        return int64(TRUNCATED), int64(-1), int64(0), int64(0)
    crc = int64(u32(data, start, False))
    computed = int64(crc32(data, start + COVERED, size - COVERED))
    right = computed == crc
    if not there & _ATTRIBUTES:
        if there & _MAGIC and not 0 <= i8(data, start + MESSAGE_MAGIC) <= 1:
            return int64(BAD_MAGIC), int64(right), crc, computed
        return int64(TRUNCATED), int64(-1), crc, computed
    if not within(value, value_size, end):
        # If the checksum covers just these bytes, none is missing: a size is wrong.
        if right and key != NOWHERE:
            return int64(BAD_LENGTH), int64(1), crc, computed
        return int64(TRUNCATED), int64(-1), crc, computed
    stop = value + max(value_size, 0)
    if not right and stop < end:
        computed = int64(crc32(data, start + COVERED, stop - start - COVERED))
        right = computed == crc
    return int64(OK if right else CRC_MISMATCH), int64(right), crc, computed


class Messages:
    """The messages of a column."""

    def __init__(self, data: pa.Array) -> None:
        self.source = binary_of(data)
        rows = self.source.rows
        if self.source.offsets[rows] - self.source.offsets[0] > INT32_MAX:  # only those of a large_binary do
            raise too_much("messages")
        ends = (empty(rows + 1, np.int32) for _ in range(2))
        self._fields = Fields._make([*(empty(rows, dtype) for dtype in _DTYPES), *ends])
        self._common = read_messages(self.source.data, self.source.offsets, self._fields)

    def _there(self, bit: int) -> Bools | None:
        return None if self._common & bit else self._fields.there & bit != 0

    def _bytes(self, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int32], bit: int) -> pa.Array:
        out = empty(int(ends[-1]), np.uint8, COPY_SLACK)
        copy_fields(self.source.data, starts, ends, out)
        return binary(ends, out, self._there(bit))

    def crc(self) -> pa.Array:
        return primitive(self._fields.crc, self._there(_CRC))

    def crc_computed(self) -> pa.Array:
        return primitive(self._fields.computed, self._there(_CRC))

    def crc_valid(self) -> pa.Array:
        return primitive(self._fields.checks > 0, self._fields.checks >= 0)

    def magic(self) -> pa.Array:
        return primitive(self._fields.magic, self._there(_MAGIC))

    def attributes(self) -> pa.Array:
        return primitive(self._fields.attributes, self._there(_ATTRIBUTES))

    def compression(self) -> pa.Array:
        return from_codes(self._fields.codec, CODECS)

    def timestamp(self) -> pa.Array:
        return timestamps(self._fields.timestamp, "ms", self._there(_TIME))

    def timestamp_ms(self) -> pa.Array:
        return primitive(self._fields.timestamp, self._there(_TIME))

    def timestamp_type(self) -> pa.Array:
        return from_codes(self._fields.stamp, TIMESTAMP_TYPES)

    def key(self) -> pa.Array:
        return self._bytes(self._fields.key, self._fields.key_ends, _KEY)

    def key_size(self) -> pa.Array:
        return primitive(self._fields.key_size, self._there(_KEY_SIZE))

    def value(self) -> pa.Array:
        return self._bytes(self._fields.value, self._fields.value_ends, _VALUE)

    def value_size(self) -> pa.Array:
        return primitive(self._fields.value_size, self._there(_VALUE_SIZE))

    def error(self) -> pa.Array:
        return from_codes(self._fields.error, ERRORS)

    def is_valid(self) -> pa.Array:
        return primitive(self._fields.error == OK)
