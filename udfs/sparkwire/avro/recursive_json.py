"""Decode data of a recursive schema to JSON. No column can hold them, so fastavro decodes them, value by value.

A kernel checks each row first, so that fastavro reads only valid data. Every type has the logical type ``JSON_TEXT``: fastavro
then passes each value to a function, which returns its JSON. So a datum is never in memory as a tree of Python objects.
"""

from __future__ import annotations

import base64
import io
import json
import math
import uuid
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sparkwire.avro.arrow_columns import decode, plan
from sparkwire.avro.readers import DIGITS
from sparkwire.avro.registered import needing_the_extra
from sparkwire.avro.schema import PRIMITIVES, RecordField, Schema
from sparkwire.avro.texts import UNITS, JsonTexts, duration_text
from sparkwire.base.error_codes import OK, TOO_LARGE
from sparkwire.core.column import Spans, checked_total
from sparkwire.json.numbers import plain_text

MAX_BYTES: Final = 4 << 20
"""a larger datum is TOO_LARGE, because each byte takes the time of a Python call [bytes]"""
MAX_TEXT: Final = 128 << 20
"""a datum with more JSON is TOO_LARGE, because each level copies the JSON of the levels in it [characters]"""
JSON_TEXT: Final = "sparkwire"


class _TooLong(Exception):
    """The JSON of a datum exceeds ``MAX_TEXT``."""


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
        kind = "int" if schema.kind == "enum" else schema.kind
        read_as: dict[str, Any] = {"type": kind, "logicalType": JSON_TEXT, JSON_TEXT: _writer(schema)}
        if kind in ("record", "fixed"):
            self._names[schema] = f"Type{len(self._names)}"
            read_as |= {"name": self._names[schema], "size": schema.size}
        if kind == "record":
            read_as["fields"] = [{"name": f.name, "type": self._for_fastavro(f.schema)} for f in schema.fields]
        elif schema.items is not None:
            read_as["items" if kind == "array" else "values"] = self._for_fastavro(schema.items)
        return read_as

    @cached_property
    def _text_of(self) -> Callable[[bytes], str]:
        with needing_the_extra("avro_json of a recursive schema"):
            from fastavro import parse_schema, schemaless_reader
            from fastavro.read import LOGICAL_READERS

        for kind in (*PRIMITIVES, "fixed", "record", "array", "map"):
            LOGICAL_READERS[f"{kind}-{JSON_TEXT}"] = _text
        schema = parse_schema(self._schema)
        return lambda data: str(schemaless_reader(io.BytesIO(data), schema, None))

    def read(self, spans: Spans) -> JsonTexts:
        """Each datum as JSON.

        Raises ColumnTooLargeError if one column cannot hold all texts, and ModuleNotFoundError without fastavro.
        """
        errors = decode(self._check, spans).errors
        errors[(errors == OK) & (spans.sizes > MAX_BYTES)] = TOO_LARGE
        texts, total = list[bytes | None]([None] * len(errors)), 0
        for row in np.flatnonzero((errors == OK) & (spans.sizes >= 0)).tolist():
            start, size = int(spans.starts[row]), int(spans.sizes[row])
            try:
                text = self._text_of(spans.data[start : start + size].tobytes()).encode()
            except _TooLong:
                errors[row] = TOO_LARGE
                continue
            texts[row], total = text, total + len(text)
            checked_total(total)
        return JsonTexts(pa.array(texts, pa.string()), errors)


def _text(value: Any, schema: Any, _: object) -> str:
    text: str = schema[JSON_TEXT](value)
    if len(text) > MAX_TEXT:
        raise _TooLong
    return text


_quoted: Final = json.JSONEncoder(ensure_ascii=False).encode


def _writer(schema: Schema) -> Callable[[Any], str]:
    """The function that makes JSON of a value; the values inside of it are JSON already."""
    match schema.kind:
        case "record":
            record = "{" + ",".join(f'"{field.name}":%s' for field in schema.fields) + "}"
            return lambda value: record % (*value.values(),)
        case "array":
            return lambda value: f"[{','.join(value)}]"
        case "map":
            return lambda value: f"{{{','.join(f'{_quoted(key)}:{text}' for key, text in value.items())}}}"
        case "enum":
            return [_quoted(symbol) for symbol in schema.symbols].__getitem__
        case "float" | "double":
            return partial(_number, schema.kind == "float")
        case "int" | "long":
            return partial(_time, schema.logical) if schema.logical else str
        case "bytes" | "fixed":
            return _bytes_writer(schema)
        case "boolean":
            return ("false", "true").__getitem__
        case "string":
            return _quoted
    return lambda _: "null"


def _bytes_writer(schema: Schema) -> Callable[[Any], str]:
    if schema.logical == "decimal" and schema.precision <= DIGITS:
        return lambda value: f'"{plain_text(int.from_bytes(value, "big", signed=True), schema.scale)}"'
    if schema.logical == "uuid":
        return lambda value: f'"{uuid.UUID(bytes=value)}"'
    if schema.logical == "duration":
        return lambda value: f'"{duration_text(value)}"'
    return lambda value: f'"{base64.b64encode(value).decode()}"'


def _number(narrow: bool, value: float) -> str:
    """A number as JSON; a FLOAT (``narrow``) gets only the digits that it needs."""
    if not math.isfinite(value):
        return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'
    return repr(float(str(np.float32(value)))) if narrow else repr(value)


def _time(logical: str, value: int) -> str:
    """The text of a date, a time of day or a timestamp."""
    if logical == "date":
        return f'"{np.datetime64(value, "D")}"'
    text = str(np.int64(value).view(f"datetime64[{UNITS[logical.rpartition('-')[2]]}]"))
    text = text.partition("T")[2] if logical.startswith("time-") else text + "Z" * logical.startswith("timestamp-")
    return f'"{text}"'
