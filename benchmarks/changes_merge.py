"""Merge of changes into a table of Delta, beside the MERGE that one writes by hand; prints the seconds of each as JSON.

python -m benchmarks.changes_merge

It needs a Spark with Delta: `benchmarks.changes` starts it in one.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from benchmarks.timing import interleave
from tests.integration.merge_table import DELTA

CHANGES, KEYS, ROUNDS = 100_000, 250_000, 5
BY_HAND = """
    MERGE INTO by_hand t
    USING (SELECT id, newest.* FROM (SELECT id, max_by(row, _order_) AS newest FROM batch GROUP BY id)) s
    ON t.id = s.id
    WHEN MATCHED AND s._op_ = 'DELETE' THEN DELETE
    WHEN MATCHED AND s._order_ > t._order_ THEN
         UPDATE SET name = s.name, amount = s.amount, _order_ = s._order_, _time_ = s._time_
    WHEN NOT MATCHED AND s._op_ <> 'DELETE'
         THEN INSERT (id, name, amount, _order_, _time_) VALUES (s.id, s.name, s.amount, s._order_, s._time_)
"""


def batch(spark: SparkSession, first: int, count: int) -> DataFrame:
    """Changes from an order on, of keys all over the table."""
    return spark.range(first, first + count).selectExpr(
        f"CASE WHEN id < {KEYS} THEN 'INSERT' WHEN id % 50 = 0 THEN 'DELETE' ELSE 'UPDATE' END AS _op_",
        "id AS _order_",
        "timestamp_micros(1714557600000000 + id) AS _time_",
        "'public.orders' AS _table_",
        f"id * 7919 % {KEYS} AS id",
        "concat('customer ', id) AS name",
        "id % 9973 / 100D AS amount",
    )


def batches(spark: SparkSession, run: Callable[[DataFrame], object]) -> Callable[[], object]:
    """Each call merges the batch after the last one."""
    place = KEYS

    def next_one() -> None:
        nonlocal place
        run(batch(spark, place, CHANGES))
        place += CHANGES

    return next_one


def by_hand(spark: SparkSession) -> Callable[[DataFrame], object]:
    def run(changes: DataFrame) -> None:
        row = F.struct("_op_", "name", "amount", "_order_", "_time_").alias("row")
        changes.select("id", "_order_", row).createOrReplaceTempView("batch")
        spark.sql(BY_HAND)

    return run


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", folder)
        settings = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false", "spark.log.level": "OFF"}
        for name, value in (DELTA | settings).items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        for name in ("ours", "by_hand"):
            sparkwire.merge(batch(spark, 0, KEYS), name, "id")
        ours = batches(spark, lambda changes: sparkwire.merge(changes, "ours", "id"))
        times = interleave({"ours": ours, "by hand": batches(spark, by_hand(spark))}, rounds=ROUNDS)
        print(json.dumps({name: timing.samples for name, timing in times.items()}))
        spark.stop()


if __name__ == "__main__":
    main()
