"""The current table: compared with a model for random histories, and what decides, or must not decide."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pyspark.sql.functions as F
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

import sparkwire
from sparkwire.changes.columns import NEVER, TOPIC
from tests.support import system_messages as m
from tests.support.change_history import (
    CORRUPT,
    FLATTENED,
    FORMS,
    MESSAGES,
    ONE_MESSAGE,
    ChangeHistory,
    Log,
    as_table,
    change_row,
    unknown_values,
)
from tests.support.merge_batches import frame

ORDER = "STRUCT<epoch: INT, partition: INT, offset: BIGINT>"
LOGS = "STRUCT<epoch: INT, log: STRING, lsn: STRING, position: BIGINT, sub_position: BIGINT, row: BIGINT>"
SIMPLE = "_op_ STRING, _order_ {order}, id INT, v STRING"
FULL = (
    f"_op_ STRING, _order_ {ORDER}, _time_ TIMESTAMP, _before_ STRUCT<id: INT, v: STRING, w: STRING>, "
    "id INT, v STRING, w STRING, _unavailable_ ARRAY<STRING>, _unexpected_ MAP<STRING, STRING>, _event_ STRING"
)


def simple(spark: SparkSession, *rows: tuple[Any, ...], order: str = ORDER) -> DataFrame:
    return spark.createDataFrame(rows, SIMPLE.format(order=order)).coalesce(1)


def full(spark: SparkSession, *changes: dict[str, Any]) -> DataFrame:
    """Changes by name: ``op``, ``at``, ``id`` and the others of `FULL`."""
    names = ("op", "at", "time", "before", "id", "v", "w", "unavailable", "unexpected", "event")
    return spark.createDataFrame([tuple(change.get(name) for name in names) for change in changes], FULL).coalesce(1)


def values(df: DataFrame, *names: str) -> dict[Any, Any]:
    """The values of columns by the key ``id``; of one column alone its value."""
    rows = [(row["id"], tuple(row[name] for name in names)) for row in df.collect()]
    assert len(dict(rows)) == len(rows)
    return {key: value[0] if len(names) == 1 else value for key, value in rows}


# ---------------------------------------------------------------- random histories


def histories(seed: int, number: int = 24) -> tuple[list[Any], dict[Any, Any], dict[Any, Any]]:
    """The changes of several histories, their tables, and the orders of their rows."""
    rows: list[Any] = [CORRUPT]
    model: dict[Any, Any] = {}
    orders: dict[Any, Any] = {}
    for k in range(number):
        random, form = Random(1000 * seed + k), FORMS[k % len(FORMS)]
        partitions = [random.choice([1, 2, 3, 4]) for _ in range(random.choice([1, 2, 3]))]
        shops = 40 if form == FLATTENED else random.choice([2, 40])
        history = ChangeHistory(random, number=k, null_keys=k % 3 == 0, move_anywhere=k % len(FORMS) > 1, shops=shops)
        log = Log(random, form, partitions, repeats=k % 2 == 0 or k % 5 == 0)
        log.write(history.run(random.choice([30, 100, 200])).changes)
        rows += map(change_row, log.delivered())
        model |= history.table
        last = log.orders()
        orders |= {key: last[key] for key in history.table}
    return rows, model, orders


@pytest.mark.parametrize("seed", range(2))
def test_current_equals_the_model(spark: SparkSession, seed: int) -> None:
    """With partitions, epochs, changes of keys in four forms, NULL in keys, repeated messages, and missing values."""
    rows, model, orders = histories(seed)
    found = sparkwire.current(frame(spark, rows).repartition(3)).collect()
    # Flattened messages do not identify a change of the key, so its values are unknown.
    flattened = {number for number in range(24) if FORMS[number % len(FORMS)] == FLATTENED}
    assert {
        int(key[1][:-1] if key[1] else (key[0] or 0) // 1000) for key, _ in unknown_values(found, model)
    } <= flattened
    assert {(row["shop"], row["id"]): tuple(row["_order_"]) for row in found} == orders
    shops, old_rows = [row[8] for row in rows], [row[7] for row in rows if row[7]]
    assert None in shops
    assert any(old[0] is None for old in old_rows)


def test_truncates_and_until(spark: SparkSession) -> None:
    """Of one history, because a TRUNCATE ends all rows. Its topic has one partition, and is made anew once."""
    random = Random(5)
    history, log = ChangeHistory(random, truncates=True, null_keys=True), Log(random, MESSAGES, (1, 1), repeats=True)
    tables: list[dict[Any, Any]] = []
    for _ in range(400):
        history.step()
        tables += [dict(history.table)] * (len(history.changes) - len(tables))
    log.write(history.changes)
    assert sum(change.op == "TRUNCATE" for change in history.changes) > 2
    changes = frame(spark, [change_row(message) for message in log.delivered()]).cache()
    assert as_table(sparkwire.current(changes).collect()) == history.table
    for number in (120, 350):
        epoch, _, offset = log.messages[log.points[number] - 1][:3]
        until = {"epoch": epoch, "offset": offset}
        assert as_table(sparkwire.current(changes, until=until).collect()) == tables[number]
    changes.unpersist()


# ---------------------------------------------------------------- what is compared

IN_TWO = r"are in the partitions {} and {} of epoch {}, which have no common order: .* a greater epoch .* or order=\"source\""
UNCLEAR: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "a key": (
        r'the changes of the key \{"id":1\} ' + IN_TWO.format(0, 1, 7),
        [("INSERT", (7, 0, 5), 1, "a"), ("DELETE", (7, 1, 1), 1, None), ("INSERT", (6, 2, 5), 1, "old")],
    ),
    "a TRUNCATE": (
        r'a TRUNCATE and the row of the key \{"id":1\} ' + IN_TWO.format(1, 0, 0),
        [("INSERT", (0, 0, 5), 1, "a"), ("TRUNCATE", (0, 1, 1), None, None)],
    ),
    "an earlier TRUNCATE": (
        "two TRUNCATEs " + IN_TWO.format(0, 1, 3),
        [("TRUNCATE", (3, 0, 4), None, None), ("TRUNCATE", (3, 1, 9), None, None), ("INSERT", (3, 1, 10), 1, "a")],
    ),
    "a second TRUNCATE": (
        r"a TRUNCATE and the row of the key .* " + IN_TWO.format(1, 0, 3),
        [("INSERT", (3, 0, 5), 1, "a"), ("TRUNCATE", (3, 0, 4), None, None), ("TRUNCATE", (3, 1, 9), None, None)],
    ),
}


@pytest.mark.parametrize("what", UNCLEAR)
def test_two_partitions_are_never_compared(spark: SparkSession, what: str) -> None:
    """Also if the query needs no column of the changes, and if no row would be left."""
    message, rows = UNCLEAR[what]
    for some in (rows, rows[::-1]):
        with pytest.raises(PySparkException, match=message) as error:
            sparkwire.current(simple(spark, *some), "id").count()
    assert str(error.value).splitlines()[0].count("or order=") == 1


def test_an_old_key_in_another_partition(spark: SparkSession) -> None:
    """One message deletes the old key in its own partition, where the old key's rows are not."""
    insert = {"op": "INSERT", "at": (0, 0, 1), "id": 1, "v": "a"}
    moved = {"op": "UPDATE", "at": (0, 1, 1), "before": (1, None, None), "id": 2, "v": "b"}
    with pytest.raises(
        PySparkException, match=r'the changes of the key \{"id":1\} ' + IN_TWO.format("[01]", "[01]", 0)
    ):
        sparkwire.current(full(spark, insert, moved), "id").collect()
    again = {"op": "INSERT", "at": (1, 0, 0), "id": 1, "v": "c"}
    assert values(sparkwire.current(full(spark, insert, moved, again), "id"), "v") == {1: "c", 2: "b"}


