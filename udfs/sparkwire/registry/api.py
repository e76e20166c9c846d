"""Typed rows of a column whose schemas a registry has, whatever their type."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sparkwire.avro.registry import Registry


def rows(
    df: DataFrame,
    column: str,
    registry: Registry,
    *,
    message: str | None = None,
    keep_payload: bool = True,
    wire_format: str = "confluent",
    headers: str | None = None,
) -> DataFrame:
    """Typed columns where every message identifies its schema in a registry, whatever the type of the schema.

    Avro is read as `sparkwire.avro.rows` reads it. JSON is read by Spark's ``from_json``: integers are BIGINT, numbers DOUBLE,
    objects STRUCT (MAP where the schema has no properties and one type for all), arrays ARRAY, and texts STRING. So is, as JSON,
    what has no one shape. Protobuf is read by Spark's ``from_protobuf``, of its package ``spark-protobuf``. JSON Schema and
    Protobuf need the extra ``registry``.

    A column may have messages of several types. Fields of the same name and type are then one column.

    Parameters
    ----------
    df
        a DataFrame, a batch or a stream
    column
        the name of a BINARY column of messages
    registry
        where the schemas are; for a stream with ``subjects``
    message
        the full name of the Protobuf message to read; by default the first message of the last schema. The last schema that has
        the message describes it. Messages of another name are ``BAD_FIELD``.
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
        the columns of ``df``, the fields, ``_schema_id_`` and ``_error_``: NULL, ``UNKNOWN_SCHEMA``, ``BAD_MAGIC`` for a message
        that identifies no schema, ``BAD_FIELD`` for what is not as its schema says, or the code of ``avro_error``. A name that is
        taken has ``_2`` after it. Every row stays.

    Raises
    ------
    ValueError
        where a schema is invalid, or no schema has the ``message``.
    TypeError
        where the column is not BINARY.
    AnalysisException
        Spark's own, where a schema is Protobuf and its package is missing.

    Examples
    --------
    >>> registry = sparkwire.avro.Registry.http("https://registry:8081")
    >>> sparkwire.registry.rows(messages.select("offset", "value"), "value", registry)
    """
    from sparkwire.spark import registered_rows

    return registered_rows.rows(df, column, registry, message, keep_payload, wire_format, headers)
