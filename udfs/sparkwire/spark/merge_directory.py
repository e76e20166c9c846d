"""Merge into a directory of Parquet: each merge writes a new version, whole, and then names it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql.types import StructType

from sparkwire.cdc.change_columns import DELETED, ORDER, TIME
from sparkwire.cdc.merge_versions import DELETED as GONE
from sparkwire.cdc.merge_versions import ROWS, TRUNCATED, MergeFolder
from sparkwire.spark.current import Table, events, latest, resolved, stored_steps, within
from sparkwire.spark.merge_types import agreed, aligned, stored_schema


def merge_into_directory(changes: DataFrame, table: Table, path: str, keep: bool) -> None:
    """One new version of the table: the one before, and these changes."""
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
            steps = _with_stored(steps, table, folder, newest, before["table"], schema)
        version = folder.next_version(newest)
        name = _write(_rows(steps, table, schema, keep), f"{folder.path}/{version}")
        if not folder.has_part(version, ROWS):
            changes.sparkSession.createDataFrame([], schema).write.parquet(folder.shown_part(version, ROWS))
        noted = {"schema": schema.jsonValue(), "keys": table.keys, "table": name or before.get("table")}
        folder.publish(version, newest, noted)


def merged_directory(spark: SparkSession, path: str) -> DataFrame:
    """The newest version. ValueError where there is none."""
    folder = MergeFolder(path)
    newest = folder.newest()
    if newest is None:
        raise ValueError(f"{folder.path} holds no table of merge yet")
    schema = StructType.fromJson(folder.details(newest)["schema"])
    return spark.read.schema(schema).parquet(folder.shown_part(newest, ROWS))


def _check(before: Mapping[str, Any], table: Table, path: str) -> None:
    if before["keys"] != table.keys:
        raise ValueError(
            f"{path} has the key {', '.join(before['keys'])}, and the changes have {', '.join(table.keys)}: give its keys, "
            "or name another target"
        )


def _with_stored(
    steps: DataFrame, table: Table, folder: MergeFolder, version: str, name: str | None, schema: StructType
) -> DataFrame:
    """The changes and, as changes before them, the rows of a version."""
    spark = steps.sparkSession
    live = ~F.col(DELETED) if DELETED in schema.names else F.lit(True)
    for part, there in ((ROWS, live), (GONE, F.lit(False)), (TRUNCATED, F.lit(False))):
        if folder.has_part(version, part):
            stored = spark.read.schema(schema).parquet(folder.shown_part(version, part))
            steps = steps.unionByName(stored_steps(stored, table, name, there, is_truncate=part == TRUNCATED))
    return steps


def _rows(steps: DataFrame, table: Table, schema: StructType, keep: bool) -> DataFrame:
    """The rows of the new version, each with its ``part``, and the ``name`` of the table."""
    last = latest(steps, table)
    with_values = keep or table.may_lack_values
    rows = resolved(steps, table, last, dead_too=True) if with_values else last
    rows = within(rows, last)
    ended = F.coalesce(F.col("at") <= F.col("truncated"), F.lit(False))
    live = F.col("live") & ~ended
    kept = F.lit(ROWS) if keep else F.when(live, F.lit(ROWS)).when(~ended, F.lit(GONE))
    part = F.when(F.col("is_truncate"), F.lit(TRUNCATED)).otherwise(kept)
    keys = dict(zip(table.keys, table.key_names(), strict=True))
    known = F.lit(True) if with_values else F.col("live")
    values: list[Column] = [
        (F.col(keys[name]) if name in keys else F.when(known, F.col("row")[f"c{k}"])).alias(name)
        for k, name in enumerate(table.columns)
    ]
    deleted = [(~live).alias(DELETED)] if DELETED in schema.names else []
    own = [*values, F.col("at").alias(ORDER), F.col("time").alias(TIME), *deleted]
    return rows.where(part.isNotNull()).select(*own, part.alias("part"), "name")


def _write(rows: DataFrame, path: str) -> str | None:
    """Write a version; the name of its table, None where no change tells it."""
    seen = Observation()
    rows.observe(seen, F.max("name").alias("name")).drop("name").write.partitionBy("part").parquet(path)
    name: str | None = seen.get["name"]
    return name
