"""What the page on changes says about the rows of a change table."""

from __future__ import annotations

import json

from pyspark.sql import SparkSession

import sparkwire
from tests.support import ROOT


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
