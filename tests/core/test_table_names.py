"""Names of tables: formatting, parsing, and the error for an unknown table."""

from __future__ import annotations

import pytest

from sparkwire.core.names import Table, table_name, table_of, unknown_table


@pytest.mark.parametrize("parts", [("t",), ("db", "t"), ("db", "s", "t"), ("a.b", "c`d")])
def test_a_written_name_is_read_back(parts: tuple[str, ...]) -> None:
    *outer, name = parts
    assert table_of(table_name(*parts)) == Table(name, *outer)


def test_parts_that_are_missing_are_left_out() -> None:
    assert table_name("db", None, "t") == "db.t"


def test_the_error_lists_a_few_tables() -> None:
    names = [f"db.t{number:02}" for number in range(13)]
    assert str(unknown_table("x", names, "the messages")) == (
        "the messages have no table x, only db.t00, db.t01, db.t02, db.t03, db.t04, db.t05, db.t06, db.t07, db.t08, db.t09 "
        "and 3 more: choose one of these"
    )


@pytest.mark.parametrize("table", ["ORDERS", "shop.Orders", "SHOP.orders", "db.shop.ORDERS"])
def test_a_table_in_another_case_is_named_as_the_messages_write_it(table: str) -> None:
    tables = ["db.Shop.orders", "db.Shop.lines"]
    error = unknown_table(table, tables, "the messages")
    assert str(error) == f"the messages have no table {table}, but db.Shop.orders: write it in this case"


def test_a_table_of_another_database_is_no_other_case() -> None:
    assert "only a.Orders" in str(unknown_table("b.orders", ["a.Orders"], "the messages"))
