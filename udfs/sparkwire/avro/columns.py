"""Rows of Avro data to Arrow columns: a plan for the schemas, buffers that grow, one run of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparkwire.avro import ops
from sparkwire.avro.machine import STACK, Memory, Program, run
from sparkwire.avro.program import Resolver
from sparkwire.avro.repeats import without_repeats
from sparkwire.avro.schema import Schema
from sparkwire.avro.targets import Slots, Target, target_of
from sparkwire.column import INT32_MAX, Spans, bitmap, empty
from sparkwire.errors import OK, TOO_LARGE
from sparkwire.kernels import COPY_SLACK
from sparkwire.kernels.load import Bools
from sparkwire.kernels.slots import table_of

_LEAST_ROOM: Final = 1024  # [bytes or items] that a buffer begins with
_SPARE: Final = 1 << 26  # [bytes] that buffers begin with at most, beyond what the data need


class Plan(NamedTuple):
    """How data of some schemas becomes one column."""

    target: Target
    slots: Slots
    program: Program
    entries: NDArray[np.int32]
    """where the program of each writer's schema begins"""
    nothing: int
    """where the program of a NULL begins"""


class Decoded(NamedTuple):
    """A column, and what is wrong with the rows that could not be read."""

    column: pa.Array
    """NULL where the row is NULL or cannot be read"""
    errors: NDArray[np.int8]
    """codes of `errors`"""


def plan(writers: Sequence[Schema], reader: Schema) -> Plan:
    """A plan to read data of any of the writers' schemas by the reader's.

    Raises
    ------
    SchemaError
        where one cannot be read by the other, or no column can be made of the reader's.
    """
    slots = Slots()
    target = target_of(reader, slots)
    resolver = Resolver(slots)
    entries = [resolver.datum(writer, target) for writer in writers]
    nothing = resolver.here
    resolver.nothing(target)
    resolver.emit(ops.END)
    return Plan(target, slots, resolver.program(), np.array(entries, np.int32), nothing)


def decode(plan: Plan, spans: Spans, chosen: NDArray[np.int32] | None = None) -> Decoded:
    """Read every row, by the program of the schema of that number; by the first one where ``chosen`` is None."""
    rows = len(spans.starts)
    entries = np.full(rows, plan.entries[0], np.int32) if chosen is None else plan.entries[chosen]
    errors = empty(rows, np.int8)
    buffers = _Buffers(plan.slots, rows, int(np.maximum(spans.sizes, 0).sum()))
    sizes = spans.sizes.copy()
    too_large: list[int] = []
    first = 0
    while True:
        memory = buffers.memory()
        first = run(plan.program, memory, spans.data, spans.starts, sizes, entries, plan.nothing, first, errors)
        if first == rows:
            break
        number, needed = memory.wanted.tolist()
        if needed > INT32_MAX:
            # No Arrow column holds more: the row is NULL, and those after it may fit.
            too_large.append(first)
            sizes[first] = -1
        else:
            buffers.grow(number, needed)
    errors[too_large] = TOO_LARGE
    valid = (errors == OK) & (spans.sizes >= 0)
    return Decoded(buffers.column(plan.target, rows, valid), errors)


class _Buffers:
    """The slots of one run: where the machine writes, made larger when it asks, and columns in the end."""

    def __init__(self, slots: Slots, rows: int, size: int) -> None:
        self.slots = slots.slots
        texts = sum(slot.level < 0 for slot in self.slots)
        # All texts together are no larger than the data, but for defaults and symbols; untouched pages cost nothing.
        each = max(size if size * texts <= _SPARE else size // max(texts, 1), _LEAST_ROOM)
        items = [rows] + [max(rows, _LEAST_ROOM)] * (slots.levels - 1)
        self.room = np.array([each if slot.level < 0 else 0 for slot in self.slots] + items, np.int64)
        self.used = np.zeros(len(self.room), np.int64)
        self.counters = np.flatnonzero(self.room)
        self.arrays = [self._new(k) for k in range(len(self.slots))]

    def _new(self, number: int) -> NDArray[np.uint8]:
        slot = self.slots[number]
        if slot.level < 0:
            return empty(int(self.room[number]), np.uint8, COPY_SLACK)
        items = int(self.room[len(self.slots) + slot.level]) + slot.extra
        array = empty(items * slot.width, np.uint8)
        array[: slot.extra * slot.width] = 0  # offsets begin with 0
        return array

    def memory(self) -> Memory:
        stack, wanted = np.empty(STACK, np.int64), np.zeros(2, np.int64)
        return Memory(
            table_of(self.arrays), self.used, self.room, self.counters, np.zeros_like(self.counters), stack, wanted
        )

    def grow(self, number: int, needed: int) -> None:
        """Twice the room, or what is needed if that is more."""
        self.room[number] = min(max(needed, 2 * int(self.room[number])), INT32_MAX)
        level = number - len(self.slots)
        for k, slot in enumerate(self.slots):
            if k == number or (level >= 0 and slot.level == level):
                old = self.arrays[k]
                self.arrays[k] = self._new(k)
                self.arrays[k][: len(old)] = old

    def column(self, target: Target, rows: int, valid: Bools | None = None) -> pa.Array:
        """What the machine has filled in."""
        if target.valid >= 0:
            own = self._values(target.valid, rows, np.uint8) != 0
            valid = own if valid is None else valid & own
        validity = bitmap(valid)
        if target.kind == "null":
            return pa.nulls(rows)
        if target.kind in ("struct", "union"):
            children = [self.column(child, rows) for child in target.children]
            return pa.Array.from_buffers(target.type, rows, [validity], children=children)
        if target.kind == "scalar":
            values = self.arrays[target.slot]
            if pa.types.is_boolean(target.type):
                values = np.packbits(self._values(target.slot, rows, np.uint8), bitorder="little")
            return pa.Array.from_buffers(target.type, rows, [validity, pa.py_buffer(values)])
        offsets = pa.py_buffer(self._values(target.slot, rows + 1, np.int32))
        if target.kind == "text":
            data = pa.py_buffer(self.arrays[target.slot + 1][: self.used[target.slot + 1]])
            return pa.Array.from_buffers(target.type, rows, [validity, offsets, data])
        return self._collection(target, rows, validity, offsets)

    def _collection(self, target: Target, rows: int, validity: pa.Buffer | None, offsets: pa.Buffer) -> pa.Array:
        items = int(self.used[len(self.slots) + target.inner])
        columns = [self.column(child, items) for child in target.children]
        if target.kind == "list":
            return pa.Array.from_buffers(target.type, rows, [validity, offsets], children=columns)
        ends, columns = without_repeats(self._values(target.slot, rows + 1, np.int32), *columns)
        entries = pa.Array.from_buffers(target.type.field(0).type, len(columns[0]), [None], children=columns)
        return pa.Array.from_buffers(target.type, rows, [validity, pa.py_buffer(ends)], children=[entries])

    def _values(self, number: int, items: int, dtype: Any) -> NDArray[Any]:
        values: NDArray[Any] = self.arrays[number].view(dtype)
        return values[:items]
