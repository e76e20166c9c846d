"""Files as tables: `kafka_log` and `databus` compared with the same files as values, and with Parquet of the same rows.

The files are made once, in a directory that goes with the run; where there are many of one content, they are one under many
names. What `cp` takes is measured beside, and what Spark takes for as many rows of a source that decodes nothing. All read
in tasks of one size: with the 128 MB that both Spark and the sources take by default, much of the time goes into starts of tasks.
"""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
from pyspark.sql import SparkSession

import sparkwire
from benchmarks import databus
from benchmarks.constant import Constant, constant
from benchmarks.kafka import log
from benchmarks.report import Row, above, faster, no_slower
from benchmarks.sql import local_spark
from benchmarks.timing import Timing, amount, interleave
from sparkwire.kafka.files import kafka_log

CELL = 4 << 20  # [bytes]
CELLS = amount(256, trial=4)
TASK = 544 << 20  # size that one task reads in every query: two tasks for 1 GB, one for each core [bytes]
SEGMENTS = 2
SOUGHT = "key00042"
"""one record of each value"""
CORES = 2
EVENTS = amount(250_000, trial=2000)  # events of a file
EVENT_FILES = 16  # files with the same content
DIGITS = 19  # number of digits of nearly all keys
RECORDS = "SELECT count(*), sum(length(r.value)) FROM cells LATERAL VIEW inline(kafka_records(content)) r"
FUNCTIONS = (
    "SELECT count(dbus_opcode(value)), count(dbus_sequence(value)), count(dbus_src_id(value)), count(dbus_key(value))"
)


def rows() -> list[Row]:
    """The claims about files."""
    with local_spark() as spark, tempfile.TemporaryDirectory() as name:
        sparkwire.register(spark)
        spark.dataSource.register(Constant)
        spark.conf.set("spark.sql.files.maxPartitionBytes", str(TASK))
        folder = Path(name)
        return kafka_rows(spark, folder) + databus_rows(spark, folder)


# -- segments


