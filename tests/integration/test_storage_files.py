"""Compare the other files and the internal topics of a running broker with its tools and clients."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from tests.integration.broker import Broker, dump, segments
from tests.integration.traffic import STEADY, Traffic
from tests.kafka.test_storage import aborted, as_dumped, ask_pairs, without_derived
from tests.support.arrow import ask
from tests.support.kafka_storage_files import dump_lines

Row = dict[str, Any]


def copied(broker: Broker, suffix: str, folder: Path) -> list[Path]:
    """A copy of the current files of the transactional topic."""
    result = []
    for path in segments(broker, "payments", suffix):
        result.append(folder / f"{path.parent.name}-{path.name}" / path.name)
        result[-1].parent.mkdir()
        shutil.copyfile(path, result[-1])
    return [path for path in result if path.stat().st_size]


def test_transaction_indexes(broker: Broker, busy: Traffic, tmp_path: Path) -> None:
    files = copied(broker, ".txnindex", tmp_path)
    about = dump_lines(dump(*files))
    transactions = 0
    for path in files:
        (rows,) = ask("kafka_txn_index", [path.read_bytes()])
        assert rows == [aborted(line) for line in about[str(path)]]
        transactions += len(rows)
    assert transactions > 20


def test_producer_snapshots(broker: Broker, busy: Traffic, tmp_path: Path) -> None:
    files = copied(broker, ".snapshot", tmp_path)
    about = dump_lines(dump(*files))
    producers = 0
    for path in files:
        (rows,) = ask("kafka_producer_snapshot", [path.read_bytes()])
        assert [row.pop("error") for row in rows] == [None] * len(rows)
        assert [as_dumped(row) for row in rows] == [without_derived(line) for line in about[str(path)]]
        producers += len(rows)
    assert producers > 2


def test_leader_epochs(broker: Broker, busy: Traffic) -> None:
    for topic in STEADY:  # in other topics, the oldest epochs are deleted with the oldest records
        path = broker.directory / f"{topic}-0" / "leader-epoch-checkpoint"
        (rows,) = ask("kafka_leader_epochs", [path.read_bytes()])
        assert [tuple(row.values()) for row in rows] == [(0, 0)]


def records(broker: Broker, topic: str) -> list[Row]:
    """All records of an internal topic."""
    rows: list[Row] = []
    for path in segments(broker, topic):
        rows += ask("kafka_records", [path.read_bytes()])[0]
    return [row for row in rows if row["error"] is None and not row["is_control"]]


def test_committed_offsets(broker: Broker, busy: Traffic) -> None:
    committed = [
        TopicPartition("orders", 0, 11),
        TopicPartition("orders", 2, 7, "a note"),
        TopicPartition("audit", 0, 3),
    ]
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "commits"})
    consumer.commit(offsets=committed, asynchronous=False)
    consumer.close()
    pairs = [(row["key"], row["value"]) for row in records(broker, "__consumer_offsets")]
    rows = [row for row in ask_pairs("kafka_group_record", pairs) if row["group"] == "commits"]
    assert [row["error"] for row in rows] == [None] * len(rows)
    offsets = {(row["topic"], row["partition"]): row for row in rows if row["kind"] == "OFFSET"}
    for partition in committed:
        row = offsets[partition.topic, partition.partition]
        # librdkafka sends the text with a terminating zero.
        assert (row["offset"], row["metadata"].rstrip("\0")) == (partition.offset, partition.metadata or "")


def test_transactional_ids(broker: Broker, busy: Traffic) -> None:
    pairs = [(row["key"], row["value"]) for row in records(broker, "__transaction_state")]
    rows = ask_pairs("kafka_transaction_record", pairs)
    assert {row["error"] for row in rows} == {None}
    assert {row["transactional_id"] for row in rows} == {"tx-none", "tx-zstd"}
    assert {"Empty", "Ongoing", "CompleteCommit", "CompleteAbort"} <= {row["state"] for row in rows}
    topics = {partition["topic"] for row in rows for partition in row["partitions"] or []}
    assert topics == {"orders", "payments"}
