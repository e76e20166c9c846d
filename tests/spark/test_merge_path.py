"""A path is a Delta table: what it stores, who reads it, and what it cannot have."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any

import duckdb
import polars
import pyarrow.parquet as pq
import pyspark.sql.functions as F
import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType
from pyspark.sql import Observation, SparkSession

import sparkwire
from sparkwire.changes.delta_log import DeltaLog, rows_in
from sparkwire.errors import WriteConflictError
from sparkwire.spark.changes import merge_path, merge_statement
from sparkwire.spark.changes.merge import MergeResult
from sparkwire.spark.changes.merge_path import PathTarget
from sparkwire.spark.frames import checkpointed
from tests.support.merge_batches import simple

pytestmark = pytest.mark.usefixtures("interpreted")

UTC = dt.UTC


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows 1 and 2, and the deleted row 3."""
    target = tmp_path_factory.mktemp("lake") / "day=1" / "customers"
    sparkwire.merge(simple(spark, ("INSERT", 1, 1, 10), ("INSERT", 2, 2, 20), ("INSERT", 3, 3, 30)), target, "id")
    sparkwire.merge(simple(spark, ("UPDATE", 4, 1, 11), ("DELETE", 5, 3, None)), target, "id")
    return target


ROWS = [(1, 11), (2, 20)]


def test_spark_reads_it(spark: SparkSession, table: Path) -> None:
    rows = sparkwire.merged(spark, table)
    assert sorted((row["id"], row["v"]) for row in rows.collect()) == ROWS
    assert "day" not in rows.columns
    assert sorted((row["id"], row["v"]) for row in sparkwire.merged(spark, f"file:{table}").collect()) == ROWS
    assert sparkwire.merged(spark, f"delta.`{table}`").count() == len(ROWS)


def test_pandas_reads_it(table: Path) -> None:
    rows = DeltaTable(table).to_pandas().query("not _deleted_")
    assert sorted(zip(rows["id"], rows["v"], strict=True)) == ROWS


def test_polars_reads_it(table: Path) -> None:
    rows = polars.scan_delta(str(table)).filter(~polars.col("_deleted_")).select("id", "v").collect()
    assert sorted(rows.iter_rows()) == ROWS


def test_duckdb_reads_it(table: Path) -> None:
    """Its extension for Delta, which it downloads, reads the same log. Here DuckDB reads the files that delta-rs names."""
    rows = duckdb.read_parquet(DeltaTable(table).file_uris()).filter("NOT _deleted_").select("id, v").fetchall()
    assert sorted(rows) == ROWS


ODD = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.parquet.compression.codec": "gzip",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.session.timeZone": "America/Los_Angeles",
}
VALUES = {
    "t": dt.datetime(1500, 1, 2, 3, 4, 5, 678901, UTC),
    "d": dt.date(1000, 2, 28),
    "n": dt.datetime(1500, 1, 2, 3, 4, 5, 678901),
    "ns": [dt.datetime(2024, 1, 2, 3, 4, 5, 678901)],
    "p": Decimal("12345.67"),
    "l": [1, None],
}
SQL = {
    "t": "TIMESTAMP '1500-01-02 03:04:05.678901Z'",
    "d": "DATE '1000-02-28'",
    "n": "TIMESTAMP_NTZ '1500-01-02 03:04:05.678901'",
    "ns": "array(TIMESTAMP_NTZ '2024-01-02 03:04:05.678901')",
    "p": "12345.67BD",
    "l": "array(1, NULL)",
}


@pytest.mark.parametrize("timestamps", ["TIMESTAMP_MILLIS", "INT96"])
def test_what_is_stored_depends_on_no_setting(spark: SparkSession, tmp_path: Path, timestamps: str) -> None:
    """The second merge reads the rows again. The session keeps its settings."""
    target, name = tmp_path / "table", "spark.sql.parquet.outputTimestampType"
    before = {one: spark.conf.get(one, None) for one in ODD}
    assert before[name] is None
    try:
        for one, value in {**ODD, name: timestamps}.items():
            spark.conf.set(one, value)
        for order in (1, 2):
            changes = simple(spark, ("INSERT", order, order, order))
            sparkwire.merge(changes.withColumns({one: F.expr(sql) for one, sql in SQL.items()}), target, "id")
        assert spark.conf.get(name) == timestamps
        sparkwire.merge(simple(spark, ("UPDATE", 3, 2, 3)), tmp_path / "other", "id")
    finally:
        for one, old in before.items():
            spark.conf.unset(one) if old is None else spark.conf.set(one, old)
    rows = DeltaTable(target).to_pyarrow_table().to_pylist()
    assert [{one: row[one] for one in VALUES} for row in rows] == [VALUES] * 2
    [file] = DeltaTable(target).file_uris()
    types = {field.name: str(field.type) for field in pq.read_schema(file)}
    assert (types["t"], types["n"], types["d"]) == ("timestamp[us, tz=UTC]", "timestamp[us]", "date32[day]")
    columns = {pq.read_metadata(file).schema.column(k).path: pq.read_metadata(file).schema.column(k) for k in range(9)}
    assert columns["p"].physical_type == "INT32"
    assert "l.list.element" in columns


