"""Rows of Avro data to Arrow columns: a plan for the schemas, buffers that grow, one run of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparkwire.avro import ops
from sparkwire.avro.column_machine import STACK, Memory, SchemaProgram, run
from sparkwire.avro.program import Resolver
from sparkwire.avro.schema import Schema
from sparkwire.avro.targets import Slots, Target, target_of
from sparkwire.base.errors import OK, TOO_LARGE
from sparkwire.core.column import INT32_MAX, Spans, bitmap, empty
from sparkwire.core.repeated_keys import without_repeats
from sparkwire.kernels import COPY_SLACK
from sparkwire.kernels.load import Bools

_LEAST_ROOM: Final = 1024  # [bytes or items] that a buffer begins with
_ALIGNED: Final = 64  # [bytes] as Arrow likes its buffers
_SPARE: Final = 1 << 26  # [bytes] that buffers begin with at most, beyond what the data need


class ColumnPlan(NamedTuple):
    """How data of some schemas becomes one column."""

    target: Target
    slots: Slots
    program: SchemaProgram
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


def plan(writers: Sequence[Schema], reader: Schema) -> ColumnPlan:
    """A plan to read data of any of the writers' schemas by the reader's.

    SchemaError where one cannot be read by the other, or no column can be made of the reader's.
    """
    slots = Slots()
    target = target_of(reader, slots)
    resolver = Resolver(slots)
    entries = [resolver.datum(writer, target) for writer in writers]
    nothing = resolver.here
    resolver.nothing(target)
    resolver.emit(ops.END)
    program = resolver.program()
    return ColumnPlan(target, slots, program, np.array(entries, np.int32), nothing)


def decode(plan: ColumnPlan, spans: Spans, chosen: NDArray[np.int32] | None = None) -> Decoded:
    """Read every row, by the program of the schema of that number; by the first one where ``chosen`` is None."""
    rows = len(spans.starts)
    errors = empty(rows, np.int8)
    buffers = _Buffers(plan.slots, rows, int(np.maximum(spans.sizes, 0).sum()))
    _fill(buffers, plan, spans, chosen, errors)
    valid = (errors == OK) & (spans.sizes >= 0)
    return Decoded(buffers.column(plan.target, rows, valid), errors)


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
        number, needed = memory.wanted.tolist()
        if needed <= INT32_MAX:
            buffers.grow(number, needed)
        else:
            # No Arrow column holds more: the row is NULL, and those after it may fit.
            too_large.append(first)
            sizes = np.where(np.arange(rows) == first, -1, sizes)
    if too_large:
        errors[too_large] = TOO_LARGE


class _Buffers:
    """The slots of one run: where the machine writes, made larger when it asks, and columns in the end."""

    def __init__(self, slots: Slots, rows: int, size: int) -> None:
        self.slots = slots.slots
        texts = sum(slot.level < 0 for slot in self.slots)
        # All texts together are no larger than the data, but for defaults and symbols; untouched pages cost nothing.
        each = max(size if size * texts <= _SPARE else size // max(texts, 1), _LEAST_ROOM)
        self.room = [each if slot.level < 0 else 0 for slot in self.slots]
        self.room += [rows] + [max(rows, _LEAST_ROOM)] * (slots.levels - 1)
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
        return Memory(table, self.used, room, counters, np.empty_like(counters), stack, wanted)

    def grow(self, number: int, needed: int) -> None:
        """Twice the room, or what is needed if that is more."""
        self.room[number] = min(max(needed, 2 * self.room[number]), INT32_MAX)
        for k, old in enumerate(self.buffers):
            size = self._size(k)
            if size > old.size:
                self.buffers[k] = pa.allocate_buffer(size)
                np.frombuffer(self.buffers[k], np.uint8)[: old.size] = np.frombuffer(old, np.uint8)

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
            values = self.buffers[target.slot]
            if target.schema.kind == "boolean":
                values = pa.py_buffer(np.packbits(self._values(target.slot, rows, np.uint8), bitorder="little"))
            return pa.Array.from_buffers(target.type, rows, [validity, values])
        offsets = self.buffers[target.slot]
        if target.kind == "text":
            data = self.buffers[target.slot + 1].slice(0, int(self.used[target.slot + 1]))
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
        return np.frombuffer(self.buffers[number], dtype, items)
