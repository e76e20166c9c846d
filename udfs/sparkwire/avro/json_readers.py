"""Decode Avro data of any schema to JSON: first to columns, then these to JSON. Data of recursive schemas go through fastavro.

The JSON has no tags for union branches. Bytes and fixed are Base64. Logical types are text: ISO 8601 dates and times, decimals,
UUIDs; a duration is ``P<months>M<days>DT<seconds>S``. Names are in schema order. If a map has the same key twice, the last one
wins.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.avro.arrow_columns import ColumnPlan, decode, plan
from sparkwire.avro.assembler import least_size, least_text
from sparkwire.avro.recursive_json import RecursiveJson
from sparkwire.avro.schema import Schema
from sparkwire.avro.targets import Target
from sparkwire.avro.texts import JsonTexts, text_column
from sparkwire.base.error_codes import OK, TOO_LARGE
from sparkwire.core.column import INT32_MAX, Spans, masked
from sparkwire.errors import ColumnTooLargeError, SchemaError
from sparkwire.json.columns import base64_of, items_of, joined, number_of, object_of, or_null, string_of

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
