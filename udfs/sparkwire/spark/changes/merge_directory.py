"""Merge into a directory of Parquet: each merge writes a complete new version, and then makes it the newest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from sparkwire.changes.columns import DELETED, ORDER, TIME
from sparkwire.changes.merge_versions import DELETED as GONE
from sparkwire.changes.merge_versions import ROWS, TRUNCATED, MergeFolder
from sparkwire.spark.changes.current import ChangedTable, events, latest, stored_steps, with_history
from sparkwire.spark.changes.merge_facts import BatchFacts, literal
from sparkwire.spark.changes.merge_types import agreed, aligned, stored_schema
from sparkwire.spark.frames import quoted


def merge_into_directory(changes: DataFrame, table: ChangedTable, path: str, keep: bool) -> None:
    """Write a new version of the table: the previous one with these changes."""
    folder = MergeFolder(path)
    with folder.locked():
        newest = folder.newest()
        schema = stored_schema(table, keep)
        before: dict[str, Any] = {}
        if newest is not None:
            before = folder.details(newest)
            _check(before, table, folder.path)
            schema = agreed(StructType.fromJson(before["schema"]), schema, table.keys, folder.path)
        changes, table = aligned(changes, table, schema)
        steps = events(changes, table)
        if newest is not None:
            steps = _with_stored(steps, table, folder, newest, before, schema)
        last = latest(steps, table).persist()
        try:
            facts = BatchFacts.of(last, table)
            with_values = facts.lacking > 0 or (facts.silent > 0 and (keep or table.may_lack_values))
            rows = with_history(steps, table, last) if with_values else last
            version = folder.next_version(newest)
            written = _rows(rows, table, schema, facts, with_values or keep)
            written.write.partitionBy("part").parquet(f"{folder.path}/{version}")
        finally:
            last.unpersist()
        if not folder.has_part(version, ROWS):
            changes.sparkSession.createDataFrame([], schema).write.parquet(folder.shown_part(version, ROWS))
        noted = {"schema": schema.jsonValue(), "keys": table.keys, "table": facts.name}
        folder.publish(version, newest, noted)


def merged_directory(spark: SparkSession, path: str) -> DataFrame:
    """The newest version. Raises ValueError if none exists."""
    folder = MergeFolder(path)
    newest = folder.newest()
    if newest is None:
        raise ValueError(f"{folder.path} has no table of merge yet")
    schema = StructType.fromJson(folder.details(newest)["schema"])
    return spark.read.schema(schema).parquet(folder.shown_part(newest, ROWS))


def _check(before: Mapping[str, Any], table: ChangedTable, path: str) -> None:
    if before["keys"] != table.keys:
        raise ValueError(
            f"{path} has the key {', '.join(before['keys'])}, and the changes have {', '.join(table.keys)}: pass its keys, "
            "or name another target"
        )


def _with_stored(
    steps: DataFrame,
    table: ChangedTable,
    folder: MergeFolder,
    version: str,
    before: Mapping[str, Any],
    schema: StructType,
) -> DataFrame:
    """The changes, and the rows of a version as earlier changes."""
    spark, own = steps.sparkSession, StructType.fromJson(before["schema"])
    columns = [
        (F.col(quoted(field.name)) if field.name in own.names else F.lit(None)).cast(field.dataType).alias(field.name)
        for field in schema
    ]
    live = f"NOT {DELETED}" if DELETED in schema.names else "TRUE"
    for part, there in ((ROWS, live), (GONE, "FALSE"), (TRUNCATED, "FALSE")):
        if folder.has_part(version, part):
            stored = spark.read.schema(own).parquet(folder.shown_part(version, part)).select(*columns)
            steps = steps.unionByName(
                stored_steps(stored, table, before["table"], there, is_truncate=part == TRUNCATED)
            )
    return steps


def _rows(rows: DataFrame, table: ChangedTable, schema: StructType, facts: BatchFacts, with_values: bool) -> DataFrame:
    """The rows of the new version with their ``part``."""
    ended = F.lit(False)
    if facts.truncated is not None:
        ended = F.expr(f"at <= {literal(facts.truncated, schema[ORDER].dataType)}")
    live, keep = F.col("live") & ~ended, DELETED in schema.names
    kept = F.lit(ROWS) if keep else F.when(live, F.lit(ROWS)).when(~ended, F.lit(GONE))
    part = F.when(F.col("is_truncate"), F.lit(TRUNCATED)).otherwise(kept)
    keys = dict(zip(table.keys, table.key_names(), strict=True))
    known = F.lit(True) if with_values else F.col("live")
    values: list[Column] = [
        (F.col(keys[name]) if name in keys else F.when(known, F.col("row")[place])).alias(name)
        for name, place in table.places().items()
    ]
    deleted = [(~live).alias(DELETED)] if keep else []
    own = [*values, F.col("at").alias(ORDER), F.col("time").alias(TIME), *deleted]
    return rows.where(part.isNotNull()).select(*own, part.alias("part"))
