"""Records of Kafka's internal topics: what the tables of a key and a value say of both, as one STRUCT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.errors import ERRORS, OK
from sparkwire.core.builders import Column, columns_of, struct_type
from sparkwire.core.column import empty, from_codes, gather, lists, masked, primitive, spans_of, struct
from sparkwire.core.function import Function
from sparkwire.kafka.output import text
from sparkwire.kafka.schema import Item, Reader, Schema
from sparkwire.kafka.schema_machine import VERSION_SIZE, Found, read_versions
from sparkwire.kernels import Bytes

_SQL: Final = {"i8": "TINYINT", "i16": "SMALLINT", "i32": "INT", "i64": "BIGINT", "items": "INT"}
_DTYPES: Final = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "items": np.int32}
_NO_TIME = -1
_UNKNOWN = -1


class Kind(NamedTuple):
    """A kind of record: which keys it has, by their version, and its values."""

    key: Schema
    value: Schema | None
    """None: its values are not read"""


class Side(NamedTuple):
    """The keys of a column of records, or their values."""

    reader: Reader
    data: Bytes
    found: Found


class InternalRecords:
    """What is read of a column of keys and a column of values."""

    def __init__(self, key: pa.Array, value: pa.Array, kinds: Sequence[Kind], keys: Reader, values: Reader) -> None:
        key_spans, value_spans = spans_of(key), spans_of(value)
        rows = len(key)
        key_versions, value_versions = empty(rows, np.int16), empty(rows, np.int16)
        read_versions(*key_spans, key_versions)
        read_versions(*value_spans, value_versions)
        self.kinds: npt.NDArray[np.int8] = np.full(rows, _UNKNOWN, np.int8)
        """which of ``kinds``, negative where the key does not tell"""
        key_programs, value_programs = np.full(rows, -1, np.int64), np.full(rows, -1, np.int64)
        read = np.zeros(rows, np.bool_)
        for number, kind in enumerate(kinds):
            programs = keys.which(kind.key, key_versions)
            of_kind = (programs >= 0) & (key_spans.sizes >= VERSION_SIZE)
            self.kinds[of_kind] = number
            key_programs[of_kind] = programs[of_kind]
            if kind.value is not None:
                read |= of_kind
                value_programs[of_kind] = values.which(kind.value, value_versions)[of_kind]
        value_spans = value_spans._replace(sizes=np.where(read, value_spans.sizes, -1))
        self._key = Side(keys, key_spans.data, keys.read(key_spans, key_programs))
        self._value = Side(values, value_spans.data, values.read(value_spans, value_programs))
        has_value = value_spans.sizes >= VERSION_SIZE
        self._versions = np.where(has_value, value_versions, key_versions)
        self._has_version = has_value | (~read & (key_spans.sizes >= VERSION_SIZE))

    def _slot(self, name: str) -> tuple[Side, int]:
        side = self._key if name in self._key.reader.slots else self._value
        return side, side.reader.slots[name]

    def number(self, name: str, dtype: npt.DTypeLike = np.int64) -> pa.Array:
        """As stored."""
        side, slot = self._slot(name)
        return primitive(side.found.numbers[slot].astype(dtype), side.found.there[slot])

    def time(self, name: str) -> pa.Array:
        """[ms since epoch], -1 is none."""
        side, slot = self._slot(name)
        times = side.found.numbers[slot]
        return primitive(times, side.found.there[slot] & (times != _NO_TIME))

    def text(self, name: str) -> pa.Array:
        side, slot = self._slot(name)
        return text(gather(side.data, side.found.starts[slot], side.found.sizes[slot], pa.binary()))

    def items(self, name: str, text_name: str, number_name: str) -> pa.Array:
        """ARRAY<STRUCT> of the items of the values: each number of an i32[] and the text above it."""
        side, slot = self._slot(name)
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


def column_of(item: Item) -> Column[InternalRecords]:
    """The column of a field of the tables; of items, how many there are."""
    name, wire = item.name, item.wire
    if wire == "string":
        return Column(name, "STRING", f"{item.doc}.", lambda records: records.text(name))
    if name.endswith("timestamp_ms"):
        return Column(name, "BIGINT", f"{item.doc}.", lambda records: records.time(name))
    return Column(name, _SQL[wire], f"{item.doc}.", lambda records: records.number(name, _DTYPES[wire]))


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
