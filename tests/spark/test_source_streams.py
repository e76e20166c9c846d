"""``kafka_log`` and ``databus`` as streams of Spark: triggers, limits, progress, restarts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from tests.support import kafka_cases as golden
from tests.support.client_streams import window
from tests.support.databus_cases import golden_bytes

NAMES = ("00000000000000000100.log", "00000000000000000494.log")
FIRST, SECOND = (golden.archive("segments_v2")[f"v2_multi_segment/{name}"] for name in NAMES)

CHILD = """
import sys
from pyspark.sql import SparkSession
import sparkwire
source, sink = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
sparkwire.register(spark)
frame = spark.readStream.format("kafka_log").option("maxBytesPerTrigger", "3000").load(source)
query = frame.writeStream.format("parquet").option("checkpointLocation", sink + ".checkpoint").start(sink)
query.awaitTermination()
"""


def partition(top: Path, name: str = "orders-0") -> Path:
    folder = top / name
    folder.mkdir(parents=True)
    (folder / NAMES[0]).write_bytes(FIRST)
    return folder


def run(spark: SparkSession, source: str, path: Path, sink: Path, **options: str) -> StreamingQuery:
    """Run a query over all available data into Parquet, to its end."""
    frame = spark.readStream.format(source).options(**options).load(str(path))
    writer = frame.writeStream.format("parquet").option("checkpointLocation", f"{sink}.checkpoint")
    query = writer.trigger(availableNow=True).start(str(sink))
    query.awaitTermination()
    return query


def offsets(spark: SparkSession, sink: Path) -> list[int]:
    return sorted(row.offset for row in spark.read.parquet(str(sink)).select("offset").collect())


def test_available_data_in_batches_of_a_size(spark: SparkSession, tmp_path: Path) -> None:
    folder = partition(tmp_path / "broker")
    sink = tmp_path / "sink"
    query = run(spark, "kafka_log", tmp_path / "broker", sink, maxBytesPerTrigger="30000")
    assert offsets(spark, sink) == list(range(100, 494))
    progress = [one for one in query.recentProgress if one.numInputRows]
    assert len(progress) >= 3
    for offset in (progress[-1].sources[0].endOffset, progress[0].sources[0].latestOffset):
        (log,) = json.loads(offset)["logs"].values()
        assert (log["next"], log["file"], log["position"]) == (494, NAMES[0], len(FIRST))
    (folder / NAMES[1]).write_bytes(SECOND)
    partition(tmp_path / "broker", "orders-1")
    run(spark, "kafka_log", tmp_path / "broker", sink)
    assert offsets(spark, sink) == sorted([*range(100, 520), *range(100, 494)])


def test_data_loss_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    folder = partition(tmp_path / "broker")
    sink = tmp_path / "sink"
    (folder / NAMES[0]).write_bytes(FIRST[:60_000])
    run(spark, "kafka_log", tmp_path / "broker", sink)
    (folder / NAMES[1]).write_bytes(SECOND)
    (folder / NAMES[0]).unlink()
    with pytest.raises(
        StreamingQueryException,
        match=r"orders-0: the query continues at offset \d+, but the log begins at offset 494 now",
    ):
        run(spark, "kafka_log", tmp_path / "broker", sink)
    run(spark, "kafka_log", tmp_path / "broker", sink, failOnDataLoss="false")
    assert offsets(spark, sink)[-26:] == list(range(494, 520))


def test_whole_windows(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "events.bin"
    path.write_bytes(golden_bytes("window_stream")[:500])
    sink = tmp_path / "sink"
    run(spark, "databus", path, sink, columns="window, window_scn, position")
    first = spark.read.parquet(str(sink)).collect()
    assert {(row.window, row.window_scn) for row in first} == {(0, 1000)}
    path.write_bytes(golden_bytes("window_stream"))
    run(spark, "databus", path, sink, columns="window, window_scn, position", maxBytesPerTrigger="600")
    rows = spark.read.parquet(str(sink)).collect()
    batch = spark.read.format("databus").load(str(path)).where("window_scn IS NOT NULL")
    assert len({row.position for row in rows}) == len(rows) >= batch.count()


@pytest.mark.parametrize("trigger", [{"availableNow": True}, {"once": True}, {"processingTime": "0 seconds"}], ids=str)
def test_event_files_that_come_under_any_name(trigger: dict[str, Any], spark: SparkSession, tmp_path: Path) -> None:
    folder, sink = tmp_path / "relay", tmp_path / "sink"
    folder.mkdir()
    (folder / "b").write_bytes(b"")
    frame = spark.readStream.format("databus").options(stream="directory", columns="file, window_scn").load(str(folder))
    for name, scn in (("b", 10), ("a", 20), ("c", 30)):
        (folder / name).write_bytes(window(scn, 40))
        writer = frame.writeStream.format("parquet").option("checkpointLocation", f"{sink}.checkpoint")
        query = writer.trigger(**trigger).start(str(sink))
        query.processAllAvailable()
        query.stop()
    rows = spark.read.parquet(str(sink)).collect()
    assert sorted(row.window_scn for row in rows) == [10, 10, 20, 20, 30, 30]


def test_a_killed_query_continues(spark: SparkSession, tmp_path: Path) -> None:
    """A separate process with its JVM is killed at any point, without a chance to finish anything."""
    partition(tmp_path / "broker")
    sink = tmp_path / "sink"
    command = [sys.executable, "-c", CHILD, str(tmp_path / "broker"), str(sink)]
    environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        command, env=os.environ | environment, stderr=subprocess.DEVNULL, start_new_session=True
    ) as child:
        commits = Path(f"{sink}.checkpoint", "commits")
        while child.poll() is None and not (
            commits.is_dir() and len([f for f in commits.iterdir() if f.name.isdigit()]) >= 3
        ):
            time.sleep(0.05)
        assert child.poll() is None
        os.killpg(child.pid, signal.SIGKILL)
    run(spark, "kafka_log", tmp_path / "broker", sink, maxBytesPerTrigger="20000")
    assert offsets(spark, sink) == list(range(100, 494))
