"""Rows of Avro data to Arrow columns: a plan for the schemas, buffers that grow, one run of the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparkwire.avro import ops
from sparkwire.avro.column_machine import NOTE, STACK, Memory, SchemaProgram, run
from sparkwire.avro.program import Resolver
from sparkwire.avro.schema import Schema
from sparkwire.avro.targets import Slots, Target, paths_of, target_of
from sparkwire.avro.texts import decimal_texts, text_column
from sparkwire.base.error_codes import BAD_FIELD, ERRORS, OK, TOO_LARGE
from sparkwire.core.column import INT32_MAX, Spans, bitmap, empty, from_codes
from sparkwire.core.repeated_keys import without_repeats
from sparkwire.kernels import COPY_SLACK
from sparkwire.kernels.load import Bools

_LEAST_ROOM: Final = 1024  # [bytes or items] that a buffer begins with
_LEAST_NOTES: Final = 64
_ALIGNED: Final = 64  # [bytes] as Arrow likes its buffers
_SPARE: Final = 1 << 26  # [bytes] that buffers begin with at most, beyond what the data need


_MOST_NAMED: Final = 5
"""fields that a row's error names"""


class ColumnPlan(NamedTuple):
    """How data of some schemas becomes one column."""

    target: Target
    slots: Slots
    program: SchemaProgram
    entries: NDArray[np.int32]
    """where the program of each writer's schema begins; then that of a NULL"""
    nothing: int
    """where the program of a NULL begins"""
    places: Mapping[int, Target]
    """what each instruction reads"""
    paths: Mapping[Target, str]
    """the field of each target"""


class Decoded(NamedTuple):
    """A column, and what is wrong with the rows that could not be read, or not as a whole."""

    column: pa.Array
    """NULL where the row is NULL or cannot be read, and where a value of it cannot"""
    errors: NDArray[np.int8]
    """codes of `errors`: the first of each row"""
    bad_rows: NDArray[np.int64]
    """the rows of the values that are BAD_FIELD, ascending"""
    bad_fields: Sequence[str]
    """their fields"""

    @property
    def reasons(self) -> pa.Array:
        """STRING: the code of each row, and which fields are BAD_FIELD: ``BAD_FIELD: total, lines[].price``."""
        codes = from_codes(self.errors, ERRORS)
        named: dict[int, dict[str, None]] = {}
        for row, field in zip(self.bad_rows.tolist(), self.bad_fields, strict=True):
            if field:
                named.setdefault(row, {})[field] = None
        if not named:
            return codes
        texts = np.full(len(codes), None, object)
        for row, fields in named.items():
            more = ", …" if len(fields) > _MOST_NAMED else ""
            texts[row] = f"{ERRORS[BAD_FIELD]}: {', '.join(list(fields)[:_MOST_NAMED])}{more}"
        first = pa.array(self.errors == BAD_FIELD)
        return pc.if_else(first, pc.coalesce(pa.array(texts, pa.string()), codes), codes)


def plan(
    writers: Sequence[Schema],
    reader: Schema,
    *,
    strict: bool = True,
    names_as_written: bool = False,
    as_json: bool = False,
) -> ColumnPlan:
    """A plan to read data of any of the writers' schemas by the reader's.

    Parameters
    ----------
    strict
        whether it is a SchemaError that one cannot be read by the other; else the rows that have it are ``BAD_FIELD``
    names_as_written
        whether fields of a record keep names that differ in case alone
    as_json
        whether the column is to become JSON, and keeps what only JSON shows: see `Slots`

    Raises
    ------
    SchemaError
        where no column can be made of the reader's schema.
    """
    slots = Slots(as_written=names_as_written, as_json=as_json)
    target = target_of(reader, slots)
    resolver = Resolver(slots, strict)
    entries = [resolver.datum(writer, target) for writer in writers]
    nothing = resolver.here
    resolver.nothing(target)
    resolver.emit(ops.END)
    program = resolver.program()
    entered = np.array([*entries, nothing], np.int32)
    return ColumnPlan(target, slots, program, entered, nothing, resolver.places, dict(paths_of(target)))


def check_defaults(reader: Schema) -> None:
    """SchemaError where no column can be made of a reader's schema, or a default of its fields is none."""
    slots = Slots()
    resolver = Resolver(slots, True)
    for target, _ in paths_of(target_of(reader, slots)):
        if target.kind == "struct":
            for field, child in zip(target.schema.fields, target.children, strict=True):
                if field.has_default:
                    resolver.default(field, child)


