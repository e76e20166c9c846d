"""Decode data of one schema to a column, and one datum to a Python value."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa

from sparkwire.avro.arrow_columns import ColumnPlan, decode, plan
from sparkwire.avro.schema import Schema, parse, text_of
from sparkwire.avro.to_avro import encode
from sparkwire.base.error_codes import OK
from sparkwire.base.printable import type_error, value_error
from sparkwire.base.text_cache import text_cache
from sparkwire.core.column import spans_of


class Typed(NamedTuple):
    """A decoder. Contains only texts, which Spark pickles for workers."""

    schema: str
    reader_schema: str
    reasons: bool = False
    """whether the result is the reason why a datum, or a value in it, is NULL"""

    @property
    def type(self) -> pa.DataType:
        """The type of the result."""
        return pa.string() if self.reasons else _planned(self.schema, self.reader_schema).target.type

    def decode(self, value: pa.Array, name: str = "decode") -> pa.Array:
        """Decode each row's datum; NULL if it cannot be read. ``name`` is the function's name in error messages."""
        binary = pa.types.is_binary(value.type) or pa.types.is_large_binary(value.type) or pa.types.is_null(value.type)
        if not binary:
            raise type_error(f"{name} takes (value BINARY), got ({value.type})")
        decoded = decode(_planned(self.schema, self.reader_schema), spans_of(value))
        return decoded.reasons if self.reasons else decoded.column


@text_cache(256)
def _planned(schema: str, reader_schema: str, names_as_written: bool = False) -> ColumnPlan:
    return plan([parse(schema)], parse(reader_schema), names_as_written=names_as_written)


def typed(schema: Any, reader_schema: Any = None, *, reasons: bool = False) -> Typed:
    """The decoder of a schema, with an optional reader's schema; with ``reasons``, of why values are NULL.

    Raises SchemaError if a schema is invalid, if the reader's schema cannot read the writer's, or if no column can hold it.
    """
    writer = text_of(schema)
    decoder = Typed(writer, writer if reader_schema is None else text_of(reader_schema), reasons)
    _planned(decoder.schema, decoder.reader_schema)
    return decoder


def to_python(payload: bytes, schema: Any, reader_schema: Any = None) -> Any:
    """Decode one datum to a Python value, without Spark. A record becomes a dict.

    Raises
    ------
    ValueError
        if the datum cannot be read.

    Examples
    --------
    >>> sparkwire.avro.to_python(b"\\x02", "int")
    1
    """
    decoder = typed(schema, reader_schema)
    plan_of_names = _planned(decoder.schema, decoder.reader_schema, names_as_written=True)
    decoded = decode(plan_of_names, spans_of(pa.array([payload], pa.binary())))
    if decoded.errors[0] != OK:
        raise value_error(f"the payload of {len(payload)} bytes cannot be read: {decoded.reasons[0]}")
    return with_dicts(decoded.column.to_pylist()[0], decoded.column.type)


def with_dicts(value: Any, type: pa.DataType) -> Any:
    """A value as Arrow has it in Python, with each map as a dict. If a key occurs twice, the last value counts."""
    if value is None:
        return None
    if pa.types.is_map(type):
        return {key: with_dicts(item, type.item_type) for key, item in value}
    if pa.types.is_list(type):
        return [with_dicts(item, type.value_type) for item in value]
    if pa.types.is_struct(type):
        return {field.name: with_dicts(value[field.name], field.type) for field in type}
    return value


def encoded(column: pa.Array, schema: str) -> pa.Array:
    """BINARY: each row as a datum of the schema."""
    return encode(column, _parsed(schema))


@text_cache(256)
def _parsed(schema: str) -> Schema:
    return parse(schema)
