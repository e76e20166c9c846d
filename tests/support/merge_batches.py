"""Batches of changes to merge, as DataFrames."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from sparkwire.changes.columns import COLUMN, ERROR
from tests.support.change_history import SCHEMA

ORDER: Final = "_order_ STRUCT<epoch: INT, partition: INT, offset: BIGINT>"
SIMPLE: Final = f"_op_ STRING, {ORDER}, _table_ STRING, id INT, v INT"


def cut(rows: list[Any], parts: int) -> list[list[Any]]:
    size = len(rows) // parts + 1
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def frame(spark: SparkSession, rows: list[Any], schema: str = SCHEMA) -> DataFrame:
    return noted(spark.createDataFrame(rows, schema).coalesce(2))


def noted(changes: DataFrame) -> DataFrame:
    """Changes with metadata of their columns, as `sparkwire.changes` notes it in a whole change table."""
    return changes.withMetadata("id", {COLUMN: "id"}) if ERROR in changes.columns else changes


def simple(spark: SparkSession, *rows: tuple[str, Any, int | None, int | None]) -> DataFrame:
    """Changes with an offset, or (epoch, partition, offset)."""
    changes = [(op, at if isinstance(at, tuple) else (0, 0, at), "t", id, value) for op, at, id, value in rows]
    return frame(spark, changes, SIMPLE)
