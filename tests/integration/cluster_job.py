"""The driver of an application on the cluster, in a separate process.

    python -m tests.integration.cluster_job WHAT GIVEN

WHAT is a function of this file. GIVEN is a JSON object with the session's settings, Python files to ship, and the function's
arguments. The driver prints lines of JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyspark.sql.functions as sql
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from tests.integration.cluster import executors, python_workers

Counts = list[list[str]]

FIELDS = ("status", "dbus_opcode(event) AS opcode", "length(event) AS size", "dbus_sequence(event) AS sequence")


def session(settings: dict[str, str], python_files: list[str]) -> SparkSession:
    builder = SparkSession.builder.appName("sparkwire integration")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for file in python_files:
        spark.sparkContext.addPyFile(file)
    sparkwire.register(spark)
    return spark


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def counts(events: DataFrame) -> Counts:
    """Aggregates of the rows in FIELDS, sorted: status, opcode, number of events, their bytes, the sum of their sequences."""
    sums = ("count(*)", "sum(size)", "sum(CAST(sequence AS DECIMAL(38, 0)))")
    rows = events.groupBy("status", "opcode").agg(*map(sql.expr, sums)).collect()
    return sorted([str(value) for value in row] for row in rows)


def events(files: DataFrame) -> DataFrame:
    return files.selectExpr("inline(dbus_events(content))").selectExpr(*FIELDS)


def answers(spark: SparkSession, files: str) -> None:
    """Report the first result of a cold executor, and the counts over all files, each with its time [s]."""
    start = time.monotonic()
    first = spark.sql("SELECT size(dbus_events(stream)), dbus_sequence(event) FROM sparkwire_samples").first()
    say(first=first, seconds=round(time.monotonic() - start, 1))
    start = time.monotonic()
    result = counts(events(spark.read.format("binaryFile").load(files)))
    say(counts=result, seconds=round(time.monotonic() - start, 1))


def batches(spark: SparkSession, files: str, workers: list[int], seed: int, kills: int) -> None:
    """Report the counts repeatedly. Each time, a process is killed after some of the job's tasks."""
    chance = random.Random(seed)
    tracker = spark.sparkContext.statusTracker()

    def ended() -> int:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return max((stage.numCompletedTasks for stage in stages if stage), default=0)

    for k in range(kills):
        kill = Kill(k, workers, chance, ended)
        say(counts=counts(events(spark.read.format("binaryFile").load(files))), **kill.log())


def streams(spark: SparkSession, files: str, workers: list[int], seed: int, kills: int, place: str) -> None:
    """Run a streaming query between files repeatedly. Each time, a process is killed after some files are written."""
    chance = random.Random(seed)
    for k in range(kills):
        table = Path(place) / f"table{k}"
        source = spark.readStream.format("binaryFile").option("maxFilesPerTrigger", 8)
        source = source.schema("path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY")
        writer = events(source.load(files)).writeStream.format("parquet")
        writer = writer.option("checkpointLocation", f"{place}/checkpoint{k}").trigger(availableNow=True)
        kill = Kill(k, workers, chance, partial(_parquet_files, table))
        writer.start(str(table)).awaitTermination()
        say(counts=counts(spark.read.parquet(str(table))), **kill.log())


def _parquet_files(table: Path) -> int:
    return len(list(table.glob("*.parquet")))


class Kill:
    """Sends SIGKILL to a Python worker or an executor, in turn, after a random number of tasks.

    It counts tasks instead of time, so that the kill always comes in the middle, on slow and fast machines.
    """

    def __init__(self, turn: int, workers: list[int], chance: random.Random, ended: Callable[[], int]) -> None:
        self.kind = ("python worker", "executor")[turn % 2]
        self.find = (python_workers, executors)[turn % 2]
        self.workers = tuple(workers)
        self.after = chance.randint(1, 16)
        self.choice = chance.random()
        self.ended = ended
        self.pid: int | None = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while self.pid is None:
            time.sleep(0.01)
            if self.ended() >= self.after and (result := self.find(self.workers)):
                pid = result[int(self.choice * len(result))]
                with suppress(ProcessLookupError):  # it has ended on its own meanwhile
                    os.kill(pid, signal.SIGKILL)
                    self.pid = pid

    def log(self) -> dict[str, Any]:
        """Report the killed process and the number of tasks; ``pid`` is None if the job ended before."""
        self.thread.join(0)
        return {"killed": self.kind, "pid": self.pid, "after": self.after}


def main() -> None:
    what, given = sys.argv[1], json.loads(sys.argv[2])
    spark = session(given["session"], given["python_files"])
    jobs: dict[str, Callable[..., None]] = {"answers": answers, "batches": batches, "streams": streams}
    jobs[what](spark, **given["arguments"])
    spark.stop()


if __name__ == "__main__":
    main()
