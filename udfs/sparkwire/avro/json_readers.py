"""Decode Avro data of any schema to JSON of any size."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.avro.assembler import least_size, least_text
from sparkwire.avro.column_json import JsonTexts, json_plan, read_json
from sparkwire.avro.recursive_json import RecursiveJson
from sparkwire.avro.schema import Schema
from sparkwire.base.error_codes import TOO_LARGE
from sparkwire.core.column import INT32_MAX, Spans
from sparkwire.errors import ColumnTooLargeError, SchemaError

_MAX_TEXT_OF_EMPTY: Final = 1 << 20  # [bytes]

JsonReader = Callable[[Spans], JsonTexts]


def json_reader(schema: Schema) -> JsonReader:
    """The function that decodes data of a schema to JSON. Raises SchemaError if an empty datum gives more than 1 MiB of JSON."""
    if least_size(schema) == 0 and least_text(schema) > _MAX_TEXT_OF_EMPTY:
        raise SchemaError(f"{schema.title} of no bytes would be a text of more than {_MAX_TEXT_OF_EMPTY >> 20} MiB")
    try:
        read: JsonReader = partial(read_json, json_plan(schema))
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
