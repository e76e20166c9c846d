"""What an application does on the cluster: the driver, in a separate process.

    python -m tests.integration.cluster_job WHAT GIVEN

WHAT is a function of this file, GIVEN a JSON object: the session's settings, Python files to ship, and what the function
takes. It prints lines of JSON.
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
    """Of the rows of FIELDS: status, opcode, events, their bytes, the sum of their sequences; in one order."""
    sums = ("count(*)", "sum(size)", "sum(CAST(sequence AS DECIMAL(38, 0)))")
    rows = events.groupBy("status", "opcode").agg(*map(sql.expr, sums)).collect()
    return sorted([str(value) for value in row] for row in rows)


def events(files: DataFrame) -> DataFrame:
    return files.selectExpr("inline(dbus_events(content))").selectExpr(*FIELDS)


def answers(spark: SparkSession, files: str) -> None:
    """The first result of a cold executor, and the counts over all files; each with its time [s]."""
    start = time.monotonic()
    first = spark.sql("SELECT size(dbus_events(stream)), dbus_sequence(event) FROM sparkwire_samples").first()
    say(first=first, seconds=round(time.monotonic() - start, 1))
    start = time.monotonic()
    result = counts(events(spark.read.format("binaryFile").load(files)))
    say(counts=result, seconds=round(time.monotonic() - start, 1))


def batches(spark: SparkSession, files: str, workers: list[int], seed: int, kills: int) -> None:
    """The counts, again and again, each time with a process killed when some of the job's tasks have ended."""
    chance = random.Random(seed)
    tracker = spark.sparkContext.statusTracker()

    def ended() -> int:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return max((stage.numCompletedTasks for stage in stages if stage), default=0)

    for k in range(kills):
        kill = Kill(k, workers, chance, ended)
        say(counts=counts(events(spark.read.format("binaryFile").load(files))), **kill.log())


def streams(spark: SparkSession, files: str, workers: list[int], seed: int, kills: int, place: str) -> None:
    """A streaming query from files to files, again and again, each time with a process killed when some are written."""
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
    """SIGKILL to a Python worker or to an executor, in turn, as soon as a random number of tasks has ended.

    A number of tasks and not a time: so it always comes in the middle, however fast the machine is.
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
                with suppress(ProcessLookupError):  # it has ended by itself meanwhile
                    os.kill(pid, signal.SIGKILL)
                    self.pid = pid

    def log(self) -> dict[str, Any]:
        """What was killed, and after how many tasks; ``pid`` is None where the job ended before."""
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
