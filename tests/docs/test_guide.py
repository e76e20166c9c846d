"""Run the queries of the guide over the example files."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import sparkwire
from tests.support import ROOT
from tests.support import kafka_tiered as tiered

DOCS = ROOT / "docs"
QUERIES = [
    (path.name, query.strip())
    for path in [DOCS / "index.md", *sorted((DOCS / "guide").glob("*.md"))]
    for block in re.findall("```sql\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
    for query in block.split(";")
    if query.strip()
]
PATHS = {"/var/kafka": "kafka/orders-0", "s3://bucket/relay/*": "databus/*.bin"}
"""the example files for the paths on a page"""


@pytest.fixture(scope="module")
def views(spark: SparkSession) -> Iterator[None]:
    """The views that the guide's queries read: files as values, and columns extracted from them."""
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
def test_queries_return_rows(spark: SparkSession) -> None:
    assert len(QUERIES) >= 6
    for page, query in QUERIES:
        for written, example in PATHS.items():
            query = query.replace(f"'{written}'", f"'{sparkwire.samples()}/{example}'")
        created = re.match(r"CREATE TEMPORARY VIEW (\w+)", query)
        if created:
            spark.catalog.dropTempView(created[1])  # a view with the same name, from another test of this session
        result = spark.sql(query)
        assert created or result.take(1), f"{page}: {query}"


def python_of(page: str) -> list[str]:
    return re.findall("```python\n(.*?)```", (DOCS / "guide" / page).read_text("utf-8"), re.DOTALL)


