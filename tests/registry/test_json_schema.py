"""Column types from JSON Schema."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from sparkwire.avro.schema_source import Registered
from sparkwire.errors import RegistryError
from sparkwire.registry.json_schema import row_type


def of(*schemas: Any, references: dict[str, Any] | None = None) -> pa.StructType:
    named = tuple((name, json.dumps(schema)) for name, schema in (references or {}).items())
    return row_type(Registered(json.dumps(schema), f"schema {k}", "JSON", named) for k, schema in enumerate(schemas))


def field(schema: Any, **more: Any) -> pa.DataType:
    """The type of one property."""
    return of({"properties": {"a": schema}, **more}).field("a").type


POINT = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "integer"}}}
POINT_TYPE = pa.struct([("x", pa.float64()), ("y", pa.int64())])


@pytest.mark.parametrize(
    ("schema", "type"),
    [
        ({"type": "integer"}, pa.int64()),
        ({"type": ["null", "number"]}, pa.float64()),
        ({"type": ["integer", "number"]}, pa.float64()),
        ({"type": ["integer", "string"]}, pa.string()),
        ({"type": "string", "format": "date-time"}, pa.string()),
        ({"type": "boolean"}, pa.bool_()),
        ({"type": "null"}, pa.string()),
        ({"enum": ["a", "b"]}, pa.string()),
        ({"enum": [1, 2, None]}, pa.int64()),
        ({"const": 1.5}, pa.float64()),
        ({}, pa.string()),
        (True, pa.string()),
        ({"type": "object"}, pa.string()),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, pa.map_(pa.string(), pa.int64())),
        ({"type": "array"}, pa.list_(pa.string())),
        ({"type": "array", "items": POINT}, pa.list_(POINT_TYPE)),
        (POINT, POINT_TYPE),
        ({"oneOf": [{"type": "null"}, POINT]}, POINT_TYPE),
        ({"anyOf": [POINT, {"type": "string"}]}, pa.string()),
        (
            {"allOf": [POINT, {"properties": {"z": {"type": "integer"}}}]},
            pa.struct([*POINT_TYPE, pa.field("z", pa.int64())]),
        ),
        ({"type": "object", "allOf": [POINT]}, POINT_TYPE),
        ({"type": ["object", "null"], "allOf": [POINT]}, POINT_TYPE),
        ({"type": "object", "allOf": [{"$ref": "#/$defs/point"}, {"required": ["x"]}]}, POINT_TYPE),
        ({"type": "object", "$ref": "#/$defs/point"}, POINT_TYPE),
        ({"type": "object", "oneOf": [POINT, {"properties": {"x": {"type": "number"}}}]}, POINT_TYPE),
        ({**POINT, "anyOf": [{"required": ["x"]}, {"required": ["y"]}]}, POINT_TYPE),
        ({**POINT, "allOf": [{"if": {"required": ["x"]}, "then": {"required": ["y"]}}]}, POINT_TYPE),
        (
            {**POINT, "if": True, "then": {"properties": {"z": {"type": "integer"}}}, "else": {"required": ["x"]}},
            pa.struct([*POINT_TYPE, pa.field("z", pa.int64())]),
        ),
        ({"type": "object", "allOf": [{"required": ["x"]}]}, pa.string()),
        ({"type": "integer", "allOf": [{"minimum": 0}]}, pa.int64()),
        ({"allOf": [{"type": "integer"}, {"minimum": 0}, True]}, pa.int64()),
        ({"type": "array", "allOf": [{"minItems": 1}], "items": POINT}, pa.list_(POINT_TYPE)),
        (
            {"type": "object", "allOf": [{"additionalProperties": {"type": "integer"}, "type": "object"}]},
            pa.map_(pa.string(), pa.int64()),
        ),
        ({"anyOf": [{"type": "integer"}, {}]}, pa.string()),
        ({"anyOf": [POINT, {"type": "object"}]}, pa.string()),
        ({"$ref": "#/$defs/point"}, POINT_TYPE),
        ({"type": ["array", "null"], "items": {"$ref": "#/$defs/point"}}, pa.list_(POINT_TYPE)),
    ],
    ids=str,
)
def test_types(schema: Any, type: pa.DataType) -> None:
    assert field(schema, **{"$defs": {"point": POINT}}) == type


def test_a_recursive_type_is_a_text() -> None:
    tree = {"properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}}}
    for schema in (tree, {"$id": "http://shop/tree.json", **tree}):
        assert of(schema) == pa.struct([("name", pa.string()), ("children", pa.list_(pa.string()))])
    mutual = {"a": {"properties": {"b": {"$ref": "#/$defs/b"}}}, "b": {"properties": {"a": {"$ref": "#/$defs/a"}}}}
    b = pa.struct([("a", pa.string())])
    assert of({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": mutual}) == pa.struct(
        [("a", pa.struct([("b", b)]))]
    )


@pytest.mark.parametrize("id", ["", "http://shop/order.json"])
def test_references_to_other_subjects(id: str) -> None:
    order = {"$id": id, "properties": {"at": {"$ref": "point.json"}, "by": {"$ref": "people.json#/definitions/one"}}}
    references = {"point.json": POINT, "people.json": {"definitions": {"one": {"type": "integer"}}}}
    given = order if id else {key: value for key, value in order.items() if key != "$id"}
    assert of(given, references=references) == pa.struct([("at", POINT_TYPE), ("by", pa.int64())])
    with pytest.raises(RegistryError, match=r"^schema 0 refers to (http://shop/)?point.json, which does not exist$"):
        of(given)


def test_versions_together() -> None:
    first = {"properties": {"a": {"type": "integer"}, "p": POINT, "gone": {"type": "string"}}}
    second = {"properties": {"a": {"type": "number"}, "p": {"properties": {"z": {"type": "string"}}}}}
    third = {"properties": {"gone": {"type": "array", "items": {"type": "integer"}}}}
    assert of(first, second, third) == pa.struct(
        [("a", pa.float64()), ("p", pa.struct([*POINT_TYPE, pa.field("z", pa.string())])), ("gone", pa.string())]
    )


@pytest.mark.parametrize(
    "schema",
    [[], 7, {"type": 5}, {"type": "object", "properties": 5}, {"properties": {"a": {"allOf": 7}}}, {"$ref": 9}],
)
def test_the_error_names_an_invalid_schema(schema: Any) -> None:
    with pytest.raises(ValueError, match=r"^schema 0 (is not a JSON Schema: |does not describe objects)"):
        of(schema)


def test_the_columns_of_a_schema_that_is_composed() -> None:
    assert of({"type": "object", "allOf": [POINT, {"required": ["x"]}]}) == POINT_TYPE
    assert of({"type": "object", "$ref": "#/$defs/point", "$defs": {"point": POINT}}) == POINT_TYPE


def test_a_schema_without_columns_is_rejected() -> None:
    for schema in (
        {"type": "string"},
        {"type": "object"},
        True,
        {"allOf": [{"required": ["a"]}]},
        {"type": "array", "items": POINT},
    ):
        with pytest.raises(ValueError, match=r"^schema 0 does not describe objects with properties"):
            of(schema)
    with pytest.raises(ValueError, match=r"^schema 7 is not a JSON Schema: "):
        row_type([Registered("{", "schema 7", "JSON")])
    deep = '{"properties": {"a": ' * 5000 + "true" + "}}" * 5000
    with pytest.raises(ValueError, match=r"^schema 7 is not a JSON Schema: "):
        row_type([Registered(deep, "schema 7", "JSON")])


@pytest.mark.parametrize(
    ("more", "type"),
    [
        ({"if": {}, "then": {"properties": {"x": {"minimum": 5}}}}, POINT_TYPE),
        ({"allOf": [{"properties": {"x": True, "y": {"description": "how far"}}}]}, POINT_TYPE),
        ({"oneOf": [{"properties": {"x": {"maximum": 1}}}, {"properties": {"x": {"minimum": 5}}}]}, POINT_TYPE),
        ({"allOf": [{"additionalProperties": {"type": "integer"}, "type": "object"}]}, POINT_TYPE),
        ({"oneOf": [{"properties": {"x": {"type": "string"}}}]}, pa.struct([("x", pa.string()), ("y", pa.int64())])),
    ],
)
def test_a_part_that_only_restricts_a_member_keeps_its_type(more: Any, type: pa.DataType) -> None:
    assert of({**POINT, **more}) == type
    assert (
        field({"type": "object", "properties": {"p": POINT}, "allOf": [{"properties": {"p": more}}]}).field("p").type
        == type
    )


def test_a_restricted_array_keeps_its_items() -> None:
    for more in ({"minItems": 1}, {"type": "array", "minItems": 1}):
        schema = {"properties": {"p": {"type": "array", "items": POINT}}, "allOf": [{"properties": {"p": more}}]}
        assert of(schema).field("p").type == pa.list_(POINT_TYPE)


def test_a_schema_that_doubles_at_each_reference_ends() -> None:
    doubled = {f"d{k}": {"allOf": [{"$ref": f"#/$defs/d{k - 1}"}] * 2} for k in range(1, 40)}
    with pytest.raises(ValueError, match="schema 0 is not a JSON Schema: it has more than 100,000 schemas"):
        of({"properties": {"a": {"$ref": "#/$defs/d39"}}, "$defs": {"d0": {"type": "integer"}, **doubled}})
