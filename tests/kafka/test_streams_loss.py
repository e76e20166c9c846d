"""Streams report every loss: a query resumes at its position, or fails, or continues with all remaining data."""

from __future__ import annotations

import gzip
import json
import logging
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkwire.core.sources import follow
from sparkwire.errors import DataLossError
from tests.databus.test_files import rows as event_rows
from tests.kafka.test_files import rows as log_rows
from tests.support.client_streams import end, event, window
from tests.support.databus_cases import golden_bytes
from tests.support.log_files import entries, entry, segment
from tests.support.stream import Stream, events_of, kafka

Row = dict[str, Any]


def values(rows: list[Row]) -> list[str]:
    return [row["value"].decode() for row in rows if row["error"] is None]


def tagged(first: int, stop: int, tag: str = "") -> list[str]:
    return [f"{tag}{offset}" for offset in range(first, stop)]


def windows_of(rows: list[Row]) -> list[int]:
    return sorted({row["window_scn"] for row in rows})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "orders-0"


def after_a_loss(stream: Stream, sentence: str, caplog: pytest.LogCaptureFixture) -> list[Row]:
    """It fails with a clear error. With failOnDataLoss false, it logs the same message once and continues."""
    with pytest.raises(DataLossError, match=sentence):
        stream.batch()
    stream.restart(fail_on_data_loss=False)
    with caplog.at_level(logging.WARNING, logger="sparkwire"):
        end = stream.follower.latest(stream.place)
        rows = stream.between(stream.follower, stream.place, end)
    assert len(caplog.records) == 1
    assert "failOnDataLoss is false" in caplog.text
    stream.place = end
    stream.restart()
    assert stream.batch() == []  # a loss is reported once
    return rows


# -- kafka_log


