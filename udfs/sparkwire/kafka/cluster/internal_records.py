"""Records of Kafka's internal topics, whose key names the message that their value is, as columns of one STRUCT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.errors import BAD_MAGIC, ERRORS, OK, TRUNCATED
from sparkwire.core.builders import Column, columns_of, struct_type
from sparkwire.core.column import Spans, build, empty, from_codes, gather, lists, masked, primitive, spans_of, struct
from sparkwire.core.function import Function
from sparkwire.kafka.cluster.definition_machine import SCRATCH, STACK, ReadMessages, read_messages, write_messages
from sparkwire.kafka.cluster.definitions import Message, Programs
from sparkwire.kafka.output import text
from sparkwire.kernels import Bytes, Ints, i16, kernel

VERSION_SIZE: Final = 2  # [bytes]
_DTYPES: Final = {"TINYINT": np.int8, "SMALLINT": np.int16, "INT": np.int32, "BIGINT": np.int64}
_NO_TIME = -1
_UNKNOWN = -1


@kernel
def read_versions(data: Bytes, starts: Ints, sizes: Ints, versions: npt.NDArray[np.int64]) -> None:
    """The i16 that each message begins with, 0 where it is not there."""
    for row in range(starts.size):
        versions[row] = i16(data, starts[row], False) if sizes[row] >= VERSION_SIZE else 0


def versions_of(spans: Spans) -> Ints:
    versions = empty(len(spans.sizes), np.int64)
    read_versions(*spans, versions)
    return versions


class MessageReader:
    """Reads messages by their programs; the fields named by ``paths`` are kept, see `Compiler`."""

    def __init__(
        self,
        parts: Sequence[tuple[str, str]],
        paths: Sequence[str] = (),
        emitted: tuple[str, str] | None = None,
        wanted: Callable[[Message], bool] = lambda message: True,
    ) -> None:
        self.slots: dict[str, int] = {path: slot for slot, path in enumerate((*paths, *(emitted or ())))}
        self._emit = np.array([self.slots[path] for path in emitted or ()], np.int64)
        self.programs = Programs.of(parts, self.slots, emitted[1] if emitted else "", wanted)

    def read(self, data: Bytes, starts: Ints, ends: Ints, which: Ints) -> ReadMessages:
        """Read the messages ``data[start:end]``, each by its program; one whose program is -1 has no error and nothing else."""
        rows, slots = len(which), len(self.slots)
        found = ReadMessages(
            np.zeros((slots, rows), np.int64),
            np.zeros((slots, rows), np.bool_),
            np.zeros((slots, rows), np.int64),
            np.full((slots, rows), -1, np.int64),
            np.full(rows, OK, np.int8),
            empty(rows, np.int64),
            np.zeros(rows + 1, np.int32),
            *(np.empty(0, np.int64) for _ in range(3)),
        )
        self._run(data, starts, ends, which, found)
        if len(self._emit):
            # Once more, now that it is known how many items there are.
            found = found._replace(**{name: empty(int(found.ends[-1]), np.int64) for name in ReadMessages._fields[-3:]})
            self._run(data, starts, ends, which, found)
        return found

    def _run(self, data: Bytes, starts: Ints, ends: Ints, which: Ints, found: ReadMessages) -> None:
        stack, scratch = np.zeros(STACK, np.int64), np.zeros(SCRATCH, np.uint8)
        read_messages(data, starts, ends, which, self.programs.program, self._emit, stack, found, scratch)

    def json(self, data: Bytes, starts: Ints, ends: Ints, which: Ints, found: ReadMessages) -> pa.Array:
        """STRING: the messages that ``read`` has found, as Kafka's JSON; NULL for the others."""

        def fill(offsets: npt.NDArray[np.int32], out: Bytes) -> None:
            stack, program = np.zeros(STACK, np.int64), self.programs.program
            write_messages(data, starts, ends, which, program, self._emit, stack, found, offsets, out)

        return build(found.texts, fill, pa.string())


class RecordKind(NamedTuple):
    """A kind of record: the numbers of its keys, and whether its key and value are read."""

    keys: range
    is_read: bool


