"""Streams for the client's tests: big-endian V1 events from the independent writer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

from tests.support.databus_cases import golden_lines
from tests.support.oracles.databus_writer import write

END_OF_PERIOD, CHECKPOINT, REGRESS = -2, -3, -51
SOURCES = (40, 41, 42)


def event(
    scn: int,
    source: int,
    key: int | bytes = 0,
    value: bytes = b"",
    *,
    schema_id: bytes | None = None,
    timestamp: int | None = None,
    partition: int = 0,
    opcode: int = 1,
) -> bytes:
    """One event. By default, a data event has its source's golden schema id."""
    if schema_id is None:
        schema_id = schema_ids().get(source, bytes(16))
    return write(
        {
            "version": 0,
            "byte_order": "BIG_ENDIAN",
            "attributes": (opcode if source >= 0 else 0) | (0 if isinstance(key, int) else 8),
            "sequence": scn,
            "physical_partition_id": partition,
            "logical_partition_id": 1,
            "timestamp_nanos": 10**9 * max(scn, 0) if timestamp is None else timestamp,
            "src_id": source,
            "schema_id": schema_id,
            "key_long": key,
            "key_bytes": key,
            "value": value,
        }
    )


@cache
def schema_ids() -> dict[int, bytes]:
    """The golden streams' schema ids by source."""
    return {
        java["srcId"]: bytes.fromhex(java["schemaId"])
        for java in golden_lines("window_stream")
        if java.get("srcId", 0) > 0
    }


def end(scn: int, timestamp: int | None = None) -> bytes:
    """The event at the end of a window."""
    return event(scn, END_OF_PERIOD, timestamp=timestamp)


def window(scn: int, *sources: int, first_key: int = 0) -> bytes:
    """A window with one data event of each source."""
    return b"".join(event(scn, source, first_key + k) for k, source in enumerate(sources)) + end(scn)


def regress(scn: int) -> bytes:
    """An SCN regression, as the client's puller writes it."""
    return event(scn, REGRESS, 0, checkpoint_json(scn))


def checkpoint_json(scn: int, mode: str = "ONLINE_CONSUMPTION") -> bytes:
    body = {"prevScn": scn, "snapshot_offset": -1, "consumption_mode": mode, "windowOffset": -1, "windowScn": scn}
    return json.dumps(body, separators=(",", ":")).encode()


def error_event(number: int, message: str = "gone") -> bytes:
    throwable: dict[str, Any] = {"cause": None, "stackTrace": [], "message": message, "suppressed": []}
    throwable["localizedMessage"] = message
    return event(0, number, 0, json.dumps({"error": throwable, "errorId": number}).encode())


def random_stream(random: Random, windows: int, *, broken: float = 0.0) -> list[bytes]:
    """Events of windows of all kinds, with control events and SCN regressions.

    ``broken``: how often a payload cannot be read, or an event has an unknown source or schema.
    """
    events: list[bytes] = []
    scn, key = random.randrange(1, 50), 0
    for _ in range(windows):
        scn += random.randrange(1, 20)
        chance = random.random()
        if chance < 0.1:
            scn = max(1, scn - random.randrange(1, 60))
            events += [regress(scn)] * random.choice((1, 1, 2))
            scn += 1
        elif chance < 0.15:
            events.append(error_event(random.choice((-5, -6, -10))))
        elif chance < 0.2:
            at = random.choice((0, scn, scn, max(0, scn - 30)))
            events.append(event(at, CHECKPOINT, 0, checkpoint_json(scn)))
        elif chance < 0.25:
            events.append(event(scn, random.choice((-100, -20000, -4))))
        elif chance < 0.28:
            events.append(event(random.choice((0, scn)), END_OF_PERIOD))
            continue
        if random.random() < broken:
            events.append(broken_event(random, scn))
        for _ in range(random.choice((0, 1, 1, 2, 5, 12))):
            for _ in range(random.choice((1, 1, 3))):
                key += 1
                source = random.choice(SOURCES)
                events.append(event(scn, source, key, bytes(random.randrange(30))))
            if random.random() < 0.03:
                events.append(random.choice((regress(scn), event(scn, CHECKPOINT, 0, checkpoint_json(scn)))))
        if random.random() < 0.95:
            events.append(end(scn, random.choice((None, 0))))
    return events


def broken_event(random: Random, scn: int) -> bytes:
    """An event that a dispatcher cannot handle."""
    kinds = (
        event(scn, REGRESS),
        event(scn, CHECKPOINT),
        event(scn, CHECKPOINT, 0, checkpoint_json(scn, "BOOTSTRAP_SNAPSHOT")),
        event(0, -5),
        event(scn, 77, 1),
        event(scn, SOURCES[0], 1, schema_id=bytes(16)),
        event(scn, SOURCES[0], 1, schema_id=schema_ids()[SOURCES[1]]),
    )
    return random.choice(kinds)


def chunked(random: Random, events: Sequence[bytes]) -> list[bytes]:
    """The events in chunks of random sizes."""
    chunks, at = [], 0
    while at < len(events):
        size = random.choice((1, 2, 5, 20, 1000))
        chunks.append(b"".join(events[at : at + size]))
        at += size
    return chunks
