"""Many buffers under one type: a kernel that fills as many columns as a schema has picks them by number.

A tuple of arrays would be another type, and another compilation, for every number of columns. A *table* has two words
for each buffer, its address and its size [bytes]; whoever makes the table keeps the buffers alive. What is read or
stored through ``slot`` is checked against the buffer's size in the checked build, as any array is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sparkwire.kernels.load import Bytes, Int

Table = NDArray[np.int64]

_BYTES = types.Array(types.uint8, 1, "C")
_WORD = ir.IntType(64)


def table_of(buffers: Sequence[NDArray[Any]]) -> Table:
    """The table of these contiguous arrays."""
    return np.array([(b.ctypes.data, b.nbytes) for b in buffers], np.int64).reshape(-1)


@intrinsic  # type: ignore[untyped-decorator]
def _slot(typing_context: Any, table: Any, number: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # Only here: it loads all that numba can compile, which a worker with a warm cache never needs.
        from numba.np.arrayobj import make_array, populate_array

        entries = make_array(signature.args[0])(context, builder, args[0])
        entry = builder.mul(args[1], _WORD(2))
        address = builder.load(builder.gep(entries.data, [entry]))
        size = builder.load(builder.gep(entries.data, [builder.add(entry, _WORD(1))]))
        array = make_array(_BYTES)(context, builder)
        data = builder.inttoptr(address, array.data.type)
        populate_array(array, data=data, shape=[size], strides=[_WORD(1)], itemsize=_WORD(1), meminfo=None)
        return array._getvalue()

    return _BYTES(table, types.int64), emit


slot: Callable[[Table, Int], Bytes] = _slot
"""Buffer ``number`` of a table, as an array of bytes."""
