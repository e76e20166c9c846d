"""The fold of a table's changes in Spark: a few histories, merged in any order, against a model and `current`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import Mock

import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

import sparkwire
from sparkwire.changes.columns import MISSING_IS_UNKNOWN
from sparkwire.changes.delta_log import DeltaLog
from tests.support.change_history import (
    HALVES,
    MESSAGES,
    ONE_MESSAGE,
    ChangeHistory,
    Log,
    change_row,
    unknown_values,
)
from tests.support.merge_batches import cut, frame, simple
from tests.support.system_messages import COLUMNS, TABLE, canal, maxwell, text


def histories() -> tuple[list[Any], dict[Any, Any]]:
    """The messages of three histories with restarts, shuffled, and the tables."""
    random, rows, model = Random(31), list[Any](), dict[Any, Any]()
    for number, form in enumerate((ONE_MESSAGE, MESSAGES, HALVES)):
        history = ChangeHistory(random, number=number, shops=2, move_anywhere=form == MESSAGES).run(40)
        rows += [change_row(one) for one in Log(random, form, repeats=True).write(history.changes).messages]
        model |= history.table
    random.shuffle(rows)
    return rows, model


@pytest.mark.usefixtures("interpreted")
def test_all_messages(spark: SparkSession) -> None:
    rows, model = histories()
    assert not unknown_values(sparkwire.current(frame(spark, rows)).collect(), model)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.filterwarnings("ignore:all .* keys of .* are late")
def test_batches_in_any_order(spark: SparkSession, tmp_path: Path) -> None:
    """In two batches, the second of which repeats the first. A value may be unknown and named, never wrong."""
    rows, model = histories()
    first, second = cut(rows, 2)
    for batch in (first, [*second, *first]):
        sparkwire.merge(frame(spark, batch), tmp_path / "table")
    unknown = unknown_values(sparkwire.merged(spark, tmp_path / "table").collect(), model)
    assert len(unknown) < len(model)


@pytest.mark.usefixtures("interpreted")
def test_a_value_from_before_a_truncate_is_unknown(spark: SparkSession, tmp_path: Path) -> None:
    """The INSERT after it cannot be read, and no later message of Canal has the column."""
    row = {"id": "1", "name": "amber", "amount": "9.50"}
    messages = [
        text(canal("INSERT", [row])),
        text(canal("TRUNCATE", None, isDdl=True)),
        text(canal("INSERT", [row]))[:40],
        text(canal("UPDATE", [{"id": "1", "amount": "1.00"}], [{"amount": "9.50"}])),
    ]
    schema = "topic STRING, partition INT, offset BIGINT, value BINARY"
    records = spark.createDataFrame([("t", 0, k, message) for k, message in enumerate(messages)], schema)
    changes = sparkwire.changes(records, format="canal", table=TABLE, columns=COLUMNS, keys=["id"])
    sparkwire.merge(changes.where("offset < 2"), tmp_path / "table")
    sparkwire.merge(changes.where("offset >= 2"), tmp_path / "table")
    for table in (sparkwire.current(changes), sparkwire.merged(spark, tmp_path / "table")):
        [found] = table.collect()
        assert (found["id"], found["name"], str(found["amount"]), found["_unavailable_"]) == (1, None, "1.00", ["name"])


@pytest.mark.parametrize("ordinary", [0, 1, 2])
@pytest.mark.filterwarnings("ignore:all .* keys of .* are late")
@pytest.mark.usefixtures("interpreted")
def test_an_epoch_that_replaces_the_ones_before(spark: SparkSession, tmp_path: Path, ordinary: int) -> None:
    """Row 2 was deleted while nobody read. It is gone with the first message of the next epoch, and stays by default.

    ``ordinary``: the number of batches before somebody said that epochs replace others.
    """
    batches = [
        [("INSERT", (0, 0, 1), 1, 1), ("INSERT", (0, 1, 1), 2, 2), ("INSERT", (0, 0, 2), 3, 3)],
        [("READ", (1, 0, 0), 1, 10), ("READ", (1, 1, 0), 3, 30)],
        [("UPDATE", (0, 1, 9), 2, 20)],
        [("UPDATE", (1, 0, 5), 1, 11)],
    ]
    replaced = {"sparkwire.replaces_epochs": True}
    for number, batch in enumerate(batches):
        changes = simple(spark, *batch)
        if number >= ordinary:
            changes = changes.withMetadata("_order_", replaced)
        sparkwire.merge(changes, tmp_path / "replaced", "id")
        if number == 2:  # late, and the first that says so if two were ordinary
            rows = sparkwire.merged(spark, tmp_path / "replaced").collect()
            assert sorted((row["id"], row["v"]) for row in rows) == [(1, 10), (3, 30)]
    changes = simple(spark, *(row for batch in batches for row in batch))
    expected = [(1, 11), (3, 30)]
    for table in (
        sparkwire.merged(spark, tmp_path / "replaced"),
        sparkwire.current(changes.withMetadata("_order_", replaced), "id"),
    ):
        assert sorted((row["id"], row["v"]) for row in table.collect()) == expected
    stays = sparkwire.current(changes, "id").collect()
    assert sorted((row["id"], row["v"]) for row in stays) == [(1, 11), (2, 20), (3, 30)]


@pytest.mark.usefixtures("interpreted")
def test_an_epoch_ends_rows_after_a_merge_of_it_has_failed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced = {"sparkwire.replaces_epochs": True}
    old = simple(spark, ("INSERT", (0, 0, 1), 1, 1), ("INSERT", (0, 0, 2), 2, 2)).withMetadata("_order_", replaced)
    new = simple(spark, ("READ", (1, 0, 0), 1, 10)).withMetadata("_order_", replaced)
    sparkwire.merge(old, tmp_path / "table", "id")
    with monkeypatch.context() as patched:
        patched.setattr(DeltaLog, "commit", Mock(side_effect=OSError("no space left")))
        with pytest.raises(OSError, match="no space left"):
            sparkwire.merge(new, tmp_path / "table", "id")
    sparkwire.merge(new, tmp_path / "table", "id")
    assert [(row["id"], row["v"]) for row in sparkwire.merged(spark, tmp_path / "table").collect()] == [(1, 10)]


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.usefixtures("interpreted")
def test_a_new_column_is_unknown_where_no_message_has_told_it(
    spark: SparkSession, tmp_path: Path, killed: bool
) -> None:
    """``killed``: as if a merge of a session with Delta was killed before it noted that all rows have the column."""
    target, columns = str(tmp_path / "table"), {"id": "INT", "v": "INT", "w": "INT"}
    batches = [
        [maxwell(data={"id": 1, "v": 1}), maxwell(data={"id": 2, "v": 2})],
        [maxwell("update", {"id": 1, "v": 1, "w": 11})],
        [maxwell(data={"id": 3, "v": 3, "w": None})],
        [maxwell("update", {"id": 1, "v": 9})],
    ]
    for number, batch in enumerate(batches):
        records = [(0, 10 * number + k, text(message)) for k, message in enumerate(batch)]
        known = {name: type for name, type in columns.items() if number or name != "w"}
        changes = sparkwire.changes(
            spark.createDataFrame(records, "partition INT, offset BIGINT, value BINARY"),
            format="maxwell",
            table="shopdb.customers",
            columns=known,
            keys=["id"],
        )
        sparkwire.merge(changes, target)
        log = DeltaLog.of(target)
        assert log is not None
        assert log.noted is not None
        traits = log.noted["traits"]
        assert "untold" not in traits
        if number == 1 and killed:
            log.note(log.noted | {"traits": traits | {"untold": ["w"]}})
        if number == 2:
            [row] = sparkwire.merged(spark, target).where("id = 1").collect()
            assert (row["w"], row["_unavailable_"]) == (11, None)
    rows = sparkwire.merged(spark, target).collect()
    found = {row["id"]: (row["v"], row["w"], row["_unavailable_"]) for row in rows}
    assert found == {1: (9, 11, None), 2: (2, None, ["w"]), 3: (3, None, None)}


LACKING = (
    "_op_ STRING, _order_ STRUCT<epoch: INT, partition: INT, offset: BIGINT>, _before_ STRUCT<id: INT, v: INT, w: INT>, "
    "_unavailable_ ARRAY<STRING>, id INT, v INT, w INT"
)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("deletes", ["remove", "keep"])
def test_a_change_of_the_key_in_two_batches(spark: SparkSession, tmp_path: Path, deletes: Any) -> None:
    """The second half has the order of the first, which has ended the row of an open key."""
    moved = [
        ("INSERT", (0, 0, 1), None, None, 1, 1, 1),
        ("UPDATE", (0, 0, 2), (1, None, None), ["w"], 2, 2, None),
        ("INSERT", (0, 0, 3), None, None, 1, 7, 7),
        ("UPDATE_BEFORE", (0, 0, 4), None, None, 1, 7, 7),
    ]
    again = [("UPDATE", (0, 0, 4), None, None, 1, 9, 9)]
    results = [
        sparkwire.merge(frame(spark, batch, LACKING), tmp_path / "table", "id", deletes=deletes)
        for batch in (moved, again, again)
    ]
    assert [result.changed for result in results[1:]] == [1, 0]
    merged = sparkwire.merged(spark, tmp_path / "table")
    for table in (merged, sparkwire.current(frame(spark, moved + again, LACKING), "id")):
        assert sorted((row["id"], row["v"], row["w"]) for row in table.collect()) == [(1, 9, 9), (2, 2, 1)]


@pytest.mark.usefixtures("interpreted")
def test_a_second_snapshot_has_a_new_column(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of snapshots have one order by source: their times decide, also of rows that the merge reads."""
    schema = (
        "_op_ STRING, _order_ STRUCT<epoch: INT, log: STRING, position: BIGINT>, _time_ TIMESTAMP, "
        "_unavailable_ ARRAY<STRING>, id INT, v INT"
    )
    for day, columns, values in ((1, "", (1,)), (2, ", w STRING", (2, "x"))):
        rows = [("READ", (0, None, None), datetime(2024, 1, day), None, 1, *values)]
        changes = frame(spark, rows, schema + columns).withMetadata("_unavailable_", {MISSING_IS_UNKNOWN: True})
        sparkwire.merge(changes, tmp_path / "table", "id")
    [row] = sparkwire.merged(spark, tmp_path / "table").collect()
    assert (row["v"], row["w"], row["_unavailable_"]) == (2, "x", None)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("type", ["TIMESTAMP_LTZ", "TIMESTAMP_NTZ"])
