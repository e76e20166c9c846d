"""What merge finds out about a batch before its statement runs: the newest step of each key, and facts about all of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.merge_batch import BatchFacts, batch_rows
from sparkwire.spark.changes.steps import events
from sparkwire.spark.frames import checkpointed
from tests.support.merge_batches import ORDER, frame

pytestmark = pytest.mark.usefixtures("interpreted")

SCHEMA = (
    f"_op_ STRING, {ORDER}, _time_ TIMESTAMP, _table_ STRING, _before_ STRUCT<id: INT, v: INT>, _unavailable_ ARRAY<STRING>, "
    "_unexpected_ MAP<STRING, STRING>, _error_ STRING, id INT, v INT"
)
DAYS = [datetime(2024, 1, day, tzinfo=UTC) for day in range(1, 5)]


def change(op: str, at: int | tuple[int, int, int], id: int | None, **more: Any) -> tuple[Any, ...]:
    """A change of the table t, with an offset or (epoch, partition, offset)."""
    order = at if isinstance(at, tuple) else (0, 0, at)
    own = {"table": "t"} | more
    return op, order, *map(own.get, ("time", "table", "before", "lacks", "unexpected", "error")), id, None


def rows_of(spark: SparkSession, *changes: tuple[Any, ...]) -> tuple[DataFrame, ChangedTable]:
    table = ChangedTable.of(frame(spark, list(changes), SCHEMA), "id", "merge")
    steps = events(frame(spark, list(changes), SCHEMA), table, unreadable="TRUE")
    return checkpointed(batch_rows(steps, table, keep=False)), table


def facts_of(spark: SparkSession, *changes: tuple[Any, ...], noted: str | None = None) -> BatchFacts:
    return BatchFacts.of(*rows_of(spark, *changes), noted)


def test_the_facts_of_a_batch(spark: SparkSession) -> None:
    facts = facts_of(
        spark,
        change("INSERT", (2, 0, 1), 10),
        change("UPDATE", (2, 0, 2), 10, lacks=["v"]),
        change("INSERT", (3, 0, 1), 12, unexpected={"v": "text"}),
        change("INSERT", (3, 0, 2), 20),
        change("DELETE", (3, 0, 3), 20),
        change("UPDATE", (3, 0, 4), 31, before=(30, None), lacks=["v"]),
        change("INSERT", (3, 0, 5), None),
        change("UPDATE", (9, 0, 9), 99, error="BAD_JSON"),
    )
    # 30 is deleted by the change of its key to 31; both are open, as is 10.
    expected = BatchFacts(
        changes=7, errors=1, keys=6, opened=3, moves=2, unknown=2, unexpected=1, null_keys=1, truncated=None, epochs=(2, 3),
        table_name="t", ranges={"id": (10, 31)},
    )  # fmt: skip
    assert facts == expected


def test_the_last_truncate(spark: SparkSession) -> None:
    """Partitions of an epoch before it need no common order. Those of its own epoch do, and so do those after it."""
    in_two = [change("INSERT", (4, 0, 9), 1), change("UPDATE", (4, 1, 1), 1)]
    truncates = [change("TRUNCATE", (5, 0, at), None) for at in (7, 9, 8)]
    facts = facts_of(spark, *in_two, *truncates)
    assert facts.truncated == {"at": {"epoch": "5", "partition": "0", "offset": "9"}, "topic": None}
    assert facts_of(spark, *in_two[:1]).truncated is None
    for truncate in ([], [change("TRUNCATE", (4, 0, 20), None)], [change("TRUNCATE", (3, 0, 1), None)]):
        with pytest.raises(
            ValueError, match=r'the changes of the key \{"id":1\} are in the partitions 0 and 1 of epoch 4'
        ):
            facts_of(spark, *in_two, *truncate)
    later = [change("INSERT", (6, 0, 9), 2), change("UPDATE", (6, 1, 1), 2)]
    with pytest.raises(ValueError, match=r'the changes of the key \{"id":2\} are in the partitions 0 and 1 of epoch 6'):
        facts_of(spark, *in_two, *later, *truncates)


def test_a_change_of_a_key_counts_once(spark: SparkSession) -> None:
    """It is a step of both keys. Neither is open if the message has all values."""
    facts = facts_of(spark, change("INSERT", 1, 1), change("UPDATE", 2, 2, before=(1, None)))
    assert (facts.changes, facts.keys, facts.opened, facts.unknown) == (2, 2, 0, 1)


def test_a_batch_of_a_truncate_alone(spark: SparkSession) -> None:
    """It is a change, and no key. Its epoch counts, which may end the rows of earlier ones."""
    # No key counts, whatever the columns say: they would be two groups, whose first one has either TRUNCATE.
    for ids in ((1, None), (1, 2), (2, 1)):
        facts = facts_of(spark, *(change("TRUNCATE", (5, 0, at), id) for at, id in zip((7, 8), ids, strict=True)))
        assert (facts.changes, facts.keys, facts.errors, facts.epochs, facts.table_name) == (2, 0, 0, (5, 5), "t")
        assert facts.truncated == {"at": {"epoch": "5", "partition": "0", "offset": "8"}, "topic": None}


def test_a_truncate_beside_an_open_key_that_is_null(spark: SparkSession) -> None:
    """They have no key, and Spark finds their newest steps in one group."""
    facts = facts_of(
        spark,
        change("INSERT", 1, None),
        change("TRUNCATE", 2, None),
        change("UPDATE", 3, None, lacks=["v"]),
    )
    assert (facts.changes, facts.errors, facts.keys, facts.opened, facts.null_keys) == (3, 0, 1, 1, 1)
    assert facts.truncated == {"at": {"epoch": "0", "partition": "0", "offset": "2"}, "topic": None}


def test_two_truncates_without_a_common_order(spark: SparkSession) -> None:
    two = change("TRUNCATE", (5, 0, 7), None), change("TRUNCATE", (5, 1, 2), None)
    with pytest.raises(ValueError, match="two TRUNCATEs are in the partitions 0 and 1 of epoch 5"):
        facts_of(spark, *two)
    later = facts_of(spark, *two, change("TRUNCATE", (6, 0, 1), None))
    assert later.truncated == {"at": {"epoch": "6", "partition": "0", "offset": "1"}, "topic": None}


def test_the_name_of_the_table(spark: SparkSession) -> None:
    """Of a change without a name, that of the others counts, and that of the target."""
    first, without = change("INSERT", 1, 1), change("UPDATE", 2, 1, table=None)
    assert facts_of(spark, first, without).table_name == "t"
    assert facts_of(spark, without).table_name is None
    assert facts_of(spark, without, noted="u").table_name == "u"
    assert facts_of(spark, first, noted="t").table_name == "t"
    of_one_key = change("UPDATE", 2, 1, table="a"), change("UPDATE", 3, 1)
    of_two = change("UPDATE", 3, 2, table="a"), change("UPDATE", 4, 3, table="a")
    for more, noted in ((of_one_key, None), (of_two, None), ((), "a")):
        with pytest.raises(ValueError, match="the changes are of two tables, a and t"):
            facts_of(spark, first, *more, noted=noted)


def test_a_tombstone_shows_the_time_of_its_delete(spark: SparkSession) -> None:
    rows, _ = rows_of(
        spark,
        *(change(op, at, 1, time=DAYS[at]) for at, op in enumerate(("DELETE", "INSERT", "DELETE"))),
        change("DELETE", 3, 1),
        # The row lived after the last DELETE with a time.
        *(change(op, at, 2, time=DAYS[at]) for at, op in enumerate(("DELETE", "INSERT"))),
        change("DELETE", 3, 2),
        change("DELETE", 3, 3),
        *(change(op, at, 4, time=DAYS[at]) for at, op in enumerate(("DELETE", "INSERT"))),
        # The time of a TRUNCATE is that of no key, also if both are NULL.
        *(change(op, at, None, time=DAYS[at]) for at, op in enumerate(("INSERT", "TRUNCATE"))),
        change("DELETE", 2, None),
    )
    found = {row["key_0"]: (row["live"], row["time"]) for row in rows.where("nth = 1").collect()}
    times = {id: time and time.replace(tzinfo=UTC) for id, (_, time) in found.items()}
    assert times == {1: DAYS[2], 2: None, 3: None, 4: DAYS[1], None: None}
    assert [found[id][0] for id in (1, 2, 3, 4)] == [False, False, False, True]
