"""`sparkwire.kafka.check` on directories that are each corrupt in one way. The integration tests compare with brokers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkwire import kafka
from tests.kafka.test_write_log import files, rows_of, write
from tests.support.log_files import entry, segment

METADATA = b"version: 0\ntopic_id: Zm9vYmFyYmF6cXV4cXV1eA\n"
FIRST, LAST, EPOCHS = f"{0:020}", f"{34:020}", "leader-epoch-checkpoint"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A log directory with one partition: two segments with 17 records each, in several batches."""
    write(tmp_path, rows_of(34), batchBytes=150, segmentBytes=600, indexIntervalBytes=100)
    (tmp_path / "orders-0" / "partition.metadata").write_bytes(METADATA)
    assert [path.stem for path in sorted((tmp_path / "orders-0").glob("*.log"))][:1] == [FIRST]
    return tmp_path


def said(path: Path, clean: bool | None = None) -> list[tuple[str, str]]:
    before = files(path)
    report = kafka.check(str(path), clean=clean)
    assert files(path) == before
    assert all(str(one) in str(report) for one in (*report.findings, *report.partitions))
    return [(one.file, one.action) for one in report.findings]


def test_a_valid_directory(logs: Path) -> None:
    (logs / "meta.properties").write_text("version=1\n")
    assert said(logs) == []
    report = kafka.check(str(logs))
    assert report.is_fine
    [partition] = report.partitions
    assert (partition.name, partition.first, partition.next) == ("orders-0", 0, 34)
    assert str(report).endswith("a broker accepts it unchanged")
    assert kafka.check(str(logs / "orders-0")).partitions == report.partitions
    assert not report.clean
    (logs / ".kafka_cleanshutdown").write_text("")
    assert kafka.check(str(logs)).clean


def second(folder: Path) -> Path:
    return sorted(folder.glob("*.log"))[1]


def damage_byte(folder: Path) -> None:
    data = bytearray(second(folder).read_bytes())
    data[-3] ^= 1
    second(folder).write_bytes(data)


def test_a_corrupt_batch(logs: Path) -> None:
    """A broker that verifies truncates there and deletes later segments; a broker that trusts the files serves the batch."""
    folder = logs / "orders-0"
    names = [path.name for path in sorted(folder.glob("*.log"))]
    damage_byte(folder)
    assert said(logs) == [(names[1], "truncate"), *((name, "delete") for name in names[2:])]
    report = kafka.check(str(logs))
    assert report.findings[0].why.endswith("there is no valid batch (CRC_MISMATCH)")
    assert report.partitions[0].segments == 2
    assert said(logs, clean=True) == [(names[1], "serve")]


def test_flushed_segments_are_not_verified(logs: Path) -> None:
    folder = logs / "orders-0"
    first, last = (path.name for path in sorted(folder.glob("*.log")))
    (folder / first).write_bytes((folder / first).read_bytes()[:-3])
    assert said(logs) == [(first, "truncate"), (last, "delete")]
    (logs / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 34\n")
    assert said(logs) == [(first, "serve")]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda folder: (folder / "partition.metadata").unlink(), [("partition.metadata", "stray")]),
        (lambda folder: (folder / "partition.metadata").write_bytes(b"id"), [("partition.metadata", "reject")]),
        (lambda folder: (folder / f"{FIRST}.index").unlink(), [(f"{FIRST}.index", "rebuild")]),
        (lambda folder: (folder / f"{FIRST}.timeindex").write_bytes(b"123"), [(f"{FIRST}.timeindex", "rebuild")]),
        (lambda folder: (folder / f"{FIRST}.index").write_bytes(b"\xff" * 8), [(f"{FIRST}.index", "rebuild")]),
        (lambda folder: (folder / f"{999:020}.index").write_bytes(bytes(8)), [(f"{999:020}.index", "delete")]),
        (lambda folder: (folder / f"{FIRST}.log.deleted").write_bytes(b"x"), [(f"{FIRST}.log.deleted", "delete")]),
        (lambda folder: (folder / f"{FIRST}.log.cleaned").write_bytes(b"x"), [(f"{FIRST}.log.cleaned", "delete")]),
        (lambda folder: (folder / EPOCHS).write_bytes(b"0\n9\n"), [(EPOCHS, "reject")]),
        (lambda folder: (folder / EPOCHS).write_bytes(b"0\n1\n-1 0\n"), [(EPOCHS, "reject")]),
        (lambda folder: (folder / EPOCHS).write_bytes(b"0\n2\n0 -1\n1 9\n"), [(EPOCHS, "reject")]),
        (lambda folder: (folder / EPOCHS).write_bytes(b"0\n1\n0 99\n"), [(EPOCHS, "truncate")]),
        (lambda folder: (folder / EPOCHS).unlink(), []),
        (lambda folder: (folder / EPOCHS).write_bytes(b""), []),
        (
            lambda folder: (folder / f"{LAST}.log").write_bytes(b""),
            [(f"{LAST}.index", "rebuild"), (f"{LAST}.timeindex", "rebuild")],
        ),
        (lambda folder: (folder / "notes.txt").write_bytes(b"x"), []),
    ],
)  # fmt: skip
def test_a_single_error(logs: Path, change: Callable[[Path], object], expected: list[tuple[str, str]]) -> None:
    change(logs / "orders-0")
    assert said(logs) == expected


