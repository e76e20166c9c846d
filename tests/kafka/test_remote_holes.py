"""Buckets that have lost objects: every offset is a row, or a row reports that it is lost."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import tracemalloc
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from sparkwire.core.sources.storage import File
from sparkwire.errors import DataLossError
from sparkwire.kafka.files import kafka_log
from sparkwire.kafka.files.entries import ROOM
from sparkwire.kafka.files.naming import in_bucket
from sparkwire.kafka.files.remote import loaded
from sparkwire.kafka.tiered.manifest import Manifest
from tests.kafka.test_damage import batch, record
from tests.kafka.test_remote import options_of
from tests.support import kafka_cases as cases
from tests.support import kafka_tiered as tiered
from tests.support.stream import kafka

Row = dict[str, Any]
Harm = Callable[[Path], None]
COLUMNS = "topic,partition,offset,key,value,error,file,first_lost,last_lost"
RUNS = ("plain", "zstd", "enc")


def rows(path: Path, **options: str) -> list[Row]:
    query = kafka_log.query({"path": str(path), "columns": COLUMNS, **options})
    return [row for task in kafka_log.plan(query) for batch in kafka_log.read(query, task) for row in batch.to_pylist()]


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs as folders."""
    folder = tmp_path_factory.mktemp("tiered")
    for run in RUNS:
        tiered.extract(run, folder / run)
    return folder


@pytest.fixture(scope="module")
def valid_rows(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Row]]:
    """The rows of a run's partition, as written."""
    return cache(lambda run: copied(golden, run, tmp_path_factory.mktemp("valid")).rows())


class Bucket(NamedTuple):
    """One partition in a bucket."""

    folder: Path
    options: dict[str, str]

    def manifests(self) -> list[Path]:
        return sorted(self.folder.glob("*.rsm-manifest"))

    def rows(self, **options: str) -> list[Row]:
        return rows(self.folder, controlRecords="true", **self.options, **options)


def copied(golden: Path, run: str, folder: Path) -> Bucket:
    """The partition with the fewest segments, at least three."""
    partitions: dict[Path, int] = {}
    for path in (golden / run / "remote").rglob("*.rsm-manifest"):
        partitions[path.parent] = partitions.get(path.parent, 0) + 1
    source = min((count, path) for path, count in partitions.items() if count > 2)[1]
    target = folder / source.parent.name / source.name
    shutil.copytree(source, target)
    return Bucket(target, options_of(golden / run))


def offsets_of(rows: list[Row]) -> list[int]:
    return [row["offset"] for row in rows]


def changed(change: Callable[[Row], Any]) -> Harm:
    def harm(manifest: Path) -> None:
        tree = json.loads(manifest.read_text())
        change(tree)
        manifest.write_text(json.dumps(tree))

    return harm


def about(tree: Row) -> Row:
    segment: Row = tree["remoteLogSegmentMetadata"]
    return segment


def log_of(manifest: Path) -> Path:
    return manifest.with_suffix(".log")


def first_batch(log: Path) -> int:
    """Its size [bytes]."""
    return 12 + int.from_bytes(log.read_bytes()[8:12])


def of_epoch(epoch: str) -> Harm:
    return changed(lambda tree: about(tree).update(segmentLeaderEpochs={epoch: about(tree)["startOffset"]}))


def without_epochs(manifest: Path) -> None:
    """Neither the manifest nor a batch has an epoch of the log."""
    of_epoch("77")(manifest)
    log_of(manifest).write_bytes(bytes(log_of(manifest).stat().st_size))


