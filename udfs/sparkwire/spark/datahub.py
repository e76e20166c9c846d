"""Typed rows of a DataHub topic: one ``mapInArrow`` over the column of messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BinaryType, StructType

from sparkwire.formats.datahub.layout import SQL_TYPES
from sparkwire.formats.datahub.tables import Table, declarations, latest_columns, table_of
from sparkwire.formats.datahub.typed import row_schema, typed_rows

Batches = Iterator[pa.RecordBatch]

_DECLARATION: Final = (
    "columns ARRAY<STRUCT<name STRING, type STRING>>, "
    "recency STRUCT<digits INT, sequence_id STRING, event_time_ms BIGINT>"
)


def rows(messages: DataFrame, column: str, table: str, columns: Mapping[str, str] | None) -> DataFrame:
    """See ``sparkwire.datahub.rows``."""
    blobs, source = _blobs(messages, column), table_of(table)
    if columns is None:
        if messages.isStreaming:
            raise ValueError("rows takes columns for a stream: it cannot be read ahead")
        columns = _declared(blobs, source, table)
    else:
        _check(columns)
    given = dict(columns)
    own = from_arrow_schema(row_schema(given))
    others = StructType([field for field in messages.schema if field.name.lower() != column.lower()])
    _check_names(others, own)

    def decode(batches: Batches) -> Batches:
        for batch in batches:
            blob, *kept = batch.columns
            beside = pa.RecordBatch.from_arrays(kept, names=others.names) if kept else None
            yield typed_rows(blob, source, given, beside)

    # Under plain names: mapInArrow fails on a name with a dot.
    kept_columns = (F.col(_quoted(name)).alias(f"kept_{k}") for k, name in enumerate(others.names))
    chosen = messages.select(F.col(column).alias("blob"), *kept_columns)
    return chosen.mapInArrow(decode, StructType([*others, *own]))


def columns(messages: DataFrame, column: str, table: str) -> dict[str, str]:
    """See ``sparkwire.datahub.columns``."""
    return _declared(_blobs(messages, column), table_of(table), table)


def _blobs(messages: DataFrame, column: str) -> DataFrame:
    blobs = messages.select(F.col(column))
    type = blobs.schema[0].dataType
    if not isinstance(type, BinaryType):
        raise TypeError(f"rows takes a BINARY column, and {column} is {type.simpleString().upper()}")
    return blobs


def _check(columns: Mapping[str, str]) -> None:
    for name, type in columns.items():
        if type not in SQL_TYPES:
            raise ValueError(f"rows takes the types {', '.join(SQL_TYPES)}; column {name} has {type!r}")


def _check_names(others: StructType, own: StructType) -> None:
    taken = {name.lower() for name in own.names}
    for name in others.names:
        if name.lower() in taken:
            raise ValueError(
                f"rows keeps the column {name} of its input, and the rows have one of that name: rename or drop it"
            )


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _declared(blobs: DataFrame, source: Table, table: str) -> dict[str, str]:
    def read(batches: Batches) -> Batches:
        return (declarations(batch.column(0), source) for batch in batches)

    lists = blobs.mapInArrow(read, _DECLARATION).groupBy("columns").agg(F.max("recency").alias("recency"))
    found = latest_columns(row["columns"] for row in lists.orderBy("recency").collect())
    if not found:
        raise ValueError(f"no message declares columns for the table {table}: give its columns")
    return found
