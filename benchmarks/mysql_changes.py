"""Changes of Canal's and Maxwell's messages against ``from_json`` with a schema by hand, and what the survey of a batch costs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from benchmarks.debezium import IN_SQL, messages
from benchmarks.report import Row, no_slower, table
from benchmarks.sql import discarded, local_spark
from benchmarks.timing import Timing, interleave

SQL_TYPES = {"id": "BIGINT", "name": "STRING", "amount": "DECIMAL(12,2)", "created": "TIMESTAMP_NTZ"}
DEBEZIUM_TYPES = {"id": "int64", "name": "string", "amount": "double", "created": "MicroTimestamp"}
MYSQL_TYPES = {"id": "bigint", "name": "varchar(80)", "amount": "decimal(12,2)", "created": "datetime(6)"}
_TEXTS = "MAP<STRING, STRING>"
CANAL_SCHEMA = (
    f"data ARRAY<{_TEXTS}>, old ARRAY<{_TEXTS}>, database STRING, table STRING, type STRING, es BIGINT, gtid STRING"
)
MAXWELL_ROW = "STRUCT<id BIGINT, name STRING, amount DECIMAL(12,2), created STRING>"
MAXWELL_SCHEMA = (
    f"data {MAXWELL_ROW}, old {MAXWELL_ROW}, database STRING, table STRING, type STRING, ts BIGINT, xid BIGINT"
)


class System(NamedTuple):
    """The messages of a system, and how they are read by hand."""

    format: str
    message: Callable[[int], bytes]
    columns: dict[str, str]
    by_hand: str


def row(i: int) -> dict[str, Any]:
    created = f"2024-05-0{1 + i % 9} 10:{i % 60:02}:{i // 60 % 60:02}.{i % 1000000:06}"
    return {"id": i, "name": f"customer {i}", "amount": i % 9973 / 100, "created": created}


def canal(i: int) -> bytes:
    texts = {name: str(value) for name, value in row(i).items()}
    kind = ("INSERT", "UPDATE", "DELETE")[i % 3]
    change = {
        "data": [texts], "database": "shop", "es": 1714557600000 + i, "gtid": "", "id": i // 10, "isDdl": False,
        "mysqlType": MYSQL_TYPES, "old": [{"name": f"former {i}"}] if kind == "UPDATE" else None, "pkNames": ["id"], "sql": "",
        "sqlType": {"id": -5, "name": 12, "amount": 3, "created": 93}, "table": "orders", "ts": 1714557600250 + i, "type": kind,
    }  # fmt: skip
    return json.dumps(change, separators=(",", ":")).encode()


def maxwell(i: int) -> bytes:
    kind = ("insert", "update", "delete")[i % 3]
    change = {
        "database": "shop", "table": "orders", "type": kind, "ts": 1714557600 + i // 1000, "xid": 5000 + i, "commit": True,
        "data": row(i), **({"old": {"name": f"former {i}"}} if kind == "update" else {}),
    }  # fmt: skip
    return json.dumps(change, separators=(",", ":")).encode()


_TYPED = ", ".join(f"CAST(r.{name} AS {type}) AS {name}" for name, type in SQL_TYPES.items())
SYSTEMS = (
    System(
        "canal",
        canal,
        SQL_TYPES,
        f"""SELECT `offset`, place, m.type, timestamp_millis(m.es) AS time, m.table, {_TYPED}, m.old[place] AS old
            FROM (SELECT `offset`, from_json(CAST(value AS STRING), '{CANAL_SCHEMA}') AS m FROM messages)
            LATERAL VIEW posexplode(m.data) d AS place, r""",
    ),
    System(
        "maxwell",
        maxwell,
        SQL_TYPES,
        f"""SELECT `offset`, m.type, timestamp_seconds(m.ts) AS time, m.table, m.data.id, m.data.name, m.data.amount,
                   CAST(m.data.created AS TIMESTAMP_NTZ) AS created, m.old
            FROM (SELECT `offset`, from_json(CAST(value AS STRING), '{MAXWELL_SCHEMA}') AS m FROM messages)""",
    ),
)


def records(spark: SparkSession, folder: str, format: str, values: pa.Array) -> DataFrame:
    """The messages of a topic with one partition."""
    path = f"{folder}/{format}.parquet"
    columns = pa.table({"offset": pa.array(range(len(values))), "value": values})
    pq.write_table(columns, path, row_group_size=IN_SQL // 8, compression="none", use_dictionary=False)
    df = spark.read.parquet(path)
    df.createOrReplaceTempView("messages")
    return df


def crossing(df: DataFrame) -> Callable[[], object]:
    """What any pass over the messages in Python costs: they cross, and nothing reads them."""

    def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = sum(batch.num_rows for batch in batches)
        yield pa.record_batch([pa.array([rows])], names=["rows"])

    return partial(DataFrame.collect, df.select("value").mapInArrow(nothing, "rows BIGINT"))


def survey_rows(work: str, times: Mapping[str, Timing]) -> list[Row]:
    return [
        no_slower(f"{work}: the survey of a batch", times["survey"], "its changes", times["ours"], 1 / 3),
        no_slower(f"{work}: of it, the way to Python", times["crossing"], "its changes", times["ours"], 1 / 3),
    ]


def rows() -> list[Row]:
    """The claims about messages of Canal and Maxwell, and about the survey."""
    result = []
    with local_spark() as spark, tempfile.TemporaryDirectory() as folder:
        for format, message, columns, by_hand in SYSTEMS:
            df = records(spark, folder, format, pa.array(map(message, range(IN_SQL)), pa.binary()))
            read = partial(sparkwire.changes, df, format=format, table="shop.orders", columns=columns)
            contenders: dict[str, Callable[[], object]] = {
                "ours": discarded(read(keys="id")),
                "from_json": discarded(spark.sql(by_hand)),
                "survey": read,
                "crossing": crossing(df),
            }
            times = interleave(contenders, rounds=5, warm=1)
            work = f"SQL, 1 M messages of {format.title()}"
            result.append(
                no_slower(f"{work}: the changes of one table", times["ours"], "from_json", times["from_json"], 1)
            )
            result += survey_rows(work, times)
        df = records(spark, folder, "debezium", messages(IN_SQL))
        changes = sparkwire.changes(df, format="debezium", table="orders", keys="id", columns=DEBEZIUM_TYPES)
        times = interleave(
            {
                "ours": discarded(changes),
                "survey": lambda: sparkwire.changes(df, format="debezium", table="orders", columns=DEBEZIUM_TYPES),
                "crossing": crossing(df),
            },
            rounds=5,
            warm=1,
        )
        result += survey_rows("SQL, 1 M messages of Debezium", times)
    return result


def main() -> None:
    print(table(rows()))


if __name__ == "__main__":
    main()
