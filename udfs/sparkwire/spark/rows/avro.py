"""Avro in Spark: typed functions for one schema, typed rows for many schemas, and encoding of structs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StructType

from sparkwire.avro.payloads import Payloads, ids_as_text
from sparkwire.avro.registry import Registry
from sparkwire.avro.schema import text_of
from sparkwire.avro.schemas import UNKNOWN_SCHEMA, Schemas, schemas_of
from sparkwire.avro.typed_rows import LiveReader, RowsReader, by_name, check_one_type
from sparkwire.avro.typed_values import Typed, encoded, typed
from sparkwire.core.column_names import distinct_names
from sparkwire.databus.event_payloads import EVENT_COLUMNS, is_data, of_events, result_of
from sparkwire.spark.arrow_types import from_arrow_schema, from_arrow_type
from sparkwire.spark.frames import is_name_in, with_distinct_names
from sparkwire.spark.functions.udf import Call, best_interface, session_time_zone
from sparkwire.spark.rows.payload_column import Arrays, PayloadColumn, Taken

_ERROR: Final = pa.field("_error_", pa.string())
_SCHEMA_ID: Final = pa.field("_schema_id_", pa.string())
TOMBSTONE: Final = "TOMBSTONE"
"""the key in the result of ``rows_by_type`` for messages without a payload"""
_DESCRIPTION: Final = [pa.field(f"_{name}_", result_of(f"dbus_{name}", pa.nulls(0)).type) for name in EVENT_COLUMNS]


class TypedCall(Call):
    """The callable of a worker for a function of one schema. Spark pickles only texts; the worker compiles the program."""

    def __init__(self, name: str, decoder: Typed) -> None:
        super().__init__(name)
        self.decoder = decoder

    def result(self, value: Any) -> Any:
        return self.decoder.decode(value, self.__name__)


class PandasTypedCall(TypedCall):
    """The callable for the pandas interface."""

    def result(self, value: Any) -> Any:
        from sparkwire.spark.functions.series import to_pandas  # workers of the Arrow interface do not load pandas

        return to_pandas(super().result(pa.Array.from_pandas(value)))


def register_function(spark: SparkSession, name: str, schema: Any, reader_schema: Any) -> None:
    """See ``sparkwire.avro.register_function``."""
    spark.udf.register(name, _typed_udf(name, schema, reader_schema, spark))


def decode(column: Column | str, schema: Any, reader_schema: Any) -> Column:
    """See ``sparkwire.avro.decode``."""
    decoded: Column = _typed_udf("decode", schema, reader_schema)(column)
    return decoded


def _typed_udf(name: str, schema: Any, reader_schema: Any, spark: SparkSession | None = None) -> Any:
    decoder = typed(schema, reader_schema)
    returns = from_arrow_type(decoder.type)
    if best_interface(spark) == "arrow":
        return F.arrow_udf(TypedCall(name, decoder), returns)
    return F.pandas_udf(PandasTypedCall(name, decoder), returns)


def rows(
    df: DataFrame,
    column: str,
    schemas: Any,
    reader_schema: Any,
    by: str | None,
    keep_payload: bool,
    wire_format: str,
    headers: str | None,
) -> DataFrame:
    """See ``sparkwire.avro.rows``."""
    messages = PayloadColumn.of(df, column, Registry.of(schemas), by, wire_format, headers)
    if reader_schema is not None and isinstance(schemas, str | Path):
        check_one_type(messages.registry.schemas(()), reader_schema)
    read = messages.reader(reader_schema)
    new_columns = _new_columns(messages, read, [], [_SCHEMA_ID, _ERROR])
    payloads, check = messages.payloads, messages.check

    def take(columns: Arrays) -> Taken:
        messages = payloads(columns)
        fields, errors = read.rows(messages)
        check(columns[0], errors)
        return None, [*fields, ids_as_text(messages.ids), errors]

    return messages.map_rows(new_columns, take, keep_payload=keep_payload and not is_name_in(column, new_columns.names))


def rows_by_type(
    df: DataFrame,
    column: str,
    schemas: Any,
    by: str | None,
    keep_payload: bool,
    wire_format: str,
    headers: str | None,
) -> dict[str, DataFrame]:
    """See ``sparkwire.avro.rows_by_type``."""
    messages = PayloadColumn.of(df, column, Registry.of(schemas), by, wire_format, headers)
    known = messages.schemas()
    readers = by_name(known, framed=messages.framed)
    of_types = {name: _of_type(messages, read, keep_payload) for name, read in readers.items()}
    tombstones = df.where(F.col(column).isNull()).drop(column)
    return of_types | {UNKNOWN_SCHEMA: _of_no_type(messages, known), TOMBSTONE: tombstones}


def _new_columns(
    messages: PayloadColumn, read: RowsReader | LiveReader, before: list[pa.Field], after: list[pa.Field]
) -> StructType:
    """A reader's columns, between ``before`` and ``after``.

    If names collide, the DataFrame's columns keep theirs, then ``before`` and ``after``. The reader's columns get new names.
    """
    kept = messages.other_names
    names = distinct_names([field.name for field in (*before, *after)], kept)
    added = [field.with_name(name) for field, name in zip((*before, *after), names, strict=True)]
    fields = read.fields_renamed([*kept, *names])
    return from_arrow_schema(pa.schema([*added[: len(before)], *fields, *added[len(before) :]]))


def _of_type(messages: PayloadColumn, read: RowsReader, keep_payload: bool) -> DataFrame:
    """The messages of one type."""
    payloads = messages.payloads

    def take(columns: Arrays) -> Taken:
        messages = payloads(columns)
        chosen_rows = pa.array(read.schemas.chosen(messages.ids) >= 0)
        fields, errors = read.rows(Payloads(*(part.filter(chosen_rows) for part in messages)))
        return chosen_rows, [*fields, errors]

    new_columns = _new_columns(messages, read, [], [_ERROR])
    keep_payload = keep_payload and not is_name_in(messages.column, new_columns.names)
    return messages.map_rows(new_columns, take, keep_payload=keep_payload, ids=read.schemas.keys)


def _of_no_type(messages: PayloadColumn, known: Schemas) -> DataFrame:
    """The messages with a payload whose schema is unknown."""
    new_columns = with_distinct_names(from_arrow_schema(pa.schema([_SCHEMA_ID, _ERROR])), messages.df.columns)
    payloads, check = messages.payloads, messages.check

    def take(columns: Arrays) -> Taken:
        messages = payloads(columns)
        chosen_rows = pc.and_(pa.array(known.chosen(messages.ids) < 0), columns[0].is_valid())
        errors = pc.coalesce(messages.errors, known.why_unknown(messages.ids))
        check(columns[0], pc.if_else(chosen_rows, errors, None))
        return chosen_rows, [ids_as_text(messages.ids).filter(chosen_rows), errors.filter(chosen_rows)]

    return messages.map_rows(new_columns, take, keep_payload=True)


def events_by_source(df: DataFrame, column: str, schemas: Any) -> dict[str, DataFrame]:
    """See ``sparkwire.databus.rows_by_source``."""
    known = schemas_of(schemas)
    events = PayloadColumn.of(df.select(column), column, Registry.of(schemas), None, "databus", None)
    of_sources = {name: _of_source(events, read) for name, read in by_name(known).items()}
    return of_sources | {UNKNOWN_SCHEMA: _of_no_source(events, known)}


def _of_source(events: PayloadColumn, read: RowsReader) -> DataFrame:
    """The events of one source."""

    def take(columns: Arrays) -> Taken:
        chosen_rows = pa.array(read.schemas.chosen(of_events(columns[0]).ids) >= 0)
        chosen = columns[0].filter(chosen_rows)
        fields, errors = read.rows(of_events(chosen))
        return chosen_rows, [*_described(chosen), *fields, errors]

    new_columns = _new_columns(events, read, _DESCRIPTION, [_ERROR])
    return events.map_rows(new_columns, take, keep_payload=False)


def _of_no_source(events: PayloadColumn, known: Schemas) -> DataFrame:
    """The data events whose schema is unknown."""

    def take(columns: Arrays) -> Taken:
        messages = of_events(columns[0])
        chosen_rows = pa.array((known.chosen(messages.ids) < 0) & is_data(columns[0]))
        errors = pc.coalesce(messages.errors.filter(chosen_rows), pa.scalar(UNKNOWN_SCHEMA))
        return chosen_rows, [*_described(columns[0].filter(chosen_rows)), errors]

    new_columns = from_arrow_schema(pa.schema([*_DESCRIPTION, _ERROR]))
    return events.map_rows(new_columns, take, keep_payload=False)


def _described(events: pa.Array) -> list[pa.Array]:
    return [result_of(f"dbus_{name}", events) for name in EVENT_COLUMNS]


class EncodeCall(Call):
    """The callable of a worker for ``encode``."""

    def __init__(self, schema: str) -> None:
        super().__init__("encode")
        self.schema = schema

    def result(self, column: Any) -> Any:
        return encoded(column, self.schema)


class PandasEncodeCall(EncodeCall):
    """The callable for the pandas interface."""

    def result(self, column: Any) -> Any:
        from sparkwire.spark.functions import series

        place = series.ArgumentPlace(self.__name__, "the column", session_time_zone())
        return series.to_pandas(super().result(series.column(column, typed(self.schema).type, place)))


def encode(struct: Column | str, schema: Any) -> Column:
    """See ``sparkwire.avro.encode``."""
    text = text_of(schema)
    udf, call = (F.arrow_udf, EncodeCall) if best_interface() == "arrow" else (F.pandas_udf, PandasEncodeCall)
    column: Column = udf(call(text), BinaryType())(struct)
    return column
