"""Decode rows of Avro data to Arrow columns: a plan for the schemas, growing buffers, and one run of the machine."""

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
from sparkwire.avro.texts import long_decimal_texts, text_column
from sparkwire.base.error_codes import BAD_FIELD, ERRORS, OK, TOO_LARGE
from sparkwire.core.column import INT32_MAX, Spans, bitmap, empty, from_codes, without_repeats
from sparkwire.kernels import COPY_SLACK
from sparkwire.kernels.load import Bools

_MIN_ROOM: Final = 1024  # [bytes or items] smallest initial size of a buffer
_INITIAL_NOTES: Final = 64
_ALIGNED: Final = 64  # [bytes] the alignment that Arrow recommends
_SPARE: Final = 1 << 26  # [bytes] upper limit of the initial buffers beyond the size of the data


_MAX_NAMED: Final = 5
"""maximum number of fields in the error of a row"""


class ColumnPlan(NamedTuple):
    """How to decode data of several schemas to one column."""

    target: Target
    slots: Slots
    program: SchemaProgram
    entries: NDArray[np.int32]
    """the start of the program for each writer's schema; the last item is the start of the program for NULL"""
    nothing: int
    """the start of the program for NULL"""
    places: Mapping[int, Target]
    """the target that each instruction fills, by the instruction's index"""
    paths: Mapping[Target, str]
    """the path of each target's field"""


class Decoded(NamedTuple):
    """A decoded column, with the errors of the rows that could not be read completely."""

    column: pa.Array
    """NULL for a row that is NULL or cannot be read; a value that cannot be read is NULL within its row"""
    errors: NDArray[np.int8]
    """each row's first error, as a code of `errors`"""
    bad_rows: NDArray[np.int64]
    """the rows of the values that are BAD_FIELD, ascending"""
    bad_fields: Sequence[str]
    """the field of each of these values"""

    @property
    def reasons(self) -> pa.Array:
        """STRING: the error code of each row, with the BAD_FIELD fields: ``BAD_FIELD: total, lines[].price``."""
        codes = from_codes(self.errors, ERRORS)
        named: dict[int, dict[str, None]] = {}
        for row, field in zip(self.bad_rows.tolist(), self.bad_fields, strict=True):
            if field:
                named.setdefault(row, {})[field] = None
        if not named:
            return codes
        texts = np.full(len(codes), None, object)
        for row, fields in named.items():
            more = ", …" if len(fields) > _MAX_NAMED else ""
            texts[row] = f"{ERRORS[BAD_FIELD]}: {', '.join(list(fields)[:_MAX_NAMED])}{more}"
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
    """Compute the plan to read data of any writer's schema as the reader's schema.

    Parameters
    ----------
    strict
        if true, raise SchemaError if the reader's schema cannot read a writer's; else rows with such a schema are ``BAD_FIELD``
    names_as_written
        whether fields keep their names even if two names differ only in case
    as_json
        whether the column will become JSON and keeps what only JSON shows: see `Slots`

    Raises
    ------
    SchemaError
        if no column can hold the reader's schema.
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
    """Raise SchemaError if no column can hold a reader's schema, or if the default of a field is invalid."""
    slots = Slots()
    resolver = Resolver(slots, True)
    for target, _ in paths_of(target_of(reader, slots)):
        if target.kind == "struct":
            for field, child in zip(target.schema.fields, target.children, strict=True):
                if field.has_default:
                    resolver.default(field, child)


def decode(plan: ColumnPlan, spans: Spans, chosen: NDArray[np.int32] | None = None) -> Decoded:
    """Decode every row with the program of its schema: ``chosen`` has the number of each row's schema, None means the first.

    A row of schema -1 is NULL.
    """
    rows = len(spans.starts)
    errors = empty(rows, np.int8)
    buffers = _Buffers(plan, rows, int(np.maximum(spans.sizes, 0).sum()))
    _fill(buffers, plan, spans, chosen, errors)
    notes = buffers.bad_values()
    lost = (errors != OK) & (errors != BAD_FIELD)
    lost[notes[notes[:, 2] < 0, 0]] = True
    column = buffers.column(plan.target, rows, ~lost & (spans.sizes >= 0))
    # A skipped value has no target.
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
    """Decode all rows. If a buffer is full, enlarge it and continue."""
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
            # An Arrow column cannot hold more: this row becomes NULL; later rows may fit.
            too_large.append(first)
            sizes = np.where(np.arange(rows) == first, -1, sizes)
    if too_large:
        errors[too_large] = TOO_LARGE


RowOf = Callable[[NDArray[np.int64]], NDArray[np.int64]]


def _same_rows(places: NDArray[np.int64]) -> NDArray[np.int64]:
    return places


