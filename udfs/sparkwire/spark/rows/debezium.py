"""Typed rows of Debezium messages: one ``mapInArrow`` over the columns of messages and keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StringType, StructType

from sparkwire.base.printable import printable
from sparkwire.core.column import primitive
from sparkwire.core.table_names import Table, table_of
from sparkwire.debezium.change_rows import change_rows, row_schema
from sparkwire.debezium.table_columns import DECLARATION, all_columns, declarations
from sparkwire.spark.arrow_types import from_arrow_schema
from sparkwire.spark.frames import others, with_distinct_names
from sparkwire.spark.rows.message_tables import no_columns

Batches = Iterator[pa.RecordBatch]


class RecordColumnNames(NamedTuple):
    """The columns of the records' keys and topics, if any."""

    key: str | None = None
    topic: str | None = None


def rows(
    df: DataFrame,
    column: str,
    table: str,
    columns: Mapping[str, str] | None,
    record_columns: RecordColumnNames,
    placeholder: str,
) -> DataFrame:
    """See ``sparkwire.debezium.rows``."""
    source = table_of(table)
    for name in (column, *([record_columns.key] if record_columns.key else [])):
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
    key, topic = (None if name is None else _index_of(name, kept) for name in record_columns)

    def decode(batches: Batches) -> Batches:
        for batch in batches:
            messages, *columns = batch.columns
            keys, topics = (None if place is None else columns[place] for place in (key, topic))
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


def columns(df: DataFrame, column: str, table: str) -> dict[str, str]:
    """See ``sparkwire.debezium.columns``."""
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
