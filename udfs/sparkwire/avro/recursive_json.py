"""Decode data of a recursive schema to JSON. No column can hold them, so fastavro decodes them to Python objects.

A kernel checks each row first, so that fastavro reads only valid data.
"""

from __future__ import annotations

import base64
import io
import json
import math
import uuid
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sparkwire.avro.arrow_columns import decode, plan
from sparkwire.avro.column_json import JsonTexts
from sparkwire.avro.readers import DIGITS
from sparkwire.avro.registered import needing_the_extra
from sparkwire.avro.schema import RecordField, Schema
from sparkwire.avro.texts import UNITS, duration_text, scaled
from sparkwire.base.error_codes import OK, TOO_LARGE
from sparkwire.core.column import Spans, checked_total

MAX_BYTES: Final = 4 << 20
"""a larger datum is TOO_LARGE, because each byte may become 400 bytes of Python objects [bytes]"""
_SPELT: Final = "sparkwire"
"""the logical type of values whose JSON form differs from their Python form"""


class RecursiveJson:
    """Decodes data of one recursive schema to JSON."""

    def __init__(self, schema: Schema) -> None:
        self._names: dict[Schema, str] = {}
        self._schema = self._for_fastavro(schema)
        whole = Schema("record", fields=(RecordField("value", schema),))
        self._check = plan([whole], Schema("record"), as_json=True)

    def _for_fastavro(self, schema: Schema) -> Any:
        if schema in self._names:
            return self._names[schema]
        if schema.kind == "union":
            return [self._for_fastavro(branch) for branch in schema.branches]
        read_as: dict[str, Any] = {"type": "int" if schema.kind == "enum" else schema.kind}
        if schema.kind in ("record", "fixed"):
            read_as["name"] = self._names[schema] = f"Type{len(self._names)}"
        if schema.kind == "record":
            read_as["fields"] = [{"name": f.name, "type": self._for_fastavro(f.schema)} for f in schema.fields]
        elif schema.items is not None:
            read_as["items" if schema.kind == "array" else "values"] = self._for_fastavro(schema.items)
        elif (spell := _spelling(schema)) is not None:
            read_as |= {"size": schema.size, "logicalType": _SPELT, "spell": spell}
        return read_as

    @cached_property
    def _datum_of(self) -> Callable[[bytes], Any]:
        with needing_the_extra("avro_json of a recursive schema"):
            from fastavro import parse_schema, schemaless_reader
            from fastavro.read import LOGICAL_READERS

        for kind in ("int", "long", "float", "double", "bytes", "fixed"):
            LOGICAL_READERS[f"{kind}-{_SPELT}"] = _spelt
        schema = parse_schema(self._schema)
        return lambda data: schemaless_reader(io.BytesIO(data), schema, None)

    def read(self, spans: Spans) -> JsonTexts:
        """Each datum as JSON.

        Raises ColumnTooLargeError if one column cannot hold all texts, and ModuleNotFoundError without fastavro.
        """
        errors = decode(self._check, spans).errors
        errors[(errors == OK) & (spans.sizes > MAX_BYTES)] = TOO_LARGE
        texts, total = list[bytes | None]([None] * len(errors)), 0
        for row in np.flatnonzero((errors == OK) & (spans.sizes >= 0)).tolist():
            start, size = int(spans.starts[row]), int(spans.sizes[row])
            text = _text(self._datum_of(spans.data[start : start + size].tobytes()))
            texts[row], total = text, total + len(text)
            checked_total(total)
        return JsonTexts(pa.array(texts, pa.string()), errors)


def _spelt(value: Any, schema: Any, _: object) -> Any:
    return schema["spell"](value)


def _spelling(schema: Schema) -> Callable[[Any], Any] | None:
    """The function that converts a Python value of the schema to its JSON form; None if it needs no conversion."""
    logical, kind = schema.logical, schema.kind
    if kind == "enum":
        return schema.symbols.__getitem__
    if kind in ("float", "double"):
        return partial(_number, kind == "float")
    if kind in ("int", "long"):
        return partial(_time, logical) if logical else None
    if kind not in ("bytes", "fixed"):
        return None
    if logical == "decimal" and schema.precision <= DIGITS:
        return lambda value: scaled(int.from_bytes(value, "big", signed=True), schema.scale)
    if logical == "uuid":
        return lambda value: str(uuid.UUID(bytes=value))
    return duration_text if logical == "duration" else lambda value: base64.b64encode(value).decode()


def _number(narrow: bool, value: float) -> float | str:
    """The JSON form of a number; a FLOAT (``narrow``) gets only the digits that it needs."""
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return float(str(np.float32(value))) if narrow else value


def _time(logical: str, value: int) -> str:
    """The text of a date, a time of day or a timestamp."""
    if logical == "date":
        return str(np.datetime64(value, "D"))
    text = str(np.int64(value).view(f"datetime64[{UNITS[logical.rpartition('-')[2]]}]"))
    return text.partition("T")[2] if logical.startswith("time-") else text + "Z" * logical.startswith("timestamp-")


def _text(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except RecursionError:  # more levels than Python's call stack allows
        return b"".join(_pieces(value))


def _pieces(value: Any) -> Iterator[bytes]:
    """The JSON of a value in pieces, without recursion."""
    left = [value]  # values, and bytes that are JSON already
    while left:
        part = left.pop()
        if isinstance(part, dict):
            left.append(b"}")
            for k, (key, member) in reversed(list(enumerate(part.items()))):
                left += [member, f"{',' if k else ''}{json.dumps(key, ensure_ascii=False)}:".encode()]
            left.append(b"{")
        elif isinstance(part, list):
            left.append(b"]")
            for k, item in reversed(list(enumerate(part))):
                left += [item, b"," if k else b""]
            left.append(b"[")
        else:
            yield part if isinstance(part, bytes) else json.dumps(part, ensure_ascii=False).encode()
