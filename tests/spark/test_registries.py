"""Typed rows with a registry: over HTTP in batches and streams, from its topic, and a table for each type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sparkwire import avro
from sparkwire.avro import Registry
from tests.avro.test_http_registry import CITY, ORDER_1, ORDER_2, PARIS, with_orders, written
from tests.avro.test_registry import key, value
from tests.avro.test_rows import decoded, schemas
from tests.avro.test_wire_formats import SCHEMA as SINGLE_OBJECT
from tests.avro.test_wire_formats import golden
from tests.support.registry_server import RegistryServer, Response

SCHEMA = "n INT, value BINARY"
WANTED = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "double"}, {"name": "paid", "type": "boolean", "default": False}],
}
UNKNOWN = b"\0\0\0\0\x63\2x"


def messages(server: RegistryServer) -> list[bytes | None]:
    """Two versions of an order, a city, a tombstone, a message with an unknown schema, and an invalid message."""
    orders = [written(server, ORDER_1, PARIS)[0], written(server, ORDER_2, PARIS | {"id": 8, "note": "x"})[0]]
    return [*orders, city(server, "Rome"), None, UNKNOWN, b"what"]


def city(server: RegistryServer, name: str) -> bytes:
    """A message with one field."""
    id = next(one["id"] for one in server.versions.values() if one["subject"] == "city")
    return bytes([0, 0, 0, 0, id, 2 * len(name)]) + name.encode()


def frame(spark: SparkSession, server: RegistryServer) -> DataFrame:
    with_orders(server)
    return spark.createDataFrame(list(enumerate(messages(server))), SCHEMA).coalesce(1)


def test_rows_of_a_registry(spark: SparkSession, server: RegistryServer) -> None:
    df = frame(spark, server)
    server.requests.clear()
    rows = avro.rows(df, "value", Registry.http(server.url), keep_payload=False)
    assert rows.columns == ["n", "name", "id", "to", "note", "_schema_id_", "_error_"]
    result = {row.n: row for row in rows.collect()}
    assert [(row.id, row.note, row.name, row._schema_id_, row._error_) for row in result.values()] == [
        (7, None, None, "3", None),
        (8, "x", None, "4", None),
        (None, None, "Rome", "1", None),
        (None, None, None, None, None),
        (None, None, None, "99", "UNKNOWN_SCHEMA"),
        (None, None, None, None, "BAD_MAGIC"),
    ]
    assert result[0].to.city.name == "Paris"
    assert result[0].to.twin.name == "Rome"
    # Each id is fetched once, on the driver; 4 has the same references as 3.
    assert len(server.requests) == len(set(server.requests)) == 6
    assert "value" in avro.rows(df, "value", Registry.http(server.url)).columns


def test_rows_with_a_reader_schema(spark: SparkSession, server: RegistryServer) -> None:
    """No schema is fetched before the data are read. A type that cannot be read does not fail the query."""
    df = frame(spark, server)
    server.requests.clear()
    rows = avro.rows(df, "value", Registry.http(server.url), WANTED, keep_payload=False)
    assert server.requests == []
    assert [tuple(row) for row in rows.collect()] == [
        (0, 7.0, False, "3", None),
        (1, 8.0, False, "4", None),
        (2, None, None, "1", "BAD_FIELD"),
        (3, None, None, None, None),
        (4, None, None, "99", "UNKNOWN_SCHEMA"),
        (5, None, None, None, "BAD_MAGIC"),
    ]


def test_ids_of_a_column_of_other_data_are_not_fetched(spark: SparkSession, server: RegistryServer) -> None:
    df = spark.range(1001).selectExpr("concat(X'00', unhex(lpad(hex(id), 8, '0')), X'02') AS value")
    wanted = {"type": "record", "name": "City", "fields": []}
    said = r"rows found more than 1000 different schema ids, such as \d+: check that the column has this wire_format"
    with pytest.raises(ValueError, match=rf"^{said}$"):
        avro.rows(df, "value", Registry.http(server.url))
    with pytest.raises(PySparkException, match=said):
        avro.rows(df.coalesce(1), "value", Registry.http(server.url), wanted).collect()
    assert server.requests == []


def test_a_table_for_each_type(spark: SparkSession, server: RegistryServer) -> None:
    df = frame(spark, server)
    tables = avro.rows_by_type(df, "value", Registry.http(server.url), keep_payload=False)
    assert list(tables) == ["geo.City", "shop.Order", "UNKNOWN_SCHEMA", "TOMBSTONE"]
    assert tables["shop.Order"].columns == ["n", "id", "to", "note", "_error_"]
    assert [(row.n, row.id, row.note) for row in tables["shop.Order"].collect()] == [(0, 7, "-"), (1, 8, "x")]
    assert [tuple(row) for row in tables["geo.City"].collect()] == [(2, "Rome", None)]
    assert [tuple(row) for row in tables["UNKNOWN_SCHEMA"].collect()] == [
        (4, bytearray(UNKNOWN), "99", "UNKNOWN_SCHEMA"),
        (5, bytearray(b"what"), None, "BAD_MAGIC"),
    ]
    assert [tuple(row) for row in tables["TOMBSTONE"].collect()] == [(3,)]
    with_payload = avro.rows_by_type(df, "value", Registry.http(server.url))["geo.City"]
    assert [tuple(row) for row in with_payload.collect()] == [(2, bytearray(city(server, "Rome")), "Rome", None)]


def test_a_corrupt_message_stays_with_its_type(spark: SparkSession, server: RegistryServer) -> None:
    with_orders(server)
    whole = city(server, "Rome")
    df = spark.createDataFrame([(size, whole[:size]) for size in range(len(whole) + 1)], SCHEMA).coalesce(1)
    tables = avro.rows_by_type(df, "value", Registry.http(server.url, subjects=["city"]))
    assert [(row.n, row._error_) for row in tables["geo.City"].collect()] == [
        *((size, "TRUNCATED") for size in range(5, len(whole))),
        (len(whole), None),
    ]
    assert [row._error_ for row in tables["UNKNOWN_SCHEMA"].collect()] == ["BAD_MAGIC"] * 5


def test_headers_with_a_guid(spark: SparkSession, server: RegistryServer) -> None:
    from confluent_kafka.schema_registry import header_schema_id_serializer

    with_orders(server)
    settings = {"schema.id.serializer": header_schema_id_serializer}
    both = [written(server, ORDER_1, PARIS, **settings), written(server, ORDER_2, PARIS | {"note": "x"})]
    df = spark.createDataFrame(
        [(message, [{"key": name, "value": data} for name, data in headers]) for message, headers in both],
        "value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>",
    )
    rows = avro.rows(df, "value", Registry.http(server.url), wire_format="confluent_header", headers="headers")
    assert sorted(
        (row.id, row.note, row._error_) for row in rows.select("id", "note", "_error_").fillna("").collect()
    ) == [
        (7, "", ""),
        (7, "x", ""),
    ]
    with pytest.raises(ValueError, match=r"^wire_format confluent_header takes headers: the column"):
        avro.rows(df, "value", Registry.http(server.url), wire_format="confluent_header")
    with pytest.raises(ValueError, match=r"^headers= works with wire_format confluent_header or apicurio"):
        avro.rows(df, "value", Registry.http(server.url), headers="headers")
    with pytest.raises(ValueError, match=r"^wire_format is one of confluent, .*, got 'pulsar'$"):
        avro.rows(df, "value", Registry.http(server.url), wire_format="pulsar")


def test_an_unreachable_registry_fails_the_query(spark: SparkSession, server: RegistryServer) -> None:
    df = frame(spark, server)
    registry = Registry.http(server.url.replace("//", "//wine:secret@"), patience=0)
    server.failing = [Response(500)] * 100
    said = rf"cannot get schema 1 from the schema registry at {server.url}: HTTP 500: store error"
    with pytest.raises(RuntimeError, match=rf"^{said}$"):  # on the driver
        avro.rows(df, "value", registry)
    wanted = {"type": "record", "name": "City", "fields": []}
    with pytest.raises(PySparkException, match=said.replace("schema 1", r"schema \d+")) as e:  # and on a worker
        avro.rows(df, "value", registry, wanted).collect()
    assert "secret" not in str(e.value)


def test_a_stream_survives_a_short_outage_of_the_registry(
    spark: SparkSession, server: RegistryServer, tmp_path: Path
) -> None:
    frame(spark, server).write.parquet(str(tmp_path / "messages"))
    server.failing = [Response(503)] * 5
    df = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "messages"))
    rows = streamed(avro.rows(df, "value", Registry.http(server.url), WANTED, keep_payload=False), tmp_path)
    assert [(row["n"], row["id"], row["_error_"]) for row in rows] == [
        (0, 7, None),
        (1, 8, None),
        (2, None, "BAD_FIELD"),
        (3, None, None),
        (4, None, "UNKNOWN_SCHEMA"),
        (5, None, "BAD_MAGIC"),
    ]
    assert server.failing == []


def test_a_stream_that_begins_without_a_known_schema(
    spark: SparkSession, server: RegistryServer, tmp_path: Path
) -> None:
    """Tombstones, unknown ids and messages without a header, each at the beginning; each file is a batch."""
    with_orders(server)
    first: list[list[bytes | None]] = [
        [None],
        [b"\0\0\0\0\x63\2"],
        [b"no prefix"],
        [None, b"\0\0\0\0\x63\2", b""],
        messages(server)[:1],
    ]
    for k, data in enumerate(first):
        batch = spark.createDataFrame([(10 * k + n, value) for n, value in enumerate(data)], SCHEMA)
        batch.coalesce(1).write.mode("append").parquet(str(tmp_path / "messages"))
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "messages"))
    rows = streamed(avro.rows(df, "value", Registry.http(server.url), WANTED, keep_payload=False), tmp_path)
    assert [(row["n"], row["id"], row["_error_"]) for row in rows] == [
        (0, None, None),
        (10, None, "UNKNOWN_SCHEMA"),
        (20, None, "BAD_MAGIC"),
        (30, None, None),
        (31, None, "UNKNOWN_SCHEMA"),
        (32, None, "BAD_MAGIC"),
        (40, 7, None),
    ]


def test_a_stream_gets_its_columns_from_subjects(spark: SparkSession, server: RegistryServer, tmp_path: Path) -> None:
    frame(spark, server).write.parquet(str(tmp_path / "messages"))
    df = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "messages"))
    with pytest.raises(
        ValueError,
        match=r"^rows\(\) of a stream must know its columns before it has data: pass subjects",
    ):
        avro.rows(df, "value", Registry.http(server.url))
    by_subject = avro.rows(df, "value", Registry.http(server.url, subjects=["orders-value"]), keep_payload=False)
    rows = streamed(by_subject, tmp_path)
    assert [row["note"] for row in rows][:2] == [None, "x"]
    assert [row["_error_"] for row in rows][2:] == ["UNKNOWN_SCHEMA", None, "UNKNOWN_SCHEMA", "BAD_MAGIC"]


def streamed(df: DataFrame, folder: Path) -> list[dict[str, Any]]:
    """The rows that a stream writes."""
    sink = df.writeStream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    sink.toTable("streamed_rows", format="parquet", path=str(folder / "sink")).awaitTermination()
    rows = df.sparkSession.read.parquet(str(folder / "sink")).orderBy("n").collect()
    df.sparkSession.sql("DROP TABLE streamed_rows")
    return [row.asDict() for row in rows]


def test_a_registry_from_its_topic(spark: SparkSession, server: RegistryServer) -> None:
    df = frame(spark, server)
    records = [
        (offset, json.dumps(key(one["subject"], one["version"])).encode(), json.dumps(one).encode())
        for offset, one in enumerate(server.versions.values())
    ]
    topic = spark.createDataFrame(records, "offset BIGINT, key BINARY, value BINARY")
    registry = Registry.topic(topic.orderBy("value"))
    rows, of_http = (avro.rows(df, "value", some) for some in (registry, Registry.http(server.url)))
    assert set(rows.columns) == set(of_http.columns)
    assert rows.select(of_http.columns).collect() == of_http.collect()
    with pytest.raises(
        ValueError, match=r"^Registry.topic expected the columns offset, key and value; missing: offset$"
    ):
        Registry.topic(topic.drop("offset"))


def test_formats_with_fingerprints(spark: SparkSession, server: RegistryServer) -> None:
    """A registry's schemas also work for single objects and for Databus events, which do not contain its ids."""
    server.register("order", SINGLE_OBJECT)
    objects = [bytes.fromhex(line["value"]) for line in golden() if line["format"] == "single_object"]
    df = spark.createDataFrame(list(enumerate(objects)), SCHEMA).coalesce(1)
    rows = avro.rows(df, "value", Registry.http(server.url, subjects=["order"]), wire_format="single_object")
    assert [(row.id, row._error_) for row in rows.collect()] == [(1000 * k - 7, None) for k in range(len(objects))]

    for k, text in enumerate(schemas()):
        server.register(f"source {k}", text)
    events = spark.createDataFrame([(event,) for event, _ in decoded("window_stream")], "value BINARY").coalesce(1)
    of_text = Registry.http(server.url, subjects=[f"source {k}" for k in range(len(schemas()))])
    assert {row._error_ for row in avro.rows(events, "value", of_text, wire_format="databus").collect()} == {None}
    for wire_format in ("single_object", "databus"):
        with pytest.raises(ValueError, match=rf"^in wire_format {wire_format} a fingerprint identifies the schema"):
            avro.rows(df, "value", Registry.http(server.url), wire_format=wire_format)


def test_a_registry_of_given_schemas(spark: SparkSession) -> None:
    one = value("a", 1, 7, CITY)["schema"]
    df = spark.createDataFrame([(1, b"\0\0\0\0\7\2x"), (2, b"\0\0\0\0\x08\2x")], SCHEMA).coalesce(1)
    rows = avro.rows(df, "value", Registry.of({7: one}), keep_payload=False)
    assert [tuple(row) for row in rows.collect()] == [(1, "x", "7", None), (2, None, "8", "UNKNOWN_SCHEMA")]
    assert avro.rows(df, "value", {7: one}).columns == ["n", "value", "name", "_schema_id_", "_error_"]


def test_a_column_whose_schemas_are_of_another_type(spark: SparkSession, server: RegistryServer) -> None:
    server.register("shapes-value", '{"type": "object"}', "JSON")
    df = spark.createDataFrame([(1, b"\0\0\0\0\1{}")], SCHEMA)
    with pytest.raises(ValueError, match=r"is of type JSON, but avro.rows reads AVRO: use registry.rows$"):
        avro.rows(df, "value", Registry.http(server.url))
