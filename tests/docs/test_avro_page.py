"""Run the page on Avro over an example topic, with a registry that has its schemas."""

from __future__ import annotations

import json
import re

from pyspark.sql import SparkSession

import sparkwire
from tests.support import ROOT
from tests.support.registry_server import serving

PAGE = (ROOT / "docs" / "avro.md").read_text("utf-8")


def test_from_a_topic_to_tables(spark: SparkSession) -> None:
    """Every block of Python up to the wire formats, in order."""
    blocks = re.findall("```python\n(.*?)```", PAGE.partition("## Wire format headers")[0], re.DOTALL)
    assert len(blocks) == 4
    disk = sparkwire.samples() / "kafka" / "registry"
    with serving() as server:
        for row in spark.read.format("kafka_log").load(str(disk / "_schemas-0")).where("value IS NOT NULL").collect():
            one = json.loads(row.value)
            server.register(one["subject"], one["schema"], "AVRO", one.get("references", ()), one["id"])
        names = {"spark": spark}
        result = []
        for block in blocks:
            exec(block.replace("http://registry:8081", server.url).replace("/var/kafka", str(disk)), names)
            result.append(dict(names))
        first, tables, wanted, topic = result
        assert first["rows"].columns == [
            *("offset", "value", "id", "to", "order_id", "amount", "method", "gift", "_schema_id_", "_error_")
        ]
        errors = {
            row._error_: row.n
            for row in first["rows"].groupBy("_error_").agg({"*": "count"}).toDF("_error_", "n").collect()
        }
        assert errors == {None: 55, "UNKNOWN_SCHEMA": 1, "TRUNCATED": 1, "BAD_MAGIC": 1}
        assert [tables[name].count() for name in ("orders", "unread")] == [31, 2]
        assert wanted["orders"].where("id IS NOT NULL").count() == 30
        by_topic = sparkwire.avro.rows(topic["messages"].select("offset", "value"), "value", topic["registry"])
        assert by_topic.collect() == first["rows"].collect()
