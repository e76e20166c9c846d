"""Compare the files of a running broker, read with SQL functions, with its consumers and tools."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.broker import Broker, segments, while_unchanged
from tests.integration.consumers import Record, between, consume, differences
from tests.integration.traffic import STEADY, TOPICS, Traffic
from tests.support.arrow import ask


def read(broker: Broker, topic: str) -> set[Record]:
    """All data records of a topic's segments."""
    result = set()
    for path in segments(broker, topic):
        partition = int(path.parent.name.rpartition("-")[2])
        for row in ask("kafka_records", [path.read_bytes()])[0]:
            if row["error"] is None and not row["is_control"]:
                result.add(record_of(topic, partition, row))
    return result


def record_of(topic: str, partition: int, row: Any) -> Record:
    headers = tuple((header["key"], header["value"]) for header in row["headers"])
    return Record(
        topic, partition, row["offset"], row["timestamp_type"], row["timestamp_ms"], row["key"], row["value"], headers
    )


@pytest.mark.parametrize("topic", STEADY)
def test_files_equal_what_consumers_see(broker: Broker, busy: Traffic, topic: str) -> None:
    seen = consume(broker.address, topic, "read_uncommitted")
    assert differences(between(read(broker, topic), seen.begins, seen.ends), seen.records) == []
    assert len(seen.records) > 100


@pytest.mark.parametrize("topic", sorted(set(TOPICS) - set(STEADY)))
def test_files_that_lose_records(broker: Broker, busy: Traffic, topic: str) -> None:
    """Records that are deleted meanwhile may be missing: an earlier consumer saw them, a later one does not."""
    before = consume(broker.address, topic, "read_uncommitted")
    rows = while_unchanged(broker, topic, lambda: read(broker, topic))
    after = consume(broker.address, topic, "read_uncommitted")
    kept = between(rows, after.begins, before.ends)
    assert differences(kept, kept & before.records) == []
    left = between(after.records, after.begins, before.ends)
    assert differences(left & kept, left) == []
