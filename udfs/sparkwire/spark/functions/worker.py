"""Spark's Python workers: their memory limit, clear errors if it is too low, and their garbage collector."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

from sparkwire.base.printable import printable

NEEDED: Final = 1000
"""[MB] of address space that a worker needs to load all libraries and compile kernels, before any data"""


def check_limit() -> None:
    """Raise MemoryError if ``spark.executor.pyspark.memory`` is too low for the libraries.

    Call it before the libraries are loaded, because some of them end the process if they get too little memory.
    """
    if sys.platform == "win32":  # on Windows, Spark does not limit workers
        return
    import resource

    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    if allowed != resource.RLIM_INFINITY and allowed < NEEDED << 20:
        raise MemoryError(
            printable(
                f"sparkwire needs {NEEDED} MB in each Python worker before any data, and this one may have "
                f"{allowed >> 20} MB: raise spark.executor.pyspark.memory"
            )
        )


@contextmanager
def explain_oom(name: str) -> Iterator[None]:
    """Convert a MemoryError in a batch to one with a clear message."""
    try:
        yield
    except MemoryError as failure:
        why = f" ({failure})" if str(failure) else ""
        raise MemoryError(
            printable(
                f"out of memory while processing a batch in {name}{why}: increase spark.executor.pyspark.memory, or reduce "
                "spark.sql.execution.arrow.maxRecordsPerBatch"
            )
        ) from failure


@cache
def freeze_gc() -> None:
    """Exclude all existing objects from later garbage collections, once in a process.

    Spark's daemon runs a full collection after each task and each step of planning. It visits every object. The objects of Numba
    and LLVM take longer than many tasks, and they live as long as the process. ``SPARKWIRE_GC_FREEZE=0`` in the workers'
    environment leaves Python's collector unchanged.
    """
    if os.environ.get("SPARKWIRE_GC_FREEZE", "1") != "0":
        gc.freeze()
