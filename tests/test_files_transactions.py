"""``read_committed``: what Kafka's consumer gets, by what Kafka says of every batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests import kafka_cases as golden
from tests.test_files_kafka import rows

Row = dict[str, Any]
NAMES = ("v2_txn/00000000000000000000", "v2_txn/00000000000000000280")


def lines(names: tuple[str, ...] = NAMES) -> list[Row]:
    files = golden.archive("segments_v2")
    return [line for name in names for line in golden.lines(files[f"{name}.jsonl"]) if line["type"] == "batch"]


def committed(batches: list[Row]) -> list[int]:
    """The consumer's rule, the slow way: a transaction is what its producer writes before its marker."""
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


def test_aborted_transactions_are_left_out(tmp_path: Path) -> None:
    write(tmp_path)
    found = [row["offset"] for row in rows(tmp_path, isolationLevel="read_committed")]
    assert found == committed(lines())
    assert 0 < len(found) < len(rows(tmp_path))


def test_nothing_from_the_first_open_one_on(tmp_path: Path) -> None:
    """At every place where the log may end."""
    first = lines(NAMES[:1])
    for k in range(1, len(first), 3):
        write(tmp_path, NAMES[:1], first[k]["position"])
        found = [row["offset"] for row in rows(tmp_path, isolationLevel="read_committed")]
        assert found == committed(first[:k]), first[k]["baseOffset"]


def test_a_transaction_across_segments(tmp_path: Path) -> None:
    """One log cut into two segments anywhere is the same log."""
    data = golden.archive("segments_v2")[f"{NAMES[0]}.log"]
    first = lines(NAMES[:1])
    for k in range(1, len(first), 9):
        for old in tmp_path.iterdir():
            old.unlink()
        (tmp_path / f"{0:020}.log").write_bytes(data[: first[k]["position"]])
        (tmp_path / f"{first[k]['baseOffset']:020}.log").write_bytes(data[first[k]["position"] :])
        found = [row["offset"] for row in rows(tmp_path, isolationLevel="read_committed")]
        assert found == committed(first)


def test_markers_are_rows_when_asked_for(tmp_path: Path) -> None:
    write(tmp_path)
    found = rows(tmp_path, isolationLevel="read_committed", controlRecords="true")
    markers = [line["baseOffset"] for line in lines() if line["isControl"]]
    assert [row["offset"] for row in found if row["is_control"]] == markers


def test_batches_of_aborted_transactions(tmp_path: Path) -> None:
    write(tmp_path)
    found = rows(tmp_path, isolationLevel="read_committed", rows="batches")
    kept = set(committed(lines()))
    want = [line["position"] for line in lines() if line["isControl"] or {r["offset"] for r in line["records"]} & kept]
    assert [row["position"] for row in found] == want
