"""Random messages of Kafka's internal topics, generated from Kafka's definitions and written by Kafka's classes.

`tests/data/kafka/internal_messages.jsonl.xz` has every message in every version of these classes, as bytes and JSON. `make
golden` writes them again.
"""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from sparkwire.kafka.cluster.message_reader import DefinedField, Message, messages
from tests.support import DATA as DATA_FOLDER

DATA = DATA_FOLDER / "kafka"
SAMPLES = DATA / "internal_messages.jsonl.xz"
_PACKAGES = {
    "__consumer_offsets": "org.apache.kafka.coordinator.group.generated",
    "__transaction_state": "org.apache.kafka.coordinator.transaction.generated",
    "__share_group_state": "org.apache.kafka.coordinator.share.generated",
    "__cluster_metadata": "org.apache.kafka.common.metadata",
    "__remote_log_metadata": "org.apache.kafka.server.log.remote.metadata.storage.generated",
}
_TEXTS = ("", "orders", "é", "😀", 'a "b" \\ \n\x01', "x" * 200, "group-0")
_NUMBERS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
_UUIDS = ("GuCdKpmgR5i6jlGF8wo2DQ", "VuGJNCBTSMqdCcBj2cjWuA", "-_AAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ")


class Written(NamedTuple):
    """A message written by Kafka's classes, with the output of their converter."""

    topic: str
    part: str
    number: int
    version: int
    data: bytes
    json: Any


def class_of(message: Message) -> str:
    """The name of Kafka's class for a message."""
    of_clients = message.part in ("control", "embedded") or message.name == "ControlRecordTypeSchema"
    package = "org.apache.kafka.common.message" if of_clients else _PACKAGES[message.topic]
    return f"{package}.{message.name}"


def structure(chance: random.Random, fields: tuple[DefinedField, ...], version: int) -> dict[str, Any]:
    """A random structure for Kafka's converters. Tags may be missing."""
    return {
        field.name: value(chance, field, version)
        for field in fields
        if version in field.versions and not (version in field.tagged and chance.random() < 0.5)
    }


def value(chance: random.Random, field: DefinedField, version: int) -> Any:
    if version in field.nullable and chance.random() < 0.3:
        return None
    if field.is_array:
        return [single(chance, field, version) for _ in range(chance.randrange(4))]
    return single(chance, field, version)


def single(chance: random.Random, field: DefinedField, version: int) -> Any:
    match field.type:
        case "bool":
            return chance.random() < 0.5
        case "string":
            return chance.choice(_TEXTS) + (str(chance.randrange(10**6)) if chance.random() < 0.5 else "")
        case "bytes":
            return ("", "AAEC", "dXNlcg==", "/+8=")[chance.randrange(4)]
        case "uuid":
            return chance.choice(_UUIDS)
        case "float64":
            return chance.choice([0.0, 1048576.0, -1.5, 1e-7, 1e21, chance.random()])
        case "uint16":
            return chance.choice([0, 9092, 65535])
        case number if number in _NUMBERS:
            most = 1 << _NUMBERS[number]
            return chance.choice([0, 1, -1, most - 1, -most, chance.randrange(-most, most)])
    return structure(chance, field.fields, version)


def sampled(chance: random.Random, each: int) -> Iterator[tuple[Message, int, Any]]:
    for message in messages():
        for version in message.versions:
            for _ in range(each):
                tree = structure(chance, message.fields, version)
                # The first field of a control record contains the version.
                yield message, version, tree | ({"version": version} if message.part == "control" else {})


def written(answers: Callable[[str], str], each: int = 3) -> list[Written]:
    """Random messages, written by Kafka's classes. Messages without a class are left out.

    ``answers`` passes lines of JSON to `InternalMessages` and returns its output.
    """
    chance = random.Random(4)
    rows = list(sampled(chance, each))
    lines = [json.dumps({"class": class_of(m), "version": v, "json": tree}) for m, v, tree in rows]
    result = []
    for (message, version, _), line in zip(rows, answers("\n".join(lines)).splitlines(), strict=True):
        data, _, text = line.partition(" ")
        if text:
            place = message.topic, message.part, message.number
            result.append(Written(*place, version, bytes.fromhex(data), json.loads(text)))
    return result


@cache
def stored() -> tuple[Written, ...]:
    """The messages in the test data."""
    with lzma.open(SAMPLES, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return tuple(
        Written(topic, part, number, version, bytes.fromhex(data), tree)
        for topic, part, number, version, data, tree in rows
    )


def lines_of(messages: Iterable[Written]) -> str:
    """The messages as the text of the test data."""
    rows = ([*row[:4], row.data.hex(), row.json] for row in messages)
    return "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