def test_the_page_on_tests(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Its examples are correct, and its fixture works in pytest."""
    fixture, *others = python_of("testing.md")
    names = {"spark": spark}
    for block in others:
        exec(block, names)
    assert "HEADER_CRC_MISMATCH" in capsys.readouterr().out
    exec(fixture, names)
    assert type(names["spark"]).__name__ == "FixtureFunctionDefinition"


def test_the_page_on_tiered_storage(spark: SparkSession, tmp_path: Path) -> None:
    """Its queries over golden buckets return the records that consumers got, and its computation is correct."""
    for run in ("enc", "zstd"):
        tiered.extract(run, tmp_path / run)
    bucket, together, encrypted, cost = python_of("tiered-storage.md")
    keys = tmp_path / "enc/keys"
    (keys / "keys.json").write_text('{"key1": "key1.private.pem", "key-2": "key-2.private.pem"}')
    sparkwire.register(spark)
    names: dict[str, Any] = {"spark": spark}
    exec(bucket.replace("s3://bucket/tiered/", str(tmp_path / "zstd/remote")), names)
    exec(
        together.replace("s3://bucket/tiered/", f"{tmp_path}/zstd/remote").replace(
            "/var/kafka", f"{tmp_path}/zstd/local"
        ),
        names,
    )
    exec(
        encrypted.replace("s3://bucket/tiered/", str(tmp_path / "enc/remote")).replace("/secrets/kafka", str(keys)),
        names,
    )
    assert names["history"].where("topic = 'orders' AND partition = 0 AND offset < 10").count() == 10
    consumed = (tmp_path / "zstd/truth/orders-0.read_uncommitted.jsonl").read_text().count("\n")
    assert names["orders"].where("topic = 'orders' AND partition = 0").count() == consumed
    assert names["secret"].where("topic = 'orders' AND error IS NULL").count() > 500
    exec(cost, names)
    assert names["everything"]["gets"] == 65 * 10**6


def test_questions_to_a_clusters_disk(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two replicas; one lacks a segment and has a flipped bit. The results match the files."""
    sample = sparkwire.samples() / "cluster"
    disk, other = tmp_path / "disk", tmp_path / "other"
    for copy in (disk, other):
        shutil.copytree(sample / "disk", copy)
    (disk / "payments-0/00000000000000000868.log").unlink()
    segment = other / "payments-0/00000000000000000652.log"
    data = bytearray(segment.read_bytes())
    data[20] ^= 1  # in the first batch's checksum
    segment.write_bytes(data)
    places = {
        "/var/kafka": disk,
        "s3://bucket/tiered/": sample / "bucket",
        "/broker-1": disk,
        "/broker-2": other,
        "'payments'": "'g8.meta-0'",
    }
    page = (DOCS / "guide/kafka-storage.md").read_text("utf-8")
    _, _, section = page.partition("## Draw a partition")
    section, _, _ = section.partition("## `__consumer_offsets`")
    names: dict[str, Any] = {"spark": spark, "sparkwire": sparkwire}
    monkeypatch.chdir(tmp_path)
    for block in re.findall("```python\n(.*?)```", section, re.DOTALL):
        for written, here in places.items():
            block = block.replace(written, str(here))
        exec(block, names)
    assert (tmp_path / "payments-0.png").exists()
    assert names["lag"].columns == ["group", "records", "last_commit"]
    remote = sum(path.stat().st_size for path in (sample / "bucket").rglob("*.log"))
    assert ("payments", "remote") in {(row["topic"], row["tier"]) for row in names["sizes"].collect()}
    assert max(row["bytes"] for row in names["sizes"].where("tier = 'remote'").collect()) <= remote
    assert names["under_replicated"].count() == 0
    assert {row["principal"] for row in names["readers"].collect()} == {"User:alice"}
    assert [row["base_offset"] for row in names["only_here"].collect()] == [652]
    assert [row[2:] for row in names["gaps"].where("topic = 'payments'").collect()] == [(868, 1087)]
    assert names["mentions"].where("topic = 'payments'").first()["count"] > 50
    assert "payments-0: 2 segments" in capsys.readouterr().out


def test_a_scheduled_consumer_continues_at_its_checkpoint(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The page's program, three times: with all files, without new ones, and with a new file."""
    [program] = python_of("scheduled-consumer.md")
    for there, here in (("/archive/relay", tmp_path / "archive"), ("/checkpoints/orders", tmp_path / "checkpoint")):
        assert there in program
        program = program.replace(there, str(here))
    (tmp_path / "archive").mkdir()
    relay = sparkwire.samples() / "databus" / "relay_v1.bin"
    reported = []
    for name in ("first.bin", None, "second.bin"):
        if name is not None:
            shutil.copy(relay, tmp_path / "archive" / name)
        exec(program, {"__name__": "orders"})
        reported.append(re.findall(r"windows=(\d+), events=(\d+)", capfd.readouterr().out))
    assert [sum(int(windows) for windows, _ in run) for run in reported] == [15, 0, 15]
    assert [sum(int(events) for _, events in run) for run in reported] == [79, 0, 79]


def test_what_spark_hides(spark: SparkSession, tmp_path: Path) -> None:
    """Spark ignores certain names, as the page on input explains; the data source reads them."""
    segment = sparkwire.samples() / "kafka" / "orders-0" / "00000000000000000000.log"
    for name in ("__consumer_offsets-0", "orders-0"):
        (tmp_path / name).mkdir()
        shutil.copy(segment, tmp_path / name)
    files = spark.read.format("binaryFile")
    assert files.option("recursiveFileLookup", True).load(str(tmp_path)).count() == 1
    assert files.load(f"{tmp_path}/*/*.log").count() == 2
    topics = spark.read.format("kafka_log").load(str(tmp_path)).select("topic").distinct().collect()
    assert {row["topic"] for row in topics} == {"__consumer_offsets", "orders"}


def test_compressed_files_are_one_row(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "relay.bin.gz").write_bytes(
        gzip.compress((sparkwire.samples() / "databus/relay_v1.bin").read_bytes(), mtime=0)
    )
    rows = spark.read.format("binaryFile").load(str(tmp_path)).selectExpr("inline(dbus_events(content))").collect()
    assert [row["error"] for row in rows] == ["BAD_MAGIC"]


def test_functions_are_of_one_session(spark: SparkSession) -> None:
    other, query = spark.newSession(), "SELECT dbus_opcode(X'00')"
    with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE"):
        other.sql(query)
    sparkwire.register(other)
    assert other.sql(query).collect() == [(None,)]
