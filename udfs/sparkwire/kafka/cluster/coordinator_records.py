"""The records of Kafka's coordinators: groups in `__consumer_offsets`, transactions in `__transaction_state`.

A null value is a tombstone: the offset, the group or the transactional id was deleted.

``kafka_group_record``: the key's version identifies the kind of record: 0 and 1 are a committed offset, 2 is the state of a
group. From 3 on, records belong to the newer group protocols (KIP-848, KIP-932, KIP-1071). For these, it returns only the key's
version; `kafka_internal_record` returns all fields.

``kafka_transaction_record``: each partition repeats its topic. If these texts exceed `message_reader.MOST_COPIED`, it returns the
partitions that fit, and the error TOO_LARGE.

Source: apache/kafka, `TransactionState`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import BAD_FIELD, OK
from sparkwire.core.builders import Column
from sparkwire.core.column import from_codes
from sparkwire.kafka.cluster.definitions import messages
from sparkwire.kafka.cluster.internal_records import InternalRecords, MessageReader, RecordKind, column_of

# -- groups

_GROUPS: Final = "__consumer_offsets"
_READ: Final = range(3)  # versions of the keys that it decodes completely
_NEWEST: Final = max(message.number for message in messages() if message.topic == _GROUPS and message.part == "key")

_GROUP_KEY: Final = (
    ("group", "group", "STRING", "The group's id."),
    ("topic", "topic", "STRING", "Topic of the committed offset."),
    ("partition", "partition", "INT", "Partition of the committed offset."),
)
_GROUP_VALUE: Final = (
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

_group_keys = MessageReader(
    [(_GROUPS, "key")], [path for _, path, *_ in _GROUP_KEY], wanted=lambda message: message.number in _READ
)
_group_values = MessageReader(
    [(_GROUPS, "value")], [path for _, path, *_ in _GROUP_VALUE], wanted=lambda message: message.number in _READ
)


def group_records(key: pa.Array, value: pa.Array) -> InternalRecords:
    return InternalRecords(key, value, _KINDS, _group_keys, _group_values)


GROUP_COLUMNS: Final[tuple[Column[InternalRecords], ...]] = (
    Column("kind", "STRING", "OFFSET, GROUP or OTHER, from the key.", lambda records: from_codes(records.kinds, KINDS)),
    Column("version", "SMALLINT", "Version of the value; for OTHER, version of the key.", InternalRecords.version),
    *(column_of(*field) for field in (*_GROUP_KEY, *_GROUP_VALUE)),
    Column("error", "STRING", "Error of the key, else of the value; NULL if both are valid.", InternalRecords.error),
)

# -- transactions

_TRANSACTIONS: Final = "__transaction_state"
STATES: Final = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
)  # fmt: skip

_ID: Final = ("transactional_id", "transactionalId", "STRING", "The producer's transactional id.")
_PRODUCER: Final = (
    ("producer_id", "producerId", "BIGINT", "Producer id of the transactional id."),
    ("producer_epoch", "producerEpoch", "SMALLINT", "Epoch of the producer; it fences earlier producers."),
    ("timeout_ms", "transactionTimeoutMs", "INT", "Timeout of a transaction, after which a broker aborts it [ms]."),
)
_TIMES: Final = (
    (
        "last_update_timestamp_ms",
        "transactionLastUpdateTimestampMs",
        "BIGINT",
        "Time of the last change of the state [ms since epoch].",
    ),
    ("start_timestamp_ms", "transactionStartTimestampMs", "BIGINT", "Start time of the transaction [ms since epoch]."),
)
_STATE: Final = "transactionStatus"
_PARTITIONS: Final = "transactionPartitions"

_transaction_keys = MessageReader([(_TRANSACTIONS, "key")], [_ID[1]])
_transaction_values = MessageReader(
    [(_TRANSACTIONS, "value")],
    [path for _, path, *_ in (*_PRODUCER, *_TIMES)] + [_STATE, _PARTITIONS],
    emitted=(f"{_PARTITIONS}.topic", f"{_PARTITIONS}.partitionIds"),
)


class TransactionRecords(InternalRecords):
    """The records of a column of keys and a column of values."""

    def __init__(self, key: pa.Array, value: pa.Array) -> None:
        super().__init__(key, value, (RecordKind(range(1), True),), _transaction_keys, _transaction_values)

    def _states(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """The numbers of states, whether each exists, and whether it exists and is invalid."""
        states = self.values(_STATE)
        present = np.array([state is not None for state in states], np.bool_)
        numbers = np.array([state or 0 for state in states], np.int64)
        return numbers, present, present & ((numbers < 0) | (numbers >= len(STATES)))

    def state(self) -> pa.Array:
        numbers, present, unknown = self._states()
        return from_codes(np.where(present & ~unknown, numbers, -1).astype(np.int8), STATES)

    def partitions(self) -> pa.Array:
        return self.items(_PARTITIONS, "topic", "partition")

    def errors(self) -> npt.NDArray[np.int8]:
        # An invalid state comes before any later error.
        *_, unknown = self._states()
        return np.where((self._key.messages.errors == OK) & unknown, np.int8(BAD_FIELD), super().errors())


TRANSACTION_COLUMNS: Final[tuple[Column[Any], ...]] = (
    Column("version", "SMALLINT", "Version of the value.", TransactionRecords.version),
    *(column_of(*field) for field in (_ID, *_PRODUCER)),
    Column("state", "STRING", "State of the transaction.", TransactionRecords.state),
    Column(
        "partitions",
        "ARRAY<STRUCT<topic STRING, partition INT>>",
        "Partitions to which the transaction writes.",
        TransactionRecords.partitions,
    ),
    *(column_of(*field) for field in _TIMES),
    Column("error", "STRING", "Error of the key, else of the value; NULL if both are valid.", TransactionRecords.error),
)
