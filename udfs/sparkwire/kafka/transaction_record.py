"""``kafka_transaction_record``: a record of `__transaction_state`, by its key and its value.

A null value is a tombstone: the transactional id is gone. The topics of partitions are repeated for each of them; where they come
to more than `schema.MOST_COPIED`, those that fit are answered, and TOO_LARGE.

Source: apache/kafka, `transaction-coordinator/src/main/resources/common/message`, `TransactionState`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.errors import BAD_FIELD, OK
from sparkwire.core.builders import Column
from sparkwire.core.column import from_codes
from sparkwire.kafka.internal_records import InternalRecords, Kind, column_of
from sparkwire.kafka.schema import Item, Reader, Schema

_NEVER = 1 << 15  # a version that does not come

KEY: Final = Schema("TransactionLogKey", range(1), _NEVER, (Item("transactional_id", "string", "The producer's name"),))
VALUE: Final = Schema(
    "TransactionLogValue",
    range(2),
    1,
    (
        Item("producer_id", "i64", "That the transactional id has"),
        Item("producer_epoch", "i16", "Fences the producers before"),
        Item("timeout_ms", "i32", "After which an open transaction is aborted [ms]"),
        Item("state", "i8", "Of the transaction"),
        Item(
            "partitions",
            "items",
            "That the transaction writes to",
            nullable=True,
            items=(Item("topic", "string", "Their topic"), Item("partition", "i32[]", "Of the topic")),
        ),
        Item("last_update_timestamp_ms", "i64", "When the state changed [ms since epoch]"),
        Item("start_timestamp_ms", "i64", "When the transaction began [ms since epoch]"),
    ),
)
STATES: Final = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
)  # fmt: skip

_keys = Reader((KEY,), ("transactional_id",))
_values = Reader((VALUE,), tuple(item.name for item in VALUE.items), above=("topic", "partition"))


class Transactions(InternalRecords):
    """The records of a column of keys and a column of values."""

    def __init__(self, key: pa.Array, value: pa.Array) -> None:
        super().__init__(key, value, (Kind(KEY, VALUE),), _keys, _values)

    def _states(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The numbers of states, and whether one is there that is none."""
        side, slot = self._slot("state")
        numbers = side.found.numbers[slot]
        return numbers, side.found.there[slot] & ((numbers < 0) | (numbers >= len(STATES)))

    def state(self) -> pa.Array:
        numbers, unknown = self._states()
        side, slot = self._slot("state")
        return from_codes(np.where(side.found.there[slot] & ~unknown, numbers, -1).astype(np.int8), STATES)

    def partitions(self) -> pa.Array:
        return self.items("partitions", "topic", "partition")

    def errors(self) -> npt.NDArray[np.int8]:
        # What is after the state is after its error.
        _, unknown = self._states()
        return np.where((self._key.found.errors == OK) & unknown, np.int8(BAD_FIELD), super().errors())


_DOCS: Final = {item.name: f"{item.doc}." for item in VALUE.items}

COLUMNS: Final[tuple[Column[Any], ...]] = (
    Column("version", "SMALLINT", "Of the value.", Transactions.version),
    *map(column_of, (*KEY.items, *VALUE.items[:3])),
    Column("state", "STRING", _DOCS["state"], Transactions.state),
    Column("partitions", "ARRAY<STRUCT<topic STRING, partition INT>>", _DOCS["partitions"], Transactions.partitions),
    *map(column_of, VALUE.items[5:]),
    Column("error", "STRING", "What is wrong with the key, else with the value.", Transactions.error),
)
