"""Python's garbage collector in Spark's workers."""

from __future__ import annotations

import gc
import os
from functools import cache


@cache
def freeze_gc() -> None:
    """Leave all that is there out of later collections, once in a process.

    Spark's daemon collects garbage after each task and each step of planning, and that looks at every object: those of
    numba and LLVM take longer than many a task, and they last as long as the process. ``SPARKWIRE_GC_FREEZE=0`` in the
    workers' environment leaves Python's collector as it is.
    """
    if os.environ.get("SPARKWIRE_GC_FREEZE", "1") != "0":
        gc.freeze()
