"""Forged segments: record batches inside values, and sizes and indexes that point to them."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparkwire.core.sources.options import Comparison
from sparkwire.errors import WrongIndexError
from sparkwire.kafka.files import kafka_log
from tests.kafka.test_files import FEW, expected, only, rows
from tests.support.log_files import CREATED, entries, entry, segment

Row = dict[str, Any]


def inner(count: int) -> bytes:
    """Record batches in a value, for example a backup of another log."""
    return b"".join(entries(10**6, 10**6 + count, "of a value "))


def leading_into(position: int, target: int, base: int) -> bytes:
    """A record batch at ``position`` whose corrupt size points to ``target``."""
    data = bytearray(entry(base, [b"its size lies"]))
    data[8:12] = struct.pack(">i", target - position - 12)
    return bytes(data)


@pytest.mark.parametrize("lead", [0, 300_000, 700_000])
def test_rows_of_a_value_are_not_rows_of_the_log(lead: int, tmp_path: Path) -> None:
    """A wrong size points into a value with record batches: the result does not depend on splits."""
    value = inner(20_000)
    filler = b"x" * max(1, lead)
    front, outer = entries(0, 50), entry(52, [filler + value + b"tail" * 50])
    position = sum(map(len, front))
    lying = len(entry(50, [b"its size lies"]))
    at = outer.index(value)
    data = [*front, leading_into(position, position + lying + at, 50), outer, *entries(53, 9000, size=3)]
    path = segment(tmp_path, 0, data)
    few = ", ".join(FEW)
    want = rows(path, columns=few)
    assert want == only(FEW, expected(path.read_bytes()))
    for size in (2_000_000, 600_000, 100_000):
        assert rows(path, columns=few, maxSplitBytes=str(size)) == want
    assert rows(path, columns=few, isolationLevel="read_committed", maxSplitBytes="600000") == want


def test_an_index_into_a_value(tmp_path: Path) -> None:
    value = inner(4000)
    front, outer, rest = entries(0, 100), entry(100, [value]), entries(101, 400)
    path = segment(tmp_path, 0, [*front, outer, *rest])
    want = rows(path, startingOffset="150")
    position = sum(map(len, front)) + outer.index(value)
    for forged in (
        struct.pack(">ii", 120, position),
        struct.pack(">iiii", 1, len(front[0]), 120, position),
        struct.pack(">ii", 10**6, position),
    ):
        path.with_suffix(".index").write_bytes(forged)
        assert rows(path, startingOffset="150") == want
        assert rows(path, maxSplitBytes="4000") == rows(path)


@pytest.mark.parametrize(
    "options",
    [
        {"maxSplitBytes": "1m"},
        {"maxSplitBytes": "1m", "rows": "batches"},
        {"maxSplitBytes": "128k", "rows": "batches", "columns": "base_offset"},  # reads only headers
    ],
)
def test_an_index_with_several_entries_within_a_value(options: dict[str, str], tmp_path: Path) -> None:
    """Its entries are consistent, all inside one value: no part may begin there."""
    batches = entries(10**6, 10**6 + 20_000, "of a value ")
    front, outer, rest = entries(0, 2000), entry(2000, [b"".join(batches)]), entries(2001, 3002)
    path = segment(tmp_path, 0, [*front, outer, *rest])
    want = rows(path, **options | {"maxSplitBytes": "1g"})
    assert len(want) == 3002
    begins = np.cumsum([len(b"".join(front)) + outer.index(batches[0]), *map(len, batches)])[::40].tolist()
    forged = b"".join(struct.pack(">ii", 2000 + k, begin) for k, begin in enumerate(begins))
    assert rows(path, **options) == want
    path.with_suffix(".index").write_bytes(forged)
    with pytest.raises(WrongIndexError, match=f"^{path} has no batch at byte [0-9]+"):
        rows(path, **options)
    path.with_suffix(".index").unlink()
    assert rows(path, **options) == want


def test_a_time_index_without_the_largest_timestamp(tmp_path: Path) -> None:
    times = [100, 900, 200]
    data = [entry(k, [b"v"], time=CREATED + time) for k, time in enumerate(times)]
    path = segment(tmp_path, 0, data)
    path.with_suffix(".timeindex").write_bytes(struct.pack(">qi", CREATED + 200, 2))
    result = rows(path, startingTimestamp=str(CREATED + 150))
    assert [row["offset"] for row in result] == [1, 2]


def filtered(path: Path, comparisons: list[Comparison], **options: str) -> list[Row]:
    """The rows for Spark with pushed-down filters."""
    query = kafka_log.with_filters(kafka_log.query({"path": str(path), **options}), comparisons)
    return [row for task in kafka_log.plan(query) for batch in kafka_log.read(query, task) for row in batch.to_pylist()]


def test_filters_of_several_values(tmp_path: Path) -> None:
    path = segment(tmp_path, 0, entries(0, 40))
    moments = [datetime.fromtimestamp((CREATED + k) / 1000, UTC) for k in (20, 30)]
    assert filtered(path, [("timestamp", "in", (*moments, None))])[0]["offset"] == 20
    assert filtered(path, [("timestamp_ms", "in", (CREATED + 39, None))])[0]["offset"] == 39
    assert [row["offset"] for row in filtered(path, [("offset", "in", (3, None, 5))])] == [3, 4, 5]
    assert filtered(path, [("offset", "in", (None,))]) == filtered(path, [("offset", "in", ())]) == []
    assert filtered(path, [("topic", "in", (None,)), ("partition", "=", 1)]) == []
    assert len(filtered(path, [("offset", "=", None)])) <= 40


def test_a_checksum_that_the_query_does_not_need(tmp_path: Path) -> None:
    data = entries(0, 40)
    data[20] = data[20][:-2] + b"?" + data[20][-1:]
    path = segment(tmp_path, 0, data)
    unchecked = [row["offset"] for row in rows(path, verifyCrc="false")]
    assert unchecked == list(range(40))
    for options in ({"startingTimestamp": str(CREATED + 20)}, {"startingOffset": "20"}):
        assert [row["offset"] for row in rows(path, verifyCrc="false", **options)] == list(range(20, 40))
    result = filtered(path, [("timestamp_ms", ">=", CREATED + 20)], verifyCrc="false")
    assert [row["offset"] for row in result] == list(range(20, 40))


def test_corruption_has_the_offsets_between_its_neighbours(tmp_path: Path) -> None:
    data = entries(0, 40)
    data[20] = data[20][:-2] + b"?" + data[20][-1:]
    path = segment(tmp_path, 0, data)
    for comparison in (("offset", "=", 20), ("offset", ">=", 20), ("offset", "in", (20, 30))):
        rows = [row for row in filtered(path, [comparison]) if row["offset"] == 20]
        assert [row["error"] for row in rows] == ["CRC_MISMATCH"]


@pytest.mark.parametrize("options", [{}, {"startingOffset": "5"}, {"rows": "batches"}, {"maxSplitBytes": "1"}])
def test_the_largest_offset(options: dict[str, str], tmp_path: Path) -> None:
    data = [*entries(0, 10), entry(2**63 - 1, [b"last"])]
    path = segment(tmp_path, 0, data)
    last = rows(path, **options)[-1]
    assert last["last_offset" if "rows" in options else "offset"] == 2**63 - 1
    assert filtered(path, [("offset", ">=", 2**63 - 1)])[-1]["offset"] == 2**63 - 1
    assert filtered(path, [("offset", ">", 2**63 - 1)]) == []
