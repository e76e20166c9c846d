"""Encode columns as Avro data: the reverse of `arrow_columns`, like Spark's ``to_avro``.

A program is assembled for the schema, and a machine runs it over the columns and appends each row's datum. As in
`column_machine`, `run_encode` is deliberately one long function. A row that the schema cannot hold is NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparkwire.avro import ops
from sparkwire.avro.assembler import Assembler, bounds_of
from sparkwire.avro.ops import STEP
from sparkwire.avro.readers import DIGITS, fits_digits
from sparkwire.avro.schema import Schema
from sparkwire.avro.targets import Slots, target_of
from sparkwire.base.sqltype import sql_name
from sparkwire.core.column import bitmap, bools_of, checked_total, empty
from sparkwire.errors import SchemaError
from sparkwire.kernels import COPY_SLACK, Bytes, Ints, copy, i64, int64, kernel, store_u8, u8, uint64
from sparkwire.kernels.load import Table, slot, table_of
from sparkwire.kernels.varint import put_varint

WORD_SLACK: Final = 32 + COPY_SLACK
"""[bytes] upper limit of what an instruction writes in addition to the bytes that it copies"""
_FRAME = 3  # the end of the items, the position in the outer level, the first instruction of an item
_STACK_WORDS: Final = 3 * 512  # words of the stack
_MAX_LENGTH: Final = (1 << 31) - 1


def encode(column: pa.Array, schema: Schema) -> pa.Array:
    """BINARY: each row as a datum of the schema, NULL if the schema cannot hold the row.

    Raises SchemaError if the column's type differs from the type of decoded data.
    """
    writer = _Encoder()
    writer.value(schema, column, "the column")
    writer.emit(ops.W_END)
    code, table = np.array(writer.code, np.int64), table_of(writer.buffers)
    rows = len(column)
    valid = np.ones(rows, np.bool_) if _may_be_null(schema) else bools_of(column.is_valid()).copy()
    offsets, stack, needed = np.zeros(rows + 1, np.int32), np.empty(_STACK_WORDS, np.int64), np.zeros(1, np.int64)
    out = empty(max(column.nbytes, 1), np.uint8, WORD_SLACK)
    first = 0
    while True:
        first = run_encode(code, table, valid, first, offsets, out, stack, needed)
        if first == rows:
            break
        checked_total(int(needed[0]))
        larger = empty(min(max(int(needed[0]), 2 * len(out)), _MAX_LENGTH), np.uint8)
        larger[: offsets[first]] = out[: offsets[first]]
        out = larger
    buffers = [bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(out[: offsets[rows]])]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def _may_be_null(schema: Schema) -> bool:
    return schema.kind == "null" or any(branch.kind == "null" for branch in schema.branches)


class _Encoder(Assembler):
    """Emits the program of a column, and collects the column's buffers in the order in which the machine reads them."""

    def __init__(self) -> None:
        super().__init__()
        self.buffers: list[NDArray[Any]] = []

    def slot(self, buffer: NDArray[Any]) -> int:
        """Add a buffer and return its number. No buffer is empty, so that each has an address."""
        self.buffers.append(np.ascontiguousarray(buffer if buffer.size else np.zeros(16, np.uint8)))
        return len(self.buffers) - 1

    def value(self, schema: Schema, column: pa.Array, where: str) -> None:
        """Emit code for an item of a column. A NULL fails the row if the schema has no null."""
        if schema.kind == "union":
            self._union(schema, column, where)
        elif schema.kind != "null":
            over = self._unless_null(column)
            self._plain(schema, column, where)
            if over is not None:
                end = self.emit(ops.W_JUMP, 0)
                self.patch(over, 2, self.here)
                self.emit(ops.W_FAIL)
                self.patch(end, 1, self.here)

    def _unless_null(self, column: pa.Array) -> int | None:
        if column.null_count == 0 and not pa.types.is_null(column.type):
            return None
        return self.emit(ops.W_UNLESS, self.slot(bools_of(column.is_valid()).view(np.uint8)), 0)

    def _union(self, schema: Schema, column: pa.Array, where: str) -> None:
        others = [k for k, branch in enumerate(schema.branches) if branch.kind != "null"]
        null = [k for k, branch in enumerate(schema.branches) if branch.kind == "null"]
        over = self._unless_null(column)
        ends: list[int] = []
        if len(others) == 1:
            self.emit(ops.W_BRANCH, others[0])
            self._plain(schema.branches[others[0]], column, where)
        elif target_of(schema, Slots()).kind != "union":
            # int and long, or float and double: write all numbers to the wider branch.
            wide = max(others, key=lambda k: schema.branches[k].kind in ("long", "double"))
            self.emit(ops.W_BRANCH, wide)
            self._plain(Schema(schema.branches[wide].kind), column, where)
        else:
            self._members(schema, others, column, where, ends)
        if over is not None:
            ends.append(self.emit(ops.W_JUMP, 0))
            self.patch(over, 2, self.here)
            self.emit(*(ops.W_BRANCH, null[0]) if null else (ops.W_FAIL,))
        for end in ends:
            self.patch(end, 1, self.here)

    def _members(self, schema: Schema, others: list[int], column: pa.Array, where: str, ends: list[int]) -> None:
        """Emit code that writes the first member that is not NULL."""
        names = [f"member{k}" for k in range(len(others))]
        if pa.types.is_null(column.type):
            self.emit(ops.W_FAIL)  # all members can be NULL although the schema has no null
            return
        if not pa.types.is_struct(column.type) or [field.name for field in column.type] != names:
            raise SchemaError(f"{where} is {sql_name(column.type)}: a union takes a STRUCT of {', '.join(names)}")
        for k, member in zip(others, column.flatten(), strict=True):
            over = self.emit(ops.W_UNLESS, self.slot(bools_of(member.is_valid()).view(np.uint8)), 0)
            self.emit(ops.W_BRANCH, k)
            self._plain(schema.branches[k], member, where)
            ends.append(self.emit(ops.W_JUMP, 0))
            self.patch(over, 2, self.here)
        self.emit(ops.W_FAIL)

    def _plain(self, schema: Schema, column: pa.Array, where: str) -> None:
        type = column.type
        if pa.types.is_null(type):
            self.emit(ops.W_FAIL)
        elif schema.kind == "record" and pa.types.is_struct(type):
            self._record(schema, column, where)
        elif schema.kind == "array" and (pa.types.is_list(type) or pa.types.is_large_list(type)):
            self._items(schema, column, lambda items: self.value(schema.items, column.values, f"an item of {where}"))  # type: ignore[arg-type]
        elif schema.kind == "map" and pa.types.is_map(type):
            self._items(schema, column, lambda items: self._entry(schema, column, where))
        elif not self._scalar(schema, column):
            needed = sql_name(target_of(schema, Slots()).type)
            raise SchemaError(f"{where} is {sql_name(type)}, and {schema.title} is written from {needed}")

    def _record(self, schema: Schema, column: pa.Array, where: str) -> None:
        columns = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
        unknown = [name for name in columns if name not in {f.name for f in schema.fields}]
        if unknown:
            raise SchemaError(f"{where} has the field {unknown[0]}, which {schema.title} does not have")
        for f in schema.fields:
            inner = f"{where}.{f.name}"
            if f.name not in columns and not _may_be_null(f.schema):
                raise SchemaError(f"{inner} is missing, and {f.schema.title} is never null")
            self.value(f.schema, columns.get(f.name, pa.nulls(len(column))), inner)

    def _items(self, schema: Schema, column: pa.Array, item: Callable[[pa.Array], None]) -> None:
        begin = self.emit(ops.W_LIST, self.slot(np.asarray(column.offsets, np.int64)), 0)
        item(column)
        self.emit(ops.W_NEXT)
        self.patch(begin, 2, self.here)

    def _entry(self, schema: Schema, column: pa.MapArray, where: str) -> None:
        assert schema.items is not None
        self._bytes(column.keys)
        self.value(schema.items, column.items, f"a value of {where}")

    def _scalar(self, schema: Schema, column: pa.Array) -> bool:
        """Emit code for a scalar column. Returns false if data of the schema are not decoded to this type."""
        type, kind = column.type, schema.kind
        target = target_of(schema, Slots()).type
        if kind in ("int", "long"):
            return self._number(schema, column, target)
        if kind in ("float", "double", "boolean"):
            if type != target and not (kind == "double" and pa.types.is_float32(type)):
                return False
            width = {"boolean": 1, "float": 4, "double": 8}[kind]
            values = column.fill_null(False if width == 1 else 0).cast(target).to_numpy(zero_copy_only=False)
            self.emit(ops.W_WORD, self.slot(values.view(np.uint8)), width)
        elif schema.logical == "decimal" and schema.precision <= DIGITS:
            if not pa.types.is_decimal128(type) or type.scale != schema.scale:
                return False
            words = np.frombuffer(column.buffers()[1], np.uint8)[
                16 * column.offset : 16 * (column.offset + len(column))
            ]
            self.emit(ops.W_DECIMAL, self.slot(words), schema.precision, schema.size)
        elif kind == "enum":
            if not (pa.types.is_string(type) or pa.types.is_large_string(type)):
                return False
            symbols = pc.index_in(column, value_set=pa.array(schema.symbols, type)).fill_null(-1)
            self.emit(ops.W_LONG, self.slot(np.asarray(symbols, np.int64)), 0, len(schema.symbols) - 1, 1)
        else:
            text = pa.types.is_string(type) or pa.types.is_large_string(type)
            if text != (kind == "string") or not (text or pa.types.is_binary(type) or pa.types.is_large_binary(type)):
                return False
            self._bytes(column, schema.size if kind == "fixed" else None)
        return True

    def _number(self, schema: Schema, column: pa.Array, target: pa.DataType) -> bool:
        type = column.type
        if type != target and not (pa.types.is_integer(target) and pa.types.is_integer(type)):
            return False
        bounds = bounds_of(schema)
        whole = column.cast(pa.int32()) if pa.types.is_date32(type) else column
        values = np.asarray(whole.cast(pa.int64()).fill_null(0), np.int64)
        # The part of the instant below the unit is truncated toward the past.
        highest = bounds.highest * bounds.factor + bounds.factor - 1
        self.emit(ops.W_LONG, self.slot(values), bounds.lowest * bounds.factor, highest, bounds.factor)
        return True

    def _bytes(self, column: pa.Array, size: int | None = None) -> None:
        wide = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
        _, offsets, data = column.buffers()
        ends = np.frombuffer(offsets, np.int64 if wide else np.int32)[column.offset : column.offset + len(column) + 1]
        place = self.slot(ends.astype(np.int64))
        self.slot(np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8))
        self.emit(*(ops.W_BYTES, place) if size is None else (ops.W_FIXED, place, size))


