"""Recipes for restoring topics: consumer groups continue, a topic is cloned, a person is erased, millions of records."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

import sparkwire
from tests.docs import test_way_back_page as guide
from tests.integration.broker import NEWEST, running
from tests.integration.consumers import consume
from tests.integration.test_way_back import CREATED, brokers, create, hashes, wait_for
from tests.support import WHOLE


@brokers
def test_groups_continue_at_their_offsets(spark: SparkSession, tmp_path: Path, kafka: str) -> None:
    """Copy a topic and `__consumer_offsets` from one broker's files to another's."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    with running(tmp_path / "old", kafka) as old:
        create(old, "orders", 1)
        producer = Producer({"bootstrap.servers": old.address})
        for k in range(1000):
            producer.produce("orders", f"{k}".encode(), f"{k % 10}".encode())
        producer.flush()
        group = Consumer({"bootstrap.servers": old.address, "group.id": "billing", "enable.auto.commit": False})
        group.commit(offsets=[TopicPartition("orders", 0, 417)], asynchronous=False)
        group.close()
        before = consume(old.address, "orders", "read_uncommitted").records
    with running(tmp_path / "new", kafka) as new:
        create(new, "orders", 1)
        Consumer({"bootstrap.servers": new.address, "group.id": "any"}).commit(
            offsets=[TopicPartition("orders", 0, 1)], asynchronous=False
        )  # this creates the topic of offsets
    for topic in ("orders", "__consumer_offsets"):
        kept = spark.read.format("kafka_log").load(f"{old.directory}/{topic}-0")
        sparkwire.kafka.write(kept, str(new.directory), mode="overwrite", leaderEpoch=0)
    with running(tmp_path / "new", kafka) as new:
        assert consume(new.address, "orders", "read_uncommitted").records == before
        group = Consumer({"bootstrap.servers": new.address, "group.id": "billing"})
        [committed] = group.committed([TopicPartition("orders", 0)], timeout=30)
        assert committed.offset == 417
        group.close()


def test_a_topic_is_cloned_to_two_brokers(spark: SparkSession, tmp_path: Path) -> None:
    """From one broker's files, with a transaction, to those of a cluster with two brokers, which both have every partition."""
    for name in ("old", "one", "two"):
        (tmp_path / name).mkdir()
    with running(tmp_path / "old") as old:
        create(old, "restored")
        producer = Producer({"bootstrap.servers": old.address, "transactional.id": "t"})
        producer.init_transactions()
        for ending in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            for k in range(500):
                producer.produce("restored", f"{k}".encode(), f"{k % 10}".encode())
            ending()
        before = consume(old.address, "restored", "read_committed").records
    assert len(before) == 1000
    with running(tmp_path / "one", NEWEST) as one, running(tmp_path / "two", NEWEST, joins=one) as two:
        wait_for(lambda: len(AdminClient({"bootstrap.servers": one.address}).list_topics().brokers) == 2)
        create(one, "restored", 2, replicas=2)
        wait_for(lambda: all((two.directory / f"restored-{k}" / "partition.metadata").exists() for k in range(2)))
    committed = (
        spark.read.format("kafka_log").option("isolationLevel", "read_committed").load(f"{old.directory}/restored-*")
    )
    for broker in (one, two):
        sparkwire.kafka.write(committed, str(broker.directory), mode="overwrite", leaderEpoch=0, compression="snappy")
    assert hashes(one, "*") == hashes(two, "*")
    with running(tmp_path / "one", NEWEST) as one, running(tmp_path / "two", NEWEST, joins=one) as two:
        admin = AdminClient({"bootstrap.servers": one.address})
        wait_for(
            lambda: all(len(p.isrs) == 2 for p in admin.list_topics("restored").topics["restored"].partitions.values())
        )
        for address in (one.address, two.address):
            assert consume(address, "restored", "read_uncommitted").records == before


def test_recipes(spark: SparkSession, tmp_path: Path) -> None:
    """The recipes of the guide that change a topic, from one broker's files to another's; compared with its consumers."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    with running(tmp_path / "old") as old:
        create(old, "orders")
        producer = Producer({"bootstrap.servers": old.address})
        for k in range(600):
            value = None if k % 90 == 3 else f'{{"id":{k},"email":"a{k}@b.c"}}'.encode()
            producer.produce("orders", value, f"user-{k % 40}".encode(), partition=k % 2, headers=[("h", b"1")])
        producer.flush()
        before = consume(old.address, "orders", "read_uncommitted").records
    with running(tmp_path / "new", NEWEST) as new:
        create(new, "orders")
        create(new, "load-test", 8)
    disk = tmp_path / "guide"
    disk.mkdir()
    (disk / "kafka").symlink_to(old.directory)
    erase, prove, thin, load = 3, 4, 5, 6
    names = guide.run(spark, disk, new.directory, erase)
    guide.run(spark, disk, new.directory, prove, names)
    with running(tmp_path / "new", NEWEST) as new:
        after = consume(new.address, "orders", "read_uncommitted").records
    kept = {record for record in before if record.key not in (b"user-17", b"user-18")}
    assert after == {
        record._replace(value=record.value and re.sub(rb'"email":"[^"]*"', b'"email":null', record.value))
        for record in kept
    }
    guide.run(spark, disk, new.directory, thin)
    guide.run(spark, disk, new.directory, load)
    with running(tmp_path / "new", NEWEST) as new:
        latest = {(record.partition, record.key): record for record in sorted(before, key=lambda record: record.offset)}
        assert consume(new.address, "orders", "read_uncommitted").records == {
            record for record in latest.values() if record.value is not None
        }
        assert len(consume(new.address, "load-test", "read_uncommitted").records) == 10_000


def test_many_records(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = 10_000_000 if WHOLE else 1_000_000
    with running(tmp_path, NEWEST, killed=True) as broker:
        create(broker, "restored", 1)
    df = spark.range(0, count, 1, 2).selectExpr(
        "'restored' topic",
        "0 partition",
        "id offset",
        f"{CREATED} + id timestamp_ms",
        "unhex(lpad(hex(id), 16, '0')) key",
        "key value",
    )
    df.write.format("kafka_log").mode("overwrite").option("compression", "zstd").save(str(broker.directory))
    with running(tmp_path, NEWEST) as broker:
        consumer = Consumer(
            {
                "bootstrap.servers": broker.address,
                "group.id": "all",
                "auto.offset.reset": "earliest",
                "check.crcs": True,
            }
        )
        consumer.assign([TopicPartition("restored", 0, 0)])
        read = itertools.chain.from_iterable(iter(lambda: consumer.consume(10_000, timeout=30), []))
        for offset, message in enumerate(itertools.islice(read, count)):
            assert message.offset() == offset
            assert message.key() == offset.to_bytes(8, "big")
        assert consumer.get_watermark_offsets(TopicPartition("restored", 0)) == (0, count)
        consumer.close()
    with capsys.disabled():
        print(f"\n{count} records, each at its offset")
