"""Everything that knows Spark: registration, column functions, readers. The only place that imports pyspark."""

from __future__ import annotations

from sparkwire.spark.memory import check_limit

check_limit()
