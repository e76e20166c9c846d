"""Written partition directories: reading them, and errors before any file has its name."""

from __future__ import annotations

import random
import subprocess
import sys
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkwire.core.sources.folder import Folder
from sparkwire.kafka.files import kafka_log
from sparkwire.kafka.write import segment_writer, write_log
from sparkwire.kafka.write.write_rows import HEADERS
from tests.support import kafka_cases as golden
from tests.support import log_files
from tests.support.arrow import ask

TYPES = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ms": pa.int64(),
    "timestamp_type": pa.string(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": HEADERS,
    "partition_leader_epoch": pa.int32(),
    "error": pa.string(),
    "is_control": pa.bool_(),
}
Row = dict[str, Any]
CREATED = 1_600_000_000_000


def batch(rows: Sequence[Row]) -> pa.RecordBatch:
    names = [name for name in TYPES if any(name in row for row in rows)]
    return pa.RecordBatch.from_arrays(
        [pa.array([row.get(name) for row in rows], TYPES[name]) for name in names], names=names
    )


def write(path: Path | str, *tasks: Sequence[Row] | pa.RecordBatch, overwrite: bool = False, **options: object) -> None:
    """Run a job with some tasks."""
    parts = [rows if isinstance(rows, pa.RecordBatch) else batch(rows) for rows in tasks]
    given = {"path": str(path)} | {name: str(value) for name, value in options.items()}
    job = uuid.uuid4().hex[:12]
    query = write_log.write_of(given, parts[0].schema, overwrite)
    write_log.begin(query, job)
    try:
        staged = [
            one
            for task, rows in enumerate(parts)
            for one in write_log.write_rows(
                query, [rows.slice(k, 7) for k in range(0, len(rows), 7)], job, f"{task}", task
            )
        ]
        write_log.commit(query, job, staged)
    except BaseException:
        write_log.abort(query, job)
        raise


def read(path: Path | str, **options: str) -> list[Row]:
    query = kafka_log.query({"path": str(path)} | options)
    rows = [row for task in kafka_log.plan(query) for some in kafka_log.read(query, task) for row in some.to_pylist()]
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def rows_of(count: int, first: int = 0, partition: int = 0, **more: Any) -> list[Row]:
    return [
        {
            "topic": "orders",
            "partition": partition,
            "offset": first + k,
            "timestamp_ms": 1_600_000_000_000 + k,
            "value": b"%d" % k,
        }
        | more
        for k in range(count)
    ]


