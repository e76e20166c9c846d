"""Parse Avro schemas from JSON and resolve all names.

Logical types that Avro does not define, or that are invalid by its rules, are ignored.
Source: Apache Avro 1.12, specification.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sparkwire.errors import SchemaError

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMED: Final = ("record", "enum", "fixed")

_LOGICAL: Final[Mapping[str, tuple[str, ...]]] = {
    "int": ("date", "time-millis"),
    "long": (
        "time-micros",
        "timestamp-millis",
        "timestamp-micros",
        "timestamp-nanos",
        "local-timestamp-millis",
        "local-timestamp-micros",
        "local-timestamp-nanos",
    ),
    "string": ("uuid",),
    "bytes": ("decimal",),
    "fixed": ("decimal", "duration", "uuid"),
}
MAX_LEVELS: Final = 64
"""maximum number of nested types, because functions over a schema are recursive"""
UNFRAMED: Final = -1
_FIXED_SIZES: Final = {"duration": 12, "uuid": 16}  # [bytes]
TOO_DEEP: Final = (
    f"an Avro schema has at most {MAX_LEVELS} types within each other, and this has more: read a part of it"
)


@dataclass(eq=False)
class Schema:
    """A type. The types of a recursive schema refer to each other."""

    kind: str
    """one of ``PRIMITIVES``, record, enum, fixed, array, map, union; ``mixed`` for versions that only a text can hold"""
    name: str = ""
    """the name with its namespace, for record, enum and fixed"""
    aliases: tuple[str, ...] = ()
    """full names"""
    fields: tuple[RecordField, ...] = ()
    symbols: tuple[str, ...] = ()
    default: str | None = None
    """for an enum: the replacement of an unknown symbol"""
    items: Schema | None = None
    """the type of an array's items or of a map's values"""
    branches: tuple[Schema, ...] = ()
    size: int = 0
    """for a fixed [bytes]; ``UNFRAMED`` for bytes that are the whole datum, as Confluent writes them"""
    logical: str = ""
    precision: int = 0
    scale: int = 0
    combined: bool = False
    """whether it combines several versions: it holds the values of each, and numbers exactly"""
    levels: int = 0
    """number of nested types, including itself; a recursive type counts once"""

    @property
    def parts(self) -> tuple[Schema, ...]:
        """The types that it contains directly."""
        return (*self.branches, *(f.schema for f in self.fields), *([self.items] if self.items else ()))

    @property
    def simple_name(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(".")[2]

    @property
    def title(self) -> str:
        """Its name in an error message."""
        return f"{self.kind} {self.name}" if self.name else self.kind


@dataclass(eq=False)
class RecordField:
    """A field of a record."""

    name: str
    schema: Schema
    aliases: tuple[str, ...] = ()
    has_default: bool = False
    default: Any = None
    """the value in JSON"""
    default_schema: Schema | None = None
    """the schema of the default, if it is that of another version"""


@dataclass
class _Names:
    """The named types in the part of a schema before the current position."""

    defined: dict[str, Schema] = field(default_factory=dict)


def parse(schema: Any) -> Schema:
    """Parse a JSON text, or the result of ``json.loads``. Raises SchemaError if it is not a valid schema."""
    return _parse(loaded(schema), "", _Names(), "the schema")


def loaded(schema: Any) -> Any:
    """The JSON value of a schema, which may be a text. The bare name of a primitive type is also a schema.

    Raises SchemaError if the text is not JSON or not valid Unicode.
    """
    try:
        document = json.loads(schema) if isinstance(schema, str) and schema not in PRIMITIVES else schema
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError as e:
        raise SchemaError(
            f"an Avro schema is Unicode, and this has half a surrogate pair: {e.object[e.start]!a}"
        ) from None
    except (ValueError, TypeError) as e:
        raise SchemaError(f"invalid Avro schema (not valid JSON): {e}") from None
    except RecursionError:
        raise SchemaError(TOO_DEEP) from None
    return document


def text_of(schema: Any) -> str:
    """The schema as JSON in one line. Raises SchemaError if it is invalid."""
    parse(schema)
    return json.dumps(loaded(schema))


def _parse(json_type: Any, namespace: str, names: _Names, where: str, level: int = 1) -> Schema:
    schema = _any(json_type, namespace, names, where, level)
    schema.levels = schema.levels or 1 + max((part.levels for part in schema.parts), default=0)
    if level + schema.levels > MAX_LEVELS + 1:
        raise SchemaError(TOO_DEEP)
    return schema


def _any(json_type: Any, namespace: str, names: _Names, where: str, level: int) -> Schema:
    if level > MAX_LEVELS:
        raise SchemaError(TOO_DEEP)
    if isinstance(json_type, str):
        return _reference(json_type, namespace, names, where)
    if isinstance(json_type, list):
        return _union(json_type, namespace, names, where, level)
    if not isinstance(json_type, dict) or "type" not in json_type:
        raise SchemaError(f"{where} is no Avro type: {json.dumps(json_type)[:80]}")
    kind = json_type["type"]
    if not isinstance(kind, str):
        return _any(kind, namespace, names, where, level + 1)
    if kind in NAMED or kind == "error":
        return _named("record" if kind == "error" else kind, json_type, namespace, names, where, level)
    if kind in ("array", "map"):
        part = "items" if kind == "array" else "values"
        if part not in json_type:
            raise SchemaError(f"{where} is {kind} without {part!r}")
        return Schema(kind, items=_parse(json_type[part], namespace, names, f"{part} of {where}", level + 1))
    if kind not in PRIMITIVES:
        return _reference(kind, namespace, names, where)
    return _with_logical(Schema(kind), json_type)


def _reference(name: str, namespace: str, names: _Names, where: str) -> Schema:
    if name in PRIMITIVES:
        return Schema(name)
    schema = names.defined.get(full_name(name, namespace)) or names.defined.get(name)
    if schema is None:
        raise SchemaError(
            f"{where} has the type {name!r}, which Avro does not know and the schema does not define before"
        )
    return schema


def _union(branches: list[Any], namespace: str, names: _Names, where: str, level: int) -> Schema:
    parsed = tuple(_parse(b, namespace, names, f"branch {k} of {where}", level + 1) for k, b in enumerate(branches))
    kinds = [schema.name or schema.kind for schema in parsed]
    if not kinds or "union" in kinds or len(set(kinds)) < len(kinds):
        raise SchemaError(
            f"{where} is a union of {', '.join(kinds) or 'nothing'}: it takes each type once, and no unions"
        )
    return Schema("union", branches=parsed)


def full_name(name: str, namespace: str) -> str:
    """The full name of a name used within a namespace."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _named(kind: str, declared: Mapping[str, Any], namespace: str, names: _Names, where: str, level: int) -> Schema:
    name = declared.get("name")
    if not isinstance(name, str) or not all(map(_is_name, name.split("."))):
        raise SchemaError(f"{where} is {kind} with the name {name!r}: letters, digits and _ make one")
    full = full_name(name, declared.get("namespace", namespace) or "")
    if full in names.defined:
        raise SchemaError(f"{full} is defined twice")
    inner = full.rpartition(".")[0]
    schema = Schema(kind, full, tuple(full_name(alias, inner) for alias in _aliases(declared, full)))
    names.defined[full] = schema
    if kind == "record":
        schema.fields = _fields(declared, inner, names, full, level)
    elif kind == "enum":
        schema.symbols, schema.default = _symbols(declared, full)
    else:
        schema.size = declared.get("size", -1)
        if type(schema.size) is not int or not 0 <= schema.size < 1 << 31:
            raise SchemaError(f"{full} is fixed with the size {declared.get('size')!r}: it takes a number of bytes")
    return _with_logical(schema, declared)