def test_topics_and_logs_are_never_compared(spark: SparkSession) -> None:
    rows = [("a", "INSERT", (0, 0, 5), 1, "a"), ("b", "DELETE", (0, 0, 9), 1, None)]
    changes = spark.createDataFrame(rows, "topic STRING, " + SIMPLE.format(order=ORDER)).coalesce(1)
    assert sparkwire.current(changes.drop("topic"), "id").count() == 0  # nothing says that there are two
    marked = changes.withMetadata("_order_", {TOPIC: "topic"})
    marked = marked.selectExpr("*", "struct(id, v) AS _before_").withMetadata("_before_", {NEVER: True})
    with pytest.raises(
        PySparkException, match=r"the key \{\"id\":1\} are in the topics [ab] and [ab] of epoch 0, .*order=\"source\""
    ):
        sparkwire.current(marked, "id").collect()
    assert sparkwire.current(marked.drop("topic"), "id").count() == 0
    of_topic = marked.where("topic = 'a'").unionByName(
        marked.where("topic = 'b'").selectExpr("topic", "'TRUNCATE' AS _op_", "_order_", "null AS id", "v", "_before_")
    )
    with pytest.raises(
        PySparkException, match=r"a TRUNCATE and the row of the key .* are in the topics b and a of epoch 0"
    ):
        sparkwire.current(of_topic.withMetadata("_order_", {TOPIC: "topic"}), "id").collect()
    # The last TRUNCATE by its partition is in the first topic; the other one is in a smaller partition.
    truncates: list[tuple[Any, ...]] = [
        ("a", "TRUNCATE", (0, 1, 5), None, None),
        ("b", "TRUNCATE", (0, 0, 9), None, None),
        ("a", "INSERT", (0, 1, 7), 1, "a"),
    ]
    truncated = spark.createDataFrame(truncates, "topic STRING, " + SIMPLE.format(order=ORDER))
    with pytest.raises(PySparkException, match=r"a TRUNCATE and the row of the key .* are in the topics [ab] and [ab]"):
        sparkwire.current(truncated.withMetadata("_order_", {TOPIC: "topic"}), "id").collect()
    logs = simple(
        spark,
        ("INSERT", (0, "mysql-bin", None, 9, 0, 0), 1, "a"),
        ("UPDATE", (0, "binlog", None, 1, 0, 0), 1, "b"),
        order=LOGS,
    )
    with pytest.raises(
        PySparkException, match=r"are in the logs binlog and mysql-bin of epoch 0, .* greater epoch for the later log"
    ):
        sparkwire.current(logs, "id").collect()


