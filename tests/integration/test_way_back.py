"""Brokers start on files that Spark has written, and serve the records with their offsets. Kafka's tools accept the files."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from tests.integration.broker import KAFKA, NEWEST, Broker, dump, running, segments
from tests.integration.consumers import Record, consume
from tests.integration.packages import only_whole

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ROWS = 20_000
CREATED = 1_600_000_000_000
_WITHIN = 60  # [s]
_TROUBLE = re.compile(r"truncat|corrupt|invalid|stray|recovering unflushed segment.*fail", re.IGNORECASE)

VERSIONS = (pytest.param(KAFKA, id="3.9", marks=only_whole), pytest.param(NEWEST, id="4"))
brokers = pytest.mark.parametrize("kafka", VERSIONS)


def create(
    broker: Broker, topic: str, partitions: int = 2, replicas: int = 1, config: Mapping[str, str] | None = None
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    new = NewTopic(
        topic, num_partitions=partitions, replication_factor=replicas, config={"retention.ms": "-1", **(config or {})}
    )
    admin.create_topics([new])[topic].result()
    # The controller knows the topic before the broker has its directories.
    wait_for(
        lambda: all((broker.directory / f"{topic}-{k}" / "partition.metadata").exists() for k in range(partitions))
    )


def rows(spark: SparkSession, codec: int) -> DataFrame:
    """A fifth of a topic with two partitions: gaps, NULL keys and values, headers, both timestamp types, several epochs."""
    first = codec * ROWS
    return spark.range(first, first + ROWS, 1, 4).selectExpr(
        "'restored' topic",
        "CAST(id % 2 AS INT) partition",
        "id * 3 + IF(id > 30000, 5000000000, 0) offset",
        f"CAST({CREATED} + IF(id % 1000 < 500, id * 10 - id % 7, id DIV 1000 * 10000) AS BIGINT) timestamp_ms",
        "IF(id % 1000 < 500, 'CreateTime', 'LogAppendTime') timestamp_type",
        "IF(id % 5 = 0, NULL, CAST(concat('key-', id % 997) AS BINARY)) key",
        "IF(id % 11 = 0, NULL, CAST(repeat(concat('value ', id), CAST(id % 20 AS INT)) AS BINARY)) value",
        "IF(id % 3 = 0, NULL, array(named_struct('key', 'h', 'value', unhex(hex(id))), "
        "named_struct('key', 'h', 'value', CAST(NULL AS BINARY)))) headers",
        "CAST(id DIV 25000 AS INT) partition_leader_epoch",
    )


def expected(df: DataFrame) -> set[Record]:
    return {
        Record(
            row["topic"], row["partition"], row["offset"], row["timestamp_type"], row["timestamp_ms"], row["key"], row["value"],
            tuple((one["key"], one["value"]) for one in row["headers"] or ()),
        )
        for row in df.toArrow().to_pylist()
    }  # fmt: skip


def hashes(broker: Broker, *patterns: str) -> dict[str, str]:
    return {
        str(path.relative_to(broker.directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for pattern in patterns
        for path in sorted(broker.directory.glob(f"restored-*/{pattern}"))
        if path.stat().st_size
    }


@brokers
@pytest.mark.parametrize("killed", [False, True], ids=["clean", "killed"])
def test_a_topic_is_restored(
    spark: SparkSession, tmp_path: Path, kafka: str, killed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path, kafka, killed) as broker:
        create(broker, "restored")
    parts = [rows(spark, codec) for codec in range(len(CODECS))]
    options: dict[str, Any] = {"segmentBytes": "128k", "indexIntervalBytes": 512}
    for codec, df in zip(CODECS, parts, strict=True):
        sparkwire.kafka.write(df, str(broker.directory), mode="append", compression=codec, **options)
    whole = expected(parts[0].unionByName(parts[1]).unionByName(parts[2]).unionByName(parts[3]).unionByName(parts[4]))
    assert len(whole) == ROWS * len(CODECS)
    report = sparkwire.kafka.check(str(broker.directory))
    findings = [str(one) for one in report.findings if one.partition.startswith("restored")]
    # The offsets have gaps as large as segments, and the epochs are those of another cluster.
    foretold = re.compile(
        r": serve: offsets .* are in no segment|: truncate: it has epochs up to 3, and the partition's"
    )
    assert [one for one in findings if not foretold.search(one)] == []
    ours = hashes(broker, "*.log", "*.index", "*.timeindex")
    if killed:  # a broker that rebuilds the indexes gets the same ones
        for path in [*broker.directory.glob("restored-*/*.index"), *broker.directory.glob("restored-*/*.timeindex")]:
            path.unlink()
    with running(tmp_path, kafka) as broker:
        assert consume(broker.address, "restored", "read_uncommitted").records == whole
        words = [line for line in broker.output.read_text("utf-8").splitlines() if "restored" in line]
        assert [line for line in words if _TROUBLE.search(line)] == []
        check_timestamps(broker, whole)
        check_appended(broker, whole)
    logs = segments(broker, "restored")
    kept = hashes(broker, "*.log", "*.index", "*.timeindex")
    # Except the last segments, to which a record may have been appended.
    last = {max(name for name in ours if name.startswith(f"restored-{p}/")).partition(".")[0] for p in range(2)}
    assert [name for name in ours if name.partition(".")[0] not in last and kept.get(name) != ours[name]] == []
    assert len(ours) > 60
    check_dumps(logs)
    with capsys.disabled():
        print(f"\nKafka {kafka.rpartition(':')[2]}: {len(whole)} records of {len(logs)} segments as they were written")


def check_timestamps(broker: Broker, whole: set[Record]) -> None:
    """Look-ups by timestamp return the first record that is not older."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "times"})
    for partition in range(2):
        mine = sorted((record.offset, record.timestamp_ms) for record in whole if record.partition == partition)
        for wanted in [CREATED + k for k in range(-1, ROWS * 50, 49_999)]:
            [result] = consumer.offsets_for_times([TopicPartition("restored", partition, wanted)], timeout=30)
            assert result.offset == next((offset for offset, at in mine if at >= wanted), -1), wanted
    consumer.close()


