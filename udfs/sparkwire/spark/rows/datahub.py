"""Typed rows of a DataHub topic: one ``mapInArrow`` over the column of messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from sparkwire.base.printable import printable
from sparkwire.catalogue import FUNCTIONS
from sparkwire.core.names import Table, table_name, table_of, unknown_table
from sparkwire.datahub.blob_tables import declarations, latest_columns
from sparkwire.datahub.layout import SQL_TYPES
from sparkwire.datahub.tuple_rows import row_schema, typed_rows
from sparkwire.spark.frames import check_binary, from_arrow_schema, others

Batches = Iterator[pa.RecordBatch]

_NAMES: Final = ("database", "schema_name", "table")
_DECLARATION: Final = (
    "columns ARRAY<STRUCT<name STRING, type STRING>>, "
    "recency STRUCT<digits INT, sequence_id STRING, event_time_ms BIGINT>"
)


def rows(df: DataFrame, column: str = "value", *, table: str, columns: Mapping[str, str] | None = None) -> DataFrame:
    """Return the changes of one table, with a typed column for each column of the table.

    Parameters
    ----------
    df
        a DataFrame with a BINARY column of BLOB messages, a batch or (with ``columns`` given) a stream
    column
        the name of that column
    table
        ``table``, ``database.table`` or ``database.schema.table``; put a name that contains a dot in backquotes
    columns
        name to DataHub type (LONG, DOUBLE, BOOLEAN, STRING, DATE, BYTES), in order. By default all columns that the table's
        messages declare, with the type that the latest message declares. The call then reads all messages once.

    Returns
    -------
    DataFrame
        a row for each change, with the columns

        - of ``df``, unchanged, except the column of messages. Drop the columns that you do not need, because they make the
          round trip to Python, too;
        - of a TUPLE topic: ``_sequence_id_``, ``_operation_type_`` (I, U, D), ``_excute_time_`` [ms since epoch],
          ``_source_table_``, ``_before_image_`` and ``_after_image_`` (Y or N: which image the row shows). An update has two
          rows with the same sequence id. An UPDATE message with both images has two rows as well;
        - of the table: LONG as BIGINT, DATE as TIMESTAMP, BYTES as BINARY, any type other than the six as text;
        - ``_primary_key_`` ARRAY<STRING>: names of the primary key's columns, as the message has them;
        - ``_unexpected_`` MAP<STRING, STRING>: the text of each unexpected value, by column. The column is not in the schema, or
          the message declares another type for it, or the value does not fit its type. The typed column is NULL then. NULL if
          there are no unexpected values. So you notice a changed table and lose no data;
        - ``_error_``: ``datahub_error``. A corrupt message that may be of this table has a row with the fields that can be read.

        DDL messages, heartbeats and transaction marks have no row. The plan makes one round trip to Python.

    Raises
    ------
    ValueError
        if ``table`` is not a valid table name, a type is unknown, or ``df`` is a stream and ``columns`` is missing. Also if no
        message declares columns for the table, or a column of ``df`` has the name of a column of the rows.
    TypeError
        if the column is not BINARY.

    Examples
    --------
    >>> sparkwire.datahub.rows(messages, "value", table="shop.orders").where("_operation_type_ = 'D'")
    """
    blobs, source = _blobs(df, column), table_of(table)
    if columns is None:
        if df.isStreaming:
            raise ValueError(
                "rows() expected columns= for a streaming DataFrame, whose schema cannot be inferred; got none"
            )
        columns = _declared(blobs, source, table)
    else:
        _check(columns)
    declared = dict(columns)
    other_schema, other_columns = others(df, column)
    new_schema = from_arrow_schema(row_schema(declared, other_schema.names))

    def decode(batches: Batches) -> Batches:
        for batch in batches:
            blob, *arrays = batch.columns
            source_columns = pa.RecordBatch.from_arrays(arrays, names=other_schema.names) if arrays else None
            yield typed_rows(blob, source, declared, source_columns)

    chosen = df.select(F.col(column).alias("blob"), *other_columns)
    return chosen.mapInArrow(decode, StructType([*other_schema, *new_schema]))


def columns(df: DataFrame, column: str = "value", *, table: str) -> dict[str, str]:
    """Return the columns of a table, name to DataHub type, as its messages declare them: the default of ``rows``.

    The call runs a query over all messages.

    Examples
    --------
    >>> sparkwire.datahub.columns(messages, "value", table="shop.orders")
    {'id': 'LONG', 'note': 'STRING'}
    """
    return _declared(_blobs(df, column), table_of(table), table)


def _blobs(messages: DataFrame, column: str) -> DataFrame:
    check_binary(messages, column)
    return messages.select(F.col(column))


def _check(columns: Mapping[str, str]) -> None:
    for name, type in columns.items():
        if type not in SQL_TYPES:
            raise ValueError(printable(f"rows takes the types {', '.join(SQL_TYPES)}; column {name} has {type!r}"))


def _declared(blobs: DataFrame, source: Table, table: str) -> dict[str, str]:
    def read(batches: Batches) -> Batches:
        return (declarations(batch.column(0), source) for batch in batches)

    lists = blobs.mapInArrow(read, _DECLARATION).groupBy("columns").agg(F.max("recency").alias("recency"))
    declared = latest_columns(row["columns"] for row in lists.orderBy("recency").collect())
    if not declared:
        raise _no_columns(table, blobs)
    return declared


def _no_columns(table: str, blobs: DataFrame) -> ValueError:
    """The error for a table whose columns no message declares: the messages are of other tables, or do not declare columns."""
    tables = _tables(blobs)
    if table_of(table).name in {table_of(name).name for name in tables}:
        return ValueError(printable(f"no message declares the columns of the table {table}: pass columns"))
    return unknown_table(table, tables, "the messages")


def _tables(blobs: DataFrame) -> list[str]:
    """The sorted names of the tables in messages."""

    def read(batches: Batches) -> Batches:
        for batch in batches:
            parts = [FUNCTIONS[f"datahub_{name}"].decode(batch.column(0)) for name in _NAMES]
            yield pa.RecordBatch.from_arrays(parts, names=list(_NAMES))

    rows = blobs.mapInArrow(read, ", ".join(f"`{name}` STRING" for name in _NAMES)).where("`table` <> ''")
    return sorted(table_name(*row) for row in rows.distinct().collect())
