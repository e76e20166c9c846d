"""Read messages of a real broker with Spark's Kafka source, and decode them with `dbus_*` and `datahub_*`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.integration.broker import Broker
from tests.integration.packages import KAFKA_SOURCE, run_python
from tests.support.arrow import ask
from tests.support.databus_cases import golden_events
from tests.support.datahub_cases import cases

ANSWERS = {"databus": ("dbus_opcode", "dbus_is_valid"), "datahub": ("datahub_operation", "datahub_is_valid")}

LARGEST = 1_000_000  # [bytes] limit of a broker


def test_batch_and_stream(broker: Broker, tmp_path: Path) -> None:
    messages = {
        "databus": [event for _, event in golden_events("window_stream")] * 20,
        "datahub": [case.data for case in cases() if len(case.data) < LARGEST],
    }
    admin = AdminClient({"bootstrap.servers": broker.address})
    for made in admin.create_topics([NewTopic(topic, 1, 1) for topic in messages]).values():
        made.result()
    producer = Producer({"bootstrap.servers": broker.address})
    for topic, values in messages.items():
        for value in values:
            producer.produce(topic, value)
            producer.poll(0)
    assert producer.flush(60) == 0

    said = run_python(KAFKA_SOURCE, "-m", "tests.integration.kafka_source", broker.address, str(tmp_path))
    batch, stream = (json.loads(line) for line in said.splitlines() if line.startswith("[["))
    assert batch == expected(messages)
    assert stream == batch


def expected(messages: dict[str, list[bytes]]) -> list[list[str]]:
    """The results of the functions without Spark."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for topic, values in messages.items():
        change, valid = (ask(name, values) for name in ANSWERS[topic])
        counts.update((topic, str(c), str(v)) for c, v in zip(change, valid, strict=True))
    return sorted([*group, str(count)] for group, count in counts.items())
