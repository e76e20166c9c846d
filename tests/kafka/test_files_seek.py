"""Offsets and timestamps are found at the same positions as in Kafka, with few reads, for any indexes."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sparkwire.core.sources.options import Comparison
from sparkwire.core.sources.storage import OpenFile
from sparkwire.kafka.files import kafka_log
from sparkwire.kafka.files.kafka_log import find
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.files.plan import OpenPartition
from sparkwire.kafka.files.seek import FIRST, PAGE, Seeker
from tests.kafka.test_damage import batch, record
from tests.kafka.test_files import rows
from tests.support import kafka_cases as golden

Row = dict[str, Any]
SEGMENTS = [
    (f"{archive}:{path}", archive, path)
    for archive in ("segments_v0", "segments_v1", "segments_v2", "segments_other")
    for path in golden.archive(archive)
    if path.endswith(".log")
]


def unpacked(archive: str, path: str, folder: Path, indexes: str = "own") -> Path:
    """A segment with its own indexes, without indexes, or with corrupt indexes."""
    files = golden.archive(archive)
    stem = path.removesuffix(".log")
    name = stem.rsplit("/", 1)[-1]
    out = folder / f"{name}.log"
    out.write_bytes(files[path])
    for suffix in (".index", ".timeindex"):
        data = files.get(stem + suffix, b"")
        if indexes == "noise":
            data = random.Random(1).randbytes(len(data))
        if indexes == "zeros":
            data = bytes(len(data) + 800)
        if indexes == "cut":
            data = data[: len(data) // 2 + 3]
        if indexes == "of another file":
            data = files[next(p for p in files if p.endswith(suffix) and not p.startswith(path.split("/")[0]))]
        if indexes == "flipped":
            mutable = bytearray(data)
            for at in range(6, len(mutable), 8):
                mutable[at] ^= 4
            data = bytes(mutable)
        if indexes != "none":
            (folder / f"{name}{suffix}").write_bytes(data)
    return out


@pytest.mark.parametrize("indexes", ["own", "none", "noise", "zeros", "cut", "of another file", "flipped"])
def test_the_same_positions_as_kafka(indexes: str, tmp_path: Path) -> None:
    """``LogSegment.translateOffset``, ``read`` and ``findOffsetByTimestamp``."""
    query = 0
    for number, (_, archive, path) in enumerate(SEGMENTS):
        lookups = lookups_of(archive, path)
        if not lookups:
            continue
        (tmp_path / str(number)).mkdir()
        segment = find([str(unpacked(archive, path, tmp_path / str(number), indexes))])[0]
        with OpenFile(segment.file) as source:
            find_offset = cache(Seeker(Log(source, chunk=PAGE), segment).find_offset)
            for line in lookups:
                if line["op"] == "translateOffset":
                    check_offset(find_offset(line["target"]), line["result"])
                    query += 1
                if line["op"] == "read" and line["result"] is not None:
                    entry = find_offset(line["startOffset"])
                    assert entry is not None
                    assert entry.position == line["result"]["position"]
                    query += 1
        partition = OpenPartition([segment])
        with partition.opened:
            for line in lookups:
                if line["op"] == "findOffsetByTimestamp":
                    offset = partition.offset_of(line["timestamp"], line["startingOffset"])
                    assert offset == (line["result"] and line["result"]["offset"]), (path, line)
                    query += 1
    assert query > 3000


@cache
def lookups_of(archive: str, path: str) -> list[Row]:
    """Kafka's calls on a segment, with their results."""
    calls = ("translateOffset", "read", "findOffsetByTimestamp")
    lines = golden.lines(golden.archive(archive).get(path.replace(".log", ".lookups.jsonl"), b""))
    return [line for line in lines if line["op"] in calls]


def check_offset(entry: Any, result: Row | None) -> None:
    if result is None:
        assert entry is None
    else:
        assert entry is not None
        assert (entry.position, entry.size, entry.last) == (result["position"], result["size"], result["offset"])


