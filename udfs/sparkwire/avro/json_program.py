"""Avro data as plain JSON, by the writer's schema alone: also what no column can be, a recursive schema.

No tags for the branches of unions. Bytes and fixed are Base64. Logical types are text: dates and times of ISO 8601, decimals,
UUIDs; a duration is `P<months>M<days>DT<seconds>S`. Numbers that JSON has not are the strings "NaN", "Infinity" and
"-Infinity". Names come in the order of the schema; a key that is twice in a map is twice in the text.
"""

from __future__ import annotations

import json
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparkwire.avro import ops
from sparkwire.avro.assembler import Assembler, bounds_of, deferred, least_size
from sparkwire.avro.column_machine import STACK, SchemaProgram
from sparkwire.avro.json_machine import TEXT_SLACK, run_json
from sparkwire.avro.readers import DIGITS, MOST_EMPTY_ITEMS
from sparkwire.avro.schema import Schema
from sparkwire.base.error_codes import OK, TOO_LARGE
from sparkwire.core.column import Spans, bitmap, empty
from sparkwire.errors import SchemaError

_LONGEST_TEXT: Final = (1 << 31) - 1
_SMALL: Final = 4  # fields
_LONGEST_OF_NOTHING: Final = 1 << 20  # [bytes]
_FREE_TEXT: Final = _LONGEST_OF_NOTHING // MOST_EMPTY_ITEMS


class _Writer(Assembler):
    """Writes the program of one schema. A record that is there more than once is a routine: a recursive one calls itself."""

    def __init__(self, shared: frozenset[Schema]) -> None:
        super().__init__()
        self._shared = shared
        self._text = ""
        self._routines: dict[Schema, int] = {}
        self._calls: list[tuple[int, Schema]] = []
        self.truth = [self.span(b"false"), self.span(b"true")][0]

    def datum(self, schema: Schema) -> None:
        self.value(schema)
        self.emit(ops.J_END)
        while left := [record for _, record in self._calls if record not in self._routines]:
            self._routines[left[0]] = self.here
            self._record(left[0])
            self.emit(ops.J_RETURN)
        for call, record in self._calls:
            self.patch(call, 1, self._routines[record])

    @property
    def here(self) -> int:
        """The place of the next instruction: texts that nothing comes between are one."""
        text, self._text = self._text, ""
        if text:
            super().emit(ops.J_SPAN, self.span(text.encode()))
        return super().here

    def text(self, text: str) -> None:
        self._text += text

    def value(self, schema: Schema) -> None:
        if schema.kind == "record":
            if schema in self._shared:
                self._calls.append((self.emit(ops.J_CALL, -1), schema))
            else:
                self._record(schema)
        elif schema.kind == "union":
            self.union(ops.J_UNION, [deferred(self.value, branch) for branch in schema.branches])
        elif schema.items is not None:
            self._collection(schema, schema.items)
        elif schema.kind == "enum":
            spans = [self.span(json.dumps(symbol).encode()) for symbol in schema.symbols]
            self.emit(ops.J_ENUM, spans[0] if spans else 0, len(spans))
        elif schema.kind in ("int", "long"):
            self._number(schema)
        elif schema.kind in ("bytes", "fixed"):
            self._bytes(schema)
        elif schema.kind == "null":
            self.text("null")
        else:
            scalars = {"string": ops.J_TEXT, "boolean": ops.J_BOOLEAN, "float": ops.J_FLOAT, "double": ops.J_DOUBLE}
            self.emit(scalars[schema.kind], self.truth)

    def _record(self, schema: Schema) -> None:
        before = "{"
        for f in schema.fields:
            self.text(f"{before}{json.dumps(f.name)}:")
            self.value(f.schema)
            before = ","
        self.text("}" if schema.fields else "{}")

    def _collection(self, schema: Schema, items: Schema) -> None:
        keyed = schema.kind == "map"
        self.emit(ops.J_LIST, ord("{" if keyed else "["))
        # An item without bytes counts by the text that it becomes.
        price = 1 + least_text(items) // _FREE_TEXT
        block = self.emit(ops.J_BLOCK, least_size(items) + keyed, 0, ord("}" if keyed else "]"), price)
        if keyed:
            self.emit(ops.J_TEXT)
            self.text(":")
        self.value(items)
        self.emit(ops.J_NEXT, block)
        self.patch(block, 2, self.here)

    def _number(self, schema: Schema) -> None:
        lowest, highest, _ = bounds_of(schema)
        digits = {"millis": 3, "micros": 6, "nanos": 9}.get(schema.logical.rpartition("-")[2], 0)
        if schema.logical == "date":
            self.emit(ops.J_DATE, lowest, highest)
        elif schema.logical.startswith("time-"):
            self.emit(ops.J_TIME, lowest, highest, digits)
        elif digits:
            self.emit(ops.J_TIMESTAMP, lowest, highest, digits, int(not schema.logical.startswith("local-")))
        else:
            self.emit(ops.J_NUMBER, lowest, highest)

    def _bytes(self, schema: Schema) -> None:
        fixed = schema.kind == "fixed"
        if schema.logical == "decimal" and schema.precision <= DIGITS:
            op = ops.J_DECIMAL_FIXED if fixed else ops.J_DECIMAL
            self.emit(op, schema.precision, schema.scale, schema.size)
        elif fixed:
            op = {"uuid": ops.J_UUID, "duration": ops.J_DURATION}.get(schema.logical, ops.J_FIXED)
            self.emit(op, schema.size)
        else:
            self.emit(ops.J_BASE64)


