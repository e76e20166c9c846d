"""A database's table, kept up to date while it changes and the process that merges is killed, equals the database's own SELECT.

PostgreSQL, Debezium's embedded engine, a Kafka broker, a stream over its log directory, ``changes``, and ``merge`` into Parquet,
Delta and Iceberg at once. `make integration` does not run it yet: ``python -m pytest tests/integration/live_changes.py``. Of its
targets Parquet alone has been seen equal after twenty kills.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.integration.broker import SHORT_LIVED, Broker, running, segments
from tests.integration.capture import captured
from tests.integration.packages import DELTA, ICEBERG, python
from tests.integration.postgres import Postgres, running_postgres

KILLS = 20  # in all
STEPS = 25  # of the scenario before each kill
TRUNCATED, ALTERED = 7, 11  # the kills that these come before
TOPIC = "live.shop.orders"
LAST = "this is the last change"
_PATIENCE = 300  # [s] for one thing to happen
_LONGEST = 4.0  # [s] that a kill waits for its moment

TABLE = """
CREATE SCHEMA shop;
CREATE TABLE shop.orders (
    shop text, id int, amount numeric(12, 2) NOT NULL, rate float8, is_paid boolean, sold date, seen timestamp,
    placed timestamptz, tags text[], serial uuid, page text, photo bytea, PRIMARY KEY (shop, id));
ALTER TABLE shop.orders ALTER page SET STORAGE EXTERNAL, ALTER photo SET STORAGE EXTERNAL;
"""
COLUMNS = {
    "shop": "STRING",
    "id": "INT",
    "amount": "Decimal(12,2)",
    "rate": "DOUBLE",
    "is_paid": "BOOLEAN",
    "sold": "Date",
    "seen": "MicroTimestamp",
    "placed": "ZonedTimestamp",
    "tags": "array<string>",
    "serial": "STRING",
    "page": "STRING",
    "photo": "BINARY",
}
NEW = "discount"
ALTER = f"ALTER TABLE shop.orders ADD COLUMN {NEW} numeric(6, 3);"


class Scenario:
    """Random statements about the table; it knows which keys are there, and nothing of what the rows are."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.keys: list[tuple[str, int]] = []
        self.has_new = False
        self.done: Counter[str] = Counter()

    def steps(self, number: int) -> str:
        """So many transactions, of one statement or of several; some are rolled back."""
        said = []
        for _ in range(number):
            before, end = list(self.keys), "ROLLBACK" if self.random.random() < 0.05 else "COMMIT"
            statements = [self.statement() for _ in range(self.random.choice((1, 1, 1, 2, 4)))]
            said.append("\n".join(["BEGIN;", *statements, f"{end};"]))
            if end == "ROLLBACK":
                self.keys = before
            self.done[end] += 1
        return "\n".join(said)

    def truncate(self) -> str:
        self.keys = []
        return "TRUNCATE shop.orders;"

    def statement(self) -> str:
        draw = self.random.random()
        if draw < 0.35 or not self.keys:
            return self.insert()
        shop, id = key = self.random.choice(self.keys)
        where = f"WHERE shop = '{shop}' AND id = {id};"
        if draw < 0.5:
            self.keys.remove(key)
            return f"DELETE FROM shop.orders {where}"
        if draw < 0.65:
            self.keys.remove(key)
            shop, id = self.new_key()
            change = f"shop = '{shop}', id = {id}"  # what is large stays as it was
            return f"UPDATE shop.orders SET {change} {where}"
        names = self.random.sample(self.changeable(), self.random.randint(1, 4))
        return f"UPDATE shop.orders SET {', '.join(f'{name} = {self.value(name)}' for name in names)} {where}"

    def insert(self) -> str:
        shop, id = self.new_key()
        names = self.changeable()
        values = ", ".join([f"'{shop}'", str(id), *map(self.value, names)])
        return f"INSERT INTO shop.orders (shop, id, {', '.join(names)}) VALUES ({values});"

    def new_key(self) -> tuple[str, int]:
        """One that is not there; it may have been."""
        free = [(shop, id) for shop in ("north", "süd") for id in range(60) if (shop, id) not in self.keys]
        self.keys.append(self.random.choice(free))
        return self.keys[-1]

    def changeable(self) -> list[str]:
        return [name for name in COLUMNS if name not in ("shop", "id")] + [NEW] * self.has_new

    def value(self, name: str) -> str:
        """A random value as SQL writes it."""
        random = self.random
        if name != "amount" and random.random() < 0.1:
            return "NULL"
        micros = f"{random.randrange(10**6):06d}"
        time = f"{random.randrange(1902, 2200)}-{random.randrange(1, 13):02d}-07 11:12:13.{micros}"
        values: dict[str, Callable[[], str]] = {
            "amount": lambda: str(Decimal(random.randrange(-(10**12) + 1, 10**12)) / 100),
            "rate": lambda: repr(random.uniform(-1e9, 1e9)),
            "is_paid": lambda: random.choice(("true", "false")),
            "sold": lambda: f"'{time[:10]}'",
            "seen": lambda: f"'{time}'",
            "placed": lambda: f"'{time}+{random.randrange(12):02d}'",
            "tags": lambda: f"ARRAY[{', '.join(random.choices(['NULL', repr('a'), repr('ü, b')], k=2))}]::text[]",
            "serial": lambda: f"'{random.randbytes(16).hex()}'",
            "page": lambda: f"'{random.randbytes(random.choice((5, 3000))).hex()}'",
            "photo": lambda: f"'\\x{random.randbytes(random.choice((5, 3000))).hex()}'",
            NEW: lambda: str(Decimal(random.randrange(-(10**6) + 1, 10**6)) / 1000),
        }
        return values[name]()


