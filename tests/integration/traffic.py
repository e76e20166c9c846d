"""Producers that send while tests read: every codec, idempotence, overlapping transactions, compaction, retention."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_KEPT = {"retention.ms": "-1"}  # keep records although their timestamps are old
_SMALL = _KEPT | {"segment.bytes": "60000"}
_COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.bytes": "20000",
    "delete.retention.ms": "1000",
}
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "orders": (3, _SMALL),
    "payments": (2, _SMALL),
    "audit": (1, _SMALL | {"message.timestamp.type": "LogAppendTime", "compression.type": "zstd"}),
    "users": (1, _COMPACTED),
    "clicks": (1, _KEPT | {"segment.bytes": "30000", "retention.bytes": "90000"}),
}
"""partitions and configuration of each topic; ``users`` is compacted, ``clicks`` loses its oldest segments"""
STEADY = ("orders", "payments", "audit")
"""topics that lose no records"""

_PAUSE = 0.05  # [s] between rounds


class Traffic(NamedTuple):
    """Running producers."""

    rounds: list[int]
    """number of rounds that have been sent"""
    failures: list[Exception]
    """the exception that ended the producers, if any"""
    working: threading.Event
    """whether they send"""

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Let them send until the context ends, so that they only send while a test needs it."""
        self.working.set()
        try:
            yield
        finally:
            self.working.clear()

    def wait(self, rounds: int) -> None:
        """Wait until this number of rounds has been sent."""
        wanted = len(self.rounds) + rounds
        while len(self.rounds) < wanted:
            if self.failures:
                raise self.failures[0]
            time.sleep(_PAUSE)


@contextmanager
def traffic(address: str) -> Iterator[Traffic]:
    """Create topics, and producers that fill them on demand. Their errors are raised when the context ends."""
    admin = AdminClient({"bootstrap.servers": address})
    topics = [NewTopic(name, partitions, 1, config=config) for name, (partitions, config) in TOPICS.items()]
    for made in admin.create_topics(topics).values():
        made.result()
    stop, running = threading.Event(), Traffic([], [], threading.Event())

    def work() -> None:
        try:
            _produce(address, stop, running)
        except Exception as failure:  # noqa: BLE001 - raised below, in the thread of the tests
            running.failures.append(failure)

    thread = threading.Thread(target=work, name="producers")
    thread.start()
    try:
        yield running
    finally:
        stop.set()
        running.working.set()
        thread.join()
    if running.failures:
        raise running.failures[0]


def _produce(address: str, stop: threading.Event, running: Traffic) -> None:
    chance = random.Random(9)
    plain = [
        Producer({"bootstrap.servers": address, "compression.type": codec, "enable.idempotence": bool(number % 2)})
        for number, codec in enumerate(CODECS)
    ]
    transactional = [
        Producer({"bootstrap.servers": address, "compression.type": codec, "transactional.id": f"tx-{codec}"})
        for codec in ("none", "zstd")
    ]
    for producer in transactional:
        producer.init_transactions()
    number = 0
    while running.working.wait() and not stop.wait(_PAUSE):
        for producer in plain:
            for topic in ("orders", "audit", "users", "clicks"):
                _send(producer, chance, topic, chance.randrange(1, 12))
        _transactions(transactional, chance)
        for producer in plain:
            producer.flush()
        number += 1
        running.rounds.append(number)


def _transactions(producers: list[Producer], chance: random.Random) -> None:
    """Send two overlapping transactions, each committed or aborted. In between, their records are open."""
    for producer in producers:
        producer.begin_transaction()
    for _ in range(3):
        for producer in producers:
            _send(producer, chance, "payments", chance.randrange(1, 6))
            _send(producer, chance, "orders", 1)
            producer.flush()
    for producer in producers:
        if chance.randrange(3):
            producer.commit_transaction()
        else:
            producer.abort_transaction()


def _send(producer: Producer, chance: random.Random, topic: str, records: int) -> None:
    for _ in range(records):
        key = None if topic != "users" and chance.randrange(5) == 0 else b"key-%d" % chance.randrange(40)
        value = None if chance.randrange(10) == 0 else chance.randbytes(chance.randrange(30)) * chance.randrange(1, 20)
        headers: list[tuple[str, str | bytes | None]] = [
            (f"h{n}", chance.choice([b"", b"x", "é".encode(), None])) for n in range(chance.randrange(3))
        ]
        producer.produce(
            topic,
            value=value,
            key=key,
            partition=chance.randrange(TOPICS[topic][0]),
            timestamp=1_600_000_000_000 + chance.randrange(10**9),
            headers=headers,
        )
    producer.poll(0)
