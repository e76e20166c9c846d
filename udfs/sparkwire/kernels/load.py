"""Machine words and short spans of bytes: load, store, convert and copy them, with a few LLVM instructions each.

Assembling a number byte by byte takes two to four times as long as a load and a byte swap. LLVM does not merge the bytes under
Numba's indexing. Loads and stores are unchecked: a kernel checks its bounds before. The checked build verifies this
(``SPARKWIRE_CHECKED=1``, see :mod:`sparkwire.kernels.jit`).

``data`` and ``out`` are contiguous uint8 arrays, ``pos`` is a byte position. Values are big-endian
unless ``little``.

A kernel computes in the widths that it loads; ``int64(x)`` widens a value before arithmetic. For a type checker, the result is
an ``int``, like every size and position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from sparkwire.kernels.jit import CHECKED, kernel

Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Int: TypeAlias = int | np.integer[Any]
Load: TypeAlias = Callable[[Bytes, Int, bool], int]
LoadByte: TypeAlias = Callable[[Bytes, Int], int]
Store: TypeAlias = Callable[[Bytes, Int, Int, bool], None]
StoreByte: TypeAlias = Callable[[Bytes, Int, Int], None]

int64: Callable[[Any], int] = np.int64  # type: ignore[assignment]
uint64: Callable[[Any], int] = np.uint64  # type: ignore[assignment]

_BYTE = ir.IntType(8)
_POINTER = _BYTE.as_pointer()
_INT = ir.IntType(32)
_INDEX = ir.IntType(64)


def address(context: Any, builder: ir.IRBuilder, array_type: Any, array: Any, pos: Any, size: Any) -> Any:
    """Pointer to byte ``pos`` of ``array``. The checked build checks that ``size`` bytes exist there."""
    buffer = context.make_array(array_type)(context, builder, array)
    if CHECKED:
        room = builder.mul(buffer.nitems, buffer.itemsize)
        outside = builder.or_(
            builder.or_(builder.icmp_signed("<", pos, _INDEX(0)), builder.icmp_signed("<", size, _INDEX(0))),
            builder.icmp_signed(">", size, builder.sub(room, pos)),
        )
        with builder.if_then(outside, likely=False):
            context.call_conv.return_user_exc(builder, IndexError, ("raw access outside of its array",))
    return builder.gep(builder.bitcast(buffer.data, _POINTER), [pos])


def in_order(builder: ir.IRBuilder, value: Any, little: Any) -> Any:
    """Convert ``value`` between the machine's byte order (little-endian) and the given one."""
    if value.type.width == 8:
        return value
    return builder.select(little, value, builder.bswap(value))