def test_only_a_comparison_that_decides_counts(spark: SparkSession) -> None:
    """A later epoch supersedes the partitions and logs of an earlier one, and a snapshot's row is before every log."""
    rows = [
        *(("INSERT", (0, 0, 5), 1, "p0"), ("UPDATE", (0, 1, 5), 1, "p1"), ("UPDATE", (1, 2, 0), 1, "later")),
        *(("INSERT", (2, 0, 1), 2, "own partition"), ("INSERT", (2, 1, 1), 3, "its own")),
    ]
    assert values(sparkwire.current(simple(spark, *rows), "id"), "v") == {1: "later", 2: "own partition", 3: "its own"}
    ended = [*rows[:2], ("TRUNCATE", (1, 3, 0), None, None), *rows[3:]]
    assert values(sparkwire.current(simple(spark, *ended), "id"), "v") == {2: "own partition", 3: "its own"}
    unplaced = (0, None, None, None, None, None)
    logs = [
        *(("READ", unplaced, 1, "snapshot"), ("UPDATE", (0, "a", None, 9, 0, 0), 1, "a")),
        *(("READ", unplaced, 2, "snapshot"), ("DELETE", (0, "b", None, 1, 0, 0), 2, None)),
        *(
            ("INSERT", (0, "b", None, 9, 0, 0), 3, "b"),
            ("READ", (1, None, None, None, None, None), 3, "of the next epoch"),
        ),
        ("READ", unplaced, 4, "snapshot"),
    ]
    expected = {1: "a", 3: "of the next epoch", 4: "snapshot"}
    assert values(sparkwire.current(simple(spark, *logs, order=LOGS), "id"), "v") == expected


def test_a_truncate_ends_rows_up_to_its_order(spark: SparkSession) -> None:
    """A row with the order of the TRUNCATE is ended, as in a merged table."""
    rows = [
        ("TRUNCATE", (1, 0, 5), None, None),
        ("TRUNCATE", (1, 0, 3), None, None),
        ("TRUNCATE", (0, 1, 99), None, None),
        *(("INSERT", (1, 0, offset), offset, "x") for offset in (4, 5, 6)),
        ("INSERT", (0, 2, 100), 100, "of an earlier epoch"),
        ("DELETE", (1, 3, 1), 101, None),
    ]
    assert values(sparkwire.current(simple(spark, *rows), "id"), "v") == {6: "x"}
    numbered = [("TRUNCATE", 5, None, None), *(("INSERT", at, at, "x") for at in (4, 5, 6))]
    assert values(sparkwire.current(simple(spark, *numbered, order="INT"), "id"), "v") == {6: "x"}
    unplaced = (0, None, None, None, None, None)  # a snapshot's row is before all logs
    logs = [("READ", unplaced, 1, "snapshot"), ("TRUNCATE", (0, "a", None, 9, 0, 0), None, None)]
    assert values(sparkwire.current(simple(spark, *logs, order=LOGS), "id"), "v") == {}
    # An epoch that replaces the one before, too. Its own snapshot stays.
    after = ("INSERT", (0, "a", None, 10, 0, 0), 2, "after")
    again = ("READ", (1, None, None, None, None, None), 3, "snapshot")
    changes = simple(spark, *logs, after, again, order=LOGS)
    assert values(sparkwire.current(changes, "id"), "v") == {2: "after", 3: "snapshot"}
    replacing = changes.withMetadata("_order_", {"sparkwire.replaces_epochs": True})
    assert values(sparkwire.current(replacing, "id"), "v") == {3: "snapshot"}


def test_truncates_without_a_common_order_of_an_earlier_epoch(spark: SparkSession) -> None:
    """The later epoch is after both."""
    two = ("TRUNCATE", (3, 0, 4), None, None), ("TRUNCATE", (3, 1, 9), None, None)
    changes = simple(spark, *two, ("INSERT", (4, 0, 1), 1, "a"), ("INSERT", (2, 0, 1), 2, "b"))
    replacing = changes.withMetadata("_order_", {"sparkwire.replaces_epochs": True})
    for some in (changes, replacing):
        assert values(sparkwire.current(some, "id"), "v") == {1: "a"}


def test_until_a_number_includes_it(spark: SparkSession) -> None:
    changes = simple(spark, *(("UPDATE", at, 1, f"at {at}") for at in (1, 2, 3)), order="INT")
    assert values(sparkwire.current(changes, "id", until=2), "v") == {1: "at 2"}


def test_a_change_without_order_or_operation_is_an_error(spark: SparkSession) -> None:
    for row, message in (
        (("INSERT", None, 1, "a"), "a change has neither _order_ nor _error_"),
        (("REPLACE", (0, 0, 1), 1, "a"), "a change has the _op_ REPLACE, which is none of INSERT, UPDATE,"),
        ((None, (0, 0, 1), 1, "a"), "a change has the _op_ null, which is none of"),
    ):
        changes = simple(spark, row, ("INSERT", (0, 0, 2), 2, "b"))
        with pytest.raises(PySparkException, match=message):
            sparkwire.current(changes, "id").collect()
    corrupt = changes.selectExpr("*", "if(id = 1, 'BAD_JSON', NULL) AS _error_")
    assert values(sparkwire.current(corrupt, "id"), "v") == {2: "b"}


# ---------------------------------------------------------------- values that messages lack


def test_a_change_of_the_key_that_comes_again(spark: SparkSession) -> None:
    """In one message. A position shows that it is the same change, although another row has the old key."""
    move = {"op": "UPDATE", "id": 2, "before": (1, None, None), "unavailable": ["w"], "event": "binlog.000001 4711 0"}
    again = [move | {"at": (0, 0, at)} for at in (2, 5)]
    insert = [
        {"op": "INSERT", "at": (0, 0, at), "id": 1, "w": text} for at, text in ((1, "right"), (3, "another row's"))
    ]
    changes = full(spark, *insert, *again, {"op": "DELETE", "at": (0, 0, 4), "id": 2})
    assert values(sparkwire.current(changes, "id"), "w") == {2: "right"}


