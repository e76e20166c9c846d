"""List the tables in messages of DataHub or Debezium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from sparkwire.base.printable import printable
from sparkwire.catalogue import FUNCTIONS
from sparkwire.core.names import table_name, table_of, unknown_table

_PARTS: Final = ("database", "schema", "table")
_TYPES: Final = "database STRING, schema STRING, `table` STRING"


def message_tables(
    messages: DataFrame, format: str, as_json: Callable[[pa.RecordBatch], pa.Array] | None = None
) -> list[str]:
    """The sorted names of the tables in messages.

    ``as_json`` converts a batch of ``messages`` to messages in JSON. By default, these are the first column.
    """
    functions = [f"{format}_{name}" for name in ("database", "schema_name", "table")]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            column = batch.column(0) if as_json is None else as_json(batch)
            parts = [FUNCTIONS[name].decode(column) for name in functions]
            yield pa.RecordBatch.from_arrays(parts, names=list(_PARTS))

    named = messages.select(*(F.col(name).alias(f"c{k}") for k, name in enumerate(messages.columns)))
    rows = named.mapInArrow(read, _TYPES).where("`table` <> ''").distinct().collect()
    return sorted(table_name(*row) for row in rows)


def no_columns(table: str, messages: DataFrame, format: str) -> ValueError:
    """The error for a table without known columns: the messages are of other tables, or do not declare columns."""
    tables = message_tables(messages, format)
    if table_of(table).name in {table_of(name).name for name in tables}:
        return ValueError(printable(f"no message declares the columns of the table {table}: pass columns"))
    return unknown_table(table, tables, "the messages")
