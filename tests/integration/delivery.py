"""A streaming query that delivers windows to the consumer of the docs, in a separate process that may be killed.

    python -m tests.integration.delivery STREAMS TABLE CHECKPOINT JOURNAL

The process ends when all windows have been delivered. JOURNAL gets a line for each delivered window: the number of the
consumption, the stream's physical partition, and the window's SCN.
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
    """The consumer in the docs."""
    (shown,) = (block for block in DOCS.read_text("utf-8").split("```") if "class Windows(Consumer)" in block)
    source = shown.removeprefix("python\n").partition("\n\n\ndef each")[0]
    by_name = {"Consumer": Consumer, "Result": Result, "os": os, "pa": pa, "pq": pq, "uuid": uuid}
    exec(source, by_name)
    consumer = by_name["Windows"]
    assert isinstance(consumer, type)
    assert issubclass(consumer, Consumer)
    return consumer


def journaled(table: str, journal: str) -> Consumer:
    """The documented consumer, which also appends each delivered window to one file, in order."""

    class Journaled(documented()):  # type: ignore[misc]
        def on_start_consumption(self) -> Result:
            self.number = uuid.uuid4().hex
            return Result.SUCCESS

        def on_checkpoint(self, scn: int) -> Result:
            result: Result = super().on_checkpoint(scn)
            assert result is Result.SUCCESS  # all windows are small, so this is the end of a window
            file = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(file, f"{self.number} {scn.partition} {scn}\n".encode())  # type: ignore[attr-defined]
            os.close(file)
            return result

    consumer: Consumer = Journaled(table)
    return consumer


def main(streams: str, table: str, checkpoint: str, journal: str) -> None:
    """Run the query. Spark repeats the task of a killed worker; the test restarts a killed query."""
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
