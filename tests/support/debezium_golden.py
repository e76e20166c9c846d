"""Debezium's golden messages, and the databases' tables; see ``tests/data/debezium``."""

from __future__ import annotations

import base64
import json
import tarfile
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa

from tests.support import DATA

DATABASES = ("postgres", "mariadb")
LOSSES_OF = {
    "json": "json-schemas",
    "avro": "json-schemas",
    "alt-json": "alt-json-schemas",
    "ext-json": "ext-json-schemas",
}


class Message(NamedTuple):
    """A Kafka record."""

    topic: str
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes]


class TableTruth(NamedTuple):
    """A table at a point, printed by its database."""

    name: str
    topic: str
    key: list[str]
    columns: list[dict[str, Any]]
    rows: list[dict[str, str | None]]


class Point(NamedTuple):
    """All tables at a point, and the first later offset of each topic, by variant."""

    number: int
    next_offsets: Mapping[str, Mapping[str, int]]
    tables: list[TableTruth]


class Loss(NamedTuple):
    """A value in which the messages of a variant are not what the database holds."""

    variant: str
    table: str
    column: str
    key: str
    """as JSON"""
    text: str
    """the database's"""


@cache
def files(database: str) -> dict[str, bytes]:
    """The files in the archive of a database, by name."""
    with tarfile.open(DATA / "debezium" / f"{database}.tar.xz") as archive:
        return {
            member.name.partition("/")[2]: opened.read()
            for member in archive
            if (opened := archive.extractfile(member)) is not None
        }


def _lines(database: str, name: str) -> Iterator[Any]:
    return map(json.loads, files(database)[name].decode().splitlines())


@cache
def messages(database: str, variant: str) -> list[Message]:
    """The messages of a variant in the order of delivery."""
    return [
        Message(
            line["topic"],
            line["offset"],
            _bytes(line["key_b64"]),
            _bytes(line["value_b64"]),
            {header["key"]: _bytes(header["value_b64"]) or b"" for header in line["headers"]},
        )
        for line in _lines(database, f"messages.{variant}.jsonl")
    ]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def variants(database: str) -> list[str]:
    """The names of all variants."""
    return sorted(name.split(".")[1] for name in files(database) if name.startswith("messages."))


def columns_of(messages: list[Message]) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The values, keys and topics of messages."""
    return (
        pa.array([message.value for message in messages], pa.binary()),
        pa.array([message.key for message in messages], pa.binary()),
        pa.array([message.topic for message in messages], pa.string()),
    )


@cache
def points(database: str) -> list[Point]:
    """The ten points, in order."""
    result = []
    for number in range(10):
        first, *lines = _lines(database, f"truth/point{number:02}.jsonl")
        tables: list[TableTruth] = []
        for line in lines:
            if line["kind"] == "table":
                tables.append(TableTruth(line["table"], line["topic"], line["key"], line["columns"], []))
            else:
                tables[-1].rows.append(line["row"])
        result.append(Point(number, first["next_offsets"], tables))
    return result


@cache
def known_losses(database: str) -> set[Loss]:
    """Values that no message has correctly."""
    return {
        Loss(loss["variant"], loss["table"], loss["column"], json.dumps(loss["key"]), str(loss["database"]))
        for loss in _lines(database, "truth/known_losses.jsonl")
    }


def schemas(database: str) -> dict[int, str]:
    """Avro schemas by id."""
    return {int(id): text for id, text in json.loads(files(database)["schemas.json"]).items()}
