"""Names of tables: formatting, parsing, and the error for an unknown table."""

from __future__ import annotations

import pytest

from sparkwire.core.table_names import Table, table_name, table_of, unknown_table


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
