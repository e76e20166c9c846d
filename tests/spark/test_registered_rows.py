"""Typed rows of messages with schemas of all types in a registry, written by Confluent's serializers."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pyspark.sql.functions as F
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pool, json_format, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession

from sparkwire import avro, registry
from sparkwire.avro import Registry
from sparkwire.registry.protobuf import compiled
from tests.registry.test_protobuf import CITY, ORDER, registered
from tests.spark.test_registries import frame, streamed
from tests.support.registry_server import RegistryServer

CONTEXT = SerializationContext("orders", MessageField.VALUE, [])
STRATEGY = {"subject.name.strategy": topic_subject_name_strategy}
SCHEMA = "n INT, value BINARY"
FIRST = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}, "to": {"type": "string"}}}
SECOND = {
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"price": {"type": "number"}}}},
    },
}


def as_json(server: RegistryServer, schema: dict[str, Any], value: Any) -> bytes:
    client = SchemaRegistryClient({"url": server.url})
    return bytes(JSONSerializer(json.dumps(schema), client, conf=STRATEGY)(value, CONTEXT))


def test_json(spark: SparkSession, server: RegistryServer) -> None:
    given = [
        as_json(server, FIRST, {"id": 1, "to": "Zoë"}),
        as_json(server, SECOND, {"id": 2, "lines": [{"price": 1.5}, {"price": 2}]}),
        as_json(server, FIRST, {}),
        None,
        *(
            b"\0\0\0\0\1" + bad
            for bad in (b'{"id": "x"}', b'{"id": 1', b"", b"null", b"[1]", b'"x"', b'{"to": "\xff"}')
        ),
        b"\0\0\0\0\x09{}",
        b"what",
    ]
    df = spark.createDataFrame(list(enumerate(given)), SCHEMA).coalesce(1)
    rows = registry.rows(df, "value", Registry.http(server.url))
    assert rows.columns == ["n", "value", "id", "to", "lines", "_schema_id_", "_error_"]
    result = rows.drop("value").collect()
    assert [row.n for row in result] == list(range(len(given)))
    assert [tuple(row) for row in result[:4]] == [
        (0, 1, "Zoë", None, "1", None),
        (1, 2, None, [(1.5,), (2.0,)], "2", None),
        (2, None, None, None, "1", None),
        (3, None, None, None, None, None),
    ]
    assert [(row.id, row.to, row._error_) for row in result[4:]] == [
        *[(None, None, "BAD_FIELD")] * 7,
        (None, None, "UNKNOWN_SCHEMA"),
        (None, None, "BAD_MAGIC"),
    ]
    with pytest.raises(ValueError, match=r"^no schema of value has a message shop.Order: none is Protobuf$"):
        registry.rows(df, "value", Registry.http(server.url), message="shop.Order")
    assert (
        registry.rows(df, "value", Registry.http(server.url), keep_payload=False).columns == rows.drop("value").columns
    )


NAMES = {
    "title": "Names",
    "type": "object",
    "properties": {
        **{name: {"type": "integer"} for name in ("id", "ID", "n", "value", "_error_", "_row_", "_corrupt_")},
        "in": {"type": "array", "items": {"type": "object", "properties": {name: {"type": "string"} for name in "xX"}}},
    },
}


def test_json_with_fields_whose_names_are_taken(spark: SparkSession, server: RegistryServer) -> None:
    """Names that differ only in case, names of the DataFrame's columns, and names of the columns of `rows`."""
    names = [name for name in NAMES["properties"] if name != "in"]
    value = {name: k for k, name in enumerate(names)} | {"in": [{"x": "a", "X": "b"}]}
    given = [as_json(server, NAMES, value), as_json(server, NAMES, {"ID": 7}), b"\0\0\0\0\1{", None]
    df = spark.createDataFrame(
        [(9, one, "mine", "my row") for one in given], "N INT, value BINARY, _Error_ STRING, _row_ STRING"
    )
    rows = registry.rows(df.coalesce(1), "value", Registry.http(server.url))
    fields = ["id", "ID_2", "n_2", "value", "_error__3", "_row__2", "_corrupt_", "in"]
    assert rows.columns == ["N", "_Error_", "_row_", *fields, "_schema_id_", "_error__2"]
    assert rows.schema["in"].dataType.elementType.names == ["x", "X_2"]
    whole, one, bad, none = rows.drop("_schema_id_").collect()
    mine = (9, "mine", "my row")
    assert tuple(whole) == (*mine, 0, 1, 2, 3, 4, 5, 6, [("a", "b")], None)
    assert tuple(one) == (*mine, None, 7, *[None] * 6, None)
    assert tuple(bad) == (*mine, *[None] * 8, "BAD_FIELD")
    assert tuple(none) == (*mine, *[None] * 9)