class _Buffers:
    """The memory of one run: the buffers that the machine fills, which grow on demand and finally become columns."""

    def __init__(self, plan: ColumnPlan, rows: int, size: int) -> None:
        slots = plan.slots
        self.slots, self._plan = slots.slots, plan
        self.too_long: list[tuple[int, str]] = []
        """rows and fields of decimals that have more digits than their precision"""
        texts = sum(slot.level < 0 for slot in self.slots)
        # Except for defaults and enum symbols, all texts together are at most as large as the data. Untouched pages cost nothing.
        each = max(size if size * texts <= _SPARE else size // max(texts, 1), _MIN_ROOM)
        self.room = [each if slot.level < 0 else 0 for slot in self.slots]
        self.room += [rows] + [max(rows, _MIN_ROOM)] * (slots.levels - 1) + [_INITIAL_NOTES]
        self.notes = np.empty(NOTE * _INITIAL_NOTES, np.int64)
        self._bad: dict[Target, NDArray[np.int64]] = {}
        self.used = np.zeros(len(self.room), np.int64)
        # One allocation for all buffers: a dozen allocations take longer than filling the memory.
        sizes = [self._size(k) for k in range(len(self.slots))]
        starts = [0, *accumulate(-(-size // _ALIGNED) * _ALIGNED for size in sizes)]
        whole = pa.allocate_buffer(max(starts[-1], 1))
        self.buffers = list(map(whole.slice, starts[:-1], sizes))
        bytes = np.frombuffer(whole, np.uint8)
        for start, slot in zip(starts, self.slots, strict=False):
            bytes[start : start + slot.extra * slot.width] = 0  # the first offset is 0

    def _size(self, number: int) -> int:
        """The size of a buffer [bytes] for the current capacity of its level."""
        level, width, extra = self.slots[number]
        return self.room[number] + COPY_SLACK if level < 0 else (self.room[len(self.slots) + level] + extra) * width

    def memory(self) -> Memory:
        addresses = [(buffer.address, buffer.size) for buffer in self.buffers]
        stack, wanted = np.empty(STACK, np.int64), np.zeros(2, np.int64)
        counters = np.array([k for k, room in enumerate(self.room) if room], np.int64)
        table, room = np.array(addresses, np.int64).reshape(-1), np.array(self.room, np.int64)
        return Memory(table, self.notes, self.used, room, counters, np.empty_like(counters), stack, wanted)

    def grow(self, number: int, needed: int) -> None:
        """Double the capacity, or grow it to ``needed`` if that is more."""
        self.room[number] = min(max(needed, 2 * self.room[number]), INT32_MAX)
        if number == len(self.room) - 1:
            self.notes = np.concatenate([self.notes, np.empty(NOTE * self.room[number] - len(self.notes), np.int64)])
            return
        for k, old in enumerate(self.buffers):
            size = self._size(k)
            if size > old.size:
                self.buffers[k] = pa.allocate_buffer(size)
                np.frombuffer(self.buffers[k], np.uint8)[: old.size] = np.frombuffer(old, np.uint8)

    def bad_values(self) -> NDArray[np.int64]:
        """Row, instruction and position of each BAD_FIELD value. Also marks these values as NULL."""
        notes = self.notes[: NOTE * int(self.used[-1])].reshape(-1, NOTE)
        for place in np.unique(notes[:, 1]).tolist():
            target = self._plan.places.get(place)
            positions = notes[(notes[:, 1] == place) & (notes[:, 2] >= 0), 2]
            if target is not None and len(positions):
                self._bad[target] = np.concatenate([self._bad.get(target, positions[:0]), positions])
        return notes

    def column(self, target: Target, rows: int, valid: Bools | None = None, row_of: RowOf = _same_rows) -> pa.Array:
        """The column that the machine has filled; ``row_of`` maps items of the target's level to rows."""
        if target.valid >= 0:
            is_valid = self._values(target.valid, rows, np.uint8) != 0
            valid = is_valid if valid is None else valid & is_valid
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
        """Decimals with more digits than a DECIMAL can have, as texts."""
        numbers = self._text(pa.binary(), target, rows, bitmap(valid))
        texts, too_long = long_decimal_texts(numbers, self._values(target.inner, rows, np.int32), target.schema)
        path = self._plan.paths[target]
        self.too_long += [(row, path) for row in row_of(too_long).tolist()]
        return texts

    def _collection(self, target: Target, rows: int, valid: Bools | None, row_of: RowOf) -> pa.Array:
        items = int(self.used[len(self.slots) + target.inner])
        ends = self._values(target.slot, rows + 1, np.int32)

        def item_of(places: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.searchsorted(ends, places, "right") - 1

        bad_keys = self._bad.get(target.children[0]) if target.kind == "map" else None
        if bad_keys is not None:
            # A key cannot be NULL, so the whole map becomes NULL.
            valid = np.ones(rows, np.bool_) if valid is None else valid.copy()
            valid[item_of(bad_keys)] = False
            del self._bad[target.children[0]]
        columns = [self.column(child, items, None, lambda places: row_of(item_of(places))) for child in target.children]
        validity = bitmap(valid)
        if target.kind == "list":
            return pa.Array.from_buffers(target.type, rows, [validity, self.buffers[target.slot]], children=columns)
        ends, columns = without_repeats(ends, *columns)
        entries = pa.Array.from_buffers(target.type.field(0).type, len(columns[0]), [None], children=columns)
        return pa.Array.from_buffers(target.type, rows, [validity, pa.py_buffer(ends)], children=[entries])

    def _values(self, number: int, items: int, dtype: Any) -> NDArray[Any]:
        return np.frombuffer(self.buffers[number], dtype, items)
