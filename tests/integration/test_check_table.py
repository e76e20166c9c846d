"""`check` predicts exactly what brokers do with partition directories when they start."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewTopic

import sparkwire
from sparkwire.kafka.write.check import Report
from tests.integration.broker import Broker, running
from tests.integration.test_way_back import brokers
from tests.kafka.test_write_log import batch, write
from tests.support.log_files import entry, segment

EPOCHS = "leader-epoch-checkpoint"
LOGS = tuple(f"{base:020}" for base in (0, 10, 20))


def base(path: Path, topic: str) -> None:
    """Write thirty records in three segments with several batches."""
    rows = [
        {"topic": topic, "partition": 0, "offset": k, "timestamp_ms": 1_600_000_000_000 + k, "value": b"%d" % k * 150}
        for k in range(30)
    ]
    write(path, *(rows[k : k + 10] for k in (0, 10, 20)), batchBytes=700, indexIntervalBytes=512)


def flip(name: str, at: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        data = bytearray((folder / name).read_bytes())
        data[at] ^= 1
        (folder / name).write_bytes(data)

    return change


def twice(name: str) -> Callable[[Path], None]:
    return lambda folder: void((folder / name).write_bytes((folder / name).read_bytes() * 2))


def void(_: object) -> None: ...


def text(name: str, content: str) -> Callable[[Path], None]:
    return lambda folder: void((folder / name).write_text(content))


def move(name: str, to: str) -> Callable[[Path], None]:
    return lambda folder: void((folder / name).rename(folder / to))


def drop(*names: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for pattern in names:
            for path in folder.glob(pattern):
                path.unlink()

    return change


def checkpoint(name: str, offset: int) -> Callable[[Path], None]:
    """Change a line of a checkpoint in the log directory."""

    def change(folder: Path) -> None:
        path = folder.parent / name
        lines = path.read_text().splitlines()[2:] if path.exists() else []
        topic = folder.name.rpartition("-")[0]
        lines = [line for line in lines if not line.startswith(f"{topic} ")] + [f"{topic} 0 {offset}"]
        path.write_text("\n".join(["0", f"{len(lines)}", *lines]) + "\n")

    return change


def all_of(*changes: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for one in changes:
            one(folder)

    return change


def keep(name: str, to: str) -> Callable[[Path], None]:
    return lambda folder: void(shutil.copy(folder / name, folder / to))


def kept(folder: Path, topic: str, first: int, stop: int, end: int, start: int = 0) -> None:
    rows = [{"topic": topic, "partition": 0, "offset": k, "value": b"v"} for k in range(first, stop)]
    some = batch(rows or [{"topic": topic, "partition": 0, "offset": 0, "value": b"v"}])
    write(
        folder.parent,
        some.slice(0, len(rows)).select(["offset", "value"]),
        overwrite=True,
        topic=topic,
        partition=0,
        startOffset=start,
        endOffset=end,
    )


def spanning(folder: Path, *offsets: int) -> None:
    """Write one segment with these offsets, which may be too far apart for an index."""
    drop("0*")(folder)
    segment(folder, 0, [entry(offset, [b"v"]) for offset in offsets])


def odd_name(folder: Path) -> None:
    """Create a directory beside the partitions that is not a partition."""
    (folder.parent / "nothing").mkdir()
    (folder.parent / "nothing" / "x").write_bytes(b"")


CASES: dict[str, Callable[[Path], object]] = {
    "as-it-is": lambda folder: None,
    "log-start-40": checkpoint("log-start-offset-checkpoint", 40),
    "log-start-30": checkpoint("log-start-offset-checkpoint", 30),
    "log-start-12": checkpoint("log-start-offset-checkpoint", 12),
    "recovery-20-corrupt-first": all_of(checkpoint("recovery-point-offset-checkpoint", 20), flip(f"{LOGS[0]}.log", -3)),
    "recovery-99-corrupt-last": all_of(checkpoint("recovery-point-offset-checkpoint", 99), flip(f"{LOGS[2]}.log", -3)),
    "twice-first": twice(f"{LOGS[0]}.log"),
    "twice-last": twice(f"{LOGS[2]}.log"),
    "foreign-id": text("partition.metadata", "version: 0\ntopic_id: Zm9vYmFyYmF6cXV4cXV1eA"),
    "no-metadata": drop("partition.metadata"),
    # The last epoch is not the leader's; otherwise a broker would have nothing to write.
    "epochs-descend": text(EPOCHS, "0\n3\n2 0\n0 10\n1 20\n"),
    "epochs-at-end": text(EPOCHS, "0\n2\n0 0\n1 30\n"),
    "epochs-same-offset": text(EPOCHS, "0\n2\n1 0\n2 0\n"),
    "epochs-beyond": text(EPOCHS, "0\n2\n0 0\n1 99\n"),
    "epochs-before-start": all_of(drop(f"{LOGS[0]}*"), text(EPOCHS, "0\n2\n0 0\n1 5\n")),
    "no-epochs": drop(EPOCHS),
    "swap-alone": move(f"{LOGS[1]}.log", f"{LOGS[1]}.log.swap"),
    "swap-beside": keep(f"{LOGS[1]}.log", f"{LOGS[1]}.log.swap"),
    "swap-cleaned": all_of(
        move(f"{LOGS[1]}.log", f"{LOGS[1]}.log.swap"), keep(f"{LOGS[0]}.log", f"{LOGS[0]}.log.cleaned")
    ),
    "swap-covers": all_of(keep(f"{LOGS[0]}.log", f"{LOGS[0]}.log.swap"), drop(f"{LOGS[0]}.log")),
    "corrupt-first-batch-of-second": flip(f"{LOGS[1]}.log", 100),
    "corrupt-first": flip(f"{LOGS[0]}.log", -3),
    "corrupt-last": flip(f"{LOGS[2]}.log", -3),
    "corrupt-before-last": flip(f"{LOGS[2]}.log", 100),
    "torn-last": lambda folder: (folder / f"{LOGS[2]}.log").write_bytes((folder / f"{LOGS[2]}.log").read_bytes()[:-5]),
    "middle-missing": drop(f"{LOGS[1]}*"),
    "middle-log-missing": drop(f"{LOGS[1]}.log"),
    "first-missing": drop(f"{LOGS[0]}*"),
    "index-missing": drop(f"{LOGS[1]}.index"),
    "index-missing-corrupt": all_of(drop(f"{LOGS[1]}.index"), flip(f"{LOGS[1]}.log", 100)),
    "timeindex-missing": drop(f"{LOGS[1]}.timeindex"),
    "index-odd": text(f"{LOGS[1]}.index", "123"),
    "index-wrong": lambda folder: (folder / f"{LOGS[1]}.index").write_bytes(b"\xff" * 8),
    "timeindex-odd": text(f"{LOGS[2]}.timeindex", "123"),
    "index-orphan": lambda folder: (folder / f"{77:020}.index").write_bytes(bytes(8)),
    "snapshot-orphan": keep(f"{LOGS[2]}.snapshot", f"{15:020}.snapshot"),
    "snapshot-after": keep(f"{LOGS[2]}.snapshot", f"{30:020}.snapshot"),
    "snapshot-corrupt": text(f"{LOGS[2]}.snapshot", "x"),
    "deleted": keep(f"{LOGS[2]}.log", f"{LOGS[2]}.log.deleted"),
    "cleaned": keep(f"{LOGS[0]}.log", f"{LOGS[0]}.log.cleaned"),
    "txnindex-odd": text(f"{LOGS[1]}.txnindex", "123"),
    "empty-last": lambda folder: (folder / f"{LOGS[2]}.log").write_bytes(b""),
    "empty-alone": all_of(drop("*0.*"), lambda folder: (folder / f"{50:020}.log").write_bytes(b"")),
    "offset-down": flip(f"{LOGS[2]}.log", 7),
    "notes": text("notes.txt", "x"),
    "erased-tail": lambda folder: kept(folder, folder.name.rpartition("-")[0], 4, 12, 40),
    "erased-all": lambda folder: kept(folder, folder.name.rpartition("-")[0], 0, 0, 40),
    "erased-far": lambda folder: kept(folder, folder.name.rpartition("-")[0], 4, 12, 2**33),
    "offsets-span": lambda folder: spanning(folder, 0, 2**31, 2**31 + 1, 2**33),
    "nothing-kept-17": lambda folder: kept(folder, folder.name.rpartition("-")[0], 0, 0, 17, 17),
}

AFTER_A_KILL: dict[str, Callable[[Path], object]] = {
    "zero-tail": lambda folder: (folder / f"{LOGS[2]}.log").write_bytes(
        (folder / f"{LOGS[2]}.log").read_bytes() + bytes(100)
    ),
}
"""cases that a broker accepts only if it scans every batch"""
IN_ORDER: dict[str, Callable[[Path], object]] = {
    "offset-flipped": flip(f"{LOGS[2]}.log", 0),
}
"""cases that it accepts only if it trusts the files"""
REJECTED: dict[str, tuple[bool, Callable[[Path], object]]] = {
    "overlap": (False, all_of(keep(f"{LOGS[1]}.log", f"{15:020}.log"), drop(f"{LOGS[1]}*"))),
    "below-name": (False, all_of(move(f"{LOGS[2]}.log", f"{25:020}.log"), drop(f"{LOGS[2]}*"))),
    "twice-first-no-index": (False, all_of(twice(f"{LOGS[0]}.log"), drop(f"{LOGS[0]}.index"))),
    "zero-tail": (
        True,
        lambda folder: (folder / f"{LOGS[2]}.log").write_bytes((folder / f"{LOGS[2]}.log").read_bytes() + bytes(100)),
    ),
    "offset-flipped": (False, flip(f"{LOGS[2]}.log", 0)),
    "name": (False, odd_name),
    "epochs": (False, text(EPOCHS, "0\n9\n")),
    "epoch-below-0": (False, text(EPOCHS, "0\n1\n-1 0\n")),
    "offset-in-the-middle": (False, lambda folder: spanning(folder, 0, 2**40, 5)),
    "metadata": (False, text("partition.metadata", "id")),
}
"""cases with which it does not start, each alone, with and without a clean shutdown"""
_WITHIN = 15  # [s]
_NOT_YET = (
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)
"""a broker's errors for partitions that it does not lead yet"""


