"""Each line of the table in docs/avro.md about combining versions."""

from __future__ import annotations

import datetime
import re
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sparkwire.avro import payloads, typed_rows
from sparkwire.avro.schemas import schemas_of
from sparkwire.base.sqltype import sql_name
from tests.support import ROOT
from tests.support.arrow import with_dicts
from tests.support.avro_versions import decimal, logical, written

PAGE = (ROOT / "docs" / "avro.md").read_text("utf-8")
LINES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition("### Versions of one type")[2].partition("- The order")[0].splitlines()
    if line.startswith("| `")
]
UNITS = {"date": "int", "time-millis": "int"}


def schema_of(text: str) -> Any:
    """The Avro type in a table cell, such as ``array(decimal(5,2))``."""
    name, _, inside = text.partition("(")
    inside = inside.removesuffix(")")
    if name in ("decimal", "fixed decimal"):
        precision, scale = map(int, inside.split(","))
        return decimal(precision, scale, 4 if name.startswith("fixed") else 0)
    unique = f"N{uuid.uuid5(uuid.NAMESPACE_DNS, text).hex[:8]}"
    if name == "fixed":
        return {"type": "fixed", "name": unique, "size": int(inside)}
    if name == "enum":
        return {"type": "enum", "name": unique, "symbols": inside.split(", ")}
    if name in ("array", "map"):
        return {"type": name, "items" if name == "array" else "values": schema_of(inside)}
    if name == "union":
        return [schema_of(branch) for branch in inside.split(", ")]
    if name == "record":
        field, _, type = inside.partition(" ")
        return {"type": "record", "name": unique, "fields": [{"name": field, "type": schema_of(type)}]}
    if re.match("date|time|local-", name):
        return logical(UNITS.get(name, "long"), name)
    return name


def value_of(text: str, schema: Any) -> Any:
    """The value in a table cell, in the form that fastavro encodes."""
    if isinstance(schema, list):
        return next(value_of(text, branch) for branch in schema if branch == "string" or text.isdigit())
    if isinstance(schema, str):
        if schema in ("int", "long"):
            return int(text)
        if schema in ("float", "double"):
            return float(text)
        return text == "true" if schema == "boolean" else text.encode() if schema == "bytes" else text
    kind, unit = schema["type"], schema.get("logicalType", "")
    if kind == "record":
        return {field["name"]: value_of(text, field["type"]) for field in schema["fields"]}
    if kind in ("array", "map"):
        item = value_of(text, schema.get("items", schema.get("values")))
        return [item] if kind == "array" else {"k": item}
    if unit == "decimal":
        return Decimal(text)
    if unit == "date":
        return datetime.date.fromisoformat(text)
    if unit.startswith("time-"):
        return datetime.time.fromisoformat(text)
    if unit:
        return datetime.datetime.fromisoformat(text)
    return text.encode() if kind == "fixed" else text


def spelt(value: Any) -> str:
    """A value of a column in the page's notation."""
    if isinstance(value, dict):
        members = [item for name, item in value.items() if name.startswith("member") and item is not None]
        if members:
            return spelt(members[0])
        return "{" + ", ".join(f"{name}: {spelt(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(spelt, value))}]"
    if isinstance(value, datetime.datetime):
        text = value.isoformat().replace("+00:00", "Z")
        return re.sub(r"(\.\d{3})000(?=Z|$)", r"\1", text)
    return "NULL" if value is None else value.decode() if isinstance(value, bytes) else str(value)


def test_there_are_lines() -> None:
    assert len(LINES) > 35


@pytest.mark.parametrize("line", LINES, ids=[f"{line[0]} and {line[1]}" for line in LINES])
def test_the_line(line: list[str]) -> None:
    older, last, column, read = line
    match = re.fullmatch(r"`(.*)` (.*)", older)
    assert match
    schemas: list[Any] = [
        {"type": "record", "name": "R", "fields": [{"name": "f", "type": schema_of(text)}]}
        for text in (match[1], last.strip("`"))
    ]
    datum = written(schemas[0], {"f": value_of(match[2], schemas[0]["fields"][0]["type"])})
    given = schemas_of(dict(enumerate(schemas)))
    readers = [typed_rows.reader(given)]
    if "b: NULL" not in read:  # the last version alone does not have this field
        readers.append(typed_rows.by_name(given)["R"])
    if read != "BAD_FIELD" or "`double`" in last:
        readers.append(typed_rows.reader(schemas_of({1: schemas[1], 0: schemas[0]})))
    for reader in readers[:1] if "STRUCT" in column else readers:
        [result], errors = reader.rows(payloads.of_column(pa.array([datum], pa.binary()), pa.array([0])))
        assert sql_name(result.type) == column
        if read == "BAD_FIELD":
            assert (result.to_pylist(), errors.to_pylist()) == ([None], ["BAD_FIELD: f"])
        else:
            assert errors.to_pylist() == [None]
            assert spelt(with_dicts(result)[0]) == read
