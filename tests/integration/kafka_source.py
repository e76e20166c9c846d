"""Read a topic with Spark's Kafka source into the functions, in a batch and in a stream, in a Spark that has this source.

    python -m tests.integration.kafka_source BOOTSTRAP DIRECTORY

Prints a line of JSON for each: topic, opcode or operation, whether valid, and the count.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import DataFrame, SparkSession

import sparkwire

DECODED = (
    "topic",
    "CASE topic WHEN 'databus' THEN dbus_opcode(value) ELSE datahub_operation(value) END AS change",
    "CASE topic WHEN 'databus' THEN dbus_is_valid(value) ELSE datahub_is_valid(value) END AS valid",
)


def main() -> None:
    bootstrap, directory = sys.argv[1:]
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    sparkwire.register(spark)
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": "databus,datahub", "startingOffsets": "earliest"}
    say(spark.read.format("kafka").options(**options).load().selectExpr(*DECODED))

    # Small limits, so that there are several micro-batches.
    stream = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger="500").load().selectExpr(*DECODED)
    writer = stream.writeStream.format("parquet").option("checkpointLocation", f"{directory}/checkpoint")
    writer.trigger(availableNow=True).start(f"{directory}/decoded").awaitTermination()
    say(spark.read.parquet(f"{directory}/decoded"))
    spark.stop()


def say(decoded: DataFrame) -> None:
    rows = decoded.groupBy("topic", "change", "valid").count().collect()
    print(json.dumps(sorted([str(value) for value in row] for row in rows)), flush=True)


if __name__ == "__main__":
    main()
