"""Data sources that Spark finds automatically.

At the first lookup of a Python source, Spark starts Python and registers ``DefaultSource`` of every top-level module named
``pyspark_*``. Two such modules are beside this package. So the sources are available without ``register``.
"""

from __future__ import annotations

import pyspark.sql.functions as F

OFFERED = hasattr(F, "arrow_udf")
"""From Spark 4.1 on. In 4.0 ``register`` cannot replace what was found, which on a cluster need not be what workers have."""
