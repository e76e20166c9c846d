"""Data sources that Spark discovers automatically."""

from __future__ import annotations

from pyspark.sql import SparkSession

import sparkwire
from tests.support.child import run_python

# A separate process, because the common session may have discovered sources already.
UNREGISTERED = """
import sparkwire
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
samples = sparkwire.samples()
print(spark.read.format("kafka_log").load(f"{samples}/kafka/orders-0").count())
spark.sql(f"CREATE TEMPORARY VIEW events USING databus OPTIONS (path '{samples}/databus/relay_v1.bin')")
print(spark.table("events").count())
"""


def test_sources_exist_without_register(spark: SparkSession) -> None:
    samples = sparkwire.samples()
    expected = [
        spark.read.format("kafka_log").load(f"{samples}/kafka/orders-0").count(),
        spark.read.format("databus").load(f"{samples}/databus/relay_v1.bin").count(),
    ]
    assert [int(line) for line in run_python("-c", UNREGISTERED).split()] == expected
