"""A streaming query that delivers windows to the consumer of the docs, as a process of its own that may be killed.

    python -m tests.integration.delivery STREAMS TABLE CHECKPOINT JOURNAL

Ends when all windows have been delivered. JOURNAL gets a line for each delivered window: the consumption's number, the
stream's physical partition, the window's scn.
"""

from __future__ import annotations

import os
import sys
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from sparkwire.databus import Consumer, Result, consume
from tests.support import ROOT

DOCS = ROOT / "docs" / "databus-client.md"
BATCH = 60_000  # [bytes]


def documented() -> type[Consumer]:
    """The consumer that the docs show."""
    (shown,) = (block for block in DOCS.read_text("utf-8").split("```") if "class Windows(Consumer)" in block)
    source = shown.removeprefix("python\n").partition("\n\n\ndef each")[0]
    by_name = {"Consumer": Consumer, "Result": Result, "os": os, "pa": pa, "pq": pq, "uuid": uuid}
    exec(source, by_name)
    consumer = by_name["Windows"]
    assert isinstance(consumer, type)
    assert issubclass(consumer, Consumer)
    return consumer


def journaled(table: str, journal: str) -> Consumer:
    """The documented consumer, which also says what it was given: one write to the end of one file, in this order."""

    class Journaled(documented()):  # type: ignore[misc]
        def on_start_consumption(self) -> Result:
            self.number = uuid.uuid4().hex
            return Result.SUCCESS

        def on_checkpoint(self, scn: int) -> Result:
            result: Result = super().on_checkpoint(scn)
            assert result is Result.SUCCESS  # all windows are small: this is a window's end
            file = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(file, f"{self.number} {scn.partition} {scn}\n".encode())  # type: ignore[attr-defined]
            os.close(file)
            return result

    consumer: Consumer = Journaled(table)
    return consumer


def main(streams: str, table: str, checkpoint: str, journal: str) -> None:
    """A worker that is killed costs a task, which Spark runs again; a query that is killed is started again by the test."""
    spark = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    sparkwire.register(spark)

    def each(batch: DataFrame, number: int) -> None:
        consume(batch, journaled(table, journal))

    events = spark.readStream.format("databus").option("maxBytesPerTrigger", BATCH).load(streams)
    query = events.writeStream.foreachBatch(each).option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
