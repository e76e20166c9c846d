"""What the page on changes says about the rows of a change table, and its code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import sparkwire
from sparkwire import FUNCTIONS
from sparkwire.changes.declarations import FORMATS
from tests.support import ROOT
from tests.support.pages import blocks_of

PAGE = ROOT / "docs" / "changes.md"
ELSEWHERE = "SparkSession.builder"
"""what is in a block that needs a session of its own"""
ORDER = {"id": "int32", "customer": "string", "total": "double"}
CUSTOMER = {"id": "int32", "name": "string"}


def test_a_delete_and_its_tombstone_are_two_rows(spark: SparkSession) -> None:
    page = (ROOT / "docs" / "changes.md").read_text("utf-8")
    section = page.partition("\n## Read changes\n")[2].partition("\n## ")[0].replace("\n", " ")
    assert "two records: the delete itself, and its tombstone" in section
    source = {"connector": "postgresql", "db": "d", "schema": "s", "table": "t", "lsn": 1, "ts_ms": 1}
    row = {"id": 1, "name": "a"}
    values = [
        {"op": "c", "before": None, "after": row, "source": source},
        {"op": "d", "before": row, "after": None, "source": source},
        None,
    ]
    records = [(0, k, b'{"id": 1}', value and json.dumps(value).encode()) for k, value in enumerate(values)]
    df = spark.createDataFrame(records, "partition INT, offset BIGINT, key BINARY, value BINARY")
    table = sparkwire.changes(df, format="debezium", table="s.t", key="key", columns={"id": "int32", "name": "string"})
    assert [row["_op_"] for row in table.orderBy("offset").collect()] == ["INSERT", "DELETE", "DELETE"]
    assert sparkwire.current(table).isEmpty()


def message(table: str, op: str, types: dict[str, str], *values: Any) -> tuple[bytes, bytes]:
    """Key and value of a record: a change with its schema, as Debezium writes it."""
    image = dict(zip(types, values, strict=True))
    fields = [{"type": type, "field": name} for name, type in types.items()]
    source = {
        "connector": "postgresql",
        "db": "shop",
        "schema": "public",
        "table": table,
        "lsn": 1,
        "ts_ms": 1_700_000_000_000,
    }
    payload = {
        "op": op,
        "before": image if op == "d" else None,
        "after": None if op == "d" else image,
        "source": source,
    }
    schema = {
        "type": "struct",
        "fields": [{"type": "struct", "field": name, "fields": fields} for name in ("before", "after")],
    }
    return json.dumps({"id": image["id"]}).encode(), json.dumps({"schema": schema, "payload": payload}).encode()


def write_topic(folder: Path, *messages: tuple[bytes, bytes]) -> None:
    records = [
        {"key": key, "value": value, "timestamp_ms": 1_700_000_000_000 + k} for k, (key, value) in enumerate(messages)
    ]
    arguments = (pa.array([records]), pa.array([0]), pa.array(["none"]), pa.array([2], pa.int32()))
    [log] = FUNCTIONS["to_kafka_records"].decode(*arguments).to_pylist()
    folder.mkdir(parents=True)
    (folder / f"{0:020}.log").write_bytes(log)


def test_the_blocks_of_the_page_run_in_their_order(spark: SparkSession, tmp_path: Path) -> None:
    orders = [message("orders", "c", ORDER, k, "ash", 1.25) for k in (1, 2)]
    orders += [message("orders", "d", ORDER, 1, "ash", 1.25)]
    customers = [message("customers", "c", CUSTOMER, 7, "birch")]
    for topic in ("kafka/shop.public.orders-0", "backup/shop.public.orders-0"):
        write_topic(tmp_path / topic, *orders)
    write_topic(tmp_path / "kafka/shop-0", *customers, *orders)
    names: dict[str, Any] = {"spark": spark, "sparkwire": sparkwire}
    blocks = [block.code for block in blocks_of(PAGE) if block.language == "python"]
    run = [code for code in blocks if ELSEWHERE not in code]
    assert len(run) == len(blocks) - 1 >= 8
    for code in run:
        for place in ("kafka", "backup", "lake", "checkpoints"):
            code = code.replace(f'"/{place}/', f'"{tmp_path}/{place}/')
        exec(compile(code, str(PAGE), "exec"), names)
    for target in ("orders", "orders_live", "shop/orders"):
        assert [row["id"] for row in sparkwire.merged(spark, f"{tmp_path}/lake/{target}").collect()] == [2], target
    assert [row["name"] for row in sparkwire.merged(spark, f"{tmp_path}/lake/shop/customers").collect()] == ["birch"]
    assert names["result"].errors == 0
    rows = {target: DeltaTable(f"{tmp_path}/lake/{target}").to_pyarrow_table() for target in ("orders", "orders_live")}
    assert sorted(rows["orders_live"]["id"].to_pylist()) == [1, 2]  # with the deleted row
    assert rows["orders"]["id"].to_pylist() == [2]  # the page has forgotten it
    assert set(names["examples"]) == set(FORMATS)
    for format, changes in names["examples"].items():
        assert sparkwire.current(changes).count() > 0, format