def test_duplicate_offsets(logs: Path) -> None:
    """A broker that verifies every batch does not start with offsets below the name of their segment."""
    folder = logs / "orders-0"
    first, *_ = sorted(folder.glob("*.log"))
    (folder / f"{34:020}.log").write_bytes(first.read_bytes())
    for suffix in ("index", "timeindex"):
        (folder / f"{34:020}.{suffix}").write_bytes(b"")
    assert (f"{34:020}.log", "reject") in said(logs)
    assert (f"{34:020}.log", "serve") in said(logs, clean=True)


@pytest.mark.parametrize(
    ("offsets", "action", "served"),
    [
        ([0, 2**31 - 1], None, (1, 2**31)),
        ([0, 2**31], "split", (2, 2**31 + 1)),
        ([3, 2**31 - 1, 2**31 + 9, 2**31 + 10, 2**33], "split", (3, 2**33 + 1)),
        ([0, 2**40, 5], "reject", None),
    ],
)
def test_offsets_that_span_more_than_an_index(
    tmp_path: Path, offsets: list[int], action: str | None, served: tuple[int, int] | None
) -> None:
    """A broker splits the segment and loses nothing, unless only an offset in the middle is too large."""
    folder = tmp_path / "orders-0"
    log = segment(folder, 0, [entry(offset, [b"v"]) for offset in offsets])
    (folder / "partition.metadata").write_bytes(METADATA)
    indexes = [(f"{FIRST}.{suffix}", "rebuild") for suffix in ("index", "timeindex")]
    assert said(tmp_path) == [*indexes, *([(log.name, action)] if action else [])]
    if served:
        [partition] = kafka.check(str(tmp_path)).partitions
        assert (partition.segments, partition.next) == served
        assert partition.first == offsets[0]


def test_names_of_directories(logs: Path) -> None:
    for name in (
        "nothing",
        "a b-0",
        "orders-1.0123abcd-delete",
        "orders-2.0123abcd-stray",
        "remote-log-index-cache",
        "__cluster_metadata-0",
    ):
        (logs / name).mkdir()
        (logs / name / "x").write_bytes(b"")
        if name == "a b-0":
            (logs / name / "partition.metadata").write_bytes(METADATA)
    findings = [(one.partition, one.action) for one in kafka.check(str(logs)).findings]
    assert findings == [
        ("nothing", "reject"),
        ("a b-0", "reject"),
        ("nothing", "stray"),
        ("orders-1.0123abcd-delete", "delete"),
    ]


def test_an_empty_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist, or has no file: name a broker's log directory"):
        kafka.check(str(tmp_path / "none"))


# -- what a broker says of each of these is in the integration tests


def test_offsets_that_go_back_in_a_segment(logs: Path) -> None:
    """If its index cannot be built, the broker empties the segment and deletes all later segments."""
    [first, *after] = sorted((logs / "orders-0").glob("*.log"))
    first.write_bytes(first.read_bytes() * 40)
    assert said(logs) == [(first.name, "truncate"), *((log.name, "delete") for log in after), (EPOCHS, "truncate")]
    assert [(one.first, one.next) for one in kafka.check(str(logs)).partitions] == [(0, 0)]
    assert said(logs, clean=True) == [(first.name, "serve")]
    first.with_suffix(".index").unlink()
    assert (first.name, "reject") in said(logs, clean=True)


@pytest.mark.parametrize(("interval", "action"), [(100, "truncate"), (4096, "serve")])
def test_duplicate_batches_in_a_segment(interval: int, action: str, tmp_path: Path) -> None:
    """The indexes show how often the broker adds entries. With more entries, it notices earlier that offsets go back."""
    write(tmp_path, rows_of(34), batchBytes=150, indexIntervalBytes=interval)
    (tmp_path / "orders-0" / "partition.metadata").write_bytes(METADATA)
    log = tmp_path / "orders-0" / f"{FIRST}.log"
    log.write_bytes(log.read_bytes() * 2)
    [finding] = [one for one in kafka.check(str(tmp_path)).findings if one.file == log.name]
    assert finding.action == action
    assert ("a broker with a smaller index.interval.bytes empties it" in finding.why) == (action == "serve")
    [finding] = [one for one in kafka.check(str(tmp_path), clean=True).findings if one.file == log.name]
    assert (finding.action, finding.why) == ("serve", f"offsets go back at byte {log.stat().st_size // 2}")


