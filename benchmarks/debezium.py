"""Debezium: every field of a message in one pass, against DataHub's; typed rows, against Spark's ``from_json``."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from benchmarks import datahub
from benchmarks.report import Row, no_slower, table
from benchmarks.sql import discarded, local_spark
from benchmarks.timing import Timing, amount, interleave
from sparkwire import FUNCTIONS

MESSAGES = amount(100_000, trial=1000)
BATCH = 10_000  # rows, as Spark hands them over
IN_SQL = amount(1_000_000, trial=1000)
COLUMNS = {"id": "int64", "name": "string", "amount": "double", "created": "MicroTimestamp"}
ROW = "STRUCT<id BIGINT, name STRING, amount DOUBLE, created BIGINT>"
SCHEMA = f"""
    before {ROW}, after {ROW}, op STRING, ts_ms BIGINT,
    source STRUCT<ts_us BIGINT, table STRING, snapshot STRING, sequence STRING, lsn BIGINT>
"""


def messages(n: int, schema: bytes = b"") -> pa.Array:
    """``n`` sound messages of about 530 bytes and their schema, no two alike."""
    begin, end = (b'{"schema":%b,"payload":' % schema, b"}") if schema else (b"", b"")
    return pa.array((begin + message(i) + end for i in range(n)), pa.binary())


def envelope() -> bytes:
    """The schema that Connect's JsonConverter puts before each message, unless it is told not to."""
    row = [_field("id", "int64", optional=False), _field("name", "string"), _field("amount", "double")]
    row.append(_field("created", "int64", name="io.debezium.time.MicroTimestamp", version=1))
    texts = ("version", "connector", "name", "snapshot", "db", "sequence", "schema", "table")
    source = [_field(name, "string") for name in texts]
    source += [_field(name, "int64") for name in ("ts_ms", "ts_us", "ts_ns", "txId", "lsn", "xmin")]
    fields = [
        _field("before", "struct", fields=row, name="shop.public.orders.Value"),
        _field("after", "struct", fields=row, name="shop.public.orders.Value"),
        _field("source", "struct", fields=source, name="io.debezium.connector.postgresql.Source"),
        _field("op", "string", optional=False),
        *(_field(name, "int64") for name in ("ts_ms", "ts_us", "ts_ns")),
    ]
    whole = {"type": "struct", "fields": fields, "optional": False, "name": "shop.public.orders.Envelope", "version": 2}
    return json.dumps(whole, separators=(",", ":")).encode()


def _field(field: str, type: str, *, optional: bool = True, **more: Any) -> dict[str, Any]:
    return {"type": type, "optional": optional, **more, "field": field}


def message(i: int) -> bytes:
    row = {"id": i, "name": f"customer {i}", "amount": i % 9973 / 100, "created": 1590315269000000 + i}
    lsn, time = 75_000_000 + 56 * i, 1714557600000 + i
    source = {
        "version": "3.3.0.Final",
        "connector": "postgresql",
        "name": "shop",
        "ts_ms": time,
        "snapshot": "false",
        "db": "shop",
        "sequence": f'["{lsn - 200}","{lsn}"]',
        "ts_us": time * 1000,
        "ts_ns": time * 1_000_000,
        "schema": "public",
        "table": "orders",
        "txId": 500 + i // 3,
        "lsn": lsn,
        "xmin": None,
    }
    op = "cud"[i % 3]
    change = {
        "before": None if op == "c" else row,
        "after": None if op == "d" else row,
        "source": source,
        "transaction": None,
        "op": op,
        "ts_ms": time + 250,
        "ts_us": time * 1000 + 250_125,
        "ts_ns": time * 1_000_000 + 250_125_000,
    }
    return json.dumps(change, separators=(",", ":")).encode()


def decoded(name: str, column: pa.Array) -> Callable[[], object]:
    """A function over a column, in batches; the answers are dropped."""
    function = FUNCTIONS[name]
    return lambda: [function.decode(column[start : start + BATCH]) for start in range(0, len(column), BATCH)]


def decoder_rows() -> list[Row]:
    """A byte of a message costs more where it is of a member that the message before does not have in the same place."""
    columns = {
        "with its schema": messages(MESSAGES, envelope()),
        "without a schema": messages(MESSAGES),
        "datahub": datahub.messages(MESSAGES),
    }
    functions = dict.fromkeys(columns, "debezium_change") | {"datahub": "datahub_change"}
    times = interleave({name: decoded(functions[name], column) for name, column in columns.items()}, rounds=7, warm=1)
    per_byte = {name: Timing(tuple(t / columns[name].nbytes for t in times[name].samples)) for name in times}
    return [
        no_slower(f"every field of a message {name}, a byte", per_byte[name], "datahub_change", per_byte["datahub"], 1)
        for name in ("with its schema", "without a schema")
    ]


def typed(spark: SparkSession) -> DataFrame:
    """Both images typed, and where and when the change was made."""
    return sparkwire.debezium.rows(spark.table("messages"), "value", table="public.orders", columns=COLUMNS)


def by_hand(spark: SparkSession) -> DataFrame:
    """The same fields out of ``from_json``, of which no row says what did not fit."""
    return spark.sql(
        f"""SELECT m.op, timestamp_micros(m.source.ts_us) AS time, m.source.table, m.source.snapshot,
                   from_json(m.source.sequence, 'ARRAY<STRING>') AS sequence, m.before, m.after,
                   timestamp_micros(m.after.created) AS created
            FROM (SELECT from_json(CAST(value AS STRING), '{SCHEMA}') AS m FROM messages)"""
    )


def sql_rows() -> list[Row]:
    with local_spark() as spark, tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/messages.parquet"
        values = pa.table({"value": messages(IN_SQL)})
        pq.write_table(values, path, row_group_size=IN_SQL // 8, compression="none", use_dictionary=False)
        spark.read.parquet(path).createOrReplaceTempView("messages")
        runs = {"ours": discarded(typed(spark)), "from_json": discarded(by_hand(spark))}
        times = interleave(runs, rounds=5, warm=1)
    return [no_slower("SQL, 1 M messages: typed rows", times["ours"], "from_json", times["from_json"], 1)]


def rows() -> list[Row]:
    """The claims about Debezium's messages."""
    return decoder_rows() + sql_rows()


def main() -> None:
    print(table(rows()))


if __name__ == "__main__":
    main()