class Target:
    """A table and the process that merges into it, started again when it has been killed."""

    def __init__(self, kind: str, place: Path, command: list[str], environment: dict[str, str]) -> None:
        self.kind, self.place, self.environment = kind, place, environment
        self.command = [*command, "-m", "tests.integration.live_merge", kind, str(place)]
        self.kills = self.halves = self.merges = 0

    def start(self) -> None:
        (self.place / "runs").unlink(missing_ok=True)
        self.before = self._batches("commits")
        with (self.place / "said").open("ab") as said:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdout=said, stderr=said, start_new_session=True
            )

    def kill(self) -> None:
        """Driver and JVM at once."""
        self.halves += self.in_batch()
        self.merges += self.has_merged()
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.kills += 1

    def check(self) -> None:
        assert self.process.poll() is None, f"{self.kind}: {(self.place / 'said').read_text()[-3000:]}"

    def in_batch(self) -> bool:
        """Whether its query runs, and in a batch that has not ended. Fails where the process has ended."""
        self.check()
        if not (self.place / "runs").exists():
            return False
        begun, ended = (self._batches(name) for name in ("offsets", "commits"))
        return begun > ended

    def has_merged(self) -> bool:
        """Whether a batch has ended since the process was started."""
        self.check()
        return self._batches("commits") > self.before

    def _batches(self, name: str) -> int:
        folder = self.place / "checkpoint" / name
        return max((int(file.name) for file in folder.glob("[0-9]*")), default=-1)

    def rows(self) -> list[dict[str, Any]]:
        """What the table has at the end."""
        (self.place / "end").touch()
        assert self.process.wait(timeout=_PATIENCE) == 0, (self.place / "said").read_text()[-3000:]
        found: list[dict[str, Any]] = pickle.loads((self.place / "rows").read_bytes())
        return found


def until(holds: Callable[[], bool], what: str) -> None:
    patience = time.monotonic() + _PATIENCE
    while not holds():
        assert time.monotonic() < patience, what
        time.sleep(0.05)


@contextmanager
def targets(workspace: Path, topic: Path) -> Iterator[list[Target]]:
    own = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "TZ": "UTC"}
    pythons = {"parquet": ([sys.executable], own), "delta": python(DELTA), "iceberg": python(ICEBERG)}
    made = []
    for kind, (command, environment) in pythons.items():
        (workspace / kind).mkdir()
        (workspace / kind / "topic").write_text(str(topic))
        (workspace / kind / "columns").write_text(json.dumps(COLUMNS))
        environment = environment | {"SPARK_SUBMIT_OPTS": " ".join(SHORT_LIVED)}
        made.append(Target(kind, workspace / kind, command, environment))
    try:
        for target in made:
            target.start()
        yield made
    finally:
        for target in made:
            if target.process.poll() is None:
                os.killpg(target.process.pid, signal.SIGKILL)
                target.process.wait()


