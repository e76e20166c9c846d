"""Files with long runs of zeros, and directories of other files: only a part of them is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sparkwire
from sparkwire.catalogue import file_tables
from sparkwire.core.sources.storage import File, OpenFile
from tests.support.databus_cases import golden_bytes
from tests.support.log_files import entry

HUGE = 1 << 33
EVENTS = "events_v1_be"


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what is read from files."""
    sizes: list[int] = []
    fill = OpenFile._fill

    def noted(self: OpenFile, position: int, out: Any) -> None:
        sizes.append(len(out))
        fill(self, position, out)

    monkeypatch.setattr(OpenFile, "_fill", noted)
    return sizes


def test_a_hole_is_not_read(tmp_path: Path, bytes_read: list[int]) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(entry(0, [b"a"]))
    with path.open("r+b") as file:
        file.seek(HUGE)
        file.write(entry(1, [b"b"]))
    if path.stat().st_blocks * 512 > HUGE:
        pytest.skip("this file system has no holes")
    rows = sparkwire.read(str(path), "kafka_log").read_all().to_pylist()
    assert [(row["value"], row["error"]) for row in rows] == [(b"a", None), (None, "BAD_LENGTH"), (b"b", None)]
    assert sum(bytes_read) < HUGE / 16


@pytest.mark.parametrize("zeros", [*range(70), 5000])
def test_an_entry_after_zeros_is_found(tmp_path: Path, zeros: int) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"\1" * 30 + bytes(zeros) + entry(0, [b"a"]) + bytes(zeros))
    rows = sparkwire.read(str(path), "kafka_log").read_all().to_pylist()
    assert [(row["position"], row["value"]) for row in rows[:2]] == [(0, None), (30 + zeros, b"a")]


@pytest.mark.parametrize("zeros", [*range(70), 5000])
def test_an_event_after_zeros_is_found(tmp_path: Path, zeros: int) -> None:
    events = golden_bytes(EVENTS)
    (tmp_path / "events").write_bytes(b"\1" * 30 + bytes(zeros) + events)
    (tmp_path / "only").write_bytes(events)
    first = sparkwire.read(str(tmp_path / "only"), "databus").read_all().to_pylist()[0]
    rows = sparkwire.read(str(tmp_path / "events"), "databus").read_all().to_pylist()
    assert [row["position"] for row in rows[:2]] == [0, 30 + zeros]
    assert rows[1]["sequence"] == first["sequence"]


def test_of_a_directory_of_other_files_some_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links to the directory, and to directories above it, add no file twice."""
    top = tmp_path / "top"
    top.mkdir()
    for number in range(150):
        (top / f"{number:03}.txt").write_text("other")
    (top / "again").symlink_to(top)
    (top / "above").symlink_to(tmp_path)
    opened: list[str] = []
    sniffed = file_tables._sniffed

    def noted(file: File) -> str | None:
        opened.append(file.name)
        return sniffed(file)

    monkeypatch.setattr(file_tables, "_sniffed", noted)
    with pytest.raises(ValueError, match=r"^of \S+, 100 of 150 files were read and have neither Kafka segments nor"):
        sparkwire.read(str(top))
    assert len(set(opened)) == len(opened) == 100
