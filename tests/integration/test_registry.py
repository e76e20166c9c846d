"""Read a topic of several types and the registry's topic from a broker's files; compare with Confluent's deserializer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from pyspark.sql import SparkSession

from sparkwire import avro
from sparkwire.avro import Registry
from tests.integration.broker import Broker
from tests.integration.shop import TOPIC, messages, write
from tests.support.registry_server import RegistryServer, serving


@pytest.fixture(scope="module")
def server(broker: Broker) -> Iterator[RegistryServer]:
    with serving() as server:
        write(broker.address, server)
        yield server


def consumed(broker: Broker, count: int) -> Iterator[tuple[int, bytes | None]]:
    """Offsets and values from a consumer."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "registry"})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    for offset in range(count):
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        assert message.offset() == offset
        yield offset, message.value()
    consumer.close()


def test_rows_of_files_equal_confluents_deserializer(
    spark: SparkSession, broker: Broker, server: RegistryServer
) -> None:
    topics = {name: spark.read.format("kafka_log").load(f"{broker.directory}/{name}-0") for name in (TOPIC, "_schemas")}
    deserializer = AvroDeserializer(SchemaRegistryClient({"url": server.url}))
    expected, wrong = {}, []
    for offset, value in consumed(broker, len(list(messages())) + 4):
        try:
            expected[offset] = deserializer(value, SerializationContext(TOPIC, MessageField.VALUE, []))
        except (SerializationError, SchemaRegistryError, EOFError):
            wrong.append(offset)
    for registry in (Registry.topic(topics["_schemas"]), Registry.http(server.url)):
        rows = avro.rows(topics[TOPIC].select("offset", "value"), "value", registry, keep_payload=False).collect()
        by_name = {row.offset: row.asDict(True) for row in rows}
        assert sorted(by_name) == sorted([*expected, *wrong])
        for offset, record in expected.items():
            assert by_name[offset]["_error_"] is None
            assert {name: by_name[offset][name] for name in record or {}} == (record or {})
        assert {by_name[offset]["_error_"] for offset in wrong} == {"UNKNOWN_SCHEMA", "TRUNCATED", "BAD_MAGIC"}
    print(f"registry: {len(expected)} records as Confluent's deserializer gives them, {len(wrong)} that it rejects")
