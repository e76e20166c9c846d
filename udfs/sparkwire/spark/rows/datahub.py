"""Typed rows of a DataHub topic: one ``mapInArrow`` over the column of messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from sparkwire.base.printable import printable
from sparkwire.core.table_names import Table, table_of
from sparkwire.datahub.blob_tables import declarations, latest_columns
from sparkwire.datahub.layout import SQL_TYPES
from sparkwire.datahub.tuple_rows import row_schema, typed_rows
from sparkwire.spark.arrow_types import from_arrow_schema
from sparkwire.spark.frames import check_binary, others
from sparkwire.spark.rows.message_tables import no_columns

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
            raise ValueError(
                "rows() expected columns= for a streaming DataFrame, whose schema cannot be inferred; got none"
            )
        columns = _declared(blobs, source, table)
    else:
        _check(columns)
    given = dict(columns)
    kept, kept_columns = others(messages, column)
    own = from_arrow_schema(row_schema(given, kept.names))

    def decode(batches: Batches) -> Batches:
        for batch in batches:
            blob, *others = batch.columns
            source_columns = pa.RecordBatch.from_arrays(others, names=kept.names) if others else None
            yield typed_rows(blob, source, given, source_columns)

    chosen = messages.select(F.col(column).alias("blob"), *kept_columns)
    return chosen.mapInArrow(decode, StructType([*kept, *own]))


def columns(messages: DataFrame, column: str, table: str) -> dict[str, str]:
    """See ``sparkwire.datahub.columns``."""
    return _declared(_blobs(messages, column), table_of(table), table)


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
        raise no_columns(table, blobs, "datahub")
    return declared
