"""Copy spans of a byte buffer one behind the other: what every BINARY and STRING answer is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sparkwire.kernels.copy import copy
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.number import int64


@kernel
def gather_rows(
    data: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    offsets: npt.NDArray[Any],
    out: npt.NDArray[np.uint8],
) -> None:
    """``out[offsets[i]:] = data[starts[i]:starts[i] + sizes[i]]``; a size of 0 or below copies nothing."""
    for i in range(sizes.size):
        if sizes[i] > 0:
            copy(out, int64(offsets[i]), data, starts[i], sizes[i])