def messages(server: RegistryServer) -> list[bytes | None]:
    """Orders, one of a nested type, a message of another type, and invalid messages."""
    file = compiled(registered(ORDER, geo__city=CITY))
    pool = descriptor_pool.DescriptorPool()
    for described in FileDescriptorSet.FromString(file.descriptors).file:
        pool.Add(described)
    client = SchemaRegistryClient({"url": server.url})
    result: list[bytes | None] = []
    for name, value in (
        ("shop.Order", {"id": 7, "to": {"name": "Rome"}}),
        ("shop.Refund", {"order": 8}),
        ("shop.Order.Line", {"count": 9}),
    ):
        message_type = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
        serializer = ProtobufSerializer(message_type, client, conf=STRATEGY | {"use.deprecated.format": False})
        result.append(serializer(json_format.ParseDict(value, message_type()), CONTEXT))
    # A registry stores the text of the descriptor that this client registers, and each import under a subject.
    [id] = {one["id"] for one in server.versions.values() if one["subject"] == "orders-value"}
    server.versions.clear()
    server.register("city", CITY, "PROTOBUF", id=50)
    imports = [{"name": "geo/city.proto", "subject": "city", "version": 1}]
    server.register("orders-value", ORDER, "PROTOBUF", imports, id=id)
    prefix = bytes([0, 0, 0, 0, id])
    return [*result, None, prefix + b"\0\x0a\xff", prefix, b"\0\0\0\0\x63\0", b"what"]


def stand_in(data: Column, name: str, binaryDescriptorSet: bytes, options: dict[str, str]) -> Column:  # noqa: N803
    """A replacement of Spark's package with Google's library: the field ``id`` and the name of the city."""
    assert options == {"mode": "PERMISSIVE"}

    @F.udf("id BIGINT, `to` STRUCT<name STRING>, `order` BIGINT, count INT")
    def read(value):  # type: ignore[no-untyped-def]
        if value is None:
            return None
        pool = descriptor_pool.DescriptorPool()
        for described in FileDescriptorSet.FromString(binaryDescriptorSet).file:
            pool.Add(described)
        message = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))()
        try:
            message.ParseFromString(bytes(value))
        except Exception:  # noqa: BLE001  # like PERMISSIVE
            return None
        row = json_format.MessageToDict(message)
        return {field: int(row[field]) if field != "to" else row[field] for field in row}

    return read(data)


def protobuf_rows(df: DataFrame, server: RegistryServer, message: str | None = None) -> list[tuple[Any, ...]]:
    rows = registry.rows(df, "value", Registry.http(server.url), message=message)
    return [(row.n, row.id, row.to and row.to.name, row.order, row["count"], row._error_) for row in rows.collect()]


