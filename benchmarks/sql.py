"""Functions in Spark SQL against the floor: an Arrow UDF that takes the same column and answers zeros."""

from __future__ import annotations

import os
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from benchmarks import databus
from benchmarks.report import Row, below, no_slower
from benchmarks.timing import Timing, amount, interleave, is_trial

EVENTS = amount(1_000_000, trial=1000)
SIX = ("dbus_sequence", "dbus_src_id", "dbus_length", "dbus_timestamp_nanos", "dbus_key_long", "dbus_attributes")
IDENTITIES = tuple(f"identity_{name}" for name in SIX)
# The same question three ways: where the filter needs one function and the answer two others.
TWO_CROSSINGS = "SELECT max(dbus_src_id(value)), max(dbus_key_long(value)) FROM events WHERE dbus_is_valid(value)"
SMALL_STRUCT = """
    SELECT max(source), max(key) FROM events LATERAL VIEW inline(array(struct(
      dbus_is_valid(value) AS ok, dbus_src_id(value) AS source, dbus_key_long(value) AS key))) e WHERE ok"""
WHOLE_STRUCT = (
    "SELECT max(src_id), max(key_long) FROM events LATERAL VIEW inline(array(dbus_event(value))) e WHERE is_valid"
)
REPEATS = 10  # times the events that a worker reads in the memory test
MEBIBYTE = 1 << 20


def identity(column):  # type: ignore[no-untyped-def]
    """The floor of an Arrow UDF: the column crosses, zeros come back."""
    return pa.array(np.zeros(len(column), np.int64))


def resident(column):  # type: ignore[no-untyped-def]
    """Memory of this worker, in every row [bytes]."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pa.array(np.full(len(column), pages * 4096, np.int64))


def sequence(event):  # type: ignore[no-untyped-def]
    """What one writes without us."""
    return struct.unpack_from(">q", event, 11)[0]


def sequences(events):  # type: ignore[no-untyped-def]
    """The same over a Series."""
    return events.map(sequence)


@contextmanager
def local_spark() -> Iterator[SparkSession]:
    """A local Spark on two cores, with nothing registered."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("sparkwire benchmark")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    try:
        yield spark
    finally:
        if not is_trial():  # the next group's session is this one
            spark.stop()


def discarded(df: DataFrame) -> Callable[[], object]:
    """Run a query to its end, every column of every row, and keep nothing."""
    return lambda: df.write.format("noop").mode("overwrite").save()


def register_floor(spark: SparkSession) -> None:
    """The UDFs of the benchmark itself."""
    spark.udf.register("identity", F.arrow_udf(identity, "BIGINT"))
    spark.udf.register("resident", F.arrow_udf(resident, "BIGINT"))
    for name in IDENTITIES:
        spark.udf.register(name, F.arrow_udf(identity, "BIGINT"))
    spark.udf.register("python_sequence", F.udf(sequence, "BIGINT"))
    spark.udf.register("pandas_sequence", F.pandas_udf(sequences, "BIGINT"))


def write_events(folder: str) -> str:
    """``EVENTS`` events of 260 bytes in Parquet, a column ``value``."""
    path = f"{folder}/events.parquet"
    table = pa.table({"value": databus.events(EVENTS)})
    pq.write_table(table, path, row_group_size=EVENTS // 8, compression="none", use_dictionary=False)
    return path


def rows() -> list[Row]:
    """The claims about Databus functions in SQL."""
    with local_spark() as spark, tempfile.TemporaryDirectory() as folder:
        sparkwire.register(spark)
        register_floor(spark)
        spark.read.parquet(write_events(folder)).createOrReplaceTempView("events")
        times = interleave(
            {
                "identity": query(spark, "max(identity(value))"),
                "one": query(spark, "max(dbus_sequence(value))"),
                "six": query(spark, ", ".join(f"max({name}(value))" for name in SIX)),
                "identities": query(spark, ", ".join(f"max({name}(value))" for name in IDENTITIES)),
                "native": query(spark, "max(conv(hex(substring(value, 12, 8)), 16, -10))"),
                "python": query(spark, "max(python_sequence(value))"),
                "pandas": query(spark, "max(pandas_sequence(value))"),
            }
        )
        ways = {"two": TWO_CROSSINGS, "small": SMALL_STRUCT, "whole": WHOLE_STRUCT}
        filtered = interleave({name: whole_query(spark, text) for name, text in ways.items()}, rounds=5)
        small, asked = filtered["small"], "SQL, 1 M events: a filter and two fields, by a small STRUCT"
        again = interleave({"register": lambda: sparkwire.register(spark)}, rounds=5)["register"]
        floor, six = times["identity"], "SQL, 1 M events: six functions, one aggregate"
        return [
            no_slower("SQL, 1 M events: one function", times["one"], "identity Arrow UDF", floor, 1.15),
            no_slower(six, times["six"], "identity Arrow UDF", floor, 1.3),
            # What Spark takes for six columns from Python, whatever is in them.
            no_slower(six, times["six"], "six identity Arrow UDFs", times["identities"], 1.15),
            no_slower("SQL, 1 M events: one function", times["one"], "a native expression", times["native"], 6),
            no_slower("SQL, 1 M events: one function", times["one"], "struct in a pandas UDF", times["pandas"], 1),
            no_slower("SQL, 1 M events: one function", times["one"], "struct in a Python UDF", times["python"], 1),
            no_slower(asked, small, "WHERE and SELECT, two crossings", filtered["two"], 0.9),
            no_slower(asked, small, "inline(array(dbus_event(value)))", filtered["whole"], 0.6),
            below("register, in a session that has it already", again, "s", 1.0),
            below("worker memory: 10 M events over 1 M", growth(spark), "MiB", 50),
        ]


def query(spark: SparkSession, aggregates: str) -> Callable[[], object]:
    return whole_query(spark, f"SELECT {aggregates} FROM events")


def whole_query(spark: SparkSession, text: str) -> Callable[[], object]:
    return lambda: spark.sql(text).collect()


def growth(spark: SparkSession) -> Timing:
    """How much more memory the largest worker has after ten times the events [MiB]."""
    measured = "SELECT max(dbus_event(value).value_size), max(dbus_key(value)), max(resident(value)) FROM "
    first = spark.sql(measured + "events").collect()[0][2]
    repeated = " UNION ALL ".join(["SELECT value FROM events"] * REPEATS)
    after = spark.sql(f"{measured} ({repeated})").collect()[0][2]
    return Timing(((after - first) / MEBIBYTE,))
