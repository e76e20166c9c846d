"""Copy spans of a byte buffer one after the other: what every BINARY and STRING answer is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sparkwire.kernels.copy import copy
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Ints
from sparkwire.kernels.number import int64


@kernel
def gather_rows(
    data: npt.NDArray[np.uint8],
    starts: Ints,
    sizes: Ints,
    offsets: npt.NDArray[Any],
    out: npt.NDArray[np.uint8],
) -> None:
    """``out[offsets[i]:] = data[starts[i]:starts[i] + sizes[i]]``; a size of 0 or below copies nothing."""
    for i in range(sizes.size):
        if sizes[i] > 0:
            copy(out, int64(offsets[i]), data, starts[i], sizes[i])


@kernel
def place_words(codes: npt.NDArray[np.int8], sizes: Ints, offsets: npt.NDArray[np.int32]) -> int:
    """Where words of ``sizes[code]`` bytes end when they lie one after the other, -1 for none; how many bytes that is."""
    offsets[0] = 0
    end = 0
    for i in range(codes.size):
        if codes[i] >= 0:
            end += sizes[codes[i]]
        offsets[i + 1] = end
    return end


@kernel
def write_words(
    codes: npt.NDArray[np.int8],
    data: npt.NDArray[np.uint8],
    starts: Ints,
    sizes: Ints,
    offsets: npt.NDArray[np.int32],
    out: npt.NDArray[np.uint8],
) -> None:
    """``out[offsets[i]:] = data[starts[code]:starts[code] + sizes[code]]``."""
    for i in range(codes.size):
        if codes[i] >= 0:
            copy(out, int64(offsets[i]), data, starts[codes[i]], sizes[codes[i]])
