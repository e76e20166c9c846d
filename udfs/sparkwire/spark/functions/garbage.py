"""Python's garbage collector in Spark's workers."""

from __future__ import annotations

import gc
import os
from functools import cache


@cache
def freeze_gc() -> None:
    """Exclude all existing objects from later garbage collections, once in a process.

    Spark's daemon runs a full collection after each task and each step of planning. It visits every object. The objects of Numba
    and LLVM take longer than many tasks, and they live as long as the process. ``SPARKWIRE_GC_FREEZE=0`` in the workers'
    environment leaves Python's collector unchanged.
    """
    if os.environ.get("SPARKWIRE_GC_FREEZE", "1") != "0":
        gc.freeze()
