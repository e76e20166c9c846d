"""One schema's data to one column, and one datum to a Python value."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from sparkwire.avro.arrow_columns import ColumnPlan, decode, plan
from sparkwire.avro.schema import Schema, parse, text_of
from sparkwire.avro.to_avro import encode
from sparkwire.base.error_codes import OK
from sparkwire.core.column import spans_of


class Typed(NamedTuple):
    """A decoder as plain texts, so that workers get it whole."""

    schema: str
    reader_schema: str

    @property
    def type(self) -> pa.DataType:
        """What it answers."""
        return _planned(*self).target.type

    def decode(self, value: pa.Array, name: str = "decode") -> pa.Array:
        """The datum of each row, NULL where it cannot be read; ``name`` is the function's in a refusal."""
        binary = pa.types.is_binary(value.type) or pa.types.is_large_binary(value.type) or pa.types.is_null(value.type)
        if not binary:
            raise TypeError(f"{name} takes (value BINARY), got ({value.type})")
        return decode(_planned(*self), spans_of(value)).column


@lru_cache(256)
def _planned(schema: str, reader_schema: str, names_as_written: bool = False) -> ColumnPlan:
    return plan([parse(schema)], parse(reader_schema), names_as_written=names_as_written)


def typed(schema: Any, reader_schema: Any = None) -> Typed:
    """The decoder of a schema, by a reader's schema if one is given.

    SchemaError where one is no schema, the one cannot be read by the other, or no column can be made of it.
    """
    writer = text_of(schema)
    decoder = Typed(writer, writer if reader_schema is None else text_of(reader_schema))
    _planned(*decoder)
    return decoder


def value_of(payload: bytes, schema: Any, reader_schema: Any = None) -> Any:
    """One datum as Python: a record a dict, numbers, texts, dates and times as pyarrow gives them.

    ValueError where it cannot be read, with the code of the error.
    """
    decoded = decode(_planned(*typed(schema, reader_schema), True), spans_of(pa.array([payload], pa.binary())))
    if decoded.errors[0] != OK:
        raise ValueError(f"the payload of {len(payload)} bytes cannot be read: {decoded.reasons[0]}")
    return decoded.column.to_pylist(maps_as_pydicts="lossy")[0]


def encoded(column: pa.Array, schema: str) -> pa.Array:
    """BINARY: the rows as data of the schema."""
    return encode(column, _parsed(schema))


@lru_cache(256)
def _parsed(schema: str) -> Schema:
    return parse(schema)
