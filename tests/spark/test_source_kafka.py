"""``kafka_log`` in Spark: SQL and DataFrames, options, schemas, errors."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import SparkSession

import sparkwire
from sparkwire.kafka.files import kafka_log
from sparkwire.spark import sources
from sparkwire.spark.functions import udf
from sparkwire.spark.functions.worker import freeze_gc
from tests.support import kafka_cases as golden
from tests.support import log_files
from tests.support.arrow import ask, plain_rows

TRANSACTIONS = "v2_txn/00000000000000000000.log", "v2_txn/00000000000000000280.log"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broker's log directory: two partitions and other files."""
    top = tmp_path_factory.mktemp("broker")
    for folder, names in {
        "__consumer_offsets-0": TRANSACTIONS,
        "orders-1": ["v2_multi_segment/00000000000000000100.log", "v2_multi_segment/00000000000000000494.log"],
        "orders-2.0a1b2c3d4e5f60718293a4b5c6d7e8f9-delete": ["v2_none/00000000000000000000.log"],
    }.items():
        (top / folder).mkdir()
        for name in names:
            stem = name.rsplit("/", 1)[-1]
            (top / folder / stem).write_bytes(golden.archive("segments_v2")[name])
    (top / "orders-1" / "00000000000000000600.log.deleted").write_bytes(b"gone")
    (top / "orders-1" / "leader-epoch-checkpoint").write_bytes(b"0\n0\n")
    (top / "server.log").write_bytes(b"[2024-05-01] INFO started\n")
    return top


def sorted_rows(spark: SparkSession, path: Path, **options: str) -> list[dict[str, Any]]:
    frame = spark.read.format("kafka_log").options(**options).load(str(path))
    rows = plain_rows(frame.toArrow().to_batches())
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["file"], row["position"], row["offset"]))


def test_a_broker_directory(spark: SparkSession, broker: Path) -> None:
    rows = sorted_rows(spark, broker, controlRecords="true")
    expected = []
    for topic, partition, names in [
        ("__consumer_offsets", 0, TRANSACTIONS),
        ("orders", 1, ["v2_multi_segment/00000000000000000100.log", "v2_multi_segment/00000000000000000494.log"]),
    ]:
        for name in names:
            for row in ask("kafka_records", [golden.archive("segments_v2")[name]])[0]:
                file = str(broker / f"{topic}-{partition}" / name.rsplit("/", 1)[-1])
                whole = log_files.with_timestamp_type(row)
                expected.append(whole | {"topic": topic, "partition": partition, "file": file})
    assert rows == expected


KAFKA_SOURCE = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
"""the schema of Spark's own Kafka source, with `includeHeaders`, by its page "Structured Streaming + Kafka Integration Guide\""""


def test_the_columns_of_sparks_own_kafka_source(spark: SparkSession, broker: Path) -> None:
    """A query over one of them also runs over the other."""
    own = {field.name: field.dataType for field in spark.createDataFrame([], KAFKA_SOURCE).schema}
    orders = spark.read.format("kafka_log").load(str(broker / "orders-1"))
    assert {field.name: field.dataType for field in orders.schema if field.name in own} == own
    query = orders.selectExpr("CAST(key AS STRING)", "timestampType").where("timestampType = 0")
    assert query.count() == orders.where("timestamp_type = 'CreateTime'").count() > 0


@pytest.mark.parametrize("rows", ["records", "batches"])
def test_columns_have_comments(spark: SparkSession, broker: Path, rows: str) -> None:
    """``DESCRIBE`` shows the meaning of the columns, and the rows are still returned."""
    spark.read.format("kafka_log").option("rows", rows).load(str(broker)).createOrReplaceTempView("described")
    described = {row["col_name"]: row["comment"] for row in spark.sql("DESCRIBE described").collect()}
    assert described == {name: kafka_log.DOCS[rows][name] for name in kafka_log.COLUMNS[rows]}
    assert spark.table("described").count() > 0


def test_a_view_in_sql(spark: SparkSession, broker: Path) -> None:
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW orders USING kafka_log OPTIONS (path '{broker}/orders-*', startingOffset '400')"
    )
    rows = spark.sql("SELECT topic, partition, min(offset), max(offset), count(*) FROM orders GROUP BY ALL").collect()
    assert [tuple(row) for row in rows] == [("orders", 1, 400, 519, 120)]


