"""Avro in Spark: a typed function of one schema, typed rows of many, and structs back to bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type
from pyspark.sql.types import BinaryType, StructType

from sparkwire.avro.registry import UNKNOWN_SCHEMA, Registry, registry
from sparkwire.avro.schema import text_of
from sparkwire.avro.typed import Typed, encoded, typed
from sparkwire.avro.typed_rows import Reader, by_source, of_column, reader
from sparkwire.catalogue.wire_formats import WIRE_FORMATS, check_fit
from sparkwire.databus.payloads import EVENT_COLUMNS, ask, is_data, of_events
from sparkwire.spark.frames import check_binary, check_names, is_name_in, others
from sparkwire.spark.memory import told_of_memory
from sparkwire.spark.udf import best_interface, session_time_zone

Batches = Iterator[pa.RecordBatch]

_ERROR: Final = pa.field("_error_", pa.string())
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


def rows(df: DataFrame, column: str, schemas: Any, reader_schema: Any, by: str | None, keep_payload: bool) -> DataFrame:
    """See ``sparkwire.avro.rows``."""
    read = reader(schemas, reader_schema)
    wire = "confluent" if isinstance(schemas, Mapping) else "databus"
    check_binary(df, column)
    own = from_arrow_schema(pa.schema([*read.fields, _ERROR]))
    kept, kept_columns = others(df, column, own)
    named = [] if by is None else [F.col(by).alias("by")]
    given = 1 + len(named)
    names = df.columns if keep_payload and not is_name_in(column, own) else kept.names
    # The payload goes to the worker once, and comes back in its place.
    places = [given + kept.names.index(name) if name in kept.names else 0 for name in names]

    def decode(batches: Batches) -> Batches:
        for batch in batches:
            with told_of_memory("rows"):
                found = of_column(*batch.columns[:2]) if by else WIRE_FORMATS[wire].payloads(batch.column(0))
                columns, errors = read.rows(found)
                if not by:
                    check_fit(wire, batch.column(0), errors)
            beside = [batch.column(place) for place in places]
            yield pa.RecordBatch.from_arrays([*beside, *columns, errors], names=[*names, *own.names])

    chosen = df.select(F.col(column).alias("value"), *named, *kept_columns)
    return chosen.mapInArrow(decode, StructType([*(df.schema[name] for name in names), *own]))


def events_by_source(df: DataFrame, schemas: Any, column: str) -> dict[str, DataFrame]:
    """See ``sparkwire.databus.rows``."""
    check_binary(df, column)
    events = df.select(F.col(column).alias("event"))
    of_sources = {name: _events(events, read) for name, read in by_source(schemas).items()}
    return of_sources | {UNKNOWN_SCHEMA: _unknown_events(events, registry(schemas))}


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


def _unknown_events(events: DataFrame, schemas: Registry) -> DataFrame:
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
