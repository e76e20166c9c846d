"""Files as tables, many and large: seeks, memory, ten times as many bytes, and the same as a stream.

Ten partitions are one segment under ten names. The largest file is a real one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

import sparkwire
from benchmarks.constant import Constant
from benchmarks.files import CELL, CELLS, TASK, totals, write_segment
from benchmarks.kafka import log
from benchmarks.report import Row, below, no_slower
from benchmarks.sql import local_spark
from benchmarks.timing import Timing, interleave

PARTITIONS = 10
LARGE = 8  # number of copies of the segment in one file
VALUE = 1024  # size of a row of the identity source [bytes]
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
OFFSETS = "SELECT max(offset) FROM {} WHERE partition = 7 AND offset = 77777"


def rows() -> list[Row]:
    """The claims about many files and large ones."""
    with local_spark() as spark, tempfile.TemporaryDirectory() as name:
        sparkwire.register(spark)
        spark.dataSource.register(Identity)
        spark.dataSource.register(Constant)
        folder = Path(name)
        write_files(folder)
        return [*memory_rows(spark, folder), *seek_rows(spark, folder), *scale_rows(spark, folder)]


def write_files(folder: Path) -> None:
    """A segment of 1 GB under ten names, an empty one, and one with eight times the bytes."""
    cell, records = log(CELL, 1000)
    first = write_segment(folder / "broker" / "orders-0", cell, records, CELLS)
    for k in range(1, PARTITIONS):
        (folder / "broker" / f"orders-{k}").mkdir()
        for path in (first, first.with_suffix(".index")):
            os.link(path, folder / "broker" / f"orders-{k}" / path.name)
    (folder / "empty-0").mkdir()
    (folder / "empty-0" / first.name).write_bytes(b"")
    with (folder / "large.log").open("wb") as out:
        for _ in range(LARGE):
            with first.open("rb") as part:
                shutil.copyfileobj(part, out, CELL)


def seek_rows(spark: SparkSession, folder: Path) -> list[Row]:
    spark.conf.set(PUSHDOWN, "true")
    for view, path in (("segments", "broker"), ("nothing", "empty-0")):
        reader = spark.read.format("kafka_log").option("columns", "partition, offset")
        reader.load(f"{folder}/{path}").createOrReplaceTempView(view)
    times = interleave({view: query(spark, OFFSETS.format(view)) for view in ("segments", "nothing")}, rounds=9)
    spark.conf.set(PUSHDOWN, "false")
    work = "one offset out of 10 GB of segments with indexes"
    return [no_slower(work, times["segments"], "an empty segment", times["nothing"], 1.3)]


def query(spark: SparkSession, text: str) -> Callable[[], object]:
    return lambda: spark.sql(text).collect()


def scale_rows(spark: SparkSession, folder: Path) -> list[Row]:
    one, columns = f"{folder}/broker/orders-0", "offset, key, value"
    length = "sum(length(value))"
    times = interleave(
        {
            "blocks": blocks(spark, f"{one}/{0:020}.log"),
            "one": totals(spark, one, columns, length),
            "ten": totals(spark, f"{folder}/broker", columns, length),
            "batch": batch(spark, one, columns),
            "stream": stream(spark, one, columns),
            "batch of nothing": batch(spark, f"{folder}/empty-0", columns),
            "stream of nothing": stream(spark, f"{folder}/empty-0", columns),
            "stream of a row": constant_stream(spark),
        },
        rounds=3,
    )
    ten = Timing(tuple(taken / PARTITIONS for taken in times["ten"].samples))
    work = "1 GB of segments of 1 KB records, two cores: offset, key, value"
    return [
        no_slower(work, times["one"], "a source that decodes nothing", times["blocks"], 1.5),
        no_slower("10 GB in ten files, a tenth of the time", ten, "1 GB in one", times["one"], 1.15),
        no_slower("a streaming backlog of 1 GB, AvailableNow", times["stream"], "as a batch", times["batch"], 1.3),
        no_slower(
            "the same, without what a query over nothing takes",
            _without(times["stream"], times["stream of nothing"]),
            "as a batch, likewise",
            _without(times["batch"], times["batch of nothing"]),
            1.3,
        ),
        no_slower(
            "the start of a stream", times["stream of nothing"], "with one constant row", times["stream of a row"], 1.5
        ),
    ]


def _without(whole: Timing, start: Timing) -> Timing:
    """The time of a query without its start."""
    return Timing(tuple(taken - start.median for taken in whole.samples))


def batch(spark: SparkSession, path: str, columns: str) -> Callable[[], object]:
    def run() -> None:
        frame = spark.read.format("kafka_log").option("columns", columns).load(path)
        frame.write.format("noop").mode("overwrite").save()

    return run


def stream(spark: SparkSession, path: str, columns: str) -> Callable[[], object]:
    """All rows, as a stream that begins again each time."""

    return lambda: run_stream(spark.readStream.format("kafka_log").option("columns", columns).load(path))


def constant_stream(spark: SparkSession) -> Callable[[], object]:
    """The time in which Spark starts and stops a stream over a source in Python."""
    options = {"ddl": "offset BIGINT", "tasks": 1, "batches": 1, "rows": 1, "keySize": 0, "valueSize": 0}
    return lambda: run_stream(spark.readStream.format("constant_rows").options(**options).load())


def run_stream(frame: DataFrame) -> None:
    """All rows, to the noop sink."""
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()


# -- memory


def memory_rows(spark: SparkSession, folder: Path) -> list[Row]:
    """The largest worker after reading with a source that decodes nothing, then with ours a file and one eight times as long.

    A worker's peak only grows, so what comes first needs the least.
    """
    one, large = f"{folder}/broker/orders-0/{0:020}.log", f"{folder}/large.log"
    blocks(spark, large)()
    floor = worker_peak()
    peaks = []
    for path in (one, large):
        totals(spark, path, "offset, key, value", "sum(length(value))")()
        peaks.append(worker_peak())
    above_floor, growth = (Timing((peaks[1] - floor,)), Timing((peaks[1] - peaks[0],)))
    return [
        below("8 GiB in one file: worker memory over a source that decodes nothing", above_floor, "MiB", 300),
        below("8 GiB in one file: worker memory over that of 1 GiB", growth, "MiB", 16),
    ]


def blocks(spark: SparkSession, path: str) -> Callable[[], object]:
    """The same bytes as rows by `Identity`."""
    return lambda: (
        spark.read.format("identity_blocks").load(path).selectExpr("count(*)", "sum(length(value))").collect()
    )


def worker_peak() -> float:
    """The largest peak of Spark's Python workers [MiB]."""
    peaks = [0]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"pyspark.daemon" in (process / "cmdline").read_bytes() and _is_ours(int(process.name)):
                status = (process / "status").read_text()
                peaks.append(next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")))
        except (FileNotFoundError, ProcessLookupError):  # the process has ended
            continue
    return max(peaks) / 1024


def _is_ours(process: int) -> bool:
    """Whether this process is an ancestor of the worker."""
    while process > 1 and process != os.getpid():
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return process == os.getpid()


class Identity(DataSource):  # type: ignore[misc]  # PySpark is not typed
    """A source that returns blocks of a file as rows of `VALUE` bytes: the least time for any source of these bytes."""

    @classmethod
    def name(cls) -> str:
        return "identity_blocks"

    def schema(self) -> str:
        return "value BINARY"

    def reader(self, schema: object) -> DataSourceReader:
        return IdentityReader(self.options["path"])


class IdentityReader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, path: str) -> None:
        self.path = path

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(start) for start in range(0, Path(self.path).stat().st_size, TASK)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with Path(self.path).open("rb", buffering=0) as file:
            file.seek(partition.value)
            for _ in range(TASK // CELL):
                block = file.read(CELL)
                rows = len(block) // VALUE
                offsets = np.arange(rows + 1, dtype=np.int32) * VALUE
                buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
                if rows:
                    yield pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.binary(), rows, buffers)], ["value"])