def test_a_view_is_fixed_when_it_is_first_read(spark: SparkSession, broker: Path, tmp_path: Path) -> None:
    """A new view sees new files. So does a filter that Spark pushes down, because Spark then plans the source again."""
    segment = next((broker / "orders-1").glob("*.log"))

    def add(partition: int) -> None:
        (tmp_path / f"orders-{partition}").mkdir()
        shutil.copy(segment, tmp_path / f"orders-{partition}")

    def partitions(where: str = "") -> int:
        return int(spark.sql(f"SELECT count(DISTINCT partition) FROM fixed {where}").first()[0])

    add(0)
    create = f"CREATE OR REPLACE TEMPORARY VIEW fixed USING kafka_log OPTIONS (path '{tmp_path}')"
    spark.sql(create)
    assert partitions() == 1
    add(1)
    spark.sql("REFRESH TABLE fixed")
    assert partitions() == 1
    spark.sql(create)
    assert partitions() == 2
    if spark.version >= "4.1":
        add(2)
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        try:
            assert partitions("WHERE offset >= 0") == 3
        finally:
            spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.parametrize("where", ["OPTIONS (path '{path}')", "LOCATION '{path}'"])
def test_a_permanent_table_is_rejected(spark: SparkSession, broker: Path, where: str) -> None:
    with pytest.raises(AnalysisException, match=r"cannot be a permanent table.*use CREATE TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE permanent USING kafka_log {where.format(path=broker)}")


def test_columns_and_schemas(spark: SparkSession, broker: Path) -> None:
    reader = spark.read.format("kafka_log")
    chosen = reader.option("columns", "value, offset").load(str(broker / "orders-1"))
    assert chosen.columns == ["value", "offset"]
    given = spark.read.format("kafka_log").schema("offset BIGINT, headers ARRAY<STRUCT<key STRING, value BINARY>>")
    rows = given.load(str(broker / "orders-1")).orderBy("offset").collect()
    whole_rows = sorted_rows(spark, broker / "orders-1")
    assert [row.offset for row in rows] == [row["offset"] for row in whole_rows]
    assert [[h.asDict() for h in row.headers] for row in rows] == [row["headers"] for row in whole_rows]
    assert chosen.count() == len(rows)


def test_batches(spark: SparkSession, broker: Path) -> None:
    frame = spark.read.format("kafka_log").option("rows", "batches").load(str(broker / "orders-1"))
    assert frame.columns[:6] == ["topic", "partition", "file", "position", "size", "base_offset"]
    assert frame.agg({"record_count": "sum"}).first()[0] == 420


def test_several_paths(spark: SparkSession, broker: Path) -> None:
    paths = [str(broker / "orders-1"), str(broker / "__consumer_offsets-0")]
    assert spark.read.format("kafka_log").load(paths).count() == len(sorted_rows(spark, broker))


@pytest.mark.parametrize(
    ("options", "path", "sentence"),
    [
        ({}, "nowhere", "path {path} does not exist: name a file, a directory or a glob"),
        ({}, "orders-9*", "path {path} matches no file: check the glob, it takes *, ?, [ab] and {{a,b}}"),
        ({"offset": "1"}, "orders-1", "kafka_log has no option offset: it takes path, "),
        (
            {"mode": "LENIENT"},
            "orders-1",
            "kafka_log takes mode PERMISSIVE or DROPMALFORMED or FAILFAST, got 'LENIENT'",
        ),
        ({"startingOffset": "-1"}, "orders-1", "kafka_log takes startingOffset a whole number from 0 on, got '-1'"),
        ({"columns": "offset,ofset"}, "orders-1", "kafka_log has no column 'ofset': it has topic, partition, offset, "),
        (
            {"maxSplitBytes": "0"},
            "orders-1",
            "kafka_log takes maxSplitBytes a size of 1 byte or more (134217728, 128m, 1g)",
        ),
        (
            {"startingTimestamp": "yesterday"},
            "orders-1",
            "kafka_log takes startingTimestamp ISO text (2024-05-01T12:00:00Z) or milliseconds since 1970, got 'yesterday'",
        ),
        ({"startingOffset": "521"}, "orders-1", "startingOffset 521 is beyond the end: orders-1 has 100 to 520"),
        (
            {"startingTimestamp": "2030-01-01"},
            "orders-1",
            "kafka_log takes startingTimestamp with a time zone (2030-01-01T00:00:00Z), got '2030-01-01'",
        ),
        (
            {"startingTimestamp": "2030-01-01T00:00:00Z"},
            "orders-1",
            "startingTimestamp 1893456000000 is beyond the end: the newest record has 1600000015943",
        ),
    ],
)
def test_wrong_use_gives_a_clear_error(
    spark: SparkSession, broker: Path, options: dict[str, str], path: str, sentence: str
) -> None:
    with pytest.raises((AnalysisException, PythonException)) as caught:
        spark.read.format("kafka_log").options(**options).load(str(broker / path)).count()
    lines = [line for line in str(caught.value).splitlines() if sentence.format(path=broker / path) in line]
    assert lines
    assert "Error: " in lines[-1]


def test_no_segments(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "server.log").write_bytes(b"text")
    with pytest.raises(AnalysisException, match="has no segment among its 1 files"):
        spark.read.format("kafka_log").load(str(tmp_path))