def files(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def some_rows(seed: int) -> list[Row]:
    chance = random.Random(seed)
    headers = [{"key": "h", "value": b"1"}, {"key": "h", "value": None}, {"key": "", "value": b""}]
    offset, rows = chance.choice([0, 7, 2**62]), list[Row]()
    for k in range(300):
        offset += chance.choice([1, 1, 1, 2, 50, 2**31])
        rows.append(
            {
                "topic": "orders",
                "partition": 3,
                "offset": offset,
                "timestamp_ms": chance.choice([None, 0, 1_600_000_000_000 + k, 2**62]),
                "timestamp_type": chance.choice(["CreateTime", "LogAppendTime"])
                if k % 20 == 0
                else rows[-1]["timestamp_type"],
                "key": chance.choice([None, b"", b"k", chance.randbytes(40)]),
                "value": chance.choice([None, b"", chance.randbytes(200)]),
                "headers": chance.choices(headers, k=chance.randrange(4)),
                "partition_leader_epoch": k // 60,
            }
        )
    return rows


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_written_rows_are_read(tmp_path: Path, compression: str) -> None:
    for seed in range(3):
        rows = some_rows(seed)
        top = tmp_path / f"{seed}"
        write(top, rows, compression=compression, batchBytes="1k", segmentBytes="4k", indexIntervalBytes=100)
        result = read(top, verifyCrc="true")
        assert [{name: row[name] for name in rows[0]} for row in result] == rows
        assert {row["compression"] for row in result} == {compression}
        assert all(row["error"] is None and row["producer_id"] == -1 for row in result)


def test_segments_and_indexes(tmp_path: Path) -> None:
    """Names, sizes and a broker's rules for indexes."""
    rows = rows_of(3000, first=41)
    write(tmp_path, rows, batchBytes=400, segmentBytes="10k", indexIntervalBytes=1000)
    logs = sorted((tmp_path / "orders-0").glob("*.log"))
    assert len(logs) == 5
    for log in logs:
        batches = ask("kafka_batches", [log.read_bytes()])[0]
        assert batches[0]["base_offset"] == int(log.stem)
        assert log.stat().st_size <= 10 << 10
        expected, times, at = [], [], 0
        for one in batches:
            if one["position"] - at > 1000:
                expected.append((one["last_offset"] - int(log.stem), one["position"]))
                times.append((one["max_timestamp_ms"], one["last_offset"] - int(log.stem)))
                at = one["position"]
        latest = (batches[-1]["max_timestamp_ms"], batches[-1]["last_offset"] - int(log.stem))
        times += [latest] if times[-1:] != [latest] else []
        assert entries(log, ".index", ">i4,>i4") == expected
        assert entries(log, ".timeindex", ">i8,>i4") == times
    assert (tmp_path / "orders-0" / "leader-epoch-checkpoint").read_text() == "0\n1\n0 41\n"


def entries(log: Path, suffix: str, layout: str) -> list[tuple[int, ...]]:
    result: list[tuple[int, ...]] = np.frombuffer(log.with_suffix(suffix).read_bytes(), np.dtype(layout)).tolist()
    return result


def test_a_brokers_segments_written_again(tmp_path: Path) -> None:
    """Every golden log of a broker: its readable records are the same after writing and reading."""
    kept = [name for name in TYPES if name not in ("topic", "partition", "timestamp", "error", "is_control")]
    seen = 0
    for log in golden.logs():
        (records,) = ask("kafka_records", [log.data])
        rows: dict[int, Row] = {}
        for row in records:
            if (
                row["error"] is None
                and not row["is_control"]
                and row["magic"] == 2
                and row["offset"] > max(rows, default=-1)
            ):
                rows[row["offset"]] = {"topic": "t", "partition": 0} | {name: row[name] for name in kept}
        epochs = [row["partition_leader_epoch"] for row in rows.values()]
        if not rows or epochs != sorted(epochs):
            continue
        top = tmp_path / f"{seen}"
        write(top, list(rows.values()), batchBytes="2k")
        result = read(top)
        for row in result:
            expected = rows[row["offset"]]
            assert {name: row[name] for name in kept} == {name: expected[name] for name in kept}, log.name
        assert len(result) == len(rows), log.name
        seen += 1
    assert seen > 20


def test_tasks_write_ranges_of_a_partition(tmp_path: Path) -> None:
    rows = rows_of(100)
    write(tmp_path, rows[60:], rows[:30], rows[30:60])
    assert [row["offset"] for row in read(tmp_path)] == list(range(100))
    assert [file.name for file in sorted((tmp_path / "orders-0").glob("*.log"))] == [
        f"{k:020}.log" for k in (0, 30, 60)
    ]


def test_rows_of_several_partitions_in_any_mix(tmp_path: Path) -> None:
    mixed = [row for pair in zip(rows_of(50), rows_of(50, 500, 1), strict=True) for row in pair]
    write(tmp_path, [*mixed, *rows_of(5, 0, 0, topic="other.topic_1")])
    rows = read(tmp_path)
    assert [(row["topic"], row["partition"]) for row in rows] == (
        [("orders", 0)] * 50 + [("orders", 1)] * 50 + [("other.topic_1", 0)] * 5
    )


def test_assigned_offsets(tmp_path: Path) -> None:
    """A task's rows come after those of earlier tasks, and all rows after the existing log."""
    rows = [{name: value for name, value in row.items() if name != "offset"} for row in rows_of(90)]
    write(tmp_path, rows[:40], rows[40:], offsets="assign", startingOffset=1000, segmentBytes=500)
    assert [(row["offset"], row["value"]) for row in read(tmp_path)] == [(1000 + k, b"%d" % k) for k in range(90)]
    write(tmp_path, rows[:3], offsets="assign", startingOffset=1000)
    assert [row["offset"] for row in read(tmp_path)] == list(range(1000, 1093))
    for log in (tmp_path / "orders-0").glob("*.log"):
        assert ask("kafka_batches", [log.read_bytes()])[0][0]["base_offset"] == int(log.stem)


def test_topic_and_partition_as_options(tmp_path: Path) -> None:
    rows = [{"offset": k, "value": b"v"} for k in range(3)]
    write(tmp_path, rows, topic="orders", partition=4, leaderEpoch=9)
    result = read(tmp_path)
    assert [(row["topic"], row["partition"], row["timestamp_ms"], row["partition_leader_epoch"]) for row in result] == [
        ("orders", 4, None, 9)
    ] * 3
    assert [row["timestamp"] for row in result] == [None] * 3


def test_append_and_overwrite(tmp_path: Path) -> None:
    write(tmp_path, rows_of(10), leaderEpoch=3)
    (tmp_path / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: x\n")
    write(tmp_path, rows_of(10, first=20))
    assert [row["offset"] for row in read(tmp_path)] == [*range(10), *range(20, 30)]
    assert {row["partition_leader_epoch"] for row in read(tmp_path)} == {3}
    before = files(tmp_path)
    with pytest.raises(
        ValueError, match=r"orders-0 ends at offset 29, but the rows to append begin with 29: write only"
    ):
        write(tmp_path, rows_of(10, first=29))
    with pytest.raises(ValueError, match=r"orders-0 has records: append to them, overwrite them, or write elsewhere$"):
        write(tmp_path, rows_of(10, first=40), ifExists="error")
    with pytest.raises(ValueError, match=r"leader epoch 2 at offset 40 comes after 3: leader epochs never decrease"):
        write(tmp_path, rows_of(10, first=40), leaderEpoch=2)
    assert files(tmp_path) == before
    write(tmp_path, rows_of(4, first=2), overwrite=True)
    assert [row["offset"] for row in read(tmp_path)] == list(range(2, 6))
    assert sorted(files(tmp_path)) == [
        f"orders-0/{name}"
        for name in (
            *(f"{0:020}.{suffix}" for suffix in ("index", "log", "snapshot", "timeindex")),
            *(f"{6:020}.{suffix}" for suffix in ("index", "log", "snapshot", "timeindex")),  # up to the previous end
            "leader-epoch-checkpoint",
            "partition.metadata",
        )
    ]


def test_a_brokers_empty_active_segment_is_replaced(tmp_path: Path) -> None:
    write(tmp_path, rows_of(10))
    for suffix in ("log", "index", "timeindex"):
        (tmp_path / "orders-0" / f"{10:020}.{suffix}").write_bytes(bytes(0 if suffix == "log" else 1024))
    write(tmp_path, rows_of(5, first=10))
    assert [row["offset"] for row in read(tmp_path)] == list(range(15))
    assert entries(tmp_path / "orders-0" / f"{10:020}.log", ".index", ">i4,>i4") == []


def test_a_topic_that_was_just_created_has_no_records(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"")
    write(tmp_path, rows_of(5, first=3), ifExists="error")
    assert [row["offset"] for row in read(tmp_path)] == [3, 4, 5, 6, 7]


def test_a_log_that_a_broker_would_truncate_is_not_appended_to(tmp_path: Path) -> None:
    write(tmp_path, rows_of(10))
    with (tmp_path / "orders-0" / f"{0:020}.log").open("ab") as file:
        file.write(b"torn")
    with pytest.raises(
        ValueError, match=r"ends in 4 bytes that are no batch, and a broker would delete records after them"
    ):
        write(tmp_path, rows_of(5, first=10))


@pytest.mark.parametrize(
    ("row", "options", "sentence"),
    [
        ({"offset": 5}, {}, "topic orders, partition 0, offset 5: it comes after 9: the rows of a partition must be in"),
        ({"offset": 9}, {}, "topic orders, partition 0, offset 9: it comes after 9"),
        ({"offset": -1}, {}, "topic orders, partition 0, offset -1: offset has to be from 0 to"),
        ({"offset": None}, {}, "topic orders, partition 0, offset None: offset is NULL"),
        ({"topic": None}, {}, "topic None, partition 0, offset 10: topic is NULL"),
        ({"topic": "a b"}, {}, "topic a b, partition 0, offset 10: Kafka takes as a topic's name up to 249 letters"),
        ({"topic": ".."}, {}, "topic .., partition 0, offset 10: Kafka takes as a topic's name"),
        ({"topic": "t" * 250}, {}, "offset 10: Kafka takes as a topic's name"),
        ({"partition": None}, {}, "topic orders, partition None, offset 10: partition is NULL"),
        ({"partition": -1}, {}, "topic orders, partition -1, offset 10: partition has to be from 0 to 2147483647"),
        ({"timestamp_ms": -1}, {}, "topic orders, partition 0, offset 10: its timestamp is -1 ms, which means none in Kafka"),
        ({"timestamp": datetime(2026, 11, 1, tzinfo=UTC)}, {}, "offset 10: its timestamp and its timestamp_ms differ: leave out"),
        ({"partition_leader_epoch": -2}, {}, "topic orders, partition 0, offset 10: epoch has to be from -1 to 2147483647"),
        ({"timestamp_ms": -2}, {}, "topic orders, partition 0, offset 10: timestamp has to be from -1 to"),
        ({"headers": [{"key": None, "value": b""}]}, {}, "topic orders, partition 0, offset 10: a header without a key"),
        ({"headers": [None]}, {}, "topic orders, partition 0, offset 10: a header without a key"),
        ({"timestamp_type": "x"}, {}, "topic orders, partition 0, offset 10: timestamp_type is none of CreateTime, Log"),
        ({"error": "CRC_MISMATCH"}, {}, "topic orders, partition 0, offset 10: a row with an error is no record: leave it out"),
        ({"is_control": True}, {}, "topic orders, partition 0, offset 10: a control record, which only a broker writes"),
        ({"value": bytes(2000)}, {"maxMessageBytes": 2000}, "offset 10: its batch has 2070 bytes, and a broker takes 2000"),
        ({"value": bytes(1_048_588)}, {}, "and a broker takes 1048588 (maxMessageBytes, the topic's max.message.bytes)"),
    ],
)  # fmt: skip
def test_rejected_rows(tmp_path: Path, row: Row, options: dict[str, Any], sentence: str) -> None:
    """A clear error with the row's topic, partition and offset, and no file with a final name."""
    bad = {"topic": "orders", "partition": 0, "offset": 10, "timestamp_ms": 1, "value": b"v"} | row
    with pytest.raises(ValueError, match=r"^kafka_log cannot write ") as caught:
        write(tmp_path, [*rows_of(10), bad], batchBytes=200, **options)
    assert sentence in str(caught.value)
    assert files(tmp_path) == {}


@pytest.mark.parametrize("tasks", [[2], [1, 1], [1, 0, 3]])
def test_assigned_offsets_beyond_the_largest(tmp_path: Path, tasks: list[int]) -> None:
    plain = [{"topic": "orders", "partition": 0, "value": b"v"}]
    write(tmp_path / "one", plain, offsets="assign", startingOffset=2**63 - 2)
    assert [row["offset"] for row in read(tmp_path / "one")] == [2**63 - 2]
    with pytest.raises(
        ValueError, match=f"offset {2**63 - 2} is the largest, but the rows would end at {2**63 - 3 + sum(tasks)}"
    ):
        write(tmp_path, *(batch(plain * 3).slice(0, n) for n in tasks), offsets="assign", startingOffset=2**63 - 2)


def test_a_row_without_an_offset_among_rows_that_have_one(tmp_path: Path) -> None:
    """In any task and any partition."""
    first, second = ({"topic": "orders", "partition": 0, "offset": offset, "value": b"v"} for offset in (0, None))
    for tasks in ([[first, second]], [[second]], [[first], [second]], [[first, second | {"partition": 1}]]):
        with pytest.raises(
            ValueError, match=r"^kafka_log cannot write topic orders, partition ., offset None: offset is NULL"
        ):
            write(tmp_path, *tasks)
    assert files(tmp_path) == {}


def test_null_is_the_default_of_a_row(tmp_path: Path) -> None:
    """No leader epoch; timestamp type CreateTime; other rows keep their own values."""
    row = {"topic": "orders", "partition": 0, "timestamp_ms": 5, "value": b"v"}
    write(
        tmp_path,
        [
            row | {"offset": 0, "partition_leader_epoch": 3, "timestamp_type": "LogAppendTime"},
            row | {"offset": 1, "partition_leader_epoch": None, "timestamp_type": None},
        ],
    )
    assert [(one["value"], one["partition_leader_epoch"], one["timestamp_type"]) for one in read(tmp_path)] == [
        (b"v", 3, "LogAppendTime"),
        (b"v", -1, "CreateTime"),
    ]


def test_offsets_of_two_tasks_overlap(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"orders-0: offset 15 of one task is within 0 to 19 of another: the rows of a partition"
    ):
        write(tmp_path, rows_of(20), rows_of(20, first=15))
    assert files(tmp_path) == {}


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        ({"ofset": pa.int64()}, {}, "kafka_log has no column 'ofset' to write: it takes topic, partition, offset, timestamp,"),
        ({}, {}, "kafka_log takes topic as a column or as an option: pass one of them"),
        ({"topic": pa.string()}, {"topic": "t"}, "kafka_log takes topic as a column or as an option: pass one of them"),
        ({"topic": pa.string()}, {"partition": "0"}, "kafka_log needs a column offset, or offsets => assign, which numbers the"),
        ({"topic": pa.int32()}, {}, "kafka_log takes topic STRING, got int32"),
        ({"timestamp": pa.timestamp("us")}, {}, "kafka_log takes timestamp TIMESTAMP, got timestamp[us]"),
        ({"topic": pa.string()}, {"compression": "lzma"}, "kafka_log takes compression none or gzip or snappy or lz4 or"),
        ({}, {"leaderEpoch": "2147483648"}, "kafka_log takes leaderEpoch a whole number from 0 to 2147483647, got '2147483648'"),
        ({}, {"startingOffset": f"{2**63 - 1}"}, f"kafka_log takes startingOffset a whole number from 0 to {2**63 - 2}, got"),
        ({}, {"startingOffset": "-1"}, "kafka_log takes startingOffset a whole number from 0 on, got '-1'"),
        ({}, {"topic": "a/b"}, "kafka_log takes topic a topic's name: up to 249 letters, digits, dots,"),
        ({}, {"segmentBytes": "4g"}, "kafka_log takes segmentBytes a size of up to 2147483647 bytes, which is what an index can"),
        ({}, {"mode": "x"}, "kafka_log has no option mode: it takes path, topic, partition, compression"),
    ],
)  # fmt: skip
def test_rejected_columns_and_options(columns: dict[str, pa.DataType], options: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^kafka_log ") as caught:
        write_log.write_of({"path": "/nowhere"} | options, pa.schema(list(columns.items())), False)
    assert sentence in str(caught.value)


@pytest.mark.process
def test_a_directory_of_a_running_broker_is_rejected(tmp_path: Path) -> None:
    with (tmp_path / ".lock").open("w") as lock:
        write(tmp_path, rows_of(1))
        broker = _child_that_holds(lock.name)
        with pytest.raises(ValueError, match=r"\.lock is held by a running broker: stop it before kafka_log writes to"):
            write(tmp_path, rows_of(1, first=1))
        broker.kill()
        broker.wait()
    write(tmp_path, rows_of(1, first=1))


def _child_that_holds(path: str) -> subprocess.Popen[bytes]:
    """Another process holds the lock as Java does; a lock of the same process has no effect."""
    held = "file = open(sys.argv[1], 'r+'); fcntl.lockf(file, fcntl.LOCK_EX); print(flush=True); time.sleep(600)"
    program = f"import fcntl, sys, time; {held}"
    child = subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    return child


def test_no_rows(tmp_path: Path) -> None:
    write(tmp_path, batch(rows_of(1)).slice(0, 0))
    assert files(tmp_path) == {}


def test_a_segment_of_foreign_bytes_is_appended_to(tmp_path: Path) -> None:
    """For any program that wrote the segment."""
    log_files.segment(tmp_path / "orders-0", 0, log_files.entries(0, 30, size=10))
    write(tmp_path, rows_of(5, first=30))
    assert [row["offset"] for row in read(tmp_path)] == list(range(35))


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a segment or an index, or while files get their names: no file has a final name."""

    def full_after(calls: int) -> None:
        left = [calls]
        create = Folder.create

        def limited(self: Folder, name: str) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(28, "No space left on device")
            return create(self, name)

        monkeypatch.setattr(Folder, "create", limited)

    for calls in range(8):
        with monkeypatch.context():
            full_after(calls)
            with pytest.raises(OSError, match="No space left on device"):
                write(tmp_path, rows_of(50), segmentBytes=1000, batchBytes=100)
            monkeypatch.undo()
        assert files(tmp_path) == {}, calls
    write(tmp_path, rows_of(50), segmentBytes=1000, batchBytes=100)
    assert len(read(tmp_path)) == 50


def test_many_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of open files is limited; a partition that occurs again continues in another segment."""
    monkeypatch.setattr(write_log, "_MOST_OPEN", 10)
    monkeypatch.setattr(write_log, "_WAITING", 1000)
    rows = [row for k in range(3) for partition in range(40) for row in rows_of(5, first=5 * k, partition=partition)]
    write(tmp_path, rows)
    assert [(row["partition"], row["offset"]) for row in read(tmp_path)] == [
        (p, o) for p in range(40) for o in range(15)
    ]
    assert len(list(tmp_path.rglob("*.log"))) == 3 * 40
    write(tmp_path, rows, overwrite=True, batchBytes="1m", maxMessageBytes=200)
    assert all(
        row["size"] <= 200 for log in tmp_path.rglob("*.log") for row in ask("kafka_batches", [log.read_bytes()])[0]
    )


def test_a_brokers_producer_state_stays(tmp_path: Path) -> None:
    """Each segment has a snapshot without producers, except if the existing log has producers, which it would hide."""

    def snapshots(top: Path) -> list[str]:
        result = sorted(top.rglob("*.snapshot"))
        answers = ask("kafka_producer_snapshot", [path.read_bytes() for path in result])
        assert answers == [[]] * len(result)
        return [path.stem.lstrip("0") for path in result]

    write(tmp_path / "a", rows_of(10, first=1))
    write(tmp_path / "a", rows_of(10, first=20))
    assert snapshots(tmp_path / "a") == ["1", "11"]
    folder = tmp_path / "b" / "orders-0"
    folder.mkdir(parents=True)
    name = "v2_txn/00000000000000000000.log"
    (folder / f"{0:020}.log").write_bytes(golden.archive("segments_v2")[name])
    write(tmp_path / "b", rows_of(10, first=1000))
    assert snapshots(tmp_path / "b") == []
    (folder / f"{1000:020}.snapshot").write_bytes(golden.archive("segments_v2")[name][:30])
    write(tmp_path / "b", rows_of(10, first=2000))
    assert [path.stem.lstrip("0") for path in folder.glob("*.snapshot")] == ["1000"]


def test_rows_that_one_batch_cannot_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond 2 GiB of values, Arrow joins pending rows to several batches; they are written in order."""
    monkeypatch.setattr(segment_writer, "_joined", list)
    monkeypatch.setattr(write_log, "_WAITING", 1)
    write(tmp_path, rows_of(100), batchBytes=10_000)
    assert [row["offset"] for row in read(tmp_path)] == list(range(100))
    assert [batch["record_count"] for batch in read_batches(tmp_path)] != [100]


def read_batches(path: Path) -> list[Row]:
    return [row for log in sorted(path.rglob("*.log")) for row in ask("kafka_batches", [log.read_bytes()])[0]]


def test_segments_are_contiguous(tmp_path: Path) -> None:
    """A segment's name is the offset after the previous segment, for any first record; its indexes count from there."""
    rows = [row | {"offset": 3 * row["offset"] + 100} for row in rows_of(200)]
    write(tmp_path, rows[:90], rows[90:], batchBytes=200, segmentBytes=900, indexIntervalBytes=200)
    logs = sorted((tmp_path / "orders-0").glob("*.log"))
    assert len(logs) > 4
    end = 100
    for log in logs:
        batches = ask("kafka_batches", [log.read_bytes()])[0]
        assert int(log.stem) == end
        by_position = {batch["position"]: batch["last_offset"] for batch in batches}
        assert all(
            by_position[position] == int(log.stem) + offset for offset, position in entries(log, ".index", ">i4,>i4")
        )
        assert entries(log, ".timeindex", ">i8,>i4")[-1][1] == batches[-1]["last_offset"] - int(log.stem)
        end = batches[-1]["last_offset"] + 1
    assert read(tmp_path, startingOffset="400")[0]["offset"] == 400


@pytest.mark.parametrize("case", [str, str.upper, str.title])
def test_a_table_in_the_shape_of_sparks_own_source(case: Any, tmp_path: Path) -> None:
    """As saved from Spark's source: the timestamp type is a number, and names have any case."""
    moment = datetime(2024, 5, 1, tzinfo=UTC)
    columns = {
        "key": pa.array([b"k", None, b"k"], pa.binary()),
        "value": pa.array([b"0", b"1", None], pa.binary()),
        "topic": pa.array(["orders"] * 3),
        "partition": pa.array([0] * 3, pa.int32()),
        "offset": pa.array([3, 4, 5], pa.int64()),
        "timestamp": pa.array([moment, moment, None], pa.timestamp("us", "UTC")),
        "timestampType": pa.array([1, 0, -1], pa.int32()),
        "headers": pa.array([[{"key": "h", "value": b"v"}], None, []], HEADERS),
    }
    write(tmp_path, pa.RecordBatch.from_pydict({case(name): column for name, column in columns.items()}))
    rows = read(tmp_path)
    assert [(row["offset"], row["key"], row["value"], row["timestamp_type"]) for row in rows] == [
        (3, b"k", b"0", "LogAppendTime"),
        (4, None, b"1", "CreateTime"),
        (5, b"k", None, "CreateTime"),
    ]
    assert rows[0]["headers"] == [{"key": "h", "value": b"v"}]


def test_columns_that_differ_only_by_case_and_invalid_types(tmp_path: Path) -> None:
    columns = {"topic": ["a"], "partition": [0], "offset": [0], "Offset": [1]}
    with pytest.raises(ValueError, match="kafka_log takes the column offset once: names are the same in any case"):
        write(tmp_path, pa.RecordBatch.from_pydict(columns))
    columns = {"topic": ["a"], "partition": [0], "offset": [0], "timestampType": [7]}
    with pytest.raises(ValueError, match="offset 0: timestamp_type is none of CreateTime, LogAppendTime"):
        write(tmp_path, pa.RecordBatch.from_pydict(columns))
