"""Event files: rows are the same as those of ``dbus_events`` and ``dbus_event``, with windows, for any splits and chunks."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pytest

import sparkwire
from sparkwire.databus.files import databus_table, events
from tests.support.arrow import ask, plain_rows
from tests.support.databus_cases import STREAMS, golden_bytes
from tests.support.databus_damage import streams

Row = dict[str, Any]

OWN = ("stream", "file", "position", "window", "window_start_scn", "window_scn", "event")


def rows(path: Path | str, **options: str) -> list[Row]:
    """All rows of a query, in the order of its tasks, timestamps in microseconds."""
    query = databus_table.query({"path": str(path), **options})
    return plain_rows(batch for task in databus_table.plan(query) for batch in databus_table.read(query, task))


def expected(files: dict[str, bytes], stream: str) -> list[Row]:
    """The functions' results for a stream in files, with windows from a simple model."""
    rows: list[Row] = []
    for file, data in files.items():
        parts = ask("dbus_events", [data])[0]
        fields = ask("dbus_event", [part["event"] for part in parts])
        for part, values in zip(parts, fields, strict=True):
            row: Row = values | part | {"is_valid": part["error"] is None, "stream": stream, "file": file}
            rows.append(row)
        if len(parts) == 1 and is_of_another_format(rows[-1], len(data)):
            rows[-1]["error"] = "WRONG_FORMAT"
    windows: list[list[Row]] = [[]]
    for row in rows:
        trusted = row["error"] in (None, "VALUE_CRC_MISMATCH") or header_is_intact(row)
        row["kind"] = row["event_type"] if trusted else None
        if row["kind"] == "SCN_REGRESS" and windows[-1]:
            windows.append([])
        windows[-1].append(row)
        if row["kind"] == "END_OF_PERIOD":
            windows.append([])
    for number, window in enumerate(windows):
        sequences = [row["sequence"] for row in window if row["kind"] is not None and row["src_id"] >= 0]
        ends = [row["sequence"] for row in window if row["kind"] == "END_OF_PERIOD"]
        for row in window:
            row |= {
                "window": number,
                "window_start_scn": sequences[0] if sequences else None,
                "window_scn": ends[0] if ends else None,
            }
            del row["kind"]
    return rows


def is_of_another_format(row: Row, size: int) -> bool:
    """Whether the only row of a file has an unknown version, or a header with neither a valid checksum nor this size."""
    if row["error"] == "BAD_MAGIC":
        return True
    wrong = row["error"] in ("BAD_LENGTH", "HEADER_CRC_MISMATCH")
    return wrong and not row["header_crc_valid"] and row["length"] != size


def header_is_intact(row: Row) -> bool:
    """Whether the error is after the header: a truncated body, or parts that do not fit."""
    return bool(
        row["header_crc_valid"] and (row["status"] == "PARTIAL" or row["error"] == "BAD_LENGTH") and row["length"] > 44
    )


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk has only a few events, so that small files have many chunks."""
    monkeypatch.setattr(events, "CHUNK", 300)
    monkeypatch.setattr(events, "AHEAD", 2200)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("size", [1, 700, 100_000])
def test_golden_files(name: str, size: int, tmp_path: Path, tiny: None) -> None:
    path = tmp_path / "events.bin"
    path.write_bytes(golden_bytes(name))
    assert rows(path, maxSplitBytes=str(size)) == expected({str(path): golden_bytes(name)}, str(path))


@pytest.mark.parametrize("seed", range(12))
def test_corruption_and_splits(seed: int, tmp_path: Path, tiny: None) -> None:
    chance = random.Random(seed)
    path = tmp_path / "events.bin"
    for data in streams(seed, 6):
        path.write_bytes(data)
        want = expected({str(path): data}, str(path))
        for size in (10**6, 1, chance.randrange(1, len(data) + 2)):
            assert rows(path, maxSplitBytes=str(size)) == want


def windows(rows: list[Row]) -> list[tuple[Any, ...]]:
    """Each row's kind and window."""
    return [(row["event"], row["window"], row["window_start_scn"], row["window_scn"]) for row in rows]


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_in_several_files(name: str, tmp_path: Path, tiny: None) -> None:
    """Windows continue in the next file, and across files without an end of period."""
    data = golden_bytes(name)
    starts = [part["position"] for part in ask("dbus_events", [data])[0]]
    chance = random.Random(1)
    for _ in range(5):
        cuts = sorted(chance.sample(starts[1:], 12))
        files = {}
        for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(data)], strict=True)):
            path = tmp_path / f"events.{number:03}"
            path.write_bytes(data[start:stop])
            files[str(path)] = data[start:stop]
        want = expected(files, str(tmp_path))
        for size in (1, 1000, 10**6):
            assert rows(tmp_path, stream="directory", maxSplitBytes=str(size)) == want
        alone = [row for file, part in files.items() for row in expected({file: part}, file)]
        assert rows(tmp_path) == alone


