"""Merge into real tables of Delta and Iceberg: a session with the connector, in a separate process.

    python -m tests.integration.merge_table delta|iceberg DIRECTORY [classic|connect [FACT ...]]

With ``connect``, the session is one of Spark Connect, and fewer facts are found out; or only the named ones.

Prints a line of JSON for each fact: its name, and what was found. `test_merge_table` has what is right.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any
from unittest import mock

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from sparkwire.spark.changes import merge, merge_names, merge_stored, merge_table
from sparkwire.spark.changes.merge import MergeResult
from tests.support import WHOLE
from tests.support import merge_scenarios as scenarios
from tests.support.change_history import SCHEMA, ChangeHistory, as_table, reported
from tests.support.merge_batches import ORDER, SIMPLE, cut, frame, simple

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # For a log with a few commits; by default, each access to a table runs 50 tasks.
    "spark.databricks.delta.snapshotPartitions": "1",
}
ICEBERG = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    # A catalog with views, and one without.
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "jdbc",
    "spark.sql.catalog.lake.jdbc.schema-version": "V1",
    "spark.sql.catalog.plain": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.plain.type": "hadoop",
    "spark.sql.defaultCatalog": "lake",
}


def session(kind: str, directory: str, interface: str = "classic", **more: str) -> SparkSession:
    """A session for a kind of table, with its warehouses in the directory; ``interface`` is classic or connect."""
    settings = {
        **{"delta": DELTA, "iceberg": ICEBERG, "parquet": {}}[kind],
        "spark.sql.catalog.lake.warehouse": f"{directory}/lake",
        "spark.sql.catalog.lake.uri": f"jdbc:h2:file:{directory}/catalog;DATABASE_TO_LOWER=TRUE;FILE_LOCK=FS",
        "spark.sql.catalog.plain.warehouse": f"{directory}/plain",
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
        # Iceberg reads the source of a merge in two tasks. One of the checks lets both wait for another statement.
        builder = builder.master("local[3]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def lacking() -> ChangeHistory:
    """Messages lack values, so batches are in order; some are repeated."""
    return ChangeHistory(Random(22)).run(300)


def plain(table: dict[Any, Any]) -> list[Any]:
    return sorted([*key, n, note, None if page is None else page.hex()] for key, (n, note, page) in table.items())


def pairs(rows: DataFrame) -> list[list[Any]]:
    return sorted([row["id"], row["v"]] for row in rows.collect())


def error_of(action: Callable[[], Any]) -> str:
    try:
        action()
    except (ValueError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


class Facts:
    """Finds out facts about a kind of table. The name of each method is that of the fact; its result is what was found."""

    def __init__(self, spark: SparkSession, kind: str, directory: str) -> None:
        self.spark, self.kind, self.directory = spark, kind, Path(directory)

    def commits(self, table: str) -> int:
        """The number of commits that may change rows. A new trait of the table is a property, which is noted before."""
        log = f"DESCRIBE HISTORY {table}" if self.kind == "delta" else f"SELECT * FROM {table}.snapshots"
        return len(self.spark.sql(log).where("operation <> 'SET TBLPROPERTIES'").collect())

    def merge(self, target: str, *rows: Any, deletes: Any = "remove") -> MergeResult:
        return sparkwire.merge(simple(self.spark, *rows), target, "id", deletes=deletes)

    # -- rows

    def scenarios(self) -> dict[str, Any]:
        """The live and the deleted rows of each scenario."""
        found = {}
        groups = {name: scenarios.GROUPS[name] for name in GROUPS[self.kind]}
        if self.kind == "delta":  # each has a table of its own
            groups |= {f"s{k}": {f"truncate: {name}": scenarios.TRUNCATES[name]} for k, name in enumerate(TRUNCATES)}
        for group, members in groups.items():
            for rows in scenarios.batches(members):
                changes = frame(self.spark, rows, scenarios.SCHEMA)
                sparkwire.merge(changes, f"shop.{group}", scenarios.KEYS, deletes="keep")
            rows = sparkwire.merged(self.spark, f"shop.{group}").collect()
            for name in members:
                parts = [[row for row in rows if row["_deleted_"] == deleted] for deleted in (False, True)]
                found[name] = [scenarios.result(part, name) for part in parts]
        return found

    def streamed_twice(self) -> Any:
        """Missing values over two batches, then the whole stream again from its beginning."""
        for batch in cut(reported(lacking()), 2):
            frame(self.spark, batch).coalesce(1).write.mode("append").parquet(f"{self.directory}/changes")
        source = (
            self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{self.directory}/changes")
        )
        for checkpoint in ("checkpoint", "again"):
            sparkwire.merge(
                source,
                "shop.streamed",
                ["shop", "id"],
                checkpoint=f"{self.directory}/{checkpoint}",
                trigger={"availableNow": True},
            ).awaitTermination()
        return plain(as_table(sparkwire.merged(self.spark, "shop.streamed").collect()))

    def streams_and_batches(self) -> Any:
        """Each stream sees what batches have deleted since the stream before it. Its change is late."""
        self.merge("shop.late", ("INSERT", 1, 0, 1))
        for number in range(1, 4):
            self.merge("shop.late", ("DELETE", 100 * number, number, None))
            place = f"{self.directory}/late{number}"
            simple(self.spark, ("INSERT", 3, number, 3)).write.parquet(place)
            sparkwire.merge(
                self.spark.readStream.schema(SIMPLE).parquet(place),
                "shop.late",
                "id",
                checkpoint=f"{place}-progress",
                trigger={"availableNow": True},
            ).awaitTermination()
        return pairs(sparkwire.merged(self.spark, "shop.late"))

    def numbers_and_times_as_orders(self) -> Any:
        """A change from before a delete, and one from after it, where orders are times or have parts."""
        found = []
        self.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        for order in (
            "timestamp_seconds(n)",
            "struct(0 AS epoch, n AS scn, 'f' AS file, CAST(NULL AS BIGINT) AS position)",
        ):
            target = f"shop.late_{order.partition('(')[0]}"
            for batch in ([("INSERT", 10)], [("DELETE", 20)], [("UPDATE", 15), ("TRUNCATE", 12)], [("INSERT", 25)]):
                rows = self.spark.createDataFrame([(op, n, n) for op, n in batch], "_op_ STRING, n INT, v INT")
                rows = rows.withColumns({"_order_": F.expr(order), "id": F.lit(1)}).drop("n")
                sparkwire.merge(rows, target, "id")
                found.append(pairs(sparkwire.merged(self.spark, target)))
        self.spark.conf.unset("spark.sql.session.timeZone")
        return found

    # -- what is stored

    def a_view_shows_the_rows_that_exist(self) -> Any:
        self.merge("shop.viewed", ("INSERT", 1, 1, 1), ("INSERT", 2, 2, 2), ("INSERT", 3, 3, 3))
        self.merge("shop.viewed", ("DELETE", 4, 1, None), ("UPDATE", 5, 2, 20))
        own = self.spark.table("shop.viewed__rows").select("id", "v", "_deleted_").orderBy("id").collect()
        tables = sorted(
            row[1] for row in self.spark.sql("SHOW TABLES IN shop").collect() if row[1].startswith("viewed")
        )
        return [
            pairs(self.spark.table("shop.viewed")),
            self.spark.table("shop.viewed").columns,
            [list(row) for row in own],
            [name for name in tables if name != "viewed"],  # some catalogs list views as tables
            pairs(sparkwire.merged(self.spark, "shop.viewed")),
        ]

    def kept_rows_are_in_the_table_itself(self) -> Any:
        self.merge("shop.marked", ("INSERT", 1, 1, 1), ("INSERT", 2, 2, 2), deletes="keep")
        self.merge(
            "shop.marked", ("DELETE", 3, 1, None), ("TRUNCATE", 2, None, None), ("INSERT", 4, 3, 3), deletes="keep"
        )
        live = pairs(self.spark.table("shop.marked").where("NOT _deleted_"))
        rows = sparkwire.merged(self.spark, "shop.marked")
        return [live, sorted([row["id"], row["v"], row["_deleted_"]] for row in rows.collect()), rows.columns]

    def a_merge_is_one_commit(self) -> Any:
        self.merge("shop.commits", ("INSERT", 1, 1, 1), ("INSERT", 2, 2, 2))
        before = self.commits("shop.commits__rows")
        self.merge("shop.commits", ("DELETE", 3, 1, None), ("UPDATE", 4, 2, 3), ("INSERT", 5, 3, 3))
        return self.commits("shop.commits__rows") - before

    def settings_stay(self) -> Any:
        before = dict(self.spark.conf.getAll) if hasattr(self.spark.conf, "getAll") else {}
        self.merge("shop.settings", ("INSERT", 1, 1, 1))
        after = dict(self.spark.conf.getAll) if hasattr(self.spark.conf, "getAll") else {}
        own = {"spark.databricks.delta.lastCommitVersionInSession"}  # Delta itself sets it
        names = (before.keys() | after.keys()) - own
        return {name: after.get(name) for name in names if before.get(name) != after.get(name)}

    def columns_are_added_and_widen(self) -> Any:
        """The batch also lacks a stored value and deletes a row."""
        schema = f"_op_ STRING, {ORDER}, _unavailable_ ARRAY<STRING>, id INT, v INT"
        first: list[Any] = [("INSERT", (0, 0, k), [], k, k) for k in range(1, 5)]
        sparkwire.merge(frame(self.spark, first, schema), "shop.grown", "id")
        second: list[Any] = [("UPDATE", (0, 0, 6), ["v"], 1, None, "x"), ("DELETE", (0, 0, 7), [], 2, None, None)]
        sparkwire.merge(frame(self.spark, second, f"{schema}, w STRING"), "shop.grown", "id")
        third: list[Any] = [("UPDATE", (0, 0, 8), [], 3, 2**40, "y")]
        wide = schema.replace("v INT", "v BIGINT")
        sparkwire.merge(frame(self.spark, third, f"{wide}, w STRING"), "shop.grown", "id")
        table = self.spark.table("shop.grown")
        return [
            [list(row) for row in table.orderBy("id").select("id", "v", "w").collect()],
            table.schema["v"].dataType.typeName(),
        ]

    def times_and_names_that_delta_needs_features_for(self) -> Any:
        """A local time, and a name with spaces: in the first merge, or in a later one into a table or a path."""
        name, path = "unit price, {a}=b;", f"delta.`{self.directory}/features`"
        more = {"at": F.lit("2024-02-29 01:02:03").cast("timestamp_ntz"), name: F.struct(F.lit(1).alias("a b"))}
        found = []
        for target in ("shop.features", "shop.features_later", *([path] if self.kind == "delta" else [])):
            steps = [more, more] if target == "shop.features" else [{}, {"at": more["at"]}, more]
            for order, columns in enumerate(steps):
                changes = simple(self.spark, ("UPSERT", order, 1, order))
                sparkwire.merge(changes.select("*", *(one.alias(key) for key, one in columns.items())), target, "id")
            rows = sparkwire.merged(self.spark, target).select("v", F.col("at").cast("string"), f"`{name}`.`a b`")
            found.append([list(row) for row in rows.collect()])
        return found

    def a_date_becomes_a_time(self) -> Any:
        errors = []
        for order, type in enumerate(("date", "timestamp_ntz", "date")):
            changes = simple(self.spark, ("UPSERT", order, order, order))
            changes = changes.withColumn("at", F.lit("2024-02-29").cast(type))
            errors.append(error_of(partial(sparkwire.merge, changes, "shop.days", "id")))
        return [errors, sorted(str(row["at"]) for row in self.spark.table("shop.days").collect())]

    def deleted_rows_can_be_purged(self) -> Any:
        """By the statement of the page. Then a late change restores a row."""
        self.merge("shop.purged", ("INSERT", 1, 1, 1), ("INSERT", 2, 2, 2), ("DELETE", 3, 1, None))
        self.spark.sql("DELETE FROM shop.purged__rows WHERE _deleted_ AND _order_.offset < 100")
        left = self.spark.table("shop.purged__rows").count()
        self.merge("shop.purged", ("UPDATE", 5, 2, 3))
        return [left, pairs(self.spark.table("shop.purged"))]

    def an_epoch_that_replaces_the_one_before(self) -> Any:
        for rows in ([("INSERT", 1, 1, 1), ("INSERT", 2, 2, 2)], [("READ", (1, 0, 1), 1, 10)]):
            changes = simple(self.spark, *rows).withMetadata("_order_", {"sparkwire.replaces_epochs": True})
            sparkwire.merge(changes, "shop.epochs", "id")
        return pairs(self.spark.table("shop.epochs"))

    def a_name_with_other_characters(self) -> Any:
        for order in (1, 2):
            self.merge("shop.`1_table`", ("INSERT", order, order, order))
        return pairs(self.spark.table("shop.`1_table`"))

    def a_delta_path(self) -> Any:
        """The path with a format, and then alone. It has no view."""
        path = f"{self.directory}/by path"
        self.merge(f"delta.`{path}`", ("INSERT", 1, 1, 1), ("INSERT", 2, 2, 2))
        self.merge(path, ("DELETE", 3, 1, None), ("TRUNCATE", 1, None, None))
        return [pairs(sparkwire.merged(self.spark, path)), sparkwire.merged(self.spark, path).columns]

    def a_path_that_a_killed_job_began(self) -> Any:
        """It has a log without commits, then also a table without our property. Other files are somebody else's."""
        path = Path(self.directory, "begun")
        (path / "_delta_log" / "_staged_commits").mkdir(parents=True)
        with mock.patch.object(merge_table.TableTarget, "_note", side_effect=KeyboardInterrupt):
            try:
                self.merge(f"delta.`{path}`", ("INSERT", 1, 1, 1))
            except KeyboardInterrupt:
                properties = merge_table.properties_of(self.spark, merge_names.TableName(("delta", str(path))))
        self.merge(f"delta.`{path}`", ("INSERT", 1, 1, 1), ("INSERT", 2, 2, 2))
        other = Path(self.directory, "of others")
        other.mkdir()
        (other / "part-0.csv").write_text("1,1")
        error = error_of(lambda: self.merge(f"delta.`{other}`", ("INSERT", 1, 1, 1)))
        error = error.replace(str(self.directory), "DIRECTORY")
        Path(self.directory, "warehouse", "shop.db", "begun__rows", "_delta_log").mkdir(parents=True)
        named = error_of(lambda: self.merge("shop.begun", ("INSERT", 1, 1, 1)))
        return [
            "sparkwire.merge" in (properties or {}),
            pairs(sparkwire.merged(self.spark, path)),
            error,
            named,
            [file.name for file in other.iterdir()],
        ]

    # -- the result

    def results(self) -> Any:
        found = [
            self.merge("shop.results", ("INSERT", 10, 1, 1), ("INSERT", 12, 2, 3), ("DELETE", 13, 9, None)),
            self.merge("shop.results", ("UPDATE", 12, 2, 3), ("UPDATE", 9, 1, 0), ("INSERT", 20, 5, 5)),
            self.merge("shop.results", ("TRUNCATE", 15, None, None), ("UPDATE", 14, 1, 0), ("UPDATE", 7, 2, 0)),
        ]
        return [list(one) for one in found]

    def late_as_a_whole(self) -> Any:
        """Warnings about a batch, its repetition, and a topic that was made anew."""
        found = []
        for offset in (10, 10, 1):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = self.merge("shop.anew", ("INSERT", offset, 1, offset))
            found.append([result.late, [str(one.message)[:35] for one in caught if one.category is UserWarning]])
        return found

    # -- errors

    def orders_that_cannot_be_compared(self) -> Any:
        self.merge("shop.parts", ("INSERT", 5, 1, 1), ("INSERT", (0, 1, 1), 2, 2))
        before = self.commits("shop.parts__rows")
        errors = [
            error_of(lambda batch=batch: self.merge("shop.parts", *batch, ("INSERT", 7, 3, 3)))  # type: ignore[misc]
            for batch in ([("UPDATE", (0, 1, 9), 1, 9)], [("TRUNCATE", 9, None, None)])
        ]
        return [[text.partition(" of epoch")[0] for text in errors], self.commits("shop.parts__rows") - before]

    def foreign_and_lost_tables(self) -> Any:
        provider = "delta" if self.kind == "delta" else "iceberg"
        for name in ("foreign", "other__rows"):
            self.spark.range(1).writeTo(f"shop.{name}").using(provider).create()
        self.merge("shop.lost", ("INSERT", 1, 1, 1))
        self.spark.sql("DROP TABLE shop.lost__rows")
        self.merge("shop.mine", ("INSERT", 1, 1, 1))
        self.merge("shop.mine_kept", ("INSERT", 1, 1, 1), deletes="keep")
        two = simple(self.spark, ("INSERT", 2, 1, 1)).withColumn("_table_", F.lit("u"))
        errors = {
            "foreign": error_of(lambda: self.merge("shop.foreign", ("INSERT", 1, 1, 1))),
            "foreign, kept": error_of(lambda: self.merge("shop.foreign", ("INSERT", 1, 1, 1), deletes="keep")),
            "foreign rows": error_of(lambda: self.merge("shop.other", ("INSERT", 1, 1, 1))),
            "lost": error_of(lambda: self.merge("shop.lost", ("INSERT", 2, 1, 1))),
            "removes": error_of(lambda: self.merge("shop.mine", ("INSERT", 2, 1, 1), deletes="keep")),
            "keeps": error_of(lambda: self.merge("shop.mine_kept", ("INSERT", 2, 1, 1))),
            "another key": error_of(lambda: sparkwire.merge(simple(self.spark, ("INSERT", 2, 1, 1)), "shop.mine", "v")),
            "two tables": error_of(lambda: sparkwire.merge(two, "shop.mine", "id")),
            "an interval": error_of(
                lambda: sparkwire.merge(
                    simple(self.spark, ("INSERT", 2, 1, 1)).withColumn("i", F.expr("INTERVAL 1 DAY")), "shop.new", "id"
                )
            ),
        }
        return [errors, pairs(self.spark.table("shop.mine"))]

    def a_dropped_view_is_made_again(self) -> Any:
        self.merge("shop.dropped", ("INSERT", 1, 1, 1))
        self.spark.sql("DROP VIEW shop.dropped")
        self.merge("shop.dropped", ("INSERT", 2, 2, 2))
        return pairs(self.spark.table("shop.dropped"))

    def a_catalog_without_views(self) -> Any:
        self.spark.sql("CREATE DATABASE IF NOT EXISTS plain.shop")
        text = error_of(lambda: self.merge("plain.shop.t", ("INSERT", 1, 1, 1)))
        left = self.spark.sql("SHOW TABLES IN plain.shop").count()
        self.merge("plain.shop.t", ("INSERT", 1, 1, 1), deletes="keep")
        return [text.partition(" (")[0], left, pairs(sparkwire.merged(self.spark, "plain.shop.t"))]

    # -- other jobs at the same time

    def an_update_during_a_merge(self) -> Any:
        """The source of the merge waits for the update."""
        running, updated = self.directory / "running", self.directory / "updated"
        self.merge("shop.busy", ("INSERT", 1, 1, 1), ("INSERT", 2, 2, 2))
        run = merge_table.TableTarget.run

        def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            running.touch()
            while not updated.exists():
                time.sleep(0.05)
            yield from batches

        def waiting(target: Any, spark: SparkSession, relation: str, statement: Any) -> Any:
            source = spark.sql(statement.source.replace("{target}", relation))
            source.mapInArrow(wait, source.schema).createOrReplaceTempView("waiting")
            return run(target, spark, relation, statement._replace(source="SELECT * FROM waiting"))

        def update() -> None:
            while not running.exists():
                time.sleep(0.05)
            try:
                self.spark.sql("UPDATE shop.busy__rows SET v = v + 1")
            finally:
                updated.touch()

        other = Thread(target=update)
        other.start()
        with mock.patch.object(merge_table.TableTarget, "run", waiting):
            error = error_of(lambda: self.merge("shop.busy", ("UPDATE", 9, 1, 9)))
        other.join()
        self.merge("shop.busy", ("UPDATE", 9, 1, 9))
        return [error, pairs(self.spark.table("shop.busy"))]

    def a_change_between_reading_and_merging(self) -> Any:
        """A merge needs a value of the table, which changes before its statement runs."""
        schema = f"_op_ STRING, {ORDER}, _before_ STRUCT<id: INT, v: INT>, _unavailable_ ARRAY<STRING>, id INT, v INT"
        sparkwire.merge(frame(self.spark, [("INSERT", (0, 0, 1), None, [], 1, 1)], schema), "shop.raced", "id")
        move = frame(self.spark, [("UPDATE", (0, 0, 5), (1, None), ["v"], 2, None)], schema)
        read = merge_stored.with_stored

        def then_another(*arguments: Any, **options: Any) -> Any:
            folded = read(*arguments, **options).localCheckpoint()
            with mock.patch.object(merge, "with_stored", read):
                sparkwire.merge(frame(self.spark, [("UPDATE", (0, 0, 3), None, [], 1, 3)], schema), "shop.raced", "id")
            return folded

        with mock.patch.object(merge, "with_stored", then_another):
            error = error_of(lambda: sparkwire.merge(move, "shop.raced", "id"))
        sparkwire.merge(move, "shop.raced", "id")
        return [error, pairs(self.spark.table("shop.raced"))]

    def two_merges_at_once(self) -> Any:
        """Each repeats its batch until there is no conflict."""
        self.merge("shop.twice", ("INSERT", 1, 0, 0))
        errors: list[str] = []

        def merge_all(own: int) -> None:
            for order in range(10, 13):
                batch = [
                    ("UPDATE", order, 0, order),
                    ("UPSERT", (0, own, order), own, order),
                    ("DELETE", (0, own, order), own + 10, 0),
                ]
                for _ in range(50):
                    text = error_of(lambda batch=batch: self.merge("shop.twice", *batch))  # type: ignore[misc]
                    if text == "no error":
                        break
                    errors.append(text.partition(":")[0])

        threads = [Thread(target=merge_all, args=(own,)) for own in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rows = self.spark.table("shop.twice__rows").select("id", "v", "_deleted_").collect()
        return [
            sorted([row["id"], row["v"], row["_deleted_"]] for row in rows),
            sorted(set(errors) - {"WriteConflictError"}),
        ]

    def a_lost_worker(self) -> Any:
        """The rows that merge keeps are lost before its statement: it begins again."""
        self.merge("shop.worker", ("INSERT", 1, 1, 1))
        run, losses = merge_table.TableTarget.run, iter([True, False])

        def losing(*arguments: Any) -> Any:
            if next(losses):
                for rows in self.spark.sparkContext._jsc.getPersistentRDDs().values():
                    rows.unpersist(True)
            return run(*arguments)

        with mock.patch.object(merge_table.TableTarget, "run", losing):
            self.merge("shop.worker", ("UPDATE", 2, 1, 2))
        return [pairs(self.spark.table("shop.worker")), list(losses)]

    def looked_up(self) -> Any:
        """Another process of the session looks up a table that exists by now. Each process numbers its calls from 0."""
        from pyspark.sql.connect.plan import LogicalPlan

        exists = []
        for create in (False, True):
            if create:
                self.spark.range(1).writeTo("shop.created").using("delta").create()
            LogicalPlan._nextPlanId = 1_000_000
            exists.append(merge_names.schema_of(self.spark, merge_names.TableName.of("shop.created")) is not None)
        return exists


GROUPS = {"delta": tuple(scenarios.GROUPS), "iceberg": ("plain",)}
"""the groups of scenarios for a kind of table; the statement is the same"""
TRUNCATES = ("rows before, at and after it", "late, between a value and the row that lacks it")
"""scenarios of the clauses for a TRUNCATE. `make spark` has the others, with the same conditions"""
ONLY_CONNECT = ("looked_up",)
ON_CONNECT = ("streams_and_batches", "results", "orders_that_cannot_be_compared", *ONLY_CONNECT)
"""facts that depend on the interface"""
NOT_ON = {
    "delta": ("a_catalog_without_views",),
    "iceberg": (
        "streamed_twice",
        "numbers_and_times_as_orders",
        "late_as_a_whole",
        "orders_that_cannot_be_compared",
        "a_delta_path",
        "a_path_that_a_killed_job_began",
    ),
}
"""facts that a kind of table does not have, and on Iceberg those that depend on the statement alone, which is the same"""
SIMILAR = ("streamed_twice", "streams_and_batches", "numbers_and_times_as_orders")
"""facts of the classic interface that the live test, Spark Connect, and merges into a path have in a similar form"""
ON_CLASSIC = tuple(
    name for name in vars(Facts) if not name.startswith("_") and name not in ("commits", "merge", *ONLY_CONNECT)
)


def facts_of(kind: str, interface: str = "classic") -> list[str]:
    """The names of the facts."""
    if interface == "connect":
        return list(ON_CONNECT)
    return [name for name in ON_CLASSIC if name not in NOT_ON[kind] and (WHOLE or name not in SIMILAR)]


def main(kind: str, directory: str, interface: str = "classic", *names: str) -> None:
    spark = session(kind, directory, interface)
    if kind == "delta":
        spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    warnings.simplefilter("ignore")
    facts = Facts(spark, kind, directory)
    for name in names or facts_of(kind, interface):
        try:
            found = getattr(facts, name)()
        except Exception:  # noqa: BLE001 the test of this fact shows it
            found = traceback.format_exc()[-3000:]
        print(json.dumps([name, found]), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
