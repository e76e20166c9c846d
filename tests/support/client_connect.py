"""A consumer on Spark Connect; run by test_client_spark as a process of its own."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from sparkwire.databus import Consumer, DataEvent, Result, callbacks, consume
from tests.support.client_frames import SCHEMA, rows
from tests.support.client_streams import window

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_TESTING"] = "1"  # PySpark then takes any free port: tests run in two processes


class Local(Consumer):
    """Of the main module, as in a notebook: pickled by value."""

    def on_data_event(self, event: DataEvent) -> Result:
        return Result.SUCCESS


def main() -> None:
    builder = SparkSession.builder.remote("local[2]").config("spark.log.level", "OFF")
    spark = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    events = spark.createDataFrame(rows({"s": window(1, 40, 41) + window(2, 42)}), SCHEMA)
    report = consume(events.repartition(2), Local(), partitions=2, source_order=[41, 40])
    for row in report.orderBy("partition", "scn").collect():
        print(row["stream"], row["partition"], row["scn"], row["events"])
    print(*(row["callback"] for row in callbacks(events).orderBy("n").collect()))
    spark.stop()


main()
