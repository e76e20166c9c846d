"""The change table of each format, and its current table: histories in each system's form, shuffled and repeated."""

from __future__ import annotations

import json
from hashlib import md5
from pathlib import Path
from random import Random
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from sparkwire.databus.client.buffer import split
from tests.support import system_messages
from tests.support.client_frames import frame
from tests.support.client_streams import event
from tests.support.databus_members import MEMBER, MEMBER_ID, Members, member
from tests.support.datahub_history import KEYS, DataHubHistory, key_of

HEAD = ["_op_", "_order_", "_time_", "_table_", "_transaction_", "_keys_", "_before_"]
TAIL = ["_unavailable_", "_unexpected_", "_error_"]
COLUMNS = {"one": {"id": "STRING", "v": "LONG"}, "two": {"a": "STRING", "b": "STRING", "v": "LONG"}}


def crossings(df: DataFrame) -> int:
    return str(df._jdf.queryExecution().optimizedPlan().toString()).count("MapInArrow")


def test_datahub(spark: SparkSession) -> None:
    """Both images of an update, changes of keys, TRUNCATE and ERASE, sequence ids of 38 and 39 digits."""
    histories = [DataHubHistory("h", Random(seed)) for seed in (3, 5, 9)]
    for history in histories:
        history.run(steps=150)
    for history, (table, keys) in zip(histories, [*KEYS.items(), ("two", KEYS["two"])], strict=True):
        messages = spark.createDataFrame(
            [(blob, 1) for blob in history.delivered()], "value BINARY, shard INT"
        ).repartition(2)
        changes = sparkwire.changes(messages, format="datahub", table=f"h.{table}", columns=COLUMNS[table])
        assert changes.columns == ["shard", *HEAD, *COLUMNS[table], *TAIL]
        assert crossings(changes) == 1
        rows = sparkwire.current(changes).collect()
        got = {key_of(table, row.asDict()): row["v"] for row in rows}
        assert got == {key: row["v"] for key, row in history.tables[table].items()}
        assert len(got) == len(rows)
        assert [row["_keys_"] for row in changes.where("_op_ = 'UPDATE'").limit(1).collect()] == [keys]


def test_databus(spark: SparkSession) -> None:
    """Repeated windows and SCN regressions, each event twice in any order, and a last change in a window without an end."""
    history = Members(4)
    sent = history.sent() + event(10**6, 40, 1, member(1, "open"), schema_id=MEMBER_ID)
    events = frame(spark, {"s": sent}).unionByName(frame(spark, {"s": sent}, 2))
    changes = sparkwire.changes(events, "event", format="databus", table="com.shop.Member", schemas=[MEMBER])
    assert changes.columns == ["stream", "position", *HEAD, "id", "name", *TAIL]
    assert crossings(changes) == 1
    rows = sparkwire.current(changes).collect()
    assert {(40, row["id"]): row["name"].encode() for row in rows} == history.table
    assert changes.select("_order_.*").columns == ["epoch", "scn", "file", "position"]


def test_columns_that_a_version_of_a_databus_schema_lacks(spark: SparkSession, tmp_path: Path) -> None:
    """The value of a column that an event does not have stays, or is unknown, also if nobody passes the older schema."""
    newer = MEMBER.replace('{"name":"name","type":["null","string"]}', '{"name":"age","type":["null","int"]}')
    newer_id = md5(newer.encode()).digest()
    ages = (b"\2\2\2\x0e", b"\2\6\0")  # (1, 7) and (3, NULL)
    older_events = [event(k, 40, k, member(k, "a"), schema_id=MEMBER_ID) for k in (1, 2)]
    newer_events = [event(4 + k, 40, k, age, schema_id=newer_id) for k, age in enumerate(ages)]

    def changes(events: list[bytes], *schemas: str) -> DataFrame:
        rows = spark.createDataFrame([(event,) for event in events], "event BINARY")
        return sparkwire.changes(rows, "event", format="databus", table="Member", schemas=list(schemas))

    expected = [(1, "a", 7, None), (2, "a", None, ["age"]), (3, None, None, ["name"])]
    columns = ["id", "name", "age", "_unavailable_"]
    assert "_unavailable_" not in sparkwire.current(changes(older_events, MEMBER)).columns
    everything = sparkwire.current(changes([*older_events, *newer_events], MEMBER, newer))
    assert [tuple(row) for row in everything.select(columns).orderBy("id").collect()] == expected
    target = tmp_path / "members"
    sparkwire.merge(changes(older_events, MEMBER), target)
    sparkwire.merge(changes(newer_events, newer), target)
    merged = sparkwire.merged(spark, target).select(columns).orderBy("id")
    assert [tuple(row) for row in merged.collect()] == expected


