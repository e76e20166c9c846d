"""Convert data from Avro's JSON encoding, ``{"note": {"string": "x"}}``, to Avro's binary encoding.

Apicurio's serializers write JSON if configured so, and mark it in a header. This is rare, so the code is plain Python and
converts one value at a time.

Source: Apache Avro 1.12, "JSON Encoding" and "Binary Encoding"; ``JsonEncoder`` of Avro's Java.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, Final

from sparkwire.avro.schema import Schema
from sparkwire.base.error_codes import BAD_FIELD, BAD_JSON, ERRORS

_INTEGERS: Final = {"int": 31, "long": 63}
_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")


def binary_of(text: bytes, schema: Schema) -> tuple[bytes | None, str | None]:
    """The datum in binary encoding, or the error if the text is not a datum of the schema."""
    try:
        value = json.loads(text.decode())
    except (ValueError, RecursionError):
        return None, ERRORS[BAD_JSON]
    out = bytearray()
    try:
        _write(schema, value, out)
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
        return None, ERRORS[BAD_FIELD]
    return bytes(out), None


def _write(schema: Schema, value: Any, out: bytearray) -> None:
    match schema.kind:
        case "null":
            _expect(value is None)
        case "boolean":
            _expect(isinstance(value, bool))
            out.append(value)
        case "int" | "long":
            _expect(isinstance(value, int) and not isinstance(value, bool))
            _expect(-(1 << _INTEGERS[schema.kind]) <= value < 1 << _INTEGERS[schema.kind])
            _write_long(value, out)
        case "float" | "double":
            _expect(value in _NOT_FINITE if isinstance(value, str) else not isinstance(value, bool))
            out += struct.pack("<f" if schema.kind == "float" else "<d", float(value))
        case "string":
            _write_bytes(value.encode(), out)
        case "bytes":
            _write_bytes(value.encode("iso-8859-1"), out)
        case "fixed":
            data = value.encode("iso-8859-1")
            _expect(len(data) == schema.size)
            out += data
        case "enum":
            _write_long(schema.symbols.index(value), out)
        case "record":
            for field in schema.fields:
                _write(field.schema, value[field.name], out)
        case "array":
            _expect(isinstance(value, list))
            _write_items(schema, value, out)
        case "map":
            _expect(isinstance(value, Mapping))
            _write_items(schema, value, out)
        case "union":
            _write_branch(schema, value, out)


def _write_branch(schema: Schema, value: Any, out: bytearray) -> None:
    """Write a union's value: null, or an object whose only key is the name of the type."""
    name, inside = ("null", None) if value is None else _only(value)
    names = [branch.name or branch.kind for branch in schema.branches]
    branch = names.index(name)
    _write_long(branch, out)
    _write(schema.branches[branch], inside, out)


def _only(value: Mapping[str, Any]) -> tuple[str, Any]:
    [(name, inside)] = value.items()
    return name, inside


def _write_items(schema: Schema, values: Any, out: bytearray) -> None:
    assert schema.items is not None
    if values:
        _write_long(len(values), out)
    for item in values:
        if schema.kind == "map":
            _write_bytes(item.encode(), out)
        _write(schema.items, values[item] if schema.kind == "map" else item, out)
    _write_long(0, out)


def _write_bytes(data: bytes, out: bytearray) -> None:
    _write_long(len(data), out)
    out += data


def _write_long(value: int, out: bytearray) -> None:
    """Write a zigzag varint: seven bits for each byte, the lowest bits first."""
    rest = (value << 1) ^ (value >> 63)
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)


def _expect(holds: bool) -> None:
    if not holds:
        raise ValueError("no datum of the schema")
