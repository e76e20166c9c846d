"""An aggregate of rows, from the job that reads them or from another."""

from __future__ import annotations

from threading import Event
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import Observation, SparkSession

from sparkwire.spark.changes import observed


@pytest.mark.parametrize("count", [0, 10])
def test_the_job_that_reads_the_rows_computes_the_aggregate(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(observed, "_PATIENCE", 60)
    metrics: list[dict[str, Any]] = []
    read = observed._metrics

    def seen(observation: Observation) -> dict[str, Any]:
        metrics.append(read(observation))
        return metrics[-1]

    monkeypatch.setattr(observed, "_metrics", seen)
    rows = spark.range(count)
    counted = observed.Observed.of(rows, F.max("id"))
    stored = observed.stored(counted.rows)
    last = counted.result(rows)
    assert metrics == [{"aggregate": last}]
    assert last == (count - 1 if count else None)
    assert stored.count() == count


def test_a_metric_that_does_not_arrive_is_computed_again(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    never = Event()
    monkeypatch.setattr(observed, "_PATIENCE", 0.1)
    monkeypatch.setattr(Observation, "get", property(lambda _: never.wait()))
    try:
        rows = observed.stored(spark.range(10).withColumn("r", F.rand()))
        counted = observed.Observed.of(rows, F.sum("r"))
        counted.rows.collect()
        assert counted.result(rows) == rows.agg(F.sum("r")).collect()[0][0]
    finally:
        never.set()
