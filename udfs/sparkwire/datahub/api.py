"""The messages of a DataHub topic as DataFrames: typed rows of one table.

rows = sparkwire.datahub.rows(messages, "value", table="shop.orders")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
    from sparkwire.spark.rows import datahub

    return datahub.rows(df, column, table, columns)


def columns(df: DataFrame, column: str = "value", *, table: str) -> dict[str, str]:
    """Return the columns of a table, name to DataHub type, as its messages declare them: the default of ``rows``.

    The call runs a query over all messages.

    Examples
    --------
    >>> sparkwire.datahub.columns(messages, "value", table="shop.orders")
    {'id': 'LONG', 'note': 'STRING'}
    """
    from sparkwire.spark.rows import datahub

    return datahub.columns(df, column, table)