def test_several_changes_of_the_key_in_one_transaction(spark: SparkSession) -> None:
    """They have one transaction, one time, and twice the same keys. The order tells them apart."""
    lacks = {"unavailable": ["w"]}
    changes = full(
        spark,
        {"op": "INSERT", "at": (0, 0, 1), "id": 1, "w": "x"},
        {"op": "UPDATE", "at": (0, 0, 2), "id": 2, "before": (1, None, None), **lacks},
        {"op": "UPDATE", "at": (0, 0, 3), "id": 1, "before": (2, None, None), **lacks},
        {"op": "UPDATE", "at": (0, 0, 4), "id": 1, "w": "y"},
        {"op": "UPDATE", "at": (0, 0, 5), "id": 2, "before": (1, None, None), **lacks},
    )
    assert values(sparkwire.current(changes.withColumn("_transaction_", F.lit("t")), "id"), "w") == {2: "y"}


def test_values_that_travel_and_values_that_do_not(spark: SparkSession) -> None:
    """Each key is a case. ``w`` is the column that messages lack."""
    lacks = {"unavailable": ["w"]}
    changes: list[dict[str, Any]] = [
        # Key 1 becomes 2 in another partition, and is inserted again: 2 has the value of before.
        {"op": "INSERT", "at": (0, 0, 1), "id": 1, "v": "a", "w": "first"},
        {"op": "DELETE", "at": (0, 0, 2), "id": 1, "event": "4711\n1\n2"},
        {"op": "DELETE", "at": (0, 0, 3), "id": 1},
        {"op": "INSERT", "at": (0, 1, 1), "id": 2, "before": (1, None, None), "v": "b", "event": "4711\n1\n2", **lacks},
        {"op": "INSERT", "at": (0, 0, 9), "id": 1, "v": "again", "w": "second"},
        # The event of 3 has no departure yet: nothing is known.
        {
            "op": "INSERT",
            "at": (0, 1, 3),
            "id": 3,
            "before": (33, None, None),
            "v": "c",
            "event": "4712\n33\n3",
            **lacks,
        },
        # Nothing travels across a delete, or past an INSERT.
        {"op": "INSERT", "at": (0, 0, 1), "id": 4, "v": "d", "w": "deleted"},
        {"op": "DELETE", "at": (0, 0, 2), "id": 4},
        {"op": "UPSERT", "at": (0, 0, 3), "id": 4, "v": "d", **lacks},
        {"op": "INSERT", "at": (0, 0, 1), "id": 5, "v": "e", "w": "earlier"},
        {"op": "INSERT", "at": (0, 0, 2), "id": 5, "v": "e", **lacks},
        # A value that does not fit is reported also where it is filled in.
        {"op": "INSERT", "at": (0, 0, 1), "id": 6, "v": "f", "unexpected": {"w": "too long", "v": "v"}},
        {"op": "UPDATE", "at": (0, 0, 2), "id": 6, "v": "f", "unexpected": {"more": "m"}, **lacks},
        {"op": "INSERT", "at": (0, 0, 1), "id": 7, "v": "g", "unexpected": {"w": "too long"}},
        {"op": "UPDATE", "at": (0, 0, 2), "id": 7, "v": "g", "w": "fits"},
        # In an epoch that is superseded, another partition is no obstacle to a value of the next one.
        {"op": "INSERT", "at": (0, 0, 1), "id": 8, "v": "h", "w": "p0"},
        {"op": "UPDATE", "at": (0, 1, 1), "id": 8, "v": "h", "w": "p1"},
        {"op": "UPDATE", "at": (1, 1, 1), "id": 8, "v": "h", "w": "next epoch"},
        {"op": "UPDATE", "at": (2, 1, 1), "id": 8, "v": "h", **lacks},
    ]
    current = sparkwire.current(full(spark, *changes), "id")
    assert current.columns == ["id", "v", "w", "_order_", "_time_", "_unavailable_", "_unexpected_"]
    unknown = values(current, "_unavailable_")
    assert unknown == {id: ["w"] if id in (3, 4, 5) else None for id in range(1, 9)}
    assert values(current, "v", "w", "_unexpected_") == {
        1: ("again", "second", None),
        2: ("b", "first", None),
        3: ("c", None, None),
        4: ("d", None, None),
        5: ("e", None, None),
        6: ("f", None, {"w": "too long", "more": "m"}),
        7: ("g", "fits", None),
        8: ("h", "next epoch", None),
    }
    # Here the value itself is in one of two partitions.
    unclear = [change for change in changes if change["id"] == 8 and change["at"][0] != 1]
    with pytest.raises(PySparkException, match=r'the changes of the key \{"id":8\} ' + IN_TWO.format(0, 1, 0)):
        sparkwire.current(full(spark, *unclear), "id").collect()


def test_unexpected_values_are_in_the_result_if_there_may_be_some(spark: SparkSession) -> None:
    changes = full(spark, {"op": "INSERT", "at": (0, 0, 1), "id": 1, "unexpected": {"v": "text"}})
    assert values(sparkwire.current(changes.drop("_unavailable_"), "id"), "_unexpected_") == {1: {"v": "text"}}
    assert "_unexpected_" not in sparkwire.current(changes.withMetadata("_unexpected_", {NEVER: True}), "id").columns


