"""Avro payloads by their schemas: typed functions, typed rows, structs back to bytes.

    sparkwire.avro.register_function(spark, "order_of", schema)
    spark.sql("SELECT order_of(dbus_value(event)).total FROM events")

    rows = sparkwire.avro.rows(df, "event", "/schemas", wire_format="databus")

Column types are those of Spark's own ``from_avro``. Schemas are JSON texts, or what ``json.loads`` makes of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparkwire.avro.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession


def register_function(spark: SparkSession, name: str, schema: Any, reader_schema: Any = None) -> None:
    """Make ``name(value BINARY)`` a function in the SQL of this session: one Avro datum as typed columns.

    It returns a STRUCT for a record. A field whose value cannot be read is NULL, and so is a corrupt datum; ``avro_error`` says
    why.

    Parameters
    ----------
    schema
        that the data were written with
    reader_schema
        what the result is to be: Avro's schema resolution, with its defaults, promotions and aliases. A decimal, date, time or
        timestamp is converted from its writer's unit and scale, exactly; where that cannot be, it is NULL. By default ``schema``

    Raises
    ------
    ValueError
        where one is no schema, the one cannot be read by the other, or it is recursive.

    Examples
    --------
    >>> sparkwire.avro.register_function(spark, "order_of", schema)
    >>> spark.sql("SELECT order_of(dbus_value(event)).total FROM events")
    """
    from sparkwire.spark import avro

    avro.register_function(spark, name, schema, reader_schema)


def decode(column: Column | str, schema: Any, reader_schema: Any = None) -> Column:
    """Avro data as typed columns, for DataFrame code: what a function that ``register_function`` makes returns.

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
    from sparkwire.spark import avro

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
    """Typed columns where every row names its schema.

    Parameters
    ----------
    df
        a DataFrame, a batch or a stream
    column
        the name of a BINARY column: messages of the ``wire_format``, or bare Avro data
    schemas
        - a ``Registry``;
        - a mapping from numbers, or their texts, to schemas;
        - a folder of ``.avsc`` files: ``<id>.avsc``, or for Databus events of any name. These have the MD5 or CRC-32 of
          their schema's text, or a version (REPL_DBUS), as in ``<name>.<version>.avsc``;
        - a list of schemas, for Databus events, single objects and ``by``.
    reader_schema
        a record, whose fields the columns are; of another type a column ``value``. By default every field of all schemas, of
        the narrowest type that holds every version: the page "Avro payloads" has the rules
    by
        the name of a column that identifies the schema of bare Avro data: a key of the mapping, or with a folder or list a
        fingerprint.
    keep_payload
        whether the column stays in the result; a field of the same name replaces it
    wire_format
        how a message identifies its schema: ``confluent``, ``apicurio``, ``glue`` or another name of the page "Avro payloads".
    headers
        the name of a column with the headers of Kafka records, ARRAY<STRUCT<key, value>>, for ``confluent_header`` and
        ``apicurio``. For the column ``key``, the headers about keys count.

    Returns
    -------
    DataFrame
        the columns of ``df``, the fields, ``_schema_id_`` and ``_error_``. A name that is taken has ``_2``
        after it: the columns of ``df`` come first, then these two. ``_error_`` is NULL, ``UNKNOWN_SCHEMA``, the
        code of the event's own error, ``BAD_MAGIC`` for a message without the prefix, or that of ``avro_error``. A value that
        cannot be read is NULL, and ``_error_`` names its field: ``BAD_FIELD: lines[].price``. Every row stays.

    Raises
    ------
    ValueError
        where a schema or a default of the reader's is invalid.
    TypeError
        where the column is not BINARY, or ``schemas`` is none of these.

    The query fails with a clear error message if the column has another wire format: events for messages, or the other
    way round, or a hundred rows at once none of which is either.

    Examples
    --------
    >>> registry = sparkwire.avro.Registry.http("https://registry:8081")
    >>> sparkwire.avro.rows(messages.select("offset", "value"), "value", registry)
    """
    from sparkwire.spark import avro

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
    """A table for each type of a column that mixes them. The parameters are those of ``rows``.

    Each table reads ``df`` when it is asked for, and decodes its own messages: where there are many, ``df.persist()`` before.

    Returns
    -------
    dict
        by the full name of a type, by its kind if it has none: the columns of ``df``, the fields of its last schema, each
        of the narrowest type that holds every version, and ``_error_``. A type that is no record has one field, ``value``. Then
        ``UNKNOWN_SCHEMA``: the messages that name no schema known, with ``_schema_id_`` and ``_error_``; and
        ``TOMBSTONE``: the other columns of rows without a message.

    Raises
    ------
    ValueError, TypeError
        as ``rows``.

    Examples
    --------
    >>> tables = sparkwire.avro.rows_by_type(messages, "value", registry)
    >>> tables["shop.Order"].write.saveAsTable("orders")
    """
    from sparkwire.spark import avro

    return avro.rows_by_type(df, column, schemas, by, keep_payload, wire_format, headers)


def encode(struct: Column | str, schema: Any) -> Column:
    """Avro data out of a column, BINARY: the reverse of ``decode``.

    Fields are found by their names; one that is missing has to be nullable, as in Spark. NULL where the schema has no place
    for a value: a NULL without a branch for it, a symbol that the enum does not have, a number beyond its type.

    Raises
    ------
    ValueError
        where it is no schema, or the column cannot be written by it.

    Examples
    --------
    >>> orders.select(sparkwire.avro.encode(F.struct("id", "note", "count"), schema).alias("value"))
    """
    from sparkwire.spark import avro

    return avro.encode(struct, schema)


def to_python(payload: bytes, schema: Any, reader_schema: Any = None) -> Any:
    """One datum as a Python value, without Spark: a record is a dict.

    Raises
    ------
    ValueError
        where it cannot be read.

    Examples
    --------
    >>> sparkwire.avro.to_python(b"\\x02", "int")
    1
    """
    from sparkwire.avro.typed_values import value_of

    return value_of(payload, schema, reader_schema)
