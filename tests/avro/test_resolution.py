"""Schema resolution: data of a writer's schema, read as a reader's schema."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from sparkwire.avro.arrow_columns import plan
from sparkwire.avro.schema import parse
from sparkwire.base.error_codes import BAD_FIELD, OK
from tests.avro.test_decode import read, values
from tests.support.oracles import avro as oracle


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, type: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **more}


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


INTS = {"type": "array", "items": "int"}
DEFAULTS = [
    ("boolean", True),
    ("int", -7),
    ("long", 1 << 40),
    ("float", 0.5),
    ("double", 3),
    ("string", "grüße"),
    ("bytes", "\u00ff\u0000"),
    (enum("A", "B"), "B"),
    ({"type": "fixed", "name": "F", "size": 2}, "ab"),
    (INTS, [1, 2, 3]),
    (INTS, []),
    ({"type": "map", "values": INTS}, {"a": [1], "b": []}),
    (["null", "int"], None),
    (["int", "null"], 4),
    (record(field("x", "int"), field("y", "string", default="z"), name="Inner"), {"x": 5, "y": "w"}),
    ("null", None),
]


@pytest.mark.parametrize(("type", "default"), DEFAULTS)
def test_defaults(type: Any, default: Any) -> None:
    """Defaults between existing fields, compared with fastavro."""
    writer = record(field("a", "int"), field("b", "string"))
    reader = record(field("b", "string"), field("new", type, default=default), field("a", "long"))
    rows: list[bytes | None] = [oracle.encode(parse(writer), {"a": k, "b": "x" * k}) for k in range(3)]
    expected = as_fastavro(writer, rows, reader)
    if parse(type).kind in ("bytes", "fixed"):  # fastavro does not convert them from text
        expected = [row | {"new": default.encode("latin-1")} for row in expected]
    assert values(writer, rows, reader) == expected


def as_fastavro(writer: Any, rows: list[bytes | None], reader: Any) -> list[Any]:
    w, r = fastavro.parse_schema(writer), fastavro.parse_schema(reader)
    return [fastavro.schemaless_reader(io.BytesIO(row), w, r) for row in rows if row is not None]


PROMOTIONS = [("int", t) for t in ("long", "float", "double")] + [("long", t) for t in ("float", "double")]


@pytest.mark.parametrize(("writer", "reader"), [*PROMOTIONS, ("float", "double")])
def test_promotion_of_numbers(writer: str, reader: str) -> None:
    data = [0.5, -3.25] if writer == "float" else [0, -5, 2**31 - 1, -(2**31)]
    rows: list[bytes | None] = [oracle.encode(parse(writer), datum) for datum in data]
    expected = [float(datum) if reader in ("float", "double") else datum for datum in data]
    if reader == "float":
        expected = [-(2.0**31) if datum == -(2**31) else 2.0**31 if datum == 2**31 - 1 else datum for datum in expected]
    assert values(writer, rows, reader) == expected


def test_promotion_of_text() -> None:
    assert values("string", [b"\x06abc"], "bytes") == [b"abc"]
    assert values("bytes", [b"\x06abc"], "string") == ["abc"]
    assert list(read("bytes", [b"\x02\xff", b"\x02a"], "string").errors) == [BAD_FIELD, OK]


def test_fields_are_dropped_reordered_and_renamed() -> None:
    node = record(field("v", "int"), field("next", ["null", "Node"]), name="Node")
    everything = [
        field(f"d{k}", t)
        for k, t in enumerate(["boolean", "float", "double", "bytes", {"type": "map", "values": INTS}])
    ]
    writer = record(field("gone", node), field("a", "int"), *everything, field("old", "string"), name="Old")
    reader = record(field("new", "string", aliases=["old"]), field("a", "int"), name="New", aliases=["Old"])
    datum = {
        "gone": {"v": 1, "next": (1, {"v": 2, "next": (0, None)})},
        "a": 9,
        "d0": True,
        "d1": 1.0,
        "d2": 2.0,
        "d3": b"xyz",
        "d4": [("k", [1, 2]), ("l", [])],
        "old": "text",
    }
    assert values(writer, [oracle.encode(parse(writer), datum)], reader) == [{"new": "text", "a": 9}]


def test_enums() -> None:
    rows: list[bytes | None] = [b"\0", b"\2", b"\4"]
    assert values(enum("A", "B", "C"), rows, enum("C", "B", default="B")) == ["B", "B", "C"]
    decoded = read(enum("A", "B", "C"), rows, enum("C", "B"))
    assert decoded.column.to_pylist() == [None, "B", "C"]
    assert list(decoded.errors) == [BAD_FIELD, OK, OK]


def test_unions() -> None:
    rows: list[bytes | None] = [b"\0", b"\2\4", b"\4\6abc"]
    writer = ["null", "int", "string"]
    assert values(writer, rows, ["string", "long", "null"]) == [
        None,
        {"member0": None, "member1": 2},
        {"member0": "abc", "member1": None},
    ]
    assert values("int", [b"\4"], ["null", "double"]) == [2.0]
    assert values("int", [b"\4"], ["string", "int"]) == [{"member0": None, "member1": 2}]
    decoded = read(writer, rows, "long")
    assert decoded.column.to_pylist() == [None, 2, None]
    assert list(decoded.errors) == [BAD_FIELD, OK, BAD_FIELD]


REJECTED = [
    ("string", "int", "the datum is string, which cannot be read as int"),
    ("null", "int", "the datum is null, which int cannot be"),
    ("long", "int", "the datum is long, which cannot be read as int"),
    (["null", "string"], "int", "the datum is null, which int cannot be"),
    (INTS, {"type": "array", "items": "string"}, "an item of the datum is int, which cannot be read as string"),
    (record(), record(field("a", "int")), "the datum has no field a, and the reader's schema has no default for it"),
    (record(field("a", "string")), record(field("a", "int")), "the datum.a is string, which cannot be read as int"),
    (record(), record(field("a", "int", default="x")), "the default of a is no int: 'x'"),
    (record(name="A"), record(name="B"), "the datum is record A, which cannot be read as record B"),
    (enum("A"), enum("B"), "the datum is enum E, none of whose symbols the reader's enum E has"),
    ("boolean", ["int", "string"], "the datum is boolean, which cannot be read as union of int, string"),
]


@pytest.mark.parametrize(("writer", "reader", "sentence"), REJECTED, ids=range(len(REJECTED)))
def test_schemas_that_cannot_be_resolved_give_a_clear_error(writer: Any, reader: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=r".") as rejected:
        plan([parse(writer)], parse(reader))
    assert str(rejected.value) == sentence


@pytest.mark.parametrize("unscaled", [12345, -12345, 1 << 70, -(1 << 70)])
@pytest.mark.parametrize("among", [[], [field("more", INTS, default=[])]])
def test_defaults_that_are_decimals(unscaled: int, among: list[Any]) -> None:
    """Such a default is bytes; with an array beside it, and without."""
    size = 10
    type = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}
    default = unscaled.to_bytes(size, "big", signed=True).decode("latin-1")
    rows: list[bytes | None] = [oracle.encode(parse(record(field("a", "int"))), {"a": k}) for k in range(3)]
    result = values(record(field("a", "int")), rows, record(field("new", type, default=default), *among))
    assert [row["new"] for row in result] == [Decimal(unscaled).scaleb(-2)] * 3


def test_invalid_defaults() -> None:
    with pytest.raises(ValueError, match=r"^the default of a is no record Inner: \{\}$"):
        plan([parse(record())], parse(record(field("a", record(field("x", "int"), name="Inner"), default={}))))


def test_a_default_may_leave_out_fields_with_defaults() -> None:
    inner = record(field("x", "int"), field("y", "string", default="z"), name="Inner")
    assert values(record(), [b""], record(field("a", inner, default={"x": 5}))) == [{"a": {"x": 5, "y": "z"}}]
