"""Writing event files: an append comes after the existing files, and each stream has one version."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sparkwire.core.sources.job_file import SIDE
from sparkwire.databus.files import databus_table, write_events
from tests.support.client_streams import end, event


def windows(first: int, count: int) -> list[bytes]:
    """Windows with one event each."""
    return [data for scn in range(first, first + count) for data in (event(scn, 1), end(scn))]


def write(path: Path, events: list[bytes], overwrite: bool = False, **options: str) -> None:
    """Run a job with one task."""
    write_batch(path, pa.RecordBatch.from_pydict({"event": pa.array(events, pa.binary())}), overwrite, **options)


def write_batch(path: Path, batch: pa.RecordBatch, overwrite: bool = False, **options: str) -> None:
    asked = write_events.write_of({"path": str(path)} | options, batch.schema, overwrite)
    job = uuid.uuid4().hex[:12]
    write_events.begin(asked, job)
    try:
        write_events.commit(asked, job, write_events.write_rows(asked, [batch], job, "0", 0))
    except BaseException:
        write_events.abort(asked, job)
        raise


def read(path: Path) -> list[int]:
    query = databus_table.query({"path": str(path), "stream": "directory", "columns": "sequence"})
    rows = [batch for task in databus_table.plan(query) for batch in databus_table.read(query, task)]
    return [sequence for batch in rows for sequence in batch.column("sequence").to_pylist()][::2]


@pytest.mark.parametrize("stream", ["", "orders"])
@pytest.mark.parametrize(
    "there", ["z.bin", "relay-7", "0000000000.bin.gz", "9999999999.bin", "00000000000.bin", "0000000007.bin", "ü.bin"]
)
def test_an_append_comes_after_existing_files(tmp_path: Path, there: str, stream: str) -> None:
    """For any file names: a reader reads files in the order of their names."""
    options: dict[str, Any] = {"fileBytes": "1"} | ({"stream": stream} if stream else {})
    folder = tmp_path / stream
    folder.mkdir(exist_ok=True)
    (folder / there).write_bytes(b"")
    for first in (1, 4, 7):
        write(tmp_path, windows(first, 3), **options)
    names = sorted(file.name for file in folder.iterdir())
    assert names[0] == there
    assert len(names) == 10
    (folder / there).unlink()
    assert read(folder) == list(range(1, 10))
    write(tmp_path, windows(20, 1), overwrite=True, **options)
    assert read(folder) == [20]
    assert [file.name for file in folder.iterdir()] == ["0000000000.bin"]
    assert not (tmp_path / SIDE).exists()


def test_no_later_name_is_possible(tmp_path: Path) -> None:
    there = "z" * 250
    (tmp_path / there).write_bytes(b"")
    with pytest.raises(ValueError, match=r"databus has no file name after z*: rename that file, or write elsewhere"):
        write(tmp_path, windows(1, 1))
    assert [file.name for file in tmp_path.iterdir()] == [there]


# -- streams without rows


def four_streams(top: Path) -> pa.RecordBatch:
    """The rows of four streams, with their origin in the columns, as Spark passes them on."""
    for k, name in enumerate(("a", "b", "c", "d")):
        write(top, windows(10 * k + 1, 2), stream=name)
    query = databus_table.query({"path": str(top), "stream": "directory", "columns": "stream, event"})
    table = pa.Table.from_batches(
        batch for task in databus_table.plan(query) for batch in databus_table.read(query, task)
    )
    marks = databus_table.marks(query)
    fields = [field.with_metadata(marks.get(field.name)) for field in table.schema]
    return table.cast(pa.schema(fields)).combine_chunks().to_batches()[0]


def without(rows: pa.RecordBatch, *streams: str) -> pa.RecordBatch:
    return rows.filter(pa.array([name.rpartition("/")[2] not in streams for name in rows["stream"].to_pylist()]))


def content(top: Path) -> dict[str, list[int]]:
    folders = sorted(folder for folder in top.iterdir() if folder.is_dir())
    return {folder.name: read(folder) for folder in folders if any(folder.iterdir())}


def test_a_stream_that_was_read_and_has_no_row_left(tmp_path: Path) -> None:
    rows = four_streams(tmp_path)
    before = content(tmp_path)
    with pytest.raises(
        ValueError, match=rf"{tmp_path}/d was read, but no row of it is left to write\. Pass sourcePath: "
    ):
        write_batch(tmp_path, without(rows, "d"), overwrite=True)
    assert content(tmp_path) == before
    write_batch(tmp_path, without(rows, "d"), overwrite=True, sourcePath=str(tmp_path))
    assert content(tmp_path) == {"a": [1, 2], "b": [11, 12], "c": [21, 22]}
    write_batch(tmp_path, without(rows, "a", "c", "d"), overwrite=True, sourcePath=f"{tmp_path}/[ab]")
    assert content(tmp_path) == {"b": [11, 12], "c": [21, 22]}
    write_batch(tmp_path, rows.slice(0, 0), overwrite=True, sourcePath=str(tmp_path))
    assert content(tmp_path) == {}


def test_streams_of_another_directory(tmp_path: Path) -> None:
    """A path that is not read keeps its other streams, unless sourcePath names the same streams elsewhere."""
    rows = four_streams(tmp_path / "old")
    for name in ("d", "e"):
        write(tmp_path / "new", windows(90, 1), stream=name)
    write_batch(tmp_path / "new", without(rows, "d"), overwrite=True)
    assert content(tmp_path / "new") == {"a": [1, 2], "b": [11, 12], "c": [21, 22], "d": [90], "e": [90]}
    write_batch(tmp_path / "new", without(rows, "d"), overwrite=True, sourcePath=str(tmp_path / "old"))
    assert content(tmp_path / "new") == {"a": [1, 2], "b": [11, 12], "c": [21, 22], "e": [90]}


@pytest.mark.parametrize("options", [{}, {"stream": "a"}])
def test_an_overwrite_without_rows(options: dict[str, Any], tmp_path: Path) -> None:
    write(tmp_path, windows(1, 2), **options)
    write(tmp_path, [], True, **options)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_rows_that_would_go_elsewhere(tmp_path: Path) -> None:
    """Without the column stream, the events of the streams would be there twice."""
    rows = four_streams(tmp_path)
    with pytest.raises(ValueError, match=f"{tmp_path}/a was read, but no row of it is left to write"):
        write_batch(tmp_path, rows.select(["event"]), overwrite=True)
    write_batch(tmp_path, rows.select(["event"]), overwrite=True, stream="all")
    assert read(tmp_path / "all") == [1, 2, 11, 12, 21, 22, 31, 32]


def test_a_source_needs_mode_overwrite(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="databus takes sourcePath with mode overwrite alone"):
        write(tmp_path, windows(1, 1), sourcePath=str(tmp_path))
