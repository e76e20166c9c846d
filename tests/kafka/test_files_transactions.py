"""``read_committed``: the records of Kafka's consumer, according to Kafka's dump of every batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkwire.core.sources.storage import OpenFile
from sparkwire.kafka.files import plan, seek, transactions
from tests.kafka.test_files import rows
from tests.support import kafka_cases as golden
from tests.support import kafka_storage_files as storage

Row = dict[str, Any]
NAMES = ("v2_txn/00000000000000000000", "v2_txn/00000000000000000280")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[OpenFile]:
    """Records every file that is opened from now on."""
    opened: list[OpenFile] = []
    start = OpenFile.__init__

    def counting(self: OpenFile, file: Any) -> None:
        start(self, file)
        opened.append(self)

    monkeypatch.setattr(OpenFile, "__init__", counting)
    return opened


def lines(names: tuple[str, ...] = NAMES) -> list[Row]:
    files = golden.archive("segments_v2")
    return [line for name in names for line in golden.lines(files[f"{name}.jsonl"]) if line["type"] == "batch"]


def committed(batches: list[Row]) -> list[int]:
    """A simple model of the consumer's rule: a transaction is what its producer writes before its marker."""
    outcome: dict[int, str] = {}
    opened: dict[int, int] = {}
    for at in range(len(batches) - 1, -1, -1):
        line = batches[at]
        if line["isControl"]:
            outcome[line["producerId"]] = line["records"][0]["controlType"]
        elif line["isTransactional"]:
            kind = outcome.get(line["producerId"])
            batches[at] = line | {"outcome": kind}
            if kind is None:
                opened[line["producerId"]] = line["baseOffset"]
    stable = min(opened.values(), default=2**63)
    return [
        record["offset"]
        for line in batches
        if not line["isControl"] and (not line["isTransactional"] or line["outcome"] == "COMMIT")
        for record in line["records"]
        if record["offset"] < stable
    ]


def write(folder: Path, names: tuple[str, ...] = NAMES, cut: int | None = None) -> None:
    for name in names:
        data = golden.archive("segments_v2")[f"{name}.log"]
        (folder / f"{name.rsplit('/', 1)[-1]}.log").write_bytes(data if name != names[-1] else data[:cut])


def with_broker_files(folder: Path, changed: dict[str, bytes] | None = None) -> None:
    """Both segments, with the broker's other files."""
    write(folder)
    for kind in (".txnindex", ".snapshot"):
        for file in storage.dumped(kind):
            if file.path.startswith("v2_txn/"):
                (folder / Path(file.path).name).write_bytes(file.data)
    for name in [*NAMES[1:], *NAMES[:1]]:
        stem = name.rsplit("/", 1)[-1]
        (folder / f"{stem}.index").write_bytes(golden.archive("segments_v2")[f"{name}.index"])
    for name, data in (changed or {}).items():
        (folder / name).write_bytes(data)


def test_the_brokers_files_are_used(tmp_path: Path, counted: list[OpenFile], monkeypatch: pytest.MonkeyPatch) -> None:
    """Aborted and open transactions of the first segment are not read from its headers."""
    for module in (plan, transactions):
        monkeypatch.setattr(module, "PAGE", 256)
    monkeypatch.setattr(seek, "_TRIED", 1)
    asked = {"isolationLevel": "read_committed", "startingOffset": "281"}
    write(tmp_path)
    want = rows(tmp_path, **asked)
    before = read_of(counted, NAMES[0])
    with_broker_files(tmp_path)
    counted.clear()
    assert rows(tmp_path, **asked) == want
    assert read_of(counted, NAMES[0]) < before / 2
    counted.clear()
    assert [row["offset"] for row in rows(tmp_path, isolationLevel="read_committed")] == committed(lines())


def read_of(opened: list[OpenFile], name: str) -> int:
    return sum(source.bytes_read for source in opened if source.file.path.endswith(f"{name.rsplit('/', 1)[-1]}.log"))


@pytest.mark.parametrize("name", ["00000000000000000000.txnindex", "00000000000000000280.snapshot"])
def test_wrong_files_change_no_result(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty, zeroed, truncated, of another segment, with an empty entry, with a flipped bit in each of the first bytes."""
    for module in (plan, transactions):
        monkeypatch.setattr(module, "PAGE", 256)
    with_broker_files(tmp_path)
    good = (tmp_path / name).read_bytes()
    other = next(path for path in sorted(tmp_path.iterdir()) if path.suffix == Path(name).suffix and path.name != name)
    lies = [b"", bytes(len(good)), good[:-5], other.read_bytes(), good + bytes(34)]
    lies += [good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1 :] for at in range(60)]
    want = committed(lines())
    for k, lie in enumerate(lies):
        (tmp_path / name).write_bytes(lie)
        offsets = [row["offset"] for row in rows(tmp_path, isolationLevel="read_committed", columns="offset")]
        assert offsets == want, k


def test_aborted_transactions_are_omitted(tmp_path: Path) -> None:
    write(tmp_path)
    offsets = [row["offset"] for row in rows(tmp_path, isolationLevel="read_committed")]
    assert offsets == committed(lines())
    assert 0 < len(offsets) < len(rows(tmp_path))


def test_records_from_the_first_open_transaction_on_are_omitted(tmp_path: Path) -> None:
    """At every position at which the log may end."""
    first = lines(NAMES[:1])
    for k in range(1, len(first), 3):
        write(tmp_path, NAMES[:1], first[k]["position"])
        offsets = [row["offset"] for row in rows(tmp_path, isolationLevel="read_committed")]
        assert offsets == committed(first[:k]), first[k]["baseOffset"]


def test_a_transaction_across_segments(tmp_path: Path) -> None:
    """A log that is split into two segments at any position is the same log."""
    data = golden.archive("segments_v2")[f"{NAMES[0]}.log"]
    first = lines(NAMES[:1])
    for k in range(1, len(first), 9):
        for old in tmp_path.iterdir():
            old.unlink()
        (tmp_path / f"{0:020}.log").write_bytes(data[: first[k]["position"]])
        (tmp_path / f"{first[k]['baseOffset']:020}.log").write_bytes(data[first[k]["position"] :])
        offsets = [row["offset"] for row in rows(tmp_path, isolationLevel="read_committed")]
        assert offsets == committed(first)


def test_markers_are_rows_with_the_option(tmp_path: Path) -> None:
    write(tmp_path)
    result = rows(tmp_path, isolationLevel="read_committed", controlRecords="true")
    markers = [line["baseOffset"] for line in lines() if line["isControl"]]
    assert [row["offset"] for row in result if row["is_control"]] == markers


def test_batches_of_aborted_transactions(tmp_path: Path) -> None:
    write(tmp_path)
    result = rows(tmp_path, isolationLevel="read_committed", rows="batches")
    kept = set(committed(lines()))
    want = [line["position"] for line in lines() if line["isControl"] or {r["offset"] for r in line["records"]} & kept]
    assert [row["position"] for row in result] == want
