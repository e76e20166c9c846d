"""Growing files: every row once, for batches at any time, and the same rows again between the same two offsets."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sparkwire.core.sources.storage import OpenFile
from sparkwire.databus.files import events
from sparkwire.errors import DataLossError
from sparkwire.kafka.files import log, plan, seek
from tests.databus.test_files import expected as event_rows
from tests.kafka.test_files import records, rows
from tests.support import kafka_cases as golden
from tests.support.databus_cases import STREAMS, golden_bytes
from tests.support.stream import events_of, kafka

Row = dict[str, Any]
FIRST, SECOND = (
    golden.archive("segments_v2")[f"v2_multi_segment/{name}.log"] for name in ("0" * 17 + "100", "0" * 17 + "494")
)
NAMES = ("00000000000000000100.log", "00000000000000000494.log")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "CHUNK", 700)
    monkeypatch.setattr(plan, "PAGE", 700)
    monkeypatch.setattr(seek, "LEAD", 200)
    monkeypatch.setattr(events, "CHUNK", 300)
    monkeypatch.setattr(events, "AHEAD", 2200)


def grown(path: Path, data: bytes, chance: random.Random, zeros: int = 0) -> Iterator[None]:
    """Writes a file in steps that end at any position; with ``zeros``, the file is preallocated."""
    at = 0
    while at < len(data):
        at = min(len(data), at + chance.randrange(1, 9000))
        path.write_bytes(data[:at] + bytes(max(0, zeros - at)))
        yield


def test_zeros_that_a_broker_truncates_during_a_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker truncates the preallocated space when it rolls a segment."""
    path = tmp_path / "orders-0" / NAMES[0]
    path.parent.mkdir()
    path.write_bytes(FIRST)
    want = kafka(tmp_path).batch()
    path.write_bytes(FIRST + bytes(200_000))
    stream, view = kafka(tmp_path), OpenFile.view

    def view_of_what_is_cut(source: OpenFile, position: int, size: int) -> Any:
        if source.file.path == str(path) and position + size > len(FIRST):
            os.truncate(path, len(FIRST))
        return view(source, position, size)

    monkeypatch.setattr(OpenFile, "view", view_of_what_is_cut)
    assert stream.batch() == want
    assert path.stat().st_size == len(FIRST)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("zeros", [0, 200_000])
def test_a_segment_grows_and_rolls(seed: int, zeros: int, tmp_path: Path, tiny: None) -> None:
    chance = random.Random(seed)
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / NAMES[0]).write_bytes(b"")
    stream, result = kafka(tmp_path), []
    for _ in grown(folder / NAMES[0], FIRST, chance, zeros):
        result += stream.batch()
    (folder / NAMES[0]).write_bytes(FIRST)
    for _ in grown(folder / NAMES[1], SECOND, chance, zeros):
        result += stream.batch()
    assert stream.batch() == []  # preallocated space waits
    (folder / NAMES[1]).write_bytes(SECOND)
    assert result == rows(folder / NAMES[0]) + rows(folder / NAMES[1])


@pytest.mark.parametrize("size", [1, 3000, 50_000, 10**7])
def test_batches_of_a_size(size: int, tmp_path: Path, tiny: None) -> None:
    for partition in ("orders-0", "orders-1"):
        (tmp_path / partition).mkdir()
        for name, data in zip(NAMES, (FIRST, SECOND), strict=True):
            (tmp_path / partition / name).write_bytes(data)
    stream, rows, batches = kafka(tmp_path), [], 0
    while some := stream.batch(size):
        rows += some
        batches += 1
    key = [(row["partition"], row["offset"]) for row in rows]
    assert sorted(key) == [(partition, offset) for partition in (0, 1) for offset in range(100, 520)]
    assert batches >= 2 * (len(FIRST) + len(SECOND)) // (size + 20_000)


def test_new_partitions_join(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / NAMES[0]).write_bytes(FIRST)
    stream = kafka(tmp_path)
    assert {row["partition"] for row in stream.batch()} == {0}
    (tmp_path / "orders-7").mkdir()
    (tmp_path / "orders-7" / NAMES[1]).write_bytes(SECOND)
    assert {row["partition"] for row in stream.batch()} == {7}


