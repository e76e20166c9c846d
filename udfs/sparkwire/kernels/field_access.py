"""Read the fixed fields of rows into columns, and write them back, with straight-line loads and stores emitted from a table.

A loop over a table of offsets would cost more than the loads themselves. Here the table is read only at compile
time: each variant of a row gets one block of code with constant offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sparkwire.base.grammar import Layout
from sparkwire.kernels.load import address, in_order

_INDEX = ir.IntType(64)
_BLOB = 16  # [bytes] fields of this width are copied; all others are read as numbers


class FieldPlace(NamedTuple):
    """The location of a field in a variant of a row, and how to read it."""

    offset: int
    """[bytes] from the row's start"""
    width: int
    """[bytes] 1, 2, 4 or 8 for a number; 16 for bytes, which are copied unchanged"""
    signed: bool
    little: bool

    @property
    def end(self) -> int:
        return self.offset + self.width


Variant: TypeAlias = Sequence[FieldPlace | None]
"""For each output column, the location of its field in this variant; None if the variant does not have it."""


def variant_of(table: Layout, names: Sequence[str], little: bool = False) -> Variant:
    """The locations of the fields with these names in rows of a layout."""
    placed = (table.get(name) for name in names)
    return tuple(
        None if p is None else FieldPlace(p.offset, p.field.width, p.field.wire.startswith("i"), little) for p in placed
    )


def field_reader(variants: Sequence[Variant]) -> Callable[..., None]:
    """A function ``read(data, start, size, variant, outs, row)`` for rows of the variants 0, 1, … of the table.

    It writes field ``k`` of the row ``data[start:start + size]`` to ``outs[k][row]``, widened to the column's type. A field of
    16 bytes goes to ``outs[k][16 * row:]``, a column of uint8. It writes 0 if the row is too short for the field, or its
    variant does not have it. ``variant`` must be an index into the table.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def read(typing_context: Any, data: Any, start: Any, size: Any, variant: Any, outs: Any, row: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _Emitter(context, builder, signature, args).rows_of(variants)
            return context.get_dummy_value()

        index = types.int64
        return types.void(data, index, index, index, outs, index), emit

    return read  # type: ignore[no-any-return]


class _Emitter:
    """Emits one call of ``read``."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.context, self.builder = context, builder
        self.data_type, self.outs_type = signature.args[0], signature.args[4]
        self.data, self.start, self.size, self.variant, self.outs, self.row = args

    def rows_of(self, variants: Sequence[Variant]) -> None:
        done = self.builder.append_basic_block("fields.done")
        blocks = [self.builder.append_basic_block(f"fields.variant{i}") for i in range(len(variants))]
        choice = self.builder.switch(self.variant, blocks[0])
        for number, (variant, block) in enumerate(zip(variants, blocks, strict=True)):
            if number:
                choice.add_case(_INDEX(number), block)
            self.builder.position_at_end(block)
            self._row(variant)
            self.builder.branch(done)
        self.builder.position_at_end(done)

    def _row(self, variant: Variant) -> None:
        longest = max(place.end for place in variant if place is not None)
        whole = self.builder.icmp_signed(">=", self.size, _INDEX(longest))
        with self.builder.if_else(whole, likely=True) as (then, otherwise):
            with then:
                for column, place in enumerate(variant):
                    self._store(column, place)
            with otherwise:
                for column, place in enumerate(variant):
                    self._store_if_present(column, place)

    def _store_if_present(self, column: int, place: FieldPlace | None) -> None:
        if place is None:
            self._store(column, None)
            return
        present = self.builder.icmp_signed(">=", self.size, _INDEX(place.end))
        with self.builder.if_else(present) as (then, otherwise):
            with then:
                self._store(column, place)
            with otherwise:
                self._store(column, None)

    def _store(self, column: int, place: FieldPlace | None) -> None:
        builder, out_type = self.builder, self.outs_type.types[column]
        out = builder.extract_value(self.outs, column)
        # A uint8 column holds 16-byte fields, because number columns are signed.
        size = _BLOB if out_type.dtype == types.uint8 else out_type.dtype.bitwidth // 8
        number = ir.VectorType(ir.IntType(8), _BLOB) if size == _BLOB else ir.IntType(8 * size)
        value = ir.Constant(number, None) if place is None else self._load(place, size)
        at = builder.mul(self.row, _INDEX(size))
        target = address(self.context, builder, out_type, out, at, _INDEX(size))
        builder.store(value, builder.bitcast(target, value.type.as_pointer()), align=1)

    def _load(self, place: FieldPlace, size: int) -> Any:
        builder = self.builder
        at = builder.add(self.start, _INDEX(place.offset))
        source = address(self.context, builder, self.data_type, self.data, at, _INDEX(place.width))
        if place.width == _BLOB:
            vector = ir.VectorType(ir.IntType(8), _BLOB)
            return builder.load(builder.bitcast(source, vector.as_pointer()), align=1)
        number = ir.IntType(8 * place.width)
        value = builder.load(builder.bitcast(source, number.as_pointer()), align=1)
        value = in_order(builder, value, ir.Constant(ir.IntType(1), place.little))
        if size == place.width:
            return value
        widen = builder.sext if place.signed else builder.zext
        return widen(value, ir.IntType(8 * size))


# -- columns to fields

_ITEM = 8  # [bytes] of a column's int64


def field_writer(variants: Sequence[Variant]) -> Callable[..., None]:
    """A function ``write(out, start, variant, columns, row)`` for rows of the variants 0, 1, … of the table.

    It stores ``columns[k][row]``, truncated to the field's width, as field ``k`` of the row that begins at ``out[start]``, for
    every field of the variant. The fields are numbers, the columns int64. ``variant`` must be an index into the table.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def write(typing_context: Any, out: Any, start: Any, variant: Any, columns: Any, row: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _emit_variants(context, builder, signature, args, variants)
            return context.get_dummy_value()

        index = types.int64
        return types.void(out, index, index, columns, index), emit

    return write  # type: ignore[no-any-return]


def _emit_variants(context: Any, builder: Any, signature: Any, args: Any, variants: Sequence[Variant]) -> None:
    done = builder.append_basic_block("store.done")
    choice = builder.switch(args[2], done)
    for number, variant in enumerate(variants):
        block = builder.append_basic_block(f"store.variant{number}")
        choice.add_case(_INDEX(number), block)
        builder.position_at_end(block)
        for column, place in enumerate(variant):
            if place is not None:
                _emit_field(context, builder, signature, args, column, place)
        builder.branch(done)
    builder.position_at_end(done)


def _emit_field(context: Any, builder: Any, signature: Any, args: Any, column: int, place: FieldPlace) -> None:
    out, start, _, columns, row = args
    source = builder.extract_value(columns, column)
    at = builder.mul(row, _INDEX(_ITEM))
    item = address(context, builder, signature.args[3].types[column], source, at, _INDEX(_ITEM))
    value = builder.load(builder.bitcast(item, _INDEX.as_pointer()))
    number = ir.IntType(8 * place.width)
    if place.width < _ITEM:
        value = builder.trunc(value, number)
    value = in_order(builder, value, ir.Constant(ir.IntType(1), place.little))
    at = builder.add(start, _INDEX(place.offset))
    target = address(context, builder, signature.args[0], out, at, _INDEX(place.width))
    builder.store(value, builder.bitcast(target, number.as_pointer()), align=1)
