"""From a writer's schema and a reader's column to a program: schema resolution, done once and not for each row.

A bit long, as it is the specification's list of cases, one method each.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from sparkwire.avro import ops
from sparkwire.avro.assembler import INT_BOUNDS, LONG_BOUNDS, Assembler, bounds_of, deferred, least_size
from sparkwire.avro.rules import branch_for, is_default, matches, sources_of
from sparkwire.avro.schema import RecordField, Schema, SchemaError
from sparkwire.avro.targets import Slots, Target
from sparkwire.base.errors import BAD_FIELD

_FREE_DEFAULT: Final = 1024
"""[bytes] of defaults that an item without bytes may have and count once"""


class Resolver(Assembler):
    """Writes programs that fill one target."""

    def __init__(self, slots: Slots) -> None:
        super().__init__()
        self.slots = slots
        self._skipped: dict[Schema, list[int]] = {}

    def datum(self, writer: Schema, target: Target) -> int:
        """The program of one datum; where it begins."""
        entry = self.here
        self.value(writer, target, "the datum")
        self.emit(ops.END)
        self._skip_records()
        return entry

    def value(self, writer: Schema, target: Target, where: str) -> None:
        """Read a datum of the writer's schema into the target."""
        if writer.kind == "union":
            self._branches(writer, target, where)
        elif writer.kind == "null":
            if target.valid < 0 and target.kind != "null":
                raise SchemaError(f"{where} is null, which {_reader(target)} cannot be")
            self.nothing(target)
        else:
            reader = branch_for(writer, target.schema) if target.kind == "union" else 0
            if reader is None or not (target.kind == "union" or matches(writer, target.schema)):
                raise SchemaError(f"{where} is {writer.title}, which cannot be read as {_reader(target)}")
            self._valid(target)
            if target.kind == "union":
                for k, child in enumerate(target.children):
                    if k != reader:
                        self.nothing(child)
                self.value(writer, target.children[reader], where)
            else:
                self._plain(writer, target, where)

    def _valid(self, target: Target) -> None:
        if target.valid >= 0:
            self.emit(ops.SET, target.valid, 1, 1)

    def _branches(self, writer: Schema, target: Target, where: str) -> None:
        failures: list[SchemaError] = []

        def branch(schema: Schema) -> Callable[[], None]:
            def code() -> None:
                before = (self.here, len(self.jumps), len(self.spans), len(self.constants))
                try:
                    self.value(schema, target, where)
                except SchemaError as e:
                    # It is an error only where a datum is of this branch.
                    failures.append(e)
                    del (
                        self.code[before[0] :],
                        self.jumps[before[1] :],
                        self.spans[before[2] :],
                        self.constants[before[3] :],
                    )
                    self.emit(ops.FAIL, BAD_FIELD)

            return code

        kinds = [schema.kind for schema in writer.branches]
        if len(kinds) == 2 and kinds.count("null") == 1 and target.valid >= 0 and target.kind != "union":
            self._option(writer, target, kinds.index("null"), where)
            return
        self.union(ops.UNION, [branch(schema) for schema in writer.branches])
        if len(failures) == len(writer.branches):
            raise failures[0]

    def _option(self, writer: Schema, target: Target, null: int, where: str) -> None:
        """A union of null and one other, which most unions are."""
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
        elif reader.kind == "enum":
            self._enum(writer, target, where)
        elif reader.logical == "decimal":
            sized = (ops.DECIMAL_FIXED, writer.size) if writer.kind == "fixed" else (ops.DECIMAL, 0)
            self.emit(sized[0], target.slot, reader.precision, sized[1])
        elif reader.kind == "fixed":
            self.emit(ops.FIXED, target.slot, writer.size)
        elif writer.kind in ("int", "long"):
            self._number(writer, target)
        else:
            op = {
                "boolean": ops.BOOLEAN,
                "float": ops.FLOAT,
                "double": ops.DOUBLE,
                "string": ops.TEXT,
                "bytes": ops.BYTES,
            }
            wider = writer.kind == "float" and reader.kind == "double"
            self.emit(ops.FLOAT_TO_DOUBLE if wider else op[reader.kind], target.slot)

    def _number(self, writer: Schema, target: Target) -> None:
        reader = target.schema
        if reader.kind in ("float", "double"):
            op = ops.LONG_TO_DOUBLE if reader.kind == "double" else ops.LONG_TO_FLOAT
            self.emit(op, target.slot, *(INT_BOUNDS if writer.kind == "int" else LONG_BOUNDS))
            return
        allowed = bounds_of(reader)
        lowest, highest = max(allowed.lowest, INT_BOUNDS[0]), min(allowed.highest, INT_BOUNDS[1])
        given = (lowest, highest) if writer.kind == "int" else allowed[:2]
        if reader.kind == "int":
            self.emit(ops.INT, target.slot, *given)
        else:
            self.emit(ops.LONG, target.slot, *given, allowed.factor)

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
        if not missing.has_default:
            raise SchemaError(f"{where} has no field {missing.name}, and the reader's schema has no default for it")
        try:
            self.constant(missing.default, missing.schema, target)
        except (TypeError, ValueError, KeyError, AttributeError, struct.error, OverflowError):
            raise SchemaError(
                f"the default of {missing.name} is no {missing.schema.title}: {missing.default!r}"
            ) from None

    def _collection(self, items: Schema, target: Target, where: str) -> None:
        self._loop(items, target.inner, target.slot, lambda: self._item(items, target, where), len(target.children) > 1)

    def _item(self, items: Schema, target: Target, where: str) -> None:
        if len(target.children) > 1:
            self.emit(ops.TEXT, target.children[0].slot)
        self.value(items, target.children[-1], f"an item of {where}")

    def _loop(self, items: Schema, level: int, slot: int, item: Callable[[], None], keyed: bool) -> None:
        self.emit(ops.LIST, level)
        block = self.emit(ops.BLOCK, level, slot, least_size(items) + keyed, 0)
        before = len(self.constants)
        item()
        # An item without bytes counts by the defaults that it becomes.
        self.patch(block, 5, 1 + (len(self.constants) - before) // _FREE_DEFAULT)
        self.emit(ops.NEXT, block)
        self.patch(block, 4, self.here)

    def _enum(self, writer: Schema, target: Target, where: str) -> None:
        known = target.schema.symbols
        symbols = [symbol if symbol in known else target.schema.default for symbol in writer.symbols]
        if symbols and not any(symbols):
            raise SchemaError(
                f"{where} is {writer.title}, none of whose symbols the reader's {target.schema.title} has"
            )
        spans = [self.span(None if symbol is None else symbol.encode()) for symbol in symbols]
        self.emit(ops.ENUM, target.slot, spans[0] if spans else 0, len(spans))

    # ---- what is not in the data

    def nothing(self, target: Target) -> None:
        """A NULL, or an item whose outer one is NULL: every column has a place for it."""
        if target.valid >= 0:
            self.emit(ops.SET, target.valid, 1, 0)
        self._placeholder(target)

    def _placeholder(self, target: Target) -> None:
        if target.kind == "scalar":
            self.emit(ops.SET, target.slot, self.slots.slots[target.slot].width)
        elif target.kind == "text":
            self.emit(ops.EMPTY, target.slot, target.slot + 1)
        elif target.kind in ("list", "map"):
            self.emit(ops.EMPTY, target.slot, len(self.slots.slots) + target.inner)
        else:
            for child in target.children:
                self.nothing(child)

    def constant(self, value: Any, schema: Schema, target: Target) -> None:
        """A reader's default, as JSON has it: of a union that of one of its branches."""
        if schema.kind == "union":
            fitting = [branch for branch in schema.branches if is_default(value, branch)]
            if value is None and fitting:
                return self.nothing(target)
            if not fitting:
                raise ValueError(value)
            if target.kind == "union":
                self._valid(target)
                chosen = target.schema.branches.index(fitting[0])
                for k, child in enumerate(target.children):
                    if k != chosen:
                        self.nothing(child)
                return self.constant(value, fitting[0], target.children[chosen])
            return self.constant(value, target.schema if fitting[0].kind != "record" else fitting[0], target)
        if not is_default(value, schema):
            raise ValueError(value)
        self._valid(target)
        if target.kind == "struct":
            for f, child in zip(schema.fields, target.children, strict=True):
                self.constant(value[f.name] if f.name in value or not f.has_default else f.default, f.schema, child)
        elif target.kind in ("list", "map"):
            self._constant_items(value, target)
        elif target.kind == "text":
            text = value.encode("latin-1" if schema.kind in ("bytes", "fixed") else "utf-8")
            self.emit(ops.SET_TEXT, target.slot, self.span(text))
        elif target.kind == "scalar":
            self._constant_scalar(value, target)
        return None

    def _constant_items(self, value: Any, target: Target) -> None:
        items = target.schema.items
        assert items is not None
        self.emit(ops.OPEN, target.inner, len(value))
        for key in value:
            if target.kind == "map":
                self.emit(ops.SET_TEXT, target.children[0].slot, self.span(key.encode()))
            self.constant(value[key] if target.kind == "map" else key, items, target.children[-1])
            self.emit(ops.ADD)
        self.emit(ops.CLOSE, target.inner, target.slot)

    def _constant_scalar(self, value: Any, target: Target) -> None:
        schema = target.schema
        if schema.logical == "decimal":
            number = int.from_bytes(value.encode("latin-1"), "big", signed=True)
            if not value or abs(number) >= 10**schema.precision:
                raise ValueError(value)
            low, high = struct.unpack("<qq", number.to_bytes(16, "little", signed=True))
            self.emit(ops.SET, target.slot, 16, low, high)
        elif schema.kind == "boolean":
            self.emit(ops.SET, target.slot, 1, int(value))
        elif schema.kind in ("float", "double"):
            wide = schema.kind == "double"
            word = (
                struct.unpack("<q", struct.pack("<d", value))[0]
                if wide
                else struct.unpack("<i", struct.pack("<f", value))[0]
            )
            self.emit(ops.SET, target.slot, 8 if wide else 4, word)
        else:
            allowed = bounds_of(schema)
            if not allowed.lowest <= value <= allowed.highest:
                raise ValueError(value)
            self.emit(ops.SET, target.slot, 4 if schema.kind == "int" else 8, value * allowed.factor)

    # ---- what the reader does not ask for

    def skip(self, schema: Schema) -> None:
        """Step over a datum. Records are routines: a recursive one calls itself. What has no bytes takes no step."""
        if schema.kind in ("int", "long", "enum"):
            self.emit(ops.SKIP_VARINT)
        elif schema.kind in ("string", "bytes"):
            self.emit(ops.SKIP_BYTES)
        elif schema.kind in ("boolean", "float", "double", "fixed"):
            self.emit(ops.SKIP, {"boolean": 1, "float": 4, "double": 8}.get(schema.kind, schema.size))
        elif schema.kind == "union":
            self.union(ops.UNION, [deferred(self.skip, branch) for branch in schema.branches])
        elif schema.items is not None:
            items = schema.items
            self._loop(items, -1, -1, lambda: self._skip_item(items, schema.kind == "map"), schema.kind == "map")
        elif schema.kind == "record" and least_size(schema) > 0:
            self._skipped.setdefault(schema, []).append(self.emit(ops.CALL, -1))

    def _skip_item(self, items: Schema, keyed: bool) -> None:
        if keyed:
            self.emit(ops.SKIP_BYTES)
        self.skip(items)

    def _skip_records(self) -> None:
        done: dict[Schema, int] = {}
        while left := [schema for schema in self._skipped if schema not in done]:
            done[left[0]] = self.here
            for f in left[0].fields:
                self.skip(f.schema)
            self.emit(ops.RETURN)
        for schema, calls in self._skipped.items():
            for call in calls:
                self.patch(call, 1, done[schema])
        self._skipped.clear()


def _reader(target: Target) -> str:
    if target.kind != "union":
        return target.schema.title
    return f"union of {', '.join(branch.title for branch in target.schema.branches)}"