def test_a_key_with_null(spark: SparkSession) -> None:
    """A table without a primary key may have NULL in a part of its key: (NULL, 1) becomes ('A', 1)."""
    schema = f"_op_ STRING, _order_ {ORDER}, _before_ STRUCT<a: STRING, b: INT>, a STRING, b INT"
    rows = [
        *(("INSERT", (0, 0, 1), None, None, 1), ("UPDATE", (0, 0, 2), (None, 1), "A", 1)),
        *(("INSERT", (0, 0, 3), None, "B", None), ("UPDATE", (0, 0, 4), ("B", None), None, 2)),
    ]
    changes = spark.createDataFrame(rows, schema).coalesce(1)
    assert {tuple(row)[:2] for row in sparkwire.current(changes, ["a", "b"]).collect()} == {("A", 1), (None, 2)}


def test_of_two_rows_with_one_order_the_complete_one_counts(spark: SparkSession) -> None:
    """Otherwise the last rows and the history could take different ones, and the key would be lost."""
    rows: list[tuple[str, int, int, str | None, list[str] | None]] = []
    for id in range(100):
        pair = [("UPDATE", 2, id, f"new {id}", None), ("UPDATE", 2, id, None, ["name"])]
        rows += [("INSERT", 1, id, "old", None), *(pair if id % 2 else pair[::-1])]
    changes = spark.createDataFrame(rows, "_op_ STRING, _order_ INT, id INT, name STRING, _unavailable_ ARRAY<STRING>")
    assert values(sparkwire.current(changes, "id"), "name") == {id: f"new {id}" for id in range(100)}


def test_a_column_that_somebody_drops_may_lack_its_value(spark: SparkSession) -> None:
    changes = full(
        spark,
        {"op": "INSERT", "at": (0, 0, 1), "id": 1, "v": "a", "w": "x"},
        {"op": "UPDATE", "at": (0, 0, 2), "id": 1, "v": "b", "unavailable": ["w"]},
        {"op": "UPDATE", "at": (0, 0, 3), "id": 1, "unavailable": ["v", "w"]},
    )
    assert values(sparkwire.current(changes.drop("w"), "id"), "v", "_unavailable_") == {1: ("b", None)}
    assert values(sparkwire.current(changes.where("_order_.offset < 3").drop("w"), "id"), "v") == {1: "b"}


def test_a_column_that_somebody_renames_is_the_same_column(spark: SparkSession) -> None:
    messages = [m.envelope(after={"id": 1, "v": 1, "w": "x"}), m.envelope("u", after={"id": 1, "v": "?"})]
    df = spark.createDataFrame(list(enumerate(map(m.text, messages))), "offset BIGINT, value BINARY").coalesce(1)
    columns = {"id": "INT", "v": "INT", "w": "STRING"}
    changes = sparkwire.changes(df, format="debezium", table="customers", columns=columns, keys="id")
    changes = changes.withColumnRenamed("v", "unit price").withColumnRenamed("w", "v")
    [row] = sparkwire.current(changes).collect()
    assert (row["unit price"], row["v"], row["_unexpected_"]) == (None, "x", {"unit price": "?"})


def test_changes_whose_columns_have_lost_their_metadata_warn(spark: SparkSession, tmp_path: Path) -> None:
    """Iceberg stores no metadata of columns. Parquet does."""
    df = spark.createDataFrame([(0, m.text(m.envelope(after={"id": 1})))], "offset BIGINT, value BINARY")
    options: dict[str, Any] = {"format": "debezium", "table": "customers", "columns": {"id": "INT"}, "keys": "id"}
    changes = sparkwire.changes(df, epochs="replace", **options)
    changes.write.parquet(str(tmp_path / "changes"))
    stored = spark.read.parquet(str(tmp_path / "changes"))
    assert [(one.name, one.metadata) for one in stored.schema] == [(one.name, one.metadata) for one in changes.schema]
    bare = spark.createDataFrame(changes.collect(), ", ".join(f"{name} {type}" for name, type in changes.dtypes))
    with pytest.warns(
        UserWarning, match="no metadata of sparkwire.changes.*So current compares rows of different topics"
    ):
        of_bare = sparkwire.current(bare, "id")
    assert [row["id"] for row in of_bare.collect()] == [row["id"] for row in sparkwire.current(stored).collect()] == [1]


# ---------------------------------------------------------------- as_of and until


def test_as_of_a_time(spark: SparkSession) -> None:
    rows = [("INSERT", 1, datetime(2024, 1, 1), 7), ("DELETE", 2, datetime(2024, 1, 3), 7), ("DELETE", 3, None, 7)]
    changes = spark.createDataFrame(rows, "_op_ STRING, _order_ INT, _time_ TIMESTAMP, id INT").cache()
    for time, there in (
        ("2023-12-31T23:59:59.9", 0),
        (datetime(2024, 1, 1), 1),
        ("2024-01-02 23:59", 1),
        (date(2024, 1, 2), 1),
        ("2024-01-03T01:00+02:00", 1),
        (date(2024, 1, 3), 0),
        (datetime(2024, 1, 3, tzinfo=UTC), 0),
    ):
        assert sparkwire.current(changes, "id", as_of=time).count() == there, time
    assert sparkwire.current(changes, "id", as_of=date(2024, 1, 2), until=0).count() == 0
    assert sparkwire.current(changes, "id", as_of=date.min).count() == 0
    assert sparkwire.current(changes, "id", as_of=date.max).count() == sparkwire.current(changes, "id").count()
    changes.unpersist()