def _loader(result: Any) -> Load:
    width = ir.IntType(result.bitwidth)

    @intrinsic  # type: ignore[untyped-decorator]
    def load(typing_context: Any, data: Any, pos: Any, little: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            at = address(context, builder, signature.args[0], args[0], args[1], _INDEX(result.bitwidth // 8))
            value = builder.load(builder.bitcast(at, width.as_pointer()), align=1)
            return in_order(builder, value, args[2])

        return result(data, types.int64, types.boolean), emit

    return load  # type: ignore[no-any-return]


def _byte_loader(result: Any) -> LoadByte:
    @intrinsic  # type: ignore[untyped-decorator]
    def load(typing_context: Any, data: Any, pos: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load(address(context, builder, signature.args[0], args[0], args[1], _INDEX(1)))

        return result(data, types.int64), emit

    return load  # type: ignore[no-any-return]


def _storer(stored: Any) -> Store:
    width = ir.IntType(stored.bitwidth)

    @intrinsic  # type: ignore[untyped-decorator]
    def store(typing_context: Any, out: Any, pos: Any, value: Any, little: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            at = address(context, builder, signature.args[0], args[0], args[1], _INDEX(stored.bitwidth // 8))
            value = in_order(builder, args[2], args[3])
            builder.store(value, builder.bitcast(at, width.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(out, types.int64, stored, types.boolean), emit

    return store  # type: ignore[no-any-return]


def _byte_storer(stored: Any) -> StoreByte:
    @intrinsic  # type: ignore[untyped-decorator]
    def store(typing_context: Any, out: Any, pos: Any, value: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.store(args[2], address(context, builder, signature.args[0], args[0], args[1], _INDEX(1)))
            return context.get_dummy_value()

        return types.void(out, types.int64, stored), emit

    return store  # type: ignore[no-any-return]


u8: LoadByte = _byte_loader(types.uint8)
i8: LoadByte = _byte_loader(types.int8)
i16: Load = _loader(types.int16)
u16: Load = _loader(types.uint16)
i32: Load = _loader(types.int32)
u32: Load = _loader(types.uint32)
i64: Load = _loader(types.int64)

store_u8: StoreByte = _byte_storer(types.uint8)
store_i16: Store = _storer(types.int16)
store_i32: Store = _storer(types.int32)
store_i64: Store = _storer(types.int64)


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing_context: Any, data: Any, pos: Any) -> Any:
    """Prefetch the cache line of byte ``pos``, which may be outside the array: a prefetch never faults."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        buffer = context.make_array(signature.args[0])(context, builder, args[0])
        emit_prefetch(builder, builder.gep(builder.bitcast(buffer.data, _POINTER), [args[1]]))
        return context.get_dummy_value()

    return types.void(data, types.int64), emit


def emit_prefetch(builder: ir.IRBuilder, at: Any) -> None:
    """Emit a prefetch of the cache line at a pointer."""
    signature = ir.FunctionType(ir.VoidType(), [_POINTER, _INT, _INT, _INT])
    hint = builder.module.declare_intrinsic("llvm.prefetch", [_POINTER], signature)
    for_reading, keep, as_data = _INT(0), _INT(3), _INT(1)
    builder.call(hint, [at, for_reading, keep, as_data])


# -- the bits of IEEE 754 numbers


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
    return builder.fpext(builder.bitcast(builder.trunc(value, _INT), ir.FloatType()), ir.DoubleType())


long_to_double: Callable[[Int], int] = _converter(
    types.int64, lambda builder, value: builder.sitofp(value, ir.DoubleType())
)
long_to_float: Callable[[Int], int] = _converter(
    types.int32, lambda builder, value: builder.sitofp(value, ir.FloatType())
)
float_to_double: Callable[[Int], int] = _converter(types.int64, _widen)
"""converts the bits of a FLOAT, in the lower half, to those of a DOUBLE"""


# -- copies of short fields
#
# Most fields are shorter than a cache line. For these, a call of memcpy costs more than the copy itself. So up to `SHORT` bytes
# are copied in chunks of `CHUNK` bytes. The last chunk may write past the field's end, into `COPY_SLACK` extra bytes of the
# destination. A field that fits into one `WORD` is copied as one word, because a chunk would nearly always cross a cache line.

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
            target = address(context, builder, signature.args[0], args[0], args[1], _INDEX(size))
            source = address(context, builder, signature.args[2], args[2], args[3], _INDEX(size))
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


# -- many buffers of one type
#
# A tuple of arrays would have another type, and need another compilation, for every number of columns. A *table* has two words
# for each buffer: its address and its size [bytes]. So a kernel fills any number of columns, and selects them by number. The
# creator of the table must keep the buffers alive. The checked build checks accesses through `slot` against the buffer's size.

Table = NDArray[np.int64]

_BYTES = types.Array(types.uint8, 1, "C")


def table_of(buffers: Sequence[NDArray[Any]]) -> Table:
    """Create the table of these contiguous arrays."""
    return np.array([(b.ctypes.data, b.nbytes) for b in buffers], np.int64).reshape(-1)


@intrinsic  # type: ignore[untyped-decorator]
def _slot(typing_context: Any, table: Any, number: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # Imported here, because it loads all of Numba's compiler, which a worker with a warm cache does not need.
        from numba.np.arrayobj import make_array, populate_array

        entries = make_array(signature.args[0])(context, builder, args[0])
        entry = builder.mul(args[1], _INDEX(2))
        address = builder.load(builder.gep(entries.data, [entry]))
        size = builder.load(builder.gep(entries.data, [builder.add(entry, _INDEX(1))]))
        array = make_array(_BYTES)(context, builder)
        data = builder.inttoptr(address, array.data.type)
        populate_array(array, data=data, shape=[size], strides=[_INDEX(1)], itemsize=_INDEX(1), meminfo=None)
        return array._getvalue()

    return _BYTES(table, types.int64), emit


slot: Callable[[Table, Int], Bytes] = _slot
"""Buffer ``number`` of a table, as an array of bytes."""
