"""Keep a table up to date with Debezium's messages in a topic, in a separate process that may be killed.

    python -m tests.integration.live_merge parquet|delta|iceberg DIRECTORY

DIRECTORY has the files ``topic`` (a pattern for the directories of its partitions), ``columns`` (the table's columns in JSON) and
``epoch`` (of the topic). The process writes the file ``runs`` when the query runs. When a file ``end`` exists, the process merges
the available data, stops the query, and writes the table's rows to ``rows``. When both files are gone, it continues with the next
epoch.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import sparkwire
from tests.integration.merge_table import session

_LOOKS_EVERY = 0.5  # [s]


def main(kind: str, directory: str) -> None:
    place = Path(directory)
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.master": "local[1]",  # because each Python worker imports the package again
        # A stream's batches have a separate session and catalog: this one would show an outdated table.
        "spark.sql.catalog.lake.cache-enabled": "false",
    }
    spark = session(kind, directory, **settings)
    target = {"delta": f"delta.`{place}/table`", "iceberg": "lake.shop.orders", "parquet": f"{place}/table"}[kind]
    if kind == "iceberg":
        spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    while True:
        rows = merge_epoch(spark, target, place)
        # Under another name first, so that its reader finds the whole file.
        (place / "written").write_bytes(pickle.dumps(rows))
        (place / "written").rename(place / "rows")
        while (place / "end").exists() or (place / "rows").exists():
            time.sleep(_LOOKS_EVERY)


def merge_epoch(spark: SparkSession, target: str, place: Path) -> list[dict[str, Any]]:
    """Merge the topic's current epoch until the file ``end`` exists. Returns the rows of the table."""
    epoch = int((place / "epoch").read_text())
    records = spark.readStream.format("kafka_log").load((place / "topic").read_text())
    changes = sparkwire.changes(
        records,
        format="debezium",
        table="shop.orders",
        key="key",
        headers="headers",
        columns=json.loads((place / "columns").read_text()),
        epoch=epoch,
    )
    query = sparkwire.merge(changes, target, ["shop", "id"], checkpoint=f"{place}/checkpoint-{epoch}")
    assert query is not None
    (place / "runs").touch()
    while not (place / "end").exists():
        query.awaitTermination(_LOOKS_EVERY)
    query.processAllAvailable()
    query.stop()
    return [row.asDict() for row in sparkwire.merged(spark, target).collect()]


if __name__ == "__main__":
    main(*sys.argv[1:])
