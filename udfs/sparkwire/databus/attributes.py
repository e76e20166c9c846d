"""Kernels that read the attributes of events: opcodes and kinds of key."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sparkwire.core.column import empty
from sparkwire.databus import event_kernels, layout
from sparkwire.databus.layout import BYTES_KEY, LONG_KEY
from sparkwire.kernels import Bools, int64, kernel


@kernel
def find_opcodes(attributes: npt.NDArray[Any], variants: npt.NDArray[np.int8], out: npt.NDArray[np.int8]) -> None:
    """Index into ``OPCODES``, -1 for none. V1 has two bits; if both are set, it is UPSERT. V2 has a number; 3 is no opcode."""
    for row in range(out.size):
        bits = int64(attributes[row]) & layout.V2_OPCODE_MASK
        if bits == 3:
            out[row] = -1 if event_kernels.is_v2(variants[row]) else 0
        else:
            out[row] = bits - 1


def key_kinds(bits: npt.NDArray[Any], is_v2: Bools) -> npt.NDArray[np.int8]:
    """The kind of each key, from the attributes: a bit in V1, a number in V2."""
    kinds = empty(len(bits), np.int8)
    find_key_kinds(bits, is_v2, kinds)
    return kinds


@kernel
def find_key_kinds(bits: npt.NDArray[Any], is_v2: Bools, out: npt.NDArray[np.int8]) -> None:
    for row in range(out.size):
        if is_v2[row]:
            out[row] = ((int64(bits[row]) >> layout.V2_KEY_SHIFT) & layout.V2_KEY_MASK) - 1
        else:
            out[row] = BYTES_KEY if int64(bits[row]) & layout.V1_BYTES_KEY else LONG_KEY