HARMS: dict[str, Harm] = {
    "log one byte short": lambda path: os.truncate(log_of(path), log_of(path).stat().st_size - 1),
    "half a log": lambda path: os.truncate(log_of(path), log_of(path).stat().st_size // 2),
    "no log": lambda path: log_of(path).unlink(),
    "a log cut between batches": lambda path: os.truncate(log_of(path), first_batch(log_of(path))),
    "empty log": lambda path: os.truncate(log_of(path), 0),
    "half a manifest": lambda path: os.truncate(path, path.stat().st_size // 2),
    "no manifest": lambda path: path.unlink(),
    "end at the last offset": changed(lambda tree: about(tree).update(endOffset=2**63 - 1)),
    "end before the start": changed(lambda tree: about(tree).update(endOffset=-1)),
    "end too early": changed(lambda tree: about(tree).update(endOffset=about(tree)["startOffset"] + 1)),
    "start before all": changed(lambda tree: about(tree).update(startOffset=-1)),
    "start beyond all": changed(lambda tree: about(tree).update(startOffset=2**63 - 1)),
    "an epoch that never was": changed(lambda tree: about(tree).update(segmentLeaderEpochs={"77": 0})),
    "neither an epoch nor a batch": without_epochs,
    "no epochs": changed(lambda tree: about(tree).update(segmentLeaderEpochs={})),
    "of another partition": changed(
        lambda tree: about(tree)["remoteLogSegmentId"]["topicIdPartition"]["topicPartition"].update(partition=9)
    ),
    "of another segment": changed(lambda tree: about(tree)["remoteLogSegmentId"].update(id="A" * 22)),
}


BELIEVED = {
    "end at the last offset", "end before the start", "end too early", "start before all", "start beyond all",
    "an epoch that never was",
}  # fmt: skip
"""errors of the manifest that names, neighbours or bytes correct"""


def reported(rows: list[Row], end: int) -> list[int]:
    """The offsets that rows have or report as lost."""
    offsets = []
    for row in rows:
        if row["error"] is None:
            offsets.append(row["offset"])
        elif row["first_lost"] is not None:
            offsets += range(row["first_lost"], end if row["last_lost"] is None else row["last_lost"] + 1)
    return offsets


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("run", RUNS)
def test_no_offset_vanishes(
    golden: Path, valid_rows: Callable[[str], list[Row]], tmp_path: Path, run: str, harm: str
) -> None:
    before = valid_rows(run)
    known = {row["offset"]: row | {"file": ""} for row in before}
    choices = [slice(1), slice(1, 2), slice(-1, None), slice(None)]
    if harm == "no manifest":
        choices.pop()  # without any manifest, the objects are plain copies
    for number, which in enumerate(choices):
        bucket = copied(golden, run, tmp_path / str(number))
        if harm == "a log cut between batches" and run != "plain":
            pytest.skip("only there the object's bytes are the segment's")
        for manifest in bucket.manifests()[which]:
            HARMS[harm](manifest)
        after = bucket.rows()
        assert all(row | {"file": ""} == known[row["offset"]] for row in after if row["error"] is None)
        assert reported(after, before[-1]["offset"] + 1) == list(known)
        if any(row["error"] for row in after):
            with pytest.raises(ValueError, match="Mode FAILFAST fails there"):
                bucket.rows(mode="FAILFAST")
        else:
            assert harm in BELIEVED


def test_the_error_of_a_hole(golden: Path, tmp_path: Path) -> None:
    bucket = copied(golden, "plain", tmp_path)
    manifest = bucket.manifests()[1]
    log_of(manifest).unlink()
    why = (
        rf"{manifest.name} cannot be read: its \.log is not there\. No other segment has the offsets \d+ to \d+\. Mode"
    )
    with pytest.raises(ValueError, match=why):
        bucket.rows(mode="FAILFAST")


def lineage_of_two_leaders(folder: Path) -> Path:
    """The partition whose epoch 0 ended at 322. An old leader wrote further segments, from 331 on."""
    tiered.extract("lineage", folder)
    [partition] = {path.parent for path in (folder / "remote").rglob("*.rsm-manifest")}
    return partition


@pytest.mark.parametrize("epoch", ["0", "1"])
def test_a_manifest_of_an_epoch_that_ended_before(tmp_path: Path, epoch: str) -> None:
    """The log has the epochs 0, 2 and later ones, and segments of leaders that did not know of each other."""
    partition = lineage_of_two_leaders(tmp_path)
    before = rows(partition)
    for manifest in sorted(partition.glob("*.rsm-manifest")):
        stored = manifest.read_text()
        of_epoch(epoch)(manifest)
        after = rows(partition)
        assert [row for row in after if row["error"] is None and row not in before] == []
        assert reported(after, before[-1]["offset"] + 1) == offsets_of(before)
        manifest.write_text(stored)


def test_segments_of_an_old_leader_after_the_end_are_no_hole(tmp_path: Path) -> None:
    partition = lineage_of_two_leaders(tmp_path)
    before = rows(partition)
    for manifest in partition.glob("*.rsm-manifest"):
        if min(map(int, about(json.loads(manifest.read_text()))["segmentLeaderEpochs"])) > 0:
            for path in partition.glob(f"{manifest.stem}.*"):
                path.unlink()
    # Three segments of the old leader have later offsets than the log, which now ends at 336.
    assert rows(partition) == before[:337]


def test_plain_copies_without_checkpoints(tmp_path: Path) -> None:
    """One has batches of two epochs, and an old leader wrote others of the same offsets."""
    partition = lineage_of_two_leaders(tmp_path)
    before = rows(partition)
    copies = tmp_path / "orders-0-AAAAAAAAAAAAAAAAAAAAAA"
    copies.mkdir()
    for path in partition.glob("*.log"):
        shutil.copy(path, copies)
    of_batches = ("offset", "key", "value", "error")
    assert [[row[name] for name in of_batches] for row in rows(copies)] == [
        [row[name] for name in of_batches] for row in before
    ]


def test_the_epochs_of_many_batches(tmp_path: Path) -> None:
    """A segment is read in blocks, and an epoch may be in two of them."""
    later = ROOM + 5
    path = tmp_path / "orders-0-AAAAAAAAAAAAAAAAAAAAAA" / f"{0:020}-{'A' * 22}.log"
    path.parent.mkdir()
    batches = [batch(record(b"v"), base=offset) for offset in range(ROOM + 9)]
    epochs = [(5 if offset >= later else 3).to_bytes(4, "big") for offset in range(ROOM + 9)]
    path.write_bytes(b"".join(b[:12] + epoch + b[16:] for b, epoch in zip(batches, epochs, strict=True)))
    [copy] = in_bucket([File("", str(path), "", path.stat().st_size, 1.0)])
    manifest = loaded(copy)
    assert isinstance(manifest, Manifest)
    assert manifest.epochs == ((3, 0), (5, later))


def test_a_plain_copy_of_messages_without_epochs(tmp_path: Path) -> None:
    """Nothing says the epoch of messages of magic 0 and 1 without a checkpoint."""
    copies = tmp_path / "orders-0-AAAAAAAAAAAAAAAAAAAAAA"
    copies.mkdir()
    name, log = next(
        (name, data) for name, data in cases.archive("segments_v1").items() if name.endswith(".log") and data
    )
    (copies / f"{Path(name).stem}-{'A' * 22}.log").write_bytes(log)
    found = rows(copies)
    assert found
    assert [row["error"] for row in found if row["error"]] == []


def test_a_checkpoint_that_begins_at_the_last_offset(tmp_path: Path) -> None:
    """Somebody has deleted the records before it: the log begins there."""
    tiered.extract("local", tmp_path)
    [partition] = (tmp_path / "remote/kafka-tiered-storage").glob("orders-0-*")
    before = rows(partition)
    newest = max(partition.glob("*.leader_epoch_checkpoint"))
    newest.write_text(f"0\n1\n0 {before[-1]['offset']}\n")
    assert rows(partition) == before[-1:]


@pytest.mark.parametrize("which", [slice(1), slice(1, 2), slice(-1, None), slice(None)])
@pytest.mark.parametrize(
    "checkpoint", [b"", b"junk", b"0\n0\n", b"0\n1\n0 0\n", b"0\n1\n5 1000000\n", b"0\n2\n0 0\n7 1000000\n"]
)
def test_a_wrong_checkpoint_of_a_plain_copy(tmp_path: Path, checkpoint: bytes, which: slice) -> None:
    tiered.extract("local", tmp_path)
    [partition] = (tmp_path / "remote/kafka-tiered-storage").glob("payments-0-*")
    before = rows(partition)
    for path in sorted(partition.glob("*.leader_epoch_checkpoint"))[which]:
        path.write_bytes(checkpoint)
    assert rows(partition) == before


def test_an_upload_in_progress_is_no_hole(golden: Path, tmp_path: Path) -> None:
    """Only the last `.log` of a partition exists: the broker still uploads the other objects."""
    bucket = copied(golden, "plain", tmp_path)
    manifest = bucket.manifests()[-1]
    manifest.unlink()
    manifest.with_suffix(".indexes").unlink()
    assert [row["error"] for row in bucket.rows() if row["error"]] == []


@pytest.mark.parametrize("which", [slice(0, 1), slice(1, 2), slice(-1, None), slice(None)])
def test_between_disk_and_bucket(golden: Path, tmp_path: Path, which: slice) -> None:
    """Segments without any object: the directory has the log's start, and the segments on disk show where it continues."""
    local = sorted((golden / "plain").glob("local*"))[-1]
    partition = copied(golden, "plain", tmp_path).folder
    topic = partition.parent.name[:-23]
    path = local / f"{topic}-{partition.name}"
    options = {"remotePath": str(tmp_path), "controlRecords": "true"}
    before = rows(path, **options)
    assert len({row["file"] for row in before}) > 3
    for manifest in sorted(partition.glob("*.rsm-manifest"))[which]:
        for suffix in (".log", ".indexes", ".rsm-manifest"):
            manifest.with_suffix(suffix).unlink()
    after = rows(path, **options)
    assert len(after) < len(before) or which.start  # the others are also on disk
    assert reported(after, 0) == offsets_of(before)
    holes = rows(path, rows="batches", columns="file,error,first_lost,last_lost", remotePath=str(tmp_path))
    tell = ("file", "first_lost", "last_lost")
    assert [[row[name] for name in tell] for row in holes if row["error"]] == [
        [row[name] for name in tell] for row in after if row["error"]
    ]


def test_a_stream_does_not_skip_a_hole(golden: Path, tmp_path: Path) -> None:
    bucket = copied(golden, "plain", tmp_path)
    log_of(bucket.manifests()[1]).unlink()
    with pytest.raises(DataLossError, match=r"cannot be read: its \.log is not there"):
        kafka(bucket.folder).all()


# -- manifests as bombs


def chunks(original: int, whole: int, transformed: int) -> Harm:
    """A manifest that claims chunks of one size each."""
    index = {
        "type": "fixed",
        "originalChunkSize": original,
        "originalFileSize": whole,
        "transformedChunkSize": transformed,
        "finalTransformedChunkSize": transformed,
    }
    return changed(lambda tree: tree.update(compression=True, chunkIndex=index))


SIZES = pa.Codec("zstd").compress((1 << 22).to_bytes(4) + bytes(5) + bytes(10 << 20), asbytes=True)
BOMBS: dict[str, Harm | bytes] = {
    "16 TiB of empty chunks": chunks(1 << 30, 1 << 44, 0),
    "chunks of one byte": chunks(1, 10**9, 1),
    "one chunk": chunks(2**31 - 1, 2**31 - 1, 100),
    "many chunks of many bytes": chunks(100 << 20, 2000 << 20, 1),
    "a table of sizes": changed(
        lambda tree: tree.update(
            compression=True,
            chunkIndex={
                "type": "variable",
                "originalChunkSize": 1,
                "originalFileSize": 1 << 22,
                "transformedChunks": base64.b64encode(SIZES).decode(),
            },
        )
    ),
    "deep": b"[" * 1_000_000,
    "deep objects": b'{"version":' * 100_000,
    "a list": b"[]",
    "a number": b"7",
    "infinity": changed(lambda tree: about(tree).update(endOffset=float("inf"))),
    "infinite sizes": changed(lambda tree: tree["chunkIndex"].update(originalChunkSize=float("inf"))),
    "not a number": changed(lambda tree: about(tree).update(maxTimestampMs=float("nan"))),
    "surrogates": changed(
        lambda tree: about(tree)["remoteLogSegmentId"]["topicIdPartition"]["topicPartition"].update(topic="\ud800")
    ),
    "overflow": changed(lambda tree: about(tree).update(endOffset=2**64)),
    "a number of many digits": changed(lambda tree: tree.update(version=10**4000)),
    "negative spans": changed(lambda tree: tree["segmentIndexes"].update(offset={"position": -1, "size": -5})),
    "large spans": changed(lambda tree: tree["segmentIndexes"].update(offset={"position": 0, "size": 2**63 - 1})),
    "no base64": changed(lambda tree: tree.update(encryption={"dataKey": "k:%%", "aad": "%%"})),
}


def bomb(manifest: Path, name: str) -> None:
    harm = BOMBS[name]
    if isinstance(harm, bytes):
        manifest.write_bytes(harm)
    else:
        harm(manifest)


@pytest.mark.parametrize("name", BOMBS)
def test_memory_for_a_manifest_depends_on_the_object(golden: Path, tmp_path: Path, name: str) -> None:
    bucket = copied(golden, "zstd", tmp_path)
    before = bucket.rows()
    bomb(bucket.manifests()[1], name)
    tracemalloc.start()  # includes NumPy's memory
    try:
        after = bucket.rows()
        assert tracemalloc.get_traced_memory()[1] < 600 << 20
    finally:
        tracemalloc.stop()
    assert reported(after, before[-1]["offset"] + 1) == offsets_of(before)


def test_manifests_of_any_bytes(golden: Path, tmp_path: Path) -> None:
    """A changed byte of a manifest: rows, or a clear error."""
    bucket, chance = copied(golden, "enc", tmp_path), Random(36)
    manifest = bucket.manifests()[1]
    raw, before = manifest.read_bytes(), bucket.rows()
    sentences = []
    for _ in range(40):
        data = bytearray(raw)
        data[chance.randrange(len(data))] = chance.choice(b'09-"{}[]e.x\xff')
        manifest.write_bytes(data)
        try:
            after = bucket.rows()
        except ValueError as error:
            sentences.append(str(error))
        else:
            assert reported(after, before[-1]["offset"] + 1) == offsets_of(before), bytes(data)
    assert all(re.match(r"(?!.*\n)(.* is a manifest of version|the key .* encrypted with)", one) for one in sentences)
