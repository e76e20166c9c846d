"""Compile a writer's schema and a reader's column to a program. Schema resolution runs once, not for each row.

The module is long because each case of the specification is one method.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from sparkwire.avro import ops
from sparkwire.avro.assembler import INT_BOUNDS, LONG_BOUNDS, Assembler, deferred, least_size, least_text
from sparkwire.avro.readers import DIGITS
from sparkwire.avro.rules import branch_for, conversion, is_default, matches, sources_of
from sparkwire.avro.schema import UNFRAMED, RecordField, Schema
from sparkwire.avro.targets import Slots, Target
from sparkwire.avro.texts import NO_SCALE
from sparkwire.errors import SchemaError

_CHECKED: Final = ("int", "long", "enum", "boolean", "string")
"""the kinds that, like decimals, can have BAD_FIELD values"""
_FREE_BYTES: Final = 1024
"""[bytes] of defaults or JSON for an item without bytes; for more, the item counts more than once"""


class Resolver(Assembler):
    """Emits programs that fill one target."""

    def __init__(self, slots: Slots, strict: bool) -> None:
        """If ``strict``, a schema that cannot be read raises SchemaError; otherwise only its rows have an error."""
        super().__init__()
        self.slots = slots
        self.places: dict[int, Target] = {}
        """the target of each instruction"""
        self._strict = strict
        self._target: Target | None = None
        self._skipped: dict[Schema, list[int]] = {}
        self._unused: tuple[int, int] | None = None
        """slots for numbers and texts that the machine only checks"""

    def datum(self, writer: Schema, target: Target) -> int:
        """Emit the program of one datum and return its first index."""
        entry = self.here
        self.value(writer, target, "the datum")
        self.emit(ops.END)
        self._skip_records()
        return entry

    def emit(self, op: int, *operands: int) -> int:
        place = super().emit(op, *operands)
        if self._target is not None:
            self.places[place] = self._target
        return place

    def value(self, writer: Schema, target: Target, where: str) -> None:
        """Emit code that reads a datum of the writer's schema into the target."""
        outer, self._target = self._target, target
        before = self._places()
        try:
            self._value(writer, target, where)
        except SchemaError:
            if self._strict:
                raise
            self._undo(*before)
            self._unread(writer, target)
        finally:
            self._target = outer

    def _value(self, writer: Schema, target: Target, where: str) -> None:
        if writer.kind == "union":
            self._branches(writer, target, where)
        elif writer.kind == "null":
            if target.valid < 0 and target.kind != "null":
                raise SchemaError(f"{where} is null, which {_reader(target)} cannot be")
            self.nothing(target)
        elif not matches(writer, target.schema):
            raise SchemaError(f"{where} is {writer.title}, which cannot be read as {_reader(target)}")
        else:
            self._valid(target)
            if target.children and target.kind in ("union", "mixed"):
                self.value(writer, self._member(writer, target), where)
            else:
                self._plain(writer, target, where)

    def _member(self, writer: Schema, target: Target) -> Target:
        """The union member that holds data of the writer's schema. Emits NULL for the other members."""
        chosen = branch_for(writer, target.schema)
        assert chosen is not None
        for k, child in enumerate(target.children):
            if k != chosen:
                self.nothing(child)
        return target.children[chosen]

    def _places(self) -> tuple[int, int, int, int]:
        return self.here, len(self.jumps), len(self.spans), len(self.constants)

    def _undo(self, code: int, jumps: int, spans: int, constants: int) -> None:
        del self.code[code:], self.jumps[jumps:], self.spans[spans:], self.constants[constants:]
        for schema, calls in self._skipped.items():
            self._skipped[schema] = [call for call in calls if call < code]

    def _unread(self, writer: Schema, target: Target) -> None:
        """Emit code for a value that the target cannot hold: skip the value and note the error."""
        self.skip(writer)
        self.nothing(target)
        self.emit(ops.BAD)

    def _valid(self, target: Target) -> None:
        if target.valid >= 0:
            self.emit(ops.SET, target.valid, 1, 1)

    def _branches(self, writer: Schema, target: Target, where: str) -> None:
        kinds = [schema.kind for schema in writer.branches]
        plain = target.kind not in ("union", "mixed")
        if len(kinds) == 2 and kinds.count("null") == 1 and target.valid >= 0 and plain:
            before = self._places()
            try:
                return self._option(writer, target, kinds.index("null"), where)
            except SchemaError:
                if self._strict:
                    raise
                self._undo(*before)
        failures: list[SchemaError] = []
        self.union([self._branch(schema, target, where, failures) for schema in writer.branches])
        if len(failures) == len(writer.branches):
            raise failures[0]
        return None

    def _branch(self, schema: Schema, target: Target, where: str, failures: list[SchemaError]) -> Callable[[], None]:
        """A function that emits the code of one branch. If the branch cannot be read, only data of this branch have an error."""

        def code() -> None:
            before = self._places()
            try:
                self._value(schema, target, where)
            except SchemaError as e:
                failures.append(e)
                self._undo(*before)
                self._unread(schema, target)

        return code

    def _option(self, writer: Schema, target: Target, null: int, where: str) -> None:
        """Emit code for a union of null and one other type, the most frequent union."""
        other = writer.branches[1 - null]
        if not matches(other, target.schema):
            raise SchemaError(f"{where} is {other.title}, which cannot be read as {_reader(target)}")
        if target.kind in ("scalar", "text"):
            width = self.slots.slots[target.slot].width if target.kind == "scalar" else 0
            option = self.emit(ops.OPTION, target.valid, null, 0, target.slot, width)
            self._plain(other, target, where)
            self.patch(option, 3, self.here)
            return
        option = self.emit(ops.OPTION, target.valid, null, 0, -1)
        self._plain(other, target, where)
        jump = self.emit(ops.JUMP, 0)
        self.patch(option, 3, self.here)
        self._placeholder(target)
        self.patch(jump, 1, self.here)

    def _plain(self, writer: Schema, target: Target, where: str) -> None:
        reader = target.schema
        if reader.kind == "record":
            self._record(writer, target, where)
        elif reader.items is not None and writer.items is not None:
            self._collection(writer.items, target, where)
        elif target.kind == "digits":
            self.emit(ops.SET, target.inner, 4, writer.scale if writer.logical == "decimal" else reader.scale)
            self._bytes(writer, target)
        elif writer.kind == "enum":
            self._enum(writer, target, where)
        elif reader.logical == "decimal" and target.kind == "scalar":
            self._decimal(writer, target)
        elif reader.kind in ("bytes", "fixed"):
            self._bytes(writer, target)
        elif writer.size == UNFRAMED:
            raise SchemaError(f"{where} is bytes without their size, which cannot be read as {_reader(target)}")
        elif writer.kind in ("int", "long"):
            self._number(writer, target)
        else:
            op = {
                "boolean": ops.BOOLEAN,
                "float": ops.FLOAT,
                "double": ops.DOUBLE,
                "string": ops.TEXT,
            }
            wider = writer.kind == "float" and reader.kind == "double"
            self.emit(ops.FLOAT_TO_DOUBLE if wider else op[reader.kind], target.slot)

    def _bytes(self, writer: Schema, target: Target) -> None:
        if writer.kind == "fixed" or writer.size == UNFRAMED:
            self.emit(ops.FIXED, target.slot, writer.size)
        else:
            self.emit(ops.BYTES, target.slot)

    def _decimal(self, writer: Schema, target: Target) -> None:
        """Emit code for a decimal with its writer's precision and scale, or for a number that becomes a decimal."""
        reader = target.schema
        if writer.kind in ("int", "long"):
            bounds = INT_BOUNDS if writer.kind == "int" else LONG_BOUNDS
            self.emit(ops.LONG_TO_DECIMAL, target.slot, reader.precision - reader.scale, reader.scale, *bounds)
            return
        wrote = writer if writer.logical == "decimal" else reader
        shift = reader.scale - wrote.scale
        digits = max(min(wrote.precision, reader.precision - shift, DIGITS), 0)
        if writer.kind == "fixed":
            self.emit(ops.DECIMAL_FIXED, target.slot, digits, writer.size, shift)
        else:
            self.emit(ops.DECIMAL, target.slot, digits, 0, shift)

    def _number(self, writer: Schema, target: Target) -> None:
        reader = target.schema
        if reader.kind in ("float", "double"):
            bounds = INT_BOUNDS if writer.kind == "int" else LONG_BOUNDS
            op = ops.LONG_TO_DOUBLE if reader.kind == "double" else ops.LONG_TO_FLOAT
            self.emit(op, target.slot, *bounds, int(reader.combined))
            return
        lowest, highest, factor, divisor = conversion(writer, reader)
        if reader.kind == "int":
            self.emit(ops.INT, target.slot, lowest, highest)
        elif divisor > 1:
            self.emit(ops.LONG_DIVIDED, target.slot, lowest, highest, divisor)
        else:
            self.emit(ops.LONG, target.slot, lowest, highest, factor)

    def _record(self, writer: Schema, target: Target, where: str) -> None:
        named = dict(zip((f.name for f in target.schema.fields), target.children, strict=True))
        sources = sources_of(writer, target.schema)
        for source in writer.fields:
            reader = sources.get(source.name)
            if reader is None:
                self.skip(source.schema)
            else:
                self.value(source.schema, named[reader.name], f"{where}.{source.name}")
        read = {reader.name for reader in sources.values()}
        for missing in target.schema.fields:
            if missing.name not in read:
                self._missing(missing, named[missing.name], where)

    def _missing(self, missing: RecordField, target: Target, where: str) -> None:
        outer, self._target = self._target, target
        before = self._places()
        try:
            if not missing.has_default:
                raise SchemaError(f"{where} has no field {missing.name}, and the reader's schema has no default for it")
            self.default(missing, target)
        except SchemaError:
            if self._strict:
                raise
            self._undo(*before)
            self.nothing(target)
            self.emit(ops.BAD)
        finally:
            self._target = outer

    def default(self, field: RecordField, target: Target) -> None:
        """Emit a field's default. Raises SchemaError if the default is invalid."""
        schema = field.default_schema or field.schema
        try:
            self.constant(field.default, schema, target)
        except (TypeError, ValueError, KeyError, AttributeError, struct.error, OverflowError):
            raise SchemaError(f"the default of {field.name} is no {schema.title}: {field.default!r}") from None

    def _collection(self, items: Schema, target: Target, where: str) -> None:
        self._loop(items, target.inner, target.slot, lambda: self._item(items, target, where), len(target.children) > 1)

    def _item(self, items: Schema, target: Target, where: str) -> None:
        if len(target.children) > 1:
            key = target.children[0]
            self.places[self.emit(ops.TEXT, key.slot)] = key
        self.value(items, target.children[-1], f"an item of {where}")

    def _loop(self, items: Schema, level: int, slot: int, item: Callable[[], None], keyed: bool) -> None:
        self.emit(ops.LIST, level)
        block = self.emit(ops.BLOCK, level, slot, least_size(items) + keyed, 0)
        before = len(self.constants)
        item()
        # An item without bytes counts by the size of its result.
        text = least_text(items) if self.slots.as_json else 0
        self.patch(block, 5, 1 + max(len(self.constants) - before, text) // _FREE_BYTES)
        self.emit(ops.NEXT, block, int(level >= 0))
        self.patch(block, 4, self.here)

    def _enum(self, writer: Schema, target: Target, where: str) -> None:
        reader = target.schema
        allowed = reader.symbols if reader.kind == "enum" else writer.symbols
        symbols = [symbol if symbol in allowed else reader.default for symbol in writer.symbols]
        if symbols and not any(symbols):
            raise SchemaError(f"{where} is {writer.title}, none of whose symbols the reader's {reader.title} has")
        spans = [self.span(None if symbol is None else symbol.encode()) for symbol in symbols]
        self.emit(ops.ENUM, target.slot, spans[0] if spans else 0, len(spans))

    # ---- what is not in the data

    def nothing(self, target: Target) -> None:
        """Emit a NULL. Columns inside a NULL struct also need an item."""
        if target.valid >= 0:
            self.emit(ops.SET, target.valid, 1, 0)
        self._placeholder(target)

    def _placeholder(self, target: Target) -> None:
        if target.kind == "scalar":
            self.emit(ops.SET, target.slot, self.slots.slots[target.slot].width)
        elif target.kind in ("text", "digits"):
            self.emit(ops.EMPTY, target.slot, target.slot + 1)
            if target.kind == "digits":
                self.emit(ops.SET, target.inner, 4, NO_SCALE)
        elif target.kind in ("list", "map"):
            self.emit(ops.EMPTY, target.slot, len(self.slots.slots) + target.inner)
        else:
            for child in target.children:
                self.nothing(child)

    def constant(self, value: Any, schema: Schema, target: Target) -> None:
        """Emit a default value from JSON. The default of a union belongs to one of its branches. Raises ValueError if it is
        invalid.
        """
        if schema.kind == "union":
            fitting = [branch for branch in schema.branches if is_default(value, branch)]
            if not fitting:
                raise ValueError(value)
            return self.nothing(target) if value is None else self.constant(value, fitting[0], target)
        if not is_default(value, schema):
            raise ValueError(value)
        if schema.kind == "null":
            return self.nothing(target)
        self._valid(target)
        if target.kind in ("union", "mixed"):
            return self.constant(value, schema, self._member(schema, target))
        if target.kind == "struct":
            self._constant_fields(value, schema, target)
        elif target.kind in ("list", "map"):
            self._constant_items(value, schema, target)
        elif target.kind == "digits":
            self.emit(ops.SET, target.inner, 4, schema.scale)
            self.emit(ops.SET_TEXT, target.slot, self.span(value.encode("latin-1")))
        elif target.kind == "text":
            text = value.encode("latin-1" if schema.kind in ("bytes", "fixed") else "utf-8")
            self.emit(ops.SET_TEXT, target.slot, self.span(text))
        else:
            self._constant_scalar(value, schema, target)
        return None

    def _constant_fields(self, value: Any, schema: Schema, target: Target) -> None:
        fields = {f.name: f for f in schema.fields}
        for f, child in zip(target.schema.fields, target.children, strict=True):
            field = fields.get(f.name, f)
            if f.name in value and f.name in fields:
                self.constant(value[f.name], field.schema, child)
            elif field.has_default:
                self.constant(field.default, field.default_schema or field.schema, child)
            else:
                raise KeyError(f.name)

    def _constant_items(self, value: Any, schema: Schema, target: Target) -> None:
        items = schema.items
        assert items is not None
        self.emit(ops.OPEN, target.inner, len(value))
        for key in value:
            if target.kind == "map":
                self.emit(ops.SET_TEXT, target.children[0].slot, self.span(key.encode()))
            self.constant(value[key] if target.kind == "map" else key, items, target.children[-1])
            self.emit(ops.ADD)
        self.emit(ops.CLOSE, target.inner, target.slot)

    def _constant_scalar(self, value: Any, schema: Schema, target: Target) -> None:
        reader = target.schema
        if reader.logical == "decimal":
            written = int.from_bytes(value.encode("latin-1"), "big", signed=True) if isinstance(value, str) else value
            shift = reader.scale - schema.scale
            unscaled, left = divmod(written * 10 ** max(shift, 0), 10 ** max(-shift, 0))
            if value == "" or left or abs(unscaled) >= 10**reader.precision:
                raise ValueError(value)
            low, high = struct.unpack("<qq", unscaled.to_bytes(16, "little", signed=True))
            self.emit(ops.SET, target.slot, 16, low, high)
        elif reader.kind == "boolean":
            self.emit(ops.SET, target.slot, 1, int(value))
        elif reader.kind in ("float", "double"):
            wide = reader.kind == "double"
            packed = struct.pack("<d" if wide else "<f", float(value))
            self.emit(ops.SET, target.slot, len(packed), *struct.unpack("<q" if wide else "<i", packed))
        else:
            lowest, highest, factor, divisor = conversion(schema, reader)
            if not lowest <= value <= highest or value % divisor:
                raise ValueError(value)
            self.emit(ops.SET, target.slot, 4 if reader.kind == "int" else 8, value * factor // divisor)

    # ---- fields that the reader does not select

    def skip(self, schema: Schema) -> None:
        """Emit code that skips a datum. Records are subroutines, so that recursive ones work. Data without bytes need no code."""
        if self.slots.as_json and (schema.kind in _CHECKED or 0 < schema.precision <= DIGITS):
            self._check(schema)
        elif schema.kind in ("int", "long", "enum"):
            self.emit(ops.SKIP_VARINT)
        elif schema.kind in ("string", "bytes"):
            if schema.size != UNFRAMED:
                self.emit(ops.SKIP_BYTES)
        elif schema.kind in ("boolean", "float", "double", "fixed"):
            self.emit(ops.SKIP, {"boolean": 1, "float": 4, "double": 8}.get(schema.kind, schema.size))
        elif schema.kind == "union":
            self.union([deferred(self.skip, branch) for branch in schema.branches])
        elif schema.items is not None:
            items = schema.items
            self._loop(items, -1, -1, lambda: self._skip_item(items, schema.kind == "map"), schema.kind == "map")
        elif schema.kind == "record" and least_size(schema) > 0:
            self._skipped.setdefault(schema, []).append(self.emit(ops.CALL, -1))

    def _skip_item(self, items: Schema, keyed: bool) -> None:
        if keyed:
            self.skip(Schema("string"))
        self.skip(items)

    def _check(self, schema: Schema) -> None:
        """Emit code that reads a value only to detect its error; no column holds it."""
        number, text = self._unused = self._unused or (self.slots.add(0, 16), self.slots.add_text(0))
        if schema.kind == "enum":
            self.emit(ops.INT, number, 0, len(schema.symbols) - 1)
        else:
            kind, slot = ("text", text) if schema.kind == "string" else ("scalar", number)
            self._plain(schema, Target(schema, kind, pa.null(), 0, slot=slot), "a value")

    def _skip_records(self) -> None:
        done: dict[Schema, int] = {}
        while left := [schema for schema in self._skipped if schema not in done]:
            done[left[0]] = self.here
            self._target = None
            for f in left[0].fields:
                self.skip(f.schema)
            self.emit(ops.RETURN)
        for schema, calls in self._skipped.items():
            for call in calls:
                self.patch(call, 1, done[schema])
        self._skipped.clear()


def _reader(target: Target) -> str:
    if target.kind not in ("union", "mixed"):
        return target.schema.title
    return f"union of {', '.join(branch.title for branch in target.schema.branches)}"
