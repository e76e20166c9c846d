"""Failures of files: missing permission, truncation, deletion, storage errors. The error names the file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkwire.core.sources.storage import OpenFile
from sparkwire.databus.files import databus_table, events
from sparkwire.kafka.files import kafka_log, log
from tests.support import kafka_cases as golden
from tests.support.child import run_python
from tests.support.databus_cases import golden_bytes

NAME = "00000000000000000100.log"
SEGMENT = golden.archive("segments_v2")[f"v2_multi_segment/{NAME}"]
# Root ignores permissions, so the test runs as `nobody` in a separate process.
CHILD = """
import os, sys
from sparkwire.databus.files import databus_table
from sparkwire.kafka.files import kafka_log
if os.getuid() == 0:
    os.setuid(65534)
for source in (kafka_log, databus_table):
    try:
        query = source.query({"path": sys.argv[1]})
        for task in source.plan(query):
            for batch in source.read(query, task):
                pass
        print("read")
    except PermissionError as error:
        print(error)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A directory that `nobody` may also list."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "orders-0").mkdir()
        (folder / "orders-0" / NAME).write_bytes(SEGMENT)
        yield folder
        (folder / "orders-0").chmod(0o755)


@pytest.mark.process
@pytest.mark.parametrize(
    ("forbidden", "path", "sentence"),
    [
        ("orders-0", "orders-0", "path {folder}/orders-0: you do not have permission to read it: "),
        ("orders-0", "", "path {folder}: you do not have permission to read it: "),
        ("orders-0", "orders-*", "path {folder}/orders-0: you do not have permission to read it: "),
        (f"orders-0/{NAME}", "", "{folder}/orders-0/" + NAME + ": you do not have permission to read it: "),
    ],
)
def test_no_permission(open_folder: Path, forbidden: str, path: str, sentence: str) -> None:
    (open_folder / forbidden).chmod(0)
    lines = run_python("-c", CHILD, str(open_folder / path)).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith(sentence.format(folder=open_folder)), line


CHECK = """
import os, sys
from contextlib import suppress
from sparkwire import kafka
with suppress(PermissionError):  # all is imported that nobody may not
    kafka.check(sys.argv[1])
if os.getuid() == 0:
    os.setuid(65534)
try:
    print(kafka.check(sys.argv[1]))
except PermissionError as error:
    print(error)
"""


@pytest.mark.process
@pytest.mark.parametrize(
    "forbidden", ["", "orders-0", f"orders-0/{NAME}", "orders-0/partition.metadata", "log-start-offset-checkpoint"]
)
def test_check_without_permission(open_folder: Path, forbidden: str) -> None:
    for name in ("orders-0/partition.metadata", "log-start-offset-checkpoint"):
        (open_folder / name).write_bytes(b"")
    (open_folder / forbidden).chmod(0)
    [line] = run_python("-c", CHECK, str(open_folder)).splitlines()
    (open_folder / forbidden).chmod(0o755)
    assert line.startswith(f"{open_folder}"), line
    assert ": you do not have permission to read it" in line
    assert forbidden in line


Change = Callable[[Path], Any]
SOURCES = [(kafka_log, SEGMENT), (databus_table, golden_bytes("window_stream"))]


@pytest.fixture(params=SOURCES, ids=lambda source: str(source[0].NAME))
def planned(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A file, its source, and a plan from the time when the file was complete; chunks are small."""
    monkeypatch.setattr(log, "CHUNK", 700)
    monkeypatch.setattr(events, "CHUNK", 700)
    monkeypatch.setattr(events, "AHEAD", 300)
    source, data = request.param
    path = tmp_path / NAME
    path.write_bytes(data)
    query = source.query({"path": str(path)})
    return path, source, query, source.plan(query)


def everything(source: Any, query: Any, tasks: Any) -> int:
    return sum(batch.num_rows for task in tasks for batch in source.read(query, task))


def test_a_deleted_file(planned: Any) -> None:
    path, source, query, tasks = planned
    path.unlink()
    with pytest.raises(FileNotFoundError, match=f"{path} was deleted after it was listed: read the path again"):
        everything(source, query, tasks)


def test_a_file_that_has_become_shorter(planned: Any) -> None:
    path, source, query, tasks = planned
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size // 2)
    with pytest.raises(ValueError, match=f"{path} had {size} bytes when it was listed and ends at {size // 2} now"):
        everything(source, query, tasks)


def test_a_file_that_shrinks_while_it_is_read(planned: Any) -> None:
    """The earlier data are returned; then the error contains the position of the cut."""
    path, source, query, [task] = planned
    batches = source.read(query, task)
    assert next(batches).num_rows
    with path.open("r+b") as file:
        file.truncate(900)
    with pytest.raises(ValueError, match=f"{path} had .* and ends at 900 now: it was cut while it was read"):
        list(batches)


def test_an_index_that_shrinks_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker truncates the index of an active segment when it rolls. The reader then uses the batch headers."""
    path = tmp_path / NAME
    path.write_bytes(SEGMENT)
    query = kafka_log.query({"path": str(path), "startingOffset": "150"})
    want = everything(kafka_log, query, kafka_log.plan(query))
    index, view, cut = path.with_suffix(".index"), OpenFile.view, []

    def view_of_what_is_cut(source: OpenFile, position: int, size: int) -> Any:
        if source.file.name == str(index) and size:
            os.truncate(index, 8)
            cut.append(size)
        return view(source, position, size)

    monkeypatch.setattr(OpenFile, "view", view_of_what_is_cut)
    index.write_bytes(bytes(5000))
    assert everything(kafka_log, query, kafka_log.plan(query)) == want
    assert want
    assert 5000 in cut


def test_a_file_that_is_deleted_while_it_is_read(planned: Any) -> None:
    """A reader with an open file reads it to its end."""
    path, source, query, [task] = planned
    want = everything(source, query, [task])
    batches = source.read(query, task)
    first = next(batches).num_rows
    path.unlink()
    assert first + sum(batch.num_rows for batch in batches) == want


def test_storage_that_fails(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(SEGMENT)
    [segment] = kafka_log.find([str(path)])
    with OpenFile(segment.file) as source:
        source._input = _Failing()
        with pytest.raises(OSError, match=f"{path} cannot be read at byte 300: .*Input/output error"):
            source.view(300, 10)


class _Failing:
    """A disk that fails."""

    def seek(self, position: int) -> None: ...

    def readinto(self, out: Any) -> int:
        raise OSError(5, "Input/output error")

    def close(self) -> None: ...
