"""Copies of short byte fields.

Most fields are shorter than a cache line. For these, a call of memcpy costs more than the copy itself. So up to ``SHORT``
bytes are copied in chunks of ``CHUNK`` bytes. The last chunk may write past the field's end, into ``COPY_SLACK`` extra bytes
of the destination. A field that fits into one ``WORD`` is copied as one word, because a chunk would nearly always cross a
cache line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, Int, address

CHUNK = 64  # [bytes]
WORD = 16  # [bytes]
SHORT = 256  # [bytes]
COPY_SLACK = CHUNK  # [bytes] that every destination of `copy` must have after its last used byte


@kernel
def copy(dst: Bytes, di: Int, src: Bytes, si: Int, n: Int) -> None:
    """Copy ``src[si : si + n]`` to ``dst[di : di + n]``; may write up to ``COPY_SLACK`` bytes more.

    It does not read beyond ``src``: near the end of ``src`` the copy is exact.
    """
    if 0 < n <= WORD and si + WORD <= src.size:
        _copy_word(dst, di, src, si)
    elif n <= SHORT and si + n + (CHUNK - 1) <= src.size:
        done = 0
        while done < n:
            copy_chunk(dst, di + done, src, si + done)
            done += CHUNK
    else:
        _copy_exact(dst, di, src, si, n)


def _copier(size: int) -> Callable[[Bytes, Int, Bytes, Int], None]:
    """A function that copies ``size`` bytes with one load and one store."""

    @intrinsic  # type: ignore[untyped-decorator]
    def copy_vector(typing_context: Any, dst: Any, di: Any, src: Any, si: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(ir.IntType(8), size).as_pointer()
            target = address(context, builder, signature.args[0], args[0], args[1], ir.IntType(64)(size))
            source = address(context, builder, signature.args[2], args[2], args[3], ir.IntType(64)(size))
            value = builder.load(builder.bitcast(source, vector), align=1)
            builder.store(value, builder.bitcast(target, vector), align=1)
            return context.get_dummy_value()

        return types.void(dst, types.int64, src, types.int64), emit

    return copy_vector  # type: ignore[no-any-return]


_copy_word = _copier(WORD)
copy_chunk: Callable[[Bytes, Int, Bytes, Int], None] = _copier(CHUNK)


@intrinsic  # type: ignore[untyped-decorator]
def _copy_exact(typing_context: Any, dst: Any, di: Any, src: Any, si: Any, n: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = address(context, builder, signature.args[0], args[0], args[1], args[4])
        source = address(context, builder, signature.args[2], args[2], args[3], args[4])
        cgutils.raw_memcpy(builder, target, source, args[4], 1, align=1)
        return context.get_dummy_value()

    return types.void(dst, types.int64, src, types.int64, types.int64), emit
