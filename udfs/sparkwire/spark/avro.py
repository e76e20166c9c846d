"""Avro in Spark: a typed function of one schema, typed rows of many, and structs back to bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type
from pyspark.sql.types import BinaryType, StructType

from sparkwire.avro.payloads import Payloads, ids_as_text
from sparkwire.avro.registry import Registry
from sparkwire.avro.schema import text_of
from sparkwire.avro.schemas import UNKNOWN_SCHEMA, Schemas, schemas_of
from sparkwire.avro.typed import Typed, encoded, typed
from sparkwire.avro.typed_rows import Reader, by_name
from sparkwire.databus.payloads import EVENT_COLUMNS, ask, is_data, of_events
from sparkwire.spark.frames import check_binary, check_names, is_name_in, others
from sparkwire.spark.memory import told_of_memory
from sparkwire.spark.messages import Messages
from sparkwire.spark.udf import best_interface, session_time_zone

Batches = Iterator[pa.RecordBatch]

_ERROR: Final = pa.field("_error_", pa.string())
_SCHEMA_ID: Final = pa.field("_schema_id_", pa.string())
TOMBSTONE: Final = "TOMBSTONE"
"""where ``rows_by_type`` puts messages without a payload"""
_DESCRIPTION: Final = [pa.field(f"_{name}_", ask(f"dbus_{name}", pa.nulls(0)).type) for name in EVENT_COLUMNS]


class TypedCall:
    """What a worker calls for a function of one schema. Plain texts go there; the program is made there."""

    def __init__(self, name: str, decoder: Typed) -> None:
        self.__name__ = name
        self.decoder = decoder

    # Unannotated: PySpark would read hints as the signature, and refuse a callable object's.
    def __call__(self, value):  # type: ignore[no-untyped-def]
        with told_of_memory(self.__name__):
            return self.decoder.decode(value, self.__name__)


class PandasTypedCall(TypedCall):
    """The same over pandas."""

    def __call__(self, value):  # type: ignore[no-untyped-def]
        from sparkwire.spark.series import to_pandas  # a worker of the Arrow interface need not load pandas

        with told_of_memory(self.__name__):
            return to_pandas(self.decoder.decode(pa.Array.from_pandas(value), self.__name__))


def register(spark: SparkSession, name: str, schema: Any, reader_schema: Any) -> None:
    """See ``sparkwire.avro.register``."""
    decoder = typed(schema, reader_schema)
    returns = from_arrow_type(decoder.type)
    if best_interface(spark) == "arrow":
        spark.udf.register(name, F.arrow_udf(TypedCall(name, decoder), returns))
    else:
        spark.udf.register(name, F.pandas_udf(PandasTypedCall(name, decoder), returns))


def rows(
    df: DataFrame,
    column: str,
    schemas: Any,
    reader_schema: Any,
    by: str | None,
    keep_payload: bool,
    wire_format: str | None,
    headers: str | None,
) -> DataFrame:
    """See ``sparkwire.avro.rows``."""
    check_binary(df, column)
    messages = Messages.of(df, column, Registry.of(schemas), by, wire_format, headers)
    read = messages.reader(reader_schema)
    told = [_SCHEMA_ID] if isinstance(schemas, Registry) else []
    own = from_arrow_schema(pa.schema([*read.fields, *told, _ERROR]))
    kept, kept_columns = others(df, column, own)
    given = messages.columns
    names = df.columns if keep_payload and not is_name_in(column, own) else kept.names
    # The payload goes to the worker once, and comes back in its place.
    places = [len(given) + kept.names.index(name) if name in kept.names else 0 for name in names]
    payloads, check = messages.payloads, messages.check

    def decode(batches: Batches) -> Batches:
        for batch in batches:
            with told_of_memory("rows"):
                found = payloads(batch.columns)
                columns, errors = read.rows(found)
                check(batch.column(0), errors)
                ids = [ids_as_text(found.ids)] if told else []
            beside = [batch.column(place) for place in places]
            yield pa.RecordBatch.from_arrays([*beside, *columns, *ids, errors], names=[*names, *own.names])

    chosen = df.select(*given, *kept_columns)
    return chosen.mapInArrow(decode, StructType([*(df.schema[name] for name in names), *own]))


def rows_by_type(
    df: DataFrame, column: str, schemas: Any, by: str | None, wire_format: str | None, headers: str | None
) -> dict[str, DataFrame]:
    """See ``sparkwire.avro.rows_by_type``."""
    check_binary(df, column)
    messages = Messages.of(df, column, Registry.of(schemas), by, wire_format, headers)
    known = messages.schemas()
    of_types = {name: _of_type(messages, name, read) for name, read in by_name(known).items()}
    tombstones = df.where(F.col(column).isNull()).drop(column)
    return of_types | {UNKNOWN_SCHEMA: _of_no_type(messages, known), TOMBSTONE: tombstones}


def _of_type(messages: Messages, name: str, read: Reader) -> DataFrame:
    """The messages of one type."""
    own = from_arrow_schema(pa.schema([*read.fields, _ERROR]))
    kept, kept_columns = others(messages.df, messages.column, own)
    given, payloads = messages.columns, messages.payloads
    width = len(given)

    def decode(batches: Batches) -> Batches:
        for batch in batches:
            with told_of_memory("rows_by_type"):
                found = payloads(batch.columns)
                mine = pa.array(read.schemas.chosen(found.ids) >= 0)
                columns, errors = read.rows(Payloads(*(part.filter(mine) for part in found)))
            beside = [part.filter(mine) for part in batch.columns[width:]]
            yield pa.RecordBatch.from_arrays([*beside, *columns, errors], names=[*kept.names, *own.names])

    some = messages.with_ids(read.schemas.keys)
    return some.select(*given, *kept_columns).mapInArrow(decode, StructType([*kept, *own]))


def _of_no_type(messages: Messages, known: Schemas) -> DataFrame:
    """The messages that have a payload, and name no schema that is known."""
    own = from_arrow_schema(pa.schema([_SCHEMA_ID, _ERROR]))
    check_names(messages.df.schema, own)
    kept, kept_columns = others(messages.df, messages.column, own)
    names = messages.df.columns
    given, payloads, check = messages.columns, messages.payloads, messages.check
    places = [len(given) + kept.names.index(name) if name in kept.names else 0 for name in names]

    def decode(batches: Batches) -> Batches:
        for batch in batches:
            with told_of_memory("rows_by_type"):
                found = payloads(batch.columns)
                none = (known.chosen(found.ids) < 0) & np.asarray(batch.column(0).is_valid())
                mine = pa.array(none)
                errors = pc.coalesce(found.errors, pa.scalar(UNKNOWN_SCHEMA))
                check(batch.column(0), pc.if_else(mine, errors, None))
                told = [ids_as_text(found.ids).filter(mine), errors.filter(mine)]
            beside = [batch.column(place).filter(mine) for place in places]
            yield pa.RecordBatch.from_arrays([*beside, *told], names=[*names, *own.names])

    chosen = messages.df.select(*given, *kept_columns)
    return chosen.mapInArrow(decode, StructType([*messages.df.schema, *own]))


def events_by_source(df: DataFrame, schemas: Any, column: str) -> dict[str, DataFrame]:
    """See ``sparkwire.databus.rows``."""
    check_binary(df, column)
    events = df.select(F.col(column).alias("event"))
    of_sources = {name: _events(events, read) for name, read in by_name(schemas_of(schemas)).items()}
    return of_sources | {UNKNOWN_SCHEMA: _unknown_events(events, schemas_of(schemas))}


def _events(events: DataFrame, read: Reader) -> DataFrame:
    """The events of one source."""
    schema = pa.schema([*_DESCRIPTION, *read.fields, _ERROR])
    check_names(from_arrow_schema(pa.schema(read.fields)), from_arrow_schema(pa.schema([*_DESCRIPTION, _ERROR])))

    def decode(batches: Batches) -> Batches:
        for batch in batches:
            mine = read.schemas.chosen(of_events(batch.column(0)).ids) >= 0
            chosen = batch.column(0).filter(pa.array(mine))
            columns, errors = read.rows(of_events(chosen))
            yield pa.RecordBatch.from_arrays([*_described(chosen), *columns, errors], schema=schema)

    return events.mapInArrow(decode, from_arrow_schema(schema))


def _unknown_events(events: DataFrame, schemas: Schemas) -> DataFrame:
    """The data events whose schema is not known."""
    schema = pa.schema([*_DESCRIPTION, _ERROR])

    def decode(batches: Batches) -> Batches:
        for batch in batches:
            payloads = of_events(batch.column(0))
            mine = (schemas.chosen(payloads.ids) < 0) & is_data(batch.column(0))
            chosen = batch.column(0).filter(pa.array(mine))
            errors = pc.coalesce(payloads.errors.filter(pa.array(mine)), pa.scalar(UNKNOWN_SCHEMA))
            yield pa.RecordBatch.from_arrays([*_described(chosen), errors], schema=schema)

    return events.mapInArrow(decode, from_arrow_schema(schema))


def _described(events: pa.Array) -> list[pa.Array]:
    return [ask(f"dbus_{name}", events) for name in EVENT_COLUMNS]


class EncodeCall:
    """What a worker calls for ``encode``."""

    def __init__(self, schema: str) -> None:
        self.__name__ = "encode"
        self.schema = schema

    def __call__(self, column):  # type: ignore[no-untyped-def]
        with told_of_memory(self.__name__):
            return encoded(column, self.schema)


class PandasEncodeCall(EncodeCall):
    """The same over pandas."""

    def __call__(self, column):  # type: ignore[no-untyped-def]
        from sparkwire.spark import series

        place = series.Place(self.__name__, "the column", session_time_zone())
        with told_of_memory(self.__name__):
            given = series.column(column, typed(self.schema).type, place)
            return series.to_pandas(encoded(given, self.schema))


def encode(struct: Column | str, schema: Any) -> Column:
    """See ``sparkwire.avro.encode``."""
    text = text_of(schema)
    if best_interface() == "arrow":
        found: Column = F.arrow_udf(EncodeCall(text), BinaryType())(struct)
    else:
        found = F.pandas_udf(PandasEncodeCall(text), BinaryType())(struct)
    return found
