"""The recipes of Databus streams: their windows against the dispatcher's, and the one true table whatever is sent twice."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkwire.databus import Consumer, Settings, consume
from tests.support.client_frames import SCHEMA, frame, rows
from tests.support.client_history import History, statements
from tests.support.client_streams import event, random_stream, regress, window

Tables = dict[str, dict[tuple[int, int], bytes]]


def run(spark: SparkSession, recipe: str, streams: dict[str, bytes], copies: int = 1) -> None:
    """The statements of a recipe over the streams' events, each ``copies`` times."""
    events = frame(spark, streams)
    for _ in range(copies - 1):
        events = events.unionByName(frame(spark, streams, 2))
    events.createOrReplaceTempView("events")
    for statement in statements(recipe):
        spark.sql(statement).collect()


def test_the_windows_are_those_that_the_dispatcher_reports(spark: SparkSession) -> None:
    streams = {f"s{k}": b"".join(random_stream(Random(100 + k), 60)) for k in range(3)}
    run(spark, "databus_windows.sql", streams)
    found = spark.sql("SELECT * FROM windows ORDER BY stream, window").collect()
    report = consume(frame(spark, streams), Consumer(), settings=Settings(threshold=1 << 30)).collect()
    for name in streams:
        ended = [row for row in found if row["stream"] == name and row["state"] in ("COMPLETE", "EMPTY")]
        told = [(row["scn"], row["events"]) for row in ended if row["scn"] > 0 or row["events"]]
        assert told == [(row["scn"], row["events"]) for row in report if row["stream"] == name]
    assert {row["state"] for row in found} >= {"COMPLETE", "EMPTY", "ROLLED_BACK"}


def test_the_state_of_each_window(spark: SparkSession) -> None:
    cut = event(7, 40) + regress(5)
    run(
        spark,
        "databus_windows.sql",
        {"s": window(5, 40) + window(6, 40) + cut + window(6, 41) + window(7) + event(8, 40)},
    )
    found = spark.sql("SELECT start_scn, scn, events, state, again FROM windows ORDER BY window").collect()
    assert [tuple(row) for row in found] == [
        (5, 5, 1, "COMPLETE", False),
        (6, 6, 1, "COMPLETE", False),
        (7, None, 1, "ROLLED_BACK", False),
        (6, 6, 1, "COMPLETE", True),
        (None, 7, 0, "EMPTY", False),
        (8, None, 1, "OPEN", False),
    ]


@pytest.fixture(scope="module")
def histories() -> dict[str, History]:
    return {f"s{seed}": History(seed) for seed in range(12)}


def true_tables(histories: dict[str, History]) -> Tables:
    return {name: history.table for name, history in histories.items() if history.table}


def test_the_current_table_whatever_the_order_and_the_replays(
    spark: SparkSession, histories: dict[str, History]
) -> None:
    """Each event twice, in any order, and after the last end a change that does not count yet."""
    streams = {name: history.sent() + event(10**6, 40, 1, b"open") for name, history in histories.items()}
    run(spark, "databus_current_table.sql", streams, copies=2)
    tables: Tables = defaultdict(dict)
    for row in spark.sql("SELECT * FROM current_rows").collect():
        tables[row["stream"]][row["src_id"], row["key_long"]] = bytes(row["value"])
    assert tables == true_tables(histories)


def test_the_streaming_twin_comes_to_the_same_table(spark: SparkSession, histories: dict[str, History]) -> None:
    """What its MERGE is given, batch by batch, and some batches again; the MERGE itself as a dict."""
    _, merge, _ = statements("streaming/databus_current_table.sql")
    given = merge.partition("USING (")[2].partition(") s\nON")[0]
    assert "WHEN MATCHED AND s.version > t.version THEN UPDATE SET *" in merge
    events = rows({name: history.sent() for name, history in histories.items()})
    size = 1 + len(events) // 4
    batches = [events[first : first + size] for first in range(0, len(events), size)]
    kept: dict[tuple[Any, ...], Any] = {}
    for batch in (*batches[:3], batches[1], batches[3], batches[0]):
        spark.createDataFrame(batch, SCHEMA).repartition(3).createOrReplaceTempView("batch")
        for row in spark.sql(given).collect():
            own = (row["stream"], row["src_id"], row["key_long"])
            if own not in kept or row["version"] > kept[own]["version"]:
                kept[own] = row
    tables: Tables = defaultdict(dict)
    for (stream, source, key), row in kept.items():
        if not row["is_delete"]:
            tables[stream][source, key] = bytes(row["value"])
    assert tables == true_tables(histories)
