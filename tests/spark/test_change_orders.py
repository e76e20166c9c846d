"""Where a change has its place in the order: columns of other types, values that do not fit, topics and positions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from sparkwire.spark.changes.merge import MergeResult
from tests.support.system_messages import envelope

RECORDS = "topic STRING, partition INT, offset BIGINT, value STRING"
OPTIONS: dict[str, Any] = {"format": "debezium", "table": "customers", "columns": "id INT, name STRING", "keys": "id"}


def records(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame([(*row[:3], json.dumps(row[3])) for row in rows], RECORDS)


def errors(df: DataFrame, **more: Any) -> list[Any]:
    return [row["_error_"] for row in sparkwire.changes(df, **OPTIONS, **more).orderBy("offset").collect()]


def test_a_part_that_is_null_or_does_not_fit_is_no_place(spark: SparkSession) -> None:
    df = records(spark, ("a", 0, 1, envelope()), ("a", None, 2, envelope()))
    assert errors(df) == [None, "MISSING_FIELD"]
    wide = df.withColumn("partition", F.col("offset") * 2**31 - 2**31).withColumn("epoch", F.lit(2**40))
    assert errors(wide) == [None, "MISSING_FIELD"]
    assert errors(df.drop("partition")) == [None, None]
    assert errors(wide.drop("partition"), epoch="epoch") == ["MISSING_FIELD"] * 2


@pytest.mark.parametrize(
    ("name", "type"),
    [
        *((name, type) for name in ("partition", "offset", "epoch") for type in ("DOUBLE", "BOOLEAN")),
        *((name, "STRING") for name in ("partition", "epoch")),  # an offset may be a text of digits
    ],
)
def test_a_column_of_the_order_has_integers(spark: SparkSession, name: str, type: str) -> None:
    df = records(spark, ("a", 0, 1, envelope())).withColumn("epoch", F.lit(1))
    with pytest.raises(TypeError, match=rf"expected a column of integers for {name}, got {type}: cast it to BIGINT"):
        sparkwire.changes(df.withColumn(name, F.col(name).cast(type)), **OPTIONS, epoch="epoch")


def test_an_offset_is_a_text_of_digits_of_any_length(spark: SparkSession) -> None:
    """The sequence numbers of Kinesis have 56 digits, and are ordered as numbers."""
    long = 49590338271490256608559692538361571095921575989136588898
    offsets = ["9", str(long), str(long + 1), "08", "x", None]
    names = ["first", "earlier", "last", "before", "not a number", "none"]
    messages = [envelope("u", after={"id": 1, "name": name}) for name in names]
    df = records(spark, *(("a", 0, k, message) for k, message in enumerate(messages)))
    texts = F.element_at(F.array(*map(F.lit, offsets)), F.col("offset").cast("int") + 1)
    df = df.withColumn("place", F.col("offset")).withColumn("offset", texts)
    changes = sparkwire.changes(df, **OPTIONS)
    found = {row["name"]: row["_error_"] for row in changes.collect()}
    assert [found[name] for name in names] == [None] * 4 + ["MISSING_FIELD"] * 2
    [row] = sparkwire.current(changes).collect()
    assert (row["name"], row["_order_"]["number"]) == ("last", str(long + 1))
    [row] = sparkwire.current(changes, until=(long,)).collect()
    assert row["name"] == "earlier"
    [row] = sparkwire.current(changes, until=9).collect()
    assert row["name"] == "first"


@pytest.mark.parametrize("epoch", [2**31, -(2**31) - 1])
def test_an_epoch_has_32_bits(spark: SparkSession, epoch: int) -> None:
    with pytest.raises(ValueError, match="expected epoch to be a number of 32 bits"):
        sparkwire.changes(records(spark, ("a", 0, 1, envelope())), **OPTIONS, epoch=epoch)


def test_positions_in_the_source_are_comparable_in_all_topics(spark: SparkSession) -> None:
    """So order="source", which the error about two topics advises, helps."""
    later = envelope("u", after={"id": 1, "name": "birch"}, pos=4712)
    df = records(spark, ("a", 0, 5, envelope()), ("b", 0, 1, later))
    with pytest.raises(Exception, match=r'the topics a and b of epoch 0, .*, or order="source"'):
        sparkwire.current(sparkwire.changes(df, **OPTIONS)).collect()
    [row] = sparkwire.current(sparkwire.changes(df, **OPTIONS, order="source")).collect()
    assert row["name"] == "birch"


def bootstrap(ts: int, name: str, row_id: int = 1) -> dict[str, Any]:
    data = {"id": row_id, "name": name}
    return {"database": "d", "table": "customers", "type": "bootstrap-insert", "ts": ts, "data": data}


BY_SOURCE: dict[str, Any] = OPTIONS | {"format": "maxwell", "order": "source"}
"""By source, a snapshot's row has no position: so the time decides between two snapshots, such as one that repairs a table."""


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_snapshots_the_later_one_counts(spark: SparkSession, first: int) -> None:
    both = [bootstrap(1714557600, "ash"), bootstrap(1714557700, "birch")]
    df = records(spark, ("a", 0, 1, both[first]), ("a", 1, 1, both[1 - first]))
    assert [row["name"] for row in sparkwire.current(sparkwire.changes(df, **BY_SOURCE)).collect()] == ["birch"]


def test_a_later_snapshot_is_merged(spark: SparkSession, tmp_path: Path) -> None:
    def merged(ts: int, name: str) -> tuple[MergeResult, list[str]]:
        changes = sparkwire.changes(records(spark, ("a", 0, ts, bootstrap(ts, name))), **BY_SOURCE)
        result = sparkwire.merge(changes, tmp_path / "customers")
        return result, [row["name"] for row in sparkwire.merged(spark, tmp_path / "customers").collect()]

    assert merged(1714557600, "ash") == (MergeResult(1, 1, 0, 0), ["ash"])
    assert merged(1714557700, "birch") == (MergeResult(1, 1, 0, 0), ["birch"])
    assert merged(1714557700, "birch") == (MergeResult(1, 0, 1, 0), ["birch"])
    assert merged(1714557600, "ash") == (MergeResult(1, 0, 1, 0), ["birch"])


def test_a_batch_without_names_of_tables(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ValueError, match=r"no message names its table: call sparkwire.changes for each table"):
        sparkwire.changes_by_table(records(spark, ("a", 0, 1, {"id": 1})), format="debezium")
    notice = {"status": "END", "id": "1", "event_count": 1, "data_collections": [], "ts_ms": 1}
    assert sparkwire.changes_by_table(records(spark, ("a", 0, 1, notice)), format="debezium") == {}
    canal = {"data": [{"id": "1"}], "type": "INSERT", "table": "t", "database": "d"}
    assert sparkwire.changes_by_table(records(spark, ("a", 0, 1, canal)), format="debezium") == {}
    assert "The messages look like Canal: pass format='canal'" in caplog.text
