"""Segments from files: the rows are the same as those of ``kafka_records``, for any splits, chunks and paths."""

from __future__ import annotations

import gzip
import random
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sparkwire
from sparkwire import FUNCTIONS
from sparkwire.core.sources.storage import OpenFile
from sparkwire.core.sources.table import packed
from sparkwire.kafka.files import entries, kafka_log, log, seek
from tests.kafka.test_damage import batch, record
from tests.kafka.test_oracle import mutated
from tests.support import kafka_cases as golden
from tests.support.arrow import ask, plain, plain_rows
from tests.support.kafka_cases import Damaged, Log
from tests.support.log_files import with_timestamp_type

Row = dict[str, Any]

ALL = {"controlRecords": "true"}
UNCHECKED = [name for name in kafka_log.COLUMNS["batches"] if name not in ("file", "error", "crc_valid")]
"""columns of batches that do not depend on checksums"""
FEW = ["position", "offset", "timestamp_ms", "value", "error"]
FEW_OF_BATCHES = ["position", "size", "base_offset", "record_count"]


def rows(path: Path | str, **options: str) -> list[Row]:
    """All rows of a query, in the order of its tasks, timestamps in microseconds."""
    query = kafka_log.query({"path": str(path), **options})
    return plain_rows(batch for task in kafka_log.plan(query) for batch in kafka_log.read(query, task))


def by_headers(path: Path, size: int = 10**9, names: list[str] = UNCHECKED) -> list[Row]:
    """The batches without columns that depend on checksums."""
    return rows(path, rows="batches", columns=", ".join(names), maxSplitBytes=str(size))


def unchecked(data: bytes, names: list[str] = UNCHECKED) -> list[Row]:
    """The result of ``kafka_batches``."""
    return only(names, [row | {"topic": None, "partition": None} for row in batches(data)])


def batches(data: bytes) -> list[Row]:
    """The result of ``kafka_batches``, with NULL as the number of records of incomplete batches."""
    return [
        row | {"record_count": row["record_count"] if row["size"] else None} for row in result_of("kafka_batches", data)
    ]


def expected(data: bytes) -> list[Row]:
    """The result of ``kafka_records`` on the same bytes, with Kafka's numbers of timestamp types."""
    return [with_timestamp_type(row) for row in result_of("kafka_records", data)]


def result_of(function: str, data: bytes) -> Any:
    """A function's result on bytes."""
    known = golden_results(function).get(data)
    return ask(function, [data])[0] if known is None else plain(known)[0]


@cache
def golden_results(function: str) -> dict[bytes, pa.Array]:
    """A function's result on each golden and each corrupt log, all of them in one column."""
    logs = [*(valid.data for valid in golden.logs()), *(case.data for case in golden.damaged())]
    column = FUNCTIONS[function].decode(pa.array(logs, pa.binary()))
    return {data: column[row : row + 1] for row, data in enumerate(logs)}


def only(names: list[str], rows: list[Row]) -> list[Row]:
    return [{name: row[name] for name in names} for row in rows]


