"""The queries of the guide run, over the example files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import sparkwire

DOCS = Path(__file__).parents[1] / "docs"
QUERIES = [
    (path.name, query.strip())
    for path in [DOCS / "index.md", *sorted((DOCS / "guide").glob("*.md"))]
    for block in re.findall("```sql\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
    for query in block.split(";")
    if query.strip()
]
PATHS = {"/var/kafka": "kafka/orders-0", "s3://bucket/relay/*": "databus/*.bin"}
"""where the examples have what a page speaks of"""


@pytest.fixture(scope="module")
def views(spark: SparkSession) -> Iterator[None]:
    """What the guide's queries read: cells of files, and columns of values taken from them."""
    for name, pattern in (("stream", "databus/*.bin"), ("segments", "kafka/*.log")):
        files = spark.read.format("binaryFile").load(f"{sparkwire.samples()}/{pattern}").select("path", "content")
        files.createOrReplaceTempView(name)
    spark.table("stream").selectExpr("inline(dbus_events(content))").selectExpr(
        "event AS value"
    ).createOrReplaceTempView("archive")
    spark.table("segments").selectExpr("inline(kafka_records(content))").createOrReplaceTempView("records")
    yield
    for name in ("archive", "records", "stream", "segments"):
        spark.catalog.dropTempView(name)


@pytest.mark.usefixtures("views")
def test_queries_answer(spark: SparkSession) -> None:
    assert len(QUERIES) >= 6
    for page, query in QUERIES:
        for written, example in PATHS.items():
            query = query.replace(f"'{written}'", f"'{sparkwire.samples()}/{example}'")
        created = re.match(r"CREATE TEMPORARY VIEW (\w+)", query)
        if created:
            spark.catalog.dropTempView(created[1])  # of the same name, from another test of this session
        answer = spark.sql(query)
        assert created or answer.take(1), f"{page}: {query}"
