"""``kafka_crc`` … ``kafka_message``: the fields of single messages of magic 0 and 1.

A message has no length: it ends with its value, and bytes after the value are not part of it. Kafka uses the length of the
enclosing entry, and its checksum covers that whole length. So if bytes follow the value, and the checksum is wrong without them,
the checksum includes them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import ERRORS, OK
from sparkwire.core.builders import ColumnTable
from sparkwire.core.column import Binary, arrays, binary_of, checked_total, empty, from_codes, primitive, timestamps
from sparkwire.kafka.codecs import NAMES
from sparkwire.kafka.layout import TIMESTAMP_TYPES
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
from sparkwire.kafka.record_columns import binary
from sparkwire.kernels import COPY_SLACK, Bools

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

    @MESSAGE_COLUMNS.column("BIGINT", "kafka_crc(message) -> 3925109172")
    def crc(self) -> pa.Array:
        """The message's CRC-32, as stored."""
        return primitive(self._fields.crc, self._present(HAS_CRC))

    @MESSAGE_COLUMNS.column("BIGINT", "kafka_crc_computed(message) = kafka_crc(message) -> true")
    def crc_computed(self) -> pa.Array:
        """The CRC-32, computed over the bytes that exist."""
        return primitive(self._found.computed, self._present(HAS_CRC))

    @MESSAGE_COLUMNS.column("BOOLEAN", "kafka_crc_valid(message) -> true")
    def crc_valid(self) -> pa.Array:
        """Whether the stored and the computed CRC-32 are equal; NULL if bytes are missing."""
        return primitive(self._found.crc_ok > 0, self._found.crc_ok >= 0)

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
        return from_codes(self._found.codec, NAMES)

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
        return from_codes(self._found.timestamp_type, TIMESTAMP_TYPES)

    @MESSAGE_COLUMNS.column("BINARY", "CAST(kafka_key(message) AS STRING) -> key-00043")
    def key(self) -> pa.Array:
        """The key; NULL for a null key."""
        return self._bytes(self._found.key, self._found.key_ends, HAS_KEY)

    @MESSAGE_COLUMNS.column("INT", "kafka_key_size(message) -> 9")
    def key_size(self) -> pa.Array:
        """The key's size as stored, -1 for null [bytes]."""
        return primitive(self._found.key_size, self._present(HAS_KEY_SIZE))

    @MESSAGE_COLUMNS.column("BINARY", "get_json_object(CAST(kafka_value(message) AS STRING), '$.user') -> alice")
    def value(self) -> pa.Array:
        """The value; NULL for a null value (tombstone). The value of a compressed message is a compressed message set."""
        return self._bytes(self._found.value, self._found.value_ends, HAS_VALUE)

    @MESSAGE_COLUMNS.column("INT", "kafka_value_size(message) -> 64")
    def value_size(self) -> pa.Array:
        """The value's size as stored, -1 for null [bytes]."""
        return primitive(self._found.value_size, self._present(HAS_VALUE_SIZE))

    @MESSAGE_COLUMNS.column("STRING", "kafka_error(substring(message, 1, 20)) -> TRUNCATED")
    def error(self) -> pa.Array:
        """Why the message cannot be read: TRUNCATED, BAD_MAGIC (also for a record batch), BAD_LENGTH (a size beyond bytes that
        are complete by their checksum), CRC_MISMATCH, UNKNOWN_CODEC. NULL for a valid message."""
        return from_codes(self._found.error, ERRORS)

    @MESSAGE_COLUMNS.column("BOOLEAN", "kafka_is_valid(message) -> true")
    def is_valid(self) -> pa.Array:
        """Whether kafka_error is NULL."""
        return primitive(self._found.error == OK)
