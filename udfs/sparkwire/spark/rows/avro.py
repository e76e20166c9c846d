"""Avro in Spark: typed functions for one schema, typed rows for many schemas, and encoding of structs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from sparkwire.avro.schemas import UNKNOWN_SCHEMA, Schemas
from sparkwire.avro.typed_rows import LiveReader, RowsReader, by_name, check_one_type
from sparkwire.avro.typed_values import Typed, encoded, typed
from sparkwire.core.names import distinct_names
from sparkwire.databus.event_payloads import (
    EVENT_COLUMNS,
    by_source,
    is_data,
    of_events,
    result_of,
    schemas_of_events,
)
from sparkwire.spark.frames import from_arrow_schema, from_arrow_type, is_name_in, with_distinct_names
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


def register_function(spark: SparkSession, name: str, schema: Any, reader_schema: Any = None) -> None:
    """Register the SQL function ``name(value BINARY)`` in this session. It decodes one Avro datum to typed columns.

    The function returns a STRUCT for a record. A field whose value cannot be read is NULL, and so is a corrupt datum. A second
    function, ``name_error(value BINARY)``, returns the reason: a code of ``avro_error``, and the fields whose value does not fit
    ``reader_schema``, such as ``BAD_FIELD: total, lines[].price``. It returns NULL for data without an error.

    Parameters
    ----------
    schema
        the writer's schema of the data
    reader_schema
        the schema of the result, ``schema`` by default. Avro's schema resolution applies, with its defaults, promotions and
        aliases. It converts a decimal, date, time or timestamp exactly from the writer's unit and scale. If it cannot, the value
        is NULL, and ``name_error`` names its field.

    Raises
    ------
    ValueError
        if a schema is invalid or recursive, or if the reader's schema cannot read the writer's.

    Examples
    --------
    >>> sparkwire.avro.register_function(spark, "order_of", schema)
    >>> spark.sql("SELECT order_of(dbus_value(event)).total, order_of_error(dbus_value(event)) FROM events")
    """
    spark.udf.register(name, _typed_udf(name, typed(schema, reader_schema), spark))
    error = f"{name}_error"
    spark.udf.register(error, _typed_udf(error, typed(schema, reader_schema, reasons=True), spark))


def decode(column: Column | str, schema: Any, reader_schema: Any = None) -> Column:
    """Decode Avro data to typed columns in DataFrame code. The result equals that of a function from ``register_function``.

    A value that cannot be read is NULL, and ``decode_error`` returns the reason.

    Parameters
    ----------
    column
        a BINARY column, or its name
    schema, reader_schema
        as for ``register_function``

    Raises
    ------
    ValueError
        as ``register_function``.

    Examples
    --------
    >>> events.select(sparkwire.avro.decode(W.dbus_value("event"), schema).alias("order"))
    """
    decoded: Column = _typed_udf("decode", typed(schema, reader_schema))(column)
    return decoded


def decode_error(column: Column | str, schema: Any, reader_schema: Any = None) -> Column:
    """Return why ``decode`` gives NULL for a datum or for values in it.

    Parameters
    ----------
    column, schema, reader_schema
        as for ``decode``

    Returns
    -------
    Column
        a STRING: a code of ``avro_error``, and the fields whose value does not fit ``reader_schema``, such as
        ``BAD_FIELD: total, lines[].price``. NULL for data without an error

    Raises
    ------
    ValueError
        as ``register_function``.

    Examples
    --------
    >>> events.where(sparkwire.avro.decode_error("value", schema, reader_schema).isNotNull())
    """
    reasons: Column = _typed_udf("decode_error", typed(schema, reader_schema, reasons=True))(column)
    return reasons


def _typed_udf(name: str, decoder: Typed, spark: SparkSession | None = None) -> Any:
    returns = from_arrow_type(decoder.type)
    if best_interface(spark) == "arrow":
        return F.arrow_udf(TypedCall(name, decoder), returns)
    return F.pandas_udf(PandasTypedCall(name, decoder), returns)


def rows(
    df: DataFrame,
    column: str,
    schemas: Registry | str | Path | Iterable[Any] | Mapping[Any, Any],
    reader_schema: Any = None,
    *,
    by: str | None = None,
    keep_payload: bool = True,
    wire_format: str = "confluent",
    headers: str | None = None,
) -> DataFrame:
    """Decode a column to typed columns. Each row identifies its own schema.

    Parameters
    ----------
    df
        a DataFrame, a batch or a stream
    column
        the name of a BINARY column: messages of the ``wire_format``, or bare Avro data
    schemas
        - a ``Registry``;
        - a mapping from ids (numbers, or these as strings) to schemas;
        - a folder of files ``<id>.avsc``. For Databus events, the files may have any name: events contain the MD5 or CRC-32
          of the schema's text, or (REPL_DBUS) the version in ``<name>.<version>.avsc``;
        - a list of schemas, for Databus events, single objects and ``by``.
    reader_schema
        a record schema: its fields become the columns. A schema of another type gives one column, ``value``. By default, the
        columns are all fields of all schemas, with the narrowest type that holds every version. The page "Avro payloads" has
        the rules
    by
        the name of a column that identifies the schema of bare Avro data. It contains keys of the mapping, or fingerprints if
        ``schemas`` is a folder or a list
    keep_payload
        whether the column stays in the result; a field of the same name replaces it
    wire_format
        how a message identifies its schema: ``confluent``, ``apicurio``, ``glue`` or another name from the page "Avro payloads"
    headers
        the name of a column with the headers of Kafka records, ARRAY<STRUCT<key, value>>, for ``confluent_header`` and
        ``apicurio``. If ``column`` is ``key``, the headers about keys apply

    Returns
    -------
    DataFrame
        the columns of ``df``, the fields, ``_schema_id_`` and ``_error_``. If a field's name is one of the other columns', it
        gets the suffix ``_2``. ``_error_`` is NULL or an error code: ``UNKNOWN_SCHEMA``, the code of the event's own error,
        ``BAD_MAGIC`` for a message without the header, or a code of ``avro_error``. A value that cannot be read is NULL, and
        ``_error_`` names its field: ``BAD_FIELD: lines[].price``. No row is dropped.

    Raises
    ------
    ValueError
        if a schema, or a default in the reader's schema, is invalid.
    TypeError
        if the column is not BINARY, or ``schemas`` has another type.

    The query fails with a clear error message if the column has another wire format. Examples are events instead of messages,
    messages instead of events, or a batch of at least a hundred rows without a single message or event.

    Examples
    --------
    >>> registry = sparkwire.avro.Registry.http("https://registry:8081")
    >>> sparkwire.avro.rows(messages.select("offset", "value"), "value", registry)
    """
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
    schemas: Registry | str | Path | Iterable[Any] | Mapping[Any, Any],
    *,
    by: str | None = None,
    keep_payload: bool = True,
    wire_format: str = "confluent",
    headers: str | None = None,
) -> dict[str, DataFrame]:
    """Split a column of several types into one DataFrame for each type. The parameters are those of ``rows``.

    Each query of a table reads ``df`` and decodes the messages of that type. If there are many messages, call ``df.persist()``
    first.

    Returns
    -------
    dict
        DataFrames by the full name of the type, or by its kind if it has no name. Columns: those of ``df``, the fields of the
        type's last schema, and ``_error_``. Each field has the narrowest type that holds every version. A type that is not a
        record has one field, ``value``. Two more keys: ``UNKNOWN_SCHEMA`` has the messages whose schema is unknown, with
        ``_schema_id_`` and ``_error_``; ``TOMBSTONE`` has the other columns of the rows without a message.

    Raises
    ------
    ValueError, TypeError
        as ``rows``.

    Examples
    --------
    >>> tables = sparkwire.avro.rows_by_type(messages, "value", registry)
    >>> tables["shop.Order"].write.saveAsTable("orders")
    """
    messages = PayloadColumn.of(df, column, Registry.of(schemas), by, wire_format, headers)
    schemas = messages.schemas()
    readers = by_name(schemas, framed=messages.framed)
    of_types = {name: _of_type(messages, read, keep_payload) for name, read in readers.items()}
    tombstones = df.where(F.col(column).isNull()).drop(column)
    return of_types | {UNKNOWN_SCHEMA: _of_no_type(messages, schemas), TOMBSTONE: tombstones}


def _new_columns(
    messages: PayloadColumn, read: RowsReader | LiveReader, before: list[pa.Field], after: list[pa.Field]
) -> StructType:
    """A reader's columns, between ``before`` and ``after``.

    If names collide, the DataFrame's columns keep theirs, then ``before`` and ``after``. The reader's columns get new names.
    """
    other_names = messages.other_names
    names = distinct_names([field.name for field in (*before, *after)], other_names)
    added = [field.with_name(name) for field, name in zip((*before, *after), names, strict=True)]
    fields = read.fields_renamed([*other_names, *names])
    return from_arrow_schema(pa.schema([*added[: len(before)], *fields, *added[len(before) :]]))


def _of_type(messages: PayloadColumn, read: RowsReader, keep_payload: bool) -> DataFrame:
    """The messages of one type."""
    payloads = messages.payloads

    def take(columns: Arrays) -> Taken:
        messages = payloads(columns)
        chosen_rows = pa.array(read.selected(messages))
        fields, errors = read.rows(Payloads(*(part.filter(chosen_rows) for part in messages)))
        return chosen_rows, [*fields, errors]

    new_columns = _new_columns(messages, read, [], [_ERROR])
    keep_payload = keep_payload and not is_name_in(messages.column, new_columns.names)
    return messages.map_rows(new_columns, take, keep_payload=keep_payload, ids=read.schemas.keys)


def _of_no_type(messages: PayloadColumn, schemas: Schemas) -> DataFrame:
    """The messages with a payload whose schema is unknown."""
    new_columns = with_distinct_names(from_arrow_schema(pa.schema([_SCHEMA_ID, _ERROR])), messages.df.columns)
    payloads, check = messages.payloads, messages.check

    def take(columns: Arrays) -> Taken:
        messages = payloads(columns)
        chosen_rows = pc.and_(pa.array(schemas.chosen(messages.ids) < 0), columns[0].is_valid())
        errors = pc.coalesce(messages.errors, schemas.why_unknown(messages.ids))
        check(columns[0], pc.if_else(chosen_rows, errors, None))
        return chosen_rows, [ids_as_text(messages.ids).filter(chosen_rows), errors.filter(chosen_rows)]

    return messages.map_rows(new_columns, take, keep_payload=True)


def rows_by_source(
    df: DataFrame, column: str, schemas: str | Path | Iterable[Any] | Mapping[Any, Any] | Registry
) -> dict[str, DataFrame]:
    """Return typed rows of events: for each source a DataFrame with the payload's fields as columns.

    Parameters
    ----------
    df
        a DataFrame, a batch or a stream
    column
        the BINARY column of events
    schemas
        a folder of ``.avsc`` files, a list of schemas, a mapping from fingerprints or versions to schemas, or a `Registry`, as
        for `sparkwire.avro.rows`. A source is the full name of a record, without the version of ``Person_V2``. The last schema
        of a source is the reader's schema

    Returns
    -------
    dict[str, DataFrame]
        by source: ``_sequence_``, ``_timestamp_``, ``_src_id_``, ``_opcode_`` and ``_key_`` of the event, the fields, and
        ``_error_``, as in `sparkwire.avro.rows`. The key ``UNKNOWN_SCHEMA`` has the data events with an unknown schema, without
        fields. No DataFrame has events of other sources or control events.

    Raises
    ------
    ValueError
        if a schema is invalid, or the last schema of its source cannot read its data.
    TypeError
        if the column is not BINARY.

    Examples
    --------
    >>> tables = sparkwire.databus.rows_by_source(events.where("status = 'OK'"), "event", "/schemas")
    >>> tables["com.shop.Orders"].where("_opcode_ = 'DELETE'")
    """
    readable = schemas_of_events(schemas)
    events = PayloadColumn.of(df.select(column), column, Registry.of(schemas), None, "databus", None)
    of_sources = {name: _of_source(events, read) for name, read in by_source(readable).items()}
    return of_sources | {UNKNOWN_SCHEMA: _of_no_source(events, readable)}


def _of_source(events: PayloadColumn, read: RowsReader) -> DataFrame:
    """The events of one source."""

    def take(columns: Arrays) -> Taken:
        chosen_rows = pa.array(read.selected(of_events(columns[0])))
        chosen = columns[0].filter(chosen_rows)
        fields, errors = read.rows(of_events(chosen))
        return chosen_rows, [*_described(chosen), *fields, errors]

    new_columns = _new_columns(events, read, _DESCRIPTION, [_ERROR])
    return events.map_rows(new_columns, take, keep_payload=False)


def _of_no_source(events: PayloadColumn, readable: Schemas) -> DataFrame:
    """The data events whose schema is unknown."""

    def take(columns: Arrays) -> Taken:
        messages = of_events(columns[0])
        chosen_rows = pa.array((readable.chosen(messages.ids) < 0) & is_data(columns[0]))
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
    """Encode a column as Avro data, BINARY. This is the reverse of ``decode``.

    ``encode`` matches fields by name; a missing field must be nullable, as in Spark. A row is NULL if the schema cannot hold a
    value: a NULL where the schema has no null branch, an unknown enum symbol, or a number out of the type's range.

    Raises
    ------
    ValueError
        if the schema is invalid, or the column's type does not match it.

    Examples
    --------
    >>> orders.select(sparkwire.avro.encode(F.struct("id", "note", "count"), schema).alias("value"))
    """
    text = text_of(schema)
    udf, call = (F.arrow_udf, EncodeCall) if best_interface() == "arrow" else (F.pandas_udf, PandasEncodeCall)
    column: Column = udf(call(text), BinaryType())(struct)
    return column