def test_as_of_a_time_that_the_clocks_show_twice(spark: SparkSession) -> None:
    """Also if the session takes TIMESTAMP for one without a time zone."""
    settings = {"spark.sql.timestampType": "TIMESTAMP_NTZ", "spark.sql.session.timeZone": "America/New_York"}
    before = {name: spark.conf.get(name, None) for name in settings}
    rows = spark.range(4).selectExpr(
        "'INSERT' AS _op_", "id AS _order_", "timestamp_seconds(1730611800 + 1800 * id) AS _time_", "id"
    )
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        time = datetime(2024, 11, 3, 6, 30, tzinfo=UTC)
        assert sparkwire.current(rows, "id", as_of=time).count() == 3
        assert sparkwire.current(rows, "id", as_of=time.isoformat()).count() == 3
    finally:
        for name, value in before.items():
            spark.conf.set(name, value) if value is not None else spark.conf.unset(name)


def test_as_of_a_change_without_a_time(spark: SparkSession) -> None:
    """A tombstone has no time. It does not decide after a DELETE, nor after a change that is too late."""
    day = [None, *(datetime(2024, 1, number) for number in (1, 2, 3))]
    known = [
        *(("INSERT", 1, day[1], 1), ("DELETE", 2, day[3], 1), ("DELETE", 3, None, 1)),
        *(("INSERT", 1, day[1], 2), ("DELETE", 2, day[2], 2), ("DELETE", 3, None, 2)),
        *(("INSERT", 1, None, 3), ("UPDATE", 2, day[2], 3), ("DELETE", 3, None, 4)),
    ]
    schema = "_op_ STRING, _order_ INT, _time_ TIMESTAMP, id INT"
    result = sparkwire.current(spark.createDataFrame(known, schema).coalesce(1), "id", as_of=day[2])
    assert sorted(row["id"] for row in result.collect()) == [1, 3]
    lacking = [("INSERT", 1, day[1], 1, None), ("DELETE", 2, day[2], 1, None), ("UPSERT", 3, None, 1, ["v"])]
    changes = spark.createDataFrame(lacking, f"{schema}, _unavailable_ ARRAY<STRING>").coalesce(1)
    with pytest.raises(PySparkException, match=r'the key \{"id":1\} has no _time_'):
        sparkwire.current(changes.withColumn("v", F.lit(1)), "id", as_of=day[2]).collect()
    for number in (1, 2):  # the day of the INSERT, too
        unknown = [("INSERT", 1, day[1], 1), ("DELETE", 2, None, 1)]
        with pytest.raises(
            PySparkException, match=r'the key \{"id":1\} has no _time_, and as_of .*: pass an order as until'
        ):
            sparkwire.current(spark.createDataFrame(unknown, schema).coalesce(1), "id", as_of=day[number]).collect()


def test_as_of_a_truncate_without_a_time(spark: SparkSession) -> None:
    """It decides, unless it comes after one that is too late. A row whose key is NULL is no TRUNCATE."""
    day = [None, *(datetime(2024, 1, number) for number in (1, 2, 3))]
    schema = "_op_ STRING, _order_ INT, _time_ TIMESTAMP, id INT"
    first, truncate = ("INSERT", 1, day[1], 1), ("TRUNCATE", 3, None, None)
    for between in ([], [("TRUNCATE", 2, day[1], None)], [("INSERT", 2, day[3], None)]):
        changes = spark.createDataFrame([first, *between, truncate], schema).coalesce(1)
        with pytest.raises(
            PySparkException, match="a TRUNCATE has no _time_, and as_of has to compare it: pass an order"
        ):
            sparkwire.current(changes, "id", as_of=day[2]).collect()
    changes = spark.createDataFrame([first, ("TRUNCATE", 2, day[3], None), truncate], schema).coalesce(1)
    assert [row["id"] for row in sparkwire.current(changes, "id", as_of=day[2]).collect()] == [1]


@pytest.mark.parametrize(
    "value",
    [15, "15", "20240131", "yesterday", "2024-13-01", "", {"position": 15}, (1, 2), 1.5, True, datetime, pd.NaT],
)
def test_as_of_takes_only_a_time(spark: SparkSession, value: Any) -> None:
    changes = spark.createDataFrame([], f"_op_ STRING, _order_ {ORDER}, _time_ TIMESTAMP, id INT")
    with pytest.raises(
        ValueError, match=r"expected as_of to be a datetime, a date or an ISO text .*: pass an order as until"
    ):
        sparkwire.current(changes, "id", as_of=value)
    with pytest.raises(ValueError, match="expected changes with the column _time_ for as_of, got none"):
        sparkwire.current(changes.drop("_time_"), "id", as_of="2024-01-31")


