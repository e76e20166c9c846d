"""``kafka_transaction_record``: a record of `__transaction_state`, from its key and value.

A null value is a tombstone: the transactional id was deleted. Each partition repeats its topic. If these texts exceed
`message_reader.MOST_COPIED`, it returns the partitions that fit, and the error TOO_LARGE.

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
from sparkwire.kafka.cluster.internal_records import InternalRecords, MessageReader, RecordKind, column_of

TOPIC: Final = "__transaction_state"
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

_keys = MessageReader([(TOPIC, "key")], [_ID[1]])
_values = MessageReader(
    [(TOPIC, "value")],
    [path for _, path, *_ in (*_PRODUCER, *_TIMES)] + [_STATE, _PARTITIONS],
    emitted=(f"{_PARTITIONS}.topic", f"{_PARTITIONS}.partitionIds"),
)


class TransactionRecords(InternalRecords):
    """The records of a column of keys and a column of values."""

    def __init__(self, key: pa.Array, value: pa.Array) -> None:
        super().__init__(key, value, (RecordKind(range(1), True),), _keys, _values)

    def _states(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """The numbers of states, whether each exists, and whether it exists and is invalid."""
        states = self.kept(_STATE)
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


COLUMNS: Final[tuple[Column[Any], ...]] = (
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
