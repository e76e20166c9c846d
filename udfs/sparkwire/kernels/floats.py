"""Convert the bits of IEEE 754 numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sparkwire.kernels.load import Int

_LONG, _WORD = ir.IntType(64), ir.IntType(32)


def _converter(result: Any, convert: Callable[[ir.IRBuilder, Any], Any]) -> Callable[[Int], int]:
    """A function from a 64-bit word to the bits of a number, as one instruction."""

    @intrinsic  # type: ignore[untyped-decorator]
    def bits(typing_context: Any, value: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            number = convert(builder, args[0])
            return builder.bitcast(number, ir.IntType(result.bitwidth))

        return result(types.int64), emit

    return bits  # type: ignore[no-any-return]


def _widen(builder: ir.IRBuilder, value: Any) -> Any:
    return builder.fpext(builder.bitcast(builder.trunc(value, _WORD), ir.FloatType()), ir.DoubleType())


long_to_double: Callable[[Int], int] = _converter(
    types.int64, lambda builder, value: builder.sitofp(value, ir.DoubleType())
)
long_to_float: Callable[[Int], int] = _converter(
    types.int32, lambda builder, value: builder.sitofp(value, ir.FloatType())
)
float_to_double: Callable[[Int], int] = _converter(types.int64, _widen)
"""converts the bits of a FLOAT, in the lower half, to those of a DOUBLE"""
