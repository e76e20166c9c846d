"""Messages with random faults: each becomes a row with an error, a right row, or is of another table."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from sparkwire.changes.declarations import SYSTEMS
from sparkwire.changes.systems import System
from tests.support import system_messages as m
from tests.support.cdc_golden import Record
from tests.support.decoded import changes_of
from tests.support.oracles.mysql_values import canal_value
from tests.support.system_messages import COLUMNS, TABLE

COUNT = 1000
ODD: list[Any] = [
    *(None, 0, -1, 1.5, True, "", "x", "null", [], [1], [None], {}, {"id": 1}, {"id": "2"}, [{"id": 3}], [{"id": "4"}]),
    *("INSERT", "TRUNCATE", "delete", "c", "d", "t", "\u2028", "é\\", 10**30, -(10**18)),
]
KEYS = (None, b'{"id":1}', b"1", b'{"pk.id":1}', b'["a","b",[{"id":1}]]', b'["a","b",5]', b"{}", b"[5]", b'"a', b"\xff")
HEADERS: list[list[tuple[str, bytes]]] = [[], [("__debezium.oldkey", b'{"id":9}')], [("__debezium.newkey", b"x")]]


def message(format: str, random: Random) -> Any:
    row = {"id": random.randrange(99), "name": "n", "amount": 1.5}
    if format == "canal" and random.random() < 0.5:
        rows = [{name: str(value) for name, value in row.items()} for _ in range(random.randrange(1, 4))]
        return m.canal(random.choice(["INSERT", "UPDATE", "DELETE"]), rows, [{"name": "o"} for _ in rows])
    if format == "maxwell" and random.random() < 0.2:
        return m.maxwell("bootstrap-insert", row)
    if format in SYSTEMS:
        op = random.choice(["INSERT", "UPDATE", "DELETE", "TRUNCATE"])
        new, old = (None if op in ends else row for ends in (("DELETE", "TRUNCATE"), ("INSERT", "TRUNCATE")))
        return m.MAKERS[format](op, new, old)
    envelope = m.envelope(
        random.choice("curdt"), row, row, random.choice(["mysql", "postgresql", "sqlserver", "oracle"])
    )
    return random.choice([envelope, row, m.cloud_event(envelope), m.with_schema(envelope, m.connect_schema())])


def mutated(value: Any, random: Random) -> Any:
    if isinstance(value, dict) and value:
        name, draw = random.choice(list(value)), random.random()
        if draw < 0.2:
            return {other: item for other, item in value.items() if other != name}
        return value | {name: random.choice(ODD) if draw < 0.5 else mutated(value[name], random)}
    if isinstance(value, list) and value:
        place = random.randrange(len(value))
        return [*value[:place], mutated(value[place], random), *value[place + 1 :]]
    return random.choice(ODD)


def records(format: str, random: Random) -> list[Record]:
    result = []
    for offset in range(COUNT):
        value = message(format, random)
        for _ in range(random.randrange(1, 4)):
            value = mutated(value, random)
        text = json.dumps(value, ensure_ascii=random.random() < 0.5).encode()
        if random.random() < 0.1:
            cut = random.randrange(len(text) + 1)
            text = text[:cut] + bytes([random.randrange(256)]) + text[cut + random.randrange(3) :]
        result.append(Record(m.TOPIC, 0, offset, random.choice(KEYS), text, random.choice(HEADERS)))
    return result


@pytest.mark.parametrize("format", [*SYSTEMS, "debezium"])
@pytest.mark.parametrize("order", ["offset", "source"])
def test_mutated_messages(format: str, order: str) -> None:
    given = records(format, Random(47))
    columns = COLUMNS if format != "datahub" else {"id": "LONG", "name": "STRING"}
    decoded = changes_of(given, format, TABLE, columns=columns, keys=("id",), order=order)
    for row in decoded.rows:
        if row["_error_"] is None:
            assert row["_op_"] is not None
            assert row["_order_"] is not None
            assert row["_op_"] == "TRUNCATE" or row["id"] is not None
    for offset in set(range(COUNT)) - set(decoded.lines):
        value = json.loads(given[offset].value or b"")
        if format in SYSTEMS:
            assert is_left_out(SYSTEMS[format], value), given[offset].value
        else:
            assert own_names(value) != own_names(message(format, Random(0))), given[offset].value


def is_left_out(system: System, value: Any) -> bool:
    """Whether a message names another table, or has an operation that changes no row."""

    def at(path: str) -> Any:
        found = value
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return found

    named = [at(path) for role in ("database", "schema", "table") for path in system.paths(role)]
    named = [part for text in named if isinstance(text, str) for part in text.split(".")]
    return (
        any(name not in TABLE.split(".") for name in named)
        or system.operations.get(at(system.paths("op")[0]), "") is None
    )


def own_names(value: Any) -> list[Any]:
    """What a message says of its table."""
    value = value.get("payload", value)
    places = [value, value["source"]] if isinstance(value.get("source"), dict) else [value]
    names = (
        "type",
        "database",
        "db",
        "schema",
        "table",
        "iodebeziumdb",
        "iodebeziumschema",
        "iodebeziumtable",
        "__table",
    )
    return [place.get(name) for place in places for name in names]


TEXTS = (
    *(
        "",
        "0",
        "-0",
        "1",
        "01",
        "+1",
        " 1",
        "1.0",
        "1.5",
        "1e3",
        "NaN",
        "Infinity",
        "128",
        "256",
        "-129",
        "65536",
        "4294967296",
    ),
    *(
        "18446744073709551616",
        "0000",
        "2024-02-29",
        "2024-02-30",
        "0000-00-00",
        "2024-01-01 00:00:00",
        "10000-01-01 00:00:00",
    ),
    *(
        "2024-01-01 24:00:00",
        "1970-01-01 00:00:00.1234567",
        "-838:59:59",
        "x",
        "é",
        "ÿ\u0000",
        "Ā",
        "sad",
        "3",
        "7",
        "99",
        "true",
    ),
    *("{}", "[1]", "12.345", "4.9E-324", "1e400", "-3.5E38", "1e-50", "9999-12-31 23:59:59.999999"),
)
TYPES = (
    *("tinyint", "smallint unsigned", "int", "bigint", "bigint unsigned", "boolean", "bit(9)", "bit(64)", "year"),
    *("decimal(12,4)", "decimal(38,0)", "double", "varbinary(9)", "json", "varchar(9)", "time", "date", "datetime(6)"),
    *("timestamp(3)", "enum('sad','ok')", "set('a','b')", "point"),
)


def test_odd_values_fit_exactly_or_are_unexpected() -> None:
    messages = [
        m.canal(data=[{"id": "1"} | {f"c{k}": text for k in range(len(TYPES))}])
        | {"mysqlType": {"id": "int"} | {f"c{k}": type for k, type in enumerate(TYPES)}}
        for text in TEXTS
    ]
    decoded = changes_of(m.numbered([m.record(message) for message in messages]), "canal", TABLE)
    assert len(decoded.rows) == len(TEXTS)
    wrong = []
    for text, row in zip(TEXTS, decoded.rows, strict=True):
        for k, type in enumerate(TYPES):
            value, unexpected = row[f"c{k}"], (row["_unexpected_"] or {}).get(f"c{k}")
            if not (value is None and unexpected == text) and not (unexpected is None and fits(value, type, text)):
                wrong.append((type, text, value, unexpected))
    assert wrong == []


def fits(value: Any, type: str, text: str) -> bool:
    """Whether a value is exactly what the text says."""
    if isinstance(value, float) and math.isnan(value):
        return text == "NaN"
    try:
        expected = canal_value(type, text).value
    except (ValueError, IndexError, UnicodeError):
        if isinstance(value, Decimal):
            return value == Decimal(text)
        expected = {"set('a','b')": text.split(",") if text else []}.get(type, text)
    return bool(value == ("" if type.startswith("enum") and text == "0" else expected))