def test_indexes_of_an_empty_segment(tmp_path: Path) -> None:
    write(tmp_path, rows_of(34), batchBytes=150, indexIntervalBytes=100)
    (tmp_path / "orders-0" / "partition.metadata").write_bytes(METADATA)
    (tmp_path / "orders-0" / f"{FIRST}.log").write_bytes(b"")
    for clean, action in ((False, "rebuild"), (True, "serve")):
        said_of = [(f"{FIRST}{suffix}", action) for suffix in (".index", ".timeindex")]
        assert said(tmp_path, clean) == [*said_of, (EPOCHS, "truncate")]


@pytest.mark.parametrize(
    ("start", "expected", "extent"),
    [
        (0, [], (0, 34)),
        (20, [(f"{FIRST}.log", "serve")], (20, 34)),
        (34, [(f"{FIRST}.log", "delete"), ("", "serve")], (34, 34)),
        (40, [(f"{FIRST}.log", "delete"), ("", "delete")], (40, 40)),
    ],
)
def test_a_log_that_starts_later(
    logs: Path, start: int, expected: list[tuple[str, str]], extent: tuple[int, int]
) -> None:
    """Records before its start are hidden or deleted; a log that ends before its start becomes empty."""
    (logs / "log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {start}\n")
    last = sorted((logs / "orders-0").glob("*.log"))[-1].name
    of_logs = [(file, action) for file, action in said(logs) if file.endswith(".log")]
    assert of_logs == [(file or last, action) for file, action in expected]
    assert [(one.first, one.next) for one in kafka.check(str(logs)).partitions] == [extent]
    assert [(one.first, one.next) for one in kafka.check(str(logs / "orders-0")).partitions] == [extent]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0\n2\n0 0\n3 17\n", []),
        ("0\n2\n3 0\n1 17\n", [(EPOCHS, "truncate")]),
        ("0\n2\n0 5\n1 5\n", [(EPOCHS, "truncate")]),
        ("0\n2\n0 0\n1 33\n", []),
        ("0\n2\n0 0\n1 34\n", [(EPOCHS, "truncate")]),
        ("0\n1\n0 35\n", [(EPOCHS, "truncate")]),
    ],
)
def test_leader_epochs(logs: Path, text: str, expected: list[tuple[str, str]]) -> None:
    (logs / "orders-0" / EPOCHS).write_text(text)
    assert said(logs) == expected


def test_an_interrupted_compaction(logs: Path) -> None:
    """A finished segment replaces the segments that it was compacted from."""
    folder = logs / "orders-0"
    log = second(folder)
    log.rename(log.with_suffix(".log.swap"))
    result = said(logs)
    assert (f"{log.name}.swap", "restore") in result
    assert [(one.first, one.next) for one in kafka.check(str(logs)).partitions] == [(0, 34)]
    (folder / f"{FIRST}.log.cleaned").write_bytes(b"")
    assert (f"{log.name}.swap", "delete") in said(logs)


def test_a_segment_is_missing(logs: Path) -> None:
    folder = logs / "orders-0"
    write(logs, rows_of(10, first=34))
    for path in folder.glob(f"{second(folder).stem}.*"):
        path.unlink()
    [finding] = kafka.check(str(logs)).findings
    assert (finding.file, finding.action) == (f"{34:020}.log", "serve")
    assert "to 33 are in no segment: one is missing, unless the topic is compacted" in finding.why
    (logs / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 40\n")
    assert said(logs) == []


def test_snapshots_of_producers(logs: Path) -> None:
    folder = logs / "orders-0"
    (folder / f"{5:020}.snapshot").write_bytes((folder / f"{FIRST}.snapshot").read_bytes())
    second(folder).with_suffix(".snapshot").write_bytes(b"x")
    assert said(logs) == [
        (f"{5:020}.snapshot", "delete"),
        (second(folder).with_suffix(".snapshot").name, "rebuild"),
    ]


def test_bytes_without_a_size_at_the_end(logs: Path) -> None:
    """A broker that trusts the log reads the end of the last segment, and does not start."""
    last = sorted((logs / "orders-0").glob("*.log"))[-1]
    last.write_bytes(last.read_bytes() + bytes(100))
    assert said(logs) == [(last.name, "truncate")]
    assert said(logs, clean=True) == [(last.name, "reject")]


@pytest.mark.parametrize(
    "name", [f"{FIRST}.index", f"{FIRST}.timeindex", f"{FIRST}.txnindex", f"{FIRST}.snapshot", EPOCHS]
)
def test_a_pipe_in_a_partition_is_not_read(logs: Path, name: str) -> None:
    """To read it would never end."""
    path = logs / "orders-0" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    assert kafka.check(str(logs)).partitions


@pytest.mark.parametrize("name", ["log-start-offset-checkpoint", "recovery-point-offset-checkpoint"])
def test_a_pipe_instead_of_a_checkpoint_is_an_error(logs: Path, name: str) -> None:
    os.mkfifo(logs / name)
    with pytest.raises(FileNotFoundError, match=f"{name} is no regular file: remove it"):
        kafka.check(str(logs))