def decode(plan: ColumnPlan, spans: Spans, chosen: NDArray[np.int32] | None = None) -> Decoded:
    """Read every row, by the program of the schema of that number; by the first one where ``chosen`` is None.

    A row of schema -1 is NULL.
    """
    rows = len(spans.starts)
    errors = empty(rows, np.int8)
    buffers = _Buffers(plan, rows, int(np.maximum(spans.sizes, 0).sum()))
    _fill(buffers, plan, spans, chosen, errors)
    notes = buffers.noted()
    lost = (errors != OK) & (errors != BAD_FIELD)
    lost[notes[notes[:, 2] < 0, 0]] = True
    column = buffers.column(plan.target, rows, ~lost & (spans.sizes >= 0))
    # What is stepped over is of no target.
    targets = {place: plan.places.get(place) for place in np.unique(notes[:, 1]).tolist()}
    places = {place: "" if target is None else plan.paths.get(target, "") for place, target in targets.items()}
    notes_by_row = [(row, places[place]) for row, place in notes[:, :2].tolist()] + buffers.too_long
    errors[[row for row, _ in buffers.too_long if errors[row] == OK]] = BAD_FIELD
    return Decoded(
        column, errors, np.array([row for row, _ in notes_by_row], np.int64), [field for _, field in notes_by_row]
    )


def _fill(
    buffers: _Buffers, plan: ColumnPlan, spans: Spans, chosen: NDArray[np.int32] | None, errors: NDArray[np.int8]
) -> None:
    """Read all rows, with more memory each time that a buffer is full."""
    data, starts, sizes = spans
    rows, first = len(starts), 0
    entries = np.full(rows, plan.entries[0], np.int32) if chosen is None else plan.entries[chosen]
    too_large: list[int] = []
    while first < rows:
        memory = buffers.memory()
        first = run(plan.program, memory, data, starts, sizes, entries, plan.nothing, first, errors)
        if first == rows:
            break
        number, needed = memory.needed.tolist()
        if needed <= INT32_MAX:
            buffers.grow(number, needed)
        else:
            # No Arrow column holds more: the row is NULL, and those after it may fit.
            too_large.append(first)
            sizes = np.where(np.arange(rows) == first, -1, sizes)
    if too_large:
        errors[too_large] = TOO_LARGE


RowOf = Callable[[NDArray[np.int64]], NDArray[np.int64]]


def _itself(places: NDArray[np.int64]) -> NDArray[np.int64]:
    return places