def truth(database: Postgres) -> list[dict[str, Any]]:
    """The database's rows in Python's own types, which are those of Spark's rows."""
    read: dict[str, Callable[[Any], Any]] = {
        "amount": lambda value: Decimal(value).quantize(Decimal("0.01")),
        "rate": float,
        "sold": date.fromisoformat,
        "seen": datetime.fromisoformat,
        "placed": lambda value: datetime.fromisoformat(value).replace(tzinfo=None),
        "photo": lambda value: bytearray.fromhex(value.removeprefix("\\x")),
        NEW: lambda value: Decimal(value).quantize(Decimal("0.001")),
    }
    return [
        {name: value if value is None else read.get(name, lambda same: same)(value) for name, value in row.items()}
        for row in database.rows("shop.orders")
    ]


def messages(broker: Broker) -> int:
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "count"})
    _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0))
    consumer.close()
    return int(end)


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    told = [{name: value for name, value in row.items() if not name.startswith("_")} for row in rows]
    return sorted(told, key=lambda row: (row["shop"], row["id"]))


def test_tables_equal_the_database_whatever_is_killed(tmp_path: Path) -> None:
    random = Random(40)
    scenario = Scenario(random)
    with ExitStack() as open_ones:
        database = open_ones.enter_context(running_postgres())
        database.run(TABLE + scenario.steps(40))
        (tmp_path / "kafka").mkdir()
        broker = open_ones.enter_context(running(tmp_path / "kafka"))
        topic = NewTopic(TOPIC, 1, 1, config={"segment.bytes": "300000", "retention.ms": "-1"})
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([topic])[TOPIC].result()
        connector = {"topic.prefix": "live", "table.include.list": "shop.orders", "database.port": database.port}
        engine = open_ones.enter_context(captured(tmp_path / "engine", broker.address, connector))
        made = open_ones.enter_context(targets(tmp_path, broker.directory / f"{TOPIC}-0"))
        until(lambda: messages(broker) > 0, "the engine has taken no snapshot")
        victims = [made[k % len(made)] for k in range(KILLS - len(made))]  # and each once more below
        random.shuffle(victims)
        for number, victim in enumerate(victims):
            if number == TRUNCATED:
                database.run(scenario.truncate())
            if number == ALTERED:  # whoever reads the topic learns of the column first
                for target in made:
                    (target.place / "columns").write_text(json.dumps(COLUMNS | {NEW: "Decimal(6,3)"}))
                for target in made:
                    target.kill()
                    target.start()
                database.run(ALTER)
                scenario.has_new = True
            database.run(scenario.steps(STEPS))
            moments = (lambda: True, victim.in_batch, victim.has_merged)
            until(random.choice(moments), f"{victim.kind}: no batch has begun or ended")
            time.sleep(random.uniform(0, _LONGEST))
            victim.kill()
            victim.start()
        database.run(f"INSERT INTO shop.orders (shop, id, amount, page) VALUES ('end', 0, 1, '{LAST}');")
        until(
            lambda: LAST.encode() in segments(broker, TOPIC)[-1].read_bytes(), "the engine has not told the last change"
        )
        assert engine.poll() is None
        wanted, sent = in_order(truth(database)), messages(broker)
        found = {target.kind: in_order(target.rows()) for target in made}
    kills = ", ".join(
        f"{target.kills} of {target.kind} ({target.halves} in a batch, {target.merges} after one)" for target in made
    )
    print(f"\n{sent} messages in {len(segments(broker, TOPIC))} segments; {dict(scenario.done)}; {len(wanted)} rows")
    print(f"killed: {kills}")
    assert {kind: rows == wanted for kind, rows in found.items()} == dict.fromkeys(found, True)
