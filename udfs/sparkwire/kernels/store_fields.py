"""Write columns to the fixed fields of rows: the reverse of `sparkwire.kernels.field_access`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sparkwire.kernels.field_access import FieldPlace, Variant
from sparkwire.kernels.load import address, in_order

_INDEX = ir.IntType(64)
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
