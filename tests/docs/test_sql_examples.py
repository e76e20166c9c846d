"""The example queries of `sql/examples` run and return rows, and their input matches its README."""

from __future__ import annotations

import importlib.util
import struct
import sys
from types import ModuleType
from typing import Any

import pytest
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import SparkSession

import sparkwire
from tests.support import ROOT
from tests.support.databus_cases import golden_bytes, golden_events
from tests.support.oracles import databus as oracle

SQL = ROOT / "sql"
INPUT = sparkwire.samples() / "databus"


NAMES = sorted(file.stem for file in (SQL / "examples").glob("*.sql"))


def script(name: str) -> ModuleType:
    """A script of `sql` as a module."""
    spec = importlib.util.spec_from_file_location(name, SQL / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    return script("demo")


@pytest.fixture(scope="module")
def results(demo: ModuleType) -> ModuleType:
    return script("results")


@pytest.mark.parametrize("name", NAMES)
def test_every_query_returns_what_its_file_says(
    spark: SparkSession, demo: ModuleType, results: ModuleType, name: str
) -> None:
    """Every query has a title and returns at least one row. ``python sql/results.py`` writes the files again."""
    [example] = [example for example in demo.EXAMPLE_FILES if example.name == name]
    text = results.text_of(spark, example)
    assert text.splitlines() == (SQL / "results" / f"{name}.txt").read_text("utf-8").splitlines()
    parts = [part.splitlines() for part in text.split("\n\n")]
    assert all(len(lines) >= 3 for lines in parts)
    assert len(parts) == sum(not statement.is_view for statement in example.statements)
    assert all(statement.title for statement in example.statements)


def test_no_file_of_results_is_left_over() -> None:
    assert sorted(file.stem for file in (SQL / "results").iterdir()) == NAMES


def test_a_value_is_one_cell_of_a_line(spark: SparkSession, results: ModuleType) -> None:
    [row] = results.rows_of(
        spark.sql("SELECT X'0AFF' AS a, NULL AS a, 'a\\tb\\nc' AS b, TIMESTAMP'2020-01-01 00:00:00 UTC' AS t")
    )
    assert row.split("\t") == ["0AFF", "NULL", "a\\tb\\nc", "2020-01-01 00:00:00"]


def test_index_and_tour(demo: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """The index numbers every question. The tour has queries of each format, after the views that they read."""
    demo.show_index()
    index = capsys.readouterr().out
    for example in demo.EXAMPLE_FILES:
        assert all(statement.title in index for statement in example.statements)
        tour = [statement for statement in example.statements if statement.in_tour]
        assert 2 <= len(tour) <= 6


def test_demo_runs_the_selected_queries(
    spark: SparkSession, demo: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """Views are created even if they are not shown."""
    [example] = [example for example in demo.EXAMPLE_FILES if example.name == "kafka"]
    example.frame(spark).createOrReplaceTempView(example.view)
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW batches AS SELECT 1")
    [view] = [statement for statement in example.statements if "VIEW batches" in statement.sql]
    demo.run(spark, "kafka 2", view, False)
    assert capsys.readouterr().out == ""
    [question] = [statement for statement in example.statements if statement.title.startswith("Corrupt bytes")]
    demo.run(spark, "kafka 9", question, True)
    assert "CRC_MISMATCH" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="There are examples of kafka_log, databus"):
        demo.main(["avro2"])


def test_a_consumer_at_work(spark: SparkSession, demo: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """It fails once, in the window with its tenth change, and gets that window again."""
    register_pickle_by_value(demo)  # a worker cannot import a script
    [example] = [example for example in demo.EXAMPLE_FILES if example.name == "databus"]
    example.frame(spark).createOrReplaceTempView(example.view)
    spark.sql(example.statements[0].sql)
    demo.show_consumer(spark)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|1040")]
    assert [[cell.strip() for cell in line.strip("|").split("|")[:3]] for line in lines] == [["1040", "5", "1"]]


def test_committed_records(spark: SparkSession, demo: ModuleType) -> None:
    """The SQL view has the records that remain according to the log's index of aborted transactions."""
    example = demo.EXAMPLE_FILES[0]
    example.frame(spark).createOrReplaceTempView(example.view)
    for query in example.statements:
        if query.is_view:
            spark.sql(query.sql)
    [query] = [query for query in example.statements if query.title.startswith("What it does not get")]
    rows = {row["is_transactional"]: (row["records"], row["committed"]) for row in spark.sql(query.sql).collect()}
    assert (
        rows[False][0] == rows[False][1] + spark.table("orders").where("NOT is_transactional AND offset >= 396").count()
    )
    assert 0 < rows[True][1] < rows[True][0]


def test_where_a_consumer_starts(spark: SparkSession, demo: ModuleType) -> None:
    """Two files contain offset 300, and both batches are found. The file that begins after it is not."""
    [example] = [example for example in demo.EXAMPLE_FILES if example.name == "kafka"]
    example.frame(spark).createOrReplaceTempView(example.view)
    for query in example.statements:
        if query.is_view:
            spark.sql(query.sql)
    [query] = [query for query in example.statements if query.title.startswith("Where a consumer")]
    for row in spark.sql(query.sql).collect():
        assert row["last_offset"] >= 300
        if row["base_offset"] is not None:
            assert row["holds_it"] == (row["base_offset"] <= 300)


def test_topic_and_partition(spark: SparkSession, demo: ModuleType) -> None:
    """Both are parsed from the path of a partition's directory."""
    folder = sparkwire.samples() / "kafka" / "orders-0"
    files = spark.read.format("binaryFile").load(str(folder / "*.log")).select("path", "content")
    files.createOrReplaceTempView("segments")
    [query] = demo.split((SQL / "recipes" / "topic_and_partition.sql").read_text("utf-8"))
    rows = spark.sql(query.sql).collect()
    assert [(row["topic"], row["partition"], row["base_offset"]) for row in rows] == [
        ("orders", 0, 0),
        ("orders", 0, 280),
    ]


def test_first_record_not_older(spark: SparkSession, demo: ModuleType) -> None:
    """Compared with all records: the first one in the file's order."""
    [example] = [example for example in demo.EXAMPLE_FILES if example.name == "kafka"]
    example.frame(spark).createOrReplaceTempView("segments")
    [query] = demo.split((SQL / "recipes" / "kafka_find_by_timestamp.sql").read_text("utf-8"))
    offsets = {row["file"]: row["offset"] for row in spark.sql(query.sql).collect()}
    expected = spark.sql("""
        SELECT regexp_extract(path, '[^/]+$', 0) AS file,
               get(filter(kafka_records(content), r -> r.timestamp >= TIMESTAMP'2020-09-13 12:26:45 UTC'), 0).offset AS offset
        FROM segments""").where("offset IS NOT NULL")
    assert offsets == {row["file"]: row["offset"] for row in expected.collect()}
    assert len(offsets) >= 2


def committed(group: str, topic: str, partition: int, offset: int | None) -> tuple[bytes, bytes | None]:
    """A commit as brokers since 2.1 write it, by Kafka's OffsetCommitKey and OffsetCommitValue; None gives a tombstone."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in (group, topic))
    key = struct.pack(">h", 1) + names + struct.pack(">i", partition)
    return key, None if offset is None else struct.pack(">hqihq", 3, offset, -1, 0, 1_600_000_000_000)


def test_lag_per_group(spark: SparkSession, demo: ModuleType) -> None:
    commits = [
        committed("app", "orders", 0, 10),
        committed("app", "orders", 0, 300),
        committed("app", "orders", 1, 5),
        committed("gone", "orders", 0, 7),
        committed("gone", "orders", 0, None),
        committed("late", "orders", 1, 2),
        committed("app", "elsewhere", 0, 5),
    ]
    rows: list[tuple[Any, ...]] = [(0, at, *commit, -1, False, None) for at, commit in enumerate(commits)]
    # A group of an exactly-once application: one transaction is committed, the next is aborted, the last is open.
    outcomes = ("COMMIT", "ABORT", None)
    for at, (next_offset, outcome) in zip(range(7, 13, 2), zip((100, 200, 250), outcomes, strict=True), strict=True):
        rows.append((0, at, *committed("once", "orders", 0, next_offset), 1000, True, None))
        rows += [(0, at + 1, b"", b"", 1000, True, outcome)] * (outcome is not None)
    names = "partition INT, offset BIGINT, key BINARY, value BINARY, producer_id BIGINT, is_transactional BOOLEAN"
    spark.createDataFrame(rows, f"{names}, control_type STRING").createOrReplaceTempView("commits")
    batches = [("orders", 0, 0, 99), ("orders", 0, 100, 399), ("orders", 1, 5, 7), ("unread", 0, 0, 9)]
    columns = "topic STRING, partition INT, base_offset BIGINT, last_offset BIGINT"
    spark.createDataFrame(batches, columns).createOrReplaceTempView("batches")
    [query] = demo.split((SQL / "recipes" / "lag_per_group.sql").read_text("utf-8"))
    assert [tuple(row) for row in spark.sql(query.sql).collect()] == [
        ("app", "orders", 0, 300, 400, 100, False),
        ("app", "orders", 1, 5, 8, 3, False),
        ("late", "orders", 1, 2, 8, 3, True),
        ("once", "orders", 0, 100, 400, 300, False),
    ]


def test_every_example_is_shown(demo: ModuleType) -> None:
    assert {example.name for example in demo.EXAMPLE_FILES} == {file.stem for file in (SQL / "examples").glob("*.sql")}


def test_databus_damage_in_sql(spark: SparkSession, demo: ModuleType) -> None:
    """The demo's list of corruption equals the oracle's."""
    answer = statement(spark, demo, "Corrupt bytes").collect()
    expected = [
        ("damaged_v1.bin", row["position"], len(row["event"]), row["status"], row["error"])
        for row in oracle.split((INPUT / "damaged_v1.bin").read_bytes())
        if row["status"] != "OK"
    ]
    assert [tuple(row) for row in answer] == expected
    assert len(expected) == 6


def test_databus_windows_in_sql(spark: SparkSession, demo: ModuleType) -> None:
    """The windows equal those in Java's record of the stream: each ends with a control event."""
    deliveries: list[list[dict[str, Any]]] = [[]]
    for java, _ in golden_events("window_stream"):
        deliveries[-1].append(java)
        if java["sourceId"] < 0:
            deliveries.append([])
    expected = [
        (max(java["sequence"] for java in events), sum(java["sourceId"] > 0 for java in events))
        for events in deliveries[:-1]
    ]
    answer = statement(spark, demo, "The relay's windows").collect()
    assert [(row["window"], row["events"]) for row in answer] == expected


def statement(spark: SparkSession, demo: ModuleType, title: str) -> Any:
    """The result of the Databus query whose title begins so."""
    [example] = [example for example in demo.EXAMPLE_FILES if example.name == "databus"]
    example.frame(spark).createOrReplaceTempView(example.view)
    view, *queries = example.statements
    spark.sql(view.sql)
    [query] = [query for query in queries if query.title.startswith(title)]
    return spark.sql(query.sql)


def test_databus_input_is_golden() -> None:
    """The valid files are copies, as the README says."""
    v2 = [event for java, event in golden_events("events_v2_le") if in_espresso(java["i"])]
    assert (INPUT / "relay_v1.bin").read_bytes() == golden_bytes("window_stream")
    assert (INPUT / "espresso_v2.bin").read_bytes() == b"".join(v2)


def in_espresso(i: int) -> bool:
    return i <= 35 or 219 <= i <= 252 or i >= 352


def test_databus_corruption_matches_its_readme() -> None:
    """The corrupt file is the relay's stream after the steps in its README."""
    at = {java["i"]: java["position"] for java, _ in golden_events("window_stream")}
    stream = bytearray(golden_bytes("window_stream"))
    stream[at[2] + 70] ^= 1 << 3
    stream[at[8] + 14] ^= 1
    stream[at[20] + 7] ^= 1 << 7
    stream[at[30] : at[30] + 256] = bytes(256)
    torn = stream[: at[52] + 33]
    del torn[at[44] + 20 : at[44] + 45]
    assert (INPUT / "damaged_v1.bin").read_bytes() == bytes(torn)
