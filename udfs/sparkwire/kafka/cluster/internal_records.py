"""Records of Kafka's internal topics as columns of one STRUCT. The key identifies the message in the value.

Its functions read the records of the coordinators: groups in `__consumer_offsets`, transactions in `__transaction_state`. A null
value is a tombstone: the offset, the group or the transactional id was deleted.

``kafka_group_record``: the key's version identifies the kind of record: 0 and 1 are a committed offset, 2 is the state of a
group. From 3 on, records belong to the newer group protocols (KIP-848, KIP-932, KIP-1071). For these, it returns only the key's
version; `kafka_internal_record` returns all fields.

``kafka_transaction_record``: each partition repeats its topic. If these texts exceed `message_reader.MOST_COPIED`, it returns the
partitions that fit, and the error TOO_LARGE.

Source: apache/kafka, `TransactionState`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import BAD_FIELD, BAD_MAGIC, ERRORS, OK, TRUNCATED
from sparkwire.core.builders import Column, columns_of, struct_type
from sparkwire.core.column import Spans, empty, from_codes, lists, masked, primitive, spans_of, struct
from sparkwire.core.function import Function
from sparkwire.kafka.cluster.message_reader import Cursor, Message, MessageVersion, Selection, messages
from sparkwire.kafka.record_columns import text
from sparkwire.kernels import Bytes, Ints, i16, kernel

VERSION_SIZE: Final = 2  # [bytes]
_TYPES: Final = {"TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64()}
_NO_TIME = -1
_UNKNOWN = -1


@kernel
def read_versions(data: Bytes, starts: Ints, sizes: Ints, versions: npt.NDArray[np.int64]) -> None:
    """The i16 at the start of each message, 0 if it is missing."""
    for row in range(starts.size):
        versions[row] = i16(data, starts[row], False) if sizes[row] >= VERSION_SIZE else 0


def versions_of(spans: Spans) -> Ints:
    versions = empty(len(spans.sizes), np.int64)
    read_versions(*spans, versions)
    return versions


class ReadMessages(NamedTuple):
    """The results of reading, with an item for each message."""

    trees: list[Any]
    """messages as JSON values; None if there is no message or it has an error"""
    selections: list[Selection]
    errors: npt.NDArray[np.int8]


_NOTHING: Final = Selection({}, [])


class MessageReader:
    """Reads messages by their definitions; selects the fields named by ``paths``, and the items of ``emitted``."""

    def __init__(
        self,
        parts: Sequence[tuple[str, str]],
        paths: Sequence[str] = (),
        emitted: tuple[str, str] | None = None,
        wanted: Callable[[Message], bool] = lambda message: True,
    ) -> None:
        self.paths = frozenset((*paths, *(emitted or ())))
        order = {part: place for place, part in enumerate(parts)}
        chosen = [message for message in messages() if (message.topic, message.part) in order and wanted(message)]
        numbers = max(message.number for message in chosen) + 1
        versions = max(message.versions[-1] for message in chosen) + 1
        self.first = np.full((len(order), numbers, versions), -1, np.int64)
        """(parts, numbers, versions): index of the message's version, -1 if it is not defined"""
        self._versions = list[MessageVersion]()
        for message in chosen:
            for version in message.versions:
                place = order[message.topic, message.part], message.number, version
                if self.first[place] < 0:
                    self.first[place] = len(self._versions)
                    self._versions.append(MessageVersion(message, version, self.paths, emitted))

    def which(self, part: Any, number: Any, version: Any) -> Ints:
        """The index of each message's version, -1 if it is not defined."""
        _, numbers, versions = self.first.shape
        possible = (number >= 0) & (number < numbers) & (version >= 0) & (version < versions) & (part >= 0)
        return np.where(possible, self.first[part, np.where(possible, number, 0), np.where(possible, version, 0)], -1)

    def read(self, data: Bytes, starts: Ints, ends: Ints, which: Ints) -> ReadMessages:
        """Read the messages ``data[start:end]`` by their versions. A message whose version is -1 has neither values nor an
        error.
        """
        view = data.data
        messages = ReadMessages([None] * len(which), [_NOTHING] * len(which), np.full(len(which), OK, np.int8))
        for row in np.flatnonzero(which >= 0).tolist():
            cursor = Cursor(view, int(starts[row]), int(ends[row]))
            messages.trees[row], messages.errors[row] = self._versions[which[row]].read(cursor)
            messages.selections[row] = cursor.selection
        return messages


class RecordKind(NamedTuple):
    """A kind of record: the numbers of its keys, and whether its key and value are read."""

    keys: range
    is_read: bool