def test_start_positions(tmp_path: Path) -> None:
    for name, data in zip(NAMES, (FIRST, SECOND), strict=True):
        (tmp_path / name).write_bytes(data)
    assert [row["offset"] for row in kafka(tmp_path, startingOffset="490").batch()] == list(range(490, 520))
    whole_log = rows(tmp_path)
    time = whole_log[300]["timestamp_ms"]
    first = next(k for k, row in enumerate(whole_log) if row["timestamp_ms"] >= time)
    assert kafka(tmp_path, startingTimestamp=str(time)).batch() == whole_log[first:]
    with pytest.raises(ValueError, match="a stream has no end"):
        kafka(tmp_path, endingOffset="3")


def test_retention(tmp_path: Path) -> None:
    for name, data in zip(NAMES, (FIRST, SECOND), strict=True):
        (tmp_path / name).write_bytes(data)
    stream, lenient = kafka(tmp_path), kafka(tmp_path, failOnDataLoss="false")
    for one in (stream, lenient):
        one.batch(20_000)
    (tmp_path / NAMES[0]).unlink()
    with pytest.raises(DataLossError, match=r"the query continues at offset 214, but the log begins at offset 494 now"):
        stream.batch()
    assert [row["offset"] for row in lenient.batch()] == list(range(494, 520))


def test_retention_of_read_segments(tmp_path: Path) -> None:
    (tmp_path / NAMES[0]).write_bytes(FIRST)
    stream = kafka(tmp_path)
    stream.batch()
    (tmp_path / NAMES[1]).write_bytes(SECOND)
    (tmp_path / NAMES[0]).unlink()
    assert [row["offset"] for row in stream.batch()] == list(range(494, 520))


def test_corruption_in_a_growing_segment(tmp_path: Path, tiny: None) -> None:
    data = bytearray(FIRST)
    data[5000] ^= 1
    path = tmp_path / NAMES[0]
    path.write_bytes(b"")
    stream, result = kafka(tmp_path), []
    for _ in grown(path, bytes(data), random.Random(4)):
        result += stream.batch()
    assert records(result) == records(rows(path))


def test_open_transactions_wait(tmp_path: Path, tiny: None) -> None:
    data = golden.archive("segments_v2")["v2_txn/00000000000000000000.log"]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"")
    stream, result = kafka(tmp_path, isolationLevel="read_committed"), []
    for _ in grown(path, data, random.Random(2)):
        result += stream.batch()
        assert result == rows(path, isolationLevel="read_committed")[: len(result)]
    assert result == rows(path, isolationLevel="read_committed")


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("budget", [None, 500])
def test_event_files_grow_by_whole_windows(name: str, budget: int | None, tmp_path: Path, tiny: None) -> None:
    data = golden_bytes(name)
    path = tmp_path / "events.bin"
    path.write_bytes(b"")
    stream = events_of(tmp_path)
    rows: list[Row] = []
    for _ in grown(path, data, random.Random(3)):
        some = stream.batch(budget)
        windows = {row["window"] for row in some}
        assert not windows & {row["window"] for row in rows}
        rows += some
    while some := stream.batch(budget):
        rows += some
    want = event_rows({str(path): data}, str(path))
    assert rows == want[: len(rows)]
    assert not any(row["window_scn"] for row in want[len(rows) :])


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("budget", [None, 1, 2000])
def test_streams_in_several_files(name: str, budget: int | None, tmp_path: Path, tiny: None) -> None:
    data = golden_bytes(name)
    whole_rows = event_rows({"": data}, "")
    starts = [row["position"] for row in whole_rows]
    cuts = [0, *sorted(random.Random(5).sample(starts[1:], 6)), len(data)]
    stream = events_of(tmp_path, stream="directory", maxSplitBytes="900")
    rows: list[Row] = []
    for number, (start, stop) in enumerate(pairwise(cuts)):
        (tmp_path / f"events.{number}").write_bytes(data[start:stop])
        stream.follower = stream.new()
        rows += stream.batch(budget)
    while some := stream.batch(budget):
        rows += some
    files = {str(tmp_path / f"events.{n}"): data[a:b] for n, (a, b) in enumerate(pairwise(cuts))}
    want = event_rows(files, str(tmp_path))
    assert rows == want[: len(rows)]
    assert not any(row["window_scn"] for row in want[len(rows) :])