class _Buffers:
    """The slots of one run: where the machine writes, made larger when it asks, and columns in the end."""

    def __init__(self, plan: ColumnPlan, rows: int, size: int) -> None:
        slots = plan.slots
        self.slots, self._plan = slots.slots, plan
        self.too_long: list[tuple[int, str]] = []
        """rows and fields of decimals that have more digits than their precision"""
        texts = sum(slot.level < 0 for slot in self.slots)
        # All texts together are no larger than the data, but for defaults and symbols; untouched pages cost nothing.
        each = max(size if size * texts <= _SPARE else size // max(texts, 1), _LEAST_ROOM)
        self.room = [each if slot.level < 0 else 0 for slot in self.slots]
        self.room += [rows] + [max(rows, _LEAST_ROOM)] * (slots.levels - 1) + [_LEAST_NOTES]
        self.notes = np.empty(NOTE * _LEAST_NOTES, np.int64)
        self._bad: dict[Target, NDArray[np.int64]] = {}
        self.used = np.zeros(len(self.room), np.int64)
        # One piece of memory for all: to ask for a dozen takes longer than to fill one.
        sizes = [self._size(k) for k in range(len(self.slots))]
        starts = [0, *accumulate(-(-size // _ALIGNED) * _ALIGNED for size in sizes)]
        whole = pa.allocate_buffer(max(starts[-1], 1))
        self.buffers = list(map(whole.slice, starts[:-1], sizes))
        bytes = np.frombuffer(whole, np.uint8)
        for start, slot in zip(starts, self.slots, strict=False):
            bytes[start : start + slot.extra * slot.width] = 0  # offsets begin with 0

    def _size(self, number: int) -> int:
        """Of a buffer, by the room of its level [bytes]."""
        level, width, extra = self.slots[number]
        return self.room[number] + COPY_SLACK if level < 0 else (self.room[len(self.slots) + level] + extra) * width

    def memory(self) -> Memory:
        addresses = [(buffer.address, buffer.size) for buffer in self.buffers]
        stack, wanted = np.empty(STACK, np.int64), np.zeros(2, np.int64)
        counters = np.array([k for k, room in enumerate(self.room) if room], np.int64)
        table, room = np.array(addresses, np.int64).reshape(-1), np.array(self.room, np.int64)
        return Memory(table, self.notes, self.used, room, counters, np.empty_like(counters), stack, wanted)

    def grow(self, number: int, needed: int) -> None:
        """Twice the room, or what is needed if that is more."""
        self.room[number] = min(max(needed, 2 * self.room[number]), INT32_MAX)
        if number == len(self.room) - 1:
            self.notes = np.concatenate([self.notes, np.empty(NOTE * self.room[number] - len(self.notes), np.int64)])
            return
        for k, old in enumerate(self.buffers):
            size = self._size(k)
            if size > old.size:
                self.buffers[k] = pa.allocate_buffer(size)
                np.frombuffer(self.buffers[k], np.uint8)[: old.size] = np.frombuffer(old, np.uint8)

    def noted(self) -> NDArray[np.int64]:
        """Row, instruction and place of each value that is BAD_FIELD; the values are NULL from now on."""
        notes = self.notes[: NOTE * int(self.used[-1])].reshape(-1, NOTE)
        for place in np.unique(notes[:, 1]).tolist():
            target = self._plan.places.get(place)
            mine = notes[(notes[:, 1] == place) & (notes[:, 2] >= 0), 2]
            if target is not None and len(mine):
                self._bad[target] = np.concatenate([self._bad.get(target, mine[:0]), mine])
        return notes

    def column(self, target: Target, rows: int, valid: Bools | None = None, row_of: RowOf = _itself) -> pa.Array:
        """What the machine has filled in; ``row_of`` tells the rows of items of the target's level."""
        if target.valid >= 0:
            own = self._values(target.valid, rows, np.uint8) != 0
            valid = own if valid is None else valid & own
        bad = self._bad.get(target)
        if bad is not None:
            valid = np.ones(rows, np.bool_) if valid is None else valid.copy()
            valid[bad] = False
        if target.kind == "digits":
            return self._digits(target, rows, valid, row_of)
        if target.kind == "mixed":
            texts = [text_column(child.schema, self.column(child, rows, None, row_of)) for child in target.children]
            return pc.if_else(pa.array(np.ones(rows, np.bool_) if valid is None else valid), pc.coalesce(*texts), None)
        validity = bitmap(valid)
        if target.kind == "null":
            return pa.nulls(rows)
        if target.kind in ("struct", "union"):
            children = [self.column(child, rows, None, row_of) for child in target.children]
            return pa.Array.from_buffers(target.type, rows, [validity], children=children)
        if target.kind == "scalar":
            values = self.buffers[target.slot]
            if target.schema.kind == "boolean":
                values = pa.py_buffer(np.packbits(self._values(target.slot, rows, np.uint8), bitorder="little"))
            return pa.Array.from_buffers(target.type, rows, [validity, values])
        if target.kind == "text":
            return self._text(target.type, target, rows, validity)
        return self._collection(target, rows, valid, row_of)

    def _text(self, type: pa.DataType, target: Target, rows: int, validity: pa.Buffer | None) -> pa.Array:
        data = self.buffers[target.slot + 1].slice(0, int(self.used[target.slot + 1]))
        return pa.Array.from_buffers(type, rows, [validity, self.buffers[target.slot], data])

    def _digits(self, target: Target, rows: int, valid: Bools | None, row_of: RowOf) -> pa.Array:
        """Decimals of more digits than a DECIMAL has, as texts."""
        numbers = self._text(pa.binary(), target, rows, bitmap(valid))
        texts, too_long = decimal_texts(numbers, self._values(target.inner, rows, np.int32), target.schema.precision)
        path = self._plan.paths[target]
        self.too_long += [(row, path) for row in row_of(too_long).tolist()]
        return texts

    def _collection(self, target: Target, rows: int, valid: Bools | None, row_of: RowOf) -> pa.Array:
        items = int(self.used[len(self.slots) + target.inner])
        ends = self._values(target.slot, rows + 1, np.int32)

        def outer(places: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.searchsorted(ends, places, "right") - 1

        bad_keys = self._bad.get(target.children[0]) if target.kind == "map" else None
        if bad_keys is not None:
            # A key cannot be NULL: the map is.
            valid = np.ones(rows, np.bool_) if valid is None else valid.copy()
            valid[outer(bad_keys)] = False
            del self._bad[target.children[0]]
        columns = [self.column(child, items, None, lambda places: row_of(outer(places))) for child in target.children]
        validity = bitmap(valid)
        if target.kind == "list":
            return pa.Array.from_buffers(target.type, rows, [validity, self.buffers[target.slot]], children=columns)
        ends, columns = without_repeats(ends, *columns)
        entries = pa.Array.from_buffers(target.type.field(0).type, len(columns[0]), [None], children=columns)
        return pa.Array.from_buffers(target.type, rows, [validity, pa.py_buffer(ends)], children=[entries])

    def _values(self, number: int, items: int, dtype: Any) -> NDArray[Any]:
        return np.frombuffer(self.buffers[number], dtype, items)
