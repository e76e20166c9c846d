"""A driver that is killed in a merge into a path, with the JVM in which it runs Spark: `tests.spark.test_merge_kills`.

    python -m tests.support.killed_merge DIRECTORY [KILL]

With a kill in JSON, the driver merges a batch into a table of its own, and is killed before or after a step. It may also be
killed amid Spark's writing, after the first row. Without one, the standard input has a line for each earlier kill. Then the
driver repeats all merges, and prints what it found before and after each.
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


def merge_and_die(spark: SparkSession, folder: Path, kill: dict[str, Any]) -> None:
    path = folder / kill["name"]
    if kill["exists"]:
        base = folder / "base"
        if not base.exists():
            sparkwire.merge(first(spark), base, "id")
        shutil.copytree(base, path)
    owner, name = STEPS[kill["step"]]
    function = owner.__dict__[name]
    plain = function.__func__ if isinstance(function, classmethod) else function
    killing: Any = dying(plain, kill["moment"])
    with mock.patch.object(owner, name, classmethod(killing) if isinstance(function, classmethod) else killing):
        sparkwire.merge(batch(spark, second=kill["exists"]), path, "id")
    raise AssertionError(f"the merge has no step {kill['step']}")


def facts(spark: SparkSession, folder: Path, kill: dict[str, Any]) -> dict[str, Any]:
    """What a driver finds that repeats the merge of a killed one."""
    path = str(folder / kill["name"])
    before = found(spark, path)
    sparkwire.merge(batch(spark, second=kill["exists"]), path, "id")
    folders = {Path(file).parent for file in DeltaTable(path).file_uris()}
    return {"found": before, "again": found(spark, path), "folders": len(folders)}


def main(folder: str, kill: str = "") -> None:
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
    if kill:
        merge_and_die(spark, Path(folder), json.loads(kill))
    for line in sys.stdin:
        print(json.dumps(facts(spark, Path(folder), json.loads(line))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
