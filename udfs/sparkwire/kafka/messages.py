"""``kafka_crc`` … ``kafka_message``: the fields of single messages of magic 0 and 1, and the reader of every message.

A message has no length: it ends with its value, and bytes after the value are not part of it. Kafka uses the length of the
enclosing entry, and its checksum covers that whole length. So if bytes follow the value, and the checksum is wrong without them,
the checksum includes them.

`read_message` reads every message, also those of a log. A caller uses the fields that it needs; the compiler removes the others.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import BAD_LENGTH, BAD_MAGIC, CRC_MISMATCH, ERRORS, OK, TRUNCATED, UNKNOWN_CODEC
from sparkwire.core.builders import ColumnTable
from sparkwire.core.column import Binary, arrays, binary_of, checked_total, empty, from_codes, primitive, timestamps
from sparkwire.kafka.codecs import NAMES, READABLE
from sparkwire.kafka.layout import (
    CODEC_MASK,
    ENTRY,
    LEAST_SIZE,
    LENGTH,
    LOG_APPEND_TIME,
    MESSAGE_0,
    MESSAGE_1,
    NO_TIMESTAMP,
    OVERHEAD,
    TIMESTAMP_TYPES,
)
from sparkwire.kafka.record_columns import HAS_KEY, HAS_TIME, HAS_VALUE, binary
from sparkwire.kernels import COPY_SLACK, Bools, Bytes, Ints, copy, crc32, i8, i32, i64, int64, kernel, prefetch, u32

NOWHERE = -1
"""the position of missing bytes"""

COVERED = MESSAGE_0["crc"].end
"""start of the range of the checksum [bytes]"""
_SIZE = ENTRY["size"].offset
_CRC = MESSAGE_0["crc"].offset
_MAGIC = MESSAGE_0["magic"].offset
_ATTRIBUTES, _ATTRIBUTES_END = MESSAGE_0["attributes"].offset, MESSAGE_0["attributes"].end
_TIMESTAMP, _TIMESTAMP_END = MESSAGE_1["timestamp"].offset, MESSAGE_1["timestamp"].end
_KEY_0, _KEY_1 = MESSAGE_0["key_size"].end, MESSAGE_1["key_size"].end

_AHEAD = 4096  # [bytes]
_LINE = 64  # [bytes]

# Bits of `ReadMessage.present`: the fields that are not NULL, beside HAS_TIME, HAS_KEY and HAS_VALUE.
HAS_CRC, HAS_MAGIC, HAS_ATTRIBUTES, HAS_KEY_SIZE, HAS_VALUE_SIZE = (1 << bit for bit in range(3, 8))
EVERYTHING = 255


class ReadMessage(NamedTuple):
    """A message of magic 0 or 1. A field that is missing is 0, and a position ``NOWHERE``."""

    present: int
    """bits of the fields that are not NULL"""
    crc: int
    magic: int
    """as stored: the fields after any other magic are missing"""
    attributes: int
    timestamp: int
    """[ms since epoch]; ``NO_TIMESTAMP`` if it is missing"""
    key: int
    key_size: int
    """as stored, negative for null [bytes]"""
    value: int
    value_size: int
    end: int
    """end of the value, ``NOWHERE`` if it is beyond the bytes"""


@kernel
def read_message(data: Bytes, start: int, stop: int) -> ReadMessage:
    """Read the message in ``data[start:stop]``, as far as its bytes exist."""
    size = stop - start
    present = crc = magic = attributes = key_size = value_size = int64(0)
    timestamp = int64(NO_TIMESTAMP)
    key = value = end = int64(NOWHERE)
    if size >= COVERED:
        present |= HAS_CRC
        crc = int64(u32(data, start + _CRC, False))
    if size > _MAGIC:
        present |= HAS_MAGIC
        magic = int64(i8(data, start + _MAGIC))
    if size >= _ATTRIBUTES_END and 0 <= magic <= 1:
        present |= HAS_ATTRIBUTES
        attributes = int64(i8(data, start + _ATTRIBUTES))
        if magic == 1 and size >= _TIMESTAMP_END:
            timestamp = i64(data, start + _TIMESTAMP, False)
            present |= HAS_TIME if timestamp != NO_TIMESTAMP else 0
        pos = start + (_KEY_1 if magic == 1 else _KEY_0)
        if pos <= stop:
            key, key_size = pos, int64(i32(data, pos - LENGTH, False))
            pos += max(key_size, 0)
            present |= HAS_KEY_SIZE | (HAS_KEY if key_size >= 0 and pos <= stop else 0)
            pos += LENGTH
            if pos <= stop:
                value, value_size = pos, int64(i32(data, pos - LENGTH, False))
                pos += max(value_size, 0)
                present |= HAS_VALUE_SIZE | (HAS_VALUE if value_size >= 0 and pos <= stop else 0)
                end = pos if pos <= stop else end
    return ReadMessage(present, crc, magic, attributes, timestamp, key, key_size, value, value_size, end)


@kernel
def walk_set(data: Bytes, pos: int, end: int) -> tuple[int, int, int]:
    """Number of the messages of a decompressed set, with an incomplete last one; offset and end of the last complete message."""
    count = last = int64(0)
    while end - pos >= OVERHEAD + LEAST_SIZE:
        size = int64(i32(data, pos + _SIZE, False))
        if size < LEAST_SIZE:
            break
        count += 1
        if size > end - pos - OVERHEAD:
            break
        last = i64(data, pos, False)
        pos += OVERHEAD + size
    return count, last, pos


class MessageFields(NamedTuple):
    """The fields of single messages, and what follows from them, with an item for each message."""

    present: npt.NDArray[np.uint8]
    """bits of the fields that are not NULL"""
    crc: Ints
    magic: npt.NDArray[np.int8]
    attributes: npt.NDArray[np.int32]
    codec: npt.NDArray[np.int8]
    timestamp: Ints
    timestamp_type: npt.NDArray[np.int8]
    computed: Ints
    crc_ok: npt.NDArray[np.int8]
    """1 right, 0 wrong, -1 if bytes of its range are missing"""
    error: npt.NDArray[np.int8]
    key: Ints
    key_size: npt.NDArray[np.int32]
    key_ends: npt.NDArray[np.int32]
    """ends of the concatenated keys; item 0 is 0"""
    value: Ints
    value_size: npt.NDArray[np.int32]
    value_ends: npt.NDArray[np.int32]


class Verdict(NamedTuple):
    """The error of a message, whether its checksum is right (1, 0, -1), and the computed checksum."""

    error: int
    crc_ok: int
    computed: int


@kernel
def read_messages(data: Bytes, offsets: npt.NDArray[Any], out: MessageFields) -> int:
    """Read a message from each row. Return the bits of ``present`` that all rows have."""
    common = EVERYTHING
    keys = values = int64(0)
    out.key_ends[0] = out.value_ends[0] = 0
    for row in range(offsets.size - 1):
        # This kernel does not pass the arrays to another one: that would cost more than the message.
        start, stop = int64(offsets[row]), int64(offsets[row + 1])
        for line in range(start, stop, _LINE):
            prefetch(data, line + _AHEAD)
        message = read_message(data, start, stop)
        verdict = _verdict(data, start, stop, message)
        has_attributes = message.present & HAS_ATTRIBUTES != 0
        codec = message.attributes & CODEC_MASK
        if not has_attributes or not READABLE[message.magic] >> codec & 1:
            codec = int64(-1)
        late = 1 if message.attributes & LOG_APPEND_TIME else 0
        if message.present & HAS_KEY:
            keys += message.key_size
        if message.present & HAS_VALUE:
            values += message.value_size
        out.present[row] = message.present
        out.crc[row] = message.crc
        out.magic[row] = message.magic
        out.attributes[row] = message.attributes
        out.codec[row] = codec
        out.timestamp[row] = message.timestamp
        out.timestamp_type[row] = late if has_attributes and message.magic == 1 else -1
        out.key[row] = message.key
        out.key_size[row] = message.key_size
        out.key_ends[row + 1] = keys
        out.value[row] = message.value
        out.value_size[row] = message.value_size
        out.value_ends[row + 1] = values
        out.error[row] = UNKNOWN_CODEC if verdict.error == OK and codec < 0 else verdict.error
        out.crc_ok[row] = verdict.crc_ok
        out.computed[row] = verdict.computed
        common &= message.present
    return common


@kernel
def _verdict(data: Bytes, start: int, stop: int, message: ReadMessage) -> Verdict:
    """Check a message. Its checksum covers the message, or all bytes if the end of the message is missing."""
    size = stop - start
    if size < COVERED:
        return Verdict(int64(TRUNCATED), int64(-1), int64(0))
    computed = int64(crc32(data, start + COVERED, size - COVERED))
    crc_ok = computed == message.crc
    if message.magic < 0 or message.magic > 1:
        return Verdict(int64(BAD_MAGIC), int64(crc_ok), computed)
    if message.end == NOWHERE:
        # If the checksum of these bytes is right, no byte is missing, so a size is wrong.
        if crc_ok and message.key != NOWHERE:
            return Verdict(int64(BAD_LENGTH), int64(1), computed)
        return Verdict(int64(TRUNCATED), int64(-1), computed)
    if not crc_ok and message.end < stop:
        computed = int64(crc32(data, start + COVERED, message.end - start - COVERED))
        crc_ok = computed == message.crc
    return Verdict(int64(OK if crc_ok else CRC_MISMATCH), int64(crc_ok), computed)


@kernel
def copy_fields(data: Bytes, starts: Ints, ends: npt.NDArray[np.int32], out: Bytes) -> None:
    """Copy keys or values, concatenated; they end at ``ends``."""
    for row in range(starts.size):
        size = int64(ends[row + 1]) - int64(ends[row])
        if size > 0:
            copy(out, int64(ends[row]), data, starts[row], size)


MESSAGE_COLUMNS: Final = ColumnTable["MessageColumn"]()
"""the fields of a message: the columns of ``kafka_message``"""


class MessageColumn:
    """The scan of a column of messages."""

    def __init__(self, data: pa.Array) -> None:
        self.source: Binary = binary_of(data)
        rows = self.source.rows
        checked_total(
            int(self.source.offsets[rows] - self.source.offsets[0])
        )  # only a large_binary may exceed the limit
        ends = {name: empty(rows + 1, np.int32) for name in ("key_ends", "value_ends")}
        self._fields = arrays(MessageFields, rows)._replace(**ends)
        self._common = read_messages(self.source.data, self.source.offsets, self._fields)

    def _present(self, bit: int) -> Bools | None:
        return None if self._common & bit else self._fields.present & bit != 0

    def _bytes(self, starts: Ints, ends: npt.NDArray[np.int32], bit: int) -> pa.Array:
        out = empty(int(ends[-1]), np.uint8, COPY_SLACK)
        copy_fields(self.source.data, starts, ends, out)
        return binary(ends, out, self._present(bit))

    @MESSAGE_COLUMNS.column("BIGINT", "kafka_crc(message) -> 3925109172")
    def crc(self) -> pa.Array:
        """The message's CRC-32, as stored."""
        return primitive(self._fields.crc, self._present(HAS_CRC))

    @MESSAGE_COLUMNS.column("BIGINT", "kafka_crc_computed(message) = kafka_crc(message) -> true")
    def crc_computed(self) -> pa.Array:
        """The CRC-32, computed over the bytes that exist."""
        return primitive(self._fields.computed, self._present(HAS_CRC))

    @MESSAGE_COLUMNS.column("BOOLEAN", "kafka_crc_valid(message) -> true")
    def crc_valid(self) -> pa.Array:
        """Whether the stored and the computed CRC-32 are equal; NULL if bytes are missing."""
        return primitive(self._fields.crc_ok > 0, self._fields.crc_ok >= 0)

    @MESSAGE_COLUMNS.column("TINYINT", "kafka_magic(message) -> 1")
    def magic(self) -> pa.Array:
        """Version of the format: 0 or 1. Any other value is returned unchanged."""
        return primitive(self._fields.magic, self._present(HAS_MAGIC))

    @MESSAGE_COLUMNS.column("INT", "kafka_attributes(message) -> 0")
    def attributes(self) -> pa.Array:
        """The attribute bits: 0-2 codec, 3 timestamp type."""
        return primitive(self._fields.attributes, self._present(HAS_ATTRIBUTES))

    @MESSAGE_COLUMNS.column("STRING", "kafka_compression(message) -> none")
    def compression(self) -> pa.Array:
        """Codec of the message set in the value: none, gzip, snappy, lz4; NULL for an unknown codec."""
        return from_codes(self._fields.codec, NAMES)

    @MESSAGE_COLUMNS.column("TIMESTAMP", "kafka_timestamp(message) -> 2020-09-13 12:26:40.351")
    def timestamp(self) -> pa.Array:
        """Creation or append time of the message; NULL for magic 0 and for -1."""
        return timestamps(self._fields.timestamp, "ms", self._present(HAS_TIME))

    @MESSAGE_COLUMNS.column("BIGINT", "kafka_timestamp_ms(message) -> 1600000000351")
    def timestamp_ms(self) -> pa.Array:
        """Creation or append time of the message, as stored [ms since epoch]; NULL for magic 0 and for -1."""
        return primitive(self._fields.timestamp, self._present(HAS_TIME))

    @MESSAGE_COLUMNS.column("STRING", "kafka_timestamp_type(message) -> CreateTime")
    def timestamp_type(self) -> pa.Array:
        """CreateTime or LogAppendTime; NULL for magic 0."""
        return from_codes(self._fields.timestamp_type, TIMESTAMP_TYPES)

    @MESSAGE_COLUMNS.column("BINARY", "CAST(kafka_key(message) AS STRING) -> key-00043")
    def key(self) -> pa.Array:
        """The key; NULL for a null key."""
        return self._bytes(self._fields.key, self._fields.key_ends, HAS_KEY)

    @MESSAGE_COLUMNS.column("INT", "kafka_key_size(message) -> 9")
    def key_size(self) -> pa.Array:
        """The key's size as stored, -1 for null [bytes]."""
        return primitive(self._fields.key_size, self._present(HAS_KEY_SIZE))

    @MESSAGE_COLUMNS.column("BINARY", "get_json_object(CAST(kafka_value(message) AS STRING), '$.user') -> alice")
    def value(self) -> pa.Array:
        """The value; NULL for a null value (tombstone). The value of a compressed message is a compressed message set."""
        return self._bytes(self._fields.value, self._fields.value_ends, HAS_VALUE)

    @MESSAGE_COLUMNS.column("INT", "kafka_value_size(message) -> 64")
    def value_size(self) -> pa.Array:
        """The value's size as stored, -1 for null [bytes]."""
        return primitive(self._fields.value_size, self._present(HAS_VALUE_SIZE))

    @MESSAGE_COLUMNS.column("STRING", "kafka_error(substring(message, 1, 20)) -> TRUNCATED")
    def error(self) -> pa.Array:
        """Why the message cannot be read: TRUNCATED, BAD_MAGIC (also for a record batch), BAD_LENGTH (a size beyond bytes that
        are complete by their checksum), CRC_MISMATCH, UNKNOWN_CODEC. NULL for a valid message."""
        return from_codes(self._fields.error, ERRORS)

    @MESSAGE_COLUMNS.column("BOOLEAN", "kafka_is_valid(message) -> true")
    def is_valid(self) -> pa.Array:
        """Whether kafka_error is NULL."""
        return primitive(self._fields.error == OK)
