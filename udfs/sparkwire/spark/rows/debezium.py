"""Typed rows of Debezium messages: one ``mapInArrow`` over the columns of messages and keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StringType, StructType

from sparkwire.base.printable import printable
from sparkwire.core.column import primitive
from sparkwire.core.table_names import Table, table_of
from sparkwire.debezium.change_rows import change_rows, row_schema
from sparkwire.debezium.layout import UNAVAILABLE
from sparkwire.debezium.table_columns import DECLARATION, all_columns, declarations
from sparkwire.spark.arrow_types import from_arrow_schema
from sparkwire.spark.frames import others, with_distinct_names
from sparkwire.spark.rows.message_tables import no_columns

Batches = Iterator[pa.RecordBatch]


def rows(
    df: DataFrame,
    column: str = "value",
    *,
    table: str,
    columns: Mapping[str, str] | None = None,
    key: str | None = None,
    topic: str | None = None,
    placeholder: str = UNAVAILABLE,
) -> DataFrame:
    """Decode the changes of one table. Both images have a typed column for each column of the table.

    Parameters
    ----------
    df
        a DataFrame with a BINARY or STRING column of Debezium messages: a batch, or with ``columns`` also a stream
    column
        the name of that column
    table
        ``table``, ``schema.table`` or ``database.table``, ``database.schema.table``; names with dots are in back quotes
    columns
        names and types, in order: types of Connect and Debezium, such as int64, MicroTimestamp or Decimal(12,2), or
        unambiguous SQL types, such as BIGINT or DECIMAL(12,2). By default, the columns of all embedded schemas, each with a
        type that holds the values of every schema. To find them, ``rows`` reads the messages once
    key
        the column of the records' keys, if any. Then a tombstone is a DELETE of its key
    topic
        the column of the records' topics. It identifies the table of a tombstone whose key has no schema
    placeholder
        the connector's ``unavailable.value.placeholder``

    Returns
    -------
    DataFrame
        one row for each change, with these columns:

        - the columns of ``df`` without the messages;
        - ``_op_``: INSERT, UPDATE, DELETE, READ, TRUNCATE or UPSERT; NULL in a corrupt message;
        - ``_position_`` STRUCT<log, position, sub_position, row>: the position of the change in its database's log, which
          orders the changes; ``_time_``, ``_table_``, ``_transaction_``, ``_snapshot_``; ``_keys_``: names of the key's columns;
        - ``_before_``, ``_after_`` STRUCT: the table's columns;
        - ``_unavailable_`` ARRAY<STRING>: columns with a value that the message does not contain; they are NULL in the row;
        - ``_unexpected_`` MAP<STRING, STRING>: the text of values without a column, and of values that do not fit it, such as
          an infinite date. The column itself is then NULL. NULL if there are no such values;
        - ``_error_``: ``debezium_error``. A corrupt message that may belong to this table has a row with the readable values. Of
          a tombstone MISSING_FIELD, if its topic may have been renamed, so that nobody knows its table.

        Heartbeats and messages about transactions and schemas have no rows. The plan makes one round trip to Python.

    Raises
    ------
    ValueError
        if ``table`` is not a table's name, a type is unknown, or a stream is passed without ``columns``. Also if no message has
        a schema of the table, or a column of ``df`` has the name of a column of the result.
    TypeError
        if a column of messages or keys is neither BINARY nor STRING.

    Examples
    --------
    >>> sparkwire.debezium.rows(messages, "value", table="public.orders").where("_op_ = 'DELETE'")
    """
    source = table_of(table)
    for name in (column, *([key] if key else [])):
        check_messages(df, name)
    if columns is None:
        if df.isStreaming:
            raise ValueError(
                "rows() expected columns= for a streaming DataFrame, whose schema cannot be inferred; got none"
            )
        columns = _declared(df, column, source, table)
    given = dict(columns)
    kept, kept_columns = others(df, column)
    own = with_distinct_names(from_arrow_schema(named(row_schema(given))), kept.names)
    key_index, topic_index = (None if name is None else _index_of(name, kept) for name in (key, topic))

    def decode(batches: Batches) -> Batches:
        for batch in batches:
            messages, *columns = batch.columns
            keys, topics = (None if place is None else columns[place] for place in (key_index, topic_index))
            changes = change_rows(messages, source, given, keys=keys, topics=topics, placeholder=placeholder)
            taken = [whole.take(primitive(changes.rows)) for whole in columns]
            yield pa.RecordBatch.from_arrays([*taken, *changes.batch.columns], names=[*kept.names, *own.names])

    messages = F.col(column).alias("messages")
    return df.select(messages, *kept_columns).mapInArrow(decode, StructType([*kept, *own]))


def _index_of(name: str, kept: StructType) -> int:
    """The index of a column among the kept ones. Raises ValueError if it is not there."""
    names = [one.lower() for one in kept.names]
    if name.strip("`").lower() not in names:
        raise ValueError(
            printable(f"rows() expected {name} among the other columns ({', '.join(kept.names) or 'none'})")
        )
    return names.index(name.strip("`").lower())


def named(schema: pa.Schema) -> pa.Schema:
    """The columns of changes with the names in queries, such as ``_op_``."""
    return pa.schema([field.with_name(f"_{field.name}_") for field in schema])


def columns(df: DataFrame, column: str = "value", *, table: str) -> dict[str, str]:
    """The names and types of a table's columns, from the embedded schemas of its messages. ``rows`` uses them by default.

    Runs a query over all messages.

    Examples
    --------
    >>> sparkwire.debezium.columns(messages, "value", table="public.orders")
    {'id': 'int32', 'placed': 'MicroTimestamp', 'total': 'Decimal(12,2)'}
    """
    check_messages(df, column)
    return _declared(df, column, table_of(table), table)


def check_messages(df: DataFrame, column: str) -> None:
    """Raise TypeError if a column is neither BINARY nor STRING."""
    type = df.select(F.col(column)).schema[0].dataType
    if not isinstance(type, BinaryType | StringType):
        raise TypeError(
            printable(f"rows takes a BINARY or STRING column, and {column} is {type.simpleString().upper()}")
        )


def _declared(df: DataFrame, column: str, source: Table, table: str) -> dict[str, str]:
    def read(batches: Batches) -> Batches:
        return (declarations(batch.column(0), source) for batch in batches)

    lists = df.select(F.col(column)).mapInArrow(read, DECLARATION).distinct()
    declared = all_columns(row["columns"] for row in lists.collect())
    if not declared:
        raise no_columns(table, df.select(F.col(column)), "debezium")
    return declared
