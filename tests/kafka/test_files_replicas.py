"""One partition in several directories: an error, or one of them, or all; by default they are not mixed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkwire.errors import DataLossError
from tests.kafka.test_files import rows
from tests.kafka.test_write_log import write
from tests.support.log_files import entries, segment
from tests.support.stream import kafka

Row = dict[str, Any]


@pytest.fixture
def brokers(tmp_path: Path) -> Path:
    """Three brokers; the second is ahead. Another partition is only on one broker."""
    for broker, first, stop in (("1", 0, 3), ("2", 1, 5), ("3", 0, 3)):
        segment(tmp_path / broker / "orders-0", first, entries(first, stop, f"b{broker}-"))
    segment(tmp_path / "3" / "orders-1", 0, entries(0, 2, "one-"))
    return tmp_path


def values(rows: list[Row]) -> list[str]:
    return [row["value"].decode() for row in rows]


def test_they_are_named(brokers: Path) -> None:
    sentence = (
        rf"^partition orders-0 is in 3 directories, {brokers}/1/orders-0, {brokers}/2/orders-0, {brokers}/3/orders-0: "
        "name one of them in path, or set replicas to longest"
    )
    for path in (brokers, brokers / "*" / "orders-0"):
        with pytest.raises(ValueError, match=sentence):
            rows(path)
    with pytest.raises(ValueError, match=sentence):
        kafka(brokers).batch()
    assert values(rows(brokers / "1")) == ["b1-0", "b1-1", "b1-2"]


def test_the_longest(brokers: Path) -> None:
    """The log with the largest end offset; with equal ends, the one that begins first."""
    longest = ["b2-1", "b2-2", "b2-3", "b2-4", "one-0", "one-1"]
    assert sorted(values(rows(brokers, replicas="longest"))) == longest
    segment(brokers / "1" / "orders-0", 0, entries(0, 5, "b1-"))
    assert sorted(values(rows(brokers, replicas="longest"))) == [f"b1-{n}" for n in range(5)] + longest[4:]


def test_all_of_them(brokers: Path) -> None:
    result = [row for row in rows(brokers, replicas="all") if row["partition"] == 0]
    by_file = {Path(row["file"]).parts[-3] for row in result}
    assert (len(result), by_file) == (10, {"1", "2", "3"})


def test_a_stream_continues_in_the_replica_that_is_ahead(tmp_path: Path) -> None:
    segment(tmp_path / "1" / "orders-0", 0, entries(0, 3))
    stream = kafka(tmp_path, replicas="longest")
    assert values(stream.batch()) == ["0", "1", "2"]
    segment(tmp_path / "2" / "orders-0", 0, entries(0, 2))
    segment(tmp_path / "2" / "orders-0", 2, entries(2, 6))
    stream.restart()
    assert values(stream.batch()) == ["3", "4", "5"]
    segment(tmp_path / "1" / "orders-0", 0, [*entries(0, 2), *entries(2, 9, "other")])
    with pytest.raises(
        DataLossError, match="data loss in orders-0: the query continues at offset 6, but another record batch"
    ):
        stream.batch()


def test_a_directory_that_joins_a_stream_is_named(tmp_path: Path) -> None:
    segment(tmp_path / "1" / "orders-0", 0, entries(0, 3))
    stream = kafka(tmp_path)
    assert len(stream.batch()) == 3
    segment(tmp_path / "2" / "orders-0", 0, entries(0, 3))
    with pytest.raises(ValueError, match=r"^partition orders-0 is in 2 directories"):
        stream.batch()


def test_rows_of_several_are_not_written_as_one(tmp_path: Path) -> None:
    twice = [{"topic": "orders", "partition": 0, "offset": offset, "value": b"x"} for offset in (0, 0, 1, 1)]
    with pytest.raises(ValueError, match=r"offset 0: it comes after 0, a row with the same offset") as error:
        write(tmp_path, twice)
    assert "sparkwire.kafka.write" not in str(error.value)
