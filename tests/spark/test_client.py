"""Consumers over DataFrames: order for any partitioning, groups, partitions, filters, foreachBatch, failures."""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from sparkwire.catalogue import FUNCTIONS
from sparkwire.databus import Consumer, DataEvent, Result, Settings, Source, callbacks, consume
from sparkwire.databus.client.buffer import split
from tests.databus.test_client_rows import listened
from tests.support.client_frames import SCHEMA, frame
from tests.support.client_streams import end, event, random_stream, regress, window
from tests.support.dispatch_replay import golden_sources


class Writing(Consumer):
    """Writes its callbacks to a file, the only output of a task except the report."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lines = folder, []  # type: Path, list[Any]

    def on_start_source(self, source: str, schema: str | None) -> Result:
        self.lines.append(["source", source])
        return Result.SUCCESS

    def on_data_event(self, event: DataEvent) -> Result:
        self.lines.append(["data", event.sequence, event.src_id, event.key_long])
        return Result.SUCCESS

    def on_end_data_event_sequence(self, scn: int) -> Result:
        self.lines.append(["end", scn])
        return Result.SUCCESS

    def on_stop_consumption(self) -> Result:
        (self.folder / str(uuid.uuid4())).write_text(json.dumps(self.lines))
        return Result.SUCCESS


def reported(folder: Path) -> list[list[Any]]:
    return [json.loads(file.read_text()) for file in sorted(folder.iterdir())]


def test_each_stream_is_dispatched_in_its_order(spark: SparkSession, tmp_path: Path) -> None:
    streams = {
        f"s{k}": b"".join(window(scn, 40, 41, 41, first_key=100 * scn) for scn in range(1, 30)) for k in range(5)
    }
    report = consume(frame(spark, streams), Writing(tmp_path)).collect()
    assert len(report) == 5 * 29
    by_stream = defaultdict(list)
    for row in report:
        by_stream[row["stream"]].append(row["scn"])
        assert (row["events"], row["partition"], row["rollbacks"], row["retries"]) == (3, None, 0, 0)
        assert json.loads(row["checkpoint"])["windowScn"] == row["scn"]
    assert all(scns == list(range(1, 30)) for scns in by_stream.values())
    one = [word for scn in range(1, 30) for word in one_window(scn)]
    assert reported(tmp_path) == [one] * 5


def one_window(scn: int) -> list[Any]:
    key = 100 * scn
    rest = [["data", scn, 41, key + 1], ["data", scn, 41, key + 2], ["end", scn]]
    return [["source", "40"], ["data", scn, 40, key], ["source", "41"], *rest]


def test_partitions_share_keys_and_have_every_window(spark: SparkSession, tmp_path: Path) -> None:
    events = [event(scn, 40, key) for scn in (1, 2) for key in range(-10, 30)]
    texts = [event(3, 42, text.encode()) for text in ("17", "-5", "abc", "é", "2147483648")]
    stream = b"".join([*events[:40], end(1), *events[40:], end(2), *texts, end(3)])
    report = consume(frame(spark, {"s": stream}), Writing(tmp_path), partitions=3).collect()
    assert sorted((row["partition"], row["scn"]) for row in report) == [(p, scn) for p in range(3) for scn in (1, 2, 3)]
    assert sum(row["events"] for row in report) == 85
    keys = [{line[3] for line in lines if line[0] == "data" and line[3] is not None} for lines in reported(tmp_path)]
    for own in keys:
        assert len({abs(key) % 3 for key in own}) == 1
    expected = FUNCTIONS["dbus_key_partition"].decode(pa.array(texts), pa.array([3] * 5, pa.int32())).to_pylist()
    shares = {row["partition"]: row["events"] for row in report if row["scn"] == 3}
    assert shares == {p: expected.count(p) for p in range(3)}


def test_sources_come_in_the_consumers_order_within_each_window(spark: SparkSession, tmp_path: Path) -> None:
    cut = event(3, 40, 1) + event(3, 42, 2)
    stream = window(1, 40, 41, 42, 40, 99) + window(2, 42, 41) + cut + regress(2) + window(3, 40, 42)
    consume(frame(spark, {"s": stream}), Writing(tmp_path), source_order=[42, 41, 40])
    [lines] = reported(tmp_path)
    assert [line[1] for line in lines if line[0] == "source"] == [
        *["42", "41", "40", "99"],
        *["42", "41", "42", "40", "42", "40"],
    ]
    assert [line[1:] for line in lines if line[0] == "data"][:5] == [
        [1, 42, 2],
        [1, 41, 1],
        [1, 40, 0],
        [1, 40, 3],
        [1, 99, 4],
    ]


def test_a_group_and_filters_and_sources(spark: SparkSession, tmp_path: Path) -> None:
    stream = b"".join(window(scn, 40, 40, 41, 42, first_key=10 * scn) for scn in range(1, 20))
    settings = Settings(max_retries=2)
    report = consume(
        frame(spark, {"s": stream}).where("dbus_src_id(event) IN (40, 41) OR dbus_src_id(event) < 0"),
        Writing(tmp_path),
        group_size=3,
        source_order=["com.example.events.Order"],
        sources=golden_sources(),
        settings=settings,
    )
    assert [row["events"] for row in report.collect()] == [3] * 19
    members = reported(tmp_path)
    assert len(members) == 3
    names = ["com.example.events.Order", "com.example.events.Person"] * 19
    assert all([line[1] for line in lines if line[0] == "source"] == names for lines in members)
    keys = sorted(line[3] for lines in members for line in lines if line[0] == "data")
    assert keys == [10 * scn + k for scn in range(1, 20) for k in range(3)]


class FailsAlways(Consumer):
    """Always fails at the end of its first source."""

    def on_end_source(self, source: str, schema: str | None) -> Result:
        raise KeyError("no such table")


def test_a_consumer_that_always_fails_fails_the_query_with_a_clear_error(spark: SparkSession) -> None:
    with pytest.raises(PythonException) as caught:
        consume(frame(spark, {"orders": window(5, 40)}), FailsAlways())
    sentence = "the consumer of stream orders failed too often in window 5: on_end_source KeyError: 'no such table'"
    assert any(line.endswith(sentence) for line in str(caught.value).split("\n"))


def test_a_corrupt_event_fails_the_query_with_a_clear_error(spark: SparkSession) -> None:
    rows = [("s", 0, window(1, 40)[:61]), ("s", 1, b"\0" * 61)]
    with pytest.raises(PythonException) as caught:
        consume(spark.createDataFrame(rows, SCHEMA), Consumer())
    assert "stream s has an event that cannot be read (BAD_LENGTH): to continue" in str(caught.value)


def test_in_foreach_batch(spark: SparkSession, tmp_path: Path) -> None:
    reports: list[Any] = []

    def each(batch: DataFrame, number: int) -> None:
        reports.extend(consume(batch, Consumer()).collect())

    source, checkpoints = tmp_path / "in", tmp_path / "checkpoints"
    for k in range(3):
        frame(spark, {"s": window(10 * k + 1, 40) + window(10 * k + 2, 41)}).write.mode("append").parquet(str(source))
    events = spark.readStream.schema(SCHEMA).parquet(str(source))
    query = (
        events.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoints)).trigger(availableNow=True)
    )
    query.start().awaitTermination()
    assert sorted(row["scn"] for row in reports) == [1, 2, 11, 12, 21, 22]


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        ({"consumer": 7}, TypeError, "consumer must be a Consumer or a zero-argument callable returning one, got 7"),
        ({"group_size": 0}, ValueError, "consume takes group_size of at least 1, got 0"),
        ({"partitions": 0}, ValueError, "consume takes partitions of at least 1, got 0"),
        ({"order": []}, ValueError, "consume takes order: the columns that order a stream's events, got none in"),
        ({"source_order": ["x"]}, ValueError, "source_order takes ids, or names in sources, got 'x'"),
    ],
)
def test_wrong_arguments(spark: SparkSession, arguments: dict[str, Any], error: type[Exception], reason: str) -> None:
    with pytest.raises(error) as caught:
        consume(spark.createDataFrame([], SCHEMA), **{"consumer": Consumer(), **arguments})
    assert str(caught.value).startswith(reason)


def test_a_frame_without_events(spark: SparkSession) -> None:
    with pytest.raises(
        TypeError, match=r"^consume takes a DataFrame with a BINARY column event, got \(event STRING\)$"
    ):
        consume(spark.createDataFrame([("x",)], "event STRING"), Consumer())
    assert consume(spark.createDataFrame([], SCHEMA), Consumer()).count() == 0


def test_a_frame_without_a_stream_is_one_stream_by_any_columns(spark: SparkSession) -> None:
    rows = [(k // 2, k % 2, e.as_py()) for k, e in enumerate(split(window(1, 40) + window(2, 41)).events)]
    frame = spark.createDataFrame(rows[::-1], "file_number INT, at INT, event BINARY")
    report = consume(frame, Consumer(), order=["file_number", "at"]).collect()
    assert [(row["stream"], row["scn"]) for row in report] == [(None, 1), (None, 2)]


def test_callbacks_are_rows(spark: SparkSession) -> None:
    streams = {f"s{k}": b"".join(random_stream(Random(k), 30)) for k in range(4)}
    names = [Source(40, "Person", {})]
    rows = callbacks(frame(spark, streams), sources=names, threshold=500).orderBy("stream", "n").collect()
    for name, data in streams.items():
        ours = [(r["n"], r["callback"], r["scn"], r["source"], r["event"]) for r in rows if r["stream"] == name]
        shown = [(*r[:4], None if r[1] == "on_error" else r[4]) for r in ours]
        expected = [(*r[:3], "Person" if r[3] == "40" else r[3], r[4]) for r in listened(split(data).events, 500)]
        assert shown == expected