def test_protobuf(spark: SparkSession, server: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the arguments for Spark's package, which is not available here."""
    monkeypatch.setattr("pyspark.sql.protobuf.functions.from_protobuf", stand_in)
    df = spark.createDataFrame(list(enumerate(messages(server))), SCHEMA).coalesce(1)
    nothing = [
        (3, None, None, None, None, None),
        (4, None, None, None, None, "BAD_FIELD"),
        (5, None, None, None, None, "BAD_FIELD"),
        (6, None, None, None, None, "UNKNOWN_SCHEMA"),
        (7, None, None, None, None, "BAD_MAGIC"),
    ]
    other = [(n, None, None, None, None, "BAD_FIELD") for n in range(3)]
    assert protobuf_rows(df, server) == [(0, 7, "Rome", None, None, None), *other[1:], *nothing]
    assert protobuf_rows(df, server, "shop.Refund") == [other[0], (1, None, None, 8, None, None), other[2], *nothing]
    assert protobuf_rows(df, server, "shop.Order.Line") == [*other[:2], (2, None, None, None, 9, None), *nothing]
    with pytest.raises(ValueError, match=r"^no schema of value has a message shop.What: the last has shop.Order, "):
        protobuf_rows(df, server, "shop.What")


def test_without_sparks_package(spark: SparkSession, server: RegistryServer) -> None:
    df = spark.createDataFrame(list(enumerate(messages(server))), SCHEMA)
    with pytest.raises(
        AnalysisException, match=r"Please restart your job or session with the 'spark-protobuf' package"
    ):
        registry.rows(df, "value", Registry.http(server.url))


def test_avro(spark: SparkSession, server: RegistryServer) -> None:
    """The same rows as `avro.rows`, also for a corrupt message."""
    df = frame(spark, server)
    rows = registry.rows(df, "value", Registry.http(server.url))
    expected = avro.rows(df, "value", Registry.http(server.url))
    assert rows.schema == expected.schema
    assert rows.collect() == expected.collect()


def test_without_a_schema(spark: SparkSession, server: RegistryServer) -> None:
    df = spark.createDataFrame([(1, None), (2, b"\0\0\0\0\7{}")], SCHEMA).coalesce(1)
    rows = registry.rows(df, "value", Registry.http(server.url), keep_payload=False)
    assert [tuple(row) for row in rows.collect()] == [(1, None, None), (2, "7", "UNKNOWN_SCHEMA")]


def test_a_topic_of_several_types(
    spark: SparkSession, server: RegistryServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each message is read by the type of its schema. Fields of the same name and type are one column."""
    monkeypatch.setattr("pyspark.sql.protobuf.functions.from_protobuf", stand_in)
    order, *_ = messages(server)
    assert order is not None
    avro_fields = [{"name": "id", "type": "long"}, {"name": "price", "type": "double"}]
    server.register("a", json.dumps({"type": "record", "name": "A", "fields": avro_fields}), id=60)
    server.register("j", json.dumps(FIRST), "JSON", id=61)
    of_avro = b"\0\0\0\0\x3c\x0a" + struct.pack("<d", 1.5)
    of_json = b'\0\0\0\0\x3d{"id": 6, "to": "Oslo"}'
    given = [of_avro, of_json, order, of_avro[:-1], of_json[:-1], order[:5] + b"\x09", None, b"\0\0\0\0\x63\0", b"what"]
    df = spark.createDataFrame(list(enumerate(given)), SCHEMA).coalesce(1)
    rows = registry.rows(df, "value", Registry.http(server.url), keep_payload=False)
    assert rows.columns == ["n", "id", "price", "to", "to_2", "order", "count", "_schema_id_", "_error_"]
    expected = [
        (0, 5, 1.5, None, None, None),
        (1, 6, None, "Oslo", None, None),
        (2, 7, None, None, ("Rome",), None),
        (3, None, None, None, None, "TRUNCATED"),
        (4, None, None, None, None, "BAD_FIELD"),
        (5, None, None, None, None, "BAD_FIELD"),
        (6, None, None, None, None, None),
        (7, None, None, None, None, "UNKNOWN_SCHEMA"),
        (8, None, None, None, None, "BAD_MAGIC"),
    ]
    names = ["n", "id", "price", "to", "to_2", "_error_"]
    assert [tuple(row) for row in rows.select(names).collect()] == expected
    df.write.parquet(str(tmp_path / "messages"))
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "messages"))
    by_subject = Registry.http(server.url, subjects=["a", "j", "orders-value"])
    result = streamed(registry.rows(stream, "value", by_subject, keep_payload=False).select(names), tmp_path)
    assert [tuple(row[name] for name in names) for row in result] == expected
