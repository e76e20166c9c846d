"""Files as tables: a gigabyte of segments by `kafka_log`, against `binaryFile` and `kafka_records` in 4 MB files.

The files are made once, in a directory that goes with the run. What reading them at all takes is measured beside.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import sparkwire
from benchmarks.kafka import log
from benchmarks.report import Row, above, faster, no_slower
from benchmarks.sql import local_spark
from benchmarks.timing import Timing, interleave

CELL = 4 << 20  # [bytes]
CELLS = 256
SEGMENTS = 2
SMALL_CELLS = 64
CORES = 2
RECORDS = "SELECT count(*), sum(length(r.value)) FROM cells LATERAL VIEW inline(kafka_records(content)) r"


def rows() -> list[Row]:
    """The claims about files."""
    with local_spark() as spark, tempfile.TemporaryDirectory() as folder:
        sparkwire.register(spark)
        size = write_files(Path(folder))
        small, small_records = write_small(Path(folder))
        segments, empty = f"{folder}/segments", f"{folder}/empty-0"
        spark.read.format("binaryFile").load(f"{folder}/cells").createOrReplaceTempView("cells")
        times = interleave(
            {
                "cells": lambda: spark.sql(RECORDS).collect(),
                "read": lambda: read_through(Path(segments)),
                "value": totals(spark, segments, "offset, key, value", "sum(length(value))"),
                "key": totals(spark, segments, "offset, key", "sum(length(key))"),
                "batches": totals(spark, segments, "record_count", "sum(record_count)", rows="batches"),
                "small": totals(spark, small, "offset, key, value", "sum(length(value))"),
                "one": totals(spark, segments, "offset", "max(offset)", startingOffset="77777", endingOffset="77778"),
                "none": totals(spark, empty, "offset", "max(offset)"),
            },
            rounds=3,
        )
        peer = "binaryFile and kafka_records in 4 MB files"
        work = "1 GB of segments of 1 KB records, two cores: "
        rate = Timing(tuple(size / CORES / taken / 1e9 for taken in times["value"].samples))
        records = Timing(tuple(small_records / CORES / taken / 1e6 for taken in times["small"].samples))
        return [
            faster(f"{work}offset, key, value", times["value"], peer, times["cells"], 3.5, size, "B"),
            above(f"{work}offset, key, value, a core", rate, "GB/s", 0.35),
            faster(f"{work}offset, key", times["key"], "offset, key, value", times["value"], 2, size, "B"),
            faster(f"{work}rows => batches", times["batches"], "offset, key, value", times["value"], 5, size, "B"),
            no_slower(f"{work}reading the bytes", times["read"], "offset, key, value", times["value"], 1),
            above("100 B records, offset, key, value, a core", records, "M records/s", 3),
            no_slower("one offset out of 1 GB", times["one"], "an empty segment", times["none"], 1.3),
        ]


def write_files(folder: Path) -> int:
    """`cells`, a file for each, and `segments`, the same bytes in few files; how many they are [bytes]."""
    cell, records = log(CELL, 1000)
    for name in ("cells", "segments", "empty-0"):
        (folder / name).mkdir()
    for k in range(CELLS):
        (folder / "cells" / f"{k:04}.bin").write_bytes(cell)
    for k in range(SEGMENTS):
        (folder / "segments" / f"orders-{k}").mkdir()
        write_segment(folder / "segments" / f"orders-{k}", cell, records, CELLS // SEGMENTS)
    (folder / "empty-0" / f"{0:020}.log").write_bytes(b"")
    return CELLS * len(cell)


def write_segment(folder: Path, cell: bytes, records: int, times: int) -> None:
    """A segment that repeats the batches of ``cell`` with offsets that go on, and its index."""
    base = f"{0:020}"
    with (folder / f"{base}.log").open("wb") as out, (folder / f"{base}.index").open("wb") as index:
        for k in range(times):
            shifted, at = bytearray(cell), 0
            while at < len(cell):
                offset, size = struct.unpack_from(">qi", cell, at)
                struct.pack_into(">q", shifted, at, offset + k * records)
                if at:
                    index.write(struct.pack(">ii", offset + k * records, k * len(cell) + at))
                at += 12 + size
            out.write(shifted)


def write_small(folder: Path) -> tuple[str, int]:
    """A segment of records of 100 bytes, and how many it has."""
    cell, records = log(CELL, 100)
    (folder / "small-0").mkdir()
    with (folder / "small-0" / f"{0:020}.log").open("wb") as out:
        for _ in range(SMALL_CELLS):
            out.write(cell)
    return str(folder / "small-0"), SMALL_CELLS * records


def totals(spark: SparkSession, path: str, columns: str, total: str, **options: str) -> Callable[[], object]:
    """A query that looks at every row of the chosen columns."""

    def run() -> object:
        reader = spark.read.format("kafka_log").options(columns=columns, maxSplitBytes="64m", **options)
        frame: DataFrame = reader.load(path)
        return frame.selectExpr("count(*)", total).collect()

    return run


def read_through(folder: Path) -> int:
    """What `cp` reads: all bytes, on one core."""
    size = 0
    for path in folder.rglob("*.log"):
        with path.open("rb", buffering=0) as file:
            while block := file.read(CELL):
                size += len(block)
    return size