def test_two_changes_of_keys_within_a_millisecond(spark: SparkSession, type: str) -> None:
    changes = frame(
        spark,
        [
            ("INSERT", (0, 0, 1), None, None, 1, 1, 11),
            ("INSERT", (0, 0, 2), None, None, 3, 3, 33),
            ("UPDATE", (0, 0, 3), (1, None, None), ["w"], 2, 2, None),
            ("UPDATE", (0, 0, 4), (3, None, None), ["w"], 4, 4, None),
        ],
        LACKING,
    ).withColumn("_order_", F.expr(f"CAST(timestamp_micros(_order_.offset) AS {type})"))
    rows = sparkwire.current(changes, "id").collect()
    assert sorted((row["id"], row["w"]) for row in rows) == [(2, 11), (4, 33)]


def test_a_table_of_500_columns(spark: SparkSession, tmp_path: Path) -> None:
    """The code of the statement is then too long for the JVM to compile, and the rows are the same."""
    names = [f"v{k}" for k in range(500)]
    lacking = names[::3]
    schema = (
        "_op_ STRING, _order_ STRUCT<epoch: INT, partition: INT, offset: BIGINT>, id INT, _unavailable_ ARRAY<STRING>, "
    )
    schema += ", ".join(f"{name} STRING" for name in names)

    def change(op: str, offset: int, id: int, lacks: list[str]) -> tuple[Any, ...]:
        values = (None if name in lacks else f"{name} at {offset}" for name in names)
        return (op, (0, 0, offset), id, lacks, *values)

    changes = [
        change("INSERT", 1, 1, []),
        change("INSERT", 2, 2, []),
        change("UPDATE", 3, 1, lacking),
        change("DELETE", 4, 2, []),
    ]
    for batch in (changes[:2], changes[2:]):
        sparkwire.merge(frame(spark, batch, schema), tmp_path / "table", "id")
    for table in (sparkwire.merged(spark, tmp_path / "table"), sparkwire.current(frame(spark, changes, schema), "id")):
        [row] = table.collect()
        assert [row[name] for name in names] == [f"{name} at {1 if name in lacking else 3}" for name in names]
        assert row["_unavailable_"] is None
