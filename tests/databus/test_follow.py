"""Files of a directory as a stream: each event comes once, however the files come and whatever starts a batch."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkwire.core.sources import follow
from sparkwire.errors import DataLossError
from tests.support.client_streams import end, event, window
from tests.support.stream import Stream, events_of

Files = dict[str, bytes]
Batches = Callable[[Stream], list[dict[str, Any]]]

HALF = event(70, 40, value=b"v" * 100)[:60]
WHOLE = event(70, 40, value=b"v" * 100) + end(70)

WAYS: dict[str, list[Files]] = {
    "later name": [{"b": window(10, 40)}, {"c": window(20, 40)}],
    "earlier name": [{"b": window(10, 40)}, {"a": window(20, 40)}],
    "earlier names, one after another": [{"c": window(10, 40)}, {"b": window(20, 40)}, {"a": window(30, 40)}],
    "several at once": [
        {"c": window(10, 40)},
        {"a": window(20, 40) + window(30, 40), "b": window(40, 40), "d": window(50, 40), "e": window(60, 40)},
        {"0": window(80, 40), "f": window(90, 40)},
    ],
    "later name while one grows": [
        {"b": window(10, 40) + HALF},
        {"c": window(20, 40)},
        {"b": window(10, 40) + WHOLE},
        {"d": window(30, 40)},
    ],
    "earlier name while one grows": [
        {"b": window(10, 40) + HALF},
        {"a": window(20, 40)},
        {"b": window(10, 40) + WHOLE},
        {"c": window(30, 40)},
    ],
    "several at once while one grows": [
        {"c": window(10, 40) + HALF},
        {"a": window(20, 40), "b": window(30, 40) + window(40, 40), "d": window(50, 40)},
        {"c": window(10, 40) + WHOLE + window(80, 40)},
    ],
    "earlier name that grows itself": [
        {"b": window(10, 40)},
        {"a": window(20, 40) + HALF},
        {"b": window(10, 40) + window(30, 40)},
        {"a": window(20, 40) + WHOLE},
    ],
    "a window that is open": [
        {"b": window(10, 40) + event(20, 40)},
        {"a": window(30, 40)},
        {"b": window(10, 40) + event(20, 40) + end(20)},
    ],
}

TRIGGERS: dict[str, Batches] = {
    "processing time": lambda stream: stream.batch(),
    "processing time, limited": lambda stream: stream.all(100),
    "once": lambda stream: stream.restarted().batch(),
    "available now": lambda stream: stream.available_now(),
    "available now, limited": lambda stream: stream.available_now(100),
}


def put(folder: Path, files: Files) -> None:
    for name, data in files.items():
        (folder / name).write_bytes(data)


def check_once(rows: list[dict[str, Any]], folder: Path) -> None:
    """Each event of the files comes once, without an error, and each window that ends has a number of its own."""
    assert not [row for row in rows if row["error"]]
    whole = Counter(bytes(row["event"]) for row in events_of(folder).all())
    assert Counter(bytes(row["event"]) for row in rows) == whole
    ended = [row["window"] for row in rows if row["event_type"] == "END_OF_PERIOD"]
    assert len(set(ended)) == len(ended)


@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("way", WAYS)
def test_each_event_comes_once(way: str, trigger: str, tmp_path: Path) -> None:
    stream = events_of(tmp_path, stream="directory")
    rows: list[dict[str, Any]] = []
    for files in WAYS[way]:
        put(tmp_path, files)
        rows += TRIGGERS[trigger](stream)
    rows += stream.all()
    check_once(rows, tmp_path)


@pytest.mark.parametrize("way", WAYS)
def test_files_that_come_while_a_batch_is_planned(way: str, tmp_path: Path) -> None:
    """A batch has what its offsets say, also in a new process."""
    stream = events_of(tmp_path, stream="directory")
    rows: list[dict[str, Any]] = []
    first, *others = WAYS[way]
    put(tmp_path, first)
    for files in others:
        end_of = stream.follower.latest(stream.place)
        put(tmp_path, files)
        some = stream.between(stream.follower, stream.place, end_of)
        assert stream.between(stream.new(), stream.place, end_of) == some
        rows, stream.place = rows + some, end_of
    rows += stream.all()
    check_once(rows, tmp_path)


@pytest.mark.parametrize("way", WAYS)
def test_files_that_come_between_limited_batches(way: str, tmp_path: Path) -> None:
    """A run of ``availableNow`` reads what was there when it began, in small batches."""
    stream = events_of(tmp_path, stream="directory")
    first, *others = WAYS[way]
    put(tmp_path, first)
    arrivals = iter(others)
    rows = stream.available_now(100, between=lambda: put(tmp_path, next(arrivals, {})))
    for files in arrivals:
        put(tmp_path, files)
    rows += stream.available_now(100) + stream.all()
    check_once(rows, tmp_path)


def test_a_run_without_new_events_has_no_batch(tmp_path: Path) -> None:
    put(tmp_path, {"b": window(10, 40), "a": window(20, 40)})
    stream = events_of(tmp_path, stream="directory")
    stream.available_now()
    before = stream.place
    assert stream.available_now() == []
    assert stream.place is before


def test_a_file_that_ends_within_an_event_ends_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The incomplete event is a row, and the files after it are read, when nobody writes to the file any more."""
    put(tmp_path, {"a": window(10, 40) + HALF, "b": window(20, 40)})
    stream = events_of(tmp_path, stream="directory")
    assert [row["sequence"] for row in stream.batch()] == [10, 10]
    monkeypatch.setattr(follow, "QUIET", 0.0)
    assert [row["error"] for row in stream.batch()] == ["TRUNCATED", None, None]


def test_events_that_are_appended_before_a_file_is_compressed(tmp_path: Path) -> None:
    put(tmp_path, {"a": window(10, 40), "b": window(20, 40)})
    stream = events_of(tmp_path, stream="directory")
    stream.batch()
    (tmp_path / "a").unlink()
    put(tmp_path, {"a.gz": gzip.compress(window(10, 40) + window(30, 40), mtime=0)})
    assert [row["sequence"] for row in stream.batch()] == [30, 30]
    assert stream.batch() == []


def test_names_with_the_same_checksum(tmp_path: Path) -> None:
    """CRC-32 of ``plumless`` and ``buckeroo`` is the same."""
    put(tmp_path, {"plumless": window(10, 40), "q": window(15, 40)})
    stream = events_of(tmp_path, stream="directory")
    stream.batch()
    put(tmp_path, {"buckeroo": window(20, 40), "z": window(30, 40)})
    assert [row["sequence"] for row in stream.all()] == [20, 20, 30, 30]


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_a_file_of_a_planned_batch_is_gone(name: str, tmp_path: Path) -> None:
    put(tmp_path, {"b": window(10, 40)})
    stream = events_of(tmp_path, stream="directory")
    stream.batch()
    put(tmp_path, {"a": window(20, 40), "b": window(10, 40) + window(30, 40), "c": window(50, 40)})
    end_of = stream.follower.latest(stream.place)
    os.remove(tmp_path / name)  # noqa: PTH107
    with pytest.raises(DataLossError, match=f"{name} no longer exists"):
        stream.follower.tasks(stream.place, end_of)
