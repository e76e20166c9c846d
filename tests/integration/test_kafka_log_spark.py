"""`kafka_log` in Spark over the log directory of a running broker: a table and a stream, in both isolation levels."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.broker import Broker
from tests.integration.consumers import LEVELS, Isolation, Record, between, consume, differences, once, records
from tests.integration.traffic import STEADY, Traffic

COLUMNS = Record._fields

every_level = pytest.mark.parametrize("isolation", LEVELS)


@every_level
@pytest.mark.parametrize("topic", STEADY)
def test_batch(spark: SparkSession, broker: Broker, busy: Traffic, topic: str, isolation: Isolation) -> None:
    seen = consume(broker.address, topic, isolation)
    table = spark.read.format("kafka_log").option("isolationLevel", isolation).load(f"{broker.directory}/{topic}-*")
    rows = once(records(table.select(*COLUMNS).toArrow()))
    assert differences(between(rows, seen.begins, seen.ends), seen.records) == []


@every_level
def test_streaming(spark: SparkSession, broker: Broker, busy: Traffic, isolation: Isolation, tmp_path: Path) -> None:
    """Three runs of one query, each to the end at its start, read every record once."""
    for run in range(3):
        seen = consume(broker.address, "payments", isolation)
        stream = spark.readStream.format("kafka_log").option("isolationLevel", isolation)
        rows = stream.option("maxBytesPerTrigger", "200000").load(f"{broker.directory}/payments-*").select(*COLUMNS)
        sink = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        sink.trigger(availableNow=True).start(str(tmp_path / "rows")).awaitTermination()
        result = once(records(spark.read.parquet(str(tmp_path / "rows")).select(*COLUMNS).toArrow()))
        assert differences(between(result, seen.begins, seen.ends), seen.records) == [], run
        busy.wait(10)
