"""A user's program on Spark Connect. test_connect runs it as a separate process, which prints the results of the named checks."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import sparkwire
from sparkwire import avro
from sparkwire import sql_functions as W
from sparkwire.databus import Consumer, DataEvent, Result, callbacks, consume
from tests.support import datahub_cases
from tests.support.client_frames import SCHEMA, rows
from tests.support.client_streams import window

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_TESTING"] = "1"  # then PySpark uses any free port, because tests run in two processes

RECORD = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}


class Local(Consumer):
    """A class of the main module, as in a notebook, which is pickled by value."""

    def on_data_event(self, event: DataEvent) -> Result:
        return Result.SUCCESS


def functions(spark: SparkSession) -> list[Any]:
    """Functions in SQL, as column functions, on a view, and the view of all functions."""
    samples = spark.table("sparkwire_samples")
    frames = [
        spark.sql("SELECT dbus_opcode(event) FROM sparkwire_samples"),
        samples.select(W.dbus_sequence("event")),
        samples.selectExpr("size(dbus_events(stream))"),
        spark.sql("SELECT count(*) FROM sparkwire_functions"),
    ]
    return [frame.collect()[0][0] for frame in frames]


def sources(spark: SparkSession) -> list[int]:
    """Rows of a directory of segments (with a reader, a SQL view, and a stream into files), and of a file of events."""
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


def typed_payloads(spark: SparkSession) -> dict[str, Any]:
    avro.register_function(spark, "record_of", RECORD)
    data = spark.sql("SELECT named_struct('a', 21) AS r").select(avro.encode("r", RECORD).alias("value"))
    typed = data.selectExpr("value", "record_of(value).a AS given")
    rows_of = avro.rows(typed.selectExpr("*", "1 AS id"), "value", {1: RECORD}, by="id", keep_payload=False)
    rows: dict[str, Any] = rows_of.collect()[0].asDict()
    return rows


def rejection(spark: SparkSession) -> str:
    """The last line of an error; Connect adds Spark's error code after it."""
    with pytest.raises(PythonException) as rejected:
        spark.sql("SELECT dbus_opcode('text')").collect()
    return str(rejected.value).rstrip().removesuffix("SQLSTATE: 38000").rstrip().splitlines()[-1]


def consumers(spark: SparkSession) -> dict[str, Any]:
    events = spark.createDataFrame(rows({"s": window(1, 40, 41) + window(2, 42)}), SCHEMA)
    report = consume(events.repartition(2), Local(), partitions=2, source_order=[41, 40])
    reported = report.orderBy("partition", "scn").select("stream", "partition", "scn", "events").collect()
    return {
        "report": [list(row) for row in reported],
        "callbacks": [row["callback"] for row in callbacks(events).orderBy("n").collect()],
    }


def changes(spark: SparkSession) -> list[list[Any]]:
    messages = spark.createDataFrame([(case.data,) for case in datahub_cases.samples()], "value BINARY")
    typed = sparkwire.datahub.rows(messages, "value", table="example_db.example_table_pk")
    shown = typed.select("_operation_type_", "_before_image_", "_after_image_", "id", "comment", "_sequence_id_")
    return [list(row)[:5] for row in shown.orderBy("_sequence_id_", "_after_image_").collect()]


def main() -> None:
    builder = SparkSession.builder.remote("local[2]").config("spark.log.level", "OFF")
    spark = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    sparkwire.register(spark)
    sparkwire.register(spark)
    checks = (functions, sources, typed_payloads, rejection, consumers, changes)
    print(json.dumps({check.__name__: check(spark) for check in checks if check.__name__ in sys.argv[1:]}))
    spark.stop()


main()
