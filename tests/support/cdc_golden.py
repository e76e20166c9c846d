"""Golden messages of capture systems, and the tables of their databases.

They are in ``tests/data``: ``canal``, ``maxwell`` and ``flink``, and ``postgres2`` in ``debezium``.
"""

from __future__ import annotations

import base64
import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa

from sparkwire.core.names import table_name
from tests.support import DATA

_PLACES = {
    "canal": ("canal/canal", ""),
    "canal-redelivery": ("canal/canal", "redelivery/"),
    "maxwell": ("maxwell/maxwell", ""),
    "postgres2": ("debezium/postgres2", ""),
    "flink": ("flink/flink", ""),
}
"""the archive and folder of each system"""
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Record(NamedTuple):
    """A Kafka record."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]


class Column(NamedTuple):
    name: str
    type: str
    """the database's"""


class TableTruth(NamedTuple):
    """A table at a point, as its database prints it."""

    name: str
    """in the form of ``table=``"""
    key: list[str]
    columns: list[Column]
    rows: list[dict[str, str | None]]


class Point(NamedTuple):
    number: int
    sent: Mapping[str, int]
    """how many messages of each variant were sent before"""
    tables: dict[str, TableTruth]


class Loss(NamedTuple):
    """A value or a row in which the messages of a variant are not what the database has."""

    variant: str
    table: str
    column: str | None
    """None for a row"""
    key: str
    """as JSON; of a row that should not exist, the row's own key"""
    text: str | None
    """the database's; of a row, "missing" or "too many" """


class JudgedRow(NamedTuple):
    kind: str
    """``+I``, ``-U``, ``+U``, ``-D``"""
    values: list[str | None]


class Judged(NamedTuple):
    """What Flink's reader returns for a message."""

    table: str
    rows: list[JudgedRow]
    error: str | None


@cache
def _archive(path: str) -> dict[str, bytes]:
    with tarfile.open(DATA / f"{path}.tar.xz") as archive:
        return {
            member.name.partition("/")[2]: opened.read()
            for member in archive
            if (opened := archive.extractfile(member)) is not None
        }


@cache
def _files(system: str) -> dict[str, str]:
    """The files of a system by name."""
    archive, folder = _PLACES[system]
    return {
        name.removeprefix(folder): data.decode() for name, data in _archive(archive).items() if name.startswith(folder)
    }


def lines(system: str, name: str) -> Iterator[Any]:
    """The JSON values of a file with one on each line."""
    return map(json.loads, texts(system, name))


def texts(system: str, name: str) -> list[str]:
    """The lines of a file."""
    return _files(system)[name].rstrip("\n").split("\n")


@cache
def records(system: str, variant: str) -> list[Record]:
    """The messages of a variant in the order in which they were sent."""
    return [
        Record(
            line["topic"],
            line["partition"],
            line["offset"],
            _bytes(line["key_b64"]),
            _bytes(line["value_b64"]),
            [(header["key"], _bytes(header["value_b64"]) or b"") for header in line.get("headers", ())],
        )
        for line in lines(system, f"messages.{variant}.jsonl")
    ]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def arrow(records: Sequence[Record]) -> pa.RecordBatch:
    """Records as Spark's Kafka source returns them. ``line`` is the place in the list."""
    return pa.record_batch(
        {
            "line": pa.array(range(len(records)), pa.int32()),
            "topic": pa.array([record.topic for record in records], pa.string()),
            "partition": pa.array([record.partition for record in records], pa.int32()),
            "offset": pa.array([record.offset for record in records], pa.int64()),
            "key": pa.array([record.key for record in records], pa.binary()),
            "value": pa.array([record.value for record in records], pa.binary()),
            "headers": pa.array(
                [[{"key": key, "value": value} for key, value in record.headers] for record in records], _HEADERS
            ),
        }
    )


@cache
def points(system: str) -> list[Point]:
    """The tables at every point, in order."""
    result = []
    for name in sorted(name for name in _files(system) if name.startswith("truth/point")):
        first, *others = lines(system, name)
        tables: dict[str, TableTruth] = {}
        outer = ""
        for line in others:
            outer = line.get("db", outer)
            name = table_name(outer, line["table"])
            if line["kind"] == "table":
                columns = [Column(column["name"], column["type"]) for column in line["columns"]]
                tables[name] = TableTruth(name, line["key"], columns, [])
            else:
                tables[name].rows.append(line["row"])
        result.append(
            Point(first["point"], first["messages"], {name: one for name, one in tables.items() if one.columns})
        )
    return result


def tables(system: str) -> list[str]:
    """The names of all tables that exist at a point."""
    return sorted({name for point in points(system) for name in point.tables})


@cache
def column_types(system: str) -> dict[str, dict[str, str]]:
    """The database's types of all columns that a table has at a point. A column that becomes a text is one."""
    result: dict[str, dict[str, str]] = {}
    for point in points(system):
        for table in point.tables.values():
            result.setdefault(table.name, {}).update({column.name: column.type for column in table.columns})
    return result


@cache
def known_losses(system: str) -> dict[Loss, str]:
    """Values that no message has correctly, with the reason."""
    result = {}
    for line in lines(system, "truth/known_losses.jsonl"):
        table = table_name(*line["table"].split(".", 1)) if "table" in line else _topics(system)[line["topic"]]
        row = line.get("what", "").removeprefix("row ") if "column" not in line else None
        key = line["row"] if row == "too many" else line["key"]
        text = row if row is not None else line["database"]
        result[Loss(line["variant"], table, line.get("column"), key_text(key), text)] = line["why"]
    return result


@cache
def _topics(system: str) -> dict[str, str]:
    """The table of each topic."""
    first = lines(system, "truth/point00.jsonl")
    return {line["topic"]: table_name(line["db"], line["table"]) for line in first if line["kind"] == "table"}


def key_text(key: Mapping[str, Any]) -> str:
    """The key of a loss: names and texts, sorted by name."""
    return json.dumps({name: None if value is None else str(value) for name, value in sorted(key.items())})


def judged(system: str, name: str) -> list[Judged]:
    """What Flink's reader returned for each message of ``judge/NAME.jsonl``."""
    return [
        Judged(line["schema"], [JudgedRow(row[0], row[1:]) for row in line["rows"]], line.get("error"))
        for line in lines(system, f"judge/{name}.jsonl")
    ]
