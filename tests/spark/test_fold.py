"""The fold of a table's changes in Spark: a few histories, merged in any order, against a model and `current`."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sparkwire
from tests.support.change_history import (
    FORMS,
    MESSAGES,
    ONE_MESSAGE,
    ChangeHistory,
    Log,
    change_row,
    unknown_values,
)
from tests.support.merge_batches import cut, frame, simple


@pytest.mark.filterwarnings("ignore:all .* keys of .* are late")
def test_batches_in_any_order(spark: SparkSession, tmp_path: Path) -> None:
    """Messages of three histories with restarts, shuffled and repeated. A value may be unknown and named, never wrong."""
    random, rows, model = Random(31), list[Any](), dict[Any, Any]()
    for number, form in enumerate((ONE_MESSAGE, MESSAGES, FORMS[1])):
        history = ChangeHistory(random, number=number, shops=2, move_anywhere=form == MESSAGES).run(40)
        rows += [change_row(one) for one in Log(random, form, repeats=True).write(history.changes).messages]
        model |= history.table
    random.shuffle(rows)
    batches = cut(rows, 2)
    assert not unknown_values(sparkwire.current(frame(spark, rows)).collect(), model)
    for batch in (*batches, batches[0]):
        sparkwire.merge(frame(spark, batch), tmp_path / "table")
    unknown = unknown_values(sparkwire.merged(spark, tmp_path / "table").collect(), model)
    assert len(unknown) < len(model)


def test_an_epoch_that_replaces_the_ones_before(spark: SparkSession, tmp_path: Path) -> None:
    """Row 2 was deleted while nobody read. It is gone with the first message of the next epoch, and stays by default."""
    batches = [
        [("INSERT", (0, 0, 1), 1, 1), ("INSERT", (0, 1, 1), 2, 2), ("INSERT", (0, 0, 2), 3, 3)],
        [("READ", (1, 0, 0), 1, 10), ("READ", (1, 1, 0), 3, 30)],
        [("UPDATE", (0, 1, 9), 2, 20), ("UPDATE", (1, 0, 5), 1, 11)],
    ]
    replaced = {"sparkwire.replaces_epochs": True}
    for batch in batches:
        sparkwire.merge(simple(spark, *batch).withMetadata("_order_", replaced), tmp_path / "replaced", "id")
    changes = simple(spark, *(row for batch in batches for row in batch))
    expected = [(1, 11), (3, 30)]
    for table in (
        sparkwire.merged(spark, tmp_path / "replaced"),
        sparkwire.current(changes.withMetadata("_order_", replaced), "id"),
    ):
        assert sorted((row["id"], row["v"]) for row in table.collect()) == expected
    stays = sparkwire.current(changes, "id").collect()
    assert sorted((row["id"], row["v"]) for row in stays) == [(1, 11), (2, 20), (3, 30)]
