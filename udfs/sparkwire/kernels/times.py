"""Timestamps in the unit of Spark."""

from __future__ import annotations

from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Ints


@kernel
def millis_to_micros(millis: Ints, first: int, last: int, out: Ints) -> bool:
    """Thousand times ``millis``; whether all of these lie between ``first`` and ``last`` [ms]."""
    inside = True
    for i in range(millis.size):
        inside &= (first <= millis[i]) & (millis[i] <= last)
        out[i] = millis[i] * 1000
    return inside


@kernel
def nanos_to_micros(nanos: Ints, out: Ints) -> None:
    """Rounded toward the past."""
    for i in range(nanos.size):
        out[i] = nanos[i] // 1000
