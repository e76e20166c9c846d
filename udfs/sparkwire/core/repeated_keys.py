"""Remove repeated keys from maps. The last value wins, as in Java and Python. Maps in Arrow and Spark must have unique keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparkwire.core.column import binary_of
from sparkwire.kernels import Bytes, int64, kernel
from sparkwire.kernels.text import same_bytes

Offsets = NDArray[np.int32]

_FEW = 32  # maximum number of keys in a map to compare with each other


def without_repeats(ends: Offsets, keys: pa.Array, items: pa.Array) -> tuple[Offsets, list[pa.Array]]:
    """The offsets, keys and items of the maps, with only the last item of each key."""
    data, offsets, _ = binary_of(keys)
    if not _may_repeat(data, offsets, ends):
        return ends, [keys, items]
    codes = np.asarray(pc.dictionary_encode(keys).indices, np.int64)
    rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    named = rows * (int(codes.max(initial=0)) + 1) + codes
    _, from_the_end = np.unique(named[::-1], return_index=True)
    kept = np.sort(len(named) - 1 - from_the_end)
    counts = np.bincount(rows[kept], minlength=len(ends) - 1)
    chosen = pa.array(kept)
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int32), [keys.take(chosen), items.take(chosen)]


@kernel
def _may_repeat(data: Bytes, offsets: NDArray[Any], ends: Offsets) -> bool:
    """Whether a map may have a repeated key. Always true for a large map, which is not checked."""
    for row in range(ends.size - 1):
        first, last = int64(ends[row]), int64(ends[row + 1])
        if last - first > _FEW:
            return True
        for k in range(first + 1, last):
            for j in range(first, k):
                if offsets[k + 1] - offsets[k] == offsets[j + 1] - offsets[j] and same_bytes(
                    data, int64(offsets[k]), data, int64(offsets[j]), int64(offsets[k + 1] - offsets[k])
                ):
                    return True
    return False
