"""Keep a directory of Parquet up to date, with late and repeated changes, and after failures."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from random import Random
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from sparkwire.changes.merge_versions import MergeFolder
from sparkwire.errors import WriteConflictError
from tests.support.change_history import SCHEMA, ChangeHistory, as_table

SIMPLE = "_op_ STRING, _order_ BIGINT, _table_ STRING, id INT, v INT"


def cut(rows: list[Any], parts: int) -> list[list[Any]]:
    size = len(rows) // parts + 1
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def frame(spark: SparkSession, rows: list[Any], schema: str = SCHEMA) -> DataFrame:
    return spark.createDataFrame(rows, schema).coalesce(2)


def simple(spark: SparkSession, *rows: tuple[str, int, int, int | None]) -> DataFrame:
    return frame(spark, [(op, order, "t", id, v) for op, order, id, v in rows], SIMPLE)


def middle_of_a_move(changes: list[Any]) -> int:
    """The position between the two messages of a change of a key that lacks values, near the middle of the changes."""
    places = [
        at
        for at in range(1, len(changes))
        if changes[at - 1][1] == "DELETE"
        and changes[at][-3]
        and changes[at][7]
        and changes[at][7][:2] == changes[at - 1][8:10]
    ]
    return min(places, key=lambda at: abs(at - len(changes) // 2))


@pytest.mark.parametrize("deletes", ["remove", "keep"])
def test_batches_in_any_order(spark: SparkSession, tmp_path: Path, deletes: Any) -> None:
    """Changes are shuffled over all batches, including changes of keys and TRUNCATEs."""
    history = ChangeHistory(Random(11), truncates=True, lacks=False).run(300)
    target = tmp_path / "table"
    for batch in cut(history.delivered(), 3):
        sparkwire.merge(frame(spark, batch), target, deletes=deletes)
    rows = sparkwire.merged(spark, target)
    kept = rows if deletes == "remove" else rows.where("NOT _deleted_")
    assert as_table(kept.collect()) == history.table
    if deletes == "keep":
        assert rows.where("_deleted_").count() > 10


def test_missing_values_stay(spark: SparkSession, tmp_path: Path) -> None:
    """Also those of a row whose key changes between two batches. One batch is repeated later."""
    history = ChangeHistory(Random(12)).run(400)
    target, half = tmp_path / "table", middle_of_a_move(history.changes)
    first, second = history.changes[:half], history.changes[half:]
    for batch in (first, second, first):
        shuffled = list(batch)
        Random(len(batch)).shuffle(shuffled)
        sparkwire.merge(frame(spark, shuffled), target)
    assert as_table(sparkwire.merged(spark, target).collect()) == history.table


def test_a_stream_that_fails_and_continues(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failed batch is repeated: it failed before its version was published, and after."""
    history = ChangeHistory(Random(13), truncates=True, lacks=False).run(200)
    for batch in cut(history.changes, 4):
        frame(spark, batch).coalesce(1).write.mode("append").parquet(f"{tmp_path}/changes")
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/changes")
    publish, calls = MergeFolder.publish, iter(["before", "well", "after", *["well"] * 9])

    def failing(folder: MergeFolder, *arguments: Any) -> None:
        how = next(calls)
        if how == "before":
            raise OSError("no space left")
        publish(folder, *arguments)
        if how == "after":
            raise OSError("the process ends")

    monkeypatch.setattr(MergeFolder, "publish", failing)
    failures = 0
    for _ in range(3):
        query = sparkwire.merge(
            stream,
            tmp_path / "table",
            ["shop", "id"],
            checkpoint=tmp_path / "checkpoint",
            trigger={"availableNow": True},
        )
        assert query is not None
        try:
            query.awaitTermination()
        except PySparkException:
            failures += 1
    assert failures == 2
    assert as_table(sparkwire.merged(spark, tmp_path / "table").collect()) == history.table
    assert len(list((tmp_path / "table" / "versions").iterdir())) <= 3


