"""The messages of Debezium as DataFrames: typed rows of one table.

rows = sparkwire.debezium.rows(messages, "value", table="public.orders")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sparkwire.debezium.layout import UNAVAILABLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
    """The changes of one table, both images with a typed column for each column of it.

    Parameters
    ----------
    df
        a DataFrame with a BINARY or STRING column of Debezium's messages, a batch or (with ``columns`` given) a stream
    column
        the name of that column
    table
        ``table``, ``schema.table`` or ``database.table``, ``database.schema.table``; names with dots in them in back quotes
    columns
        name to type, in order: Connect's types and Debezium's, such as int64, MicroTimestamp or Decimal(12,2), or SQL types that
        say enough, such as BIGINT or DECIMAL(12,2). By default what the embedded schemas of the messages say, for which the
        messages are read once more now: every column that any schema has, with a type that holds what all of them say
    key
        the column of the records' keys, if there is one: a tombstone is a DELETE of its key then
    topic
        the column of the records' topics, by which a tombstone's table is known where its key has no schema
    placeholder
        the connector's ``unavailable.value.placeholder``

    Returns
    -------
    DataFrame
        a row for each change, with the columns

        - of ``df`` but the messages themselves;
        - ``_op_``: INSERT, UPDATE, DELETE, READ, TRUNCATE or UPSERT; NULL in a corrupt message;
        - ``_position_`` STRUCT<log, position, sub_position, row>: where in its database's log the change is, which sorts;
          ``_time_``, ``_table_``, ``_transaction_``, ``_snapshot_``; ``_keys_``: names of the key's columns;
        - ``_before_``, ``_after_`` STRUCT: the table's columns;
        - ``_unavailable_`` ARRAY<STRING>: columns that the message does not have although they exist, NULL in the row;
        - ``_unexpected_`` MAP<STRING, STRING>: the text of values without a column, and of values that do not fit it, such as
          an infinite date. The column is NULL then. NULL if there are none;
        - ``_error_``: ``debezium_error``. A corrupt message that may be of this table has a row, with what can be read.

        Heartbeats and messages about transactions and schemas have none. The plan makes one round trip to Python.

    Raises
    ------
    ValueError
        if ``table`` is no name of a table, a type is unknown, or a stream comes without ``columns``. Also if no message has a
        schema of the table, or a column of ``df`` has the name of a column of the rows.
    TypeError
        where a column of messages or keys is neither BINARY nor STRING.

    Examples
    --------
    >>> sparkwire.debezium.rows(messages, "value", table="public.orders").where("_op_ = 'DELETE'")
    """
    from sparkwire.spark import debezium

    return debezium.rows(df, column, table, columns, debezium.Beside(key, topic), placeholder)


def columns(df: DataFrame, column: str = "value", *, table: str) -> dict[str, str]:
    """The columns of a table, name to type, as the embedded schemas of its messages say: what ``rows`` takes by default.

    Runs a query over all messages.

    Examples
    --------
    >>> sparkwire.debezium.columns(messages, "value", table="public.orders")
    {'id': 'int32', 'placed': 'MicroTimestamp', 'total': 'Decimal(12,2)'}
    """
    from sparkwire.spark import debezium

    return debezium.columns(df, column, table)
