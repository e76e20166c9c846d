"""Each declaration is whole: it has a page, lines in the lists, an example, and messages for the tests of all systems."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pytest

import sparkwire
from sparkwire import catalogue
from sparkwire.changes.columns import OPERATIONS, READ, UPDATE_BEFORE, UPSERT
from sparkwire.changes.declarations import FORMATS, SYSTEMS
from sparkwire.changes.foreign import kinds_of
from sparkwire.changes.read_messages import position_type
from tests.support import ROOT
from tests.support.decoded import changes_of
from tests.support.system_messages import COLUMNS, MAKERS, ROW, TABLE, numbered, record
from tests.support.what_is_read import SECTIONS

DOCS = ROOT / "docs"
OLD = ROW | {"name": "birch"}
KEY = {"id": 1}
PAGES_OF_BYTES = {format.name for format in catalogue.FORMATS}


def made(format: str, op: str, row: Any = ROW, old: Any = None) -> Any:
    return MAKERS[format](op, row, old)


def rows(format: str, *messages: Any, **options: Any) -> list[dict[str, Any]]:
    given = {"columns": COLUMNS, "keys": ("id",)} | options
    return changes_of(numbered([record(one) for one in messages]), format, TABLE, **given).rows


def updated(format: str) -> Any:
    """An update, with the old row as the system sends it."""
    old = {"changed": {"name": "birch"}, "key": KEY, "all": OLD}[SYSTEMS[format].old_row]
    return made(format, "UPDATE", ROW, old)


@pytest.mark.parametrize("format", SYSTEMS)
def test_its_messages(format: str) -> None:
    """Each operation gives the row, an update also the old row."""
    last = {"datahub": {"columns": {"id": "LONG", "name": "STRING", "amount": "DECIMAL(10,2)"}}}.get(format, {})
    messages = [made(format, "INSERT"), updated(format), made(format, "DELETE", None, ROW)]
    can_truncate = "TRUNCATE" in SYSTEMS[format].operations.values()
    messages += [made(format, "TRUNCATE", None, None)] if can_truncate else []
    inserted, changed, deleted, *others = rows(format, *messages, **last)
    emptied = others[0] if can_truncate else None
    for op, row in (("INSERT", inserted), ("UPDATE", changed), ("DELETE", deleted)):
        assert (row["_op_"], row["id"], row["name"], str(row["amount"]), row["_error_"]) == (
            op,
            1,
            "amber",
            "9.50",
            None,
        )
    old_rows: dict[str, dict[str, Any]] = {"changed": OLD, "key": KEY | {"name": None, "amount": None}, "all": OLD}
    expected = old_rows[SYSTEMS[format].old_row]
    before = changed["_before_"]
    assert {name: before[name] for name in ("id", "name")} == {name: expected[name] for name in ("id", "name")}
    assert deleted["_before_"]["id"] == 1
    assert emptied is None or (emptied["_op_"], emptied["_error_"]) == ("TRUNCATE", None)


@pytest.mark.parametrize("format", SYSTEMS)
def test_a_column_that_a_row_does_not_have(format: str) -> None:
    """It is unknown, or NULL if the user says so."""
    message, columns = (
        made(format, "INSERT", {"id": 1}),
        {"id": "LONG" if format == "datahub" else "INT", "name": "STRING"},
    )
    for said, unknown in (({}, ["name"]), ({"nulls": "written"}, ["name"]), ({"nulls": "absent"}, None)):
        [row] = rows(format, message, columns=columns, **said)
        assert (row["_unavailable_"], row["_error_"]) == (unknown, None)


@pytest.mark.parametrize("format", SYSTEMS)
def test_its_example(format: str) -> None:
    """`warm` decodes it, and other formats name its system."""
    system = SYSTEMS[format]
    [kind] = kinds_of(pa.array([system.example.encode()], pa.binary()))
    assert kind is not None
    assert kind.system == system
    [row] = changes_of(
        numbered([record(json.loads(system.example))]), format, "t", columns={"id": "INT"}, keys=["id"]
    ).rows
    assert (row["_op_"], row["id"], row["_error_"]) == ("INSERT", 1, None)
    assert row["_time_"] is not None
    others = [other for other in (*SYSTEMS, "debezium") if other != format]
    for other in others:
        [row] = rows(other, json.loads(system.example))
        assert row["_error_"] == f"WRONG_FORMAT: {system.title}: pass format='{format}'"
    assert sparkwire.explain(system.example.encode()).parts[0].format == f"a message of {system.title}"


@pytest.mark.parametrize("format", SYSTEMS)
def test_its_lines_of_what_is_read(format: str) -> None:
    """Each of its operations has a case, and so has what it leaves out."""
    cases = [case for section in SECTIONS.values() for case in section.values() if case.format == format]
    found = {op for case in cases for op, _, _ in case.changes}
    assert set(SYSTEMS[format].operations.values()) - {None, READ, UPDATE_BEFORE, UPSERT} <= found
    assert any(not case.changes for case in cases)


@pytest.mark.parametrize("format", SYSTEMS)
def test_its_page(format: str) -> None:
    """It is in the site, and describes each member and each operation, unless it describes the bytes."""
    system, text = SYSTEMS[format], (DOCS / "formats" / f"{format}.md").read_text("utf-8")
    assert f"formats/{format}.md" in (ROOT / "mkdocs.yml").read_text("utf-8")
    assert f"(formats/{format}.md)" in system.messages
    assert f'format="{format}"' in text
    members = {path.rpartition(".")[2] for role in system.fields for path in system.paths(role)}
    assert [name for name in sorted(members) if name not in text] == []
    described = [name for name, op in system.operations.items() if op is not None and name in text]
    assert format in PAGES_OF_BYTES or described == [name for name, op in system.operations.items() if op is not None]


@pytest.mark.parametrize("format", SYSTEMS)
def test_the_origin_of_its_messages(format: str) -> None:
    assert f"| {SYSTEMS[format].title}" in (ROOT / "tests" / "data" / "README.md").read_text("utf-8")


@pytest.mark.parametrize("format", SYSTEMS)
def test_its_lines_of_the_change_page(format: str) -> None:
    """`make docs` writes them."""
    system, text = SYSTEMS[format], (DOCS / "changes.md").read_text("utf-8")
    assert f"| `{format}` | {system.messages} | {system.also_pass} |" in text
    assert (position_type(system) is not None) == (f"| `{format}`, by source |" in text)


def test_every_format_is_in_the_documentation_of_the_argument() -> None:
    listed = re.search(r"\n    format\n(.*?)\n    table\n", sparkwire.changes.__doc__ or "", re.DOTALL)
    assert listed is not None
    assert [name for name in FORMATS if f'"{name}"' not in listed[1]] == []


@pytest.mark.parametrize("format", SYSTEMS)
def test_its_operations_are_those_of_a_change_table(format: str) -> None:
    assert set(SYSTEMS[format].operations.values()) <= {None, *OPERATIONS}
