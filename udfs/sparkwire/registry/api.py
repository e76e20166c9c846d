"""Typed rows from a column whose schemas, of any type, are in a registry."""

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
    """Decode a column to typed columns. Each message identifies its schema, of any type, in a registry.

    `sparkwire.avro.rows` decodes Avro. Spark's ``from_json`` decodes JSON: integers are BIGINT, numbers DOUBLE, objects STRUCT
    (MAP if the schema has no properties and one type for all values), arrays ARRAY, and texts STRING. A value without one fixed
    type is a STRING with its JSON. Spark's ``from_protobuf`` from the package ``spark-protobuf`` decodes Protobuf. JSON Schema
    and Protobuf need the extra ``registry``.

    A column may contain messages of several types. Fields of the same name and type then become one column.

    Parameters
    ----------
    df
        a DataFrame, a batch or a stream
    column
        the name of a BINARY column of messages
    registry
        the registry with the schemas; for a stream, it needs ``subjects``
    message
        the full name of the Protobuf message to read; by default the first message of the last schema. The last schema that
        contains the message defines its columns. Messages of another name are ``BAD_FIELD``
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
        the columns of ``df``, the fields, ``_schema_id_`` and ``_error_``. ``_error_`` is NULL or an error code:
        ``UNKNOWN_SCHEMA``, ``BAD_MAGIC`` for a message without a schema id, ``BAD_FIELD`` for a message that does not match its
        schema, or a code of ``avro_error``. If a field's name is one of the other columns', it gets the suffix ``_2``. No row is
        dropped.

    Raises
    ------
    ValueError
        if a schema is invalid, or no schema contains the ``message``.
    TypeError
        if the column is not BINARY.
    AnalysisException
        Spark's exception if a schema is Protobuf and the package ``spark-protobuf`` is missing.

    Examples
    --------
    >>> registry = sparkwire.avro.Registry.http("https://registry:8081")
    >>> sparkwire.registry.rows(messages.select("offset", "value"), "value", registry)
    """
    from sparkwire.spark.rows import registered_rows

    return registered_rows.rows(df, column, registry, message, keep_payload, wire_format, headers)
