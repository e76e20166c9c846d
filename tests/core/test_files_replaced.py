"""Files that are replaced between a query's listing, its plan and its tasks: all rows are of one version, or the query fails."""

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
    """Write the files of a version. All versions have the same names, and with the same ``size`` the same sizes."""
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
    """Replace a directory by another one."""
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
    """With the same number of bytes, like a copy over the file: the inode stays the same."""
    [path] = written(source, tmp_path / "orders-0", parts=1)
    query = source.query({"path": str(path)})
    tasks = source.plan(query)
    os.utime(path, (1, 1))
    tasks = source.plan(query)
    written(source, tmp_path / "orders-0", version=1, parts=1)
    with pytest.raises(FileReplaced, match=f"{path} was replaced"):
        everything(source, query, tasks)


@OF_SOURCES
def test_data_appended_after_the_plan(source: Any, tmp_path: Path) -> None:
    """The new version links to the same files; one is longer, and one is new. Only the planned data are read."""
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
    """A preallocated segment has its length before it has its records."""
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
    """Machines that share a filesystem may number its files differently."""
    folder, new = tmp_path / "orders-0", tmp_path / "new"
    written(source, folder)
    query = source.query({"path": str(folder)})
    tasks = source.plan(query)
    want = everything(source, query, tasks)
    shutil.copytree(folder, new)
    exchanged(folder, new)
    assert everything(source, query, tasks) == want


@OF_SOURCES
def test_a_job_that_ends_between_the_listing_and_the_check_for_jobs(
    source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new version has more and different files; all of them are read."""
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
    """The plan is computed again, from the new files."""
    folder, new = tmp_path / "orders-0", tmp_path / "new"
    written(source, folder)
    written(source, new, version=1, parts=5, size=2)
    query = source.query({"path": str(folder), "maxSplitBytes": "100"})
    left, result = [new], source.input_files

    def files_before(*args: Any) -> Any:
        files = result(*args)
        if left:
            exchanged(folder, left.pop())
        return files

    monkeypatch.setattr(source, "input_files", files_before)
    tasks = source.plan(query)
    assert len({row["file"] for row in everything(source, query, tasks)}) == 5


def streamed(source: Any, folder: Path) -> Stream:
    return kafka(folder) if source is kafka_log else events_of(folder, stream="directory")


@OF_SOURCES
def test_a_planned_batch_of_a_stream_reads_copies_of_its_files(source: Any, tmp_path: Path) -> None:
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
def test_a_planned_batch_of_a_stream_fails_on_another_version(source: Any, changed: int, tmp_path: Path) -> None:
    """One of three files is replaced: each attempt of the batch fails with a clear error message."""
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
        with pytest.raises(
            DataLossError,
            match=r"Set failOnDataLoss=false .* a new checkpoint, and for sparkwire.changes a greater epoch",
        ):
            stream.read(tasks)