def test_versions_of_a_databus_source_have_records_with_other_names(spark: SparkSession) -> None:
    """Databus's schema generators number them. Without its older schema, a source would lose the events before an ALTER TABLE."""
    first, second = (MEMBER.replace('"Member"', f'"Member_V{version}"') for version in (1, 2))
    second = second.replace('"fields":[', '"fields":[{"name":"age","type":["null","int"]},')
    events = [
        event(1, 40, 1, member(1, "a"), schema_id=md5(first.encode()).digest()),
        event(2, 40, 2, b"\2\x0e" + member(2, "b"), schema_id=md5(second.encode()).digest()),
    ]
    df = spark.createDataFrame([(one,) for one in events], "event BINARY")
    for table in ("com.shop.Member", "Member", "com.shop.Member_V2", "Member_V1"):
        changes = sparkwire.changes(df, "event", format="databus", table=table, schemas=[first, second])
        rows = changes.select("_table_", "id", "name", "age", "_unavailable_", "_error_").orderBy("id").collect()
        assert [tuple(row) for row in rows] == [
            ("com.shop.Member", 1, "a", None, ["age"], None),
            ("com.shop.Member", 2, "b", 7, None, None),
        ]
    assert list(sparkwire.changes_by_table(df, "event", format="databus", schemas=[first, second])) == [
        "com.shop.Member"
    ]
    registry = sparkwire.avro.Registry.of([first, second])
    assert sparkwire.changes(df, "event", format="databus", table="Member", schemas=registry).count() == 2
    frames = sparkwire.databus.rows_by_source(df, "event", registry)
    assert [tuple(row) for row in frames["com.shop.Member"].select("id", "name", "age").orderBy("id").collect()] == [
        (1, "a", None),
        (2, "b", 7),
    ]


def test_places_in_columns_with_dots_in_their_names(spark: SparkSession) -> None:
    message = json.dumps(system_messages.envelope(after={"id": 1})).encode()
    df = spark.createDataFrame(
        [("t", 0, 7, message)], "`k.topic` STRING, `k.partition` INT, `k.offset` BIGINT, value BINARY"
    )
    places: dict[str, Any] = {name: f"k.{name}" for name in ("topic", "partition", "offset")}
    changes = sparkwire.changes(df, format="debezium", table="customers", columns="id INT", keys="id", **places)
    [row] = sparkwire.current(changes).collect()
    assert (row["id"], tuple(row["_order_"])) == (1, (0, 0, 7))


def test_a_databus_table_out_of_several_files(spark: SparkSession, tmp_path: Path) -> None:
    """One row for each key, also across files. Windows that span files are used, open windows are not."""
    history = Members(6)
    sent = history.sent() + event(10**6, 40, 1, member(1, "open"), schema_id=MEMBER_ID)
    pieces = [e.as_py() for e in split(sent).events]
    cut = len(pieces) // 2
    for name, part in (("1.bin", pieces[:cut]), ("2.bin", pieces[cut:])):
        (tmp_path / name).write_bytes(b"".join(part))
    events = spark.read.format("databus").option("stream", "directory").load(str(tmp_path))
    names = "stream", "file", "position", "window_scn", "event"
    changes = sparkwire.changes(events.select(*names), "event", format="databus", table="Member", schemas=[MEMBER])
    rows = sparkwire.current(changes).collect()
    assert {(40, row["id"]): row["name"].encode() for row in rows} == history.table


def test_columns_beside_databus_events(spark: SparkSession) -> None:
    """The epoch is a column; the position has to be an integer."""
    sent = event(5, 40, 1, member(1, "a"), schema_id=MEMBER_ID)
    df = spark.createDataFrame([(bytearray(sent), 7, "x")], "event BINARY, life INT, position STRING")
    options: dict[str, Any] = {"format": "databus", "table": "Member", "schemas": [MEMBER]}
    for epoch, expected in (("life", 7), (F.col("life") + 1, 8)):
        [row] = sparkwire.changes(df.drop("position"), "event", epoch=epoch, **options).collect()
        assert (row["_order_"]["epoch"], row["_error_"]) == (expected, None)
    with pytest.raises(TypeError, match="expected a column of integers for position, got STRING"):
        sparkwire.changes(df, "event", **options)
    with pytest.raises(TypeError, match="expected a column of texts for file, got BINARY: rename it"):
        sparkwire.changes(df.select("event", F.col("event").alias("file")), "event", **options)
    with pytest.raises(ValueError, match="expected each key column once, got id, id"):
        sparkwire.changes(df.drop("position"), "event", keys=["id", "id"], **options)