def records(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name not in ("topic", "partition", "file")} for row in rows]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk has only a few entries, so that small files have many chunks."""
    monkeypatch.setattr(log, "CHUNK", 700)
    monkeypatch.setattr(entries, "DECODED", 300)
    monkeypatch.setattr(seek, "LEAD", 200)
    monkeypatch.setattr(entries, "LARGE", 100)
    monkeypatch.setattr(entries, "NEAR", 300)
    monkeypatch.setattr(entries, "ROOM", 3)


@pytest.mark.parametrize("case", golden.logs(), ids=lambda case: case.name)
def test_golden_logs(case: Log, tmp_path: Path, tiny: None, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.log"
    path.write_bytes(case.data)
    piece = max(700, len(case.data) // 15)
    monkeypatch.setattr(log, "CHUNK", piece)
    monkeypatch.setattr(entries, "DECODED", piece // 2)
    want, split = expected(case.data), str(3 * piece)
    assert records(rows(path, **ALL)) == want
    assert rows(path, maxSplitBytes=split, columns=", ".join(FEW), **ALL) == only(FEW, want)
    assert records(rows(path, maxSplitBytes=split, rows="batches")) == batches(case.data)
    assert by_headers(path, 3 * piece // kafka_log.HEADERS_SPAN) == unchecked(case.data)


@pytest.mark.parametrize("part", range(16))
def test_corruption(part: int, tmp_path: Path, tiny: None) -> None:
    for number, case in enumerate(golden.damaged()[part::16]):
        check_corruption(case, tmp_path / f"{number}.log")


def check_corruption(case: Damaged, path: Path) -> None:
    path.write_bytes(case.data)
    of_file = {"error": "WRONG_FORMAT"} if case.name == "text_file.log" else {}
    want = [row | of_file for row in only(FEW, expected(case.data))]
    for size in (1, 5000):
        assert rows(path, maxSplitBytes=str(size), columns=", ".join(FEW), **ALL) == want, case.name
    of_batches = [*FEW_OF_BATCHES, "error"]
    want = [row | of_file for row in only(of_batches, batches(case.data))]
    assert rows(path, rows="batches", columns=", ".join(of_batches)) == want, case.name
    assert by_headers(path, 1, FEW_OF_BATCHES) == unchecked(case.data, FEW_OF_BATCHES), case.name


@pytest.mark.parametrize("seed", range(40))
def test_rows_do_not_depend_on_splits(seed: int, tmp_path: Path, tiny: None) -> None:
    chance = random.Random(seed)
    data = b"".join(mutated(chance) for _ in range(chance.randrange(1, 12)))
    path = tmp_path / "file.log"
    path.write_bytes(data)
    want = only(FEW, expected(data))
    for size in (1, *(chance.randrange(1, len(data) + 2) for _ in range(4))):
        assert rows(path, maxSplitBytes=str(size), columns=", ".join(FEW), **ALL) == want
    assert by_headers(path, size // kafka_log.HEADERS_SPAN + 1) == unchecked(data)


@pytest.mark.parametrize("seed", range(20))
def test_windows_of_a_search(seed: int, tmp_path: Path, tiny: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """After corrupt bytes, a file is searched in windows. They are as small as the largest entry allows."""
    chance = random.Random(seed)
    data = b"".join(mutated(chance) for _ in range(20))
    largest = max(row["size"] for row in batches(data) if row["error"] is None)
    monkeypatch.setattr(log, "SEARCHED", largest)
    path = tmp_path / "file.log"
    path.write_bytes(data)
    assert rows(path, columns=", ".join(FEW), **ALL) == only(FEW, expected(data))


@pytest.mark.parametrize("case", golden.logs()[::8], ids=lambda case: case.name)
def test_entries_that_a_search_skips(case: Log, tmp_path: Path, tiny: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that is too large for a search is read if another entry, or the end of the file, follows it."""
    monkeypatch.setattr(log, "SEARCHED", 70)
    path = tmp_path / "file.log"
    path.write_bytes(case.data)
    for size in (2000, 10**9):
        assert rows(path, columns=", ".join(FEW), maxSplitBytes=str(size), **ALL) == only(FEW, expected(case.data))


def test_compressed_copies_are_read(tmp_path: Path) -> None:
    case = golden.logs(("segments_v2",))[0]
    (tmp_path / "orders-3").mkdir()
    path = tmp_path / "orders-3" / "00000000000000000042.log.gz"
    path.write_bytes(gzip.compress(case.data, mtime=0))
    result = rows(path, **ALL)
    assert records(result) == expected(case.data)
    assert {(row["topic"], row["partition"], row["file"]) for row in result} == {("orders", 3, str(path))}
    assert records(rows(tmp_path, **ALL)) == records(result)
    path.with_suffix("").write_bytes(case.data)
    assert len(rows(tmp_path, **ALL)) == len(result)  # the copy is in the same directory


