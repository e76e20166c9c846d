"""What a user does on Spark Connect; run by test_spark as a process of its own."""

from __future__ import annotations

import os
import sys
import tempfile

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import sparkwire
from sparkwire import avro
from sparkwire import sql_functions as W

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_TESTING"] = "1"  # PySpark then takes any free port: tests run in two processes


def sources(spark: SparkSession) -> list[int]:
    """Rows of a directory of segments: by a reader, by a view in SQL, by a stream into files; and of a file of events."""
    orders = f"{sparkwire.samples()}/kafka/orders-0"
    options = f"path '{orders}', isolationLevel 'read_committed', columns 'offset'"
    spark.sql(f"CREATE TEMPORARY VIEW committed USING kafka_log OPTIONS ({options})")
    with tempfile.TemporaryDirectory() as folder:
        writer = spark.readStream.format("kafka_log").option("columns", "offset").load(orders).writeStream
        started = writer.option("checkpointLocation", f"{folder}/at").trigger(availableNow=True).start(f"{folder}/out")
        started.awaitTermination()
        streamed = spark.read.parquet(f"{folder}/out").count()
    events = spark.read.format("databus").load(f"{sparkwire.samples()}/databus/relay_v1.bin")
    records = spark.read.format("kafka_log").load(orders)
    return [records.count(), spark.table("committed").count(), streamed, events.where("event_type = 'DATA'").count()]


def main() -> None:
    spark = (
        SparkSession.builder.remote("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    sparkwire.register(spark)
    sparkwire.register(spark)
    samples = spark.table("sparkwire_samples")
    answers = [
        spark.sql("SELECT dbus_opcode(event) FROM sparkwire_samples").first(),
        samples.select(W.dbus_sequence("event")).first(),
        samples.selectExpr("size(dbus_events(stream))").first(),
        spark.sql("SELECT count(*) FROM sparkwire_functions").first(),
    ]
    for row in answers:
        assert row is not None
        print(row[0])
    for count in sources(spark):
        print(count)
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    avro.register(spark, "record_of", record)
    data = spark.sql("SELECT named_struct('a', 21) AS r").select(avro.encode("r", record).alias("value"))
    typed = data.selectExpr("value", "record_of(value).a AS given")
    answered = avro.rows(typed.selectExpr("*", "1 AS id"), "value", {1: record}, by="id", keep_payload=False).first()
    assert answered is not None
    assert answered.asDict() == {"given": 21, "id": 1, "a": 21, "_error_": None}
    with pytest.raises(PythonException) as refused:
        spark.sql("SELECT dbus_opcode('text')").collect()
    # The sentence is the last line, after which Connect adds Spark's own code.
    message = str(refused.value).rstrip().removesuffix("SQLSTATE: 38000").rstrip()
    assert message.splitlines()[-1] == "TypeError: dbus_opcode takes (event BINARY), got (STRING)", message
    spark.stop()


main()
