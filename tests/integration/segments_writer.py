"""Write a hundred segments, and print when it begins and ends. This is a separate process, because tests kill it."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import sparkwire

ROWS = 200_000


def main(path: str) -> None:
    builder = (
        SparkSession.builder.master("local[2,20]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    )
    spark = builder.getOrCreate()
    sparkwire.register(spark)
    rows = spark.range(0, ROWS, 1, 10).selectExpr(
        "'orders' topic", "CAST(0 AS INT) partition", "id offset", "1600000000000 + id timestamp_ms",
        "concat('key ', id) key", "repeat(concat('value ', id), 10) value",
    )  # fmt: skip
    print("writing", flush=True)
    rows.write.format("kafka_log").mode("append").option("segmentBytes", "270k").save(path)
    print("written", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