@pytest.mark.parametrize("format", ["debezium", "canal"])
def test_types_of_texts_with_a_length_are_strings(spark: SparkSession, format: Any) -> None:
    df = spark.createDataFrame([(b"{}",)], "value BINARY")
    for columns in (
        "id INT, a VARCHAR(20), b char (3), `c varchar(1)` INT",
        {"id": "INT", "a": "varchar(20)", "b": "CHAR(3)", "c varchar(1)": "INT"},
    ):
        changes = sparkwire.changes(df, format=format, table="t", columns=columns)
        assert changes.select("id", "a", "b", "`c varchar(1)`").dtypes == [
            ("id", "int"),
            ("a", "string"),
            ("b", "string"),
            ("c varchar(1)", "int"),
        ]


def test_wrong_arguments(spark: SparkSession) -> None:
    df = spark.createDataFrame([(b"{}",)], "value BINARY")
    with pytest.raises(ValueError, match=r"expected format to be one of databus, .*, got 'fivetran'"):
        sparkwire.changes(df, format="fivetran", table="t")
    with pytest.raises(ValueError, match="of databus expected schemas"):
        sparkwire.changes(df, format="databus", table="t")
    with pytest.raises(ValueError, match=r"the schemas have no table t, only com\.shop\.Member: choose one of these"):
        sparkwire.changes(df, format="databus", table="t", schemas=[MEMBER])
    with pytest.raises(ValueError, match='expected before to be "key" or "full"'):
        sparkwire.changes(df, format="debezium", table="t", columns={"id": "int32"}, before="all")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="column id: 'WORD' is no type of a column"):
        sparkwire.changes(df, format="datahub", table="t", columns={"id": "WORD"})
    with pytest.raises(ValueError, match="the table's column _op_ begins and ends with _"):
        sparkwire.changes(df, format="datahub", table="t", columns={"_op_": "LONG"})
    table: Any
    for columns, table, given, kind, text in (
        ("id INT, id INT", "t", {}, ValueError, "to name each column once, got id twice"),
        ("", "t", {}, ValueError, "to name the columns of the table, got none"),
        ({}, "t", {}, ValueError, "to name the columns of the table, got none"),
        ("id INTT", "t", {}, ValueError, "to be DDL text such as"),
        ("id INT, t MicroTimestamp", "t", {}, ValueError, "such as MicroTimestamp, need a mapping"),
        ("id INT, t TIMESTAMP", "t", {}, ValueError, "MicroTimestamp, .* in a mapping"),
        ("id INT", None, {}, TypeError, "expected table to be the name of a table, got None"),
        ("id INT", "t", {"keys": ["nope"]}, ValueError, "expected keys among the columns id, got nope"),
        ("id INT", "t", {"keys": []}, ValueError, "expected keys to name the primary key's columns, got none"),
        ("id INT", "t", {"headers": "value"}, TypeError, "headers to name a column of ARRAY<STRUCT.*, got BINARY"),
        (
            "id INT",
            "t",
            {"headers": "head"},
            ValueError,
            "expected headers to name a column of the DataFrame, got 'head'",
        ),
        ("id INT", "t", {"key": "no key"}, ValueError, "expected key to name a column of the DataFrame, got 'no key'"),
        ("id INT", "t", {"epoch": "life"}, ValueError, "expected epoch to name a column of the DataFrame, got 'life'"),
    ):
        with pytest.raises(kind, match=text) as error:
            sparkwire.changes(df, format="debezium", table=table, columns=columns, **given)
        assert "\n" not in str(error.value)
    declared = spark.read.text(f"{sparkwire.samples()}/datahub/messages.jsonl")
    with pytest.raises(ValueError, match="expected columns to name customer as the messages do, got Customer"):
        sparkwire.changes(declared, format="datahub", table="shop.orders", columns="id BIGINT, Customer STRING")
    assert sparkwire.changes_by_table(df, format="datahub") == {}
    untold = sparkwire.changes(df, format="datahub", table="t", columns={"id": "LONG"})
    with pytest.raises(ValueError, match="no message names the primary key of the table: pass keys="):
        sparkwire.current(untold)
