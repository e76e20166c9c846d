"""The frame before each metadata record: three unsigned varints, its version, the message's number and the message's version."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparkwire.base.error_codes import BAD_MAGIC, TRUNCATED
from sparkwire.kernels import Bytes, Ints, int64, kernel
from sparkwire.kernels.varint import VARINT_BYTES, unsigned


@kernel
def _varint(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    value, pos = unsigned(data, pos, end, VARINT_BYTES)
    return int64(value & np.uint64(0xFFFFFFFF)), pos


@kernel
def read_frames(
    data: Bytes, starts: Ints, ends: Ints, numbers: Ints, versions: Ints, errors: npt.NDArray[np.int8]
) -> None:
    """Read the frames of metadata records: three unsigned varints, the version 1, the message's number and its version.

    It moves ``starts`` to the end of the frame. It skips a row that ends before it starts.
    """
    for row in range(starts.size):
        if ends[row] < starts[row]:
            continue
        frame, pos = _varint(data, starts[row], ends[row])
        if pos >= 0:
            numbers[row], pos = _varint(data, pos, ends[row])
        if pos >= 0:
            versions[row], pos = _varint(data, pos, ends[row])
        if pos < 0:
            errors[row] = TRUNCATED
        elif frame != 1:
            errors[row] = BAD_MAGIC
        else:
            starts[row] = pos