class Side(NamedTuple):
    """The keys of a column of records, or their values."""

    reader: MessageReader
    data: Bytes
    found: ReadMessages

    @classmethod
    def of(
        cls, reader: MessageReader, spans: Spans, numbers: Ints, versions: Ints, read: npt.NDArray[np.bool_]
    ) -> Side:
        """Where ``read``, the messages of these numbers and versions."""
        there = read & (spans.sizes >= VERSION_SIZE)
        which = np.where(there, reader.programs.which(0, numbers, versions), -1)
        found = reader.read(spans.data, spans.starts + VERSION_SIZE, spans.starts + spans.sizes, which)
        found.errors[there & (which < 0)] = BAD_MAGIC
        found.errors[read & (spans.sizes >= 0) & (spans.sizes < VERSION_SIZE)] = TRUNCATED
        return cls(reader, spans.data, found)


class InternalRecords:
    """What is read of a column of keys and a column of values."""

    def __init__(
        self, key: pa.Array, value: pa.Array, kinds: Sequence[RecordKind], keys: MessageReader, values: MessageReader
    ) -> None:
        key_spans, value_spans = spans_of(key), spans_of(value)
        numbers, versions = versions_of(key_spans), versions_of(value_spans)
        named = key_spans.sizes >= VERSION_SIZE
        self.kinds: npt.NDArray[np.int8] = np.full(len(key), _UNKNOWN, np.int8)
        """which of ``kinds``, negative where the key does not tell"""
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

    def _slot(self, path: str) -> tuple[Side, int]:
        side = self._key if path in self._key.reader.slots else self._value
        return side, side.reader.slots[path]

    def number(self, path: str, dtype: npt.DTypeLike = np.int64) -> pa.Array:
        """As stored."""
        side, slot = self._slot(path)
        return primitive(side.found.numbers[slot].astype(dtype), side.found.there[slot])

    def time(self, path: str) -> pa.Array:
        """[ms since epoch], -1 is none."""
        side, slot = self._slot(path)
        times = side.found.numbers[slot]
        return primitive(times, side.found.there[slot] & (times != _NO_TIME))

    def text(self, path: str) -> pa.Array:
        side, slot = self._slot(path)
        return text(gather(side.data, side.found.starts[slot], side.found.sizes[slot], pa.binary()))

    def items(self, path: str, text_name: str, number_name: str) -> pa.Array:
        """ARRAY<STRUCT> of the items of the values: each number of an array and the text above it."""
        side, slot = self._slot(path)
        found = side.found
        texts = text(gather(side.data, found.item_starts, found.item_sizes, pa.binary()))
        rows = struct({text_name: texts, number_name: primitive(found.item_numbers.astype(np.int32))})
        return lists(found.ends, rows, found.there[slot])

    def version(self) -> pa.Array:
        """The value's; the key's where nothing of the value is read; none for a tombstone."""
        return primitive(self._versions, self._has_version)

    def errors(self) -> npt.NDArray[np.int8]:
        """The key's, else the value's."""
        return np.where(self._key.found.errors != OK, self._key.found.errors, self._value.found.errors)

    def error(self) -> pa.Array:
        return from_codes(self.errors(), ERRORS)


def column_of(name: str, path: str, sql: str, doc: str) -> Column[InternalRecords]:
    """The column of a field of the definitions; of an array, how many items it has."""
    if sql == "STRING":
        return Column(name, sql, doc, lambda records: records.text(path))
    if name.endswith("timestamp_ms"):
        return Column(name, sql, doc, lambda records: records.time(path))
    return Column(name, sql, doc, lambda records: records.number(path, _DTYPES[sql]))


def record_function(
    declaration: str,
    table: Sequence[Column[Any]],
    scan: Callable[[pa.Array, pa.Array], InternalRecords],
    doc: str,
    example: str,
) -> Function:
    """The function that answers a table's columns of a key and a value; NULL for a null key, not for a null value."""

    def decode(key: pa.Array, value: pa.Array) -> pa.Array:
        return masked(struct(columns_of(scan(key, value), table)), [key])

    docs = {column.name: column.doc for column in table}
    returns = struct_type(table)
    return Function(f"{declaration} -> {returns}", doc, decode, example, called_on_null=True, field_docs=docs)