SOURCES = {
    "kafka": ORDER,
    "canal": "STRUCT<epoch: INT, partition: INT, offset: BIGINT, row: INT>",
    "databus": "STRUCT<epoch: INT, scn: BIGINT, file: STRING, position: BIGINT>",
    "datahub": "STRUCT<epoch: INT, digits: INT, number: STRING>",
    "logs": LOGS,
}
UNTIL: list[tuple[str, list[Any], list[tuple[Any, list[int]]]]] = [
    (
        "kafka",  # each partition up to its own offset; both epochs, unless until names one
        [(0, 0, 1), (0, 1, 2), (1, 0, 0), (1, 0, 3)],
        [
            *((0, [2]), (1, [0, 2]), ((2,), [0, 1, 2]), ({"offset": 2}, [0, 1, 2]), ({"epoch": 0}, [0, 1])),
            *(({"offset": 2, "epoch": 1}, [0, 1, 2]), ({"epoch": 0, "offset": 1}, [0])),
        ],
    ),
    (
        "canal",
        [(0, 0, 7, 0), (0, 0, 7, 1), (0, 0, 8, 0)],
        [(7, [0, 1]), ((7, 0), [0]), ({"row": 0}, [0, 2]), (Row(epoch=0, partition=0, offset=7, row=1), [0, 1])],
    ),
    (
        "databus",
        [(0, 10, "a", 900), (0, 10, "b", 1), (0, 11, "b", 2)],
        [(9, []), ((10, "a"), [0]), (10, [0, 1]), ((10, "b", 1), [0, 1]), ({"scn": 11}, [0, 1, 2])],
    ),
    (
        "datahub",
        [(0, 0, ""), (0, 2, "99"), (0, 3, "100"), (1, 1, "5")],
        [
            *((0, [0]), (98, [0, 3]), ("99", [0, 1, 3]), ("0099", [0, 1, 3]), (100, [0, 1, 2, 3])),
            *(({"epoch": 0, "number": 99}, [0, 1]), (Row(epoch=1, digits=1, number="5"), [0, 1, 2, 3])),
        ],
    ),
    (
        "logs",
        [(0, None, None, None, None, None), (0, "a", None, 5, 0, 0), (0, "a", None, 6, 0, 0)],
        [(4, [0]), (5, [0, 1]), ((6, 0), [0, 1, 2]), ({"log": "a", "position": 5}, [0, 1])],
    ),
]


@pytest.mark.parametrize(("source", "orders", "points"), UNTIL, ids=[case[0] for case in UNTIL])
def test_until_an_order(
    spark: SparkSession, source: str, orders: list[Any], points: list[tuple[Any, list[int]]]
) -> None:
    """Only the parts that it names are compared. A snapshot's row is before all changes."""
    rows = [("READ" if order[1] is None else "INSERT", order, id, "") for id, order in enumerate(orders)]
    changes = simple(spark, *rows, order=SOURCES[source])
    results = (
        sparkwire.current(changes, "id", until=until).select(F.lit(number).alias("point"), "id")
        for number, (until, _) in enumerate(points)
    )
    found: list[list[int]] = [[] for _ in points]
    union = next(results)
    for result in results:
        union = union.union(result)
    for row in union.collect():
        found[row["point"]].append(row["id"])
    assert [sorted(ids) for ids in found] == [ids for _, ids in points]


@pytest.mark.parametrize(
    ("source", "value", "message"),
    [
        ("kafka", {"position": 15}, "expected until to be an order with the parts epoch, partition, offset, got"),
        ("kafka", (1, 2), "expected until to be an order with the parts epoch, partition, offset, got"),
        ("kafka", {}, "expected until to be an order with the parts"),
        ("kafka", (), "expected until to be an order with the parts"),
        ("kafka", "15", "expected a whole number for offset in until, got '15'"),
        ("kafka", True, "expected a whole number for offset in until, got True"),
        ("kafka", 1.5, "expected a whole number for offset in until"),
        ("kafka", {"offset": None}, "expected a value for each part of until, got none for offset: leave it out"),
        ("kafka", date(2024, 1, 1), "expected a whole number for offset in until"),
        ("datahub", "x", "expected a whole number for number in until, got 'x'"),
        ("datahub", -1, "expected a whole number for number in until, got -1"),
        ("databus", (1, 2), "expected STRING for file in until, got 2"),
    ],
)
def test_until_takes_only_an_order(spark: SparkSession, source: str, value: Any, message: str) -> None:
    changes = spark.createDataFrame([], SIMPLE.format(order=SOURCES[source]))
    with pytest.raises(ValueError, match=message):
        sparkwire.current(changes, "id", until=value)


@pytest.mark.parametrize(
    ("source", "rows", "until", "message"),
    [
        (
            "databus",
            [(0, 10, None, None)],
            (10, "a"),
            "until names file, and a change has no file in its _order_: leave file out",
        ),
        ("logs", [(0, "a", None, None, None, None)], 10, "until names position, and a change has no position"),
        (
            "kafka",
            [(0, 1, 3)],
            {"partition": 0, "offset": 5},
            "until is in the partition 0, and a change is in the partition 1",
        ),
        (
            "logs",
            [(0, "b", None, 1, 0, 0)],
            {"log": "a", "position": 5},
            "until is in the log a, and a change is in the log b, which",
        ),
    ],
)
def test_until_never_decides_in_silence(
    spark: SparkSession, source: str, rows: list[Any], until: Any, message: str
) -> None:
    changes = simple(spark, *(("INSERT", order, 1, "") for order in rows), order=SOURCES[source])
    with pytest.raises(PySparkException, match=message):
        sparkwire.current(changes, "id", until=until).collect()
    decided = {"databus": 9, "logs": {"epoch": -1}, "kafka": {"epoch": -1, "partition": 0}}[source]
    assert sparkwire.current(changes, "id", until=decided).count() == 0


# ---------------------------------------------------------------- tables, keys and names


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