def test_a_schema_that_does_not_fit(spark: SparkSession, broker: Path) -> None:
    with pytest.raises(AnalysisException, match="kafka_log has key BINARY, and the schema says STRING"):
        spark.read.format("kafka_log").schema("key STRING").load(str(broker)).count()


def test_modes(spark: SparkSession, tmp_path: Path) -> None:
    damaged = bytearray(golden.archive("segments_v2")["v2_multi_segment/00000000000000000494.log"])
    damaged[100] ^= 1
    path = tmp_path / "00000000000000000494.log"
    path.write_bytes(damaged)
    reader = spark.read.format("kafka_log")
    rows = reader.load(str(path)).where("error IS NOT NULL").collect()
    assert [(row.error, row.position, row.file) for row in rows] == [("CRC_MISMATCH", 0, str(path))]
    dropped = spark.read.format("kafka_log").option("mode", "DROPMALFORMED").load(str(path))
    assert dropped.where("error IS NOT NULL").count() == 0
    assert dropped.count() == reader.load(str(path)).count() - 1
    with pytest.raises(
        PythonException, match=r"00000000000000000494\.log cannot be read at byte 0: CRC_MISMATCH\. Mode FAILFAST"
    ):
        spark.read.format("kafka_log").option("mode", "FAILFAST").load(str(path)).count()


def test_loaded_objects_are_not_collected_after_each_task(broker: Path) -> None:
    """Spark runs the garbage collector after planning and after each task, in processes that load the same libraries."""
    source = sources.KafkaLog({"path": str(broker)})
    reader = source.reader(source.schema())

    def frozen_by(step: Callable[[], object]) -> int:
        gc.unfreeze()
        freeze_gc.cache_clear()
        step()
        return gc.get_freeze_count()

    try:
        (task, *_) = reader.partitions()
        for step in (source.schema, reader.partitions, lambda: list(reader.read(task))):
            assert frozen_by(step) > 10_000
        assert frozen_by(lambda: udf.Call("kafka_records")(pa.array([b""]))) > 10_000
        assert frozen_by(lambda: udf.PandasCall("kafka_records")(pd.Series([b""]))) > 10_000
    finally:
        gc.unfreeze()


def test_nested_fields_have_the_names_of_spark(broker: Path) -> None:
    source = sources.KafkaLog({"path": str(broker)})
    reader = source.reader(source.schema())
    rows = {batch.schema.field("headers").type.value_field.name for batch in reader.read(reader.partitions()[0])}
    assert rows == {"element"}


def test_times_with_a_zone(spark: SparkSession, tmp_path: Path) -> None:
    """Timestamps are read like Spark's, in every time zone of the session."""
    hours = [log_files.CREATED + 3_600_000 * k for k in range(60)]
    for base in range(0, 60, 20):
        data = [log_files.entry(k, [b"v"], time=hours[k]) for k in range(base, base + 20)]
        log_files.segment(tmp_path / "orders-0", base, data)
    session = spark.newSession()
    sparkwire.register(session)
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    moment = "2020-09-14 20:30:00.5"
    every = session.read.format("kafka_log").load(str(tmp_path))
    want = {row.offset for row in every.where(f"timestamp >= TIMESTAMP '{moment}'").collect()}
    assert 20 < len(want) < 40
    for option, offsets in (("startingTimestamp", want), ("endingTimestamp", set(range(60)) - want)):
        result = session.read.format("kafka_log").option(option, f"{moment}+09:00").load(str(tmp_path))
        assert {row.offset for row in result.collect()} == offsets
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    pushed = session.read.format("kafka_log").load(str(tmp_path)).where(f"timestamp >= TIMESTAMP '{moment}'")
    assert {row.offset for row in pushed.collect()} == want


def test_records_of_a_key(spark: SparkSession, broker: Path) -> None:
    session = spark.newSession()
    sparkwire.register(session)
    log = session.read.format("kafka_log").load(str(broker))
    keys = [row.key for row in log.where("key IS NOT NULL").groupBy("key").count().orderBy("key").take(2)]
    wanted = " OR ".join(f"key = X'{key.hex()}'" for key in keys)
    want = {(row.topic, row.partition, row.offset) for row in log.where(wanted).collect()}
    assert len(want) > 1
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    texts = ", ".join(f"X'{key.hex()}'" for key in keys)
    for condition in (wanted, f"key IN ({texts})"):
        pushed = session.read.format("kafka_log").load(str(broker)).where(condition)
        assert {(row.topic, row.partition, row.offset) for row in pushed.collect()} == want
    result = [
        (row.topic, row.partition, row.offset)
        for key in keys
        for row in session.read.format("kafka_log").option("key", f"0x{key.hex()}").load(str(broker)).collect()
        if row.error is None
    ]
    assert sorted(result) == sorted(want)
