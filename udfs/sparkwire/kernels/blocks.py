"""Test many bytes in one step: as a mask with one bit for each byte, or as the number of bytes before the first match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sparkwire.kernels.load import Bytes, Int, LoadByte, address

BLOCK = 64  # [bytes] of a mask; the lowest bit is the first byte
LANES = 16  # [bytes] that a run test reads
PLAIN = 0x5F  # the width of a range from a space on, see `misfits`

_QUOTE, _BACKSLASH, _ZERO, _U = b'"\\0u'


def _every(byte: int, lanes: int) -> ir.Constant:
    return ir.Constant(ir.VectorType(ir.IntType(8), lanes), [byte] * lanes)


def _chunk(context: Any, builder: Any, array_type: Any, array: Any, pos: Any, lanes: int) -> Any:
    at = address(context, builder, array_type, array, pos, ir.IntType(64)(lanes))
    return builder.load(builder.bitcast(at, ir.VectorType(ir.IntType(8), lanes).as_pointer()), align=1)


def _are(byte: int) -> Callable[[Any, Any], Any]:
    return lambda builder, chunk: builder.icmp_unsigned("==", chunk, _every(byte, chunk.type.count))


def _stop(builder: Any, chunk: Any) -> Any:
    # A signed comparison, so that bytes from 0x80 on are also below a space.
    low = builder.icmp_signed("<", chunk, _every(0x20, chunk.type.count))
    return builder.or_(low, builder.or_(_are(_QUOTE)(builder, chunk), _are(_BACKSLASH)(builder, chunk)))


def _are_no_digits(builder: Any, chunk: Any) -> Any:
    digits = builder.sub(chunk, _every(_ZERO, chunk.type.count))
    return builder.icmp_unsigned(">", digits, _every(9, chunk.type.count))


def _mask(test: Callable[[Any, Any], Any]) -> LoadByte:
    """A function that returns which of the ``BLOCK`` bytes at a position pass a test."""

    @intrinsic  # type: ignore[untyped-decorator]
    def mask(typing_context: Any, data: Any, pos: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            chunk = _chunk(context, builder, signature.args[0], args[0], args[1], BLOCK)
            return builder.bitcast(test(builder, chunk), ir.IntType(BLOCK))

        return types.uint64(data, types.int64), emit

    return mask  # type: ignore[no-any-return]


def _run(test: Callable[[Any, Any], Any]) -> LoadByte:
    """A function that counts the bytes at a position before the first that passes a test; ``LANES`` if none does."""

    @intrinsic  # type: ignore[untyped-decorator]
    def run(typing_context: Any, data: Any, pos: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            chunk = _chunk(context, builder, signature.args[0], args[0], args[1], LANES)
            passed = builder.bitcast(test(builder, chunk), ir.IntType(LANES))
            return builder.zext(builder.cttz(passed, ir.IntType(1)(0)), ir.IntType(64))

        return types.int64(data, types.int64), emit

    return run  # type: ignore[no-any-return]


def _high(builder: Any, chunk: Any) -> Any:
    return builder.icmp_signed("<", chunk, _every(0, chunk.type.count))


high_bytes: LoadByte = _mask(_high)
"""bytes from 0x80 on"""
stops: LoadByte = _mask(_stop)
"""bytes that are not plain ASCII characters of a JSON string: quotes, backslashes, control characters, bytes from 0x80 on"""
backslashes: LoadByte = _mask(_are(_BACKSLASH))
letters_u: LoadByte = _mask(_are(_U))
digit_run: LoadByte = _run(_are_no_digits)


@intrinsic  # type: ignore[untyped-decorator]
def _differences(typing_context: Any, data: Any, a: Any, b: Any) -> Any:
    """Which of the ``BLOCK`` bytes from ``a`` on differ from those from ``b`` on."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first, second = (_chunk(context, builder, signature.args[0], args[0], at, BLOCK) for at in args[1:])
        return builder.bitcast(builder.icmp_unsigned("!=", first, second), ir.IntType(BLOCK))

    return types.uint64(data, types.int64, types.int64), emit


@intrinsic  # type: ignore[untyped-decorator]
def _misfits(typing_context: Any, data: Any, pos: Any, lowest: Any, widths: Any, place: Any) -> Any:
    """Which of the ``BLOCK`` bytes at ``pos`` are outside of the ranges at ``place``: the lowest byte of each, and its width.

    A quote or a backslash is never inside of a `PLAIN` range.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arrays = ((0, args[1]), (2, args[4]), (3, args[4]))
        chunk, low, width = (_chunk(context, builder, signature.args[k], args[k], at, BLOCK) for k, at in arrays)
        outside = builder.icmp_unsigned(">", builder.sub(chunk, low), width)
        marked = builder.or_(_are(_QUOTE)(builder, chunk), _are(_BACKSLASH)(builder, chunk))
        not_plain = builder.and_(marked, _are(PLAIN)(builder, width))
        return builder.bitcast(builder.or_(outside, not_plain), ir.IntType(BLOCK))

    return types.uint64(data, types.int64, lowest, widths, types.int64), emit


@intrinsic  # type: ignore[untyped-decorator]
def _lowest(typing_context: Any, mask: Any) -> Any:
    """The index of the lowest set bit; ``BLOCK`` if no bit is set."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(0))

    return types.int64(types.uint64), emit


differences: Callable[[Bytes, Int, Int], int] = _differences
misfits: Callable[[Bytes, Int, Bytes, Bytes, Int], int] = _misfits
lowest: Callable[[int], int] = _lowest
