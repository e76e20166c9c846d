"""Derive column types from JSON Schema, for Spark's ``from_json``.

Source: JSON Schema, drafts 4 to 2020-12. A value without one fixed type is its JSON text, as when ``from_json`` reads a STRING.
This applies to several types, to objects without described members, and to recursive references. Formats such as date-time are
texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, Final
from urllib.parse import urljoin

import pyarrow as pa

from sparkwire.avro.registered import Registered, needing_the_extra
from sparkwire.base.printable import printable
from sparkwire.errors import RegistryError

_TEXT: Final = pa.string()
_OBJECT: Final = pa.struct([])
"""the type of objects without described members"""
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
    if schema_type is None or schema_type == _OBJECT or not pa.types.is_struct(schema_type):
        raise ValueError(printable(f"{schema.title} does not describe objects with properties, which become columns"))
    return schema_type


def _type(schema: Any, resolver: Any, within: tuple[str, ...]) -> pa.DataType | None:
    """The type of a schema's values; None if the schema does not restrict it, such as one with only ``required``."""
    if not isinstance(schema, dict):  # true: anything
        return None

    def of(part: Any) -> pa.DataType | None:
        return _type(part, resolver, within)

    types = [_one_of([_own(name, schema, resolver, within) for name in _names(schema)])]
    types += map(of, schema.get("allOf", ()))
    types += [_one_of([of(part) for part in schema.get(key, ())]) for key in ("anyOf", "oneOf")]
    types += [of(schema[key]) for key in ("then", "else") if key in schema]
    if "$ref" in schema:
        place = urljoin(resolver._base_uri, schema["$ref"])
        target = resolver.lookup(schema["$ref"])
        types.append(_TEXT if place in within else _type(target.contents, target.resolver, (*within, place)))
    return _all_of(types)


def _one_of(types: Sequence[pa.DataType | None]) -> pa.DataType | None:
    """The type of values that fit at least one of several schemas."""
    known = [type for type in types if type is not None]
    if not known or len(known) < len(types):
        return None
    some = [type for type in known if not pa.types.is_null(type)]
    if all(type == _OBJECT for type in some):
        return _OBJECT if some else known[0]
    return reduce(_merged, [_TEXT if type == _OBJECT else type for type in some])


def _all_of(types: Sequence[pa.DataType | None]) -> pa.DataType | None:
    """The type of values that fit all of several schemas. One that only says that they are objects adds nothing to others."""
    known = [type for type in types if type is not None]
    described = [type for type in known if type != _OBJECT]
    return reduce(_merged, described) if described else next(iter(known), None)


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
        return pa.list_(_column_type(_type(schema.get("items", True), resolver, within)))
    if name != "object":
        return _SCALARS.get(name, _TEXT)
    fields = [
        pa.field(key, _column_type(_type(one, resolver, within))) for key, one in schema.get("properties", {}).items()
    ]
    others = schema.get("additionalProperties")
    if fields or not isinstance(others, dict):
        return pa.struct(fields) if fields else _OBJECT
    return pa.map_(_TEXT, _column_type(_type(others, resolver, within)))


def _column_type(type: pa.DataType | None) -> pa.DataType:
    """The type of a column: STRING for values of any type, for VOID, and for objects without described members."""
    return _TEXT if type is None or type == _OBJECT or pa.types.is_null(type) else type


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