@pytest.mark.parametrize(
    ("form", "dropped"),
    [
        ("plain", ["_unavailable_", "_before_", "_event_"]),
        ("plain", ["_table_"]),
        ("truncates", []),
        ("everything", []),
        ("as of a time", []),
    ],
)
def test_changes_are_read_once(spark: SparkSession, tmp_path: Path, form: str, dropped: list[str]) -> None:
    """This holds even if values are missing, and the history of a key is needed."""
    plain, random = form == "plain", Random(7)
    history = ChangeHistory(random, truncates=not plain, moves=not plain, lacks=form == "everything").run(100)
    rows = [change_row(message) for message in Log(random, ONE_MESSAGE).write(history.changes).delivered()]
    frame(spark, rows).write.parquet(f"{tmp_path}/changes")
    changes, note = spark.read.parquet(f"{tmp_path}/changes").coalesce(1), tmp_path / "reads"

    def noted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with note.open("a") as file:
            file.write("read\n")
        yield from batches

    read = changes.mapInArrow(noted, changes.schema)
    as_of = date(2024, 2, 1) if form == "as of a time" else None
    sparkwire.current(read.drop(*dropped), ["shop", "id"], as_of=as_of).collect()
    assert note.read_text().splitlines() == ["read"]


INTERNAL = [
    "_gone_", "gone", "time", "table", "row", "at", "rank", "live", "begins", "ends", "departure", "arrival",
    "facts", "nth", "key_0", "c0", "at_0", "old_key_0", "topic", "op", "event", "unavailable",
    "unexpected", "newest", "least", "tied", "lacks", "departs", "is_open", "is_some", "undated",
    "before", "lacking", "told_c0", "moved", "split", "wanted", "step", "truncate", "truncates", "error", "may_be_open",
]  # fmt: skip


def test_names_of_the_query_are_free_for_columns(spark: SparkSession) -> None:
    """Also for the key, and where values are filled in along a change of the key. ``Value`` is not ``value``."""
    names = ["rank", *(name for name in INTERNAL if name != "rank"), "a `quoted` name", "with.dot", "it's"]
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        names += ["Value", "value", "RANK"]
        fields = ", ".join(f"`{name.replace('`', '``')}`: STRING" for name in names)
        columns = ", ".join(f"`{name.replace('`', '``')}` STRING" for name in names)
        schema = (
            f"_op_ STRING, _order_ {ORDER}, _time_ TIMESTAMP, _before_ STRUCT<{fields}>, {columns}, "
            "_unavailable_ ARRAY<STRING>, _unexpected_ MAP<STRING, STRING>"
        )
        first, second = (tuple(f"{name} {k}" for name in names) for k in (1, 2))
        lacking = ["table", "it's", "value", "at"]
        new = tuple(None if name in lacking else value for name, value in zip(names, second, strict=True))
        rows = [
            ("INSERT", (0, 0, 1), None, None, *first, None, None),
            ("UPDATE", (0, 0, 2), None, first, *new, lacking, {"table": "no", "Value": "yes"}),
        ]
        [row] = sparkwire.current(spark.createDataFrame(rows, schema), "rank").collect()
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert list(row.__fields__) == [*names, "_order_", "_time_", "_unavailable_", "_unexpected_"]
    expected = [f"{name} {1 if name in lacking else 2}" for name in names]
    assert list(row) == [*expected, Row(epoch=0, partition=0, offset=2), None, None, {"Value": "yes"}]


# ---------------------------------------------------------------- changes of which none is readable


UNREADABLE = FULL + ", _error_ STRING, _table_ STRING"


def unreadable(spark: SparkSession, *rows: tuple[str | None, int | None, str | None]) -> DataFrame:
    """Changes with an operation, an offset and an error. Those with an error have values, too, which do not count."""
    return spark.createDataFrame(
        [
            (op, (0, 0, at or 0), None, None, 1, "x", "y", None, None, None, error, error and "t")
            for op, at, error in rows
        ],
        UNREADABLE,
    ).repartition(2)


def test_a_table_of_errors_alone_fails(spark: SparkSession) -> None:
    changes = unreadable(spark, (None, None, "BAD_JSON"), ("DELETE", 7, "BAD_JSON"), ("TRUNCATE", 9, "BAD_JSON"))
    with pytest.raises(
        PySparkException, match="none of the changes is readable: at least 3 have an error, for example BAD"
    ):
        sparkwire.current(changes, "id").collect()
    # Nobody says what the messages before a moment are.
    assert sparkwire.current(changes, "id", until=4).collect() == []
    assert sparkwire.current(changes, "id", as_of="2024-01-01").collect() == []
    assert sparkwire.current(unreadable(spark).where("FALSE"), "id").collect() == []


def test_errors_beside_changes_do_not_count(spark: SparkSession) -> None:
    changes = unreadable(spark, ("INSERT", 1, None), ("DELETE", 7, "BAD_JSON"), ("TRUNCATE", 9, "MISSING_FIELD"))
    assert values(sparkwire.current(changes, "id"), "v") == {1: "x"}
    deleted = unreadable(spark, ("DELETE", 7, None), (None, 8, "BAD_JSON"))
    assert sparkwire.current(deleted, "id").collect() == []
    truncated = unreadable(spark, ("TRUNCATE", 7, None), (None, 8, "BAD_JSON"))
    assert sparkwire.current(truncated, "id").collect() == []
