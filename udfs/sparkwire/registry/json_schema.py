"""Derive column types from JSON Schema, for Spark's ``from_json``.

Source: JSON Schema, drafts 4 to 2020-12. A value without one fixed type is its JSON text, as when ``from_json`` reads a STRING.
This applies to several types, to objects without described members, and to recursive references. Formats such as date-time are
texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, Final
from urllib.parse import urljoin

import pyarrow as pa

from sparkwire.avro.schema_source import Registered
from sparkwire.base.printable import printable, value_error
from sparkwire.errors import RegistryError, needing_the_extra
from sparkwire.json.types import wider

_TEXT: Final = pa.string()
_OBJECT: Final = pa.struct([])
"""the type of objects without described members"""
_ANY: Final = pa.month_day_nano_interval()
"""stands for the type of a schema that does not restrict it, such as one with only ``required``"""
_MOST: Final = 100_000
"""schemas that one schema may have, counted as often as it refers to them"""
_SCALARS: Final = {"boolean": pa.bool_(), "integer": pa.int64(), "number": pa.float64(), "null": pa.null()}
_PYTHON: Final = {bool: "boolean", int: "integer", float: "number", type(None): "null"}
_URI: Final = "http://schema/"
"""the base URI of a schema that has none"""


def row_type(schemas: Iterable[Registered]) -> pa.StructType:
    """All fields of these schemas. A field whose types have nothing in common is its JSON text.

    Raises ValueError, which names the schema, if it is not JSON or does not describe objects. Raises RegistryError if a reference
    is missing.
    """
    types = [*map(_object, schemas)]
    return reduce(_either, types) if types else pa.struct([])


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
        schema_type = _resolved(_Reader().type({"$ref": base}, resources.resolver(base), ()))
    except exceptions.Unresolvable as error:
        name = error.ref.removeprefix(_URI) or "an anchor"
        raise RegistryError(printable(f"{schema.title} refers to {name}, which does not exist")) from None
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise value_error(f"{schema.title} is not a JSON Schema: {error}") from None
    if not pa.types.is_struct(schema_type):
        raise value_error(f"{schema.title} does not describe objects with properties, which become columns")
    return schema_type


class _Reader:
    """Reads the types of one schema's values, see `_ANY` and `_OBJECT`."""

    def __init__(self) -> None:
        self._read = 0

    def type(self, schema: Any, resolver: Any, within: tuple[str, ...]) -> pa.DataType:
        self._read += 1
        if self._read > _MOST:
            raise ValueError(f"it has more than {_MOST:,} schemas, because it refers to some of them many times")
        if not isinstance(schema, dict):  # true: anything
            return _ANY

        def of(part: Any) -> pa.DataType:
            return self.type(part, resolver, within)

        types = [_one_of([self._own(name, schema, of) for name in _names(schema)])]
        types += map(of, schema.get("allOf", ()))
        types += [_one_of([of(part) for part in schema.get(key, ())]) for key in ("anyOf", "oneOf")]
        types += [of(schema[key]) for key in ("then", "else") if key in schema]
        if "$ref" in schema:
            place = urljoin(resolver._base_uri, schema["$ref"])
            target = resolver.lookup(schema["$ref"])
            is_recursive = place in within
            types.append(_TEXT if is_recursive else self.type(target.contents, target.resolver, (*within, place)))
        return reduce(_both, types)

    def _own(self, name: str, schema: dict[str, Any], of: Callable[[Any], pa.DataType]) -> pa.DataType:
        if name == "array":
            return pa.list_(of(schema.get("items", True)))
        if name != "object":
            return _SCALARS.get(name, _TEXT)
        fields = [pa.field(key, of(one)) for key, one in schema.get("properties", {}).items()]
        others = schema.get("additionalProperties")
        if fields or not isinstance(others, dict):
            return pa.struct(fields) if fields else _OBJECT
        return pa.map_(_TEXT, of(others))


def _names(schema: dict[str, Any]) -> Iterator[str]:
    """The names of the schema's types, declared or implied."""
    types = schema.get("type", ())
    if types:
        yield from [types] if isinstance(types, str) else types
    elif "properties" in schema or "items" in schema:
        yield "object" if "properties" in schema else "array"
    elif "enum" in schema or "const" in schema:
        yield from dict.fromkeys(_PYTHON.get(type(one), "string") for one in schema.get("enum", [schema.get("const")]))


def _one_of(types: Sequence[pa.DataType]) -> pa.DataType:
    """The type of values that fit at least one of several schemas."""
    return reduce(_either, types) if types else _ANY


def _either(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A type that holds the values of both types."""
    if _ANY in (one, other):
        return _ANY
    return _merged(one, other, _either)


def _both(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type of values that fit two schemas. One that only says that they are objects adds nothing to the other."""
    for this, that in ((one, other), (other, one)):
        if this in (_ANY, _OBJECT) and that != _ANY:
            return that
        if pa.types.is_map(this) and pa.types.is_struct(that):
            return that
    return _merged(one, other, _both)


def _merged(
    one: pa.DataType, other: pa.DataType, inner: Callable[[pa.DataType, pa.DataType], pa.DataType]
) -> pa.DataType:
    """The type of two types; ``inner`` is the same for those of members and items. TEXT if they have nothing in common."""
    kinds = pa.types
    if one == other or kinds.is_null(other):
        return one
    if kinds.is_null(one):
        return other
    if _OBJECT in (one, other):
        return _TEXT
    if kinds.is_struct(one) and kinds.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            fields[field.name] = inner(fields.get(field.name, field.type), field.type)
        return pa.struct(list(fields.items()))
    if kinds.is_list(one) and kinds.is_list(other):
        return pa.list_(inner(one.value_type, other.value_type))
    if kinds.is_map(one) and kinds.is_map(other):
        return pa.map_(_TEXT, inner(one.item_type, other.item_type))
    return wider(one, other, checked=True) or _TEXT


def _resolved(type: pa.DataType) -> pa.DataType:
    """The type of a column: STRING for values of any type, for VOID, and for objects without described members."""
    kinds = pa.types
    if type in (_ANY, _OBJECT) or kinds.is_null(type):
        return _TEXT
    if kinds.is_struct(type):
        return pa.struct([pa.field(field.name, _resolved(field.type)) for field in type])
    if kinds.is_list(type):
        return pa.list_(_resolved(type.value_type))
    return pa.map_(_TEXT, _resolved(type.item_type)) if kinds.is_map(type) else type
