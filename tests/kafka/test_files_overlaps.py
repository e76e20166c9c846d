"""Overlapping segments of one directory: each offset once, from the segment from which a broker reads it.

The model is `broker_read`, the loop of Kafka's ``LocalLog.read`` and ``LogSegment.read`` (3.9.1) over plain lists.
"""

from __future__ import annotations

import random
import shutil
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sparkwire.errors import DataLossError
from tests.kafka.test_files import rows
from tests.support.log_files import CREATED, entries, segment
from tests.support.stream import kafka

Row = dict[str, Any]
Reported = tuple[int, str]


class Part:
    """A segment: its base offset, and its batches' values by offset."""

    def __init__(self, base: int, stop: int, tag: str, size: int, first: int | None = None) -> None:
        self.base = base
        self.data = entries(base if first is None else first, stop, tag, size)
        begin = base if first is None else first
        self.batches = [
            [(offset, f"{tag}{offset}") for offset in range(at, min(at + size, stop))]
            for at in range(begin, stop, size)
        ]


def broker_read(parts: Sequence[Part], start: int) -> Reported | None:
    """The first record that a fetch from an offset returns: from ``floorSegment``, else from later segments."""
    bases = [part.base for part in parts]
    for part in parts[max(0, bisect_right(bases, start) - 1) :]:
        for batch in part.batches:
            if batch[-1][0] >= start:
                return next(record for record in batch if record[0] >= start)
    return None


def broker_log(parts: Sequence[Part]) -> list[Reported]:
    """The log, an offset at a time."""
    result, at = list[Reported](), 0
    while (record := broker_read(parts, at)) is not None:
        result.append(record)
        at = record[0] + 1
    return result


def write(folder: Path, parts: Sequence[Part]) -> None:
    for part in parts:
        segment(folder, part.base, part.data)


def reported(rows: Sequence[Row]) -> list[Reported]:
    assert all(row["error"] is None for row in rows)
    return [(row["offset"], row["value"].decode()) for row in rows]


def layouts(seed: int, grows: bool = False) -> list[Part]:
    """Segments that mostly begin before the end of the previous one; with ``grows``, each ends after it."""
    chance = random.Random(seed)
    parts, base, stop = list[Part](), 0, 0
    for k in range(chance.randrange(2, 6)):
        stop = (max(base, stop) if grows else base) + chance.randrange(1, 15)
        parts.append(Part(base, stop, f"s{k}-", chance.randrange(1, 5)))
        base = chance.randrange(base + 1, stop + 1)
    return parts


@pytest.mark.parametrize("seed", range(6))
def test_each_offset_once_from_the_segment_that_a_broker_reads(seed: int, tmp_path: Path) -> None:
    folder, parts = tmp_path / "orders-0", layouts(seed)
    write(folder, parts)
    expected = broker_log(parts)
    assert reported(rows(tmp_path)) == expected
    for start in range(0, expected[-1][0] + 1, 2):
        some = reported(rows(tmp_path, startingOffset=str(start), endingOffset=str(start + 3)))
        assert some == [one for one in expected if start <= one[0] < start + 3]
    for max_bytes in (1, 300, None):
        assert reported(kafka(tmp_path).all(max_bytes)) == expected


@pytest.mark.parametrize("seed", range(4))
def test_a_stream_whose_segments_join_one_by_one(seed: int, tmp_path: Path) -> None:
    """Each offset is returned once, even if it occurs again later, and nothing counts as lost."""
    folder, parts = tmp_path / "orders-0", layouts(seed, grows=True)
    write(folder, parts[:1])
    stream, rows = kafka(tmp_path), list[Reported]()
    for k in range(1, len(parts) + 1):
        write(folder, parts[:k])
        rows += reported(stream.batch(300 if seed % 2 else None))
        stream.restart()
    rows += reported(stream.all())
    assert [offset for offset, _ in rows] == [offset for offset, _ in broker_log(parts)]


def test_a_log_that_a_later_segment_truncates_is_a_loss(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    write(folder, [Part(0, 10, "a", 1)])
    stream = kafka(tmp_path)
    assert len(stream.batch()) == 10
    write(folder, [Part(4, 7, "b", 1)])
    with pytest.raises(DataLossError, match="continues at offset 10, but the log ends at offset 7 now"):
        stream.batch()


def test_a_record_of_a_time_is_looked_for_in_the_log(tmp_path: Path) -> None:
    """Not at the end of a segment whose offsets the next segment has."""
    write(tmp_path / "orders-0", [Part(0, 10, "a", 1), Part(5, 15, "b", 1)])
    result = reported(rows(tmp_path, startingTimestamp=str(CREATED + 7)))
    assert result == [(offset, f"b{offset}") for offset in range(7, 15)]


def test_batches(tmp_path: Path) -> None:
    """The batches of the first segment with an offset that the next segment does not have."""
    write(tmp_path / "orders-0", [Part(0, 10, "a", 4), Part(6, 14, "b", 4)])
    result = rows(tmp_path, rows="batches")
    assert [(row["base_offset"], row["last_offset"]) for row in result] == [(0, 3), (4, 7), (6, 9), (10, 13)]


def test_a_segment_without_a_byte_hides_none(tmp_path: Path) -> None:
    """A new segment is empty at first, and the offsets before it belong to the previous segment."""
    write(tmp_path / "orders-0", [Part(0, 10, "a", 2)])
    segment(tmp_path / "orders-0", 5, [])
    assert [offset for offset, _ in reported(rows(tmp_path))] == list(range(10))
    assert [offset for offset, _ in reported(kafka(tmp_path).all())] == list(range(10))


def test_copies_of_a_segment_under_several_names(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    write(folder, [Part(0, 10, "a", 2)])
    shutil.copy(folder / f"{0:020}.log", folder / f"{0:020}-copy.log")
    (folder / f"{0:020}-short.log").write_bytes(b"".join(entries(0, 4, "a", 2)))
    assert [offset for offset, _ in reported(rows(tmp_path))] == list(range(10))
