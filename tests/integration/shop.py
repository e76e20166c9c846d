"""A shop's topic with several Avro types, and the registry's topic, in a real broker.

    python -m tests.integration.shop DIRECTORY    writes udfs/sparkwire/catalogue/samples/kafka/registry again

Confluent's producer and serializers write the messages. The records of `_schemas` have the form of Confluent's Schema Registry,
with the schemas that the serializers have registered.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.integration.broker import running, segments
from tests.support.registry_server import RegistryServer, serving

TOPIC = "shop"
_BEGIN = 1_767_225_600_000  # 2026-01-01 [ms since epoch]

CITY = {"type": "record", "name": "City", "namespace": "geo", "fields": [{"name": "name", "type": "string"}]}
PAYMENT = {
    "type": "record",
    "name": "Payment",
    "namespace": "shop",
    "fields": [
        {"name": "order_id", "type": "long"},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "method", "type": {"type": "enum", "name": "Method", "symbols": ["CARD", "CASH"]}},
    ],
}
ORDER_FIELDS: list[Any] = [{"name": "id", "type": "long"}, {"name": "to", "type": "geo.City"}]
ORDER_1 = {"type": "record", "name": "Order", "namespace": "shop", "fields": ORDER_FIELDS}
ORDER_2 = ORDER_1 | {"fields": [*ORDER_FIELDS, {"name": "gift", "type": "boolean", "default": False}]}
CITIES = ("Lisbon", "Oslo", "Rome", "Vienna")


def messages() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Schemas and records: orders, some of a later version, and their payments."""
    for id in range(1, 31):
        order: dict[str, Any] = {"id": id, "to": {"name": CITIES[id % 4]}}
        yield (ORDER_1, order) if id <= 20 else (ORDER_2, order | {"gift": id % 3 == 0})
        if id % 5:
            yield (
                PAYMENT,
                {"order_id": id, "amount": f"{id * 7 % 50}.{id:02}", "method": "CASH" if id % 7 == 0 else "CARD"},
            )


def write(address: str, server: RegistryServer) -> None:
    """Fill both topics."""
    admin = AdminClient({"bootstrap.servers": address})
    topics = [
        NewTopic(TOPIC, 1, 1, config={"retention.ms": "-1"}),  # because its records are old
        NewTopic("_schemas", 1, 1, config={"cleanup.policy": "compact"}),
    ]
    for created in admin.create_topics(topics).values():
        created.result(timeout=60)
    client = SchemaRegistryClient({"url": server.url})
    client.register_schema("geo.City", Schema(json.dumps(CITY), "AVRO"))
    producer = Producer({"bootstrap.servers": address, "linger.ms": 1000, "enable.idempotence": True})
    for at, (schema, record) in enumerate(messages()):
        _produce(producer, at, str(record.get("id", record.get("order_id"))), _serialized(client, schema, record))
    whole = _serialized(client, ORDER_1, {"id": 99, "to": {"name": "Paris"}})
    for at, (key, value) in enumerate(
        [("7", None), ("31", b"\0\0\0\0\x63\x3e"), ("99", whole[:-2]), ("note", b"hello")], 100
    ):
        _produce(producer, at, key, value)
    for at, (name, version) in enumerate(registry_records(server)):
        producer.produce("_schemas", key=name, value=version, timestamp=_BEGIN + at)
    producer.flush()


def _produce(producer: Producer, at: int, key: str, value: bytes | None) -> None:
    producer.produce(TOPIC, key=key, value=value, timestamp=_BEGIN + 60_000 * at)


def _serialized(client: SchemaRegistryClient, schema: dict[str, Any], record: dict[str, Any]) -> bytes:
    registered = Schema(
        json.dumps(schema), "AVRO", [SchemaReference("geo.City", "geo.City", 1)] if "to" in record else []
    )
    serializer = AvroSerializer(client, registered, conf={"subject.name.strategy": record_subject_name_strategy})
    given = {name: Decimal(value) if name == "amount" else value for name, value in record.items()}
    message = serializer(given, SerializationContext(TOPIC, MessageField.VALUE, []))
    assert message is not None
    return bytes(message)


def registry_records(server: RegistryServer) -> Iterator[tuple[str, str | None]]:
    """The keys and values of `_schemas`."""
    yield json.dumps({"keytype": "NOOP", "magic": 0}), None
    for one in server.versions.values():
        key = {"keytype": "SCHEMA", "subject": one["subject"], "version": one["version"], "magic": 1}
        value = {name: part for name, part in one.items() if name != "references" or part}
        yield json.dumps(key, separators=(",", ":")), json.dumps(value, separators=(",", ":"))


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as workspace, running(Path(workspace)) as broker, serving() as server:
        write(broker.address, server)
        for topic in ("_schemas", TOPIC):
            [segment] = segments(broker, topic)
            (folder / f"{topic}-0").mkdir(parents=True, exist_ok=True)
            shutil.copy(segment, folder / f"{topic}-0")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
