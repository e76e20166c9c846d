"""Compare the current table with a dictionary, for random histories that are shuffled and repeated."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from random import Random

import pyarrow as pa
import pyspark.sql.functions as F
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from tests.support.change_history import SCHEMA, ChangeHistory, as_table

FORMS = {
    "plain": {"moves": False, "lacks": False},
    "truncates": {"truncates": True, "lacks": False},
    "lacking values": {"truncates": False},
    "everything": {"truncates": True},
}


def history(form: str, seed: int, steps: int = 600) -> ChangeHistory:
    return ChangeHistory(Random(seed), **FORMS[form]).run(steps)


def frame(spark: SparkSession, some: ChangeHistory) -> DataFrame:
    return spark.createDataFrame(some.delivered(), SCHEMA).repartition(3)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(2))
def test_current_equals_the_dictionary(spark: SparkSession, form: str, seed: int) -> None:
    some = history(form, seed)
    rows = sparkwire.current(frame(spark, some)).collect()
    assert as_table(rows) == some.table
    assert {(row["shop"], row["id"]): row["_order_"] for row in rows} == {key: some.written[key] for key in some.table}
    if form != "plain":
        assert any(change[-3] for change in some.changes) or not FORMS[form].get("lacks", True)


@pytest.mark.parametrize("seed", range(2))
def test_as_of_an_order(spark: SparkSession, seed: int) -> None:
    some = history("everything", 100 + seed)
    order, table = some.points[300 + 100 * seed]
    rows = sparkwire.current(frame(spark, some), until=order).collect()
    assert as_table(rows) == table


def test_as_of_a_time(spark: SparkSession) -> None:
    rows = [("INSERT", 1, datetime(2024, 1, 1), 7), ("DELETE", 2, datetime(2024, 1, 3), 7)]
    changes = spark.createDataFrame(rows, "_op_ STRING, _order_ INT, _time_ TIMESTAMP, id INT")
    for time, there in (("2023-12-31", 0), (datetime(2024, 1, 1), 1), ("2024-01-02 23:59", 1), ("2024-01-03", 0)):
        assert sparkwire.current(changes, "id", as_of=time).count() == there


def test_an_order_with_parts(spark: SparkSession) -> None:
    """The orders of Databus and DataHub."""
    schema = "_op_ STRING, _order_ STRUCT<scn: BIGINT, file: STRING, position: BIGINT>, id INT, v STRING"
    rows = [
        ("UPSERT", (10, "a", 900), 1, "first"),
        ("UPSERT", (10, "b", 1), 1, "again"),
        ("DELETE", (11, "b", 2), 1, None),
    ]
    changes = spark.createDataFrame(rows[::-1], schema)
    for order, there in ((9, []), ((10, "a"), ["first"]), (10, ["again"]), ({"scn": 10}, ["again"]), (11, [])):
        assert [row["v"] for row in sparkwire.current(changes, "id", until=order).collect()] == there
    numbers = spark.createDataFrame(
        [("INSERT", (2, "99"), 1, "x"), ("DELETE", (3, "100"), 1, None)],
        "_op_ STRING, _order_ STRUCT<digits: INT, number: STRING>, id INT, v STRING",
    )
    assert [sparkwire.current(numbers, "id", until=n).count() for n in (98, "99", 99, 100)] == [0, 1, 1, 0]
    with pytest.raises(ValueError, match="expected until to be an order with the parts scn, file, position"):
        sparkwire.current(changes, "id", until=(1, "a", 2, 3))


def test_a_wrong_table_or_key_gives_a_clear_error(spark: SparkSession) -> None:
    plain = spark.range(1)
    with pytest.raises(
        ValueError, match=r"current\(\) expected a DataFrame of sparkwire\.changes, got one without a column _op_"
    ):
        sparkwire.current(plain, "id")
    changes = plain.select("id", F.lit("INSERT").alias("_op_"), F.lit(1).alias("_order_"))
    with pytest.raises(ValueError, match=r"the key of the table is not known: pass keys="):
        sparkwire.current(changes)
    with pytest.raises(ValueError, match="expected keys among the columns id, got nr"):
        sparkwire.current(changes, ["nr"])
    untold = changes.withColumn("_keys_", F.lit(None).cast("ARRAY<STRING>"))
    with pytest.raises(ValueError, match="no message names the primary key"):
        sparkwire.current(untold)
    reported = changes.withColumn("_keys_", F.array(F.lit("id")))
    assert sparkwire.current(reported).count() == 1
    with pytest.raises(ValueError, match="messages name different primary keys"):
        sparkwire.current(reported.union(changes.withColumn("_keys_", F.array(F.lit("nr")))))
    stream = (
        spark.readStream.format("rate").load().select("value", F.lit("INSERT").alias("_op_"), F.lit(1).alias("_order_"))
    )
    with pytest.raises(ValueError, match="expected a batch, got a stream"):
        sparkwire.current(stream, "value")


@pytest.mark.parametrize("op", ["INSERT", "DELETE"])
@pytest.mark.parametrize("unavailable", ["NULL", "array('name')"])
def test_two_tables_are_an_error(spark: SparkSession, op: str, unavailable: str) -> None:
    """Also if values are missing, and two branches of the query read the changes, and if the result would be empty."""
    rows = [(op, 1, "a.orders", 1), (op, 2, "b.orders", 2)]
    changes = spark.createDataFrame(rows, "_op_ STRING, _order_ INT, _table_ STRING, id INT")
    changes = changes.selectExpr("*", "'x' AS name", f"CAST({unavailable} AS ARRAY<STRING>) AS _unavailable_")
    with pytest.raises(PySparkException, match=r"the changes are of two tables, [ab]\.orders and another: filter"):
        sparkwire.current(changes, "id").collect()
    assert sparkwire.current(changes.where("_table_ = 'a.orders'"), "id").count() == (op == "INSERT")


@pytest.mark.parametrize(
    ("form", "dropped", "times"),
    [
        ("plain", ["_unavailable_", "_before_"], 1),
        ("plain", ["_table_"], 1),
        ("truncates", [], 1),
        ("everything", [], 1),
    ],
)
def test_changes_are_read_once(spark: SparkSession, tmp_path: Path, form: str, dropped: list[str], times: int) -> None:
    """This holds even if values are missing, and the history of a key is needed."""
    frame(spark, history(form, 7, 100)).write.parquet(f"{tmp_path}/changes")
    changes, note = spark.read.parquet(f"{tmp_path}/changes").coalesce(1), tmp_path / "reads"

    def noted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with note.open("a") as file:
            file.write("read\n")
        yield from batches

    read = changes.mapInArrow(noted, changes.schema)
    sparkwire.current(read.drop(*dropped), ["shop", "id"]).collect()
    assert note.read_text().splitlines() == ["read"] * times


def test_two_tables_whose_last_rows_are_of_one_table(spark: SparkSession) -> None:
    rows = [("INSERT", 1, "a.orders", 1), ("INSERT", 2, "b.orders", 1)]
    changes = spark.createDataFrame(rows, "_op_ STRING, _order_ INT, _table_ STRING, id INT")
    with pytest.raises(PySparkException, match=r"the changes are of two tables, [ab]\.orders and another: filter"):
        sparkwire.current(changes, "id").collect()


def test_rows_without_the_name_of_their_table(spark: SparkSession) -> None:
    """As tombstones are: they count for the same keys."""
    rows = [
        ("INSERT", 1, "orders", 1),
        ("DELETE", 2, None, 1),
        ("INSERT", 1, None, 2),
        ("UPDATE", 2, "orders", 2),
        ("READ", 3, None, 3),
        ("READ", 3, "orders", 3),
    ]
    changes = spark.createDataFrame(rows, "_op_ STRING, _order_ INT, _table_ STRING, id INT")
    result = sparkwire.current(changes, "id").collect()
    assert sorted((row["id"], row["_order_"]) for row in result) == [(2, 2), (3, 3)]


def test_of_two_rows_with_one_order_the_complete_one_counts(spark: SparkSession) -> None:
    """Otherwise the last rows and the history could take different ones, and the key would be lost."""
    rows: list[tuple[str, int, int, str | None, list[str] | None]] = []
    for id in range(100):
        pair = [("UPDATE", 2, id, f"new {id}", None), ("UPDATE", 2, id, None, ["name"])]
        rows += [("INSERT", 1, id, "old", None), *(pair if id % 2 else pair[::-1])]
    changes = spark.createDataFrame(rows, "_op_ STRING, _order_ INT, id INT, name STRING, _unavailable_ ARRAY<STRING>")
    result = sparkwire.current(changes, "id").collect()
    assert {row["id"]: row["name"] for row in result} == {id: f"new {id}" for id in range(100)}


def test_columns_named_as_those_of_the_query(spark: SparkSession) -> None:
    names = ["gone", "time", "table", "row", "at", "a `quoted` name"]
    values, fields = [f"value of {name}" for name in names], [F.lit(name).alias(name) for name in names]
    moved = spark.range(1).select(
        F.lit("UPDATE").alias("_op_"),
        F.lit(2).alias("_order_"),
        F.struct(F.lit(1).alias("id"), *fields).alias("_before_"),
        F.lit(3).alias("id"),
        *(F.lit(value).alias(name) for name, value in zip(names, values, strict=True)),
    )
    [row] = sparkwire.current(moved, "id").collect()
    assert list(row) == [3, *values, 2, None]
