"""The writing functions in Spark SQL: optional arguments, records from a group, the pandas interface, errors."""

from __future__ import annotations

from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from sparkwire import sql_functions as W
from sparkwire.kafka.codecs import listed, writable

TEXT = "encode(CAST(id AS STRING), 'utf-8')"
RECORDS = f"(SELECT collect_list(struct({TEXT} AS value, id AS timestamp_ms)) AS records FROM range(3))"


def one(frame: DataFrame) -> Any:
    row = frame.first()
    assert row is not None
    return row[0]


@pytest.fixture(params=["arrow", "pandas"])
def sql(spark: SparkSession, request: pytest.FixtureRequest) -> Any:
    sparkwire.register(spark, interface=request.param)
    yield lambda query: one(spark.sql(f"SELECT {query}"))
    sparkwire.register(spark)


def test_a_message(sql: Any) -> None:
    assert sql("kafka_message(to_kafka_message(X'6B', NULL)).magic") == 0
    assert sql("kafka_message(to_kafka_message(NULL, X'76', 5)).timestamp_ms") == 5
    # Spark loses field names between nested Python functions.
    assert sql("hex(to_kafka_message(X'6B', X'', magic => 1))").startswith("EECF6BF101")
    assert sql(f"hex(substring(to_kafka_message({TEXT}, X'', timestamp_ms => id), 5, 1)) FROM range(3)") == "01"


def test_records_of_a_group(sql: Any) -> None:
    rows = sql(f"kafka_records(to_kafka_records(records, 10, 'zstd', 2)) FROM {RECORDS}")
    assert sorted((row.offset, row.value, row.timestamp_ms) for row in rows) == [
        (10, b"0", 0),
        (11, b"1", 1),
        (12, b"2", 2),
    ]
    assert sql("to_kafka_records(array(), 0, 'none', 2)") == b""


def test_a_change_comes_back(sql: Any) -> None:
    assert sql(
        "to_datahub_blob(c) = to_datahub_blob(datahub_change(to_datahub_blob(c))) FROM "
        "(SELECT named_struct('op', 'DELETE', 'before_map', map('a', 'b'), 'event_time_ms', 1) c)"
    )
    assert sql("datahub_before(to_datahub_blob(named_struct('before_map', map('a', NULL))))") == '{"a":null}'


def test_column_functions(spark: SparkSession) -> None:
    samples = spark.table("sparkwire_samples")
    key = F.lit(b"k")
    assert one(samples.select(W.kafka_magic(W.to_kafka_message(key, "message")))) == 0
    assert one(samples.select(W.kafka_magic(W.to_kafka_message(key, "message", magic=F.lit(1))))) == 1


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("to_kafka_records(array(), 0, 'lzma', 2)",
         f"ValueError: to_kafka_records() expected compression {listed(writable())}, got 'lzma'"),
        ("to_kafka_records(array(named_struct('key', 'text')), 0, 'none', 2)",
         "TypeError: to_kafka_records() expected records.key BINARY, got STRING"),
        ("to_kafka_message(X'', X'', 1, 2)", "ValueError: to_kafka_message() expected magic 0 or 1, got 2"),
        ("to_datahub_blob(named_struct('before', '1'))",
         "ValueError: to_datahub_blob() expected before as the text of a JSON object, got '1'"),
    ],
)  # fmt: skip
def test_errors_are_in_the_last_line(spark: SparkSession, call: str, sentence: str) -> None:
    with pytest.raises(PythonException) as rejected:
        one(spark.sql(f"SELECT {call}"))
    assert [line for line in str(rejected.value).splitlines() if line.strip()][-1] == sentence