def kafka_rows(spark: SparkSession, folder: Path) -> list[Row]:
    size, count, small, small_records = write_files(folder)
    segments = f"{folder}/segments"
    spark.read.format("binaryFile").load(f"{folder}/cells").createOrReplaceTempView("cells")
    write_parquet(spark, segments, folder)
    length = "sum(length(value))"
    tasks, batches = -(-size // TASK), size // CELL
    values, keys = "offset BIGINT, key BINARY, value BINARY", "offset BIGINT, key BINARY"
    times = interleave(
        {
            "cells": lambda: spark.sql(RECORDS).collect(),
            "cp": lambda: shutil.copytree(segments, folder / "copy", dirs_exist_ok=True),
            "parquet": lambda: spark.read.parquet(f"{folder}/parquet").selectExpr("count(*)", length).collect(),
            "value": totals(spark, segments, "offset, key, value", length),
            "key": totals(spark, segments, "offset, key", "sum(length(key))"),
            "batches": totals(spark, segments, "record_count", "sum(record_count)", rows="batches"),
            "sought": totals(spark, segments, "offset, key, value", length, key=SOUGHT),
            "sought alone": lambda: found_of(segments, SOUGHT),
            "filtered": totals(
                spark, segments, "offset, key, value", length, where=f"key = CAST('{SOUGHT}' AS BINARY)"
            ),
            "small": totals(spark, small, "offset, key, value", length),
            "constant value": constant(spark, values, ["count(*)", length], count, tasks, batches),
            "constant key": constant(spark, keys, ["count(*)", "sum(length(key))"], count, tasks, batches),
            "constant row": constant(spark, "record_count INT", ["count(*)", "sum(record_count)"], 1, 1, 1),
            "constant small": constant(spark, values, ["count(*)", length], small_records, tasks, batches, value=100),
        },
        rounds=5,
    )
    value, peer = times["value"], "binaryFile and kafka_records in 4 MB files"
    work = "1 GB of segments of 1 KB records, two cores: "
    rate = Timing(tuple(size / CORES / taken / 1e9 for taken in value.samples))
    rates = Timing(tuple(size / CORES / taken / 1e9 for taken in times["sought"].samples))
    alone = Timing(tuple(size / taken / 1e9 for taken in times["sought alone"].samples))
    records = Timing(tuple(small_records / CORES / taken / 1e6 for taken in times["small"].samples))
    return [
        faster(f"{work}offset, key, value", value, peer, times["cells"], 3.5, size, "B"),
        above(f"{work}offset, key, value, a core", rate, "GB/s", 0.35),
        no_slower(f"{work}offset, key, value", value, "cp of the files", times["cp"], 3),
        no_slower(f"{work}offset, key, value", value, "offset, key, value from Parquet", times["parquet"], 3),
        faster(f"{work}offset, key", times["key"], "offset, key, value", value, 2, size, "B"),
        faster(f"{work}rows => batches", times["batches"], "offset, key, value", value, 5, size, "B"),
        above("1 GB of segments of 1 KB records, one core, without Spark: records of a key", alone, "GB/s", 2),
        above(f"{work}records of a key, a core", rates, "GB/s", 2),
        faster(f"{work}records of a key", times["sought"], "a filter in Spark", times["filtered"], 4, size, "B"),
        above("100 B records, offset, key, value, a core", records, "M records/s", 3),
        # A query that reads and decodes nothing: no source in Python can be faster.
        no_slower(f"{work}offset, key, value", value, "as many constant rows", times["constant value"], 1.5),
        no_slower(f"{work}offset, key", times["key"], "as many constant rows", times["constant key"], 2),
        no_slower(f"{work}rows => batches", times["batches"], "one constant row", times["constant row"], 2),
        no_slower(f"{work}records of a key", times["sought"], "one constant row", times["constant row"], 4),
        no_slower(
            "100 B records, offset, key, value", times["small"], "as many constant rows", times["constant small"], 1.5
        ),
    ]


def write_files(folder: Path) -> tuple[int, int, str, int]:
    """`cells`, a file for each, and `segments`, the same bytes in few files; how many they are [bytes], and records.

    And a segment of records of 100 bytes, and how many it has.
    """
    cell, records = log(CELL, 1000)
    (folder / "cells").mkdir()
    for k in range(CELLS):
        (folder / "cells" / f"{k:04}.bin").write_bytes(cell)
    for k in range(SEGMENTS):
        write_segment(folder / "segments" / f"orders-{k}", cell, records, CELLS // SEGMENTS)
    small, small_records = log(CELL, 100)
    write_segment(folder / "small-0", small, small_records, CELLS)
    return CELLS * len(cell), CELLS * records, str(folder / "small-0"), CELLS * small_records


def write_segment(folder: Path, cell: bytes, records: int, times: int) -> Path:
    """A segment that repeats the batches of ``cell`` with continuing offsets, and its index."""
    folder.mkdir(parents=True)
    path, begins = folder / f"{0:020}.log", []
    at = 0
    while at < len(cell):
        begins.append((at, *struct.unpack_from(">qi", cell, at)))
        at += 12 + begins[-1][2]
    with path.open("wb") as out, path.with_suffix(".index").open("wb") as index:
        for k in range(times):
            shifted = bytearray(cell)
            for at, offset, _ in begins:
                struct.pack_into(">q", shifted, at, offset + k * records)
                if at:
                    index.write(struct.pack(">ii", offset + k * records, k * len(cell) + at))
            out.write(shifted)
    return path


def write_parquet(spark: SparkSession, segments: str, folder: Path) -> None:
    """The selected columns of the segments as uncompressed Parquet."""
    frame = spark.read.format("kafka_log").option("columns", "offset, key, value").load(segments)
    frame.write.option("compression", "none").parquet(f"{folder}/parquet")


def totals(
    spark: SparkSession, path: str, columns: str, total: str, where: str = "true", **options: str
) -> Callable[[], object]:
    """A query that reads every row of the selected columns."""

    def run() -> object:
        reader = spark.read.format("kafka_log").options(columns=columns, maxSplitBytes=str(TASK), **options)
        return reader.load(path).where(where).selectExpr("count(*)", total).collect()

    return run


def found_of(path: str, key: str) -> int:
    """The rows of a search in Spark, read in this process."""
    query = kafka_log.query({"path": path, "columns": "offset, key, value", "key": key})
    return sum(batch.num_rows for task in kafka_log.plan(query) for batch in kafka_log.read(query, task))


# -- events


def databus_rows(spark: SparkSession, folder: Path) -> list[Row]:
    events = databus.events(EVENTS)
    size, count = EVENTS * EVENT_FILES * databus.SIZE, EVENTS * EVENT_FILES
    for kind in ("stream", "table"):
        (folder / kind).mkdir()
    (folder / "stream" / "0.bin").write_bytes(events.buffers()[2])
    table = pa.table({"value": events})
    parquet.write_table(table, folder / "table" / "0.parquet", compression="none", use_dictionary=False)
    for k in range(1, EVENT_FILES):
        for first in (folder / "stream" / "0.bin", folder / "table" / "0.parquet"):
            os.link(first, first.with_stem(str(k)))
    spark.read.parquet(f"{folder}/table").createOrReplaceTempView("events")
    columns = "opcode, sequence, src_id, key"
    counts = [f"count({column})" for column in columns.split(", ")]

    def by_source() -> object:
        reader = spark.read.format("databus").options(columns=columns, maxSplitBytes=str(TASK))
        return reader.load(f"{folder}/stream").selectExpr(*counts).collect()

    def by_functions() -> object:
        return spark.sql(f"{FUNCTIONS} FROM events").collect()

    types = "opcode STRING, sequence BIGINT, src_id INT, key STRING"
    floor = constant(spark, types, counts, count, -(-size // TASK), size // CELL, key=DIGITS)
    times = interleave({"source": by_source, "functions": by_functions, "constant": floor}, rounds=3)
    work, peer = f"4 M events of 260 B: {columns}, counted", "a Parquet scan and the functions"
    rate = Timing(tuple(count / CORES / taken / 1e6 for taken in times["source"].samples))
    return [
        faster(work, times["source"], peer, times["functions"], 3, size, "B"),
        above(f"{work}, a core", rate, "M events/s", 2),
        no_slower(work, times["source"], "as many constant rows", times["constant"], 1.5),
    ]
