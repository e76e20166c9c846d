"""Keep a table at a path up to date, with late and repeated changes, and after failures."""

from __future__ import annotations

import logging
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyspark.sql.functions as F
import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from sparkwire.changes.delta_log import DeltaLog
from sparkwire.spark.changes.merge import MergeResult
from tests.support import system_messages as m
from tests.support.change_history import (
    FORMS,
    MESSAGES,
    ONE_MESSAGE,
    SCHEMA,
    ChangeHistory,
    Log,
    as_table,
    change_row,
    delivered,
    reported,
)
from tests.support.merge_batches import SIMPLE, cut, frame, noted, simple

pytestmark = pytest.mark.usefixtures("interpreted")

LATE = "ignore:all .* keys of .* are late"


def values(spark: SparkSession, target: Path) -> list[tuple[Any, ...]]:
    return sorted((row["id"], row["v"]) for row in sparkwire.merged(spark, target).collect())


def content(target: Path) -> list[str]:
    return sorted(str(path) for path in target.rglob("*"))


def middle_of_a_move(changes: list[Any]) -> int:
    """The position between the two messages of a change of a key that lacks values, near the middle of the changes."""
    places = [
        at
        for at in range(1, len(changes))
        if changes[at - 1][1] == "DELETE"
        and changes[at][-4]
        and changes[at][7]
        and changes[at][7][:2] == changes[at - 1][8:10]
    ]
    return min(places, key=lambda at: abs(at - len(changes) // 2))


@pytest.mark.parametrize(("deletes", "form"), list(zip(["remove", "keep"] * 2, FORMS, strict=True)))
def test_batches_in_any_order(spark: SparkSession, tmp_path: Path, deletes: Any, form: str) -> None:
    """Changes are shuffled over all batches, including changes of keys and TRUNCATEs."""
    history = ChangeHistory(Random(11), truncates=True, lacks=False).run(300)
    target = tmp_path / "table"
    for batch in cut(delivered(history, form), 3):
        sparkwire.merge(frame(spark, batch), target, deletes=deletes)
    rows = sparkwire.merged(spark, target)
    kept = rows if deletes == "remove" else rows.where("NOT _deleted_")
    assert as_table(kept.collect()) == history.table
    if deletes == "keep":
        assert rows.where("_deleted_").count() > 10


def test_missing_values_stay(spark: SparkSession, tmp_path: Path) -> None:
    """Also those of a row whose key changes between two batches. One batch is repeated later."""
    history = ChangeHistory(Random(12)).run(400)
    changes = reported(history)
    target, half = tmp_path / "table", middle_of_a_move(changes)
    first, second = changes[:half], changes[half:]
    for batch in (first, second, first):
        shuffled = list(batch)
        Random(len(batch)).shuffle(shuffled)
        sparkwire.merge(frame(spark, shuffled), target)
    assert as_table(sparkwire.merged(spark, target).collect()) == history.table


@pytest.mark.parametrize(("form", "truncates"), [(ONE_MESSAGE, False), (MESSAGES, False), (MESSAGES, True)])
def test_repeated_messages(spark: SparkSession, tmp_path: Path, form: str, truncates: bool) -> None:
    """A connector sends messages again, when rows have other keys, and their keys have other rows.

    A TRUNCATE ends all rows, so then there is one history, in one partition.
    """
    random, model, partitions = Random(14), dict[Any, Any](), list[list[Any]]()
    for number in range(1 if truncates else 10):
        history = ChangeHistory(random, truncates, number=number, shops=2, move_anywhere=form == MESSAGES)
        history.run(1000 if truncates else 100)
        log = Log(random, form, [1 if truncates else random.choice([1, 2, 3])], repeats=True).write(history.changes)
        partitions += [[change_row(one) for one in log.messages if one.partition == own] for own in range(3)]
        model |= history.table
    ends = [[0, *sorted(random.choices(range(len(own) + 1), k=2)), len(own)] for own in partitions]
    for batch in range(3):
        rows = [row for own, cuts in zip(partitions, ends, strict=True) for row in own[cuts[batch] : cuts[batch + 1]]]
        random.shuffle(rows)
        sparkwire.merge(frame(spark, rows), tmp_path / "table")
    assert as_table(sparkwire.merged(spark, tmp_path / "table").collect()) == model


def test_a_stream_that_fails_and_continues(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The failed batch is repeated: it failed before its version was committed, and after."""
    history = ChangeHistory(Random(13), truncates=True, lacks=False).run(200)
    for batch in cut(reported(history), 4):
        frame(spark, batch).coalesce(1).write.mode("append").parquet(f"{tmp_path}/changes")
    stream = noted(spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/changes"))
    commit, calls = DeltaLog.commit, iter(["before", "well", "after", *["well"] * 9])

    def failing(log: DeltaLog, *arguments: Any) -> DeltaLog:
        how = next(calls)
        if how == "before":
            raise OSError("no space left")
        committed = commit(log, *arguments)
        if how == "after":
            raise OSError("the process ends")
        return committed

    monkeypatch.setattr(DeltaLog, "commit", failing)
    failures = 0
    with caplog.at_level(logging.INFO, "sparkwire"):
        for _ in range(3):
            query = sparkwire.merge(
                stream,
                tmp_path / "table",
                ["shop", "id"],
                checkpoint=tmp_path / "checkpoint",
                trigger={"availableNow": True},
            )
            try:
                query.awaitTermination()
            except PySparkException:
                failures += 1
    assert failures == 2
    assert as_table(sparkwire.merged(spark, tmp_path / "table").collect()) == history.table
    assert f"merged batch 3 into {tmp_path}/table: MergeResult(rows=" in caplog.text


def test_a_stream_logs_a_new_column_once(spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    schema = SIMPLE + ", _unexpected_ MAP<STRING, STRING>"
    for order, unexpected in (
        (1, None),
        (2, {"colour": "red", "before.colour": "blue", "v": "x"}),
        (3, {"colour": "red"}),
    ):
        row = ("UPDATE", (0, 0, order), "t", 1, None, unexpected)
        spark.createDataFrame([row], schema).coalesce(1).write.mode("append").parquet(f"{tmp_path}/changes")
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/changes")
    with caplog.at_level(logging.WARNING, "sparkwire"):
        sparkwire.merge(
            stream, tmp_path / "table", "id", checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True}
        ).awaitTermination()
    assert caplog.text.count("messages have columns that") == 1
    assert f"{tmp_path}/table does not have: colour. Their texts are in _unexpected_" in caplog.text
    [row] = sparkwire.merged(spark, tmp_path / "table").collect()
    assert row["_unexpected_"] == {"colour": "red"}


def test_a_stream_whose_target_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    target, checkpoint = tmp_path / "table", tmp_path / "checkpoint"

    def merge(order: int) -> None:
        simple(spark, ("INSERT", order, order, order)).coalesce(1).write.mode("append").parquet(f"{tmp_path}/changes")
        stream = spark.readStream.schema(SIMPLE).parquet(f"{tmp_path}/changes")
        sparkwire.merge(stream, target, "id", checkpoint=checkpoint, trigger={"availableNow": True}).awaitTermination()

    merge(1)
    target.rename(tmp_path / "moved")
    with pytest.raises(PySparkException, match="does not exist, and the stream has merged batches into it: restore it"):
        merge(2)
    assert not target.exists()


def test_old_versions_stay_for_time_travel(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative paths start at Python's directory."""
    target = tmp_path / "table"
    monkeypatch.chdir(tmp_path)
    sparkwire.merge(simple(spark, ("INSERT", 1, 1, 10), ("INSERT", 1, 3, 3)), "./table", "id")
    first = DeltaTable(target).version()
    sparkwire.merge(simple(spark, ("UPDATE", 2, 1, 20), ("INSERT", 3, 2, 30), ("DELETE", 4, 3, None)), target, "id")
    assert DeltaTable(target).version() == first + 1
    for version, expected in ((first, [3, 10]), (first + 1, [20, 30])):
        rows = DeltaTable(target, version).to_pyarrow_table().to_pylist()
        assert sorted(row["v"] for row in rows if not row["_deleted_"]) == expected
    assert sparkwire.merged(spark, target).columns == ["id", "v", "_order_", "_time_"]


def test_a_repeated_batch_makes_no_version(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "table"
    batch = simple(spark, ("INSERT", 1, 1, 10), ("DELETE", 2, 2, None))
    sparkwire.merge(batch, target, "id")
    before = content(target)
    assert sparkwire.merge(batch, target, "id") == MergeResult(rows=2, changed=0, late=2, errors=0)
    assert content(target) == before


def test_columns_are_added_and_widen(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "table"
    sparkwire.merge(simple(spark, ("INSERT", 1, 1, 10), ("INSERT", 2, 2, 20)), target, "id")
    wider = simple(spark, ("UPDATE", 3, 1, 11)).withColumn("v", F.lit(2**40)).withColumn("note", F.lit("new"))
    sparkwire.merge(wider, target, "id")
    rows = sparkwire.merged(spark, target).orderBy("id").select("id", "v", "note").collect()
    assert [tuple(row) for row in rows] == [(1, 2**40, "new"), (2, 20, None)]
    sparkwire.merge(simple(spark, ("UPDATE", 4, 2, 21)), target, "id")
    rows = sparkwire.merged(spark, target).orderBy("id").select("id", "v", "note").collect()
    assert [tuple(row) for row in rows] == [(1, 2**40, "new"), (2, 21, None)]
    before = content(target)
    with pytest.raises(ValueError, match=r"column v of .* is BIGINT, and the changes have STRING: cast it"):
        sparkwire.merge(simple(spark, ("UPDATE", 5, 1, 1)).withColumn("v", F.lit("x")), target, "id")
    assert content(target) == before


def messages(spark: SparkSession, *values: Any) -> DataFrame:
    """Records of one partition, with the offsets that are given."""
    rows = [(at, 0, m.text(KEY), m.text(value)) for at, value in values]
    return spark.createDataFrame(rows, "offset LONG, partition INT, key BINARY, value BINARY")


KEY, NEW_ROW = {"id": 1}, {"id": 1, "name": "ochre"}
DROPPED: dict[str, tuple[Any, Any, Any]] = {
    "canal": (
        m.canal(),
        m.canal("UPDATE", [NEW_ROW], [{"name": "amber"}], mysqlType={"id": "int", "name": "varchar(80)"}),
        Decimal("9.50"),
    ),
    "maxwell": (m.maxwell(), m.maxwell("update", NEW_ROW, old={"name": "amber"}), Decimal("9.50")),
    "debezium": (m.envelope(), m.envelope("u", after=NEW_ROW), None),
}


@pytest.mark.parametrize("format", DROPPED)
def test_a_column_is_dropped(spark: SparkSession, tmp_path: Path, format: Any) -> None:
    """The table that is merged is that of all changes at once."""
    first, second, expected = DROPPED[format]
    target, options = tmp_path / "table", {"format": format, "table": m.TABLE, "key": "key", "keys": ["id"]}
    columns = {**m.COLUMNS, "amount": "Decimal(10,2)" if format == "debezium" else "DECIMAL(10,2)"}
    fewer = {name: type for name, type in columns.items() if name != "amount"}
    for value, known in (((1, first), columns), ((2, second), fewer)):
        sparkwire.merge(sparkwire.changes(messages(spark, value), columns=known, **options), target)
    both = sparkwire.changes(messages(spark, (1, first), (2, second)), columns=columns, **options)
    rows = [sparkwire.merged(spark, target), sparkwire.current(both)]
    assert [row[:3] for each in rows for row in each.collect()] == [(1, "ochre", expected)] * 2


@pytest.mark.filterwarnings(LATE)
def test_the_result_counts_what_happened(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "table"
    first = simple(spark, ("INSERT", 10, 1, 1), ("UPDATE", 11, 1, 2), ("INSERT", 12, 2, 3), ("DELETE", 13, 9, None))
    broken = simple(spark, ("INSERT", 14, 3, 3)).withColumn("_error_", F.lit("BAD_JSON"))
    both = first.unionByName(broken, allowMissingColumns=True)
    assert sparkwire.merge(both, target, "id") == MergeResult(rows=4, changed=3, late=0, errors=1)
    second = simple(spark, ("UPDATE", 12, 2, 3), ("UPDATE", 9, 1, 0), ("INSERT", 20, 5, 5))
    assert sparkwire.merge(second, target, "id") == MergeResult(rows=3, changed=1, late=2, errors=0)
    third = simple(spark, ("TRUNCATE", 15, None, None), ("UPDATE", 14, 1, 0))
    assert sparkwire.merge(third, target, "id") == MergeResult(rows=2, changed=2, late=0, errors=0)
    assert values(spark, target) == [(5, 5)]
    assert sparkwire.merge(simple(spark), target, "id") == MergeResult(rows=0, changed=0, late=0, errors=0)


def test_the_result_counts_each_change_once(spark: SparkSession, tmp_path: Path) -> None:
    """Also one of two keys, and those of keys whose values are missing. A row with an error has no key."""
    history = ChangeHistory(Random(12)).run(60)
    batch = frame(spark, delivered(history, ONE_MESSAGE)).where("_error_ IS NULL")
    broken = batch.limit(3).withColumn("_error_", F.lit("BAD_JSON"))
    result = sparkwire.merge(batch.unionByName(broken, allowMissingColumns=True), tmp_path / "table")
    assert (result.rows, result.errors) == (batch.count(), 3)
    assert as_table(sparkwire.merged(spark, tmp_path / "table").collect()) == history.table


def test_a_batch_without_a_readable_change(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "table"
    sparkwire.merge(simple(spark, ("INSERT", 1, 1, 1), ("INSERT", 2, None, 2)), target, "id")
    broken = simple(spark, ("DELETE", 3, 1, None), ("DELETE", 4, None, None)).withColumn("_error_", F.lit("BAD_JSON"))
    assert sparkwire.merge(broken, target, "id") == MergeResult(rows=0, changed=0, late=0, errors=2)
    assert sparkwire.merged(spark, target).count() == 2


def test_errors_beside_a_row_without_a_key_whose_values_are_missing(spark: SparkSession, tmp_path: Path) -> None:
    lacking = simple(spark, ("UPDATE", 1, None, None)).withColumn("_unavailable_", F.array(F.lit("v")))
    broken = simple(spark, ("UPDATE", 2, None, 3)).withColumn("_error_", F.lit("BAD_JSON"))
    result = sparkwire.merge(lacking.unionByName(broken, allowMissingColumns=True), tmp_path / "table", "id")
    assert result == MergeResult(rows=1, changed=1, late=0, errors=1)


def test_the_name_of_a_table_whose_last_messages_have_none(spark: SparkSession, tmp_path: Path) -> None:
    target, changes = tmp_path / "table", simple(spark, ("DELETE", 1, 1, None), ("DELETE", 2, 1, None))
    sparkwire.merge(changes.withColumn("_table_", F.expr("if(_order_.offset = 1, 't', NULL)")), target, "id")
    with pytest.raises(ValueError, match="the changes are of two tables, t and u"):
        sparkwire.merge(changes.withColumn("_table_", F.lit("u")), target, "id")


def test_a_key_with_changes_of_two_tables(spark: SparkSession, tmp_path: Path) -> None:
    changes = simple(spark, ("INSERT", 1, 1, 1), ("UPDATE", 2, 1, 2))
    changes = changes.withColumn("_table_", F.expr("if(_op_ = 'INSERT', 't', 'u')"))
    with pytest.raises(ValueError, match="the changes are of two tables, t and u"):
        sparkwire.merge(changes, tmp_path / "table", "id")


def test_a_batch_that_is_late_as_a_whole_warns(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not if it is a repetition, or was written before the table's rows."""
    target = tmp_path / "table"

    def at(time: str, *rows: Any) -> DataFrame:
        return simple(spark, *rows).withColumn("_time_", F.lit(time).cast("timestamp"))

    old = at("2024-01-01", ("INSERT", 50, 1, 1), ("INSERT", 51, 2, 2))
    for batch in (old, at("2024-01-02", ("UPDATE", 60, 1, 3), ("UPDATE", 61, 2, 4)), old):
        sparkwire.merge(batch, target, "id")  # warnings are errors in the tests
    with pytest.warns(UserWarning, match="all 2 keys of .*table are late: .* pass a greater epoch"):
        result = sparkwire.merge(at("2024-01-03", ("INSERT", 0, 1, 7), ("INSERT", 1, 2, 8)), target, "id")
    assert result == MergeResult(rows=2, changed=0, late=2, errors=0)
    assert "all 2 keys of" in caplog.text
    assert values(spark, target) == [(1, 3), (2, 4)]
    sparkwire.merge(at("2024-01-03", ("INSERT", (1, 0, 0), 1, 7)), target, "id")
    assert values(spark, target) == [(1, 7), (2, 4)]


def test_orders_of_two_partitions_are_an_error_and_nothing_is_written(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "table"
    sparkwire.merge(simple(spark, ("INSERT", 5, 1, 1), ("INSERT", (0, 1, 1), 2, 2)), target, "id")
    before = content(target)
    key = 'the changes of the key {"id":1} are in the partitions'
    for batch, message in (
        (
            [("UPDATE", (0, 1, 9), 1, 9)],
            rf"{key} 0 and 1 of epoch 0, .*: pass .* a greater epoch .*, or order=.source.",
        ),
        ([("UPDATE", 6, 1, 9), ("UPDATE", (0, 1, 9), 1, 9)], key),
        ([("TRUNCATE", 9, None, None)], r'TRUNCATE and the changes of the key {"id":2} are in the partitions 1 and 0'),
    ):
        with pytest.raises(ValueError, match=message.replace("{", r"\{")):
            sparkwire.merge(simple(spark, *batch, ("INSERT", 7, 3, 3)), target, "id")
    assert content(target) == before
    sparkwire.merge(simple(spark, ("TRUNCATE", (1, 0, 1), None, None)), target, "id")
    with pytest.raises(
        ValueError, match=r'TRUNCATE and the changes of the key \{"id":7\} are in the partitions 1 and 0'
    ):
        sparkwire.merge(simple(spark, ("INSERT", (1, 1, 5), 7, 7)), target, "id")
    with pytest.raises(ValueError, match="the changes of TRUNCATE are in the partitions 0 and 1 of epoch 1"):
        sparkwire.merge(simple(spark, ("TRUNCATE", (1, 1, 5), None, None)), target, "id")


@pytest.mark.filterwarnings(LATE)
@pytest.mark.parametrize(
    "batches",
    [
        [[("INSERT", 5, 1, 1)], [("TRUNCATE", (1, 0, 1), None, None)], [("UPDATE", (0, 1, 9), 1, 2)]],
        [[("INSERT", 5, 1, 1), ("UPDATE", (0, 1, 9), 1, 2), ("TRUNCATE", (1, 0, 1), None, None)]],
        [[("INSERT", 5, 1, 1)], [("UPDATE", (0, 1, 9), 1, 2), ("TRUNCATE", (1, 0, 1), None, None)]],
    ],
)
def test_partitions_of_an_epoch_before_the_last_truncate_are_no_error(
    spark: SparkSession, tmp_path: Path, batches: list[Any]
) -> None:
    for rows in [*batches, [("INSERT", (1, 0, 2), 2, 2)]]:
        sparkwire.merge(simple(spark, *rows), tmp_path / "table", "id")
    assert values(spark, tmp_path / "table") == [(2, 2)]
    changes = simple(spark, *(row for rows in batches for row in rows))
    assert sparkwire.current(changes, "id").collect() == []


def test_partitions_of_an_earlier_epoch_are_no_error_where_no_value_depends_on_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = f"{SIMPLE}, w INT, _unavailable_ ARRAY<STRING>"
    first = ("INSERT", (0, 0, 5), "t", 1, 1, 1, None)
    late = ("UPDATE", (0, 1, 9), "t", 1, 2, 2, None)
    whole, partial = ("UPDATE", (1, 1, 1), "t", 1, 3, 3, None), ("UPDATE", (1, 1, 2), "t", 1, 4, None, ["w"])
    sparkwire.merge(frame(spark, [first], schema), tmp_path / "table", "id")
    sparkwire.merge(frame(spark, [late, whole, partial], schema), tmp_path / "table", "id")
    assert [tuple(row[:3]) for row in sparkwire.merged(spark, tmp_path / "table").collect()] == [(1, 4, 3)]
    sparkwire.merge(frame(spark, [first], schema), tmp_path / "other", "id")
    with pytest.raises(ValueError, match="partitions 0 and 1 of epoch 0"):  # w of the last row depends on them
        sparkwire.merge(frame(spark, [late, partial], schema), tmp_path / "other", "id")


@pytest.mark.parametrize(
    "made",
    [
        lambda: F.split(F.col("v").cast("string"), ","),
        lambda: F.array(F.lit("a")),
        lambda: F.create_map(F.lit("a"), F.col("v")),
        lambda: F.struct(F.coalesce("v", F.lit(0)).alias("x")),
    ],
)
def test_items_that_are_never_null(spark: SparkSession, tmp_path: Path, made: Any) -> None:
    """Spark knows it of such columns, and not of those of the table."""
    for at in (1, 2):
        sparkwire.merge(simple(spark, ("INSERT", at, at, at)).withColumn("v", made()), tmp_path / "table", "id")
    assert sparkwire.merged(spark, tmp_path / "table").count() == 2


def test_another_order_than_the_target_has(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "table"
    options: dict[str, Any] = {"format": "maxwell", "table": m.TABLE, "columns": m.COLUMNS, "keys": ["id"]}
    value = m.maxwell(position="binlog.000001:5", xoffset=0)
    sparkwire.merge(sparkwire.changes(messages(spark, (1, value)), **options), target)
    with pytest.raises(
        ValueError, match=r"has the order \(epoch, partition, offset\), and .* \(epoch, log, position, "
    ):
        sparkwire.merge(sparkwire.changes(messages(spark, (2, value)), order="source", **options), target)


def test_a_truncate_that_names_a_key_is_no_row_of_it(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "table"
    for rows in ([("INSERT", 1, 1, 1)], [("TRUNCATE", 2, 1, None), ("TRUNCATE", 3, 2, None)], [("INSERT", 4, 1, 4)]):
        sparkwire.merge(simple(spark, *rows), target, "id")
    assert values(spark, target) == [(1, 4)]


def test_orders_of_two_topics_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    target, topic = tmp_path / "table", {"sparkwire.topic": "topic"}

    def of(name: str, *rows: Any) -> DataFrame:
        return simple(spark, *rows).withColumn("topic", F.lit(name)).withMetadata("_order_", topic)

    sparkwire.merge(of("a", ("INSERT", 5, 1, 1)), target, "id")
    sparkwire.merge(of("b", ("INSERT", 1, 2, 2)), target, "id")  # another key
    with pytest.raises(ValueError, match=r'the changes of the key \{"id":1\} are in the topics a and b of epoch 0'):
        sparkwire.merge(of("b", ("UPDATE", 9, 1, 9)), target, "id")
    sparkwire.merge(of("b", ("UPDATE", (1, 0, 0), 1, 9)), target, "id")
    assert values(spark, target) == [(1, 9), (2, 2)]
    assert "_topic_" not in sparkwire.merged(spark, target).columns


@pytest.mark.parametrize("name", ["[a]", "{a,b}", "a b*?"])
def test_a_path_is_read_literally(spark: SparkSession, tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    sparkwire.merge(simple(spark, ("INSERT", 1, 1, 1), ("DELETE", 2, 2, None)), target, "id")
    sparkwire.merge(simple(spark, ("UPDATE", 3, 1, 2), ("INSERT", 1, 2, 2)), target, "id")
    assert values(spark, target) == [(1, 2)]


def test_names_of_columns_that_merge_itself_uses(spark: SparkSession, tmp_path: Path) -> None:
    changes, target = simple(spark, ("INSERT", 1, 1, 1)), tmp_path / "table"
    for name in ("_deleted_", "_merge_", "_topic_"):
        with pytest.raises(
            ValueError,
            match=f"the table has a column {name}, and names that begin and end with _ are those of sparkwire's",
        ):
            sparkwire.merge(changes.withColumn(name, F.lit(1)), target, "id")
    names = ["part", "offset", "s", "t", "at", "key_0", "c0", "live", "memory", "a.b", "x`y", "_v"]
    for order in (1, 2):
        others = {name: F.lit(order) for name in names}
        sparkwire.merge(simple(spark, ("UPDATE", order, 1, 1)).withColumns(others), target, "id")
    [row] = sparkwire.merged(spark, target).collect()
    assert {name: row[name] for name in names} == dict.fromkeys(names, 2)


def test_names_of_columns_in_the_join_with_stored_rows(spark: SparkSession, tmp_path: Path) -> None:
    names = ["IS_OPEN", "is_in_batch", "batch_key_0", "is_read", "has_left"]
    for order, unavailable in ((1, []), (2, ["v"])):
        changes = simple(spark, ("UPDATE", order, 1, None if unavailable else 1))
        others = {name: F.lit(order) for name in names}
        lacking = F.lit(unavailable).cast("array<string>")
        sparkwire.merge(changes.withColumns({**others, "_unavailable_": lacking}), tmp_path / "table", "id")
    [row] = sparkwire.merged(spark, tmp_path / "table").collect()
    assert {name: row[name] for name in [*names, "v"]} == {**dict.fromkeys(names, 2), "v": 1}


def test_names_that_differ_in_case(spark: SparkSession, tmp_path: Path) -> None:
    changes, target = simple(spark, ("INSERT", 1, 1, 1)), tmp_path / "table"
    both = spark.createDataFrame([("INSERT", (0, 0, 1), "t", 1, 1, 2)], f"{SIMPLE}, V INT")
    with pytest.raises(ValueError, match=r"Spark takes the columns v and V for one: set spark.sql.caseSensitive"):
        sparkwire.merge(both, target, "id")
    sparkwire.merge(changes, target, "id")
    with pytest.raises(ValueError, match="has the column v, and the changes have V: rename it in the changes"):
        sparkwire.merge(changes.withColumnRenamed("v", "V"), target, "id")
    spark.conf.set("spark.sql.caseSensitive", "TRUE")
    try:
        with pytest.raises(ValueError, match="Delta takes the columns v and V for one: rename one"):
            sparkwire.merge(both, target, "id")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_a_table_that_does_not_exist_is_no_error_of_the_log(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="its catalog has neither Delta nor Iceberg"):
        sparkwire.merge(simple(spark, ("INSERT", 1, 1, 1)), "shop.orders", "id")
    assert "TABLE_OR_VIEW_NOT_FOUND" not in capfd.readouterr().err


def test_changes_that_cannot_be_merged_give_a_clear_error(spark: SparkSession, tmp_path: Path) -> None:
    changes, target = simple(spark, ("INSERT", 1, 1, 10)), tmp_path / "table"
    with pytest.raises(ValueError, match="the key of the table is not known: pass keys="):
        sparkwire.merge(changes, target)
    with pytest.raises(ValueError, match=r"expected deletes to be .* got 'drop'"):
        sparkwire.merge(changes, target, "id", deletes="drop")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="expected a stream for checkpoint and trigger, got a batch"):
        sparkwire.merge(changes, target, "id", checkpoint="/c")
    spark.range(3).write.parquet(str(target))
    with pytest.raises(ValueError, match=r"the directory .* has .*, and no log of a Delta table"):
        sparkwire.merge(changes, target, "id")
    other = tmp_path / "other"
    sparkwire.merge(changes, other, "id")
    with pytest.raises(ValueError, match="has the key id, and the changes have v"):
        sparkwire.merge(changes, other, "v")
    with pytest.raises(ValueError, match='was made with deletes="remove"'):
        sparkwire.merge(changes, other, "id", deletes="keep")
    with pytest.raises(ValueError, match="the changes are of two tables, t and u"):
        sparkwire.merge(changes.withColumn("_table_", F.lit("u")), other, "id")
    with pytest.raises(
        ValueError, match="the table no_such_table does not exist, and its catalog has neither Delta nor Iceberg"
    ):
        sparkwire.merge(changes, "no_such_table", "id")
    with pytest.raises(ValueError, match=r"merge\(\) expected a path, or the name of a table .* got shop\.\.x"):
        sparkwire.merge(changes, "shop..x", "id")
    with pytest.raises(ValueError, match="has no table of merge yet"):
        sparkwire.merged(spark, tmp_path / "none")
    assert sparkwire.merged(spark, other).count() == 1
