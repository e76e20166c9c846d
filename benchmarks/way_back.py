"""Restoring topics: rows written as partition directories, compared with Parquet and with Kafka's own producer."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import cramjam
import numpy as np
import pyarrow as pa
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from benchmarks.files_scale import worker_peak
from benchmarks.report import Row, above, below, faster, no_slower
from benchmarks.sql import local_spark
from benchmarks.timing import Timing, amount, interleave
from sparkwire.kafka.write import write_log
from tests.integration.broker import KAFKA, java, running

CORES = 2
GIGABYTE = amount(10**9, trial=10**6)
GIBIBYTE = amount(1 << 30, trial=1 << 20)
TOOLS = "org.apache.kafka:kafka-tools:3.9.1"
_BATCH = 64 << 10  # [bytes]
_SLICE = 0.1  # share of the rows that the producer sends; its time is measured separately
_ZSTD_LEVEL = 3


def rows() -> list[Row]:
    """The claims about writing."""
    with local_spark() as spark, tempfile.TemporaryDirectory() as name:
        sparkwire.register(spark)
        folder = Path(name)
        return [*speed_rows(spark, folder), *zstd_rows(spark, folder), *scale_rows(spark, folder)]


def records(spark: SparkSession, size: int, total: int) -> DataFrame:
    """Two partitions of records with ``total`` bytes of values, which Spark generates at least cost."""
    count = total // size
    return spark.range(0, count, 1, CORES).selectExpr(
        "'bench' topic", f"CAST(id DIV {(count + 1) // CORES} AS INT) partition", "id offset",
        "1600000000000 + id timestamp_ms", "CAST(CAST(id % 1000 AS STRING) AS BINARY) key",
        f"CAST(rpad(CAST(id AS STRING), {size}, 'value of no surprise ') AS BINARY) value",
    )  # fmt: skip


def written(df: DataFrame, path: Path, **options: object) -> Callable[[], object]:
    def run() -> None:
        shutil.rmtree(path, ignore_errors=True)
        df.write.format("kafka_log").options(**options).mode("append").save(str(path))

    return run


def speed_rows(spark: SparkSession, folder: Path) -> list[Row]:
    result = []
    for size, name in ((1024, "1 KB"), (100, "100 B")):
        df = records(spark, size, GIGABYTE)
        parquet = df.write.mode("overwrite").option("compression", "none")
        times = interleave(
            {
                "ours": written(df, folder / "log"),
                "parquet": lambda writer=parquet: writer.parquet(str(folder / "parquet")),  # type: ignore[misc]
                "nothing": lambda frame=df: frame.write.format("noop").mode("overwrite").save(),  # type: ignore[misc]
                "rows": lambda frame=df: frame.mapInArrow(_count, "n BIGINT").selectExpr("sum(n)").collect(),  # type: ignore[misc]
            },
            rounds=3,
        )
        shutil.rmtree(folder / "parquet", ignore_errors=True)
        log_size = sum(path.stat().st_size for path in (folder / "log").rglob("*.log"))
        rate = Timing(tuple(log_size / taken / CORES / 1e9 for taken in times["ours"].samples))
        work = f"1 GB of {name} records to segments, two cores"
        producer = producer_timing(size, folder)
        scaled = Timing(tuple(taken / _SLICE for taken in producer.samples))
        result += [
            above(
                f"{name} records to segments, without Spark, one core",
                without_spark(size, folder / "log"),
                "GB/s",
                0.25,
            ),
            above(f"{work}: each", rate, "GB/s", 0.25),
            faster(work, times["ours"], "Kafka's producer into a broker", scaled, 3, GIGABYTE, "B"),
            no_slower(work, times["ours"], "Parquet of the same rows", times["parquet"], 1),
            no_slower(work, times["ours"], "the same rows to Python and nothing else", times["rows"], 1.5),
        ]
    return result


def without_spark(size: int, path: Path) -> Timing:
    """Rate of segments from record batches as Spark passes them [GB/s]."""
    per, total = 10_000, GIGABYTE // 2
    schema = {"topic": "bench", "partition": 0, "timestamp_ms": 1_600_000_000_000, "key": b"key", "value": bytes(size)}
    columns = {name: pa.array([value] * per) for name, value in schema.items()}
    batches = [
        pa.RecordBatch.from_pydict({"offset": pa.array(np.arange(first, first + per))} | columns)
        for first in range(0, total // size, per)
    ]
    asked = write_log.write_of({"path": str(path)}, batches[0].schema, overwrite=False)

    def run() -> None:
        shutil.rmtree(path, ignore_errors=True)
        write_log.begin(asked, "bench")
        write_log.write_rows(asked, batches, "bench", "0", 0)

    timing = interleave({"ours": run}, rounds=5)["ours"]
    return Timing(tuple(len(batches) * per * size / taken / 1e9 for taken in timing.samples))


def _count(batches):  # type: ignore[no-untyped-def]
    total = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_arrays([pa.array([total])], ["n"])


def producer_timing(size: int, folder: Path) -> Timing:
    """The time that `ProducerPerformance` reports for a share of the records."""
    workspace = folder / "broker"
    shutil.rmtree(workspace, ignore_errors=True)
    workspace.mkdir()
    count = int(GIGABYTE * _SLICE / size)
    with running(workspace, options=()) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic("bench", num_partitions=CORES, replication_factor=1)])["bench"].result()
        arguments = (
            "org.apache.kafka.tools.ProducerPerformance", "--topic", "bench", "--num-records", str(count),
            "--record-size", str(size), "--throughput", "-1", "--producer-props", f"bootstrap.servers={broker.address}", "acks=1",
            f"batch.size={_BATCH}",
        )  # fmt: skip
        samples = []
        for _ in range(amount(3, trial=1)):
            said = subprocess.run(
                java(arguments, KAFKA, TOOLS, options=()), capture_output=True, text=True, check=True
            ).stdout
            rate = float(said.strip().splitlines()[-1].split("records sent, ")[1].split(" ")[0])
            samples.append(count / rate)
    return Timing(tuple(samples))


def zstd_rows(spark: SparkSession, folder: Path) -> list[Row]:
    """Compressed segments compared with the codec alone on the contents of plain batches, with the same cores."""
    df = records(spark, 1024, GIGABYTE // 4)
    written(df, folder / "plain")()
    batch_size = _BATCH
    sections = b"".join(path.read_bytes() for path in sorted((folder / "plain").rglob("*.log")))

    def alone() -> None:
        for start in range(0, len(sections), batch_size):
            encoder = cramjam.zstd.Compressor(_ZSTD_LEVEL)
            encoder.compress(sections[start : start + batch_size])
            encoder.finish()

    times = interleave(
        {
            "ours": written(df, folder / "log", compression="zstd"),
            "plain": written(df, folder / "plain"),
            "alone": alone,
        },
        rounds=3,
    )
    whole = Timing(
        tuple(
            plain + alone / CORES for plain, alone in zip(times["plain"].samples, times["alone"].samples, strict=True)
        )
    )
    return [no_slower("0.25 GB with zstd", times["ours"], "plain, and zstd alone on both cores", whole, 1.3)]


def scale_rows(spark: SparkSession, folder: Path) -> list[Row]:
    peaks, times = [], []
    for gigabytes in (1, 8):
        timing = interleave({"ours": written(records(spark, 1024, gigabytes * GIBIBYTE), folder / "log")}, rounds=1)[
            "ours"
        ]
        times.append(Timing(tuple(taken / gigabytes for taken in timing.samples)))
        peaks.append(worker_peak())
    shutil.rmtree(folder / "log")
    return [
        no_slower("8 GiB of 1 KB records, an eighth of the time", times[1], "1 GiB", times[0], 1.15),
        below("8 GiB: worker memory over that of 1 GiB", Timing((peaks[1] - peaks[0],)), "MiB", 16),
    ]
