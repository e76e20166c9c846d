"""Merge of changes into a table of Delta, beside the MERGE that one writes by hand; prints the seconds of each as JSON.

python -m benchmarks.changes_merge 100000

The argument is the number of changes in a batch; the table has 2.5 times as many keys. It needs a Spark with Delta:
`benchmarks.changes` starts it in one.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from benchmarks.timing import amount, interleave, is_trial
from sparkwire.spark.changes import merge, merge_batch, merge_table
from tests.integration.merge_table import DELTA

ROUNDS = {amount(100_000, trial=1000): 5, amount(1_000_000, trial=2000): 3}
"""sizes of batches, and the rounds of each"""
NEWEST = "SELECT id, newest.* FROM (SELECT id, max_by(row, _order_) AS newest FROM batch GROUP BY id)"
FORGETS = f"""
    MERGE INTO forgets t USING ({NEWEST}) s ON t.id = s.id
    WHEN MATCHED AND s._op_ = 'DELETE' THEN DELETE
    WHEN MATCHED AND s._order_ > t._order_ THEN
         UPDATE SET name = s.name, amount = s.amount, _order_ = s._order_, _time_ = s._time_
    WHEN NOT MATCHED AND s._op_ <> 'DELETE'
         THEN INSERT (id, name, amount, _order_, _time_) VALUES (s.id, s.name, s.amount, s._order_, s._time_)
"""
KEEPS = f"""
    MERGE INTO keeps t USING ({NEWEST}) s ON t.id = s.id
    WHEN MATCHED AND s._order_ > t._order_ AND s._op_ = 'DELETE' THEN
         UPDATE SET _deleted_ = TRUE, _order_ = s._order_, _time_ = s._time_
    WHEN MATCHED AND s._order_ > t._order_ THEN
         UPDATE SET name = s.name, amount = s.amount, _order_ = s._order_, _time_ = s._time_, _deleted_ = FALSE
    WHEN NOT MATCHED THEN INSERT (id, name, amount, _order_, _time_, _deleted_)
         VALUES (s.id, s.name, s.amount, s._order_, s._time_, s._op_ = 'DELETE')
"""
"""so that a late change does not bring a deleted row back"""
STEPS = (
    (merge, "checkpointed", "the last rows, computed and kept"),
    (merge_batch.BatchFacts, "of", "their facts"),
    (merge_table.TableTarget, "run", "the MERGE"),
)
"""functions of ours, and what they do"""


def keys_of(changes: int) -> int:
    """The number of keys in the table."""
    return changes * 5 // 2


def batch(spark: SparkSession, first: int, count: int, keys: int) -> DataFrame:
    """Changes from an order on, of keys all over the table."""
    return spark.range(first, first + count).selectExpr(
        f"CASE WHEN id < {keys} THEN 'INSERT' WHEN id % 50 = 0 THEN 'DELETE' ELSE 'UPDATE' END AS _op_",
        "named_struct('epoch', 0, 'partition', 0, 'offset', id) AS _order_",
        "timestamp_micros(1714557600000000 + id) AS _time_",
        "'public.orders' AS _table_",
        f"id * 7919 % {keys} AS id",
        "concat('customer ', id) AS name",
        "id % 9973 / 100D AS amount",
    )


def batches(spark: SparkSession, changes: int, run: Callable[[DataFrame], object]) -> Callable[[], object]:
    """Each call merges the batch after the last one."""
    place = keys = keys_of(changes)

    def next_one() -> None:
        nonlocal place
        run(batch(spark, place, changes, keys))
        place += changes

    return next_one


def run(spark: SparkSession, statement: str) -> Callable[[DataFrame], object]:
    def merge_batch(changes: DataFrame) -> None:
        row = F.struct("_op_", "name", "amount", "_order_", "_time_").alias("row")
        changes.select("id", "_order_", row).createOrReplaceTempView("batch")
        spark.sql(statement)

    return merge_batch


class Steps:
    """The seconds that each step of a merge takes, merge by merge."""

    def __init__(self) -> None:
        self.merges: list[dict[str, float]] = []
        for owner, function, step in STEPS:
            setattr(owner, function, self._timed(getattr(owner, function), step))

    def merge(self, changes: DataFrame) -> None:
        self.merges.append(dict.fromkeys((step for *_, step in STEPS), 0.0))
        sparkwire.merge(changes, "ours", "id")

    def _timed(self, function: Callable[..., Any], step: str) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                if self.merges:
                    self.merges[-1][step] += time.perf_counter() - began

        return timed


def main(changes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", folder)
        settings = {
            "spark.driver.memory": "4g",
            "spark.sql.codegen.cache.maxEntries": "1000",  # see docs/operations.md
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "spark.log.level": "OFF",
        }
        for name, value in (DELTA | settings).items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        first = batch(spark, 0, keys_of(changes), keys_of(changes))
        sparkwire.merge(first, "ours", "id")
        for name in ("forgets", "keeps"):
            first.drop("_op_", "_table_").withColumn("_deleted_", F.lit(False)).writeTo(name).using("delta").create()
        steps = Steps()
        contenders = {
            "ours": batches(spark, changes, steps.merge),
            "a MERGE by hand that keeps deletes": batches(spark, changes, run(spark, KEEPS)),
            "one that forgets them": batches(spark, changes, run(spark, FORGETS)),
        }
        times = {
            name: timing.samples for name, timing in interleave(contenders, rounds=ROUNDS[changes], warm=1).items()
        }
        # The first, and one before each that counts, are not.
        timed = steps.merges if is_trial() else steps.merges[2::2]
        print(json.dumps(times | {step: [merge[step] for merge in timed] for *_, step in STEPS}))
        spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]))
