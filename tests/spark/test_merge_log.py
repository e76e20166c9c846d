"""The note of the greatest order of the deleted rows: when it counts, and how orders compare."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from sparkwire.spark.changes.merge_log import NewestCommit, _greatest

PARTS = StructType().add("scn", LongType()).add("file", StringType())


@pytest.mark.parametrize(
    ("type", "stored", "later"),
    [
        (IntegerType(), "9", "10"),
        (LongType(), "-10", "-9"),
        (DecimalType(38, 0), "99999999999999999999", "100000000000000000000"),
        (StringType(), "B", "a"),
        (StringType(), "\uffff", "\U00010000"),  # in the order of UTF-8
        (BinaryType(), "7F", "80"),
        (BinaryType(), "7F", "7F00"),
        (TimestampType(), "1714557600000000", "1714557600000001"),
        (PARTS, {"scn": "9", "file": "z"}, {"scn": "10", "file": "a"}),
        (PARTS, {"scn": "9", "file": None}, {"scn": "9", "file": ""}),
    ],
)
def test_orders_compare_as_in_spark(type: DataType, stored: Any, later: Any) -> None:
    assert NewestCommit(7, stored).is_before(later, type)
    assert not NewestCommit(7, later).is_before(stored, type)
    assert not NewestCommit(7, stored).is_before(stored, type)


@pytest.mark.parametrize(
    ("type", "stored", "new"),
    [
        (LongType(), None, "1"),
        (DateType(), "2024-05-01", "2024-05-02"),  # not compared in Python
        (PARTS, {"scn": "1"}, {"scn": "2", "file": "a"}),
        (PARTS, "1", {"scn": "2", "file": "a"}),
        (LongType(), {"scn": "1", "file": "a"}, "2"),
    ],
)
def test_an_order_that_is_not_known_is_not_before(type: DataType, stored: Any, new: Any) -> None:
    assert not NewestCommit(7, stored).is_before(new, type)


def test_a_note_counts_only_in_the_next_version() -> None:
    note = NewestCommit(7, None).note("42")
    assert _greatest(8, note) == "42"
    assert _greatest(9, note) is None  # another writer's version came between


@pytest.mark.parametrize("note", [None, "", "a note of somebody else", json.dumps([8]), json.dumps({"greatest": 1})])
def test_notes_of_others_do_not_count(note: str | None) -> None:
    assert _greatest(8, note) is None
