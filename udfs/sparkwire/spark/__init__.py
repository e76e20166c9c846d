"""The Spark integration: registration, column functions, data sources. Only this package imports pyspark."""

from __future__ import annotations

from sparkwire.spark.functions.worker import check_limit

check_limit()
