"""Canal's golden messages: the tables that their changes give equal those of the database, at every point."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tests.support import cdc_golden as golden
from tests.support.decoded import as_changes, changes_by_table, changes_of, schema_of
from tests.support.oracles import canal as oracle
from tests.support.oracles.mysql_truth import same
from tests.support.table_replay import Change, Statement, compare, difference, restored_losses, unknown_losses

KEYS = ("order_no", "line_no")
VARIANTS = ("flat", "flat-plain", "flat-gtid", "flat-hash")
ROWS, VALUES, TEXTS_OF_JSON = 2045, 17_765, 166
"""of all tables at all points, how many of their values the messages have, and how many of them only with a GTID"""
QUOTES = 'column name "q" (with quotes) is written without its quotes'
JSON = "MariaDB json: UTF-8 bytes read as ISO-8859-1 (the binlog has it as blob, mysqlType says json)"
RESTORED = {"flat-gtid": {QUOTES, JSON}}
"""losses that sparkwire reverses: of the column "q", only NULL; of JSON, where the GTID shows that it is MariaDB's"""
TYPES = {
    "shopdb.t_numbers": (
        "int32 int8 int8 int8 int16 int16 int32 int32 int32 int32 int64 int64 decimal128(20,0) decimal128(12,4) string "
        "decimal128(10,2) float double int64 int64 decimal128(20,0) int32 int64"
    ),
    "shopdb.t_texts": (
        "int32 string string string string string string string binary binary binary binary string list<string> string"
    ),
    "shopdb.t_times": (
        "int32 date32[day] timestamp[us] timestamp[us] timestamp[us] timestamp[us,tz=UTC] timestamp[us,tz=UTC] "
        "timestamp[us,tz=UTC] string string string int32"
    ),
    "shopdb.evolving": "int32 int32 string decimal128(8,3) string decimal128(6,2)",
}


def known_losses(variant: str) -> dict[golden.Loss, str]:
    losses = golden.known_losses("canal")
    return {loss._replace(variant=variant): why for loss, why in losses.items() if loss.variant in (variant, "flat")}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_changes_give_the_tables_of_the_database(variant: str) -> None:
    records = golden.records("canal", variant)
    expected = list(oracle.changes(records))
    found: list[Change | Statement] = [change for change in expected if not isinstance(change, Change)]
    for table, decoded in changes_by_table(records, "canal").items():
        changes = as_changes(decoded, table)
        assert difference(changes, [one for one in expected if isinstance(one, Change) and one.table == table]) == []
        found += changes
    found.sort(key=lambda change: change.line)
    assert len(found) == len(expected)
    result, tables = compare(found, golden.points("canal"), variant, same)
    assert (result.rows, result.values, tables.unknown) == (ROWS, VALUES - (variant != "flat-gtid") * TEXTS_OF_JSON, 0)
    assert unknown_losses(result, known_losses(variant)) == []
    assert restored_losses(result, known_losses(variant)) == RESTORED.get(variant, {QUOTES})


@pytest.mark.parametrize("variant", ["plain", "gtid"])
def test_a_redelivery_ends_with_the_same_tables(variant: str) -> None:
    """Tables with a primary key are right at each point; a table without one has the rows that came twice."""
    records = golden.records("canal-redelivery", variant)
    ordered: list[Change | Statement] = [one for one in oracle.changes(records) if isinstance(one, Statement)]
    for table, decoded in changes_by_table(records, "canal").items():
        ordered += as_changes(decoded, table)
    ordered.sort(key=lambda change: change.line)
    result, _ = compare(ordered, golden.points("canal-redelivery"), variant, same)
    known = known_losses(variant)
    wrong = [loss for loss in result.losses if loss not in known]
    assert {(loss.table, loss.text) for loss in wrong} == {("shopdb.audit", "too many")}
    assert sum(result.losses[loss] for loss in wrong) == 9
    assert result.rows == ROWS


@pytest.mark.parametrize("table", TYPES)
def test_the_types_of_mysql(table: str) -> None:
    schema = schema_of(golden.records("canal", "flat"), "canal", table)
    found = [
        str(field.type).replace(" ", "").replace("item:", "").replace("element:", "")
        for field in schema.field("_before_").type
    ]
    assert found == TYPES[table].split()


def test_the_other_columns() -> None:
    records = golden.records("canal", "flat-gtid")
    decoded = changes_of(records, "canal", "shopdb.order_lines")
    for line, row in zip(decoded.lines, decoded.rows, strict=True):
        message = json.loads(records[line].value or b"")
        assert row["_time_"] == datetime.fromtimestamp(message["es"] / 1000, UTC)
        assert row["_transaction_"] == message["gtid"]
        assert (row["_table_"], row["_keys_"]) == ("order_lines", list(KEYS))
    places = [tuple(row["_order_"].values()) for row in decoded.rows]
    assert places == sorted(set(places))
    assert {place[:2] for place in places} == {(0, 0)}
    assert [records[line].offset for line in decoded.lines] == [place[2] for place in places]
    moved = [row for row in decoded.rows if row["_before_"] and row["_before_"]["order_no"] != row["order_no"]]
    assert {row["_op_"] for row in moved} == {"UPDATE"}
