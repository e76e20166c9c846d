"""A merged table equals the database's table, although the database changes and processes are killed.

The pipeline: PostgreSQL, Debezium's embedded engine, a Kafka broker, a stream over its log directory, ``changes``, and ``merge``
into Parquet, Delta and Iceberg at the same time. The merging processes are killed at certain moments of a batch. The engine is
also killed, and then sends some changes twice. Killed processes are restarted while the others continue.

The topic has two partitions, between which rows move when their keys change. In the middle the topic is deleted and created
again, twice: a TRUNCATE is in one partition, and has no order with changes in the other one, unless they are of another epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.integration import postgres
from tests.integration.broker import Broker, running, segments
from tests.integration.capture import captured
from tests.integration.live_scenario import ALTER, COLUMNS, NEW, TABLE, Scenario, in_order, truth
from tests.integration.live_target import MOMENTS, Target, targets
from tests.integration.postgres import Postgres
from tests.support import WHOLE

KILLS = {
    "parquet": ("while it writes", "in a batch"),
    "delta": ("after a batch", "while it writes"),
    "iceberg": ("in a batch", "while it writes"),
}
"""moments at which the process of each target is killed, the last one first"""
# The number of kills before the table is altered, and before the topic is created again.
ALTERED, RECREATED = 1, 3
ENGINE_KILLED = range(1, 6, 2)
STEPS = 25  # of the scenario after each kill
TOPIC = "live.shop.orders"
HEARTBEATS = "__debezium-heartbeat.live"
PARTITIONS = 2
TRUNCATE = '"op":"t"'
LAST = "this is the last change of epoch {}"
_PATIENCE = 300  # [s] time limit for one event


def until(holds: Callable[[], bool], what: str) -> None:
    patience = time.monotonic() + _PATIENCE
    while not holds():
        assert time.monotonic() < patience, what
        time.sleep(0.05)


def first_of(left: dict[Target, list[str]]) -> Target:
    """The first target at its next moment."""
    result: list[Target] = []

    def has_come() -> bool:
        result.extend(target for target, moments in left.items() if moments and MOMENTS[moments[-1]](target))
        return bool(result)

    until(has_come, f"nobody's moment has come: {[(target.kind, moments) for target, moments in left.items()]}")
    return result[0]


class Pipeline:
    """The topic of the database's changes, and the engine that writes them."""

    def __init__(self, database: Postgres, broker: Broker, workspace: Path) -> None:
        self.database, self.broker, self.workspace = database, broker, workspace
        self.admin = AdminClient({"bootstrap.servers": broker.address})
        self.epoch, self.kills, self._engine = 0, 0, ExitStack()
        self.admin.create_topics([NewTopic(HEARTBEATS, 1, 1)])[HEARTBEATS].result()
        self._create_topic()

    def start_engine(self) -> None:
        connector = {
            "topic.prefix": "live",
            "table.include.list": "shop.orders",
            "database.port": self.database.port,
            "heartbeat.interval.ms": 200,  # the engine stores its position only after a message
        }
        self._engine = ExitStack()
        self._process = self._engine.enter_context(captured(self.workspace / "engine", self.broker.address, connector))

    def close(self) -> None:
        """Stop the engine."""
        self._engine.close()

    def kill_engine(self) -> None:
        self._process.kill()
        self.close()
        self.kills += 1

    def insert_last(self) -> str:
        """Insert a row as the last change of the epoch. Returns its text."""
        last = LAST.format(self.epoch)
        values = f"'end', {self.epoch}, 1, '{last}'"
        self.database.run(f"INSERT INTO shop.orders (shop, id, amount, page) VALUES ({values});")
        return last

    def merged_up_to(self, last: str, made: list[Target]) -> dict[str, list[dict[str, Any]]]:
        """The rows of each target after all changes of the topic, the last of which contains a text. The queries stop."""
        until(lambda: self._has(last), f"the engine has not sent {last}")
        seen, position = time.time(), self.workspace / "engine" / "connector.offsets"
        # Otherwise it sends the last changes again, in the next epoch.
        until(lambda: position.stat().st_mtime > seen, "the engine has not stored its position")
        self.close()
        for target in made:
            target.end()
        return {target.kind: in_order(target.rows()) for target in made}

    def begin_epoch(self, made: list[Target]) -> None:
        """Delete the topic, create it again, continue with the targets, and start the engine."""
        self.admin.delete_topics([TOPIC])[TOPIC].result()
        until(lambda: not segments(self.broker, TOPIC), "the broker has not deleted the topic")
        self._create_topic()
        self.epoch += 1
        for target in made:
            target.begin_epoch(self.epoch)
        self.start_engine()

    def _create_topic(self) -> None:
        config = {"segment.bytes": "200000", "retention.ms": "-1"}
        self.admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, config=config)])[TOPIC].result()
        until(lambda: len(segments(self.broker, TOPIC)) >= PARTITIONS, "the broker has not created the topic")

    def _has(self, text: str) -> bool:
        return any(text.encode() in segment.read_bytes() for segment in segments(self.broker, TOPIC))


@pytest.mark.skipif(postgres.programs_of_postgres() is None, reason=postgres.MISSING)
def test_tables_equal_the_database_whatever_is_killed(tmp_path: Path) -> None:
    random = Random(40)
    scenario = Scenario(random)
    (tmp_path / "kafka").mkdir()
    with postgres.running_postgres() as database, running(tmp_path / "kafka") as broker, ExitStack() as open_ones:
        database.run(TABLE + scenario.steps(30))
        pipeline = open_ones.enter_context(closing(Pipeline(database, broker, tmp_path)))
        made = open_ones.enter_context(targets(tmp_path, f"{broker.directory}/{TOPIC}-*", COLUMNS))
        pipeline.start_engine()
        left = {target: list(KILLS[target.kind][: 2 if WHOLE or target.kind == "delta" else 1]) for target in made}
        waits_for = set[Target]()
        for number in range(sum(map(len, left.values()))):
            if number == RECREATED:
                assert_equal(pipeline.merged_up_to(pipeline.insert_last(), made), database)
                database.run(scenario.truncate())
                pipeline.begin_epoch(made)
                assert_equal(pipeline.merged_up_to(TRUNCATE, made), database)
                pipeline.begin_epoch(made)
                waits_for.clear()
            if number == ALTERED:  # readers of the topic must know the column first
                waits_for = set(made)
                for target in made:
                    target.columns = COLUMNS | {NEW: "Decimal(6,3)"}
            if number in ENGINE_KILLED:
                pipeline.kill_engine()
                pipeline.start_engine()
            database.run(scenario.steps(STEPS))
            victim = first_of(left)
            left[victim].pop()
            victim.kill()
            victim.start()
            waits_for.discard(victim)
            if number > ALTERED and not waits_for and not scenario.has_new:
                database.run(ALTER)
                scenario.has_new = True
        assert scenario.has_new
        database.run(scenario.steps(STEPS))
        rows = pipeline.merged_up_to(pipeline.insert_last(), made)
        kills = ", ".join(f"{target.kills} of {target.kind}" for target in made)
        print(f"\n{dict(scenario.done)}; {len(rows['delta'])} rows; killed: {kills}, {pipeline.kills} of the engine")
        assert_equal(rows, database)


def assert_equal(rows: dict[str, list[dict[str, Any]]], database: Postgres) -> None:
    wanted = truth(database)
    differing = {kind: [row for row in own + wanted if (row in own) != (row in wanted)] for kind, own in rows.items()}
    assert all(own == wanted for own in rows.values()), differing
