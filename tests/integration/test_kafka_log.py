"""Compare `kafka_log` over the log directory of a running broker with its consumers, in both isolation levels.

The code reads like Spark's tasks, but without a session.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sparkwire.kafka.files import kafka_log
from tests.integration.broker import Broker, while_unchanged
from tests.integration.consumers import LEVELS, Isolation, Record, between, consume, differences, once, records
from tests.integration.traffic import STEADY, TOPICS, Traffic

every_level = pytest.mark.parametrize("isolation", LEVELS)


def read(path: Path, isolation: Isolation) -> list[Record]:
    """The rows of all tasks."""
    options = {"path": str(path), "isolationLevel": isolation, "columns": ",".join(Record._fields)}
    query = kafka_log.query(options)
    batches = [batch for task in kafka_log.plan(query) for batch in kafka_log.read(query, task)]
    return records(pa.Table.from_batches(batches).select(Record._fields))


@every_level
@pytest.mark.parametrize("topic", STEADY)
def test_topics_that_keep_records(broker: Broker, busy: Traffic, topic: str, isolation: Isolation) -> None:
    seen = consume(broker.address, topic, isolation)
    rows = once(read(broker.directory / f"{topic}-*", isolation))
    assert len(seen.records) > 100
    assert differences(between(rows, seen.begins, seen.ends), seen.records) == []


def test_the_levels_differ_in_aborted_records(broker: Broker, busy: Traffic) -> None:
    uncommitted, committed = (consume(broker.address, "payments", isolation) for isolation in LEVELS)
    aborted = between(uncommitted.records, uncommitted.begins, committed.ends) - committed.records
    assert len(aborted) > 50
    assert not once(read(broker.directory / "payments-*", "read_committed")) & aborted


@every_level
@pytest.mark.parametrize("topic", sorted(set(TOPICS) - set(STEADY)))
def test_topics_that_lose_records(broker: Broker, busy: Traffic, topic: str, isolation: Isolation) -> None:
    """Records that are deleted meanwhile may be missing: an earlier consumer saw them, a later one does not."""
    before = consume(broker.address, topic, isolation)
    rows = once(while_unchanged(broker, topic, lambda: read(broker.directory / f"{topic}-*", isolation)))
    after = consume(broker.address, topic, isolation)
    kept = between(rows, after.begins, before.ends)
    assert differences(kept, kept & before.records) == []
    left = between(after.records, after.begins, before.ends)
    assert differences(left & kept, left) == []
