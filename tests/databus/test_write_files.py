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
    batch = pa.RecordBatch.from_pydict({"event": pa.array(events, pa.binary())})
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
