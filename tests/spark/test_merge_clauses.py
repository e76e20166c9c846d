"""When a row of a batch counts, and what a table keeps beside its rows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import sparkwire
from sparkwire.changes.columns import DELETED
from sparkwire.changes.fold import MEMORY, TRUNCATE
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.merge_batch import BatchFacts
from sparkwire.spark.changes.merge_clauses import Clauses
from sparkwire.spark.changes.merge_statement import named_view
from sparkwire.spark.changes.merge_stored import memory_type
from tests.support.merge_batches import frame

pytestmark = pytest.mark.usefixtures("interpreted")

OFFSETS = "STRUCT<epoch: INT, partition: INT, offset: BIGINT>"
LOGS = "STRUCT<epoch: INT, log: STRING, lsn: STRING, position: BIGINT, sub_position: BIGINT, row: BIGINT>"
FACTS = BatchFacts(0, 0, 0, 0, 0, 0, 0, 0, truncated=None, epochs=None, table_name=None, ranges={})
DAYS = [None, *(datetime(2024, 1, day, tzinfo=UTC) for day in range(1, 10))]


class Lateness:
    """The keys of a batch and the rows of a table, each with an order and a day, and what `Clauses.lateness` counts."""

    def __init__(self, spark: SparkSession, order: str) -> None:
        self.spark, self.order = spark, order
        self.new: list[Any] = []
        self.stored: list[Any] = []

    def key(
        self, stored: Any, new: Any, *, deleted: bool = False, live: bool = True, days: tuple[int, int] = (1, 1)
    ) -> None:
        """A key of the batch. ``stored`` and ``new``: its orders. ``days``: those of the table's row and of the batch's."""
        id = len(self.new)
        self.new.append((id, new, DAYS[days[1]], live, None))
        if stored is not None:
            self.stored.append((id, stored, DAYS[days[0]], deleted, None))

    def truncate(self, at: Any) -> None:
        self.stored.append((None, at, None, True, TRUNCATE))

    def counts(self) -> tuple[int, int, int]:
        changes = frame(self.spark, [], f"_op_ STRING, _order_ {self.order}, _time_ TIMESTAMP, id INT")
        schema = f"id INT, _order_ {self.order}, _time_ TIMESTAMP, {DELETED} BOOLEAN, entry STRING"
        stored = frame(self.spark, self.stored, schema)
        type = memory_type(stored.schema["_order_"].dataType)
        parts = (
            f"CAST({'entry' if name == 'entry' else 'NULL'} AS {type[name].dataType.simpleString()}) AS {name}"
            for name in type.names
        )
        stored = stored.selectExpr("*", f"CASE WHEN entry IS NOT NULL THEN struct({', '.join(parts)}) END AS {MEMORY}")
        table = ChangedTable.of(changes, "id", "merge")
        [name] = table.key_names()
        new = frame(self.spark, self.new, f"{name} INT, at {self.order}, time TIMESTAMP, live BOOLEAN, topic STRING")
        clauses = Clauses(table, stored.schema, FACTS, keep=True, reads_truncate=True)
        with named_view(new) as view, named_view(stored) as target:
            late, repeated, recent = self.spark.sql(clauses.lateness(view, target)).collect()[0]
        return late, repeated, recent


def test_late_repeated_and_recent_keys(spark: SparkSession) -> None:
    keys = Lateness(spark, OFFSETS)
    for offset in (2, 3):
        keys.truncate((0, 0, offset))
    assert keys.counts() == (0, 0, 0)
    keys.key(None, (0, 0, 4))
    keys.key((0, 0, 5), (0, 0, 6))
    keys.key((0, 0, 5), (0, 0, 5), deleted=True)  # of two changes in one event, the row lives after the second
    assert keys.counts() == (0, 0, 0)
    keys.key(None, (0, 0, 3))  # the TRUNCATE ends it; the table has no time of this key
    assert keys.counts() == (1, 0, 1)
    keys.key((0, 0, 5), (0, 0, 5))
    keys.key((0, 0, 5), (0, 0, 5), live=False)
    keys.key((0, 0, 5), (0, 0, 5), deleted=True, live=False)
    assert keys.counts() == (4, 3, 1)
    keys.key((0, 0, 5), (0, 0, 4), days=(2, 1))
    keys.key((0, 0, 5), (0, 0, 4), days=(1, 1))
    assert keys.counts() == (6, 3, 1)
    keys.key((0, 0, 5), (0, 0, 4), days=(1, 2))
    keys.key((0, 0, 5), (0, 0, 4), days=(1, 0))
    assert keys.counts() == (8, 3, 3)


def test_the_later_of_two_snapshots_counts(spark: SparkSession) -> None:
    """Rows of a snapshot have no position: their times decide."""
    keys, unplaced = Lateness(spark, LOGS), (0, None, None, None, None, None)
    keys.key(unplaced, unplaced, days=(1, 2))
    assert keys.counts() == (0, 0, 0)
    keys.key(unplaced, unplaced, days=(1, 1))
    assert keys.counts() == (1, 1, 0)
    keys.key((0, "a", None, 5, 0, 0), (0, "a", None, 5, 0, 0), days=(1, 2))
    assert keys.counts() == (2, 2, 1)


def test_a_truncate_of_a_later_epoch_supersedes_rows(spark: SparkSession) -> None:
    """Rows of its own epoch are compared with it."""
    changes = frame(spark, [], f"_op_ STRING, _order_ {OFFSETS}, id INT")
    last = {"at": {"epoch": "1", "partition": "0", "offset": "5"}, "topic": None}
    rows = [((epoch, 1, 1), ((stored, 0, 1),)) for epoch in (0, 1, 2) for stored in (0, 1, 2)]
    orders = frame(spark, rows, f"at {OFFSETS}, truncated STRUCT<at: {OFFSETS}>")
    for truncated, expected in ((None, [(0, 1), (0, 2), (1, 2)]), (last, [(0, 0), (0, 1), (0, 2), (1, 2)])):
        clauses = Clauses(
            ChangedTable.of(changes, "id", "merge"), changes.schema, FACTS, keep=True, truncated=truncated
        )
        found = orders.where(clauses._is_superseded()).collect()
        assert sorted((row["at"]["epoch"], row["truncated"]["at"]["epoch"]) for row in found) == expected


# ---------------------------------------------------------------- what is stored

SCHEMA = (
    f"_op_ STRING, _order_ {OFFSETS}, _time_ TIMESTAMP, _before_ STRUCT<id: INT, v: INT, w: STRING>, "
    "_unavailable_ ARRAY<STRING>, id INT, v INT, w STRING"
)


def change(
    op: str,
    at: int,
    id: int,
    v: int | None = None,
    w: str | None = None,
    *,
    day: int = 1,
    old: int | None = None,
    lacks: bool = False,
) -> tuple[Any, ...]:
    """A change of the columns v and w; ``old`` is the id before it, and it may lack w."""
    before = None if old is None else (old, None, None)
    return op, (0, 0, at), DAYS[day], before, ["w"] if lacks else None, id, v, w


FIRST = [
    *(change("INSERT", id, id, 10 * id, f"w{id}") for id in (1, 2, 3, 4, 5, 7)),
]
SECOND = [
    change("UPDATE", 11, 1, 11, lacks=True, day=2),
    change("DELETE", 12, 2, 20, "w2", day=3),
    change("DELETE", 13, 3, day=0),  # a tombstone of a row that lives
    change("UPDATE", 14, 4, 41, "new", day=2),
    change("DELETE", 15, 4, 41, "new", day=3),
    change("DELETE", 16, 4, day=0),
    change("UPDATE", 17, 6, 60, old=5, lacks=True),
    change("INSERT", 18, 5, 51, "again"),
    change("UPDATE", 19, 8, 80, old=7, lacks=True),
]
THIRD = [change("DELETE", 20, 2, day=0)]


def stored(target: Path) -> dict[int, tuple[Any, ...]]:
    """The rows of the files by key: offset, values, day, whether it is deleted, and what is beside it."""
    found = {}
    for row in DeltaTable(target).to_pyarrow_table().to_pylist():
        if row[MEMORY] is None or row[MEMORY]["entry"] is None:
            day = row["_time_"] and row["_time_"].day
            beside = row["_unavailable_"], row[MEMORY]
            found[row["id"]] = (row["_order_"]["offset"], row["v"], row["w"], day, row[DELETED], *beside)
    return found


@pytest.mark.parametrize("deletes", ["remove", "keep"])
def test_what_is_stored(spark: SparkSession, tmp_path: Path, deletes: Literal["remove", "keep"]) -> None:
    """Values that a message lacks, the times of deleted rows, their values, and nothing beside rows that have all values."""
    target = tmp_path / "table"
    for batch in (FIRST, SECOND, THIRD):
        sparkwire.merge(frame(spark, batch, SCHEMA), target, "id", deletes=deletes)
    rows, kept = stored(target), deletes == "keep"
    assert rows[1][:6] == (11, 11, "w1", 2, False, None)
    assert rows[2] == (20, 20 if kept else None, "w2" if kept else None, 3, True, None, None)
    assert rows[3] == (13, 30 if kept else None, "w3" if kept else None, None, True, None, None)
    assert rows[4] == (16, 41 if kept else None, "new" if kept else None, 3, True, None, None)
    assert rows[5] == (18, 51, "again", 1, False, None, None)
    assert rows[6][:6] == (17, 60, "w5", 1, False, None)
    assert rows[7] == (19, 70 if kept else None, "w7" if kept else None, 1, True, None, None)
    assert rows[8][:6] == (19, 80, "w7", 1, False, None)
    again = sparkwire.merge(frame(spark, SECOND, SCHEMA), target, "id", deletes=deletes)
    assert (again.rows, again.changed, again.late) == (9, 0, 8)
    assert stored(target) == rows
