"""Read a topic to its end with a real consumer, as the reference for reading files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set
from typing import Literal, NamedTuple, cast

import pyarrow as pa
from confluent_kafka import Consumer, IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

Isolation = Literal["read_uncommitted", "read_committed"]
LEVELS: tuple[Isolation, ...] = ("read_uncommitted", "read_committed")
Header = tuple[str, bytes | None]
TIMESTAMP_TYPES = {1: "CreateTime", 2: "LogAppendTime"}


class Record(NamedTuple):
    """A record, with the fields that both consumers and files have."""

    topic: str
    partition: int
    offset: int
    timestamp_type: str
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class Seen(NamedTuple):
    """The records that a consumer has read."""

    records: frozenset[Record]
    begins: dict[int, int]
    """first offset by partition"""
    ends: dict[int, int]
    """end offset by partition when reading began; with ``read_committed``, the start of the first open transaction"""


def consume(address: str, topic: str, isolation: Isolation) -> Seen:
    """All records of a topic, up to its current end."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": f"reads {topic}",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",  # if retention has just deleted the first segment
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    try:
        partitions = [TopicPartition(topic, p) for p in consumer.list_topics(topic).topics[topic].partitions]
        begins = {p.partition: consumer.get_watermark_offsets(p, cached=False)[0] for p in partitions}
        ends = _ends(address, partitions, isolation)
        consumer.assign([TopicPartition(topic, p, begin) for p, begin in begins.items()])
        return Seen(frozenset(_read(consumer, topic, ends)), begins, ends)
    finally:
        consumer.close()


def _ends(address: str, partitions: list[TopicPartition], isolation: Isolation) -> dict[int, int]:
    admin = AdminClient({"bootstrap.servers": address})
    level = IsolationLevel.READ_COMMITTED if isolation == "read_committed" else IsolationLevel.READ_UNCOMMITTED
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    ends = admin.list_offsets(dict.fromkeys(partitions, latest), isolation_level=level)
    return {partition.partition: end.result().offset for partition, end in ends.items()}


def _read(consumer: Consumer, topic: str, ends: dict[int, int]) -> Iterator[Record]:
    """Read up to ``ends``. A partition is done at a record after its end, or if the broker reports the partition's end."""
    done: set[int] = set()
    while len(done) < len(ends):
        message = consumer.poll(30)
        assert message is not None, f"{topic}: the broker is silent"
        error = message.error()
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise AssertionError(f"{topic}: {error}")
        if offset >= ends[partition]:
            done.add(partition)
        elif error is None:
            kind, time = message.timestamp()
            headers = tuple(cast(list[Header], message.headers() or []))
            key, value = message.key(), message.value()
            yield Record(topic, partition, offset, TIMESTAMP_TYPES[kind], time, key, value, headers)


def records(rows: pa.Table) -> list[Record]:
    """The records in the rows of a table."""
    result = []
    for row in rows.to_pylist():
        row["headers"] = tuple((header["key"], header["value"]) for header in row["headers"])
        result.append(Record(**row))
    return result


def once(rows: list[Record]) -> set[Record]:
    """The records as a set. Checks that no offset occurs twice."""
    counted = Counter((row.topic, row.partition, row.offset) for row in rows)
    assert [place for place, times in counted.items() if times > 1] == []
    return set(rows)


def between(records: Set[Record], begins: dict[int, int], ends: dict[int, int]) -> set[Record]:
    """The records between two offsets."""
    return {r for r in records if begins[r.partition] <= r.offset < ends[r.partition]}


def differences(counts: Set[Record], expected: Set[Record]) -> list[tuple[str, Record]]:
    """A few records that only one side has. A comparison of the sets would print all of them."""
    lacking = [("is not found", record) for record in sorted(expected - counts, key=_place)[:3]]
    return lacking + [("is not expected", record) for record in sorted(counts - expected, key=_place)[:3]]


def _place(record: Record) -> tuple[int, int]:
    return record.partition, record.offset
