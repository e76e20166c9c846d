"""Debezium's messages as a change table, and its current table: JSON and Avro, batch and stream."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from sparkwire.avro.registry import Registry
from tests.support import debezium_golden as golden

RECORD = "topic STRING, offset BIGINT, key BINARY, value BINARY, headers ARRAY<STRUCT<key STRING, value BINARY>>"
TABLE, TOPIC = "shopdb.customers", "shop.shopdb.customers"


def records(spark: SparkSession, variant: str, topic: str = "shop.") -> DataFrame:
    """The messages of MariaDB in random order."""
    result = [message for message in golden.messages("mariadb", variant) if message.topic.startswith(topic)]
    rows = [(m.topic, m.offset, m.key, m.value, list(m.headers.items())) for m in result]
    return spark.createDataFrame(rows, RECORD).orderBy("value")


def customers(df: DataFrame, **given: object) -> DataFrame:
    return sparkwire.changes(df, format="debezium", table=TABLE, key="key", headers="headers", **given)  # type: ignore[arg-type]


def held(table: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row)[:-2] for row in table.collect())


def test_avro_and_json_give_the_same_table(spark: SparkSession) -> None:
    [truth] = [table for table in golden.points("mariadb")[9].tables if table.name == TABLE]
    in_avro = customers(records(spark, "avro", TOPIC), schemas=golden.schemas("mariadb"))
    in_json = customers(records(spark, "json-schemas", TOPIC))
    assert in_avro.schema == in_json.schema
    result = held(sparkwire.current(in_avro))
    assert result == held(sparkwire.current(in_json))
    assert [row[0] for row in result] == sorted(int(row["id"] or 0) for row in truth.rows)


def test_a_stream_of_avro_gets_its_columns_from_the_registry(spark: SparkSession, tmp_path: Path) -> None:
    records(spark, "avro", TOPIC).write.parquet(str(tmp_path / "records"))
    stream = spark.readStream.schema(RECORD).parquet(str(tmp_path / "records"))
    changes = customers(stream, schemas=Registry.of(golden.schemas("mariadb")))
    query = sparkwire.merge(
        changes, tmp_path / "table", "id", checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True}
    )
    assert query is not None
    query.awaitTermination()
    batch = customers(records(spark, "json-schemas", TOPIC))
    assert held(sparkwire.merged(spark, tmp_path / "table")) == held(sparkwire.current(batch))


def test_tables_in_avro_are_distinguished(spark: SparkSession) -> None:
    df = records(spark, "avro")
    changes = sparkwire.changes_by_table(df, format="debezium", key="key", schemas=golden.schemas("mariadb"))
    seen = {table.name for point in golden.points("mariadb") for table in point.tables}
    assert set(changes) - seen == {"shopdb.doomed"}, "which was made and dropped between two points"
    assert seen <= set(changes)


def test_a_table_missing_in_the_registry_gives_a_clear_error(spark: SparkSession) -> None:
    df = records(spark, "avro", TOPIC)
    with pytest.raises(
        ValueError, match=r"the registry\'s schemas have no table nothing, only shopdb\.\w+, shopdb\.\w+"
    ):
        sparkwire.changes(df, format="debezium", table="nothing", schemas=golden.schemas("mariadb"))
    with pytest.raises(ValueError, match=r"these schemas have no ids: name the files of a folder <id>\.avsc"):
        sparkwire.changes(df, format="debezium", table=TABLE, schemas=list(golden.schemas("mariadb").values()))


def test_an_unknown_id_is_an_error_of_its_row(spark: SparkSession) -> None:
    schemas = golden.schemas("mariadb")
    value = next(m.value for m in golden.messages("mariadb", "avro") if m.topic == TOPIC and m.value)
    df = spark.createDataFrame([(value,), (b"\0\0\0\xff\xff" + value[5:],), (value[:20],)], "value BINARY")
    changes = sparkwire.changes(df, format="debezium", table=TABLE, schemas=schemas)
    assert [row[0] for row in changes.select("_error_").collect()] == [None, "UNKNOWN_SCHEMA", "TRUNCATED"]