def check_appended(broker: Broker, whole: set[Record]) -> None:
    """Producers continue after the last offset."""
    delivered: list[int | None] = []
    producer = Producer({"bootstrap.servers": broker.address})
    producer.produce(
        "restored", b"after", partition=0, on_delivery=lambda _, message: delivered.append(message.offset())
    )
    producer.flush()
    assert delivered == [max(record.offset for record in whole if record.partition == 0) + 1]


def check_dumps(logs: list[Path]) -> None:
    """Kafka's dump reports no errors in batches, records and indexes."""
    said = dump(*logs, options=("--deep-iteration",))
    assert said.count("isvalid: true") > len(logs)
    assert "isvalid: false" not in said
    indexes = [log.with_suffix(suffix) for log in logs for suffix in (".index", ".timeindex")]
    said = dump(*indexes, options=("--index-sanity-check",))
    assert said.count("passed sanity check") + said.count("is empty") == len(indexes), said
    said = dump(*indexes, options=("--verify-index-only",))
    assert not re.search(r"Mismatches|not found", said)


@brokers
def test_a_broker_does_what_check_says(spark: SparkSession, tmp_path: Path, kafka: str) -> None:
    """After an unclean shutdown: the broker truncates, deletes and rebuilds files, and marks strays, as predicted."""
    with running(tmp_path, kafka, killed=True) as broker:
        create(broker, "restored")
        create(broker, "other", 1)
        # The broker creates this file empty, and writes the epoch when it leads the partition.
        wait_for(lambda: (broker.directory / "other-0" / "leader-epoch-checkpoint").stat().st_size > 0)
    df = rows(spark, 0).drop("timestamp_type", "partition_leader_epoch")
    sparkwire.kafka.write(df, str(broker.directory), mode="overwrite", batchBytes="4k", segmentBytes="64k")
    folder = broker.directory / "restored-0"
    logs = segments(broker, "restored")
    damaged, *after = (log for log in logs[3:] if log.parent == folder)
    with damaged.open("r+b") as file:
        file.seek(30_000)
        file.write(b"\xff" * 8)
    logs[0].with_suffix(".index").unlink()
    (folder / f"{77:020}.timeindex").write_bytes(bytes(12))
    (folder / f"{99:020}.log.12-3.deleted").write_bytes(b"left over")
    (broker.directory / "other-0" / "partition.metadata").unlink()
    said = {
        (one.partition, one.file, one.action): one.why for one in sparkwire.kafka.check(str(broker.directory)).findings
    }
    truncated = int(re.findall(r"at byte (\d+) of", said.pop(("restored-0", damaged.name, "truncate")))[0])
    assert set(said) == {
        ("restored-0", logs[0].with_suffix(".index").name, "rebuild"),
        ("restored-0", f"{77:020}.timeindex", "delete"),
        ("restored-0", f"{99:020}.log.12-3.deleted", "delete"),
        *(("restored-0", log.name, "delete") for log in after),
        ("other-0", "partition.metadata", "stray"),
        # The file of an empty log.
        ("other-0", f"{0:020}.index", "rebuild"),
        ("other-0", f"{0:020}.timeindex", "rebuild"),
        ("other-0", "leader-epoch-checkpoint", "truncate"),
    }
    with running(tmp_path, kafka) as broker:
        assert damaged.stat().st_size == truncated
        assert [log for log in after if log.exists()] == []
        assert logs[0].with_suffix(".index").exists()
        assert not (folder / f"{77:020}.timeindex").exists()
        assert not (folder / f"{99:020}.log.12-3.deleted").exists()
        assert list(broker.directory.glob("other-0.*-stray")) != []
        kept = {row.offset for row in spark.read.format("kafka_log").load(str(folder)).select("offset").collect()}
        served = consume(broker.address, "restored", "read_uncommitted").records
        assert {record.offset for record in served if record.partition == 0} == kept


@brokers
def test_compaction_and_retention_run_over_it(spark: SparkSession, tmp_path: Path, kafka: str) -> None:
    with running(tmp_path, kafka) as broker:
        create(broker, "restored")
    df = rows(spark, 0).where("key IS NOT NULL").drop("timestamp_type", "partition_leader_epoch")
    sparkwire.kafka.write(df, str(broker.directory), mode="overwrite", batchBytes="4k", segmentBytes="64k")
    with running(tmp_path, kafka) as broker:
        before = consume(broker.address, "restored", "read_uncommitted").records
        set_topic(broker, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000"})
        latest = {(record.partition, record.key): record for record in sorted(before, key=lambda record: record.offset)}
        wait_for(lambda: len(consume(broker.address, "restored", "read_uncommitted").records) < len(before) // 2)
        compacted = consume(broker.address, "restored", "read_uncommitted").records
        assert set(latest.values()) - compacted <= {record for record in before if record.value is None}
        assert compacted < before
        set_topic(broker, {"cleanup.policy": "delete", "retention.bytes": "1000"})
        begins = consume(broker.address, "restored", "read_uncommitted").begins
        wait_for(lambda: consume(broker.address, "restored", "read_uncommitted").begins[0] > begins[0])


def set_topic(broker: Broker, values: Mapping[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in values.items()]
    resource = ConfigResource(ResourceType.TOPIC, "restored", incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result()


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WITHIN
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.5)
