"""Arrow columns over buffers that kernels have filled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.core.column import bitmap

_PART_ROWS = (
    1 << 14
)  # number of texts that are converted to Python at a time, because a Python string takes many times its bytes


def binary(
    offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8], valid: npt.NDArray[np.bool_] | None
) -> pa.Array:
    """BINARY: row ``i`` is ``data[offsets[i]:offsets[i + 1]]``; ``data`` may be longer than needed."""
    buffers = [bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(data).slice(0, int(offsets[-1]))]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def text(column: pa.Array) -> pa.Array:
    """BINARY as STRING; bytes that are not UTF-8 become U+FFFD."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        parts = (column[start : start + _PART_ROWS] for start in range(0, len(column), _PART_ROWS))
        return pa.concat_arrays([_repaired(part) for part in parts])


def _repaired(column: pa.Array) -> pa.Array:
    different = pc.dictionary_encode(column)
    decoded = pa.array([key.as_py().decode("utf-8", "replace") for key in different.dictionary], pa.string())
    return decoded.take(different.indices)
