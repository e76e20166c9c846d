"""A driver that is killed in a merge into a path, with the JVM in which it runs Spark: `tests.spark.test_merge_kills`.

    python -m tests.support.killed_merge DIRECTORY

The standard input has two lines of JSON, each a kill or null. First, the driver repeats the merge of an earlier driver, and
prints what it found before and after it. Then it merges a batch into another table, and is killed before or after a step. It may
also be killed amid Spark's writing, after the first row.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from unittest import mock

import pyarrow as pa
import pyspark.sql.functions as F
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameWriter

import sparkwire
from sparkwire.changes import delta_log
from tests.support.merge_batches import simple

STEPS: Final[dict[str, tuple[Any, str]]] = {
    "create": (delta_log.DeltaLog, "create"),
    "property": (delta_log.DeltaLog, "note"),
    "feature": (delta_log.DeltaLog, "allow_local_times"),
    "write": (DataFrameWriter, "parquet"),
    "footers": (delta_log, "_written"),
    "commit": (DeltaTable, "create_write_transaction"),
}
BEFORE: Final = [[1, 10], [2, 20]]
"""the rows of a table after the first batch"""
AFTER: Final = [[1, 11], [3, 30]]
"""those after the second one"""


def batch(spark: SparkSession, second: bool) -> DataFrame:
    rows = [("INSERT", 1, 1, 10), ("INSERT", 2, 2, 20)]
    later = [("UPDATE", 3, 1, 11), ("DELETE", 4, 2, None), ("INSERT", 5, 3, 30)]
    changes = simple(spark, *([*rows, *later] if not second else later))
    return changes.withColumn("n", F.expr("TIMESTAMP_NTZ '2024-01-02 03:04:05'"))


def first(spark: SparkSession) -> DataFrame:
    return batch(spark, second=False).where("_order_.offset < 3")


def found(spark: SparkSession, path: str) -> list[list[int]] | None:
    """The rows that exist; None without a table."""
    try:
        return sorted([row["id"], row["v"]] for row in sparkwire.merged(spark, path).collect())
    except ValueError as error:
        if "has no table of merge yet" not in str(error):
            raise
        return None


def die() -> None:
    """End the driver and its JVM, without any handler."""
    os.killpg(os.getpgid(0), signal.SIGKILL)


def dying(function: Callable[..., Any], moment: str) -> Callable[..., Any]:
    def run(*arguments: Any, **options: Any) -> Any:
        if moment == "before":
            die()
        if moment == "amid":  # of Spark's writing
            writer, driver = arguments[0], os.getpgid(0)
            rows = writer._df

            def kill(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                for one in batches:
                    yield one.slice(0, 1)
                    os.killpg(driver, signal.SIGKILL)

            function(rows.mapInArrow(kill, rows.schema).write, *arguments[1:])
        result = function(*arguments, **options)
        die()
        return result

    return run


def main() -> None:
    folder = sys.argv[1]
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        # With a few rows, compiling a plan takes longer than running it.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    earlier, later = (json.loads(line) for line in sys.stdin)
    if earlier:
        path = f"{folder}/{earlier['name']}"
        result: dict[str, Any] = {"found": found(spark, path)}
        sparkwire.merge(batch(spark, second=earlier["exists"]), path, "id")
        result |= {
            "again": found(spark, path),
            "folders": len({Path(file).parent for file in DeltaTable(path).file_uris()}),
        }
        print(json.dumps(result), flush=True)
    elif later:
        sparkwire.merge(first(spark), f"{folder}/base", "id")
    if later:
        path = f"{folder}/{later['name']}"
        if later["exists"]:
            shutil.copytree(f"{folder}/base", path)
        owner, name = STEPS[later["step"]]
        function = owner.__dict__[name]
        plain = function.__func__ if isinstance(function, classmethod) else function
        killing: Any = dying(plain, later["moment"])
        with mock.patch.object(owner, name, classmethod(killing) if isinstance(function, classmethod) else killing):
            sparkwire.merge(batch(spark, second=later["exists"]), path, "id")
        raise AssertionError(f"the merge has no step {later['step']}")
    Path(folder, "done").touch()


if __name__ == "__main__":
    main()