# -- the machine


@kernel
def run_encode(
    code: Ints,
    table: Table,
    valid: NDArray[np.bool_],
    first: int,
    offsets: NDArray[np.int32],
    out: Bytes,
    stack: Ints,
    needed: Ints,
) -> int:
    """Write the rows from ``first`` on to ``out[offsets[row]:]``.

    Returns the row at which ``out`` was full, or the number of rows. On input, ``valid`` marks the rows to write; on output,
    the rows that were written. ``needed`` is the size [bytes] that ``out`` must have to continue.
    """
    for row in range(first, valid.size):
        at, pos, pc, depth, written = int64(row), int64(offsets[row]), int64(0), 0, valid[row]
        while written:
            op = code[pc]
            if pos + WORD_SLACK > out.size:
                needed[0] = pos + WORD_SLACK
                return row
            if op == ops.W_LONG:
                value = i64(slot(table, code[pc + 1]), at << 3, True)
                if value < code[pc + 2] or value > code[pc + 3]:
                    written = False
                else:
                    pos = put_varint(out, pos, value // code[pc + 4])
            elif op == ops.W_BRANCH:
                pos = put_varint(out, pos, code[pc + 1])
            elif op == ops.W_UNLESS:
                if u8(slot(table, code[pc + 1]), at) == 0:
                    pc = code[pc + 2]
                    continue
            elif op == ops.W_BYTES or op == ops.W_FIXED:
                ends = slot(table, code[pc + 1])
                start = i64(ends, at << 3, True)
                size = i64(ends, (at + 1) << 3, True) - start
                if op == ops.W_FIXED and size != code[pc + 2]:
                    written = False
                elif pos + size + WORD_SLACK > out.size:
                    needed[0] = pos + size + WORD_SLACK
                    return row
                else:
                    if op == ops.W_BYTES:
                        pos = put_varint(out, pos, size)
                    copy(out, pos, slot(table, code[pc + 1] + 1), start, size)
                    pos += size
            elif op == ops.W_WORD:
                width = code[pc + 2]
                copy(out, pos, slot(table, code[pc + 1]), at * width, width)
                pos += width
            elif op == ops.W_LIST:
                ends = slot(table, code[pc + 1])
                start, end = i64(ends, at << 3, True), i64(ends, (at + 1) << 3, True)
                if start == end:
                    store_u8(out, pos, np.uint8(0))
                    pos += 1
                    pc = code[pc + 2]
                    continue
                pos = put_varint(out, pos, end - start)
                stack[depth], stack[depth + 1], stack[depth + 2] = end, at, pc + STEP
                depth += _FRAME
                at = start
            elif op == ops.W_NEXT:
                at += 1
                if at < stack[depth - _FRAME]:
                    pc = stack[depth - 1]
                    continue
                depth -= _FRAME
                at = stack[depth + 1]
                store_u8(out, pos, np.uint8(0))
                pos += 1
            elif op == ops.W_DECIMAL:
                words = slot(table, code[pc + 1])
                low, high = uint64(i64(words, at << 4, True)), uint64(i64(words, (at << 4) + 8, True))
                size = code[pc + 3] if code[pc + 3] > 0 else _decimal_size(low, high)
                if not fits_digits(low, high, code[pc + 2]) or size < _decimal_size(low, high):
                    written = False
                elif pos + size + WORD_SLACK > out.size:
                    needed[0] = pos + size + WORD_SLACK
                    return row
                else:
                    if code[pc + 3] == 0:
                        pos = put_varint(out, pos, size)
                    pos = _write_decimal(out, pos, low, high, size)
            elif op == ops.W_JUMP:
                pc = code[pc + 1]
                continue
            elif op == ops.W_FAIL:
                written = False
            elif op == ops.W_END:
                break
            pc += STEP
        valid[row] = written
        offsets[row + 1] = pos if written else offsets[row]
    return int64(valid.size)


@kernel
def _decimal_size(low: int, high: int) -> int:
    """The size of the shortest two's complement form of a number [bytes]."""
    size = 16
    while size > 1:
        first = _decimal_byte(low, high, size - 1)
        second = _decimal_byte(low, high, size - 2)
        if not ((first == 0 and second < 128) or (first == 255 and second >= 128)):
            break
        size -= 1
    return size


@kernel
def _decimal_byte(low: int, high: int, k: int) -> int:
    """Byte ``k`` of a number of two words; byte 0 is the lowest. Beyond the two words, the sign byte."""
    if k >= 16:
        return 255 if int64(high) < 0 else 0
    word = low if k < 8 else high
    return int64((word >> uint64(8 * (k & 7))) & uint64(255))


@kernel
def _write_decimal(out: Bytes, pos: int, low: int, high: int, size: int) -> int:
    for k in range(size):
        store_u8(out, pos + k, np.uint8(_decimal_byte(low, high, size - 1 - k)))
    return pos + size
