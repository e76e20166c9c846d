"""Many buffers with one type: a kernel can fill any number of columns and selects them by number.

A tuple of arrays would have another type, and need another compilation, for every number of columns. A *table* has two words
for each buffer: its address and its size [bytes]. The creator of the table must keep the buffers alive. The checked build
checks accesses through ``slot`` against the buffer's size, like those of any array.
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
    """Create the table of these contiguous arrays."""
    return np.array([(b.ctypes.data, b.nbytes) for b in buffers], np.int64).reshape(-1)


@intrinsic  # type: ignore[untyped-decorator]
def _slot(typing_context: Any, table: Any, number: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # Imported here, because it loads all of Numba's compiler, which a worker with a warm cache does not need.
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
