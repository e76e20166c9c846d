"""``kafka_group_record``: a record of `__consumer_offsets`, by its key and its value.

The key's version tells the kind of record: 0 and 1 an offset that a group committed, 2 the state of a group, from 3 on what the
newer group protocols (KIP-848, KIP-932, KIP-1071) keep: of those the key's version alone is answered. A null value is a
tombstone: the offset or the group is gone.

Source: apache/kafka, `group-coordinator/src/main/resources/common/message`.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from sparkwire.core.builders import Column
from sparkwire.core.column import from_codes
from sparkwire.kafka.internal_records import InternalRecords, Kind, column_of
from sparkwire.kafka.schema import Item, Reader, Schema

_NEVER = 1 << 15  # a version that does not come
_NEWEST_KEY = 23  # StreamsGroupTopologyKey of Kafka 4.1

OFFSET_KEY: Final = Schema(
    "OffsetCommitKey",
    range(2),
    _NEVER,
    (
        Item("group", "string", "The group's id"),
        Item("topic", "string", "Whose offset was committed"),
        Item("partition", "i32", "Of the topic"),
    ),
)
OFFSET_VALUE: Final = Schema(
    "OffsetCommitValue",
    range(5),
    4,
    (
        Item("offset", "i64", "That was committed: of the next record to read"),
        Item("leader_epoch", "i32", "Of the record before, -1 for none; from version 3 on", since=3),
        Item("metadata", "string", "What the consumer committed with the offset"),
        Item("commit_timestamp_ms", "i64", "When it was committed [ms since epoch]"),
        Item("expire_timestamp_ms", "i64", "When it expires [ms since epoch]; version 1 alone", since=1, until=1),
    ),
)
GROUP_KEY: Final = Schema("GroupMetadataKey", range(2, 3), _NEVER, (Item("group", "string", "The group's id"),))
_MEMBER: Final = (
    Item("member_id", "string", "Given by the coordinator"),
    Item("group_instance_id", "string", "Of a static member", since=3, nullable=True),
    Item("client_id", "string", "Of the consumer"),
    Item("client_host", "string", "Of the consumer"),
    Item("rebalance_timeout", "i32", "[ms]", since=1),
    Item("session_timeout", "i32", "[ms]"),
    Item("subscription", "bytes", "The protocol's own"),
    Item("assignment", "bytes", "The protocol's own"),
)
GROUP_VALUE: Final = Schema(
    "GroupMetadataValue",
    range(5),
    4,
    (
        Item("protocol_type", "string", "Such as consumer or connect"),
        Item("generation", "i32", "Of the group"),
        Item("protocol", "string", "The assignor that was chosen", nullable=True),
        Item("leader", "string", "The member that assigns", nullable=True),
        Item("current_state_timestamp_ms", "i64", "When the group came into its state [ms since epoch]", since=2),
        Item("members", "items", "How many members the group has", items=_MEMBER),
    ),
)
NEWER_KEY: Final = Schema("keys of the newer group protocols", range(3, _NEWEST_KEY + 1), _NEVER, ())

KINDS: Final = ("OFFSET", "GROUP", "OTHER")
_KINDS: Final = (Kind(OFFSET_KEY, OFFSET_VALUE), Kind(GROUP_KEY, GROUP_VALUE), Kind(NEWER_KEY, None))
_KEY: Final = OFFSET_KEY.items
_VALUE: Final = (
    *OFFSET_VALUE.items,
    *(item for item in GROUP_VALUE.items if item.name != "current_state_timestamp_ms"),
)
_keys = Reader((OFFSET_KEY, GROUP_KEY, NEWER_KEY), tuple(item.name for item in _KEY))
_values = Reader((OFFSET_VALUE, GROUP_VALUE), tuple(item.name for item in _VALUE))


def scan(key: pa.Array, value: pa.Array) -> InternalRecords:
    return InternalRecords(key, value, _KINDS, _keys, _values)


COLUMNS: Final[tuple[Column[InternalRecords], ...]] = (
    Column(
        "kind", "STRING", "OFFSET, GROUP or OTHER, as the key tells.", lambda records: from_codes(records.kinds, KINDS)
    ),
    Column("version", "SMALLINT", "Of the value; of the key for OTHER.", InternalRecords.version),
    *map(column_of, (*_KEY, *_VALUE)),
    Column("error", "STRING", "What is wrong with the key, else with the value.", InternalRecords.error),
)
