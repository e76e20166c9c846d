"""``kafka_internal_record``: brokers' records of internal topics, and every message of Kafka's definitions."""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from sparkwire.kafka.cluster.message_reader import messages
from sparkwire.kafka.functions import FUNCTIONS as KAFKA
from tests.support import DATA
from tests.support import internal_messages as golden
from tests.support import kafka_storage_files as storage
from tests.support import kafka_tiered as tiered
from tests.support.arrow import plain
from tests.support.child import run_python
from tests.support.guard import guarded_column

Row = dict[str, Any]
RECORD = next(function for function in KAFKA if function.name == "kafka_internal_record")
Asked = tuple[str, bytes | None, bytes | None]


def ask(rows: list[Asked]) -> list[Any]:
    topics, keys, values = zip(*rows, strict=True)
    columns = pa.array(topics, pa.string()), pa.array(keys, pa.binary()), pa.array(values, pa.binary())
    return plain(RECORD.decode(*columns))


def tree(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def framed(number: int, version: int, data: bytes) -> bytes:
    return bytes([1, number, version]) + data


def wire(message: golden.Written) -> Asked | None:
    """A record with the message, None for a message inside others."""
    number, version = message.number.to_bytes(2), message.version.to_bytes(2)
    match message.topic, message.part:
        case _, "embedded":
            return None
        case "__cluster_metadata", "control":
            return message.topic, bytes(2) + number, message.data
        case "__cluster_metadata", "key":
            return message.topic, version + message.data, None
        case "__cluster_metadata" | "__remote_log_metadata", _:
            return message.topic, None, framed(message.number, message.version, message.data)
        case topic, "key":
            return topic, number + message.data, None
        case topic, _:
            key = next(m for m in golden.stored() if (m.topic, m.part, m.number) == (topic, "key", message.number))
            return topic, number + key.data, version + message.data
    raise AssertionError(message)


# -- what Kafka says


def test_every_message_in_every_version() -> None:
    """As written by Kafka 4.4.0's own classes."""
    cases = [(message, record) for message in golden.stored() if (record := wire(message)) is not None]
    rows = ask([record for _, record in cases])
    for (message, _), row in zip(cases, rows, strict=True):
        is_key = message.part == "key"
        assert row["error"] is None, (message, row)
        assert tree(row["key" if is_key else "value"]) == message.json, message
        assert row["version"] == (None if is_key else message.version)
        if not is_key:
            assert row["type"] in {m.name for m in messages() if (m.topic, m.part) == (message.topic, message.part)}
    defined = {(m.topic, m.part, m.number) for m in messages()}
    missing = defined - {(m.topic, m.part, m.number) for m in golden.stored()}
    assert {m.name for m in messages() if (m.topic, m.part, m.number) in missing} == {
        # no longer in 4.4.0
        "AccessControlRecord", "RemoveFeatureLevelRecord",
        "ShareGroupPartitionMetadataKey", "ShareGroupPartitionMetadataValue",
    }  # fmt: skip


@pytest.mark.parametrize("record", storage.decoded("consumer_offsets"), ids=lambda record: record.java[:60])
def test_as_the_dump_prints_offsets_and_groups(record: storage.Record) -> None:
    (row,) = ask([("__consumer_offsets", record.key, record.value)])
    if not record.java.startswith("{"):
        assert row["error"] == ("BAD_MAGIC" if record.java.startswith("Unknown") else "TRUNCATED")
        return
    key, _, payload = record.java.partition(" payload: ")
    assert tree(row["key"]) == json.loads(key)["data"]
    if payload == "<DELETE>":
        assert row["value"] is row["version"] is None
    else:
        value = json.loads(payload)
        assert (str(row["version"]), tree(row["value"])) == (value["version"], value["data"])


@pytest.mark.parametrize("run", tiered.RUNS)
def test_as_the_dump_prints_metadata(run: str) -> None:
    records = list(tiered.metadata_records(run))
    assert len(records) > 100
    for record, row in zip(records, ask([(r.topic, r.key, r.value) for r in records]), strict=True):
        assert (row["error"], row["version"], tree(row["value"])) == (None, record.version, record.json)
        assert re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", row["type"]).upper().startswith(record.type)


# -- MirrorMaker 2

_TEXTS = {
    "OffsetSync": "topicPartition={topic}-{partition}, upstreamOffset={upstreamOffset}, downstreamOffset={downstreamOffset}",
    "Checkpoint": "consumerGroupId={group}, topicPartition={topic}-{partition}, upstreamOffset={upstreamOffset}, "
    "downstreamOffset={offset}, metadata={metadata}",
    "Heartbeat": "sourceClusterAlias={sourceClusterAlias}, targetClusterAlias={targetClusterAlias}, timestamp={timestamp}",
}


def mirrored() -> list[tuple[str, bytes, bytes, str]]:
    """Records that Kafka 3.9.1's classes write, and their text."""
    lines = (DATA / "kafka" / "mirror_records.tsv").read_text("utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    return [(topic, base64.b64decode(key), base64.b64decode(value), text) for topic, key, value, text in rows]


def test_mirror_makers_records_among_others() -> None:
    """Compared with MirrorMaker's own classes."""
    records = mirrored()
    assert len(records) == 28
    asked: list[Asked] = [
        ("__consumer_offsets", b"\0\x63", b"\0\0"),
        *(record[:3] for record in records),
        ("orders", b"k", b"v"),
    ]
    first, *rows, last = ask(asked)
    assert (first["error"], last["error"]) == ("BAD_MAGIC", "BAD_FIELD")
    for (*_, text), row in zip(records, rows, strict=True):
        name, fields = row["type"], tree(row["key"]) | tree(row["value"])
        assert f"{name}{{{_TEXTS[name].format(**fields)}}}" == text
        assert (row["version"], row["error"]) == (None if name == "OffsetSync" else 0, None)


def test_mirror_makers_topics() -> None:
    sync, checkpoint = (record[1:3] for record in mirrored()[:2])
    beat = mirrored()[-1][1:3]
    named: list[tuple[str, tuple[bytes, bytes], str]] = [
        ("mm2-offset-syncs.east.1.internal", sync, "OffsetSync"),
        ("mm2-offset-syncs_b_internal", sync, "OffsetSync"),
        ("a-checkpoints-internal", checkpoint, "Checkpoint"),
        ("a.heartbeats", beat, "Heartbeat"),
    ]
    assert [row["type"] for row in ask([(topic, *record) for topic, record, _ in named])] == [
        name for *_, name in named
    ]
    for topic in ("mm2-offset-syncs", "checkpoints.internal", "a.orders", "mm2-configs.a.internal", "myheartbeats"):
        assert [row["error"] for row in ask([(topic, *sync)])] == ["BAD_FIELD"]


def test_corrupt_records_of_mirror_maker() -> None:
    for topic, key, value, _ in mirrored():
        whole, tombstone = ask([(topic, key, value), (topic, key, None)])
        assert tombstone == {**whole, "value": None, "version": None}
        assert ask([(topic, None, value)]) == [None]
        for cut in range(len(value)):
            [row] = ask([(topic, key, value[:cut])])
            assert (row["key"], row["value"], row["error"]) == (whole["key"], None, "TRUNCATED")
        for cut in range(len(key)):
            [row] = ask([(topic, key[:cut], value)])
            assert (row["key"], row["value"], row["error"]) == (None, whole["value"], "TRUNCATED")
        if whole["version"] == 0:
            [row] = ask([(topic, key, b"\0\1" + value[2:])])
            assert (row["version"], row["value"], row["error"]) == (1, None, "BAD_MAGIC")


# -- what is corrupt


def test_undefined_messages_are_an_error() -> None:
    assert [row and (row["type"], row["version"], row["key"], row["value"], row["error"]) for row in ask(UNKNOWN)] == [
        (None, None, None, None, "BAD_FIELD"),
        None,
        None,
        None,
        ("OffsetCommitValue", 9, '{"group":"g","topic":"t","partition":0}', None, "BAD_MAGIC"),
        (None, 0, None, None, "BAD_MAGIC"),
        (None, 0, None, None, "BAD_MAGIC"),
        ("TopicRecord", 7, None, None, "BAD_MAGIC"),
        (None, None, None, None, "BAD_MAGIC"),
        (None, None, None, None, "TRUNCATED"),
        ("LeaderChangeMessage", None, '{"type":2}', None, "TRUNCATED"),
        (None, None, None, None, "TRUNCATED"),
    ]


UNKNOWN: list[Asked] = [
    ("orders", b"k", b"v"),
    (None, b"k", b"v"),  # type: ignore[list-item]
    ("__consumer_offsets", None, b"\0\1"),
    ("__cluster_metadata", None, None),
    ("__consumer_offsets", b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\x09"),
    ("__consumer_offsets", b"\0\x63", b"\0\0"),
    ("__remote_log_metadata", None, b"\1\x63\0"),
    ("__cluster_metadata", None, b"\1\2\7"),
    ("__cluster_metadata", None, b"\2\2\0"),
    ("__cluster_metadata", None, b"\1\2"),
    ("__cluster_metadata", b"\0\0\0\2", b"\0"),
    ("__cluster_metadata", b"\0\0\0", b"\0"),
]


def corrupt(seed: int, n: int) -> Iterator[Asked]:
    chance = random.Random(seed)
    records = [record for message in golden.stored() if (record := wire(message)) is not None]
    for _ in range(n):
        topic, key, value = chance.choice(records)
        yield topic, mutated(chance, key), mutated(chance, value)


def mutated(chance: random.Random, data: bytes | None) -> bytes | None:
    if not data or chance.random() < 0.3:
        return data
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(changed) + 1)
        match chance.randrange(3):
            case 0:
                del changed[at:]
            case 1:
                changed[at : at + 1] = bytes([chance.choice((0, 1, 127, 128, 255))])
            case _:
                changed[at:at] = b"\xff" * chance.randrange(1, 6)
    return bytes(changed)


def test_corrupt_messages_are_json_or_an_error() -> None:
    """A row does not depend on other rows."""
    rows = list(corrupt(5, 4000))
    answers = ask(rows)
    for row, answer in zip(rows, answers, strict=True):
        tree(answer["key"])
        assert (tree(answer["value"]) is None) == (answer["value"] is None)
        assert answer["error"] is not None or row[2] is None or answer["value"] is not None
    assert len({answer["error"] for answer in answers}) >= 4
    chosen = random.Random(1).sample(range(len(rows)), 60)
    assert [ask([rows[k]])[0] for k in chosen] == [answers[k] for k in chosen]


@pytest.mark.process
@pytest.mark.parametrize("at_end", [True, False])
def test_guard_pages(at_end: bool) -> None:
    run_python("-c", f"from tests.kafka.test_internal_records import read_beside_guard_pages as f; f({at_end})")


def read_beside_guard_pages(at_end: bool) -> None:
    rows = list(corrupt(6, 400))
    topics, keys, values = zip(*rows, strict=True)
    columns = [guarded_column(column, at_end=at_end) for column in (keys, values)]
    assert plain(RECORD.decode(pa.array(topics, pa.string()), *columns)) == ask(rows)


def test_wrong_counts_end_with_the_bytes() -> None:
    lie = framed(5, 0, bytes(4) + bytes(16) + b"\1\0\xff\xff\xff\xff\x0f")
    group = bytes(8) + b"\xff\xff\xff\xff" + b"\x7f\xff\xff\xff"
    answers = ask([("__cluster_metadata", None, lie), ("__consumer_offsets", b"\0\2\0\1g", group)])
    assert [answer["error"] for answer in answers] == ["TRUNCATED", "TRUNCATED"]


def test_members_that_cannot_be_read_stay_base64() -> None:
    """Kafka's dump omits such a record."""
    member = b"\0\1m\0\1c\0\1h" + bytes(4) + b"\0\0\0\3\0\0\xff" + b"\0\0\0\0"
    group = b"\0\0" + b"\0\x08consumer" + bytes(4) + b"\xff\xff\xff\xff" + b"\0\0\0\1" + member
    (answer,) = ask([("__consumer_offsets", b"\0\2\0\1g", group)])
    (read,) = tree(answer["value"])["members"]
    assert (read["subscription"], read["assignment"]) == ("AAD/", "")
