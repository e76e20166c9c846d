"""Debezium's rows in Spark: round trips and errors."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import sparkwire
from tests.support.debezium_cases import message

SAMPLES = sparkwire.samples() / "debezium"


def test_rows_of_a_topic(spark: SparkSession) -> None:
    """A segment of the sample data: snapshot, changes, deletes with tombstones, typed by the embedded schemas."""
    log = spark.read.format("binaryFile").load(f"{SAMPLES}/shop.app.customers-0/*.log")
    sparkwire.register(spark)
    records = log.selectExpr("inline(kafka_records(content))").select("offset", "key", "value")
    assert sparkwire.debezium.columns(records, table="app.customers")["balance"] == "Decimal(12,2)"
    rows = sparkwire.debezium.rows(records, table="app.customers", key="key")
    assert rows.schema["_after_"].simpleString() == (
        "_after_:struct<id:int,name:string,email:string,balance:decimal(12,2),score:double,active:boolean,created:timestamp>"
    )
    assert rows.where("_error_ IS NOT NULL OR _unexpected_ IS NOT NULL").count() == 0
    counts = {row["_op_"]: row["count"] for row in rows.groupBy("_op_").count().collect()}
    assert counts.keys() == {"READ", "INSERT", "UPDATE", "DELETE"}
    dead = rows.where("value IS NULL") if "value" in rows.columns else rows.where("_time_ IS NULL")
    assert dead.count() == counts["DELETE"] // 2
    plan = rows._jdf.queryExecution().toString()
    assert plan.count("MapInArrow") == 4  # one in each stage of the plan


def test_texts_are_messages_too(spark: SparkSession) -> None:
    texts = spark.createDataFrame([(message().decode(), "kept")], "value STRING, note STRING")
    [row] = sparkwire.debezium.rows(texts, table="orders", columns={"id": "BIGINT", "note": "STRING"}).collect()
    assert (row["note"], row["_op_"], row["_after_"]["id"], row["_table_"]) == ("kept", "UPDATE", 1, "orders")


def test_errors(spark: SparkSession) -> None:
    messages = spark.createDataFrame([(message(),)], "value BINARY")
    rows = sparkwire.debezium.rows
    with pytest.raises(ValueError, match="no message declares the columns of the table orders: pass columns"):
        rows(messages, table="orders")
    with pytest.raises(ValueError, match="column id: 'TIMESTAMP' does not say how the value is written"):
        rows(messages, table="orders", columns={"id": "TIMESTAMP"})
    with pytest.raises(TypeError, match=r"rows\(\) expected value to be BINARY or STRING, got INT"):
        rows(spark.range(1).selectExpr("CAST(id AS INT) AS value"), table="orders")
    with pytest.raises(ValueError, match=r"rows\(\) expected topic to name a column of the DataFrame, got 'topic'"):
        rows(messages, table="orders", columns={"id": "int32"}, topic="topic")
