"""``kafka_group_record``: a record of `__consumer_offsets`, from its key and value.

The key's version identifies the kind of record: 0 and 1 are a committed offset, 2 is the state of a group. From 3 on, records
belong to the newer group protocols (KIP-848, KIP-932, KIP-1071). For these, it returns only the key's version;
`kafka_internal_record` returns all fields. A null value is a tombstone: the offset or the group was deleted.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from sparkwire.core.builders import Column
from sparkwire.core.column import from_codes
from sparkwire.kafka.cluster.definitions import messages
from sparkwire.kafka.cluster.internal_records import InternalRecords, MessageReader, RecordKind, column_of

TOPIC: Final = "__consumer_offsets"
_READ: Final = range(3)  # versions of the keys that it decodes completely
_NEWEST: Final = max(message.number for message in messages() if message.topic == TOPIC and message.part == "key")

_KEY: Final = (
    ("group", "group", "STRING", "The group's id."),
    ("topic", "topic", "STRING", "Topic of the committed offset."),
    ("partition", "partition", "INT", "Partition of the committed offset."),
)
_VALUE: Final = (
    ("offset", "offset", "BIGINT", "The committed offset, which is that of the next record to read."),
    ("leader_epoch", "leaderEpoch", "INT", "Leader epoch of the previous record, -1 for none; from version 3 on."),
    ("metadata", "metadata", "STRING", "Metadata that the consumer committed with the offset."),
    ("commit_timestamp_ms", "commitTimestamp", "BIGINT", "Time of the commit [ms since epoch]."),
    (
        "expire_timestamp_ms",
        "expireTimestamp",
        "BIGINT",
        "Time at which the offset expires [ms since epoch]; only in version 1.",
    ),
    ("protocol_type", "protocolType", "STRING", "Protocol type, such as consumer or connect."),
    ("generation", "generation", "INT", "Generation of the group."),
    ("protocol", "protocol", "STRING", "The assignor in use."),
    ("leader", "leader", "STRING", "The member that assigns partitions."),
    ("members", "members", "INT", "Number of members of the group."),
)
KINDS: Final = ("OFFSET", "GROUP", "OTHER")
_KINDS: Final = (RecordKind(range(2), True), RecordKind(range(2, 3), True), RecordKind(range(3, _NEWEST + 1), False))

_keys = MessageReader([(TOPIC, "key")], [path for _, path, *_ in _KEY], wanted=lambda message: message.number in _READ)
_values = MessageReader(
    [(TOPIC, "value")], [path for _, path, *_ in _VALUE], wanted=lambda message: message.number in _READ
)


def scan(key: pa.Array, value: pa.Array) -> InternalRecords:
    return InternalRecords(key, value, _KINDS, _keys, _values)


COLUMNS: Final[tuple[Column[InternalRecords], ...]] = (
    Column("kind", "STRING", "OFFSET, GROUP or OTHER, from the key.", lambda records: from_codes(records.kinds, KINDS)),
    Column("version", "SMALLINT", "Version of the value; for OTHER, version of the key.", InternalRecords.version),
    *(column_of(*field) for field in (*_KEY, *_VALUE)),
    Column("error", "STRING", "Error of the key, else of the value; NULL if both are valid.", InternalRecords.error),
)
