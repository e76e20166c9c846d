"""Encode bytes as JSON strings with quotes. The same code first measures a column, then writes it."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparkwire.json.escapes import write_java_text
from sparkwire.kernels.base64 import write_base64, write_base64_lines
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, Ints, store_u8
from sparkwire.kernels.number import int64

TEXT: Final = 0
BASE64_LINES: Final = 1
BASE64: Final = 2

_QUOTE = ord('"')


@kernel
def measure_strings(spelling: int, data: Bytes, starts: Ints, sizes: Ints, untouched: Bytes, measured: Ints) -> None:
    """Measure each span as a JSON string [bytes]; -1 for a negative size. ``untouched`` is any writable memory."""
    for row in range(sizes.size):
        measured[row] = -1
        if sizes[row] >= 0:
            measured[row] = _string(spelling, data, starts[row], sizes[row], untouched, int64(0), False)


@kernel
def write_strings(
    spelling: int, data: Bytes, starts: Ints, sizes: Ints, offsets: NDArray[np.int32], out: Bytes
) -> None:
    """Write each span as a JSON string to ``out[offsets[row]:]``."""
    for row in range(sizes.size):
        if sizes[row] >= 0:
            _string(spelling, data, starts[row], sizes[row], out, int64(offsets[row]), True)


@kernel
def _string(spelling: int, data: Bytes, start: int, size: int, out: Bytes, at: int, writing: bool) -> int:
    if writing:
        store_u8(out, at, _QUOTE)
    if spelling == TEXT:
        at = write_java_text(out, at + 1, data, start, size, writing)
    elif spelling == BASE64:
        at = write_base64(out, at + 1, data, start, size, writing)
    else:
        at = write_base64_lines(out, at + 1, data, start, size, writing)
    if writing:
        store_u8(out, at, _QUOTE)
    return at + 1
