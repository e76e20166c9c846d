"""Maxwell's golden messages: the tables that their changes give equal those of the database, at every point."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support import cdc_golden as golden
from tests.support.decoded import as_changes, changes_of
from tests.support.oracles import maxwell as oracle
from tests.support.oracles.mysql_truth import same
from tests.support.oracles.mysql_values import sql_type
from tests.support.table_replay import Change, Statement, compare, difference, restored_losses, unknown_losses

KEYS = ("order_no", "line_no")
COUNTS = {"default": (2043, 17_404, 1), "full": (2045, 17_420, 0), "gtid": (2043, 17_404, 1), "trim": (2038, 17_287, 1)}
"""by variant: rows and right values of all tables at all points, and changes of rows that do not exist"""
RETYPED = "column retyped by ALTER TABLE: the row still stands in the old type (number)"
NO_DDL = "DDL not told (output_ddl=false): a column added or renamed has no value until the row is written again"
RESTORED = {"default": (RETYPED, NO_DDL), "full": (RETYPED,), "gtid": (RETYPED, NO_DDL), "trim": (RETYPED,)}
"""losses that sparkwire reverses; of an added column, only NULL"""


def known_losses(variant: str) -> dict[golden.Loss, str]:
    return {loss: why for loss, why in golden.known_losses("maxwell").items() if loss.variant == variant}


def columns() -> dict[str, dict[str, str]]:
    """The SQL types of the columns of all tables."""
    types = golden.column_types("maxwell")
    return {table: {name: sql_type(type) for name, type in row.items()} for table, row in types.items()}


def options(variant: str) -> dict[str, Any]:
    return {"nulls": "absent" if variant == "trim" else "written"}


@pytest.mark.parametrize("variant", COUNTS)
def test_the_changes_give_the_tables_of_the_database(variant: str) -> None:
    records = golden.records("maxwell", variant)
    expected = list(oracle.changes(records, golden.column_types("maxwell")))
    found: list[Change | Statement] = [change for change in expected if not isinstance(change, Change)]
    for table, types in columns().items():
        decoded = changes_of(records, "maxwell", table, columns=types, **options(variant))
        changes = as_changes(decoded, table)
        assert difference(changes, [one for one in expected if isinstance(one, Change) and one.table == table]) == []
        found += changes
    found.sort(key=lambda change: change.line)
    assert len(found) == len(expected)
    result, tables = compare(found, golden.points("maxwell"), variant, same)
    assert (result.rows, result.values, tables.unknown) == COUNTS[variant]
    assert unknown_losses(result, known_losses(variant)) == []
    assert restored_losses(result, known_losses(variant)) == set(RESTORED[variant])


@pytest.mark.parametrize("table", ["shopdb.customers", "shopdb.order_lines", "shopdb.audit"])
def test_the_order_of_the_source_is_that_of_sending(table: str) -> None:
    """Over three partitions. The rows of a bootstrap come first."""
    records = golden.records("maxwell", "full")
    rows = changes_of(records, "maxwell", table, columns=columns()[table], order="source").rows
    streamed = [row["_order_"] for row in rows if row["_op_"] != "READ"]
    places = [tuple(order[name] for name in order if name != "log") for order in streamed]
    assert places == sorted(set(places))
    read = [row["_order_"] for row in rows if row["_op_"] == "READ"]
    assert all(value is None for order in read for name, value in order.items() if name != "epoch")


@pytest.mark.parametrize("table", ["shopdb.late", "shopdb.copied", "shopdb.evolving"])
def test_a_statement_in_the_batch_declares_the_columns(table: str) -> None:
    """Without precision, so that a DECIMAL is a STRING."""
    records = golden.records("maxwell", "full")
    found = changes_of(records, "maxwell", table)
    given = changes_of(records, "maxwell", table, columns=columns()[table])
    assert set(columns()[table]) <= set(found.schema.names)
    for one, other in zip(found.rows, given.rows, strict=True):
        assert {name: str(one[name]) for name in columns()[table]} == {
            name: str(other[name]) for name in columns()[table]
        }


def test_the_other_columns() -> None:
    records = golden.records("maxwell", "default")
    decoded = changes_of(records, "maxwell", "shopdb.order_lines", columns=columns()["shopdb.order_lines"])
    for line, row in zip(decoded.lines, decoded.rows, strict=True):
        message = json.loads(records[line].value or b"")
        assert row["_time_"] == datetime.fromtimestamp(message["ts"], UTC)
        assert row["_transaction_"] == (str(message["xid"]) if "xid" in message else None)
        assert (row["_table_"], row["_keys_"]) == ("order_lines", list(KEYS))
        assert row["_order_"] == {"epoch": 0, "partition": 0, "offset": records[line].offset}
