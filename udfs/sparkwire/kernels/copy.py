"""Copies of short byte fields.

Most fields are shorter than a cache line, where a call of memcpy costs more than the copy: up to
``SHORT`` bytes go in chunks of ``CHUNK`` that may run over the field's end, into ``COPY_SLACK`` bytes
that the destination has to spare.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, Int, address

CHUNK = 64  # [bytes]
SHORT = 256  # [bytes]
COPY_SLACK = CHUNK  # [bytes] that every destination of `copy` has after the last byte that counts


@kernel
def copy(dst: Bytes, di: Int, src: Bytes, si: Int, n: Int) -> None:
    """Copy ``src[si : si + n]`` to ``dst[di : di + n]``; may write up to ``COPY_SLACK`` bytes more.

    Reads nothing outside of ``src``: near its end the copy is exact.
    """
    if n <= SHORT and si + n + (CHUNK - 1) <= src.size:
        done = 0
        while done < n:
            _copy_chunk(dst, di + done, src, si + done)
            done += CHUNK
    else:
        _copy_exact(dst, di, src, si, n)


@intrinsic  # type: ignore[untyped-decorator]
def _copy_chunk(typing_context: Any, dst: Any, di: Any, src: Any, si: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        chunk = ir.VectorType(ir.IntType(8), CHUNK).as_pointer()
        size = ir.IntType(64)(CHUNK)
        target = address(context, builder, signature.args[0], args[0], args[1], size)
        source = address(context, builder, signature.args[2], args[2], args[3], size)
        value = builder.load(builder.bitcast(source, chunk), align=1)
        builder.store(value, builder.bitcast(target, chunk), align=1)
        return context.get_dummy_value()

    return types.void(dst, types.int64, src, types.int64), emit


@intrinsic  # type: ignore[untyped-decorator]
def _copy_exact(typing_context: Any, dst: Any, di: Any, src: Any, si: Any, n: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = address(context, builder, signature.args[0], args[0], args[1], args[4])
        source = address(context, builder, signature.args[2], args[2], args[3], args[4])
        cgutils.raw_memcpy(builder, target, source, args[4], 1, align=1)
        return context.get_dummy_value()

    return types.void(dst, types.int64, src, types.int64, types.int64), emit
