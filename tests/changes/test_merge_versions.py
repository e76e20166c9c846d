"""The directory of a merged table: what is missing or foreign in it is an error before anything is written."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

from sparkwire.changes.merge_versions import REST, ROWS, MergeFolder
from sparkwire.errors import WriteConflictError


def written(folder: MergeFolder, newest: str | None) -> str:
    """Publish a version with one file in each part."""
    version = folder.next_version(newest)
    for part in (ROWS, REST):
        place = Path(folder.path, version, f"part={part}")
        place.mkdir(parents=True)
        (place / "part-0.parquet").write_bytes(b"rows")
    folder.publish(version, newest, {"keys": ["id"], "schema": {}, "deletes": "keep"})
    return version


@pytest.fixture
def folder(tmp_path: Path) -> MergeFolder:
    """A directory with two versions."""
    folder = MergeFolder(f"{tmp_path}/table")
    with folder.locked() as newest:
        assert newest is None
        written(folder, written(folder, None))
    return folder


def content(folder: MergeFolder) -> list[str]:
    return sorted(str(path) for path in Path(folder.path).rglob("*"))


@pytest.mark.parametrize(
    "path",
    [
        "s3://bucket/table",
        "s3a://bucket/table",
        "gs://bucket/table",
        "abfss://c@a.dfs.core.windows.net/t",
        "hdfs://n/t",
    ],
)
def test_an_object_store_is_one_sentence(path: str) -> None:
    with pytest.raises(ValueError, match=r"is in an object store, .* merge into a table of Delta or Iceberg"):
        MergeFolder(path)


@pytest.mark.parametrize(
    ("lost", "named"),
    [
        ("_latest", "_latest"),
        ("{version}", "versions/00000002-.*/details.json"),
        ("{version}/details.json", "versions/00000002-.*/details.json"),
        ("{version}/part=rows", "versions/00000002-.*/part=rows/part-0.parquet"),
        ("{version}/part=rest", "versions/00000002-.*/part=rest/part-0.parquet"),
        ("{version}/part=rows/part-0.parquet", "versions/00000002-.*/part=rows/part-0.parquet"),
        ("versions", "versions/00000002-.*/details.json"),
    ],
)
def test_lost_state_is_an_error_before_anything_is_written(folder: MergeFolder, lost: str, named: str) -> None:
    newest = folder.newest()
    folder.move(lost.format(version=newest), "../away")
    before = content(folder)
    with pytest.raises(ValueError, match=f"has lost {named}, a part of its table: restore it"), folder.locked():
        raise AssertionError("it must not be locked")
    assert content(folder) == before


def test_an_emptied_latest_is_lost(folder: MergeFolder) -> None:
    Path(folder.path, "_latest").write_text("\n")
    with pytest.raises(ValueError, match="has lost the content of _latest"):
        folder.newest()


@pytest.mark.parametrize(
    "text", ["x", "\xff\xfe", "\x1b[31m", "versions/../../x/part=rows", "versions/00000002/part=rows"]
)
def test_a_corrupt_latest_is_no_empty_table(folder: MergeFolder, text: str) -> None:
    Path(folder.path, "_latest").write_text(text, encoding="latin-1")
    before = content(folder)
    with pytest.raises(ValueError, match=r"has a corrupt _latest, .*restore it from a backup"), folder.locked():
        pass
    assert content(folder) == before


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"files": []}', '{"files": {}, "schema": {}, "keys": ["id"]}', "\xff", "[" * 9999]
)
def test_corrupt_details_are_no_empty_table(folder: MergeFolder, text: str) -> None:
    version = folder.newest()
    Path(folder.path, f"{version}/details.json").write_text(text, encoding="latin-1")
    with (
        pytest.raises(ValueError, match=rf"has a corrupt {version}/details.json, .*restore it from a backup"),
        folder.locked(),
    ):
        pass


@pytest.mark.parametrize("name", ["part-0.parquet", "year=2024/part-0.parquet"])
def test_foreign_files_are_an_error_before_anything_is_written(tmp_path: Path, folder: MergeFolder, name: str) -> None:
    for path in (folder.path, f"{tmp_path}/other"):
        foreign = Path(path, name)
        foreign.parent.mkdir(parents=True, exist_ok=True)
        foreign.write_bytes(b"rows")
        other = MergeFolder(path)
        before = content(other)
        with (
            pytest.raises(ValueError, match=f"merge did not write the directory .*: it has {name.partition('/')[0]}"),
            other.locked(),
        ):
            raise AssertionError("it must not be locked")
        assert content(other) == before


def test_a_first_merge_that_was_interrupted_is_repeated(tmp_path: Path) -> None:
    """Its version is complete, but was not published."""
    folder = MergeFolder(f"{tmp_path}/table")
    with folder.locked() as newest:
        version = folder.next_version(newest)
        folder.make(f"{version}/part=rows")
        Path(folder.path, version, "details.json").write_text(json.dumps({}))
    with folder.locked() as newest:
        assert newest is None
        second = written(folder, newest)
    assert folder.newest() == second
    assert folder.folders("versions") == [second.rpartition("/")[2]]


def test_old_versions_are_deleted_and_other_folders_stay(folder: MergeFolder) -> None:
    newest = folder.newest()
    folder.make("versions/mine")
    folder.make("versions/00000009-00000000")  # of an interrupted merge
    for _ in range(3):
        newest = written(folder, newest)
    numbers = [name.partition("-")[0] for name in folder.folders("versions")]
    assert numbers == ["00000003", "00000004", "00000005", "mine"]


@pytest.mark.parametrize("name", ["[a]", "{a,b}", "a*?", "a\\b"])
def test_special_characters_of_globs_are_escaped_for_reading(name: str) -> None:
    folder = MergeFolder(f"/lake/{name}")
    assert folder.to_write("v", ROWS) == f"file:///lake/{name}/v/part=rows"
    escaped = "".join(f"\\{letter}" if letter in "[]{}*?\\" else letter for letter in name)
    assert folder.to_read("v", ROWS) == f"file:///lake/{escaped}/v/part=rows"


def _hold(path: str, held: Any, done: Any) -> None:
    with MergeFolder(path).locked():
        held.set()
        done.wait()


@pytest.mark.process
def test_one_writer_at_a_time(tmp_path: Path) -> None:
    """A second writer fails at once. The lock of a process that has ended is ignored."""
    fork = multiprocessing.get_context("fork")
    held, done = fork.Event(), fork.Event()
    folder = MergeFolder(f"{tmp_path}/table")
    holder = fork.Process(target=_hold, args=(folder.path, held, done))
    holder.start()
    assert held.wait(60)
    with pytest.raises(WriteConflictError, match=f"process {holder.pid} on .* writes to"), folder.locked():
        pass
    holder.kill()
    holder.join()
    with folder.locked():
        assert f"process {os.getpid()}" in Path(folder.path, "_lock").read_text()
        version = written(folder, None)
    with pytest.raises(WriteConflictError, match="another merge writes to"):
        folder.publish(folder.next_version(version), None, {})


def test_a_file_system_without_locks_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with (
        pytest.raises(ValueError, match=r"has no locks .* merge into a table of Delta or Iceberg"),
        MergeFolder(f"{tmp_path}/table").locked(),
    ):
        pass