class Side(NamedTuple):
    """The keys or the values of a column of records."""

    reader: MessageReader
    messages: ReadMessages

    def values(self, path: str) -> list[Any]:
        """The value of a field in each message, None if it is missing."""
        return [selection.values.get(path) for selection in self.messages.selections]

    @classmethod
    def of(
        cls, reader: MessageReader, spans: Spans, numbers: Ints, versions: Ints, read: npt.NDArray[np.bool_]
    ) -> Side:
        """The messages of these numbers and versions, in rows where ``read`` is true."""
        has_version = read & (spans.sizes >= VERSION_SIZE)
        which = np.where(has_version, reader.which(0, numbers, versions), -1)
        messages = reader.read(spans.data, spans.starts + VERSION_SIZE, spans.starts + spans.sizes, which)
        messages.errors[has_version & (which < 0)] = BAD_MAGIC
        messages.errors[read & (spans.sizes >= 0) & (spans.sizes < VERSION_SIZE)] = TRUNCATED
        return cls(reader, messages)


class InternalRecords:
    """The records of a column of keys and a column of values."""

    def __init__(
        self, key: pa.Array, value: pa.Array, kinds: Sequence[RecordKind], keys: MessageReader, values: MessageReader
    ) -> None:
        key_spans, value_spans = spans_of(key), spans_of(value)
        numbers, versions = versions_of(key_spans), versions_of(value_spans)
        named = key_spans.sizes >= VERSION_SIZE
        self.kinds: npt.NDArray[np.int8] = np.full(len(key), _UNKNOWN, np.int8)
        """index into ``kinds``, negative if the key has none"""
        read = np.zeros(len(key), np.bool_)
        for place, kind in enumerate(kinds):
            of_kind = named & (numbers >= kind.keys.start) & (numbers < kind.keys.stop)
            self.kinds[of_kind] = place
            read |= of_kind & kind.is_read
        self._key = Side.of(keys, key_spans, numbers, np.zeros_like(numbers), read | (self.kinds < 0))
        self._value = Side.of(values, value_spans, numbers, versions, read)
        has_value = read & (value_spans.sizes >= VERSION_SIZE)
        self._versions = np.where(has_value, versions, numbers).astype(np.int16)
        self._has_version = has_value | (~read & named)

    def values(self, path: str) -> list[Any]:
        """The value of a field of the key or the value in each record, None if it is missing."""
        return (self._key if path in self._key.reader.paths else self._value).values(path)

    def number(self, path: str, type: pa.DataType) -> pa.Array:
        """A number field, as stored."""
        return pa.array(self.values(path), type)

    def time(self, path: str) -> pa.Array:
        """A time field [ms since epoch]; -1 becomes NULL."""
        return pa.array([None if time == _NO_TIME else time for time in self.values(path)], pa.int64())

    def text(self, path: str) -> pa.Array:
        return text(pa.array(self.values(path), pa.binary()))

    def items(self, path: str, text_name: str, number_name: str) -> pa.Array:
        """ARRAY<STRUCT> of the items of each value: a number of an array, with the text of the structure around it."""
        items_of_values = [selection.items for selection in self._value.messages.selections]
        items = list(chain.from_iterable(items_of_values))
        ends = np.cumsum([0, *map(len, items_of_values)]).astype(np.int32)
        texts = text(pa.array([item for item, _ in items], pa.binary()))
        rows = struct({text_name: texts, number_name: pa.array([number for _, number in items], pa.int32())})
        return lists(ends, rows, np.array([count is not None for count in self.values(path)], np.bool_))

    def version(self) -> pa.Array:
        """Version of the value, or of the key if the value is not read; NULL for a tombstone."""
        return primitive(self._versions, self._has_version)

    def errors(self) -> npt.NDArray[np.int8]:
        """Error of the key, else of the value."""
        return np.where(self._key.messages.errors != OK, self._key.messages.errors, self._value.messages.errors)

    def error(self) -> pa.Array:
        return from_codes(self.errors(), ERRORS)


def column_of(name: str, path: str, sql: str, doc: str) -> Column[InternalRecords]:
    """The column of a field of the definitions; for an array, its number of items."""
    if sql == "STRING":
        return Column(name, sql, doc, lambda records: records.text(path))
    if name.endswith("timestamp_ms"):
        return Column(name, sql, doc, lambda records: records.time(path))
    return Column(name, sql, doc, lambda records: records.number(path, _TYPES[sql]))


def record_function(
    declaration: str,
    table: Sequence[Column[Any]],
    scan: Callable[[pa.Array, pa.Array], InternalRecords],
    doc: str,
    example: str,
) -> Function:
    """A function of key and value that returns a table's columns; NULL for a NULL key, but not for a NULL value."""

    def decode(key: pa.Array, value: pa.Array) -> pa.Array:
        return masked(struct(columns_of(scan(key, value), table)), [key])

    docs = {column.name: column.doc for column in table}
    returns = struct_type(table)
    return Function(f"{declaration} -> {returns}", doc, decode, example, called_on_null=True, field_docs=docs)


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
