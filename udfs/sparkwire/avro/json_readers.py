"""Decode Avro data of any schema to JSON: first to columns, then these to JSON. Data of recursive schemas go through fastavro.

The JSON has no tags for union branches. Bytes and fixed are Base64. Logical types are text: ISO 8601 dates and times, decimals,
UUIDs; a duration is ``P<months>M<days>DT<seconds>S``. Names are in schema order. If a map has the same key twice, the last one
wins.

No column can hold data of a recursive schema, so fastavro decodes them, value by value. A kernel checks each row first, so that
fastavro reads only valid data. Every type has the logical type ``JSON_TEXT``: fastavro then passes each value to a function that
returns its JSON. So a datum is never in memory as a tree of Python objects.
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
import pyarrow.compute as pc

from sparkwire.avro.arrow_columns import ColumnPlan, decode, plan
from sparkwire.avro.assembler import least_size, least_text
from sparkwire.avro.readers import DIGITS
from sparkwire.avro.schema import PRIMITIVES, RecordField, Schema
from sparkwire.avro.targets import Target
from sparkwire.avro.texts import UNITS, JsonTexts, duration_text, text_column
from sparkwire.base.error_codes import OK, TOO_LARGE
from sparkwire.core.column import INT32_MAX, Spans, checked_total, masked
from sparkwire.errors import ColumnTooLargeError, SchemaError, needing_the_extra
from sparkwire.json.columns import base64_of, items_of, joined, number_of, object_of, or_null, string_of
from sparkwire.json.numbers import plain_text

_MAX_TEXT_OF_EMPTY: Final = 1 << 20  # [bytes]

JsonReader = Callable[[Spans], JsonTexts]


def json_reader(schema: Schema) -> JsonReader:
    """The function that decodes data of a schema to JSON. Raises SchemaError if an empty datum gives more than 1 MiB of JSON."""
    if least_size(schema) == 0 and least_text(schema) > _MAX_TEXT_OF_EMPTY:
        raise SchemaError(f"{schema.title} of no bytes would be a text of more than {_MAX_TEXT_OF_EMPTY >> 20} MiB")
    try:
        read: JsonReader = partial(_read_columns, plan([schema], schema, as_json=True))
    except SchemaError:  # recursive, or with too many columns
        read = RecursiveJson(schema).read
    return partial(_read_parts, read)


def _read_parts(read: JsonReader, spans: Spans) -> JsonTexts:
    """Decode the rows in halves if one column cannot hold all texts. Rows that do not fit are TOO_LARGE."""
    try:
        return read(spans)
    except (ColumnTooLargeError, pa.ArrowCapacityError):
        rows = len(spans.starts)
        if rows == 1:
            return JsonTexts(pa.nulls(1, pa.string()), np.array([TOO_LARGE], np.int8))
    halves = [
        _read_parts(read, Spans(spans.data, spans.starts[part], spans.sizes[part]))
        for part in (slice(rows // 2), slice(rows // 2, rows))
    ]
    errors = np.concatenate([half.errors for half in halves])
    texts = pa.chunked_array([half.texts for half in halves])
    used = 0
    for row, size in enumerate(pc.fill_null(pc.binary_length(texts), 0).to_pylist()):
        if used + size > INT32_MAX:
            errors[row] = TOO_LARGE
        else:
            used += size
    return JsonTexts(pc.if_else(pa.array(errors != TOO_LARGE), texts, None).combine_chunks(), errors)


def _read_columns(plan: ColumnPlan, spans: Spans) -> JsonTexts:
    """Each datum as JSON. Raises ColumnTooLargeError if one column cannot hold all texts."""
    decoded = decode(plan, spans)
    valid = (decoded.errors == OK) & (spans.sizes >= 0)
    texts = or_null(_texts(plan.target, decoded.column))
    return JsonTexts(texts if valid.all() else pc.if_else(pa.array(valid), texts, None), decoded.errors)


def _texts(target: Target, column: pa.Array) -> pa.Array:
    """STRING: the values of a column as JSON. NULL stays NULL."""
    if target.kind == "null":
        return pa.nulls(len(column), pa.string())
    if target.kind == "union":
        members = [_texts(child, column.field(k)) for k, child in enumerate(target.children)]
        return pc.coalesce(pa.nulls(len(column), pa.string()), *members)
    if target.kind == "struct":
        fields = [or_null(_texts(child, column.field(k))) for k, child in enumerate(target.children)]
        names = [field.name for field in target.schema.fields]
        return masked(object_of(dict(zip(names, fields, strict=True)), len(column)), [column])
    if target.kind == "list":
        return masked(items_of(column.offsets, or_null(_texts(target.children[0], column.values))), [column])
    if target.kind == "map":
        values = or_null(_texts(target.children[1], column.items))
        return masked(items_of(column.offsets, joined(string_of(column.keys), ":", values), "{}"), [column])
    return _scalars(target.schema, column)


def _scalars(schema: Schema, column: pa.Array) -> pa.Array:
    if pa.types.is_string(column.type):
        return string_of(column)
    if pa.types.is_binary(column.type) and schema.logical not in ("uuid", "duration"):
        return base64_of(column)
    if schema.logical:
        return joined('"', text_column(schema, column), '"')
    return number_of(column)  # or true and false


# -- data of recursive schemas

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