def _shared_records(schema: Schema) -> frozenset[Schema]:
    """The records that are there more than once or inside of themselves, but for those that cost less than a call."""
    seen: set[Schema] = set()
    shared: set[Schema] = set()
    left = [schema]
    while left:
        part = left.pop()
        if part in seen:
            shared.add(part)
        else:
            seen.add(part)
            left += part.parts
    return frozenset(part for part in shared if part.kind == "record" and not _is_small(part))


def _is_small(record: Schema) -> bool:
    return len(record.fields) <= _SMALL and not any(f.schema.parts for f in record.fields)


def least_text(schema: Schema, known: dict[Schema, int] | None = None) -> int:
    """Bytes of text, roughly, that a datum becomes whatever its bytes are; a record inside of itself counts as none."""
    known = {} if known is None else known
    if schema.kind == "record":
        if schema not in known:
            known[schema] = 0
            known[schema] = sum(len(f.name) + 4 + least_text(f.schema, known) for f in schema.fields)
        return known[schema]
    return 4 if schema.kind == "null" else 1


def json_program(schema: Schema) -> SchemaProgram:
    """The program that writes data of a schema; SchemaError where a datum of no bytes would be a text of more than 1 MiB."""
    if least_size(schema) == 0 and least_text(schema) > _LONGEST_OF_NOTHING:
        raise SchemaError(f"{schema.title} of no bytes would be a text of more than {_LONGEST_OF_NOTHING >> 20} MiB")
    writer = _Writer(_shared_records(schema))
    writer.datum(schema)
    return writer.program()


def to_json(program: SchemaProgram, spans: Spans) -> tuple[pa.Array, NDArray[np.int8]]:
    """STRING: each datum's text, NULL where it cannot be read; and the codes of `errors`."""
    rows = len(spans.starts)
    offsets, errors = empty(rows + 1, np.int32), empty(rows, np.int8)
    offsets[0] = 0
    stack, needed = np.empty(STACK, np.int64), np.zeros(1, np.int64)
    sizes = spans.sizes.copy()
    out = empty(min(3 * int(np.maximum(sizes, 0).sum()) + TEXT_SLACK, _LONGEST_TEXT), np.uint8)
    too_large: list[int] = []
    first = 0
    while True:
        first = run_json(program, spans.data, spans.starts, sizes, first, offsets, out, stack, errors, needed)
        if first == rows:
            break
        if int(needed[0]) > _LONGEST_TEXT:
            # No Arrow column holds more: the row is NULL, and those after it may fit.
            too_large.append(first)
            sizes[first] = -1
            continue
        larger = empty(min(max(int(needed[0]), 2 * len(out)), _LONGEST_TEXT), np.uint8)
        larger[: offsets[first]] = out[: offsets[first]]
        out = larger
    errors[too_large] = TOO_LARGE
    valid = (errors == OK) & (spans.sizes >= 0)
    buffers = [bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(out[: offsets[rows]])]
    return pa.Array.from_buffers(pa.string(), rows, buffers), errors
