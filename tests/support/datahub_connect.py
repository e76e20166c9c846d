"""Typed rows on Spark Connect; run by test_datahub_typed as a process of its own."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

import sparkwire
from tests.support import datahub_cases

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_TESTING"] = "1"  # PySpark then takes any free port: tests run in two processes


def main() -> None:
    spark = SparkSession.builder.remote("local[2]").config("spark.log.level", "OFF").getOrCreate()
    messages = spark.createDataFrame([(case.data,) for case in datahub_cases.samples()], "value BINARY")
    rows = sparkwire.datahub.rows(messages, "value", table="example_db.example_table_pk")
    for row in rows.orderBy("_sequence_id_", "_after_image_").collect():
        print(row["_operation_type_"], row["_before_image_"], row["_after_image_"], row["id"], row["comment"])
    spark.stop()


main()
