"""Names of tables: formatting, parsing, and the error for an unknown table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sparkwire.core.names import Names, Table, fits, table_name, table_of, unknown_table


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


def names(*rows: tuple[str | None, str | None, str | None]) -> Names:
    return Names(*(pa.array(column, pa.string()) for column in zip(*rows, strict=True)))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("t", [True, True, True, True, False]),
        ("db.t", [True, False, True, True, False]),
        ("s.t", [True, True, False, True, False]),
        ("db.s.t", [True, False, False, True, False]),
        ("other.t", [False, False, False, True, False]),
    ],
)
def test_a_name_that_a_message_does_not_have_fits_any(table: str, expected: list[bool]) -> None:
    of_messages = names(("db", "s", "t"), ("x", "s", "t"), ("db", "x", "t"), (None, None, None), ("db", "s", "x"))
    assert fits(table_of(table), of_messages).tolist() == expected


def test_the_names_in_schemas_count_where_a_message_has_none() -> None:
    """They are written as in topics."""
    of_messages = names(
        (None, None, None), (None, None, "a b"), ("db", None, "a b"), (None, None, None), (None, None, "x")
    )
    of_schemas = names(("db", "s", "a_b"), ("db", "x", "a_b"), ("x", "x", "x"), (None, None, None), ("db", "s", "a_b"))
    assert fits(table_of("s.a b"), of_messages, of_schemas).tolist() == [True, False, False, True, False]
    assert fits(table_of("db.a b"), of_messages, of_schemas).tolist() == [True, True, True, True, False]


@pytest.mark.parametrize("written", ["my-shop", "my_shop"])
def test_the_names_in_schemas_may_be_those_of_avro(written: str) -> None:
    """With ``schema.name.adjustment.mode=avro``, a hyphen is ``_``, too. A name in the message itself is as in the database."""
    nameless, of_schema = names((None, None, None)), names((None, written, "line_items"))
    assert fits(table_of("my-shop.line-items"), nameless, of_schema).tolist() == [True]
    assert fits(table_of("my_shop.line_items"), nameless, of_schema).tolist() == [written == "my_shop"]
    of_message = names(("my_shop", None, "line-items"))
    assert fits(table_of("my-shop.line-items"), of_message, of_schema).tolist() == [False]
