"""Decode Avro data to columns, and convert these to JSON.

The JSON has no tags for union branches. Bytes and fixed are Base64. Logical types are text: ISO 8601 dates and times, decimals,
UUIDs; a duration is ``P<months>M<days>DT<seconds>S``. Names are in schema order. If a map has the same key twice, the last one
wins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparkwire.avro.arrow_columns import ColumnPlan, decode, plan
from sparkwire.avro.schema import Schema
from sparkwire.avro.targets import Target
from sparkwire.avro.texts import text_column
from sparkwire.base.error_codes import OK
from sparkwire.core.column import Spans, masked
from sparkwire.core.json_columns import base64_of, items_of, joined, number_of, object_of, or_null, string_of


class JsonTexts(NamedTuple):
    """Data as JSON, with the errors of the rows that could not be read."""

    texts: pa.Array
    """STRING, NULL if the row is NULL or cannot be read"""
    errors: NDArray[np.int8]
    """codes of `errors`"""


def json_plan(schema: Schema) -> ColumnPlan:
    """The plan to decode data of a schema for `read_json`. Raises SchemaError if no column can hold them."""
    return plan([schema], schema, as_json=True)


def read_json(plan: ColumnPlan, spans: Spans) -> JsonTexts:
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