def test_a_log_that_was_truncated_and_appended_to(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = segment(folder, 0, entries(0, 10))
    stream = kafka(folder)
    assert values(stream.batch()) == tagged(0, 10)
    path.write_bytes(b"".join(entries(0, 5) + entries(5, 25, "again ")))
    rows = after_a_loss(stream, "continues at offset 10, but another record batch is at offset 9 now", caplog)
    assert values(rows) == tagged(10, 25, "again ")


def test_a_log_that_was_recreated_with_the_same_name(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    segment(folder, 0, entries(0, 117))
    stream = kafka(folder)
    stream.batch()
    segment(folder, 0, entries(0, 400, "new "))
    assert values(after_a_loss(stream, "offset 117", caplog)) == tagged(117, 400, "new ")


def test_a_log_that_was_recreated_and_is_shorter(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    segment(folder, 0, entries(0, 50))
    segment(folder, 50, entries(50, 60))
    stream = kafka(folder)
    stream.batch()
    shutil.rmtree(folder)
    segment(folder, 0, entries(0, 20, "new "))
    assert after_a_loss(stream, "continues at offset 60, but the log ends at offset 20 now", caplog) == []
    segment(folder, 0, entries(0, 200, "new "))
    assert values(stream.batch()) == tagged(20, 200, "new ")


def test_a_segment_between_is_missing(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    for base in (0, 50, 100):
        segment(folder, base, entries(base, base + 50, size=5))
    stream = kafka(folder)
    start = stream.batch(1)
    (folder / f"{50:020}.log").unlink()
    rows = after_a_loss(stream, "no segment has the offsets 50 to 99", caplog)
    assert values(start + rows) == tagged(0, 50) + tagged(100, 150)


def test_the_first_segment_is_deleted_between_planning_and_reading(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, *_ = [segment(folder, base, entries(base, base + 50)) for base in (0, 50, 100)]
    stream = kafka(folder)
    end = stream.follower.latest(stream.place)
    planned = stream.follower.tasks(stream.place, end)
    first.unlink()
    with pytest.raises(DataLossError, match=r"continues at offset 0, but.*00.log was deleted after it was listed"):
        stream.read(planned)
    with pytest.raises(DataLossError, match="continues at offset 0, but the log begins at offset 50 now"):
        stream.new().tasks(stream.place, end)
    stream.restart(fail_on_data_loss=False)
    planned = [[part._replace(guard=part.guard._replace(fails=False)) for part in task] for task in planned]
    assert values(stream.read(planned)) == values(stream.between(stream.follower, stream.place, end)) == tagged(50, 150)


def test_a_segment_changes_between_planning_and_reading(folder: Path) -> None:
    path = segment(folder, 0, entries(0, 50))
    stream = kafka(folder, maxSplitBytes="900")
    end = stream.follower.latest(stream.place)
    planned = stream.follower.tasks(stream.place, end)
    path.write_bytes(b"".join(entries(0, 20, "a longer value ") + entries(20, 60, "x")))
    with pytest.raises(DataLossError, match="has other bytes than when it was listed"):
        stream.read(planned)
    planned = [[part._replace(guard=part.guard._replace(fails=False)) for part in task] for task in planned]
    assert values(stream.read(planned)) == tagged(0, 20, "a longer value ") + tagged(20, 50, "x")


@pytest.mark.parametrize("change", ["compressed", "a backup of other names", "copied"])
def test_the_same_entries_in_another_file_are_no_loss(change: str, folder: Path) -> None:
    path = segment(folder, 0, entries(0, 50, size=10))
    stream = kafka(folder)
    rows = stream.batch()
    stream.restart()
    data = path.read_bytes()
    path.unlink()
    if change == "compressed":
        path.with_suffix(".log.gz").write_bytes(gzip.compress(data, mtime=0))
    elif change == "copied":
        path.write_bytes(data)
    else:
        (folder / f"{0:020}-6Yh0aUs9Qdq3Q2q5Yk0Dzw.log").write_bytes(data)
    assert stream.batch() == []
    segment(folder, 50, entries(50, 60))
    rows += stream.batch()
    assert values(rows) == tagged(0, 60)


def test_the_current_segment_is_compressed_meanwhile(folder: Path) -> None:
    path = segment(folder, 0, entries(0, 50, size=5))
    stream = kafka(folder)
    rows = stream.batch(300)
    assert 0 < len(rows) < 50
    path.with_suffix(".log.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()
    segment(folder, 50, entries(50, 60))
    assert values(rows + stream.all(300)) == tagged(0, 60)


@pytest.mark.parametrize("zeros", [500, 4096, 5000, 1 << 20])
def test_zeros_inside_a_growing_segment(zeros: int, folder: Path) -> None:
    data = [*entries(0, 10), bytes(zeros), *entries(10, 20)]
    segment(folder, 0, data)
    rows = kafka(folder).batch()
    assert values(rows) == tagged(0, 20)
    assert [row["error"] for row in rows if row["error"]] == ["BAD_LENGTH"]


@pytest.mark.parametrize("tail", [b"\0" * 8192, b"\1" * 30, entry(20, [b"torn"])[:-3]], ids=["zeros", "noise", "torn"])
def test_bytes_after_the_last_valid_entry_wait_while_the_file_may_grow(tail: bytes, folder: Path) -> None:
    path = segment(folder, 0, [*entries(0, 20), tail])
    stream = kafka(folder)
    assert values(stream.batch()) == tagged(0, 20)
    assert stream.batch() == []
    os.utime(path, (0, 0))
    assert [row["error"] for row in stream.batch()] == [] if tail == bytes(8192) else ["TRUNCATED"]
    segment(folder, 0, entries(0, 30))  # the broker truncates it, and continues
    assert values(stream.batch()) == tagged(20, 30)


def test_corruption_in_the_middle_of_a_log(folder: Path) -> None:
    good = entries(0, 30, size=10)
    bad = bytearray(good[1])
    bad[70] ^= 1
    segment(folder, 0, [good[0], bytes(bad)])
    stream = kafka(folder)
    assert values(stream.batch()) == tagged(0, 10)
    segment(folder, 0, [good[0], bytes(bad), good[2]])
    rows = stream.batch()
    assert [row["error"] for row in rows[:1]] == ["CRC_MISMATCH"]
    assert values(rows) == tagged(20, 30)


def test_retention_of_read_segments_is_no_loss(folder: Path) -> None:
    paths = [segment(folder, base, entries(base, base + 50)) for base in (0, 50)]
    stream = kafka(folder)
    stream.batch()
    segment(folder, 100, entries(100, 150))
    for path in paths:
        path.unlink()
    assert values(stream.batch()) == tagged(100, 150)


def test_a_deleted_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("orders-0", "orders-1"):
        segment(tmp_path / name, 0, entries(0, 5))
    stream = kafka(tmp_path)
    stream.batch()
    shutil.rmtree(tmp_path / "orders-0")
    segment(tmp_path / "orders-1", 0, entries(0, 8))
    with pytest.raises(DataLossError, match="orders-0: the query continues at offset 5, but it no longer exists"):
        stream.batch()
    stream.restart(fail_on_data_loss=False)
    assert values(stream.batch()) == tagged(5, 8)


def test_the_log_cleaner_is_no_loss(folder: Path) -> None:
    """Before the offset in the checkpoint of a broker's cleaner, gaps and rewritten record batches are normal."""
    segment(folder, 0, entries(0, 50, size=5))
    segment(folder, 50, entries(50, 60))
    stream = kafka(folder)
    assert values(stream.batch(500))[-1] < "50"
    offset = next(iter(stream.place["logs"].values()))["next"]
    segment(folder, 0, [entry(offset + 5, [b"kept"])])
    with pytest.raises(DataLossError, match="another record batch is at offset"):
        stream.batch()
    (folder.parent / "cleaner-offset-checkpoint").write_text("0\n2\norders-1 7\norders 0 50\n".replace("-1", " 1"))
    assert values(stream.batch()) == ["kept", *tagged(50, 60)]


def test_transactions_after_a_loss(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    segment(folder, 0, entries(0, 10))
    stream = kafka(folder, isolationLevel="read_committed")
    stream.batch()
    segment(folder, 0, entries(0, 30, "new "))
    assert values(after_a_loss(stream, "offset 10", caplog)) == tagged(10, 30, "new ")


def test_symbolic_links_to_directories_above(tmp_path: Path) -> None:
    folder = tmp_path / "broker" / "orders-0"
    segment(folder, 0, entries(0, 1))
    (folder / "up").symlink_to(tmp_path / "broker")
    (tmp_path / "broker" / "again").symlink_to(folder)
    assert values(log_rows(tmp_path / "broker")) == ["0"]


@pytest.mark.parametrize("path", ["", "*"])
def test_a_partition_keeps_its_name_beside_a_link(path: str, tmp_path: Path) -> None:
    """The link is first by its name."""
    segment(tmp_path / "orders-1", 0, entries(0, 3))
    (tmp_path / "l1").symlink_to(tmp_path / "orders-1")
    (tmp_path / "z").symlink_to(tmp_path / "orders-1")
    rows = log_rows(tmp_path / path)
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == [("orders", 1, k) for k in range(3)]


# -- databus


def damaged_relay(path: Path, at: int = 700) -> bytes:
    data = bytearray(golden_bytes("window_stream"))
    data[at] ^= 1
    path.write_bytes(data)
    return bytes(data)


@pytest.mark.parametrize("at", range(60, 7600, 377))
def test_one_flipped_bit_does_not_end_a_stream(at: int, tmp_path: Path) -> None:
    path = tmp_path / "relay.bin"
    damaged_relay(path, at)
    want = event_rows(path)
    whole = [row for row in want if row["window"] <= max(r["window"] for r in want if r["window_scn"] is not None)]
    assert events_of(path).all() == events_of(path).all(500) == whole


def test_a_file_that_is_replaced_by_another(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "relay.bin"
    path.write_bytes(b"".join(window(scn, 40) for scn in range(10, 100, 10)))
    stream = events_of(path)
    assert windows_of(stream.batch()) == list(range(10, 100, 10))
    path.write_bytes(b"".join(window(scn, 40, 41, 42) for scn in range(50, 160, 10)))
    rows = after_a_loss(
        stream, "continues at window 9, after SCN 90, but relay.bin has other events before byte", caplog
    )
    assert windows_of(rows) == list(range(100, 160, 10))
    assert sorted({row["window"] for row in rows}) == list(range(9, 15))


def test_a_stream_that_was_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "relay.bin"
    path.write_bytes(b"".join(window(scn, 40) for scn in range(10, 100, 10)))
    stream = events_of(path)
    stream.batch()
    path.write_bytes(b"".join(window(scn, 40) for scn in range(10, 40, 10)))
    assert after_a_loss(stream, r"relay.bin ends at byte \d+ now", caplog) == []
    path.write_bytes(b"".join(window(scn, 40) for scn in range(10, 70, 10)))
    assert windows_of(stream.batch()) == [40, 50, 60]


def test_files_that_come_late_under_an_earlier_name(tmp_path: Path) -> None:
    stream = events_of(tmp_path, stream="directory")
    rows: list[Row] = []
    for number in (8, 9, 10, 11):
        (tmp_path / f"part.{number}").write_bytes(window(10 * number, 40))
        rows += stream.batch()
        stream.restart()
    assert [row["window_scn"] for row in rows if row["event_type"] == "END_OF_PERIOD"] == [80, 90, 100, 110]
    (tmp_path / "part.8").unlink()
    (tmp_path / "part.12").write_bytes(window(120, 40))
    assert windows_of(stream.batch()) == [120]


def test_events_appended_to_a_file_that_was_read(tmp_path: Path) -> None:
    """If another file exists by then, they are read after it, once, in any process."""
    stream = events_of(tmp_path, stream="directory")
    rows: list[Row] = []
    files = {"a": [10, 30, 50, 70], "b": [20, 40, 60]}
    for scn in range(10, 80, 10):
        name = next(name for name, scns in files.items() if scn in scns)
        with (tmp_path / name).open("ab") as file:
            file.write(window(scn, 40, 41))
        rows += stream.batch()
        stream.restart()
    ended = [row for row in rows if row["event_type"] == "END_OF_PERIOD"]
    assert [row["window_scn"] for row in ended] == [10, 20, 30, 40, 50, 60, 70]
    assert [row["window"] for row in ended] == list(range(7))
    assert len({row["position"] for row in ended if row["file"].endswith("a")}) == 4
    assert stream.batch() == []


@pytest.mark.parametrize("scns", [[10], [11, 21, 22], [15, 16, 17, 25]])
def test_a_file_that_was_read_is_replaced(tmp_path: Path, scns: list[int], caplog: pytest.LogCaptureFixture) -> None:
    """A shorter or a longer file is a loss. The stream continues after the last returned SCN."""
    (tmp_path / "a").write_bytes(window(10, 40) + window(20, 40))
    stream = events_of(tmp_path, stream="directory")
    stream.batch()
    (tmp_path / "b").write_bytes(window(30, 40))
    stream.batch()
    (tmp_path / "a").write_bytes(b"".join(window(scn, 41) for scn in scns))
    assert after_a_loss(stream, "a (ends at byte|has other events before byte)", caplog) == []


@pytest.mark.parametrize("options", [{}, {"stream": "directory"}])
def test_a_compressed_copy_is_the_same_stream(options: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "relay.bin"
    path.write_bytes(window(10, 40) + window(20, 40))
    stream = events_of(tmp_path, **options)
    rows = stream.batch()
    path.with_suffix(".bin.gz").write_bytes(gzip.compress(path.read_bytes() + window(30, 40), mtime=0))
    assert stream.batch() == []  # the copy is in the same directory
    path.unlink()
    rows += stream.batch()
    assert [row["window_scn"] for row in rows if row["event_type"] == "END_OF_PERIOD"] == [10, 20, 30]


def test_a_file_that_is_deleted_before_its_last_window_ends(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a").write_bytes(window(10, 40) + event(20, 40))
    (tmp_path / "b").write_bytes(window(30, 40))
    (tmp_path / "c").write_bytes(window(10, 40))
    stream = events_of(tmp_path)
    stream.batch()
    (tmp_path / "c").unlink()  # all its rows were returned
    (tmp_path / "b").write_bytes(window(30, 40) + window(40, 40))
    assert windows_of(stream.batch()) == [40]
    (tmp_path / "a").unlink()
    (tmp_path / "b").write_bytes(window(30, 40) + window(40, 40) + window(50, 40))
    with pytest.raises(DataLossError, match="it no longer exists"):
        stream.batch()


def test_events_change_between_planning_and_reading(tmp_path: Path) -> None:
    path = tmp_path / "relay.bin"
    path.write_bytes(window(10, 40) + window(20, 40))
    stream = events_of(path)
    stream.batch()
    path.write_bytes(path.read_bytes() + b"".join(window(scn, 40) for scn in (30, 40, 50)))
    end_of = stream.follower.latest(stream.place)
    planned = stream.follower.tasks(stream.place, end_of)
    path.write_bytes(b"".join(window(scn, 40, 41) for scn in range(15, 90, 10)))
    with pytest.raises(DataLossError, match="has other events than when it was listed"):
        stream.read(planned)
    planned = [[part._replace(guard=part.guard._replace(fails=False)) for part in task] for task in planned]
    assert windows_of(stream.read(planned)) == [25, 35, 45]


def test_an_event_that_is_written_slowly(tmp_path: Path) -> None:
    """Events in the value of an incomplete event prove nothing."""
    inner = event(7, 40) + end(7)
    data = window(10, 40) + event(20, 40, value=inner * 3) + end(20)
    path = tmp_path / "relay.bin"
    rows: list[Row] = []
    path.write_bytes(b"")
    stream = events_of(path)
    for size in range(1, len(data) + 1, 9):
        path.write_bytes(data[:size])
        rows += stream.batch()
    path.write_bytes(data)
    rows += stream.batch()
    assert windows_of(rows) == [10, 20]
    assert not any(row["error"] for row in rows)


# -- checkpoints


@pytest.mark.parametrize("make", [kafka, events_of])
@pytest.mark.parametrize(
    "place",
    [
        [],
        "x",
        {"/logs/orders-0": ["00000000000000000000.log", 0, 10]},
        {"version": 3, "logs": {}},
        {"version": 2},
        {"version": 2, "logs": {"a": 7}},
        {"version": 2, "logs": {"a": {"next": "5"}}},
        {"version": 2, "logs": {"a": {"next": 5, "file": 3, "position": -1, "last": None}}},
        {"version": 2, "logs": {"a": {"window": 10**30, "file": "", "position": 0, "previous": 0}}},
        {"a": ["b", "c", "d"]},
        {"a": ["b", 1]},
        {"a": None},
    ],
    ids=str,
)
def test_an_invalid_checkpoint(make: Callable[..., Stream], place: Any, tmp_path: Path) -> None:
    segment(tmp_path, 0, entries(0, 3))
    stream = make(tmp_path)
    with pytest.raises(ValueError, match=r"^(kafka_log|databus): the query checkpoint (has version 3|says .*)"):
        stream.follower.latest(place)
    other = (events_of if make is kafka else kafka)(tmp_path)
    ends = [other.follower.latest(other.place), {"a": ["b", 1, 2, 0] if make is kafka else ["b", 1, 2]}]
    for end_of in ends:
        with pytest.raises(ValueError, match="it is of another source or was edited"):
            stream.follower.latest(json.loads(json.dumps(end_of)))


def test_a_position_far_beyond_the_file(folder: Path) -> None:
    segment(folder, 0, entries(0, 3))
    stream = kafka(folder)
    stream.batch()
    (log,) = stream.place["logs"].values()
    log["next"] = log["position"] = 10**18
    log["last"] = None
    segment(folder, 0, entries(0, 5))
    with pytest.raises(
        DataLossError, match="continues at offset 1000000000000000000, but the log ends at offset 5 now"
    ):
        stream.batch()


def test_when_a_file_stops_growing(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    segment(folder, 0, [*entries(0, 3), b"\1" * 40])
    monkeypatch.setattr(follow, "QUIET", 0.0)
    assert [row["error"] for row in kafka(folder).batch()][3:] == ["TRUNCATED"]


@pytest.mark.parametrize("seed", range(5))
def test_streams_of_corrupt_segments_have_the_rows_of_a_batch(seed: int, folder: Path) -> None:
    chance = random.Random(seed)
    data = bytearray(b"".join(entries(0, 300, size=3)))
    for _ in range(12):
        data[chance.randrange(len(data) - 400)] ^= 1 << chance.randrange(8)
    segment(folder, 0, [bytes(data)])
    want = log_rows(folder)
    assert kafka(folder).all(2000) == kafka(folder).all() == want


@pytest.mark.parametrize("make", [kafka, events_of])
def test_a_stream_over_an_empty_directory_waits(make: Callable[[Path], Stream], folder: Path) -> None:
    """It waits for the first file; a directory that it has read and that is empty now is an error."""
    folder.mkdir()
    stream = make(folder)
    assert stream.batch() == []
    assert stream.batch() == []
    if make is kafka:
        segment(folder, 0, entries(0, 3))
        assert values(stream.batch()) == tagged(0, 3)
    else:
        (folder / "relay.bin").write_bytes(window(1))
        assert windows_of(stream.batch()) == [1]
    for file in folder.iterdir():
        file.unlink()
    with pytest.raises(ValueError, match=r"has no (segment|file)"):
        stream.batch()


@pytest.mark.parametrize("make", [kafka, events_of])
def test_a_stream_over_no_directory_is_an_error(make: Callable[[Path], Stream], folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        make(folder).batch()
