"""wal2json's golden messages: the tables that their changes give equal those of the database, at six moments."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import wal2json_golden as golden
from tests.support.decoded import Decoded, as_changes, changes_of
from tests.support.table_replay import Tables, compare, compare_table

ROWS, VALUES = 724, 4557
EVERY = list(golden.tables())


def decoded(table: str, **options: Any) -> Decoded:
    return changes_of(golden.records(), "wal2json", table, keys=golden.tables()[table].keys, **options)


@pytest.mark.parametrize("order", ["offset", "source"])
def test_the_changes_give_the_tables_of_the_database(order: str) -> None:
    found = [change for table in EVERY for change in as_changes(decoded(table, order=order), table)]
    found.sort(key=lambda change: change.line)
    result, tables = compare(found, golden.points(), golden.VARIANT, golden.same)
    assert (result.rows, result.values, tables.unknown) == (ROWS, VALUES, 0)
    assert not result.losses


@pytest.mark.parametrize("table", EVERY)
def test_the_positions_order_the_changes_of_each_row(table: str) -> None:
    """Transactions are sent by their commits, so positions are not those of sending. In their order, the table is the same."""
    changes = decoded(table, order="source")
    positions = [row["_order_"]["position"] for row in changes.rows]
    by_position = sorted(zip(positions, as_changes(changes, table), strict=True), key=lambda one: one[0])
    tables = Tables()
    for _, change in by_position:
        tables.apply(change)
    truth = golden.points()[-1].tables[table]
    assert compare_table(tables.rows[table], truth, golden.VARIANT, golden.same)[::2] == (len(truth.rows), [])


def test_the_types_are_those_of_the_database() -> None:
    types = {
        "teile": "int32 int16 int64 decimal128(12, 3) string float double bool string string string",
        "zeiten": "int32 string date32[day] timestamp[us] timestamp[us, tz=UTC] string string",
        "roh": "string binary string string string string string string string",
    }
    for table, expected in types.items():
        schema = decoded(table).schema
        assert " ".join(str(schema.field(name).type) for name in golden.tables()[table].columns) == expected


def test_the_keys_are_those_of_the_messages() -> None:
    """A table without a primary key has none, although its replica identity is an index."""
    for table, origin in golden.tables().items():
        changes = changes_of(golden.records(), "wal2json", table)
        expected = [] if table == "index_id" else origin.keys
        assert {tuple(row["_keys_"]) for row in changes.rows if row["_op_"] != "TRUNCATE"} == {tuple(expected)}


def test_large_values_that_did_not_change() -> None:
    """They are in no message. With REPLICA IDENTITY FULL, the old row has them."""
    unknown = {
        table: [row["_unavailable_"] for row in decoded(table).rows if row["_op_"] == "UPDATE"] for table in EVERY
    }
    assert ["gross"] in unknown["lang"]
    assert ["gross"] in unknown["index_id"]
    assert set(map(str, unknown["voll"])) == {"None"}


def test_format_version_1_is_an_error_that_names_the_option() -> None:
    rows = changes_of(golden.version_1(), "wal2json", "teile", columns={"nr": "INT"}, keys=["nr"]).rows
    assert {row["_error_"] for row in rows} == {
        "WRONG_FORMAT: wal2json's format version 1 is not supported: set its option format-version=2"
    }
    assert len(rows) == len(golden.version_1())
