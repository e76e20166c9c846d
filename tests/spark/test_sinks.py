"""Writing `kafka_log` and `databus` with Spark: modes, streams, parallel ranges, and the state after a failure."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from sparkwire.kafka.write import write_log
from sparkwire.spark.sources import stream_writer

COLUMNS = ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]


def records(spark: SparkSession, first: int = 0, stop: int = 3000) -> DataFrame:
    return spark.range(first, stop, 1, 3).selectExpr(
        "'orders' topic", "CAST(id % 2 AS INT) partition", "id * 3 offset", "timestamp_millis(1600000000000 + id) timestamp",
        "IF(id % 5 = 0, NULL, concat('k', id)) key", "IF(id % 7 = 0, NULL, CAST(repeat('v', id % 100) AS BINARY)) value",
        "array(named_struct('key', 'h', 'value', CAST('x' AS BINARY))) headers",
    )  # fmt: skip


def read(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.format("kafka_log").load(str(path))


def same(written: DataFrame, path: Path) -> bool:
    rows = read(written.sparkSession, path).select(COLUMNS)
    expected = written.withColumn("key", written.key.cast("binary")).select(COLUMNS)
    return bool(rows.exceptAll(expected).isEmpty() and expected.exceptAll(rows).isEmpty())


def test_modes(spark: SparkSession, tmp_path: Path) -> None:
    df = records(spark)
    df.write.format("kafka_log").mode("append").option("compression", "zstd").save(str(tmp_path))
    assert same(df, tmp_path)
    with pytest.raises(Exception, match="orders-0 ends at offset 8994, but the rows to append begin with 0"):
        df.write.format("kafka_log").mode("append").save(str(tmp_path))
    more = records(spark, 3000, 3300)
    more.write.format("kafka_log").mode("append").save(str(tmp_path))
    assert same(df.union(more), tmp_path)
    more.write.format("kafka_log").mode("overwrite").save(str(tmp_path))
    assert same(more, tmp_path)
    with pytest.raises(
        AnalysisException, match="ErrorIfExists"
    ):  # Spark's error: Python data sources do not support this mode
        more.write.format("kafka_log").save(str(tmp_path))


def test_write_puts_rows_in_order(spark: SparkSession, tmp_path: Path) -> None:
    df = records(spark)
    with pytest.raises(Exception, match=r"it comes after .*: the rows of a partition must be in the order of"):
        df.orderBy("value", "offset").write.format("kafka_log").mode("append").save(str(tmp_path / "x"))
    assert list((tmp_path / "x").rglob("*.*")) == []
    sparkwire.kafka.write(df.orderBy("value"), str(tmp_path), compression="lz4", tasks=4)
    assert same(df, tmp_path)
    assert len(list(tmp_path.rglob("*.log"))) in (4, 5)  # two partitions in four ranges
    with pytest.raises(Exception, match="orders-0 has records: append to them, overwrite them, or write elsewhere"):
        sparkwire.kafka.write(df, str(tmp_path))
    sparkwire.kafka.write(df, str(tmp_path), mode="overwrite")
    assert same(df, tmp_path)


def test_numbered_by_time(spark: SparkSession, tmp_path: Path) -> None:
    df = records(spark).drop("offset")
    sparkwire.kafka.write(df.orderBy("value"), str(tmp_path), offsets="assign", startingOffset=100, tasks=3)
    rows = read(spark, tmp_path).where("partition = 1").orderBy("offset").select("offset", "timestamp_ms").collect()
    assert [row.offset for row in rows] == list(range(100, 1600))
    times = [row.timestamp_ms for row in rows]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mode": "ignore"}, "write takes mode errorifexists, append, overwrite, got 'ignore'"),
        ({"order": ["key"]}, "write takes order with offsets='assign' alone"),
        ({"batchByte": 1}, "kafka_log has no option (?i:batchByte): it takes path, topic, partition"),
    ],
)
def test_wrong_arguments(spark: SparkSession, tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Exception, match=sentence):
        sparkwire.kafka.write(records(spark), str(tmp_path), **options)


def test_two_writers_of_a_partition(spark: SparkSession, tmp_path: Path) -> None:
    """Two concurrent writers: one fails with a clear error, or runs after the other. No row of a successful writer is lost."""
    df = records(spark).drop("offset")
    said: list[str] = []

    def append() -> None:
        try:
            sparkwire.kafka.write(df, str(tmp_path), mode="append", offsets="assign", tasks=2)
            said.append("")
        except Exception as error:  # noqa: BLE001  Spark raises several kinds
            said.append(str(error))

    writers = [threading.Thread(target=append) for _ in range(2)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert "" in said
    assert all(not one or "only one job at a time may write to a partition" in one for one in said), said
    assert read(spark, tmp_path).count() == 3000 * said.count("")


def test_a_job_with_an_id_is_done_once(spark: SparkSession, tmp_path: Path) -> None:
    df = records(spark, 0, 30).drop("offset")
    for _ in range(2):
        sparkwire.kafka.write(df, str(tmp_path), mode="append", offsets="assign", jobId="nightly-2026-11-25")
    assert read(spark, tmp_path).count() == 30
    with pytest.raises(
        Exception, match="kafka_log takes jobId up to 128 letters, digits, dots, underscores and hyphens"
    ):
        sparkwire.kafka.write(df, str(tmp_path), mode="append", offsets="assign", jobId="a/b")


def test_a_write_from_another_thread(spark: SparkSession, tmp_path: Path) -> None:
    other = spark.newSession()
    sparkwire.register(other)
    failed: list[BaseException] = []

    def write() -> None:
        try:
            sparkwire.kafka.write(records(other, 0, 30), str(tmp_path))
        except Exception as error:  # noqa: BLE001  it is checked below
            failed.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert failed == []
    assert read(spark, tmp_path).count() == 30


def test_a_stream_writes_each_batch_once(spark: SparkSession, tmp_path: Path) -> None:
    df = records(spark).coalesce(1)
    source, target, checkpoint = (tmp_path / name for name in ("source", "target", "checkpoint"))

    def run() -> None:
        rows = spark.readStream.schema(df.schema).parquet(str(source))
        query = (
            rows.writeStream.format("kafka_log")
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start(str(target))
        )
        query.awaitTermination()

    df.where("offset < 3000").write.parquet(str(source))
    run()
    df.where("offset >= 3000 AND offset < 6000").write.mode("append").parquet(str(source))
    run()
    assert same(df.where("offset < 6000"), target)
    # Simulate that Spark lost the record of its last batch: it runs again, but does not write twice.
    before = sorted(path.name for path in target.rglob("*.log"))
    for name in ("1", ".1.crc"):
        (checkpoint / "commits" / name).unlink()
    run()
    assert sorted(path.name for path in target.rglob("*.log")) == before
    assert same(df.where("offset < 6000"), target)
    assert [path.name for path in target.glob(".sparkwire-*")] == [f".sparkwire-{query_id(checkpoint)}.done"]


def query_id(checkpoint: Path) -> str:
    document: str = json.loads((checkpoint / "metadata").read_text())["id"]
    return document


def test_a_stream_without_record_batches() -> None:
    """Spark 4.0 has no streams of record batches."""
    import pyspark.sql.datasource as datasource

    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(datasource, "DataSourceStreamArrowWriter")
        with pytest.raises(
            NotImplementedError,
            match=r"writing a stream needs Spark 4\.1 or later; with Spark 4\.0, write in foreachBatch",
        ):
            stream_writer(write_log, None)


@pytest.mark.parametrize("name", ["relay_v1", "espresso_v2"])
@pytest.mark.parametrize("made", [False, True])
def test_events_written_again(spark: SparkSession, tmp_path: Path, name: str, made: bool) -> None:
    """From their bytes, or from their fields: files of complete windows, read as one stream, give the same rows."""
    df = spark.read.format("databus").load(f"{sparkwire.samples()}/databus/{name}.bin")
    rows = df.drop("event") if made else df.select("stream", "event")
    writer = rows.write.format("databus").mode("append").option("fileBytes", "1k")
    if name == "espresso_v2":
        with pytest.raises(Exception, match=r"write stream 'espresso_v2.bin', sequence .*: its window has no end of"):
            writer.save(str(tmp_path))
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
        writer = writer.option("wholeWindows", "false")
    writer.save(str(tmp_path))
    back = spark.read.format("databus").option("stream", "directory").load(str(tmp_path / f"{name}.bin"))
    kept = [column for column in df.columns if column not in ("stream", "file", "position")]
    assert back.orderBy("file", "position").select(kept).collect() == df.orderBy("position").select(kept).collect()
    assert len([path for path in tmp_path.rglob("*.bin") if path.is_file()]) > 2
    assert all(row.bad == 0 for row in back.groupBy("file").agg({"error": "count"}).toDF("file", "bad").collect())
    writer.mode("overwrite").save(str(tmp_path))
    with pytest.raises(Exception, match="was replaced after it was listed: load the path again and repeat the query"):
        back.count()
    again = spark.read.format("databus").option("stream", "directory").load(str(tmp_path / f"{name}.bin"))
    assert again.count() == df.count()
    writer.mode("append").save(str(tmp_path))
    assert spark.read.format("databus").load(str(tmp_path)).count() == 2 * df.count()


def test_events_that_are_rejected(spark: SparkSession, tmp_path: Path) -> None:
    damaged = spark.read.format("databus").load(f"{sparkwire.samples()}/databus/damaged_v1.bin").select("event")
    shutil.rmtree(tmp_path / "none", ignore_errors=True)
    for df, sentence in (
        (damaged, "databus cannot write stream '', sequence .*: the event is corrupt"),
        (
            damaged.selectExpr("event bytes"),
            "databus has no column 'bytes' to write: it takes event, or",
        ),
        (damaged.selectExpr("CAST(NULL AS BINARY) event"), "databus cannot write a NULL event, in stream ''"),
        (damaged.limit(1).selectExpr("event", "'a/.x' stream"), "takes as the last part of stream a directory's name"),
    ):
        with pytest.raises(Exception, match=sentence):
            df.write.format("databus").mode("append").save(str(tmp_path / "none"))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
