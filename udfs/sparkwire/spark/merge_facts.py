"""Facts about a batch of changes before its merge, from one small job over its last rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructType

from sparkwire.base.sqltype import sql_string
from sparkwire.cdc.change_columns import TWO_TABLES
from sparkwire.spark.current import lacks_values, table_facts


class BatchFacts(NamedTuple):
    """Facts about the last rows of a batch."""

    rows: int
    deleted: int
    lacking: int
    """number of live rows that lack values"""
    silent: int
    """number of deleted rows that lack their values"""
    truncated: Any
    """the order of the last TRUNCATE"""
    name: str | None
    """the name of the table"""

    @classmethod
    def of(cls, last: DataFrame, source: str | None = None) -> BatchFacts:
        """Compute the facts. Raises ValueError if the changes are of two tables, or of another table than ``source``."""
        row = last.agg(
            F.count("live").alias("rows"),
            F.count_if(~F.col("live")).alias("deleted"),
            F.count_if(lacks_values(dead_too=False)).alias("lacking"),
            F.count_if(lacks_values(dead_too=True) & ~F.col("live")).alias("silent"),
            F.max(F.when(F.col("is_truncate"), F.col("at"))).alias("truncated"),
            *table_facts(),
        ).collect()[0]
        names = sorted({name for name in (row["first"], row["last"], source) if name is not None})
        if len(names) > 1 or row["two_tables"]:
            raise ValueError(TWO_TABLES % tuple([*names, "another"][:2]))
        counts = (row["rows"], row["deleted"], row["lacking"], row["silent"])
        return cls(*counts, row["truncated"], names[0] if names else None)


def literal(value: Any, type: DataType) -> str:
    """A value as a SQL literal."""
    if isinstance(type, StructType):
        parts = ", ".join(
            f"{sql_string(field.name)}, {literal(part, field.dataType)}"
            for field, part in zip(type, value, strict=True)
        )
        return f"named_struct({parts})"
    if value is None:
        return f"CAST(NULL AS {type.simpleString()})"
    return f"CAST({sql_string(str(value))} AS {type.simpleString()})"