@pytest.mark.parametrize(
    "name", ["truncated", "without its end", "another follows a wrong checksum", "garbage follows"]
)
def test_an_incomplete_compressed_copy_has_an_error(name: str, tmp_path: Path) -> None:
    """The records before the place are rows, and a row with an error follows, as after a torn end."""
    data = next(log.data for log in golden.logs() if log.name.startswith("v2_none/"))
    whole, want = gzip.compress(data, mtime=0), records(expected(data))
    copy, count = {
        "truncated": (whole[: len(whole) // 2], None),
        "without its end": (whole[:-8], len(want)),
        "another follows a wrong checksum": (whole[:-8] + bytes(8) + whole, len(want)),
        "garbage follows": (whole + b"garbage", len(want)),
    }[name]
    path = tmp_path / f"{0:020}.log.gz"
    path.write_bytes(copy)
    *valid, torn = records(rows(path, **ALL))
    assert torn["error"] == "TRUNCATED"
    assert valid == want[: len(valid)]
    assert len(valid) == count if count else 0 < len(valid) < len(want)
    assert rows(path, rows="batches")[-1]["error"] == "TRUNCATED"
    with pytest.raises(ValueError, match=r"TRUNCATED\. Mode FAILFAST fails there"):
        rows(path, mode="FAILFAST")


def test_a_copy_that_is_not_compressed_in_spite_of_its_name(tmp_path: Path) -> None:
    """As a store or a browser leaves it that has decompressed it."""
    case = golden.logs(("segments_v2",))[0]
    path = tmp_path / f"{0:020}.log.gz"
    path.write_bytes(case.data)
    assert records(rows(path, **ALL)) == expected(case.data)


def test_batches_read_only_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundredth of 8 MB in batches of 100 kB is read."""
    opened: list[OpenFile] = []
    start = OpenFile.__init__

    def counted(self: OpenFile, file: Any) -> None:
        start(self, file)
        opened.append(self)

    monkeypatch.setattr(OpenFile, "__init__", counted)
    path = tmp_path / "file.log"
    entries = [batch(b"".join(record(bytes(1000), k) for k in range(100)), count=100, base=100 * n) for n in range(80)]
    path.write_bytes(b"".join(entries))
    result = rows(path, rows="batches", columns="base_offset, record_count")
    assert result == [{"base_offset": 100 * n, "record_count": 100} for n in range(80)]
    assert sum(source.bytes_read for source in opened) < path.stat().st_size // 100


def test_wrong_headers_waste_few_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: None) -> None:
    """If no offset follows the previous one, reading by sizes must not go to the end of the file each time."""
    monkeypatch.setattr(entries, "ROOM", 4096)
    read: list[int] = []
    alone = OpenFile.read

    def counted(self: OpenFile, position: int, size: int) -> bytes:
        read.append(position)
        return alone(self, position, size)

    monkeypatch.setattr(OpenFile, "read", counted)
    path = tmp_path / "file.log"
    path.write_bytes(b"".join(batch(record(bytes(200))) for _ in range(300)))
    assert len(rows(path, rows="batches", columns="base_offset")) == 300
    assert 0 < len(read) < 300 * 20


def test_small_parts_share_tasks(tmp_path: Path) -> None:
    """A task that reads only headers covers `HEADERS_SPAN` times as many bytes."""
    many = packed(list(range(300)), [1 << 20] * 300, 128 << 20)
    assert [len(task) for task in many] == [128, 128, 44]
    assert packed([0, 1, 2], [128 << 20] * 3, 128 << 20) == [(0,), (1,), (2,)]

    path = tmp_path / "file.log"
    path.write_bytes(b"".join(batch(record(bytes(1000)), base=n) for n in range(160)))
    size = str(path.stat().st_size // 16 + 1)

    def parts(columns: str) -> int:
        query = kafka_log.query({"path": str(path), "rows": "batches", "columns": columns, "maxSplitBytes": size})
        return sum(len(task) for task in kafka_log.plan(query))

    assert parts("record_count, error") == 16
    assert parts("record_count") == 16 // kafka_log.HEADERS_SPAN


@pytest.mark.parametrize("kind", ["records", "batches"])
@pytest.mark.parametrize("other", ["databus/relay_v1.bin", "databus/espresso_v2.bin", "kafka/README.md"])
def test_a_file_of_another_format(other: str, kind: str) -> None:
    path = sparkwire.samples() / other
    [row] = rows(path, rows=kind)
    assert (row["position"], row["error"]) == (0, "WRONG_FORMAT")
    with pytest.raises(ValueError, match=rf"{path.name} is no Kafka log: .*sparkwire.explain"):
        rows(path, rows=kind, mode="FAILFAST")


def test_a_truncated_or_preallocated_segment_is_a_log(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    for data, error in ((batch(record(b"v"))[:-1], "TRUNCATED"), (bytes(4096), "BAD_LENGTH")):
        path.write_bytes(data)
        assert [row["error"] for row in rows(path)] == [error]
