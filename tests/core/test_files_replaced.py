"""Directories and files that are replaced between a query's listing, its plan and its tasks: rows are of one version, or none."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from sparkwire.core.sources import table
from sparkwire.core.sources.storage import FileReplaced
from sparkwire.databus.files import databus_table
from sparkwire.errors import DataLossError
from sparkwire.kafka.files import kafka_log
from tests.support.arrow import plain_rows
from tests.support.client_streams import window
from tests.support.log_files import entries, segment
from tests.support.stream import Stream, events_of, kafka

OF_SOURCES = pytest.mark.parametrize("source", [kafka_log, databus_table], ids=["kafka_log", "databus"])


def written(source: Any, folder: Path, version: int = 0, parts: int = 3, size: int = 1) -> list[Path]:
    """Files of a version; those of all versions have the same names, and where ``size`` is the same the same sizes."""
    folder.mkdir(parents=True, exist_ok=True)
    if source is kafka_log:
        bases = range(0, 20 * parts, 20)
        return [
            segment(folder, base, entries(base, base + 10) + entries(base + 10, base + 20, f"{version}" * size))
            for base in bases
        ]
    paths = [folder / f"relay-{k}.bin" for k in range(parts)]
    for k, path in enumerate(paths):
        path.write_bytes(window(10 * k + version + 1, *[40] * size))
    return paths


def exchanged(old: Path, new: Path) -> None:
    """One directory takes another's place."""
    put_aside = old.with_name("put-aside")
    old.rename(put_aside)
    new.rename(old)
    put_aside.rename(new)


def everything(source: Any, query: Any, tasks: Any) -> list[dict[str, Any]]:
    return plain_rows(batch for task in tasks for batch in source.read(query, task))


@OF_SOURCES
@pytest.mark.parametrize("size", [1, 2])
def test_a_directory_that_is_replaced_after_the_plan(source: Any, size: int, tmp_path: Path) -> None:
    folder, new = tmp_path / "orders-0", tmp_path / "new"
    [*_, last] = written(source, folder)
    written(source, new, version=1, size=size)
    query = source.query({"path": str(folder), "maxSplitBytes": "100"})
    tasks = source.plan(query)
    assert everything(source, query, tasks[:-1])
    exchanged(folder, new)
    with pytest.raises(
        FileReplaced, match=f"{last} was replaced after it was listed: load the path again and repeat the query"
    ):
        everything(source, query, tasks[-1:])


@OF_SOURCES
def test_a_file_that_is_written_again_in_its_place(source: Any, tmp_path: Path) -> None:
    """With as many bytes, as a copy does: it stays the same file for the system."""
    [path] = written(source, tmp_path / "orders-0", parts=1)
    query = source.query({"path": str(path)})
    tasks = source.plan(query)
    os.utime(path, (1, 1))
    tasks = source.plan(query)
    written(source, tmp_path / "orders-0", version=1, parts=1)
    with pytest.raises(FileReplaced, match=f"{path} was replaced"):
        everything(source, query, tasks)


@OF_SOURCES
def test_what_is_appended_after_the_plan(source: Any, tmp_path: Path) -> None:
    """A version of links to the same files, one of which is longer, and one more: what was planned is read."""
    folder, new = tmp_path / "orders-0", tmp_path / "new"
    *_, last = written(source, folder)
    query = source.query({"path": str(folder)})
    tasks = source.plan(query)
    want = everything(source, query, tasks)
    shutil.copytree(folder, new, copy_function=os.link)
    with last.open("ab") as file:
        file.write(b"".join(entries(60, 70)) if source is kafka_log else window(50, 40))
    exchanged(folder, new)
    assert everything(source, query, tasks) == want
    assert want


def test_a_segment_that_a_broker_fills(tmp_path: Path) -> None:
    """One that was made in advance has its length before it has its records."""
    path = segment(tmp_path / "orders-0", 0, entries(0, 20))
    os.truncate(path, 1 << 20)
    query = kafka_log.query({"path": str(path)})
    tasks = kafka_log.plan(query)
    with path.open("r+b") as file:
        file.seek(len(b"".join(entries(0, 20))))
        file.write(entries(20, 21)[0])
    assert everything(kafka_log, query, tasks)[:20] == everything(kafka_log, query, kafka_log.plan(query))[:20]


@OF_SOURCES
def test_a_copy_with_the_same_times_is_the_same(source: Any, tmp_path: Path) -> None:
    """Machines that share a filesystem may number its files otherwise."""
    folder, new = tmp_path / "orders-0", tmp_path / "new"
    written(source, folder)
    query = source.query({"path": str(folder)})
    tasks = source.plan(query)
    want = everything(source, query, tasks)
    shutil.copytree(folder, new)
    exchanged(folder, new)
    assert everything(source, query, tasks) == want


@OF_SOURCES
def test_a_job_that_ends_between_the_listing_and_the_look_for_jobs(
    source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new version has more files, and others: all of them are read."""
    folder, new = tmp_path / "orders-0", tmp_path / "new"
    written(source, folder)
    written(source, new, version=1, parts=5)
    query = source.query({"path": str(folder)})
    left = [new]

    def ends(_: Any) -> None:
        if left:
            exchanged(folder, left.pop())

    monkeypatch.setattr(table, "check_unfinished", ends)
    tasks = source.plan(query)
    assert len({row["file"] for row in everything(source, query, tasks)}) == 5


@OF_SOURCES
def test_a_directory_that_is_replaced_while_it_is_planned(
    source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is made again, of what is there then."""
    folder, new = tmp_path / "orders-0", tmp_path / "new"
    written(source, folder)
    written(source, new, version=1, parts=5, size=2)
    query = source.query({"path": str(folder), "maxSplitBytes": "100"})
    left, result = [new], source.input_files

    def files_before(*asked: Any) -> Any:
        files = result(*asked)
        if left:
            exchanged(folder, left.pop())
        return files

    monkeypatch.setattr(source, "input_files", files_before)
    tasks = source.plan(query)
    assert len({row["file"] for row in everything(source, query, tasks)}) == 5


def streamed(source: Any, folder: Path) -> Stream:
    return kafka(folder) if source is kafka_log else events_of(folder, stream="directory")


@OF_SOURCES
def test_a_stream_whose_batch_was_planned_before_the_same_came_as_other_files(source: Any, tmp_path: Path) -> None:
    folder, new = tmp_path / "orders-0", tmp_path / "new"
    written(source, folder)
    stream = streamed(source, folder)
    end = stream.follower.latest(stream.place)
    tasks = stream.follower.tasks(stream.place, end)
    want = stream.read(tasks)
    written(source, new)
    for path in new.iterdir():
        os.utime(path, (1, 1))
    exchanged(folder, new)
    assert stream.read(tasks) == want
    assert stream.between(stream.new(), stream.place, end) == want  # replayed
    assert want


@OF_SOURCES
@pytest.mark.parametrize("changed", [0, 1, 2])
def test_a_stream_whose_batch_was_planned_before_another_version_came(
    source: Any, changed: int, tmp_path: Path
) -> None:
    """One of three files is another one: the batch fails in a sentence, each time it is tried."""
    folder, new = tmp_path / "orders-0", tmp_path / "new"
    written(source, folder)
    stream = streamed(source, folder)
    end = stream.follower.latest(stream.place)
    tasks = stream.follower.tasks(stream.place, end)
    paths = written(source, new)
    others = written(source, tmp_path / "other", version=2)
    shutil.copy(others[changed], paths[changed])
    exchanged(folder, new)
    for _ in range(2):
        with pytest.raises(DataLossError, match="Set failOnDataLoss=false"):
            stream.read(tasks)