def test_start_positions(tmp_path: Path) -> None:
    path = tmp_path / "events.bin"
    path.write_bytes(golden_bytes("window_stream"))
    result = rows(path)
    scn = [row["window_start_scn"] if row["window_scn"] is None else row["window_scn"] for row in result]
    assert rows(path, startingScn="1010") == [
        row for row, number in zip(result, scn, strict=True) if number is None or number >= 1010
    ]
    online = '{"windowScn": 1010, "windowOffset": %d, "prevScn": %d, "consumption_mode": "ONLINE_CONSUMPTION"}'
    after = [row for row, number in zip(result, scn, strict=True) if number is None or number > 1010]
    assert rows(path, startingCheckpoint=online % (-1, 1010)) == after
    partial = rows(path, startingCheckpoint=online % (2, 1000))
    number = [row for row in result if row["window_scn"] == 1010 and row["event_type"] == "DATA"]
    assert [row for row in partial if row["window_scn"] == 1010 and row["event_type"] == "DATA"] == number[2:]
    assert [row for row in partial if row["window_scn"] != 1010] == after
    flexible = '{"windowScn": -1, "tsNsecs": -1, "windowOffset": -1, "consumption_mode": "ONLINE_CONSUMPTION"}'
    assert rows(path, startingCheckpoint=flexible) == result
    with pytest.raises(ValueError, match="databus takes startingScn or startingCheckpoint, got both"):
        databus_table.query({"path": str(path), "startingScn": "1", "startingCheckpoint": flexible})
    with pytest.raises(ValueError, match=r"databus takes startingCheckpoint the JSON of a Databus checkpoint: "):
        databus_table.query({"path": str(path), "startingCheckpoint": "{"})


def test_sources(tmp_path: Path) -> None:
    path = tmp_path / "events.bin"
    path.write_bytes(golden_bytes("window_stream"))
    assert rows(path, sources="41, 42") == [row for row in rows(path) if row["src_id"] in (41, 42) or row["src_id"] < 0]


def test_columns_modes_and_compressed_files(tmp_path: Path) -> None:
    data = bytearray(golden_bytes("window_stream"))
    data[70] ^= 1
    path = tmp_path / "events.bin.gz"
    path.write_bytes(gzip.compress(bytes(data), mtime=0))
    result = rows(path)
    assert [row["error"] for row in result[:2]] == ["VALUE_CRC_MISMATCH", None]
    assert rows(path, columns="window_scn, key") == [
        {name: row[name] for name in ("window_scn", "key")} for row in result
    ]
    assert rows(path, mode="DROPMALFORMED") == result[1:]
    with pytest.raises(
        ValueError, match=r"events\.bin\.gz cannot be read at byte 0: VALUE_CRC_MISMATCH\. Mode FAILFAST"
    ):
        rows(path, mode="FAILFAST")


def test_an_incomplete_compressed_file_has_an_error(tmp_path: Path) -> None:
    data = golden_bytes("window_stream")
    path = tmp_path / "events.bin.gz"
    path.write_bytes(data)
    want = rows(path)
    assert len(want) > 2
    path.write_bytes(gzip.compress(data, mtime=0)[:-8])
    *valid, torn = rows(path)
    assert valid == want
    assert (torn["position"], torn["status"], torn["error"]) == (len(data), "PARTIAL", "TRUNCATED")


def test_long_corruption_becomes_rows_of_a_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "SKIPPED", 1000)
    monkeypatch.setattr(events, "CHUNK", 300)
    monkeypatch.setattr(events, "AHEAD", 200)
    data = golden_bytes("window_stream")
    path = tmp_path / "events.bin"
    path.write_bytes(data + bytes(3500) + data)
    skipped = [row for row in rows(path) if row["error"]]
    assert [row["position"] - len(data) for row in skipped] == [0, 1000, 2000, 3000]
    assert b"".join(row["event"] for row in skipped) == bytes(3500)


def test_no_files(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").write_bytes(b"")
    with pytest.raises(
        ValueError, match=r"has no file: databus reads every file whose name does not begin with \. or _"
    ):
        rows(tmp_path)


@pytest.mark.parametrize("other", ["kafka/orders.log", "kafka/README.md", "datahub/README.md"])
def test_a_file_of_another_format(other: str) -> None:
    path = sparkwire.samples() / other
    [row] = rows(path)
    assert (row["position"], row["error"], row["event"]) == (0, "WRONG_FORMAT", path.read_bytes())
    with pytest.raises(ValueError, match=rf"{path.name} is no file of Databus events: .*sparkwire.explain"):
        rows(path, mode="FAILFAST")


def test_one_corrupt_event_is_still_an_event(tmp_path: Path) -> None:
    [event, *_] = ask("dbus_events", [golden_bytes("window_stream")])[0]
    path = tmp_path / "events.bin"
    path.write_bytes(event["event"][:30] + b"?" + event["event"][31:])
    assert [row["error"] for row in rows(path)] == ["HEADER_CRC_MISMATCH"]
