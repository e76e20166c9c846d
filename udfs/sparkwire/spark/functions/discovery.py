"""Data sources that Spark finds automatically.

When a query first uses a Python source, Spark starts Python and registers ``DefaultSource`` of every top-level module named
``pyspark_*``. This package installs two such modules, so its sources are available without ``register``.
"""

from __future__ import annotations

import pyspark.sql.functions as F

OFFERED = hasattr(F, "arrow_udf")
"""true from Spark 4.1 on; in 4.0, ``register`` cannot replace a discovered source, which may differ from that of the workers"""
