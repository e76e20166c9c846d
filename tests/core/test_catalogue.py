"""Compare the catalogue with the contract, and generated files with the catalogue."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from sparkwire.base.sqltype import arrow_type, sql_name
from sparkwire.catalogue import FORMATS
from sparkwire.core.arguments import counted
from sparkwire.databus import layout
from tests.support import ROOT, databus_cases
from tests.support.arrow import ask
from tools.reference import GENERATED

# The promised functions with their result types; a bare STRUCT means the fields of its format.
CONTRACT = dict(line.split("\t") for line in (ROOT / "tests" / "data" / "contract.tsv").read_text("utf-8").splitlines())


def test_complete() -> None:
    assert set(FUNCTIONS) == set(CONTRACT)


@pytest.mark.parametrize("name", CONTRACT)
def test_returns(name: str) -> None:
    if CONTRACT[name] == "STRUCT":
        assert pa.types.is_struct(FUNCTIONS[name].return_type)
    else:
        assert FUNCTIONS[name].return_type == arrow_type(CONTRACT[name])


@pytest.mark.parametrize("name", [format.name for format in FORMATS if format.struct])
def test_structs_have_every_field(name: str) -> None:
    """The struct function of a format has a field for each function before it."""
    [format] = [format for format in FORMATS if format.name == name]
    types = {function.name: function.return_type for function in format.functions}
    above = format.functions[: list(types).index(format.struct)]
    of_one_value = [function.name for function in above if function.arguments == FUNCTIONS[format.struct].arguments]
    expected = {scalar.removeprefix(format.prefix): types[scalar] for scalar in of_one_value}
    assert {field.name: field.type for field in types[format.struct]} == expected


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_generated_files_are_fresh(path: Path) -> None:
    assert path.read_text("utf-8") == GENERATED[path](), "run `make docs`"


@pytest.mark.parametrize("sql", ["BINARY", "ARRAY<STRUCT<a INT, b MAP<STRING, ARRAY<BIGINT>>>>", "TIMESTAMP"])
def test_sql_types_have_names(sql: str) -> None:
    assert sql_name(arrow_type(sql)) == sql


@pytest.mark.parametrize("sql", ["", "BLOB", "ARRAY<INT", "STRUCT<a>", "INT INT", "ARRAY(INT)"])
def test_invalid_sql_types(sql: str) -> None:
    with pytest.raises(ValueError, match="type"):
        arrow_type(sql)


def test_layouts_have_no_gaps() -> None:
    assert layout.V1.size == 61
    assert layout.V2.size == 53
    for table in (layout.V1, layout.V2, layout.PART):
        ends = [placed.end for placed in table.places.values()]
        assert all(placed.offset in (0, *ends) or placed.offset == 0 for placed in table.places.values())
        assert max(ends) == table.size


def test_a_case_of_each_version() -> None:
    versions = {version for case in databus_cases.cases() for version in ask("dbus_version", [case.data])}
    assert versions == {0, 2}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_shown_in_one_line(name: str) -> None:
    function = FUNCTIONS[name]
    assert repr(function).startswith(f"<{function.name}({function.arguments[0].name} ")
    assert "\n" not in repr(function)
    assert len(repr(function)) < 500


def test_a_long_struct_is_shown_by_the_number_of_its_fields() -> None:
    fields = FUNCTIONS["dbus_event"].return_type.num_fields
    assert repr(FUNCTIONS["dbus_event"]).startswith(f"<dbus_event(event BINARY) -> STRUCT<{fields} fields>: ")


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("f(a BINARY) -> INT", "f(a BINARY) -> INT"),
        ("f(a STRUCT<a INT>) -> MAP<STRING, INT>", "f(a STRUCT<a INT>) -> MAP<STRING, INT>"),
        ("ARRAY<STRUCT<a INT, b INT, c INT, d INT, e INT, f INT, g MAP<INT, INT>>>", "ARRAY<STRUCT<7 fields>>"),
        (
            "f(x STRUCT<a STRUCT<a INT, b INT, c INT, d INT, e INT, f INT, g INT>>, y INT) -> STRUCT<a INT>",
            "f(x STRUCT<a STRUCT<7 fields>>, y INT) -> STRUCT<a INT>",
        ),
    ],
)
def test_fields_are_counted(declaration: str, expected: str) -> None:
    assert counted(declaration) == expected
