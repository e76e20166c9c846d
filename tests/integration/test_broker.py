"""Send a message to a real broker, and read it from the broker's files."""

from __future__ import annotations

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.integration.broker import Broker
from tests.support.arrow import ask


def test_a_message_is_in_the_files(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic("first", num_partitions=1, replication_factor=1)])["first"].result()
    producer = Producer({"bootstrap.servers": broker.address})
    producer.produce("first", key=b"k", value=b"v", headers=[("h", b"x")], timestamp=1_600_000_000_000)
    producer.flush()
    segment = broker.directory / "first-0" / "00000000000000000000.log"
    (records,) = ask("kafka_records", [segment.read_bytes()])
    (record,) = records
    assert (record["offset"], record["key"], record["value"]) == (0, b"k", b"v")
    assert record["headers"] == [{"key": "h", "value": b"x"}]
    assert record["timestamp_ms"] == 1_600_000_000_000
    assert record["error"] is None
