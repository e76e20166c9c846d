"""Kafka segments in Spark SQL: a gigabyte of records in values of 4 MB, compared with returning the values unchanged."""

from __future__ import annotations

import tempfile

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions as F
from pyspark.sql import SparkSession

import sparkwire
from benchmarks.kafka import log
from benchmarks.report import Row, below, no_slower
from benchmarks.sql import MEBIBYTE, discarded, local_spark, register_floor
from benchmarks.timing import Timing, amount, interleave

CELL = 4 << 20  # [bytes]
CELLS = amount(256, trial=16)
FEW = amount(32, trial=2)  # values after which the memory of workers is first measured
RECORDS = """
    SELECT offset, timestamp, length(key), length(value)
    FROM {view} s LATERAL VIEW inline(kafka_records(content)) r
"""


def unchanged(column):  # type: ignore[no-untyped-def]
    """The baseline: values make the round trip to Python."""
    return column


def rows() -> list[Row]:
    """The claims about log bytes in SQL."""
    with local_spark() as spark, tempfile.TemporaryDirectory() as folder:
        sparkwire.register(spark)
        register_floor(spark)
        spark.udf.register("unchanged", F.arrow_udf(unchanged, "BINARY"))
        write_segments(spark, folder)
        few, many = resident(spark, "few"), resident(spark, "segments")
        times = interleave(
            {
                "unchanged": discarded(spark.sql("SELECT unchanged(content) FROM segments")),
                "records": discarded(spark.sql(RECORDS.format(view="segments"))),
            },
            rounds=3,
        )
        work = "SQL, 1 GB of segments in 4 MB cells: every record of 1 KB"
        return [
            no_slower(work, times["records"], "Arrow UDF that returns the cells", times["unchanged"], 2.5),
            below(f"worker memory: {CELLS} cells over {FEW}", Timing(((many - few) / MEBIBYTE,)), "MiB", 50),
        ]


def write_segments(spark: SparkSession, folder: str) -> None:
    """The views `segments` and `few`, a column ``content`` of whole batches."""
    cell, _ = log(CELL, 1000)
    table = pa.table({"content": pa.array([cell] * CELLS, pa.binary())})
    path = f"{folder}/segments.parquet"
    pq.write_table(table, path, row_group_size=CELLS // 16, compression="none", use_dictionary=False)
    spark.read.parquet(path).createOrReplaceTempView("segments")
    spark.read.parquet(path).limit(FEW).createOrReplaceTempView("few")


def resident(spark: SparkSession, view: str) -> int:
    """Memory of the largest worker after reading all values of a view [bytes]."""
    discarded(spark.sql(RECORDS.format(view=view)))()
    return int(spark.sql("SELECT max(resident(content)) FROM few").collect()[0][0])
