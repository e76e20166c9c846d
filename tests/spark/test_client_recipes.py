"""The recipes for Databus streams, compared with the dispatcher's windows."""

from __future__ import annotations

from random import Random

from pyspark.sql import SparkSession

from sparkwire.databus import Consumer, Settings, consume
from tests.support.client_frames import frame
from tests.support.client_history import statements
from tests.support.client_streams import event, random_stream, regress, window


def run(spark: SparkSession, recipe: str, streams: dict[str, bytes], copies: int = 1) -> None:
    """Run the statements of a recipe over the streams' events, each repeated ``copies`` times."""
    events = frame(spark, streams)
    for _ in range(copies - 1):
        events = events.unionByName(frame(spark, streams, 2))
    events.createOrReplaceTempView("events")
    for statement in statements(recipe):
        spark.sql(statement).collect()


def test_the_windows_equal_those_of_the_dispatcher(spark: SparkSession) -> None:
    streams = {f"s{k}": b"".join(random_stream(Random(100 + k), 60)) for k in range(3)}
    run(spark, "databus_windows.sql", streams)
    rows = spark.sql("SELECT * FROM windows ORDER BY stream, window").collect()
    report = consume(frame(spark, streams), Consumer(), settings=Settings(threshold=1 << 30)).collect()
    for name in streams:
        ended = [row for row in rows if row["stream"] == name and row["state"] in ("COMPLETE", "EMPTY")]
        reported = [(row["scn"], row["events"]) for row in ended if row["scn"] > 0 or row["events"]]
        assert reported == [(row["scn"], row["events"]) for row in report if row["stream"] == name]
    assert {row["state"] for row in rows} >= {"COMPLETE", "EMPTY", "ROLLED_BACK"}


def test_the_state_of_each_window(spark: SparkSession) -> None:
    cut = event(7, 40) + regress(5)
    run(
        spark,
        "databus_windows.sql",
        {"s": window(5, 40) + window(6, 40) + cut + window(6, 41) + window(7) + event(8, 40)},
    )
    rows = spark.sql("SELECT start_scn, scn, events, state, again FROM windows ORDER BY window").collect()
    assert [tuple(row) for row in rows] == [
        (5, 5, 1, "COMPLETE", False),
        (6, 6, 1, "COMPLETE", False),
        (7, None, 1, "ROLLED_BACK", False),
        (6, 6, 1, "COMPLETE", True),
        (None, 7, 0, "EMPTY", False),
        (8, None, 1, "OPEN", False),
    ]
