"""Keep a table up to date with Debezium's messages in a topic, in a separate process that may be killed.

    python -m tests.integration.live_merge parquet|delta|iceberg DIRECTORY

DIRECTORY has the files ``topic`` (a pattern for the directories of its partitions), ``columns`` (the table's columns in JSON) and
``epoch`` (of the topic). The process writes the file ``runs`` when the query runs. When a file ``end`` exists, the process merges
the available data, writes the table's rows to ``rows``, and ends.
"""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

import sparkwire
from tests.integration.merge_table import session

_LOOKS_EVERY = 0.5  # [s]


def main(kind: str, directory: str) -> None:
    place = Path(directory)
    # One core, because each Python worker imports the package again.
    spark = session(kind, directory, **{"spark.sql.session.timeZone": "UTC", "spark.master": "local[1]"})
    target = {"delta": f"delta.`{place}/table`", "iceberg": "lake.shop.orders", "parquet": f"{place}/table"}[kind]
    if kind == "iceberg":
        spark.sql("CREATE DATABASE IF NOT EXISTS shop")
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
    rows = [row.asDict() for row in sparkwire.merged(spark, target).collect()]
    (place / "rows").write_bytes(pickle.dumps(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
