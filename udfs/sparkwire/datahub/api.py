"""The messages of a DataHub topic as DataFrames: typed rows of one table.

rows = sparkwire.datahub.rows(messages, "value", table="shop.orders")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rows(df: DataFrame, column: str = "value", *, table: str, columns: Mapping[str, str] | None = None) -> DataFrame:
    """The changes of one table, with a typed column for each column of it.

    Parameters
    ----------
    df
        a DataFrame with a BINARY column of BLOB messages, a batch or (with ``columns`` given) a stream
    column
        the name of that column
    table
        ``table``, ``database.table`` or ``database.schema.table``; names with dots in them in back quotes
    columns
        name to DataHub type (LONG, DOUBLE, BOOLEAN, STRING, DATE, BYTES), in order. By default what the messages declare,
        for which they are read once more now: every column that any message of the table has, with the type that the
        latest one gives it.

    Returns
    -------
    DataFrame
        a row for each change, with the columns

        - of ``df`` but the messages themselves, as they are: path, offset, whatever there is. They round trip to Python
          with the messages: drop those that are not needed;
        - of a TUPLE topic: ``_sequence_id_``, ``_operation_type_`` (I, U, D), ``_excute_time_`` [ms since epoch],
          ``_source_table_``, ``_before_image_`` and ``_after_image_`` (Y or N: which image the row shows). An update has two
          rows of one sequence id; so has the one message UPDATE if it brings both images;
        - of the table: LONG as BIGINT, DATE as TIMESTAMP, BYTES as BINARY, any other type but the six as text;
        - ``_primary_key_`` ARRAY<STRING>: names of the primary key's columns, as the message has them;
        - ``_unexpected_`` MAP<STRING, STRING>: the text of unexpected values. Their column is not in the schema, the message
          declares another type for it, or the value does not fit the type. The column is NULL then. NULL if there are none: you
          notice a changed table and lose nothing of it;
        - ``_error_``: ``datahub_error``. A corrupt message that may be of this table has a row, with what can be read.

        DDL, heartbeats and transaction marks have none. The plan makes one round trip to Python.

    Raises
    ------
    ValueError
        if ``table`` is no name of a table, a type is unknown, or a stream comes without ``columns``. Also if no message
        declares columns for the table, or a column of ``df`` has the name of a column of the rows.
    TypeError
        where the column is not BINARY.

    Examples
    --------
    >>> sparkwire.datahub.rows(messages, "value", table="shop.orders").where("_operation_type_ = 'D'")
    """
    from sparkwire.spark import datahub

    return datahub.rows(df, column, table, columns)


def columns(df: DataFrame, column: str = "value", *, table: str) -> dict[str, str]:
    """The columns of a table, name to DataHub type, as its messages declare them: what ``rows`` takes by default.

    Runs a query over all messages.

    Examples
    --------
    >>> sparkwire.datahub.columns(messages, "value", table="shop.orders")
    {'id': 'LONG', 'note': 'STRING'}
    """
    from sparkwire.spark import datahub

    return datahub.columns(df, column, table)
