"""The columns on request: lost offsets at holes of a log, and the reason why `read_committed` omits a row."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import crc32c
import pytest

from sparkwire.kafka.files import kafka_log
from sparkwire.kafka.files.follow_log import LogFollower
from tests.kafka.test_files import rows
from tests.kafka.test_files_transactions import NAMES, lines, write
from tests.support.log_files import entries, segment

LOST = "offset,position,error,first_lost,last_lost"
OF_BATCHES = "base_offset,position,record_count,error,first_lost,last_lost"


def holes(rows: list[dict[str, Any]]) -> list[tuple[int | None, int | None]]:
    return [(row["first_lost"], row["last_lost"]) for row in rows if row["error"]]


def damaged(data: list[bytes], numbers: set[int], chance: Random | None = None) -> list[bytes]:
    """Some entries zeroed, or with a changed byte."""
    out = []
    for number, one in enumerate(data):
        if number in numbers and (chance is None or chance.random() < 0.5):
            out.append(bytes(len(one)))
        elif number in numbers and chance is not None:
            at = chance.randrange(16, len(one))  # no checksum covers the offset and the epoch before this
            out.append(one[:at] + bytes([one[at] ^ 1 << chance.randrange(8)]) + one[at + 1 :])
        else:
            out.append(one)
    return out


@pytest.mark.parametrize("kind", ["records", "batches"])
def test_offsets_of_a_hole(tmp_path: Path, kind: str) -> None:
    data = entries(100, 200, size=10)
    segment(tmp_path / "t-0", 100, damaged(data, {0, 3, 4, 9}))
    segment(tmp_path / "t-0", 230, damaged(entries(230, 250, size=10), {1}))
    result = rows(tmp_path, rows=kind, columns=LOST if kind == "records" else OF_BATCHES)
    assert holes(result) == [(100, 109), (130, 149), (190, 229), (240, None)]
    assert [row["record_count"] for row in result if row["error"]] == [None] * 4 if kind == "batches" else True
    assert "first_lost" not in kafka_log.schema(kafka_log.query({"path": str(tmp_path)})).names


@pytest.mark.parametrize("kind", ["records", "batches"])
@pytest.mark.parametrize("seed", range(20))
def test_lost_offsets_are_the_missing_ones(tmp_path: Path, kind: str, seed: int) -> None:
    """Lost offsets and the rows' offsets are all written offsets, each once, for any splits."""
    chance = Random(seed)
    data = entries(0, 3000, size=3)
    gone = {chance.randrange(len(data)) for _ in range(60)} | set(range(400, 400 + chance.randrange(30)))
    segment(tmp_path, 0, damaged(data, gone - {999}, chance))
    for split in (str(1 << 30), "20000"):
        result = rows(tmp_path, rows=kind, columns=LOST if kind == "records" else OF_BATCHES, maxSplitBytes=split)
        seen: list[int] = []
        for row in result:
            if row["error"] is None:
                first = row["offset" if kind == "records" else "base_offset"]
                seen += [first] if kind == "records" else range(first, first + row["record_count"])
            elif row["first_lost"] is not None:
                seen += range(row["first_lost"], row["last_lost"] + 1)
        assert seen == list(range(3000))


def test_only_offsets_of_the_query_are_lost(tmp_path: Path) -> None:
    segment(tmp_path, 0, damaged(entries(0, 100, size=10), {4}))
    result = rows(tmp_path, columns=LOST, startingOffset="43", endingOffset="46")
    assert holes(result) == [(43, 45)]


def test_a_corrupt_record_in_a_batch_with_a_valid_checksum(tmp_path: Path) -> None:
    """The third record of a batch extends beyond it: the offsets from there on are lost."""
    one = bytearray(entries(50, 60, size=10)[0])
    segment(tmp_path, 40, [*entries(40, 50, size=10), rewritten(one)])
    result = rows(tmp_path, columns=LOST)
    assert [row["offset"] for row in result if not row["error"]] == [*range(40, 50), 50, 51]
    assert holes(result) == [(52, 59)]


def rewritten(batch: bytearray) -> bytes:
    """The batch with a third record of an impossible size, and a valid checksum."""
    at = 61
    for _ in range(2):
        at += 1 + (batch[at] >> 1)
    batch[at] = 0x7E
    batch[17:21] = crc32c.crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return bytes(batch)


@pytest.mark.parametrize("kind", ["records", "batches"])
def test_why_a_row_is_hidden(kind: str, tmp_path: Path) -> None:
    """The rows of read_committed are those that are not hidden. The golden log is truncated inside a transaction."""
    first = lines(NAMES[:1])
    write(tmp_path, NAMES[:1], first[len(first) // 2]["position"])
    offset = "offset" if kind == "records" else "base_offset"
    given = {"rows": kind, "controlRecords": "true"}
    every = rows(tmp_path, columns=f"{offset},hidden", **given)
    committed = rows(tmp_path, columns=f"{offset},hidden", isolationLevel="read_committed", **given)
    assert [row[offset] for row in every if row["hidden"] is None] == [row[offset] for row in committed]
    assert {row["hidden"] for row in every} == {None, "ABORTED", "OPEN"}
    assert {row["hidden"] for row in committed} == {None}


def test_a_stream_has_no_column_hidden(tmp_path: Path) -> None:
    segment(tmp_path, 0, entries(0, 3))
    query = kafka_log.query({"path": str(tmp_path), "columns": "offset,hidden"})
    with pytest.raises(ValueError, match=r"^kafka_log has hidden in batch queries only: a stream"):
        LogFollower(query)
