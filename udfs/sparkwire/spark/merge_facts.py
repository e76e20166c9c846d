"""Facts about a batch of changes before its merge, from one small job over its last rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StructType,
    TimestampType,
)

from sparkwire.base.sqltype import sql_string
from sparkwire.cdc.change_columns import TWO_TABLES
from sparkwire.spark.current import ChangedTable, lacks_values

NEW: Final = "NOT live AND (known_at IS NULL OR known_at < at)"
"""the condition for a delete or TRUNCATE that is not stored yet"""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RANGES: Final = (ByteType, ShortType, IntegerType, LongType, DateType)
"""types of keys whose range lets a table skip files"""


class BatchFacts(NamedTuple):
    """Facts about the last rows of a batch."""

    lacking: int
    """number of live rows that lack values"""
    silent: int
    """number of deleted rows that lack their values"""
    truncated: Any
    """the order of the last TRUNCATE"""
    name: str | None
    """the name of the table"""

    @classmethod
    def of(cls, last: DataFrame) -> BatchFacts:
        """Compute the facts. Raises ValueError if the changes are of two tables."""
        return cls(**_read(last.agg(*_columns(F.lit(False))).collect()[0].asDict(), None))


class TableFacts(NamedTuple):
    """Facts about the last rows of a batch for a table of Delta or Iceberg."""

    lacking: int
    silent: int
    truncated: Any
    name: str | None
    least: Any
    """the least order; None if there is no row"""
    new_deletes: int
    new_truncates: int
    null_keys: int
    """number of rows with NULL in a column of the key"""
    bounds: list[tuple[Any, Any] | None]
    """the least and the greatest value of each column of the key"""

    @classmethod
    def of(cls, last: DataFrame, table: ChangedTable, source: str | None) -> TableFacts:
        """Compute the facts. Raises ValueError if the changes are of two tables, or of another table than ``source``."""
        new, truncate, null = F.expr(NEW), F.col("is_truncate"), F.lit(False)
        for name in table.key_names():
            null = null | F.col(name).isNull()
        ranges = [
            name
            for key, name in zip(table.keys, table.key_names(), strict=True)
            if isinstance(table.schema[key].dataType, _RANGES)
        ]
        row = (
            last.agg(
                *_columns(F.expr("known_at >= at")),
                F.min("at").alias("least"),
                F.count_if(new & ~truncate).alias("new_deletes"),
                F.count_if(new & truncate).alias("new_truncates"),
                F.count_if(null & ~truncate).alias("null_keys"),
                *(of(name).alias(f"{word}_{name}") for name in ranges for word, of in (("min", F.min), ("max", F.max))),
            )
            .collect()[0]
            .asDict()
        )
        bounds = [
            (row.pop(f"min_{name}"), row.pop(f"max_{name}")) if name in ranges else None for name in table.key_names()
        ]
        return cls(**_read(row, source), bounds=bounds)


def _columns(known: Column) -> list[Column]:
    """Aggregates of the last rows. ``known``: whether a deleted row is already stored, so that it needs no values."""
    return [
        F.count_if(lacks_values(dead_too=False)).alias("lacking"),
        F.count_if(lacks_values(dead_too=True) & ~F.col("live") & ~F.coalesce(known, F.lit(False))).alias("silent"),
        F.max(F.when(F.col("is_truncate"), F.col("at"))).alias("truncated"),
        F.min("least_table").alias("first"),
        F.max("greatest_table").alias("last"),
    ]


def _read(row: dict[str, Any], source: str | None) -> dict[str, Any]:
    """Replace the names of tables by one. Raises ValueError if there are two."""
    names = sorted({name for name in (row.pop("first"), row.pop("last"), source) if name is not None})
    if len(names) > 1:
        raise ValueError(TWO_TABLES % tuple(names[:2]))
    return row | {"name": names[0] if names else None}


def literal(value: Any, type: DataType) -> str:
    """A value as a SQL literal."""
    if value is None:
        return f"CAST(NULL AS {type.simpleString()})"
    if isinstance(type, StructType):
        parts = ", ".join(
            f"{sql_string(field.name)}, {literal(part, field.dataType)}"
            for field, part in zip(type, value, strict=True)
        )
        return f"named_struct({parts})"
    if isinstance(type, BinaryType):
        return f"X'{bytes(value).hex()}'"
    if isinstance(type, TimestampType):  # as text it would depend on the session's time zone
        return f"timestamp_micros({(value.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)})"
    return f"CAST({sql_string(str(value))} AS {type.simpleString()})"
