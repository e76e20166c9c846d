"""Hostile schemas are read, or rejected with a clear error message, in little time and memory."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from sparkwire.avro.arrow_columns import decode, plan
from sparkwire.avro.json_readers import json_reader
from sparkwire.avro.schema import MAX_LEVELS, parse, text_of
from sparkwire.avro.schemas import schemas_of
from sparkwire.avro.typed_values import typed
from sparkwire.base.error_codes import ERRORS, OK
from sparkwire.core.column import spans_of
from sparkwire.errors import SchemaError


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": k, "type": t} for k, t in fields.items()]}


def twice(levels: int, leaf: Any) -> dict[str, Any]:
    """A chain of records; each uses the next one twice, by its name."""
    schema = record("R0", a=leaf)
    for level in range(1, levels + 1):
        schema = record(f"R{level}", a=schema, b=f"R{level - 1}")
    return schema


def nested(levels: int) -> dict[str, Any]:
    """Nested records."""
    schema = record("R1", a="int")
    for level in range(2, levels):
        schema = record(f"R{level}", a=schema)
    return schema


def siblings(levels: int) -> dict[str, Any]:
    """Records with the same depth but flat JSON: each field uses the record of the previous field."""
    fields: dict[str, Any] = {"f0": record("R0", a="int")}
    for level in range(1, levels):
        fields[f"f{level}"] = record(f"R{level}", a=f"R{level - 1}")
    return record("Top", **fields)


def test_records_that_are_used_twice_on_each_level() -> None:
    """60 levels have 2^60 fields, so no column can hold them. Decoding to JSON takes only as long as the datum needs."""
    schema = json.dumps(twice(3, "int"))
    rows = [bytes(range(0, 16, 2)), b"\0" * 7]
    texts = FUNCTIONS["avro_json"].decode(pa.array(rows, pa.binary()), schema=schema).to_pylist()
    assert texts[1] is None
    numbers: list[int] = []
    json.loads(texts[0], object_hook=lambda node: numbers.extend(v for v in node.values() if isinstance(v, int)))
    assert sorted(numbers) == list(range(8))
    deep = json.dumps(twice(60, "int"))
    assert FUNCTIONS["avro_error"].decode(pa.array(rows, pa.binary()), schema=deep).to_pylist() == ["TRUNCATED"] * 2


def test_an_empty_datum_with_a_long_text_is_rejected() -> None:
    with pytest.raises(SchemaError, match="R60 of no bytes would be a text of more than 1 MiB"):
        json_reader(parse(twice(60, "null")))
    assert (
        FUNCTIONS["avro_json"].decode(pa.array([b""]), schema=json.dumps(twice(2, "null")))[0].as_py().count("null")
        == 4
    )


def test_too_many_columns_are_rejected() -> None:
    for leaf in ("int", "null", {"type": "record", "name": "Empty", "fields": []}):
        with pytest.raises(SchemaError, match="more than 50000 columns is not read: read it as JSON"):
            typed(twice(60, leaf))


def test_a_huge_field_that_is_not_selected_is_skipped() -> None:
    written = record("Top", much=twice(60, "null"), id="int")
    decoder = typed(written, record("Top", id="int"))
    assert decoder.decode(pa.array([b"\x0e"])).to_pylist() == [{"id": 7}]


@pytest.mark.parametrize("schema", [nested, siblings])
def test_levels(schema: Any) -> None:
    """Every function over a schema handles the maximum number of levels; one more gives a clear error message."""
    most = MAX_LEVELS - (2 if schema is siblings else 0)
    allowed = schema(most)
    assert parse(allowed).levels == MAX_LEVELS
    assert typed(allowed) == typed(text_of(allowed), json.dumps(allowed))
    assert schemas_of([allowed]).texts
    json_reader(parse(allowed))
    for deep in (most + 1, 400, 900, 3000):
        for read in (parse, typed, text_of, lambda s: schemas_of([s]), lambda s: schemas_of({1: s})):
            with pytest.raises(SchemaError, match="at most 64 types within each other, and this has more"):
                read(schema(deep))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"type":' * 100_000])
def test_a_text_of_brackets(text: str) -> None:
    with pytest.raises(SchemaError, match="an Avro schema"):
        parse(text)


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        (record("R", a="int") | {"aliases": None}, "R has the aliases null: it takes a list of names"),
        (record("R", a="int") | {"aliases": "S"}, 'R has the aliases "S": it takes a list of names'),
        (record("R", a="int") | {"aliases": [1]}, r"R has the aliases \[1\]: it takes a list of names"),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "aliases": None}]},
            "field R.a has the aliases null: it takes a list of names",
        ),
        ({"type": "enum", "name": "E", "symbols": ["A", "\ud800"]}, r"half a surrogate pair: '\\ud800'"),
        ({"type": "int", "doc": {1, 2}}, r"invalid Avro schema \(not valid JSON\)"),
    ],
)
def test_sentences(schema: Any, sentence: str) -> None:
    for read in (parse, typed, lambda s: schemas_of([s])):
        with pytest.raises(SchemaError, match=sentence):
            read(schema)


@pytest.mark.parametrize("size", [2_000, (1 << 31) - 1])
def test_a_decimal_in_a_long_fixed(size: int) -> None:
    """It is a decimal if its precision is small enough."""
    decimal = {"type": "fixed", "name": "F", "size": size, "logicalType": "decimal", "precision": 38, "scale": 2}
    assert parse(decimal).logical == "decimal"
    row = (12345).to_bytes(size, "big") if size < 1 << 20 else b"\0"
    expected = Decimal("123.45") if size < 1 << 20 else None
    assert typed(decimal).decode(pa.array([row])).to_pylist() == [expected]


@pytest.mark.parametrize(("size", "most"), [(1, 2), (2, 4), (4, 9), (8, 18), (16, 38)])
def test_the_digits_that_fit_into_a_fixed(size: int, most: int) -> None:
    for precision, logical in ((most, "decimal"), (most + 1, "")):
        fixed = {"type": "fixed", "name": "F", "size": size, "logicalType": "decimal", "precision": precision}
        assert parse(fixed).logical == logical


def test_defaults_of_items_without_bytes() -> None:
    """Three bytes declare 1,024 items, each with a reader's default of 1 MB: 976 MB together."""
    items = {"type": "array", "items": {"type": "record", "name": "Item", "fields": []}}
    field = {"name": "a", "type": "string", "default": "x" * 1_000_000}
    read = {"type": "array", "items": {"type": "record", "name": "Item", "fields": [field]}}
    rows = pa.array([b"\x80\x10\0", b"\2\0"])
    decoded = decode(plan([parse(items)], parse(read)), spans_of(rows))
    assert [ERRORS[code] if code != OK else None for code in decoded.errors] == ["BAD_LENGTH", None]
    assert decoded.column[1].as_py() == [{"a": "x" * 1_000_000}]
    assert decoded.column.nbytes < 2_000_000


def test_names_of_items_without_bytes() -> None:
    """The same in JSON, where the names of null fields take the space."""
    items = {"type": "array", "items": record("Item", **{"x" * 500_000: "null"})}
    rows = pa.array([b"\x80\x10\0", b"\2\0"])
    texts = FUNCTIONS["avro_json"].decode(rows, schema=json.dumps(items)).to_pylist()
    assert texts == [None, json.dumps([{"x" * 500_000: None}], separators=(",", ":"))]