def _is_name(part: str) -> bool:
    """Whether a part of a name has only letters, digits and _ of any language, as Avro's Java allows; no digit first."""
    if part.isascii():
        return part.isidentifier()
    return all(c == "_" or c.isalpha() or (k > 0 and c.isdecimal()) for k, c in enumerate(part))


def _fields(
    declared: Mapping[str, Any], namespace: str, names: _Names, record: str, level: int
) -> tuple[RecordField, ...]:
    fields: dict[str, RecordField] = {}
    if not isinstance(declared.get("fields"), list):
        raise SchemaError(f"{record} is record without a list of fields")
    for item in declared["fields"]:
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str) or not _is_name(name) or name in fields or "type" not in item:
            raise SchemaError(f"{record} has a field without a type or a unique name: {json.dumps(item)[:80]}")
        schema = _parse(item["type"], namespace, names, f"field {record}.{name}", level + 1)
        fields[name] = RecordField(
            name, schema, _aliases(item, f"field {record}.{name}"), "default" in item, item.get("default")
        )
    return tuple(fields.values())


def _aliases(declared: Mapping[str, Any], where: str) -> tuple[str, ...]:
    aliases = declared.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise SchemaError(f"{where} has the aliases {json.dumps(aliases)[:80]}: it takes a list of names")
    return tuple(aliases)


def _symbols(declared: Mapping[str, Any], enum: str) -> tuple[tuple[str, ...], str | None]:
    symbols = declared.get("symbols")
    if (
        not isinstance(symbols, list)
        or not all(isinstance(s, str) for s in symbols)
        or len(set(symbols)) < len(symbols)
    ):
        raise SchemaError(f"enum {enum}: 'symbols' must be a list of unique strings")
    default = declared.get("default")
    if default is not None and default not in symbols:
        raise SchemaError(f"{enum} has the default {default!r}, which is none of its symbols")
    return tuple(symbols), default


def _with_logical(schema: Schema, declared: Mapping[str, Any]) -> Schema:
    logical = declared.get("logicalType")
    if logical not in _LOGICAL.get(schema.kind, ()):
        return schema
    if schema.kind == "fixed" and schema.size != _FIXED_SIZES.get(logical, schema.size):
        return schema
    if logical == "decimal":
        precision, scale = declared.get("precision"), declared.get("scale", 0)
        if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision < 1:
            return schema
        # The number of digits that always fit into so many bytes; one bit is the sign.
        if schema.kind == "fixed" and precision > math.floor(max(8 * schema.size - 1, 0) * math.log10(2)):
            return schema
        schema.precision, schema.scale = precision, scale
    schema.logical = logical
    return schema