@pytest.mark.parametrize("indexes", ["own", "none", "noise"])
def test_ranges_of_offsets(indexes: str, tmp_path: Path) -> None:
    for name in ("v2_multi_segment/00000000000000000100.log", "v2_multi_segment/00000000000000000494.log"):
        unpacked("segments_v2", name, tmp_path, indexes)
    every = rows(tmp_path)
    chance = random.Random(3)
    for _ in range(20):
        first, end = sorted(chance.sample(range(100, 521), 2))
        result = rows(tmp_path, startingOffset=str(first), endingOffset=str(end))
        assert result == [row for row in every if first <= row["offset"] < end]
    time = every[200]["timestamp_ms"]
    first = next(k for k, row in enumerate(every) if row["timestamp_ms"] >= time)
    assert rows(tmp_path, startingTimestamp=str(time)) == every[first:]
    assert rows(tmp_path, endingTimestamp=str(time)) == every[:first]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight segments of 4 MB each with the indexes that a broker would write."""
    folder = tmp_path_factory.mktemp("large") / "orders-0"
    folder.mkdir()
    offset, value = 0, bytes(1000)
    for _ in range(8):
        name, data, index, times = f"{offset:020}", bytearray(), bytearray(), bytearray()
        base, since = offset, 0
        while len(data) < 4_000_000:
            entry = batch(b"".join(record(value, k) for k in range(16)), count=16, base=offset)
            if since > 4096:
                index += (offset + 15 - base).to_bytes(4, "big") + len(data).to_bytes(4, "big")
                since = 0
            since += len(entry)
            data += entry
            offset += 16
        (folder / f"{name}.log").write_bytes(data)
        (folder / f"{name}.index").write_bytes(index)
        (folder / f"{name}.timeindex").write_bytes(times)
    return folder


def test_an_offset_takes_few_bytes(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 32 MB, planning and reading use only an index and the pages with the offset."""
    opened: list[OpenFile] = []
    start = OpenFile.__init__

    def counted(self: OpenFile, file: Any) -> None:
        start(self, file)
        opened.append(self)

    monkeypatch.setattr(OpenFile, "__init__", counted)
    assert [row["offset"] for row in rows(large, startingOffset="12345", endingOffset="12346")] == [12345]
    names = {source.file.basename for source in opened if source.bytes_read}
    assert len({name.partition(".")[0] for name in names}) == 1
    assert sum(source.bytes_read for source in opened) < 300_000
    opened.clear()
    query = kafka_log.with_filters(
        kafka_log.query({"path": str(large)}), [("offset", "=", 20_000), ("topic", "=", "orders")]
    )
    result = [row for task in kafka_log.plan(query) for part in kafka_log.read(query, task) for row in part.to_pylist()]
    assert 20_000 in [row["offset"] for row in result]
    assert sum(source.bytes_read for source in opened) < 300_000


def test_filters(large: Path) -> None:
    query = kafka_log.query({"path": str(large), "columns": "offset"})
    offsets: list[tuple[list[Comparison], set[int]]] = [
        ([("offset", ">", 31_000), ("offset", "<=", 31_010)], set(range(31_001, 31_011))),
        ([("offset", "in", (5, 7))], {5, 6, 7}),
        ([("offset", ">=", 10**9)], set()),
        ([("topic", "=", "payments")], set()),
        ([("partition", "in", (1, 2))], set()),
        ([("timestamp_ms", ">", 10**15)], set()),
    ]
    for comparisons, expected in offsets:
        filtered = kafka_log.with_filters(query, comparisons)
        by_name = {
            o
            for task in kafka_log.plan(filtered)
            for part in kafka_log.read(filtered, task)
            for o in part["offset"].to_pylist()
        }
        assert by_name == expected, comparisons
    assert query.filtered.first_offset == FIRST
