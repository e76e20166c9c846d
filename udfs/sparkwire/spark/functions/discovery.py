"""Data sources that Spark finds automatically.

When a query first uses a Python source, Spark starts Python and registers ``DefaultSource`` of every top-level module named
``pyspark_*``. This package installs two such modules, so its sources are available without ``register``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pyspark.sql.functions as F

from sparkwire.base.printable import printable

OFFERED = hasattr(F, "arrow_udf")
"""true from Spark 4.1 on; in 4.0, ``register`` cannot replace a discovered source, which may differ from that of the workers"""


@contextmanager
def explained() -> Iterator[None]:
    """Explain Spark's error that it cannot find a source of this package.

    Raises RuntimeError with the setting that is missing.
    """
    try:
        yield
    except Exception as error:  # PySpark has no class for the error of a writer
        if "DATA_SOURCE_NOT_FOUND" not in str(error):
            raise
        raise RuntimeError(
            printable(
                "Spark cannot find sparkwire's data sources, because the Python that it starts has no sparkwire: set "
                f"PYSPARK_PYTHON to {sys.executable} before the session begins, or call sparkwire.register(spark)"
            )
        ) from error
