"""Errors about changes name texts of the messages. None of them may change a screen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

import sparkwire

ODD = "a\x01\x1b[31m\x85\x9b\u202e\u2028\n"
HARMFUL = set("\x01\x1b\x85\x9b\u202e\u2028")


def changes(spark: SparkSession, *partitions: int) -> DataFrame:
    message = {"data": [{"id": ODD}], "type": "INSERT", "database": "d", "table": "t", "pkNames": ["id"], "es": 1}
    rows = [(partition, k, json.dumps(message)) for k, partition in enumerate(partitions)]
    records = spark.createDataFrame(rows, "partition INT, offset BIGINT, value STRING")
    return sparkwire.changes(records, format="canal", table="d.t", columns="id STRING", keys="id")


def odd_in_first(name: str, other: str) -> Callable[[DataFrame], DataFrame]:
    return lambda df: df.withColumn(name, F.when(F.col("offset") == 0, ODD).otherwise(other))


@pytest.mark.parametrize(
    ("partitions", "changed"),
    [
        ((0, 1), lambda df: df),
        ((0,), odd_in_first("_op_", "INSERT")),
        ((0, 0), odd_in_first("_table_", "t")),
    ],
    ids=["key", "operation", "table"],
)
@pytest.mark.parametrize("reader", ["current", "merge"])
def test_no_message_changes_a_screen(
    spark: SparkSession,
    tmp_path: Path,
    partitions: tuple[int, ...],
    changed: Callable[[DataFrame], DataFrame],
    reader: str,
) -> None:
    df = changed(changes(spark, *partitions))
    with pytest.raises(
        Exception, match=r"(?s)the changes of the key|which is none of|two tables|of another table"
    ) as caught:
        run(reader, df, tmp_path)
    first, *_ = str(caught.value).split("\n\n")
    assert not HARMFUL & set(first)


def run(reader: str, df: DataFrame, place: Path) -> Any:
    return sparkwire.current(df).collect() if reader == "current" else sparkwire.merge(df, f"{place}/table")
