"""Kernels for keys as text: a LONG in decimal, other keys unchanged if they are UTF-8."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparkwire.kernels import Bools, Bytes, Ints, copy, int64, kernel
from sparkwire.kernels.text import decimal_width, utf8_valid, write_decimal


@kernel
def measure_keys(data: Bytes, starts: Ints, sizes: Ints, longs: Ints, is_long: Bools, texts: Ints) -> None:
    """Size of every key as text [bytes], -1 if there is no key or it is not UTF-8."""
    for row in range(texts.size):
        if is_long[row]:
            texts[row] = decimal_width(longs[row])
        elif sizes[row] >= 0 and utf8_valid(data, starts[row], sizes[row]):
            texts[row] = sizes[row]
        else:
            texts[row] = -1


@kernel
def write_keys(
    data: Bytes, starts: Ints, longs: Ints, is_long: Bools, texts: Ints, offsets: npt.NDArray[np.int32], out: Bytes
) -> None:
    """Write every key as text; ``offsets`` follow from the sizes of ``measure_keys``."""
    for row in range(texts.size):
        if texts[row] > 0:
            if is_long[row]:
                write_decimal(out, int64(offsets[row]), longs[row], texts[row])
            else:
                copy(out, int64(offsets[row]), data, starts[row], texts[row])
