"""Debezium's golden messages of PostgreSQL, in nine forms: the tables of their changes equal those of the database."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.support import cdc_golden as golden
from tests.support.decoded import as_changes, changes_of, schema_of
from tests.support.oracles.postgres_truth import same
from tests.support.table_replay import Change, compare, restored_losses, unknown_losses

SYSTEM = "postgres2"
COUNTS = {
    "numeric": (344, 1817),
    "numeric-schemas": (344, 1817),
    "cloudevents": (344, 1817),
    "cloudevents-schemas": (344, 1817),
    "two-partitions": (344, 1817),
    "flat-tombstone": (323, 1775),
    "map-json": (344, 1806),
    "map-json-schemas": (344, 1806),
    "map-flat-tombstone": (323, 1764),
}
"""by variant: rows and right values of all tables at all points"""
_BOTH = {
    "app.amounts": {"id": "int64", "f8": "double"},
    "app.events": {"who": "string"},
    "app.`order items`": {"id": "int32", "qty": "int32", "note": "string"},
    "app.orders": {"id": "int32", "name": "string", "at": "ZonedTimestamp"},
    "app.sync_point": {"n": "int32", "label": "string"},
    "app.wide_docs": {
        "id": "int32",
        "tags": "array<string>",
        "nums": "array<int32>",
        "jb": "Json",
        "js": "Json",
        "x": "Xml",
        "tx": "string",
        "bools": "array<boolean>",
        "p": "Point",
        "rev": "int32",
    },
}
_PRECISE = {
    "app.amounts": {
        "n_ps": "Decimal(12,4)",
        "n_big": "Decimal(38,0)",
        "n_wide": "Decimal(38,18)",
        "n_free": "VariableScaleDecimal",
        "mon": "Decimal(38,2)",
        "a": "array<Decimal(8,2)>",
    },
    "app.events": {"n": "Decimal(6,3)"},
    "app.`order items`": {"unit price": "Decimal(10,2)"},
    "app.orders": {"amount": "Decimal(12,2)"},
    "app.wide_docs": {"decs": "array<Decimal(12,4)>", "bys": "array<bytes>", "hs": "Json", "raw": "bytes"},
}
_TEXTS = {
    "app.amounts": dict.fromkeys(("n_ps", "n_big", "n_wide", "n_free", "mon"), "string") | {"a": "array<string>"},
    "app.events": {"n": "string"},
    "app.`order items`": {"unit price": "string"},
    "app.orders": {"amount": "string"},
    "app.wide_docs": {
        "decs": "array<string>",
        "bys": "array<string>",
        "hs": "map<string,string>",
        "raw": "string",
    },
}
TABLES = {name.replace("`", ""): name for name in _BOTH}
"""the table of each name in the golden data, as ``table=``"""


def columns(variant: str, table: str) -> dict[str, str]:
    return _BOTH[table] | (_TEXTS if variant.startswith("map") else _PRECISE).get(table, {})


def changes(variant: str) -> list[Change]:
    """The changes of all tables in the order of sending. Flattened messages do not name their table, so a topic is read alone."""
    records, found = golden.records(SYSTEM, variant), []
    for name, table in TABLES.items():
        topic = f"shop2.{name}".replace(" ", "_")
        lines = [line for line, record in enumerate(records) if record.topic == topic]
        decoded = changes_of(
            [records[line] for line in lines],
            "debezium",
            table,
            columns=None if variant.endswith("schemas") else columns(variant, table),
            before="full" if name == "app.events" else "key",
        )
        found += [change._replace(line=lines[change.line]) for change in as_changes(decoded, name)]
    return sorted(found, key=lambda change: change.line)


@pytest.mark.parametrize("variant", COUNTS)
def test_the_changes_give_the_tables_of_the_database(variant: str) -> None:
    points = golden.points(SYSTEM)
    if "flat" in variant:  # a flattened message of a table without a key does not say which row it changes
        points = [point._replace(tables={n: t for n, t in point.tables.items() if t.key}) for point in points]
    known = {loss: why for loss, why in golden.known_losses(SYSTEM).items() if loss.variant == variant}
    result, _ = compare(changes(variant), points, variant, same)
    assert (result.rows, result.values) == COUNTS[variant]
    losses = Counter({shortened(loss): count for loss, count in result.losses.items()})
    found = result._replace(losses=losses)
    assert unknown_losses(found, known) == []
    assert restored_losses(found, known) == set()


def shortened(loss: golden.Loss) -> golden.Loss:
    """Known losses have the first 200 characters of long texts."""
    return loss if loss.text is None or len(loss.text) <= 200 else loss._replace(text=f"{loss.text[:200]}…")


@pytest.mark.parametrize("variant", ["numeric-schemas", "map-json-schemas", "cloudevents-schemas"])
def test_embedded_schemas_declare_the_same_types(variant: str) -> None:
    records = golden.records(SYSTEM, variant)
    for name, table in TABLES.items():
        found = schema_of(records, "debezium", table)
        given = schema_of(records, "debezium", table, columns=columns(variant, table))
        assert {field.name: field.type for field in found} == {field.name: field.type for field in given} | {
            "_before_": found.field("_before_").type
        }, name


def test_a_change_of_the_key_is_two_rows_with_one_event() -> None:
    moves = [change for change in changes("two-partitions") if change.event is not None]
    arrivals = [change for change in moves if change.op == "INSERT"]
    departures = {change.event: change for change in moves if change.op == "DELETE"}
    headers = [dict(record.headers) for record in golden.records(SYSTEM, "two-partitions")]
    assert len(arrivals) == sum("__debezium.oldkey" in header for header in headers)
    for arrival in arrivals:
        departure = departures[arrival.event]
        assert arrival.before is not None
        assert arrival.before["id"] == departure.row["id"]
        assert json.loads(headers[departure.line]["__debezium.newkey"]) == {"id": arrival.row["id"]}
