"""Typed rows of a DataHub topic: another form of the rows of `sparkwire.changes`, with the columns of a TUPLE topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from sparkwire.base.printable import value_error
from sparkwire.changes.datahub_rows import declarations, latest_columns
from sparkwire.changes.formats import decoder_of_datahub_rows
from sparkwire.changes.records import MessageRecords
from sparkwire.core.names import table_of
from sparkwire.datahub.layout import TYPES
from sparkwire.spark.changes import json_changes
from sparkwire.spark.changes.request import Request
from sparkwire.spark.frames import check_binary, from_arrow_schema, others

Batches = Iterator[pa.RecordBatch]

_DECLARATION: Final = "columns STRING, recency STRUCT<digits INT, sequence_id STRING, event_time_ms BIGINT>"


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
        - of the table: LONG as BIGINT, DATE as TIMESTAMP, BYTES as BINARY, any type other than the six as text. A message may
          declare a TIMESTAMP, which the format does not define: it is read as a DATE;
        - ``_primary_key_`` ARRAY<STRING>: names of the primary key's columns, as the message has them;
        - ``_unexpected_`` MAP<STRING, STRING>: the text of each unexpected value, by column. The column is not in the schema, or
          the message declares another type for it, or the value does not fit its type. The typed column has the same value if
          its type can hold it exactly, else NULL. ``_unexpected_`` is NULL if there are no unexpected values. So you notice a
          changed table and lose no data;
        - ``_error_``: as in `sparkwire.changes`, and MISSING_FIELD if the message has no time. A row has an error if it has no
          value for its key, for example. So has a message that is corrupt, of another system, or does not name its table.

        The rows are those of `sparkwire.changes`, in another form. A column that an image does not have is NULL, because these
        rows have no ``_unavailable_``.

        DDL messages, heartbeats and transaction marks have no row, unless they are corrupt. The plan makes one round trip to
        Python.

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
    check_binary(df, column)
    source = table_of(table)
    if columns is None:
        if df.isStreaming:
            raise ValueError(
                "rows() expected columns= for a streaming DataFrame, whose schema cannot be inferred; got none"
            )
        columns = _declared(df, column, table)
    else:
        _check(columns)
    other_schema, other_columns = others(df, column)
    decoder = decoder_of_datahub_rows(source, dict(columns), other_schema.names)
    names = [*other_schema.names, *decoder.schema.names]

    def decode(batches: Batches) -> Batches:
        for batch in batches:
            messages, *arrays = batch.columns
            rows = decoder(MessageRecords(messages))
            places = pa.array(rows.rows)
            columns = [*(column.take(places) for column in arrays), *rows.batch.columns]
            yield pa.RecordBatch.from_arrays(columns, names=names)

    chosen = df.select(F.col(column).alias("blob"), *other_columns)
    return chosen.mapInArrow(decode, StructType([*other_schema, *from_arrow_schema(decoder.schema)]))


def columns(df: DataFrame, column: str = "value", *, table: str) -> dict[str, str]:
    """Return the columns of a table, name to DataHub type, as its messages declare them: the default of ``rows``.

    The call runs a query over all messages.

    Examples
    --------
    >>> sparkwire.datahub.columns(messages, "value", table="shop.orders")
    {'id': 'LONG', 'note': 'STRING'}
    """
    check_binary(df, column)
    return _declared(df, column, table)


def _check(columns: Mapping[str, str]) -> None:
    for name, type in columns.items():
        if type not in TYPES:
            raise value_error(f"rows takes the types {', '.join(TYPES)}; column {name} has {type!r}")


def _declared(df: DataFrame, column: str, table: str) -> dict[str, str]:
    source = table_of(table)

    def read(batches: Batches) -> Batches:
        return (declarations(batch.column(0), source) for batch in batches)

    blobs = df.select(F.col(column))
    lists = blobs.mapInArrow(read, _DECLARATION).groupBy("columns").agg(F.max("recency").alias("recency"))
    declared = latest_columns(row["columns"] for row in lists.orderBy("recency").collect())
    if not declared:
        raise json_changes.no_columns(Request(df, column, "datahub", table, topic=None, partition=None, offset=None))
    return declared
