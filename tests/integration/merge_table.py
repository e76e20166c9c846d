"""Merge into a real table of Delta or Iceberg: a session with the connector, in a separate process.

    python -m tests.integration.merge_table delta|iceberg DIRECTORY [connect]

With ``connect``, the session is one of Spark Connect, and only streams are merged.

Prints a line of JSON for each run: its name, and the resulting rows.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any
from unittest import mock

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from sparkwire.errors import WriteConflictError
from sparkwire.spark.changes import merge_table
from tests.support.change_history import SCHEMA, ChangeHistory, as_table

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # For a log with a few commits; by default, each access to a table runs 50 tasks.
    "spark.databricks.delta.snapshotPartitions": "1",
}
ICEBERG = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.defaultCatalog": "lake",
}


def shuffled() -> ChangeHistory:
    """Messages contain every value, so batches may have any order."""
    return ChangeHistory(Random(21), truncates=True, lacks=False).run(300)


def lacking() -> ChangeHistory:
    """Messages lack values, so batches are in order; some are repeated."""
    return ChangeHistory(Random(22)).run(300)


def cut(rows: list[Any], parts: int) -> list[list[Any]]:
    size = len(rows) // parts + 1
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def frame(spark: SparkSession, rows: list[Any]) -> DataFrame:
    return spark.createDataFrame(rows, SCHEMA).coalesce(2)


def say(run: str, rows: DataFrame) -> None:
    result = as_table(rows.collect())
    print(json.dumps([run, plain(result)]), flush=True)


def plain(table: dict[Any, Any]) -> list[Any]:
    return sorted([*key, n, note, None if page is None else page.hex()] for key, (n, note, page) in table.items())


def session(kind: str, directory: str, interface: str = "classic", **more: str) -> SparkSession:
    """A session for a kind of table, with its warehouses in the directory; ``interface`` is classic or connect."""
    settings = {
        **{"delta": DELTA, "iceberg": ICEBERG, "parquet": {}}[kind],
        "spark.sql.catalog.lake.warehouse": f"{directory}/lake",
        "spark.sql.warehouse.dir": f"{directory}/warehouse",
        "spark.sql.shuffle.partitions": "1",
        # With a few hundred rows, compiling a plan takes longer than running it.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        **more,
    }
    builder = SparkSession.builder
    if interface == "connect":
        os.environ["SPARK_TESTING"] = "1"  # then PySpark uses any free port
        builder = builder.remote("local[2]")
    else:
        builder = builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(kind: str, directory: str, interface: str = "classic") -> None:
    spark = session(kind, directory, interface)
    spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    stream(spark, directory)
    streams_and_batches(spark, directory)
    if interface == "connect":
        looked_up(spark)
    else:
        batches(spark)
        special_cases(spark, kind, directory)
    spark.stop()


def looked_up(spark: SparkSession) -> None:
    """Another process of the session looks up a table that exists by now. Each process numbers its calls from 0."""
    from pyspark.sql.connect.plan import LogicalPlan

    exists = []
    for create in (False, True):
        if create:
            spark.range(1).writeTo("shop.created").using("delta").create()
        LogicalPlan._nextPlanId = 1_000_000
        exists.append(merge_table.TableTarget("shop.created").exists(spark))
    print(json.dumps(["looked up", exists]), flush=True)


def batches(spark: SparkSession) -> None:
    for batch in cut(shuffled().delivered(), 3):
        sparkwire.merge(frame(spark, batch), "shop.shuffled")
    say("shuffled", sparkwire.merged(spark, "shop.shuffled"))
    first, second, third = cut(lacking().changes, 3)
    for batch in (first, second, first, third):
        sparkwire.merge(frame(spark, batch), "shop.kept", deletes="keep")
    say("kept", sparkwire.merged(spark, "shop.kept").where("NOT _deleted_"))


def special_cases(spark: SparkSession, kind: str, directory: str) -> None:
    grown(spark)
    more(spark, kind)
    late(spark)
    null_keys(spark)
    looks(spark)
    stopped(spark)
    ranges(spark)
    small_memory(spark)
    conflict(spark, Path(directory))
    lost(spark)


def stream(spark: SparkSession, directory: str) -> None:
    """Missing values over two batches, then the whole stream again from its beginning."""
    for batch in cut(lacking().changes, 2):
        frame(spark, batch).coalesce(1).write.mode("append").parquet(f"{directory}/changes")
    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{directory}/changes")
    for checkpoint in ("checkpoint", "again"):
        query = sparkwire.merge(
            source,
            "shop.streamed",
            ["shop", "id"],
            checkpoint=f"{directory}/{checkpoint}",
            trigger={"availableNow": True},
        )
        assert query is not None
        query.awaitTermination()
    say("streamed", sparkwire.merged(spark, "shop.streamed"))
    deletes = spark.table("shop.streamed__deleted").select("shop", "id", "_order_")
    print(json.dumps(["stored twice", deletes.count() - deletes.distinct().count()]), flush=True)


def streams_and_batches(spark: SparkSession, directory: str) -> None:
    """Each stream sees what batches have deleted since the stream before it. Its change is late."""
    schema = "_op_ STRING, _order_ BIGINT, id INT, v INT"

    def merge(number: int, op: str, order: int) -> None:
        sparkwire.merge(spark.createDataFrame([(op, order, number, order)], schema), "shop.late", "id")

    merge(0, "INSERT", 1)
    for number in range(1, 4):
        merge(number, "DELETE", 100 * number)
        place = f"{directory}/late{number}"
        spark.createDataFrame([("INSERT", 3, number, 3)], schema).write.parquet(place)
        query = sparkwire.merge(
            spark.readStream.schema(schema).parquet(place),
            "shop.late",
            "id",
            checkpoint=f"{place}-progress",
            trigger={"availableNow": True},
        )
        assert query is not None
        query.awaitTermination()
    rows = sparkwire.merged(spark, "shop.late").select("id", "v").collect()
    print(json.dumps(["after streams and batches", [list(row) for row in rows]]), flush=True)


def grown(spark: SparkSession) -> None:
    """A batch that adds a column, lacks a stored value, and deletes rows. Then MERGE reads the tables that it writes."""
    schema = "_op_ STRING, _order_ BIGINT, _unavailable_ ARRAY<STRING>, id INT, v INT"
    first: list[Any] = [("INSERT", k, [], k, k) for k in range(1, 5)] + [("DELETE", 5, [], 4, 4)]
    sparkwire.merge(spark.createDataFrame(first, schema), "shop.grown", "id")
    second: list[Any] = [("UPDATE", 6, ["v"], 1, None, "x"), ("DELETE", 7, [], 2, None, None)]
    sparkwire.merge(spark.createDataFrame(second, f"{schema}, w STRING"), "shop.grown", "id")
    rows = sparkwire.merged(spark, "shop.grown").orderBy("id").select("id", "v", "w").collect()
    print(json.dumps(["grown", [list(row) for row in rows]]), flush=True)


def more(spark: SparkSession, kind: str) -> None:
    """Add a column and widen one. A table that merge did not create is rejected."""
    schema = "_op_ STRING, _order_ BIGINT, _table_ STRING, id INT, v INT"
    sparkwire.merge(
        spark.createDataFrame([("INSERT", 1, "t", 1, 1), ("INSERT", 2, "t", 2, 2)], schema), "shop.wide", "id"
    )
    wider = spark.createDataFrame([("UPDATE", 3, "t", 1, 2**40, "x")], schema.replace("v INT", "v BIGINT, w STRING"))
    sparkwire.merge(wider, "shop.wide", "id")
    rows = sparkwire.merged(spark, "shop.wide").orderBy("id").select("id", "v", "w").collect()
    print(json.dumps(["wide", [list(row) for row in rows]]), flush=True)
    spark.range(1).writeTo("shop.other").using(
        "delta" if "Delta" in spark.conf.get("spark.sql.extensions", "") else "iceberg"
    ).create()
    for changes, target in ((wider, "shop.other"), (wider.replace("t", "u", "_table_"), "shop.wide")):
        try:
            sparkwire.merge(changes, target, "id")
        except ValueError as error:
            print(json.dumps(["rejected", str(error)]), flush=True)


def late(spark: SparkSession) -> None:
    """A change from before a delete, and one from after it, where orders are times or have parts."""
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    for order in ("timestamp_seconds(n)", "struct(n AS scn, 'f' AS file)"):
        target = f"shop.late_{order.partition('(')[0]}"
        for op, n in (("INSERT", 10), ("DELETE", 20), ("UPDATE", 15), ("DELETE", 20), ("TRUNCATE", 12), ("INSERT", 25)):
            row = spark.createDataFrame([(op, n, n)], "_op_ STRING, n INT, v INT").withColumn("_order_", F.expr(order))
            sparkwire.merge(row.withColumn("id", F.lit("k")).drop("n"), target, "id")
            values = [row["v"] for row in sparkwire.merged(spark, target).collect()]
            print(json.dumps(["late", op, n, values]), flush=True)
    spark.conf.unset("spark.sql.session.timeZone")


def null_keys(spark: SparkSession) -> None:
    """A key with NULL in one of its columns is a key like others, also of a deleted row."""
    for rows in (
        [("INSERT", 1, None, 1, 1), ("INSERT", 2, None, 2, 2)],
        [("UPDATE", 4, None, 1, 4), ("DELETE", 5, None, 2, None)],
        [("UPDATE", 3, None, 2, 3)],
    ):
        changes = spark.createDataFrame(rows, "_op_ STRING, _order_ BIGINT, region STRING, id INT, v INT")
        sparkwire.merge(changes, "shop.regions", ["region", "id"])
    result = sparkwire.merged(spark, "shop.regions").select("region", "id", "v").collect()
    print(json.dumps(["keys with NULL", [list(row) for row in result]]), flush=True)


def looks(spark: SparkSession) -> None:
    """Whether a merge reads the table of deleted rows: not for later changes, unless somebody else wrote to that table."""
    steps: list[tuple[str, int, int]] = [
        ("INSERT", 1, 1), ("DELETE", 2, 1), ("DELETE", 3, 2), ("INSERT", 4, 3), ("DELETE", 5, 3), ("UPDATE", 4, 3),
        ("DELETE", 6, 4), ("by hand", 9, 5), ("UPDATE", 8, 5), ("DELETE", 10, 6), ("UPDATE", 11, 5),
    ]  # fmt: skip
    schema, read = "_op_ STRING, _order_ BIGINT, id INT, v INT", merge_table._gone_since
    for op, order, id in steps:
        if op == "by hand":
            spark.sql(f"INSERT INTO shop.looks__deleted SELECT {id}, NULL, {order}, NULL, FALSE")
            continue
        with mock.patch.object(merge_table, "_gone_since", mock.Mock(side_effect=read)) as looked:
            sparkwire.merge(spark.createDataFrame([(op, order, id, order)], schema), "shop.looks", "id")
        rows = sorted([row["id"], row["v"]] for row in sparkwire.merged(spark, "shop.looks").collect())
        print(json.dumps(["looks", op, order, looked.called, rows]), flush=True)


def stopped(spark: SparkSession) -> None:
    """A merge stops before it has stored its deletes, and is given again: a late change does not restore the row.

    If a delete takes its values from the table, the merge stops before the MERGE, so the values are still there.
    """
    schema, merged = "_op_ STRING, _order_ BIGINT, id INT, v INT, _unavailable_ ARRAY<STRING>", Event()
    commit, runs = merge_table._run, []

    def run(*arguments: Any) -> None:
        runs.append(True)
        commit(*arguments)
        merged.set()

    for lacks in (False, True):
        target, step = f"shop.stopped_{lacks}".lower(), "filled" if lacks else "whole"

        def stop(*_: Any, lacks: bool = lacks) -> None:
            assert lacks or merged.wait(60)
            raise RuntimeError("stopped")

        def merge(*row: Any, lacks: bool = lacks, target: str = target) -> None:
            changes = spark.createDataFrame([(*row, [])], schema)
            sparkwire.merge(changes if lacks else changes.drop("_unavailable_"), target, "id")

        merge("INSERT", 1, 1, 10)
        with (
            mock.patch.object(merge_table, "_remember", stop),
            mock.patch.object(merge_table, "_run", run),
            suppress(RuntimeError),
        ):
            merge("DELETE", 3, 1, None)
            raise AssertionError("the merge did not stop")
        rows = [sparkwire.merged(spark, target).count()]
        for op, order in (("DELETE", 3), ("UPDATE", 2)):
            merge(op, order, 1, 20)
            rows.append(sparkwire.merged(spark, target).count())
        [kept] = spark.table(f"{target}__deleted").select("_order_", "v").collect()
        print(json.dumps(["stopped", step, len(runs), rows, list(kept)]), flush=True)


def ranges(spark: SparkSession) -> None:
    """Whether the MERGE has a range of keys: not for a small table of Delta."""
    commit, conditions = merge_table._run, []

    def run(source: DataFrame, target: Any, condition: str, clauses: Any) -> None:
        conditions.append("BETWEEN" in condition)
        commit(source, target, condition, clauses)

    for order, size in ((1, merge_table._FILTERED_SIZE), (2, merge_table._FILTERED_SIZE), (3, 0)):
        changes = spark.createDataFrame([("UPSERT", order, 1, order)], "_op_ STRING, _order_ BIGINT, id INT, v INT")
        with (
            mock.patch.object(merge_table, "_run", run),
            mock.patch.object(merge_table, "_FILTERED_SIZE", size),
        ):
            sparkwire.merge(changes, "shop.ranges", "id")
    rows = [list(row) for row in sparkwire.merged(spark, "shop.ranges").select("id", "v").collect()]
    print(json.dumps(["ranges", conditions, rows]), flush=True)


def small_memory(spark: SparkSession) -> None:
    """A MERGE that joins by hash has not enough memory: it sorts."""
    changes = spark.createDataFrame([("INSERT", 1, 1, 1)], "_op_ STRING, _order_ BIGINT, id INT, v INT")
    commit, by_hash = merge_table._run, []

    def failing(*arguments: Any) -> None:
        by_hash.append(spark.conf.get(merge_table._HASH_JOIN) == merge_table._HASHED_SIZE)
        if by_hash[-1]:
            raise RuntimeError("Can't acquire 67108864 bytes memory to build hash relation, got 512 bytes")
        commit(*arguments)

    with mock.patch.object(merge_table, "_run", failing):
        sparkwire.merge(changes, "shop.small_memory", "id")
    print(json.dumps(["by hash", by_hash, sparkwire.merged(spark, "shop.small_memory").count()]), flush=True)


def lost(spark: SparkSession) -> None:
    """The rows that merge keeps are lost before its MERGE, as with a worker: it begins again."""
    changes = spark.createDataFrame([("UPDATE", 11, 1, 11)], "_op_ STRING, _order_ BIGINT, id INT, v BIGINT")
    commit, losses = merge_table._run, iter([True, False])

    def losing(*arguments: Any) -> None:
        if next(losses):
            for rows in spark.sparkContext._jsc.getPersistentRDDs().values():
                rows.unpersist(True)
        commit(*arguments)

    with mock.patch.object(merge_table, "_run", losing):
        sparkwire.merge(changes, "shop.wide", "id")
    rows = sparkwire.merged(spark, "shop.wide").orderBy("id").select("id", "v").collect()
    print(json.dumps(["after a loss", [list(row) for row in rows], list(losses)]), flush=True)


def conflict(spark: SparkSession, directory: Path) -> None:
    """Update the table while merge runs; the source of merge waits for the update."""
    running, updated, commit = directory / "running", directory / "updated", merge_table._run
    changes = spark.createDataFrame([("UPDATE", 9, 1, 9)], "_op_ STRING, _order_ BIGINT, id INT, v BIGINT")

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        running.touch()
        while not updated.exists():
            time.sleep(0.05)
        yield from batches

    def waiting(source: DataFrame, *others: Any) -> None:
        commit(source.mapInArrow(wait, source.schema), *others)

    def update() -> None:
        while not running.exists():
            time.sleep(0.05)
        try:
            spark.sql("UPDATE shop.wide SET v = v + 1")
        finally:
            updated.touch()

    other = Thread(target=update)
    other.start()
    with mock.patch.object(merge_table, "_run", waiting):
        try:
            sparkwire.merge(changes, "shop.wide", "id")
        except WriteConflictError as error:
            print(json.dumps(["conflict", str(error)]), flush=True)
    other.join()
    sparkwire.merge(changes, "shop.wide", "id")
    rows = sparkwire.merged(spark, "shop.wide").orderBy("id").select("id", "v").collect()
    print(json.dumps(["after the conflict", [list(row) for row in rows]]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
