"""Avro in Spark: typed functions, typed rows, and encoding of structs."""

from __future__ import annotations

import json
from pathlib import Path

import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

from sparkwire import avro, databus
from sparkwire.avro import Registry
from sparkwire.spark.rows import avro as spark_avro
from tests.avro.test_rows import STREAMS, decoded, schemas, write_folder
from tests.support.databus_cases import golden_events

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "string"}}},
        {"name": "either", "type": ["null", "string", "double"]},
    ],
}
ROW = """named_struct('id', 7L, 'at', TIMESTAMP '2024-01-02 03:04:05.678', 'total', CAST(-12.34 AS DECIMAL(9, 2)),
    'tags', map('a', array('x', 'y')), 'either', named_struct('member0', CAST(NULL AS STRING), 'member1', 1.5D))"""

ROW_TYPE = """STRUCT<id: BIGINT, at: TIMESTAMP, total: DECIMAL(9, 2), tags: MAP<STRING, ARRAY<STRING>>,
    either: STRUCT<member0: STRING, member1: DOUBLE>>"""


DELETES = 3  # without a payload, among the stream's persons and orders


def test_there_and_back(spark: SparkSession) -> None:
    avro.register_function(spark, "order_of", json.dumps(ORDER))
    df = spark.sql(f"SELECT {ROW} AS r").select(avro.encode("r", ORDER).alias("value"))
    [row] = df.selectExpr("order_of(value) AS o", "avro_json(value, '" + json.dumps(ORDER) + "') AS j").collect()
    assert row.o.asDict(recursive=True) == {
        "id": 7,
        "at": row.o.at,
        "total": row.o.total,
        "tags": {"a": ["x", "y"]},
        "either": {"member0": None, "member1": 1.5},
    }
    assert str(row.o.total) == "-12.34"
    assert json.loads(row.j) == {
        "id": 7,
        "at": "2024-01-02T03:04:05.678Z",
        "total": "-12.34",
        "tags": {"a": ["x", "y"]},
        "either": 1.5,
    }


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_there_and_back_over_pandas(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    """The only interface before Spark 4.1: it returns the same rows in every time zone of the session."""
    monkeypatch.setattr(spark_avro, "best_interface", lambda spark=None: "pandas")
    spark.conf.set("spark.sql.session.timeZone", zone)
    avro.register_function(spark, "order_of_pandas", ORDER)
    given = spark.sql(f"SELECT {ROW} AS r UNION ALL SELECT CAST(NULL AS {ROW_TYPE})")
    bytes_of = given.select("r", avro.encode("r", ORDER).alias("value"))
    rows = bytes_of.selectExpr("r", "value", "order_of_pandas(value) AS o").collect()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert [row.o.asDict(True) if row.r else row.o.id for row in rows] == [row.r and row.r.asDict(True) for row in rows]
    assert [row.value is None for row in rows] == [False, True]


def test_numbers_there_and_back_over_pandas(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that is not a STRUCT, with integers that pandas converts to floating point."""
    monkeypatch.setattr(spark_avro, "best_interface", lambda spark=None: "pandas")
    avro.register_function(spark, "number_of", ["null", "int"])
    df = spark.sql("SELECT * FROM VALUES (1, 7), (2, NULL) t(k, n)").coalesce(1)
    result = (
        df.select("k", avro.encode("n", ["null", "int"]).alias("v")).selectExpr("v", "number_of(v) AS n").orderBy("k")
    )
    assert [(bytes(row.v), row.n) for row in result.collect()] == [(b"\2\x0e", 7), (b"\0", None)]


def test_a_reader_schema(spark: SparkSession) -> None:
    fields = [{"name": "id", "type": "double"}, {"name": "new", "type": "int", "default": 3}]
    later = {"type": "record", "name": "Order", "fields": fields}
    avro.register_function(spark, "order_later", ORDER, later)
    value = spark.sql(f"SELECT {ROW} AS r").select(avro.encode("r", ORDER).alias("value"))
    assert value.selectExpr("order_later(value) AS o").first().o.asDict() == {"id": 7.0, "new": 3}


@pytest.mark.parametrize("stream", STREAMS)
def test_rows_of_databus_events(spark: SparkSession, tmp_path: Path, stream: str) -> None:
    folder = write_folder(tmp_path, stream)
    events = [(k, event) for k, (event, _) in enumerate(decoded(stream))]
    df = spark.createDataFrame(events, "k INT, event BINARY")
    rows = avro.rows(df, "event", folder, wire_format="databus").orderBy("k").collect()
    for row, (_, java) in zip(rows, decoded(stream), strict=True):
        assert row._error_ is None
        assert {name: row[name] for name in java} == java
    unknown = avro.rows(df, "event", schemas(stream)[:1], wire_format="databus").groupBy("_error_").count().collect()
    assert {row["_error_"] for row in unknown} == {None, "UNKNOWN_SCHEMA"}


def test_rows_by_source(spark: SparkSession) -> None:
    stream = [event for _, event in golden_events("window_stream")]
    df = spark.createDataFrame([(event,) for event in stream], "event BINARY")
    frames = databus.rows_by_source(df, "event", schemas()[:2])
    assert list(frames) == ["com.example.events.Person", "com.example.events.Order", "UNKNOWN_SCHEMA"]
    person, order, unknown = (frame.collect() for frame in frames.values())
    java = decoded("window_stream")
    assert len(person) + len(order) == sum("blob" not in fields for _, fields in java) + DELETES
    assert len(unknown) >= sum("blob" in fields for _, fields in java)
    assert next(row.asDict() for row in order).keys() >= {"_sequence_", "_opcode_", "_key_", "id", "total", "_error_"}
    expected = [fields for _, fields in java if "total" in fields]
    assert sorted(row.id for row in order if row.id is not None) == sorted(fields["id"] for fields in expected)
    assert {row._error_ for row in unknown} == {"UNKNOWN_SCHEMA"}
    assert {row._error_ for row in person + order} == {None}


def test_rows_by_a_column_and_by_a_prefix(spark: SparkSession) -> None:
    given = {1: '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'}
    df = spark.createDataFrame([(1, b"\4"), (2, b"\4"), (1, None), (1, b"")], "version INT, `the value` BINARY")
    rows = avro.rows(df, "`the value`", given, by="version").collect()
    assert [(r.version, r.a, r._error_) for r in rows] == [
        (1, 2, None),
        (2, None, "UNKNOWN_SCHEMA"),
        (1, None, None),
        (1, None, "TRUNCATED"),
    ]
    framed = spark.createDataFrame([(b"\0\0\0\0\1\4",)], "value BINARY")
    message = b"\0\0\0\0\1\4"
    assert [tuple(r) for r in avro.rows(framed, "value", given).collect()] == [(message, 2, "1", None)]
    assert [tuple(r) for r in avro.rows(framed, "VALUE", {"1": given[1]}).collect()] == [(message, 2, "1", None)]
    assert avro.rows(framed, "value", given, keep_payload=False).columns == ["a", "_schema_id_", "_error_"]
    by_text = avro.rows(df.selectExpr("string(version) v", "`the value` b"), "b", given, by="v")
    assert [(r.v, r.b, r.a) for r in by_text.take(1)] == [("1", b"\4", 2)]


def test_a_field_replaces_the_payload_of_the_same_name(spark: SparkSession) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "value", "type": "int"}]}
    framed = spark.createDataFrame([(7, b"\0\0\0\0\1\4", "x")], "k INT, value BINARY, s STRING")
    assert [tuple(r) for r in avro.rows(framed, "value", {1: schema}).collect()] == [(7, "x", 2, "1", None)]


MESSAGES = [b"\0\0\0\0\1\4", b"\0\0\0\0\2\4", b"\0\0\0\0\1"]


KINDS = {"confluent": "messages with Confluent's wire format header", "databus": "Databus events"}


@pytest.mark.parametrize(("taken", "has"), [("confluent", "databus"), ("databus", "confluent")])
def test_a_column_of_another_wire_format_gives_a_clear_error(spark: SparkSession, taken: str, has: str) -> None:
    values = MESSAGES if has == "confluent" else [event for _, event in golden_events("window_stream")]
    df = spark.createDataFrame([(value,) for value in values], "value BINARY").coalesce(1)
    said = f"the column is {KINDS[has]}, not {KINDS[taken]}: pass wire_format='{has}'"
    with pytest.raises(Exception, match=said):
        avro.rows(df, "value", dict(enumerate(schemas())), wire_format=taken).collect()


def test_the_kind_of_registry_does_not_select_the_wire_format(spark: SparkSession, tmp_path: Path) -> None:
    """The same events with a folder, a list and a mapping; and messages with ids with a folder of ids."""
    df = spark.createDataFrame([(event,) for event, _ in decoded("window_stream")], "event BINARY").coalesce(1)
    mapping = dict(enumerate(schemas()))
    for given in (write_folder(tmp_path, "window_stream"), schemas(), mapping):
        rows = avro.rows(df, "event", given, wire_format="databus")
        assert {row._error_ for row in rows.collect()} == {None}
        assert "_schema_id_" in rows.columns
    by_ids = tmp_path / "ids"
    by_ids.mkdir()
    (by_ids / "1.avsc").write_text('"int"')
    messages = spark.createDataFrame([(MESSAGES[0],)], "m BINARY")
    for some in (by_ids, {1: "int"}):
        assert [tuple(row) for row in avro.rows(messages, "m", some).collect()] == [(MESSAGES[0], 2, "1", None)]


def test_a_reader_of_one_type_and_schemas_of_several(spark: SparkSession, tmp_path: Path) -> None:
    """With a folder, this is an error that mentions `rows_by_type`. With a list or a mapping, other types are BAD_FIELD."""
    df = spark.createDataFrame([(event,) for event, _ in decoded("window_stream")], "event BINARY").coalesce(1)
    for given in (schemas(), dict(enumerate(schemas()))):
        rows = avro.rows(df, "event", given, schemas()[0], wire_format="databus")
        assert {row._error_ for row in rows.collect()} == {None, "BAD_FIELD"}
    with pytest.raises(ValueError, match=r"avro\.rows_by_type makes a table of each type"):
        avro.rows(df, "event", write_folder(tmp_path, "window_stream"), schemas()[0], wire_format="databus")


def test_a_column_of_an_unknown_format_fails_but_a_few_corrupt_rows_do_not(spark: SparkSession) -> None:
    given = {1: schemas()[0]}
    df = spark.range(200).selectExpr("encode(concat('hello ', id), 'utf-8') value").coalesce(1)
    with pytest.raises(
        Exception,
        match=r"none of 200 rows has its header\. The first row begins with 68 65 6c 6c 6f 20 30\. For Avro data",
    ):
        avro.rows(df, "value", given).collect()
    assert {r._error_ for r in avro.rows(df.limit(20), "value", given).collect()} == {"BAD_MAGIC"}
    assert {r._error_ for r in avro.rows(df.limit(20), "value", schemas(), wire_format="databus").collect()} != {None}
    good = spark.createDataFrame([(b"\0\0\0\0\7\4",)] * 200, "value BINARY")
    assert {r._error_ for r in avro.rows(good, "value", given).collect()} == {"UNKNOWN_SCHEMA"}


def test_fields_with_taken_names_are_renamed(spark: SparkSession) -> None:
    """Existing columns keep their names; then come those of `rows`, then fields."""
    fields = [{"name": name, "type": "int"} for name in ("n", "_error_", "a", "A", "_schema_id_")]
    schema = {"type": "record", "name": "R", "fields": fields}
    data = [b"\0\0\0\0\1\2\4\6\x08\x0a", b"\0\0\0\0\1", b"\0\0\0\0\2", None]
    df = spark.createDataFrame(
        [(k, data[k], "mine") for k in range(4)], "N INT, value BINARY, _ERROR_ STRING"
    ).coalesce(1)
    names = ["n_2", "_error__3", "a", "A_2", "_schema_id_", "_error__2"]
    rows = avro.rows(df, "value", {1: schema})
    assert rows.columns == [*df.columns, *names[:4], "_schema_id__2", "_schema_id_", "_error__2"]
    reported = [tuple(row) for row in rows.drop("value").collect()]
    assert reported[0] == (0, "mine", 1, 2, 3, 4, 5, "1", None)
    assert [row[:2] + row[-1:] for row in reported[1:]] == [
        (1, "mine", "TRUNCATED"),
        (2, "mine", "UNKNOWN_SCHEMA"),
        (3, "mine", None),
    ]
    registry = avro.rows(df, "value", Registry.of({1: schema}), keep_payload=False)
    assert registry.columns == ["N", "_ERROR_", *names[:4], "_schema_id__2", "_schema_id_", "_error__2"]
    tables = avro.rows_by_type(df, "value", {1: schema})
    assert tables["R"].columns == [*df.columns, *names]
    assert tables["UNKNOWN_SCHEMA"].columns == [*df.columns, "_schema_id_", "_error__2"]
    assert [row["_error__2"] for row in tables["UNKNOWN_SCHEMA"].collect()] == ["UNKNOWN_SCHEMA"]
    assert [row["n_2"] for row in tables["R"].where("_error__2 IS NULL").collect()] == [1]


def test_errors(spark: SparkSession) -> None:
    df = spark.createDataFrame([(b"", "x", 1)], "value BINARY, s STRING, a INT")
    given = {1: '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'}
    with pytest.raises(TypeError, match=r"^rows takes a BINARY column, and s is STRING$"):
        avro.rows(df, "s", given)
    for read in (avro.rows, avro.rows_by_type):
        with pytest.raises(
            ValueError,
            match=r"^in wire_format confluent an id identifies the schema, but these schemas have no ids: name the files",
        ):
            read(df, "value", [given[1]])
    with pytest.raises(ValueError, match=r"^the datum is string, which cannot be read as int$"):
        avro.register_function(spark, "f", "string", "int")
    with pytest.raises(
        Exception, match=r"avro_json\(\) expected an Avro schema: invalid Avro schema \(not valid JSON\)"
    ):
        df.selectExpr("avro_json(value, '{')").collect()
    with pytest.raises(Exception, match="the column is STRING, and int is written from INT"):
        df.select(avro.encode(F.col("s"), "int")).collect()
