"""The memory that a worker may have: too little for the libraries, or for a batch, is a clear error message."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

NEEDED: Final = 1000
"""[MB] of addresses that a worker takes to load all libraries and to compile kernels, before any data"""


def check_limit() -> None:
    """Before the libraries are loaded: some end their process where they get too little.

    MemoryError where ``spark.executor.pyspark.memory`` allows this process less than they need.
    """
    if sys.platform == "win32":  # where Spark bounds no worker
        return
    import resource

    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    if allowed != resource.RLIM_INFINITY and allowed < NEEDED << 20:
        raise MemoryError(
            f"sparkwire needs {NEEDED} MB in each Python worker before any data, and this one may have "
            f"{allowed >> 20} MB: raise spark.executor.pyspark.memory"
        )


@contextmanager
def explain_oom(name: str) -> Iterator[None]:
    """A batch for which a worker gets no memory fails with a clear error message."""
    try:
        yield
    except MemoryError as failure:
        why = f" ({failure})" if str(failure) else ""
        raise MemoryError(
            f"out of memory while processing a batch in {name}{why}: increase spark.executor.pyspark.memory, or reduce "
            "spark.sql.execution.arrow.maxRecordsPerBatch"
        ) from failure
