"""Typed rows of Debezium messages, with both images: another form of the rows of `sparkwire.changes`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from sparkwire.debezium.layout import UNAVAILABLE
from sparkwire.spark.changes import json_changes
from sparkwire.spark.changes.reading import with_rows
from sparkwire.spark.changes.request import Request


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
        type that holds the values of every schema
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
        - ``_error_``: as in `sparkwire.changes`. A corrupt message that may belong to this table has a row with the readable
          values. A tombstone has the error MISSING_FIELD if nobody knows its key or its table.

        Heartbeats and messages about transactions and schemas have no rows. ``rows`` reads a batch once to find its tables and
        columns. Its plan makes one round trip to Python.

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
    request = _request("rows", df, column, table, columns=columns, key=key, topic=topic, placeholder=placeholder)
    return with_rows(request, json_changes.reading(request, with_images=True))


def columns(df: DataFrame, column: str = "value", *, table: str) -> dict[str, str]:
    """The names and types of a table's columns, from the embedded schemas of its messages. ``rows`` uses them by default.

    Runs a query over all messages.

    Examples
    --------
    >>> sparkwire.debezium.columns(messages, "value", table="public.orders")
    {'id': 'int32', 'placed': 'MicroTimestamp', 'total': 'Decimal(12,2)'}
    """
    return dict(json_changes.columns(_request("columns", df, column, table)))


def _request(function: str, df: DataFrame, column: str, table: str, topic: str | None = None, **others: Any) -> Request:
    request = Request(
        df,
        column,
        "debezium",
        table,
        topic=topic,
        partition=None,
        offset=None,
        before="full",
        function=function,
        **others,
    )
    if topic is not None:
        request.named("topic", topic)
    return request.checked()
