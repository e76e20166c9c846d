"""Directories whose names look like globs: a query reads only the files in the directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkwire import kafka
from tests.databus import test_write_files as databus
from tests.kafka import test_write_log as log
from tests.support.client_streams import end, event
from tests.support.stream import events_of
from tests.support.stream import kafka as stream_of

NAMES = ["w[1]", "[ab]", "[", "{a,b}", "{", "}a{", "*", "a*b", "?", "a?b=c", "[!a]*{b,c}", "**"]


@pytest.mark.parametrize("name", NAMES)
def test_a_log(name: str, tmp_path: Path) -> None:
    for other in ("w1", "a", "b", "ab", "xb", "axb"):  # names that the patterns match
        log.write(tmp_path / other, log.rows_of(3))
    path = tmp_path / name
    log.write(path, log.rows_of(5))
    assert [row["offset"] for row in log.read(path)] == [0, 1, 2, 3, 4]
    stream = stream_of(path)
    assert len(stream.batch()) == 5
    log.write(path, log.rows_of(2, first=5))
    for one in (log.read(path), log.read(path / "orders-0")):
        assert [row["offset"] for row in one] == list(range(7))
        assert {row["file"].rpartition("/orders-0/")[0] for row in one} == {str(path)}
    assert [row["offset"] for row in stream.batch()] == [5, 6]
    for checked in (path, path / "orders-0"):
        [partition] = kafka.check(str(checked)).partitions
        assert (partition.first, partition.next) == (0, 7)
    log.write(path, log.rows_of(1), overwrite=True, endOffset=7)
    assert [row["offset"] for row in log.read(path)] == [0]


@pytest.mark.parametrize("name", NAMES)
def test_event_files(name: str, tmp_path: Path) -> None:
    for other in ("w1", "a", "b", "ab", "xb", "axb"):
        databus.write(tmp_path / other, [event(9, 40), end(9)], stream="s")
    path = tmp_path / name
    databus.write(path, [event(1, 40), end(1)], stream=name)
    stream = events_of(path, stream="directory")
    assert {row["window_scn"] for row in stream.batch()} == {1}
    databus.write(path, [event(2, 40), end(2)], stream=name)
    assert {row["window_scn"] for row in stream.batch()} == {2}
    for one in (path, path / name):
        assert databus.read(one) == [1, 2]
