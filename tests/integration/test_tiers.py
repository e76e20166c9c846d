"""Read the disk and bucket of a running broker with Kafka's reference remote storage, and compare with its consumers."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import sparkwire
from sparkwire import sql_functions as W
from tests.integration.broker import KAFKA, Broker, java, running, segments, while_unchanged
from tests.integration.consumers import Record, consume
from tests.integration.jars import jar
from tests.integration.packages import only_whole
from tests.integration.test_way_back import create, expected, rows, wait_for

TRANSACTIONS = 60
TIERED = {"remote.storage.enable": "true", "local.retention.bytes": "1", "segment.bytes": str(1 << 20)}
NEWEST = "org.apache.kafka:kafka_2.13:4.3.0"
"""releases whose reference storage is on Maven Central; 4.4 is missing there, and that of 4.3 does not run in 4.4"""
TOOLS = "org.apache.kafka:kafka-tools:4.3.0"


def tiers(remote: Path, version: str) -> dict[str, object]:
    """The properties of a broker with tiered storage."""
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "remote.log.storage.manager.class.path": jar(
            f"org.apache.kafka:kafka-storage:{version}", remote.parent, "-test"
        ),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.replication.factor": 1,
        "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
        "remote.log.manager.task.interval.ms": 500,
        "rsm.config.dir": remote,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
    }


def produce(broker: Broker) -> None:
    """Send transactions of a few megabytes, some of them aborted."""
    rng = random.Random(23)
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": "live"})
    producer.init_transactions(30)
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        for _ in range(4):
            producer.produce("live", rng.randbytes(25_000), f"of {number}".encode(), partition=number % 2)
        producer.flush(30)  # an abort would drop unsent records
        if rng.random() < 0.3:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)


def commit(broker: Broker, protocol: str, offset: int) -> None:
    """Commit offsets for a group that has read a part of a topic."""
    settings = {"bootstrap.servers": broker.address, "group.id": "late", "enable.auto.commit": False}
    consumer = Consumer({**settings, "group.protocol": protocol, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["live"])
        assert consumer.poll(30) is not None
        consumer.commit(offsets=[TopicPartition("live", 0, offset)], asynchronous=False)
    finally:
        consumer.close()


def share(broker: Broker) -> None:
    """A share group reads a few records."""
    program = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
    options = ("--bootstrap-server", broker.address, "--topic", "live", "--group", "shared", "--max-messages", "5")
    subprocess.run(java((program, *options, "--timeout-ms", "30000"), NEWEST, TOOLS), capture_output=True, check=True)


@pytest.fixture(params=[pytest.param(KAFKA, id="3.9", marks=only_whole), pytest.param(NEWEST, id="4")])
def broker(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Broker]:
    """A broker that has moved most of two topics to its bucket; Spark wrote one of them, a producer the other."""
    kafka = request.param
    settings = tiers(tmp_path / "remote", kafka.rpartition(":")[2])
    with running(tmp_path, kafka, settings=settings) as first:
        create(first, "restored", config=TIERED)
    sparkwire.kafka.write(rows(spark, 0), str(first.directory), mode="overwrite", batchBytes="4k", segmentBytes="64k")
    assert len(segments(first, "restored")) > 10
    with running(tmp_path, kafka, settings=settings) as broker:
        create(broker, "live", config=TIERED)
        produce(broker)
        wait_for(lambda: len(segments(broker, "restored")) <= 4 and len(segments(broker, "live")) <= 2)
        yield broker


def test_disk_and_bucket_of_a_running_broker(
    spark: SparkSession,
    broker: Broker,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    remote = str(tmp_path / "remote")
    newest = request.node.callspec.id == "4"
    commit(broker, "consumer" if newest else "classic", 10)

    def read(topic: str, **options: str) -> set[Record]:
        log = spark.read.format("kafka_log").options(remotePath=remote, **options)
        return while_unchanged(broker, topic, lambda: expected(log.load(f"{broker.directory}/{topic}-*")))

    seen = {topic: consume(broker.address, topic, "read_uncommitted") for topic in ("restored", "live")}
    assert seen["restored"].records == expected(rows(spark, 0))
    for topic, known in seen.items():
        assert read(topic) == known.records
    committed = consume(broker.address, "live", "read_committed").records
    assert 0 < len(committed) < len(seen["live"].records)
    assert read("live", isolationLevel="read_committed") == committed

    cluster = sparkwire.kafka.cluster(spark, str(broker.directory), remotePath=remote)
    ids = {row.topic: row.topic_id for row in cluster.topics.collect()}
    for topic in seen:
        assert ids[topic] in (broker.directory / f"{topic}-0/partition.metadata").read_text()
    whole = cluster.segments.where("topic IN ('restored', 'live')").groupBy("topic", "partition")
    ends = {(row.topic, row.partition): row.end for row in whole.agg(F.max("next_offset").alias("end")).collect()}
    assert ends == {(topic, partition): end for topic, known in seen.items() for partition, end in known.ends.items()}
    assert {row.tier for row in cluster.segments.where("topic = 'restored'").collect()} == {"local", "remote"}
    [late] = cluster.groups.where("group = 'late' AND partition = 0").collect()
    assert (late.committed_offset, late.lag) == (10, seen["live"].ends[0] - 10)

    if newest:
        share(broker)
    kinds = internal_kinds(spark, broker)
    with capsys.disabled():
        there = (
            cluster.segments.where("topic IN ('restored', 'live')").groupBy("tier").count().orderBy("tier").collect()
        )
        places = ", ".join(f"{row[1]} segments {row[0]}" for row in there)
        records = sum(len(known.records) for known in seen.values())
        print(
            f"\ntiers: {records:,} records, {len(committed)} of them committed ones, as consumers read them, from {places}"
        )
        print(f"internal records: {', '.join(sorted(kinds))}")
    assert "OffsetCommit" in " ".join(kinds)
    if newest:
        assert any("ConsumerGroup" in kind for kind in kinds)
        assert any("Share" in kind for kind in kinds)


def internal_kinds(spark: SparkSession, broker: Broker) -> set[str]:
    """The kinds of records in the broker's internal topics. Checks that each record can be read."""
    log = spark.read.format("kafka_log").load(f"{broker.directory}/__*")
    records = log.select(
        "topic", "offset", "key", "value", "error", W.kafka_internal_record("topic", "key", "value").alias("record")
    )
    assert [str(row) for row in records.where("record.error IS NOT NULL").limit(5).collect()] == []
    return {row.type for row in records.select("record.type").distinct().collect()}