def test_a_local_time_is_added_later(spark: SparkSession, table: Path, tmp_path: Path) -> None:
    target = tmp_path / "table"
    sparkwire.merge(simple(spark, ("INSERT", 1, 1, 10)), target, "id")
    assert DeltaTable(target).protocol().min_reader_version == 1
    later = simple(spark, ("INSERT", 2, 2, 20)).withColumn("n", F.expr("array(TIMESTAMP_NTZ '2024-01-02 03:04:05')"))
    sparkwire.merge(later, target, "id")
    assert DeltaTable(target).protocol().reader_features == ["timestampNtz"]
    rows = sparkwire.merged(spark, target).orderBy("id").collect()
    assert [row["n"] for row in rows] == [None, [dt.datetime(2024, 1, 2, 3, 4, 5)]]


def content(target: Path) -> list[str]:
    return sorted(f"{path} {path.stat().st_size}" for path in target.rglob("*"))


def test_a_lost_or_short_file_is_an_error_before_anything_is_written(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "table"
    sparkwire.merge(simple(spark, ("INSERT", 1, 1, 10), ("INSERT", 2, 2, 20)), target, "id")
    [file] = map(Path, DeltaTable(target).file_uris())
    whole = file.read_bytes()
    for damage in (b"", whole[:-1], None):
        file.unlink() if damage is None else file.write_bytes(damage)
        before = content(target)
        message = (
            rf"the file .*{file.name} of .* bytes, and {len(whole)} by" if damage is not None else "has lost the file"
        )
        with pytest.raises(ValueError, match=message):
            sparkwire.merge(simple(spark, ("UPDATE", 3, 1, 11)), target, "id")
        with pytest.raises(ValueError, match=message):
            sparkwire.merged(spark, target)
        assert content(target) == before
    file.write_bytes(whole)
    sparkwire.merge(simple(spark, ("UPDATE", 3, 1, 11)), target, "id")
    assert sparkwire.merged(spark, target).where("v = 11").count() == 1


def test_a_writer_that_fails_changes_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are gone, and its merge can run again. The log has the new table, which is empty."""
    target, batch = tmp_path / "table", simple(spark, ("INSERT", 1, 1, 10))
    settings = {name: spark.conf.get(name, None) for name in merge_statement.EXACT}
    with monkeypatch.context() as patch:
        patch.setattr(merge_path, "_uri", lambda path: "file:///proc/no/place")
        with pytest.raises(Exception, match="proc"):
            sparkwire.merge(batch, target, "id")
    assert {name: spark.conf.get(name, None) for name in merge_statement.EXACT} == settings
    assert [path.name for path in target.iterdir()] == ["_delta_log"]
    assert sparkwire.merged(spark, target).count() == 0
    assert sparkwire.merge(batch, target, "id").changed == 1


def test_files_on_another_machine_are_an_error(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a local path, each machine of a cluster may have its own directory."""
    target = tmp_path / "table"

    def without_one(path: str, folder: str) -> int:
        next(Path(path, folder).glob("*.parquet")).unlink()
        return rows_in(path, folder)

    monkeypatch.setattr(merge_path, "rows_in", without_one)
    with pytest.raises(OSError, match="name a path that is the same directory on all machines of the cluster"):
        sparkwire.merge(simple(spark, ("INSERT", 1, 1, 1), ("INSERT", 2, 2, 2)), target, "id")
    assert [one.name for one in target.iterdir()] == ["_delta_log"]


def test_two_merges_at_once(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second merge commits while the first one writes its files: the first one fails, and can run again."""
    target = tmp_path / "table"
    sparkwire.merge(simple(spark, ("INSERT", 1, 1, 10)), target, "id")
    commit, other = DeltaLog.commit, simple(spark, ("UPDATE", 3, 1, 12), ("INSERT", 4, 2, 20))

    def after_another(log: DeltaLog, *arguments: Any) -> None:
        monkeypatch.setattr(DeltaLog, "commit", commit)
        sparkwire.merge(other, target, "id")
        commit(log, *arguments)

    monkeypatch.setattr(DeltaLog, "commit", after_another)
    mine = simple(spark, ("UPDATE", 2, 1, 11), ("INSERT", 5, 3, 30))
    with pytest.raises(sparkwire.errors.WriteConflictError, match=r"another job writes to .* Run this merge again"):
        sparkwire.merge(mine, target, "id")
    sparkwire.merge(mine, target, "id")
    rows = sorted((row["id"], row["v"]) for row in sparkwire.merged(spark, target).collect())
    assert rows == [(1, 12), (2, 20), (3, 30)]


def test_a_target_that_others_change_all_the_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PathTarget, "refreshed", lambda target: target.traits._replace(truncates=True))
    with pytest.raises(WriteConflictError, match="only one merge at a time may write"):
        sparkwire.merge(simple(spark, ("INSERT", 1, 1, 1)), tmp_path / "table", "id")


def test_a_table_that_merge_did_not_create(spark: SparkSession, tmp_path: Path) -> None:
    polars.DataFrame({"id": [1]}).write_delta(str(tmp_path / "table"))
    before = content(tmp_path)
    with pytest.raises(ValueError, match=r"merge did not create the table .*: name another target"):
        sparkwire.merge(simple(spark, ("INSERT", 1, 1, 10)), tmp_path / "table", "id")
    with pytest.raises(ValueError, match="has a Delta table that merge did not create"):
        sparkwire.merged(spark, tmp_path / "table")
    assert content(tmp_path) == before


def test_a_type_that_a_path_cannot_have(spark: SparkSession, tmp_path: Path) -> None:
    """`test_merge_targets` has the others."""
    changes = simple(spark, ("INSERT", 1, 1, 10)).withColumn("i", F.expr("INTERVAL '1' DAY"))
    with pytest.raises(ValueError, match="column i has the type INTERVAL DAY, which a path cannot have: cast it"):
        sparkwire.merge(changes, tmp_path / "table", "id")
    assert not (tmp_path / "table").exists()


def test_the_columns_of_a_user_keep_their_values(spark: SparkSession, tmp_path: Path) -> None:
    """No change has such a column. One that changes had before is NULL, if they do not have it any more."""
    target = tmp_path / "customers"
    first = simple(spark, ("INSERT", 1, 1, 10), ("INSERT", 2, 2, 20)).withColumn("dropped", F.lit("x"))
    sparkwire.merge(first, target, "id")
    table = DeltaTable(target)
    table.alter.add_columns([Field("remark", PrimitiveType("string"))])
    table.update(updates={"remark": "'of a user'"})
    result = sparkwire.merge(simple(spark, ("UPDATE", 3, 1, 11), ("INSERT", 4, 3, 30)), target, "id")
    assert result == MergeResult(rows=2, changed=2, late=0, errors=0)
    rows = {row["id"]: (row["v"], row["remark"], row["dropped"]) for row in sparkwire.merged(spark, target).collect()}
    assert rows == {1: (11, "of a user", None), 2: (20, "of a user", "x"), 3: (30, None, None)}
    sparkwire.merge(simple(spark, ("TRUNCATE", 5, None, None), ("INSERT", 6, 1, 12)), target, "id")
    [row] = sparkwire.merged(spark, target).collect()
    assert (row["v"], row["remark"]) == (12, "of a user")


@pytest.mark.parametrize("count", [0, 10])
def test_the_job_that_reads_the_rows_computes_the_aggregate(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(merge_path, "_PATIENCE", 60)
    metrics: list[dict[str, Any]] = []
    read = merge_path._metrics

    def seen(observation: Observation) -> dict[str, Any]:
        metrics.append(read(observation))
        return metrics[-1]

    monkeypatch.setattr(merge_path, "_metrics", seen)
    rows = spark.range(count)
    counted = merge_path.Observed.of(rows, F.max("id"))
    stored = checkpointed(counted.rows)
    last = counted.result(rows)
    assert metrics == [{"aggregate": last}]
    assert last == (count - 1 if count else None)
    assert stored.count() == count


def test_a_metric_that_does_not_arrive_is_computed_again(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    never = Event()
    monkeypatch.setattr(merge_path, "_PATIENCE", 0.1)
    monkeypatch.setattr(Observation, "get", property(lambda _: never.wait()))
    try:
        rows = checkpointed(spark.range(10).withColumn("r", F.rand()))
        counted = merge_path.Observed.of(rows, F.sum("r"))
        counted.rows.collect()
        assert counted.result(rows) == rows.agg(F.sum("r")).collect()[0][0]
    finally:
        never.set()
