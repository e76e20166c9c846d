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

from sparkwire.column import binary_of, empty, gather, primitive, timestamps, words
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
from sparkwire.kernels import Bytes, crc32, i8, i64, int64, kernel, prefetch, u32

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
    key_bytes: npt.NDArray[np.int64]
    """what there is to copy, negative for nothing [bytes]"""
    value: npt.NDArray[np.int64]
    value_size: npt.NDArray[np.int32]
    value_bytes: npt.NDArray[np.int64]
    error: npt.NDArray[np.int8]
    there: npt.NDArray[np.uint8]


_DTYPES = (
    np.int64, np.int64, np.int8, np.int8, np.int32, np.int8, np.int8, np.int64,
    np.int64, np.int32, np.int64, np.int64, np.int32, np.int64, np.int8, np.uint8,
)  # fmt: skip

# Bits of `Fields.there`: which answers are not NULL.
_CRC, _MAGIC, _ATTRIBUTES, _TIME, _KEY_SIZE, _VALUE_SIZE = (1 << bit for bit in range(6))
_EVERYTHING = 63


@kernel
def read_messages(data: Bytes, offsets: npt.NDArray[Any], out: Fields) -> int:
    """Fill ``out``; the bits of ``there`` that all rows have."""
    common = _EVERYTHING
    for row in range(offsets.size - 1):
        start, end = int64(offsets[row]), int64(offsets[row + 1])
        for line in range(start, end, _LINE):
            prefetch(data, line + _AHEAD)
        _read(data, start, end, row, out)
        common &= out.there[row]
    return common


@kernel
def _read(data: Bytes, start: int, end: int, row: int, out: Fields) -> None:
    size = end - start
    out.crc[row] = u32(data, start, False) if size >= COVERED else 0
    out.computed[row] = crc32(data, start + COVERED, size - COVERED) if size > COVERED else 0
    out.checks[row] = -1
    out.magic[row] = 0
    out.attributes[row] = 0
    out.codec[row] = out.stamp[row] = -1
    out.timestamp[row] = NO_TIMESTAMP
    out.key[row] = out.value[row] = start
    out.key_size[row] = out.value_size[row] = 0
    out.key_bytes[row] = out.value_bytes[row] = -1
    out.there[row] = _CRC if size >= COVERED else 0
    out.error[row] = TRUNCATED
    if size <= MESSAGE_MAGIC:
        return
    magic = i8(data, start + MESSAGE_MAGIC)
    out.magic[row] = magic
    out.there[row] |= _MAGIC
    if magic < 0 or magic > 1:
        out.error[row] = BAD_MAGIC
        out.checks[row] = out.computed[row] == out.crc[row]
    elif size > ATTRIBUTES:
        out.error[row] = _read_known(data, start, end, row, out)


@kernel
def _read_known(data: Bytes, start: int, end: int, row: int, out: Fields) -> int:
    attributes = int64(i8(data, start + ATTRIBUTES))
    codec = attributes & CODEC_MASK
    out.attributes[row] = attributes
    out.codec[row] = codec if codec < LEGACY_CODECS else -1
    there = _ATTRIBUTES
    if out.magic[row] == 1:
        out.stamp[row] = 1 if attributes & LOG_APPEND_TIME else 0
        if end - start >= TIMESTAMP + 8:
            out.timestamp[row] = i64(data, start + TIMESTAMP, False)
            there |= 0 if out.timestamp[row] == NO_TIMESTAMP else _TIME
    key, key_size, value, value_size = spans(data, start, end)
    if key != NOWHERE:
        there |= _KEY_SIZE
        out.key_size[row] = key_size
        if within(key, key_size, end):
            out.key[row] = key
            out.key_bytes[row] = key_size
    if value != NOWHERE:
        there |= _VALUE_SIZE
        out.value_size[row] = value_size
        if within(value, value_size, end):
            out.value[row] = value
            out.value_bytes[row] = value_size
    out.there[row] |= there
    return _verdict(data, start, end, key, value, value + max(value_size, 0), row, out)


@kernel
def _verdict(data: Bytes, start: int, end: int, key: int, value: int, stop: int, row: int, out: Fields) -> int:
    """The error of a message, and its checksum."""
    right = out.computed[row] == out.crc[row]
    if value == NOWHERE or stop > end:
        # If the checksum covers just these bytes, none is missing: a size is wrong.
        cut = not right or key == NOWHERE
        out.checks[row] = -1 if cut else 1
        return TRUNCATED if cut else BAD_LENGTH
    if not right and stop < end:
        out.computed[row] = crc32(data, start + COVERED, stop - start - COVERED)
        right = out.computed[row] == out.crc[row]
    out.checks[row] = right
    if not right:
        return CRC_MISMATCH
    return UNKNOWN_CODEC if out.codec[row] < 0 else OK


class Messages:
    """The messages of a column."""

    def __init__(self, data: pa.Array) -> None:
        self.source = binary_of(data)
        self._fields = Fields._make(empty(self.source.rows, dtype) for dtype in _DTYPES)
        self._common = read_messages(self.source.data, self.source.offsets, self._fields)

    def _there(self, bit: int) -> Bools | None:
        return None if self._common & bit else self._fields.there & bit != 0

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
        return words(self._fields.codec, CODECS)

    def timestamp(self) -> pa.Array:
        return timestamps(self._fields.timestamp, "ms", self._there(_TIME))

    def timestamp_ms(self) -> pa.Array:
        return primitive(self._fields.timestamp, self._there(_TIME))

    def timestamp_type(self) -> pa.Array:
        return words(self._fields.stamp, TIMESTAMP_TYPES)

    def key(self) -> pa.Array:
        return gather(self.source.data, self._fields.key, self._fields.key_bytes, pa.binary())

    def key_size(self) -> pa.Array:
        return primitive(self._fields.key_size, self._there(_KEY_SIZE))

    def value(self) -> pa.Array:
        return gather(self.source.data, self._fields.value, self._fields.value_bytes, pa.binary())

    def value_size(self) -> pa.Array:
        return primitive(self._fields.value_size, self._there(_VALUE_SIZE))

    def error(self) -> pa.Array:
        return words(self._fields.error, ERRORS)

    def is_valid(self) -> pa.Array:
        return primitive(self._fields.error == OK)
