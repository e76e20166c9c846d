"""``kafka_crc`` … ``kafka_message``: the fields of single messages of magic 0 and 1.

A message does not say how long it is: it ends where its value does, and what follows is not part of it. Kafka takes the
length from the entry around it and has its checksum cover all of that; so where bytes follow the value and the checksum
is not right without them, it is computed with them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.errors import ERRORS, OK
from sparkwire.core.builders import Column
from sparkwire.core.column import Binary, arrays, binary_of, checked_total, empty, from_codes, primitive, timestamps
from sparkwire.kafka.layout import CODECS, TIMESTAMP_TYPES
from sparkwire.kafka.output import binary
from sparkwire.kafka.read_messages import (
    HAS_ATTRIBUTES,
    HAS_CRC,
    HAS_KEY,
    HAS_KEY_SIZE,
    HAS_MAGIC,
    HAS_TIME,
    HAS_VALUE,
    HAS_VALUE_SIZE,
    MessageContents,
    MessageFields,
    copy_fields,
    read_messages,
)
from sparkwire.kernels import COPY_SLACK, Bools


class MessageColumn:
    """The messages of a column."""

    def __init__(self, data: pa.Array) -> None:
        self.source: Binary = binary_of(data)
        rows = self.source.rows
        checked_total(
            int(self.source.offsets[rows] - self.source.offsets[0])
        )  # only those of a large_binary may be too much
        self._fields = arrays(MessageFields, rows)
        ends = {name: empty(rows + 1, np.int32) for name in ("key_ends", "value_ends")}
        self._found = arrays(MessageContents, rows)._replace(**ends)
        self._common = read_messages(self.source.data, self.source.offsets, self._fields, self._found)

    def _present(self, bit: int) -> Bools | None:
        return None if self._common & bit else self._found.present & bit != 0

    def _bytes(self, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int32], bit: int) -> pa.Array:
        out = empty(int(ends[-1]), np.uint8, COPY_SLACK)
        copy_fields(self.source.data, starts, ends, out)
        return binary(ends, out, self._present(bit))

    def crc(self) -> pa.Array:
        return primitive(self._fields.crc, self._present(HAS_CRC))

    def crc_computed(self) -> pa.Array:
        return primitive(self._found.computed, self._present(HAS_CRC))

    def crc_valid(self) -> pa.Array:
        return primitive(self._found.crc_ok > 0, self._found.crc_ok >= 0)

    def magic(self) -> pa.Array:
        return primitive(self._fields.magic, self._present(HAS_MAGIC))

    def attributes(self) -> pa.Array:
        return primitive(self._fields.attributes, self._present(HAS_ATTRIBUTES))

    def compression(self) -> pa.Array:
        return from_codes(self._found.codec, CODECS)

    def timestamp(self) -> pa.Array:
        return timestamps(self._fields.timestamp, "ms", self._present(HAS_TIME))

    def timestamp_ms(self) -> pa.Array:
        return primitive(self._fields.timestamp, self._present(HAS_TIME))

    def timestamp_type(self) -> pa.Array:
        return from_codes(self._found.timestamp_type, TIMESTAMP_TYPES)

    def key(self) -> pa.Array:
        return self._bytes(self._found.key, self._found.key_ends, HAS_KEY)

    def key_size(self) -> pa.Array:
        return primitive(self._found.key_size, self._present(HAS_KEY_SIZE))

    def value(self) -> pa.Array:
        return self._bytes(self._found.value, self._found.value_ends, HAS_VALUE)

    def value_size(self) -> pa.Array:
        return primitive(self._found.value_size, self._present(HAS_VALUE_SIZE))

    def error(self) -> pa.Array:
        return from_codes(self._found.error, ERRORS)

    def is_valid(self) -> pa.Array:
        return primitive(self._found.error == OK)


MESSAGE_COLUMNS: Final = (
    Column("crc", "BIGINT", "The message's CRC-32, as stored.", MessageColumn.crc, "kafka_crc(message) -> 3925109172"),
    Column(
        "crc_computed",
        "BIGINT",
        "The CRC-32 computed over the bytes that are there.",
        MessageColumn.crc_computed,
        "kafka_crc_computed(message) = kafka_crc(message) -> true",
    ),
    Column(
        "crc_valid",
        "BOOLEAN",
        "Whether both are equal; NULL where bytes are missing.",
        MessageColumn.crc_valid,
        "kafka_crc_valid(message) -> true",
    ),
    Column(
        "magic",
        "TINYINT",
        "Version of the format: 0 or 1; other values as stored.",
        MessageColumn.magic,
        "kafka_magic(message) -> 1",
    ),
    Column(
        "attributes",
        "INT",
        "The attribute bits: 0-2 codec, 3 timestamp type.",
        MessageColumn.attributes,
        "kafka_attributes(message) -> 0",
    ),
    Column(
        "compression",
        "STRING",
        "Codec of the message set in the value: none, gzip, snappy, lz4; NULL for an unknown one.",
        MessageColumn.compression,
        "kafka_compression(message) -> none",
    ),
    Column(
        "timestamp",
        "TIMESTAMP",
        "When the message was created or appended; NULL for magic 0 and for -1.",
        MessageColumn.timestamp,
        "kafka_timestamp(message) -> 2020-09-13 12:26:40.351",
    ),
    Column(
        "timestamp_ms",
        "BIGINT",
        "The same [ms since epoch].",
        MessageColumn.timestamp_ms,
        "kafka_timestamp_ms(message) -> 1600000000351",
    ),
    Column(
        "timestamp_type",
        "STRING",
        "CreateTime or LogAppendTime; NULL for magic 0.",
        MessageColumn.timestamp_type,
        "kafka_timestamp_type(message) -> CreateTime",
    ),
    Column(
        "key",
        "BINARY",
        "The key; NULL for a null key.",
        MessageColumn.key,
        "CAST(kafka_key(message) AS STRING) -> key-00043",
    ),
    Column(
        "key_size",
        "INT",
        "The key's size as stored, -1 for null [bytes].",
        MessageColumn.key_size,
        "kafka_key_size(message) -> 9",
    ),
    Column(
        "value",
        "BINARY",
        "The value; NULL for a null value (tombstone). Of a compressed message it is the compressed set.",
        MessageColumn.value,
        "get_json_object(CAST(kafka_value(message) AS STRING), '$.user') -> alice",
    ),
    Column(
        "value_size",
        "INT",
        "The value's size as stored, -1 for null [bytes].",
        MessageColumn.value_size,
        "kafka_value_size(message) -> 64",
    ),
    Column(
        "error",
        "STRING",
        "Why the message cannot be read: TRUNCATED, BAD_MAGIC (a record batch, too), BAD_LENGTH (a size beyond bytes that the "
        "checksum finds complete), CRC_MISMATCH, UNKNOWN_CODEC; NULL for valid bytes.",
        MessageColumn.error,
        "kafka_error(substring(message, 1, 20)) -> TRUNCATED",
    ),
    Column(
        "is_valid", "BOOLEAN", "Whether kafka_error is NULL.", MessageColumn.is_valid, "kafka_is_valid(message) -> true"
    ),
)
"""The fields of a message: the columns of ``kafka_message``."""
