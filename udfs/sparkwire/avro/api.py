"""Decode and encode Avro payloads by their schemas: typed functions, typed rows, and structs to bytes.

    sparkwire.avro.register_function(spark, "order_of", schema)
    spark.sql("SELECT order_of(dbus_value(event)).total FROM events")

    rows = sparkwire.avro.rows(df, "event", "/schemas", wire_format="databus")

Column types are those of Spark's own ``from_avro``. A schema is a JSON text, or the result of ``json.loads``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparkwire.avro.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession


def register_function(spark: SparkSession, name: str, schema: Any, reader_schema: Any = None) -> None:
    """Register the SQL function ``name(value BINARY)`` in this session. It decodes one Avro datum to typed columns.

    The function returns a STRUCT for a record. A field whose value cannot be read is NULL, and so is a corrupt datum;
    ``avro_error`` returns the reason.

    Parameters
    ----------
    schema
        the writer's schema of the data
    reader_schema
        the schema of the result, ``schema`` by default. Avro's schema resolution applies, with its defaults, promotions and
        aliases. It converts a decimal, date, time or timestamp exactly from the writer's unit and scale, or returns NULL.

    Raises
    ------
    ValueError
        if a schema is invalid or recursive, or if the reader's schema cannot read the writer's.

    Examples
    --------
    >>> sparkwire.avro.register_function(spark, "order_of", schema)
    >>> spark.sql("SELECT order_of(dbus_value(event)).total FROM events")
    """
    from sparkwire.spark.rows import avro

    avro.register_function(spark, name, schema, reader_schema)


def decode(column: Column | str, schema: Any, reader_schema: Any = None) -> Column:
    """Decode Avro data to typed columns in DataFrame code. The result equals that of a function from ``register_function``.

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
    from sparkwire.spark.rows import avro

    return avro.decode(column, schema, reader_schema)


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
    from sparkwire.spark.rows import avro

    return avro.rows(df, column, schemas, reader_schema, by, keep_payload, wire_format, headers)


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
    from sparkwire.spark.rows import avro

    return avro.rows_by_type(df, column, schemas, by, keep_payload, wire_format, headers)


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
    from sparkwire.spark.rows import avro

    return avro.encode(struct, schema)


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
    from sparkwire.avro.typed_values import value_of

    return value_of(payload, schema, reader_schema)