def test_readers_see_complete_versions(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The small file names the newest version; the previous one still exists. Relative paths start at Python's directory."""
    target = tmp_path / "table"
    monkeypatch.chdir(tmp_path)
    sparkwire.merge(simple(spark, ("INSERT", 1, 1, 10)), "./table", "id")
    first = (target / "_latest").read_text().strip()
    sparkwire.merge(simple(spark, ("UPDATE", 2, 1, 20), ("INSERT", 3, 2, 30)), target, "id")
    second = (target / "_latest").read_text().strip()
    assert [row["v"] for row in spark.read.parquet(f"{target}/{first}").collect()] == [10]
    assert sorted(row["v"] for row in spark.read.parquet(f"{target}/{second}").collect()) == [20, 30]
    assert sparkwire.merged(spark, target).columns == ["id", "v", "_order_", "_time_"]


def test_columns_are_added_and_widen(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "table"
    sparkwire.merge(simple(spark, ("INSERT", 1, 1, 10), ("INSERT", 2, 2, 20)), target, "id")
    wider = simple(spark, ("UPDATE", 3, 1, 11)).withColumn("v", F.lit(2**40)).withColumn("note", F.lit("new"))
    sparkwire.merge(wider, target, "id")
    rows = sparkwire.merged(spark, target).orderBy("id").select("id", "v", "note").collect()
    assert [tuple(row) for row in rows] == [(1, 2**40, "new"), (2, 20, None)]
    sparkwire.merge(simple(spark, ("UPDATE", 4, 2, 21)), target, "id")
    rows = sparkwire.merged(spark, target).orderBy("id").select("id", "v", "note").collect()
    assert [tuple(row) for row in rows] == [(1, 2**40, "new"), (2, 21, None)]
    with pytest.raises(ValueError, match=r"column v of .* is BIGINT, and the changes have STRING: cast it"):
        sparkwire.merge(simple(spark, ("UPDATE", 5, 1, 1)).withColumn("v", F.lit("x")), target, "id")


def test_changes_that_cannot_be_merged_give_a_clear_error(spark: SparkSession, tmp_path: Path) -> None:
    changes, target = simple(spark, ("INSERT", 1, 1, 10)), tmp_path / "table"
    with pytest.raises(ValueError, match="the key of the table is not known: pass keys="):
        sparkwire.merge(changes, target)
    with pytest.raises(ValueError, match=r"expected deletes to be .* got 'drop'"):
        sparkwire.merge(changes, target, "id", deletes="drop")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected a stream for checkpoint and trigger, got a batch"):
        sparkwire.merge(changes, target, "id", checkpoint="/c")
    spark.range(3).write.parquet(str(target))
    with pytest.raises(ValueError, match="is not a table of merge: it has"):
        sparkwire.merge(changes, target, "id")
    other = tmp_path / "other"
    sparkwire.merge(changes, other, "id")
    with pytest.raises(ValueError, match="has the key id, and the changes have v"):
        sparkwire.merge(changes, other, "v")
    with pytest.raises(ValueError, match='was made with deletes="remove"'):
        sparkwire.merge(changes, other, "id", deletes="keep")
    with pytest.raises(ValueError, match="the changes are of two tables, t and u"):
        sparkwire.merge(changes.withColumn("_table_", F.lit("u")), other, "id")
    with pytest.raises(
        ValueError, match="the table no_such_table does not exist, and its catalog has neither Delta nor Iceberg"
    ):
        sparkwire.merge(changes, "no_such_table", "id")
    with pytest.raises(ValueError, match="has no table of merge yet"):
        sparkwire.merged(spark, tmp_path / "none")
    assert sparkwire.merged(spark, other).count() == 1


def _hold(path: str, held: Any, done: Any) -> None:
    with MergeFolder(path).locked():
        held.set()
        done.wait()


@pytest.mark.process
def test_one_writer_at_a_time(tmp_path: Path) -> None:
    """A second writer fails at once. The lock of a process that has ended is ignored."""
    fork = multiprocessing.get_context("fork")
    held, done = fork.Event(), fork.Event()
    folder = MergeFolder(f"{tmp_path}/table")
    holder = fork.Process(target=_hold, args=(folder.path, held, done))
    holder.start()
    assert held.wait(60)
    with pytest.raises(WriteConflictError, match=f"process {holder.pid} on .* writes to"), folder.locked():
        pass
    holder.kill()
    holder.join()
    with folder.locked():
        assert f"process {os.getpid()}" in Path(folder.path, "_lock").read_text()
    version = folder.next_version(None)
    folder.make(version)
    folder.publish(version, None, {})
    with pytest.raises(WriteConflictError, match="another merge writes to"):
        folder.publish(folder.next_version(version), None, {})
