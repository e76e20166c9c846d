"""Data sources that Spark finds by itself.

Whoever first asks a Spark for a source in Python makes it start its Python, and take ``DefaultSource`` of every top-level module
that is named ``pyspark_*``: two of them are beside this package. So the sources are there without ``register``.
"""

from __future__ import annotations

import pyspark.sql.functions as F

OFFERED = hasattr(F, "arrow_udf")
"""From Spark 4.1 on. In 4.0 ``register`` cannot replace what was found, which on a cluster need not be what workers have."""
