"""Derive column types from JSON Schema, for Spark's ``from_json``.

Source: JSON Schema, drafts 4 to 2020-12. A value without one fixed type is its JSON text, as when ``from_json`` reads a STRING.
This applies to several types, to objects without described members, and to recursive references. Formats such as date-time are
texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any, Final
from urllib.parse import urljoin

import pyarrow as pa

from sparkwire.avro.registered import Registered, needing_the_extra
from sparkwire.base.printable import printable
from sparkwire.errors import RegistryError

_TEXT: Final = pa.string()
_SCALARS: Final = {"boolean": pa.bool_(), "integer": pa.int64(), "number": pa.float64(), "null": pa.null()}
_PYTHON: Final = {bool: "boolean", int: "integer", float: "number", type(None): "null"}
_URI: Final = "http://schema/"
"""the base URI of a schema that has none"""


def row_type(schemas: Iterable[Registered]) -> pa.StructType:
    """All fields of these schemas. A field whose types have nothing in common is its JSON text.

    Raises ValueError, which names the schema, if it is not JSON or does not describe objects. Raises RegistryError if a reference
    is missing.
    """
    return reduce(_merged, map(_object, schemas), pa.struct([]))


def _object(schema: Registered) -> pa.StructType:
    with needing_the_extra("a schema of type JSON"):
        from referencing import Resource, exceptions
        from referencing.jsonschema import DRAFT7, EMPTY_REGISTRY

    resources: Any = EMPTY_REGISTRY
    try:
        main = json.loads(schema.text)
        base = (isinstance(main, dict) and main.get("$id")) or _URI
        for name, text in schema.references:
            resource = Resource.from_contents(json.loads(text), DRAFT7)
            resources = resources.with_resource(name, resource).with_resource(urljoin(base, name), resource)
        resources = resources.with_resource(base, Resource.from_contents(main, DRAFT7))
        schema_type = _type({"$ref": base}, resources.resolver(base), ())
    except exceptions.Unresolvable as error:
        raise RegistryError(f"{schema.title} refers to {error.ref.removeprefix(_URI)}, which does not exist") from None
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError(printable(f"{schema.title} is not a JSON Schema: {error}")) from None
    if not pa.types.is_struct(schema_type):
        raise ValueError(printable(f"{schema.title} does not describe objects with properties, which become columns"))
    return schema_type


def _type(schema: Any, resolver: Any, within: tuple[str, ...]) -> pa.DataType:
    if not isinstance(schema, dict):  # true: anything
        return _TEXT
    types = [_own(name, schema, resolver, within) for name in _names(schema)]
    parts = (part for key in ("allOf", "anyOf", "oneOf") for part in schema.get(key, ()))
    types += [_type(part, resolver, within) for part in parts]
    if "$ref" in schema:
        place = urljoin(resolver._base_uri, schema["$ref"])
        target = resolver.lookup(schema["$ref"])
        types.append(_TEXT if place in within else _type(target.contents, target.resolver, (*within, place)))
    return reduce(_merged, types) if types else _TEXT


def _names(schema: dict[str, Any]) -> Iterator[str]:
    """The names of the schema's types, declared or implied."""
    types = schema.get("type", ())
    if types:
        yield from [types] if isinstance(types, str) else types
    elif "properties" in schema or "items" in schema:
        yield "object" if "properties" in schema else "array"
    elif "enum" in schema or "const" in schema:
        yield from dict.fromkeys(_PYTHON.get(type(one), "string") for one in schema.get("enum", [schema.get("const")]))


def _own(name: str, schema: dict[str, Any], resolver: Any, within: tuple[str, ...]) -> pa.DataType:
    if name == "array":
        return pa.list_(_settled(_type(schema.get("items", True), resolver, within)))
    if name != "object":
        return _SCALARS.get(name, _TEXT)
    fields = [
        pa.field(key, _settled(_type(one, resolver, within))) for key, one in schema.get("properties", {}).items()
    ]
    others = schema.get("additionalProperties")
    if fields or not isinstance(others, dict):
        return pa.struct(fields) if fields else _TEXT
    return pa.map_(_TEXT, _settled(_type(others, resolver, within)))


def _settled(type: pa.DataType) -> pa.DataType:
    """The type, with STRING instead of VOID."""
    return _TEXT if pa.types.is_null(type) else type


def _merged(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A type that holds values of both types."""
    kinds = pa.types
    if one == other or kinds.is_null(other):
        return one
    if kinds.is_null(one):
        return other
    if kinds.is_struct(one) and kinds.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            fields[field.name] = _merged(fields.get(field.name, field.type), field.type)
        return pa.struct(list(fields.items()))
    if kinds.is_list(one) and kinds.is_list(other):
        return pa.list_(_merged(one.value_type, other.value_type))
    if kinds.is_map(one) and kinds.is_map(other):
        return pa.map_(_TEXT, _merged(one.item_type, other.item_type))
    numbers = (_SCALARS["integer"], _SCALARS["number"])
    return _SCALARS["number"] if one in numbers and other in numbers else _TEXT
