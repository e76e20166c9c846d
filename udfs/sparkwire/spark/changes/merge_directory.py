"""Merge into a directory of Parquet: each merge writes a complete new version, and then makes it the newest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sparkwire.base.printable import printable
from sparkwire.changes.columns import DELETED
from sparkwire.changes.merge_memory import MEMORY
from sparkwire.changes.merge_versions import REST, ROWS, MergeFolder
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.merge_statement import CHANGED, Statement, named_view
from sparkwire.spark.changes.merge_types import agreed, check_made, stored_schema, visible
from sparkwire.spark.frames import quoted


class DirectoryTarget:
    """A directory, locked against other writers (`opened`)."""

    tells_changed, counts_entries = True, False

    def __init__(self, folder: MergeFolder, newest: str | None, keep: bool) -> None:
        self.folder, self.newest, self.keep = folder, newest, keep
        self.name = folder.path
        self.details: dict[str, Any] = {} if newest is None else folder.details(newest)

    @classmethod
    @contextmanager
    def opened(cls, spark: SparkSession, path: str, keep: bool) -> Iterator[DirectoryTarget]:
        folder = MergeFolder(path)
        with folder.locked() as newest:
            yield cls(folder, newest, keep)

    @property
    def exists(self) -> bool:
        return self.newest is not None

    @property
    def table_name(self) -> str | None:
        """The name of the table whose changes the target has."""
        return self.details.get("table")

    def agree(self, table: ChangedTable, is_case_sensitive: bool) -> StructType:
        """The columns after the merge. Raises ValueError if the changes do not fit the target."""
        self.schema, self.keys = stored_schema(table), table.keys
        if self.newest is not None:
            check_made(self.name, self.details, table.keys, self.keep)
            stored = StructType.fromJson(self.details["schema"])
            self.schema = agreed(stored, self.schema, self.name, is_case_sensitive)
        return self.schema

    @contextmanager
    def prepared(self, spark: SparkSession, table_name: str | None) -> Iterator[str]:
        """The stored rows, as SQL. ``table_name``: the name of the table whose changes the target has from now on."""
        self.details = {**self.details, "table": table_name}
        with named_view(self._rows(spark)) as name:
            yield name

    def _rows(self, spark: SparkSession) -> DataFrame:
        if self.newest is None:
            return spark.createDataFrame([], self.schema)
        stored = read_version(spark, self.folder, self.newest)
        known = set(stored.columns)
        return stored.select(
            *(
                (F.col(quoted(field.name)) if field.name in known else F.lit(None))
                .cast(field.dataType)
                .alias(field.name)
                for field in self.schema
            )
        )

    def run(self, spark: SparkSession, relation: str, statement: Statement) -> int | None:
        """Write the version after the statement. Returns the number of changed rows."""
        folder, version = self.folder, self.folder.next_version(self.newest)
        rows = spark.sql(statement.as_join(relation, self.schema.names)).persist()
        try:
            changed = rows.agg(F.expr(f"count_if({CHANGED} AND {MEMORY}.entry IS NULL)")).collect()[0][0]
            is_seen = f"({MEMORY}.entry IS NULL{'' if self.keep else f' AND NOT {DELETED}'})"
            seen = rows.where(is_seen).drop(CHANGED, *([] if self.keep else [DELETED]))
            seen.write.parquet(folder.to_write(version, ROWS))
            rows.where(f"NOT {is_seen}").drop(CHANGED).write.parquet(folder.to_write(version, REST))
        finally:
            rows.unpersist()
        noted = {
            "schema": self.schema.jsonValue(),
            "keys": self.keys,
            "deletes": "keep" if self.keep else "remove",
            "table": self.details["table"],
        }
        folder.publish(version, self.newest, noted)
        return int(changed)


def read_version(spark: SparkSession, folder: MergeFolder, version: str) -> DataFrame:
    """All rows of a version: those that readers see, and what a merge remembers."""
    schema = StructType.fromJson(folder.details(version)["schema"])
    read = spark.read.schema(schema)
    rows = read.parquet(folder.to_read(version, ROWS))
    return rows.withColumn(DELETED, F.coalesce(DELETED, F.lit(False))).unionByName(
        read.parquet(folder.to_read(version, REST))
    )


def merged_directory(spark: SparkSession, path: str) -> DataFrame:
    """The newest version. Raises ValueError if none exists."""
    folder = MergeFolder(path)
    newest = folder.newest()
    if newest is None:
        raise ValueError(printable(f"{folder.path} has no table of merge yet"))
    details = folder.details(newest)
    schema = StructType.fromJson(details["schema"])
    rows = spark.read.schema(schema).parquet(folder.to_read(newest, ROWS))
    return rows.select(*map(quoted, visible(schema, keep=details["deletes"] == "keep")))
