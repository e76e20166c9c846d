"""The order of Canal's changes by transaction: rows of one transaction are ordered only within a partition."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import sparkwire

CHANGE = (
    "_op_ STRING, _order_ STRUCT<epoch INT, log STRING, position BIGINT, partition INT, offset BIGINT, `row` INT>, "
    "_keys_ ARRAY<STRING>, id INT, v STRING"
)


def current(spark: SparkSession, *changes: tuple[str, tuple[str, int, int, int], str]) -> list[str]:
    """The values of the one key, after changes with an operation, a position and a value."""
    rows = [(op, (0, *place, 0), ["id"], 1, value) for op, place, value in changes]
    return [row["v"] for row in sparkwire.current(spark.createDataFrame(rows, CHANGE)).collect()]


def test_transactions_are_ordered_across_partitions(spark: SparkSession) -> None:
    first, same, later = ("0", 5, 0, 7), ("0", 5, 1, 3), ("0", 8, 0, 1)
    assert current(spark, ("INSERT", first, "a"), ("UPDATE", later, "b")) == ["b"]
    assert current(spark, ("INSERT", first, "a"), ("UPDATE", same, "b"), ("UPDATE", later, "c")) == ["c"]
    before, truncate = ("0", 4, 1, 9), ("TRUNCATE", same, "")
    assert current(spark, ("TRUNCATE", before, ""), ("INSERT", first, "a")) == ["a"]
    two = ("INSERT", first, "a"), ("UPDATE", same, "b")
    for changes in (two, (("INSERT", before, "0"), *two), (("INSERT", first, "a"), truncate)):
        with pytest.raises(
            Exception,
            match=r"are in the partitions [01] and [01] of epoch 0, .*: pass sparkwire.changes a greater epoch",
        ):
            current(spark, *changes)
    with pytest.raises(Exception, match=r"a TRUNCATE and the row of the key .*1.* are in the logs 1 and 0 of epoch 0"):
        current(spark, ("INSERT", first, "a"), ("TRUNCATE", ("1", 9, 0, 9), ""))
    with pytest.raises(Exception, match=r"the changes of the key .*1.* are in the logs [01] and [01] of epoch 0"):
        current(spark, ("INSERT", first, "a"), ("UPDATE", ("1", 9, 0, 9), "b"))
