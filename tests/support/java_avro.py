"""Java's texts of the payloads in Databus's golden files: a small Avro reader, and `GenericRecord.toString`.

It supports only the types of the golden schemas: records of long, int, double, boolean, string, bytes and unions with null.
"""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from typing import Any


def record_text(schema: str, payload: bytes) -> str | None:
    """The record as Java prints it; None if the payload cannot be read."""
    fields = json.loads(schema)["fields"]
    try:
        at, shown = 0, []
        for field in fields:
            text, at = _text(field["type"], payload, at)
            shown.append(f'"{field["name"]}": {text}')
    except (IndexError, ValueError, struct.error):
        return None
    return "{" + ", ".join(shown) + "}"


def _text(type: Any, data: bytes, at: int) -> tuple[str, int]:
    if isinstance(type, list):
        branch, at = _long(data, at)
        return _text(type[branch], data, at)
    if type == "null":
        return "null", at
    if type in ("long", "int"):
        number, at = _long(data, at)
        return str(number), at
    if type == "boolean":
        return ("true" if data[at] else "false"), at + 1
    if type == "double":
        return java_double(struct.unpack_from("<d", data, at)[0]), at + 8
    size, at = _long(data, at)
    if size < 0 or at + size > len(data):
        raise ValueError("beyond the payload")
    content = data[at : at + size]
    if type == "string":
        return _quoted(content.decode(errors="replace")), at + size
    return '{"bytes": ' + _quoted(content.decode("latin-1")) + "}", at + size


def _long(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at


def _quoted(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character)
    code = ord(character)
    if short is None and (code <= 0x1F or 0x7F <= code <= 0x9F or 0x2000 <= code <= 0x20FF):
        return f"\\u{code:04X}"
    return short or character


def java_double(number: float) -> str:
    """The result of `Double.toString`."""
    if number != number or number in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(number)]
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        plain = format(Decimal(repr(number)), "f")
        return plain if "." in plain else plain + ".0"
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    assert isinstance(exponent, int)
    shown = "".join(map(str, digits)).rstrip("0") or "0"
    power = exponent + len(digits) - 1
    return f"{'-' if sign else ''}{shown[0]}.{shown[1:] or '0'}E{power}"
