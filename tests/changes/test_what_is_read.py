"""docs/what-is-read.md: each of its lines is a case, and says what becomes of the messages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import ROOT
from tests.support.decoded import changes_of
from tests.support.system_messages import ROW, TABLE, envelope, numbered, record, text
from tests.support.what_is_read import OPTIONS, POSITIONS, SECTIONS, Case

PAGE = (ROOT / "docs" / "what-is-read.md").read_text(encoding="utf-8")
IN_OTHER_TESTS = {("Converters", "Avro, Confluent's wire format")}
"""tests/spark/test_debezium_changes.py"""


def page_lines() -> list[tuple[str, str, str, str]]:
    """The heading and the three cells of each line of a table."""
    result, heading = [], ""
    for line in PAGE.splitlines():
        heading = line.removeprefix("## ") if line.startswith("## ") else heading
        if line.startswith("|") and not set(line) <= set("|- "):
            name, outcome, remark = (cell.strip() for cell in line.strip("|").split("|"))
            if "result" not in outcome:
                result.append((heading, name, outcome, remark))
    return result


def test_the_page_has_the_cases() -> None:
    lines = [(heading, name) for heading, name, *_ in page_lines()]
    cases = [(heading, name) for heading, section in SECTIONS.items() for name in section]
    assert [line for line in lines if line not in IN_OTHER_TESTS] == cases


@pytest.mark.parametrize(
    ("heading", "name", "result"), [line[:3] for line in page_lines() if line[:2] not in IN_OTHER_TESTS]
)
def test_a_line(heading: str, name: str, result: str) -> None:
    case = SECTIONS[heading][name]
    found = [
        (None, None, row["_error_"].split(":")[0]) if row["_error_"] else (row["_op_"], row["id"], None)
        for row in decoded(case)
    ]
    assert found == list(case.changes)
    assert result == in_words([error for _, _, error in found])


def decoded(case: Case, **options: Any) -> list[dict[str, Any]]:
    given = {"table": TABLE} | OPTIONS | dict(case.options) | options
    return changes_of(numbered(case.records), case.format, **given).rows


def in_words(errors: list[str | None]) -> str:
    """The word of the page for messages with these errors. If a case has valid rows, too, these prepare it."""
    codes = {error for error in errors if error}
    return f"`{codes.pop()}`" if codes else "rows" if errors else "left out"


@pytest.mark.parametrize("name", POSITIONS)
def test_the_position_in_the_source(name: str) -> None:
    [remark] = [line[3] for line in page_lines() if line[1] == name]
    expected = POSITIONS[name]
    for row in decoded(SECTIONS["Debezium's connectors"][name], order="source"):
        if expected is None:
            assert (row["_error_"], remark) == ("MISSING_FIELD", "none: `MISSING_FIELD`")
        else:
            assert row["_error_"] is None
            assert tuple(part for part in row["_order_"].values() if part is not None) == (0, *expected)


def test_the_position_of_informix() -> None:
    """Its LSNs are decimal numbers of any length."""
    messages = [envelope(connector="informix", commit_lsn=lsn, change_lsn="1") for lsn in ("9", "10")]
    rows = decoded(Case([record(message, {"id": 1}) for message in messages]), order="source")
    first, second = ([part for part in row["_order_"].values() if part is not None] for row in rows)
    assert first < second


def test_columns_that_a_row_lacks() -> None:
    section = SECTIONS["Canal and Maxwell"]
    [row] = decoded(section["Maxwell: a column that `data` does not have"])
    assert row["_unavailable_"] == ["name", "amount"]
    [row] = decoded(section["Maxwell: `output_nulls=false`"])
    assert row["_unavailable_"] is None


def test_a_change_of_the_key_in_flattened_messages() -> None:
    """The new row has a position in an added field, and the tombstone of the old one has none: their event is the same."""
    old, new = {"id": 1}, {"id": 2}
    row = ROW | new | {"__op": "c", "__lsn": 4711, "__table": "customers"}
    messages = [
        record(ROW, old),
        record(None, old, headers=[("__debezium.newkey", text(new))]),
        record(row, new, headers=[("__debezium.oldkey", text(old))]),
    ]
    first, departure, arrival = decoded(Case(messages))
    assert [one["_op_"] for one in (first, departure, arrival)] == ["UPSERT", "DELETE", "INSERT"]
    assert departure["_event_"] == arrival["_event_"]
    assert departure["_event_"].startswith("\n")  # it has no position
