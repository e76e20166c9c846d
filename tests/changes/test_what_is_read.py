"""docs/what-is-read.md: each of its lines is a case, and says what becomes of the messages."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.decoded import changes_of
from tests.support.read_cases import OPTIONS, SECTIONS, WITHOUT_POSITION, Case
from tests.support.system_messages import TABLE, numbered

PAGE = (ROOT / "docs" / "what-is-read.md").read_text(encoding="utf-8")
IN_OTHER_TESTS = {("Converters", "Avro, Confluent's wire format")}
"""tests/spark/test_debezium_changes.py"""


def page_lines() -> list[tuple[str, str, str, str]]:
    """The heading and the three cells of each line of a table."""
    result, heading = [], ""
    for line in PAGE.splitlines():
        heading = line.removeprefix("## ") if line.startswith("## ") else heading
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and not set(line) <= set("|- ") and "result" not in cells[1]:
            result.append((heading, *cells))
    return result


def test_the_page_has_the_cases() -> None:
    lines = [(heading, name) for heading, name, *_ in page_lines()]
    cases = [(heading, name) for heading, section in SECTIONS.items() for name in section]
    assert [line for line in lines if line not in IN_OTHER_TESTS] == cases


@pytest.mark.parametrize(("heading", "name", "result"), [line[:3] for line in page_lines()])
def test_a_line(heading: str, name: str, result: str) -> None:
    if (heading, name) in IN_OTHER_TESTS:
        pytest.skip("in another test")
    case = SECTIONS[heading][name]
    found = [
        (None, None, row["_error_"]) if row["_error_"] else (row["_op_"], row["id"], None) for row in decoded(case)
    ]
    assert found == list(case.changes)
    assert result == in_words([error for _, _, error in found])


def decoded(case: Case, **options: Any) -> list[dict[str, Any]]:
    return changes_of(numbered(case.records), case.format, TABLE, **OPTIONS | dict(case.options) | options).rows


def in_words(errors: list[str | None]) -> str:
    """The word of the page for messages with these errors. If a case has valid rows, too, these prepare it."""
    codes = {error for error in errors if error}
    return f"`{codes.pop()}`" if codes else "rows" if errors else "left out"


@pytest.mark.parametrize("name", [name for name in SECTIONS["Debezium's connectors"] if name != "MongoDB"])
def test_the_position_in_the_source(name: str) -> None:
    [remark] = [line[3] for line in page_lines() if line[1] == name]
    rows = decoded(SECTIONS["Debezium's connectors"][name], order="source")
    assert {row["_error_"] for row in rows} == {"MISSING_FIELD" if name in WITHOUT_POSITION else None}
    assert ("none: `MISSING_FIELD`" in remark) == (name in WITHOUT_POSITION)
    if name not in WITHOUT_POSITION:
        parts = [part for part in re.split(", |;", remark) if "cell" not in part]
        known = [value for field, value in rows[0]["_order_"].items() if field != "epoch" and value is not None]
        assert len(known) >= len(parts)


def test_columns_that_a_row_lacks() -> None:
    section = SECTIONS["Canal and Maxwell"]
    [row] = decoded(section["Maxwell: a column that `data` does not have"])
    assert row["_unavailable_"] == ["name", "amount"]
    [row] = decoded(section["Maxwell: `output_nulls=false`"])
    assert row["_unavailable_"] is None