@brokers
def test_a_broker_does_what_check_says(tmp_path: Path, kafka: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Compare each directory and file in both directions, after a kill and after a clean shutdown."""
    settings = {"log.index.interval.bytes": 512, "log.initial.task.delay.ms": 1000}
    with running(tmp_path, kafka, settings=settings) as broker:
        ids = created(broker, sorted({*CASES, *AFTER_A_KILL, *IN_ORDER, *REJECTED}))
    compared, result = 0, list[str]()
    for clean, more in ((False, AFTER_A_KILL), (True, IN_ORDER)):
        cases = CASES | more
        prepare(broker.directory, tmp_path / "made", ids, cases, clean)
        report = sparkwire.kafka.check(str(broker.directory))
        assert report.clean == clean
        assert [one for one in report.findings if one.action == "reject"] == []
        before = {name: tree(broker.directory / f"{name}-0") for name in cases}
        with running(tmp_path, kafka, settings=settings) as broker:
            offsets = served(broker, list(cases))
            deadline = time.monotonic() + _WITHIN
            while True:
                wrong = [
                    line for name in cases for line in differences(broker, name, report, before[name], offsets[name])
                ]
                if not wrong or time.monotonic() > deadline:  # after a while it deletes records outside the log's range
                    break
                time.sleep(1)
        result += [f"{'clean' if clean else 'killed'}: {line}" for line in wrong]
        compared += len(cases)
    if result:
        pytest.fail("\n".join(result))
    for name, (clean, change) in REJECTED.items():
        prepare(broker.directory, tmp_path / "made", ids, {name: change}, clean)
        rejected = [one for one in sparkwire.kafka.check(str(broker.directory)).findings if one.action == "reject"]
        assert [one.partition in (f"{name}-0", "nothing") for one in rejected] == [True], name
        with (
            pytest.raises(pytest.fail.Exception, match="the broker did not start"),
            running(tmp_path, kafka, settings=settings),
        ):
            pass
    with capsys.disabled():
        print(f"\nKafka {kafka.rpartition(':')[2]}: {compared} directories as check says, {len(REJECTED)} rejected")


def created(broker: Broker, names: list[str]) -> dict[str, bytes]:
    """Create topics. Returns their metadata."""
    admin = AdminClient({"bootstrap.servers": broker.address})
    new = [NewTopic(name, 1, 1, config={"retention.ms": "-1"}) for name in names]
    for future in admin.create_topics(new).values():
        future.result()
    paths = {name: broker.directory / f"{name}-0" / "partition.metadata" for name in names}
    deadline = time.monotonic() + _WITHIN
    while not all(path.exists() and path.stat().st_size for path in paths.values()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return {name: path.read_bytes() for name, path in paths.items()}


def prepare(
    directory: Path, made: Path, ids: dict[str, bytes], cases: dict[str, Callable[[Path], object]], clean: bool
) -> None:
    """Prepare a broker's directory with these partitions, and empty partitions of the other topics."""
    for path in directory.iterdir():
        if path.is_dir() and path.name != "__cluster_metadata-0":
            shutil.rmtree(path)
        elif "checkpoint" in path.name:
            path.unlink()
    (directory / ".kafka_cleanshutdown").unlink(missing_ok=True)
    if clean:
        (directory / ".kafka_cleanshutdown").write_text("")
    for name, id in ids.items():
        folder = directory / f"{name}-0"
        folder.mkdir()
        (folder / "partition.metadata").write_bytes(id)
        if name not in cases:
            for suffix in ("log", "index", "timeindex"):
                (folder / f"{0:020}.{suffix}").write_bytes(b"")
    for name, change in cases.items():
        if not (made / f"{name}-0").exists():
            base(made, name)
        shutil.copytree(made / f"{name}-0", directory / f"{name}-0", dirs_exist_ok=True)
        change(directory / f"{name}-0")


class Kept(NamedTuple):
    """The state of a file at one time."""

    data: bytes
    written: int
    """[ns since epoch]"""


def tree(folder: Path) -> dict[str, Kept]:
    files = folder.iterdir() if folder.exists() else ()
    return {path.name: Kept(path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(files) if path.is_file()}


def served(broker: Broker, names: list[str]) -> dict[str, tuple[int, int]]:
    """The first and the next offset of each topic's partition, once the broker leads all of them."""
    admin = AdminClient({"bootstrap.servers": broker.address})
    partitions = [TopicPartition(name, 0) for name in names]
    specs: tuple[OffsetSpec, ...] = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]
    deadline = time.monotonic() + _WITHIN
    while True:
        first, end = (admin.list_offsets(dict.fromkeys(partitions, spec)) for spec in specs)
        try:
            return {one.topic: (first[one].result(30).offset, end[one].result(30).offset) for one in partitions}
        except KafkaException as error:  # it learned of its leadership later than its clients
            if error.args[0].code() not in _NOT_YET or time.monotonic() > deadline:
                raise
        time.sleep(0.5)


def differences(
    broker: Broker, name: str, report: Report, before: dict[str, Kept], offsets: tuple[int, int]
) -> Iterator[str]:
    """Actions of the broker that `check` did not predict, and predicted actions that did not happen."""
    findings = [one for one in report.findings if one.partition == f"{name}-0"]
    said = {(one.file, one.action) for one in findings}
    if ("partition.metadata", "stray") in said or list(broker.directory.glob(f"{name}-0.*-stray")):
        if ("partition.metadata", "stray") not in said or not list(broker.directory.glob(f"{name}-0.*-stray")):
            yield f"{name}: stray"
        return
    [partition] = [one for one in report.partitions if one.name == f"{name}-0"]
    if (partition.first, partition.next) != offsets:
        yield f"{name}: serves {offsets}, and check says {partition.first, partition.next}"
    after = {file: kept for file, kept in tree(broker.directory / f"{name}-0").items() if not file.endswith(".deleted")}
    for file in sorted({*before, *after}):
        done = effect(file, before.get(file), after.get(file))
        if (file, "split") in said:
            if error := not_split(file, before, after):
                yield f"{name}: {error}"
            continue
        stem = file.partition(".")[0]
        of_log = {action for log, action in said if log == f"{stem}.log"}
        expected = {action for one, action in said if one == file}
        if file.endswith(".swap"):
            expected = {"delete"} if expected else set()
        elif not file.endswith(".log"):
            # Consequences of an action on a segment are not reported again.
            expected |= of_log & {"delete", "truncate"} if done else set()
            expected |= {"rebuild"} if done and "truncate" in of_log else set()
        if f"{file}.swap" in before and (f"{file}.swap", "restore") in said:
            continue
        if done == "delete" and file.endswith(".snapshot") and int(stem) <= partition.first:
            expected |= {"delete"}  # as for every log: producer states before its start are deleted
        if not done and expected & {"delete", "rebuild"} and anew(before.get(file), after.get(file)):
            continue  # it was deleted and rewritten with the same content
        if done and done not in expected:
            yield f"{name}: {file}: {done}, and check says {sorted(expected)}"
        if expected - {"serve", "rebuild"} and not done:
            yield f"{name}: {file}: check says {sorted(expected)}, and nothing was done"
    for one in findings:
        if one.action == "truncate" and one.file.endswith(".log"):
            size = int((re.findall(r"at byte (\d+) of", one.why) or ["0"])[0])
            has = len(after[one.file].data) if one.file in after else 0
            if has != size:
                yield f"{name}: {one}, and it has {has} bytes"
        if one.action == "restore" and one.file.removesuffix(".swap") not in after:
            yield f"{name}: {one}, and it is not there"
        if one.action == "rebuild" and one.file in before and after.get(one.file) == before[one.file]:
            yield f"{name}: {one}, and it is as it was"


def not_split(log: str, before: dict[str, Kept], after: dict[str, Kept]) -> str | None:
    """An error if several segments do not have the bytes of the segment together."""
    parts = sorted(one for one in after if one.endswith(".log") and (one == log or one not in before))
    same = b"".join(after[one].data for one in parts) == before[log].data
    return None if len(parts) > 1 and same else f"{log} was split into {parts}, with the same bytes: {same}"


def anew(before: Kept | None, after: Kept | None) -> bool:
    """Whether a file was rewritten with the same content."""
    return before is not None and after is not None and before.data == after.data and before.written != after.written


def effect(file: str, was: Kept | None, now: Kept | None) -> str | None:
    """A broker's action on the content of a file; None if nothing changed."""
    if was is None:
        return None
    before, after = was.data, None if now is None else now.data
    if file == EPOCHS:
        return (
            None
            if after is not None and after.split(b"\n")[2:][: before.count(b"\n") - 2] == before.split(b"\n")[2:-1]
            else "truncate"
        )
    if after is None:
        return "delete"
    if file.endswith((".index", ".timeindex")):
        return (
            None
            if after.rstrip(b"\0").startswith(before.rstrip(b"\0")) and before
            else "rebuild"
            if before or after.rstrip(b"\0")
            else None
        )
    if after.startswith(before):
        return None
    return "truncate" if file.endswith(".log") else "rebuild"
