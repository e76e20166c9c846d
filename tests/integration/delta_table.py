"""The streaming twin of sql/recipes/databus_current_table.sql, run for real: a session with Delta, as a process of its own.

    python -m tests.integration.delta_table DIRECTORY

Prints what each run's table came to: a line of JSON, rows of ``[stream, source id, key, value in hex]``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

from pyspark.sql import DataFrame, SparkSession

import sparkwire
from tests.support.client_frames import SCHEMA, rows
from tests.support.client_history import History, statements

SEEDS = range(6)
BATCH = 30_000  # [bytes]: a few batches


def histories() -> dict[str, History]:
    return {f"s{seed}": History(seed) for seed in SEEDS}


def merging(merge: str) -> Callable[[DataFrame, int], None]:
    """The MERGE for each batch."""

    def each(batch: DataFrame, number: int) -> None:
        batch.createOrReplaceTempView("batch")
        batch.sparkSession.sql(merge)

    return each


def windows(spark: SparkSession, folder: Path, merge: str) -> None:
    """Whole windows as the data source streams them; stopped on the way, and the whole stream once more from its beginning."""
    for name, history in histories().items():
        (folder / f"{name}.bin").write_bytes(history.sent())
    source = spark.readStream.format("databus").option("maxBytesPerTrigger", BATCH).load(f"{folder}/*.bin")
    events = source.selectExpr("stream", "position", "event")
    writer = events.writeStream.foreachBatch(merging(merge))
    begun = writer.option("checkpointLocation", f"{folder}/checkpoint").start()
    while not begun.recentProgress:
        begun.awaitTermination(1)
    begun.stop()
    for checkpoint in ("checkpoint", "again"):
        query = writer.option("checkpointLocation", f"{folder}/{checkpoint}").trigger(availableNow=True).start()
        query.awaitTermination()


def shuffled(spark: SparkSession, folder: Path, merge: str) -> None:
    """Each event twice, in any order."""
    events = 2 * rows({name: history.sent() for name, history in histories().items()})
    Random(7).shuffle(events)
    size = len(events) // 3 + 1
    for first in range(0, len(events), size):
        part = spark.createDataFrame(events[first : first + size], SCHEMA)
        part.coalesce(1).write.mode("append").parquet(f"{folder}/events")
    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{folder}/events")
    writer = source.writeStream.foreachBatch(merging(merge))
    writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start().awaitTermination()


def main(directory: str) -> None:
    """Each run in a database of its own, with the statements of the recipe as they are."""
    create, merge, view = statements("streaming/databus_current_table.sql")
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": f"{directory}/warehouse",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    sparkwire.register(spark)
    for run in (windows, shuffled):
        folder = Path(directory, run.__name__)
        folder.mkdir()
        spark.sql(f"CREATE DATABASE {run.__name__}")
        spark.sql(f"USE {run.__name__}")
        spark.sql(create)
        run(spark, folder, merge)
        spark.sql(view)
        table = spark.sql("SELECT stream, src_id, key_long, hex(value) AS value FROM current_rows").collect()
        # The data source's streams are files.
        print(json.dumps(sorted([Path(row[0]).stem, *row[1:]] for row in table)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
