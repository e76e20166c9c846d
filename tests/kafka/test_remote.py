"""Buckets of tiered storage, with and without brokers' directories: the same rows as the brokers' own consumers."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import sparkwire
from sparkwire.errors import DataLossError
from sparkwire.kafka.files import kafka_log
from sparkwire.kafka.tiered import encryption_keys
from tests.kafka import test_write_log as log
from tests.support import kafka_tiered as tiered
from tests.support.kafka_cases import lines
from tests.support.stream import kafka

Row = dict[str, Any]
AIVEN = [run for run in tiered.RUNS if run != "local"]


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs as folders."""
    folder = tmp_path_factory.mktemp("tiered")
    for run in tiered.RUNS:
        tiered.extract(run, folder / run)
    return folder


@pytest.fixture(scope="module")
def bucket_rows(golden: Path) -> Callable[[str], list[Row]]:
    """The rows of a run's bucket alone."""
    return cache(lambda run: rows(path=str(golden / run / "remote"), **options_of(golden / run)))


def digest(data: bytes | None) -> Any:
    if data is None:
        return None
    return (
        base64.b64encode(data).decode()
        if len(data) <= 64
        else {"sha256": hashlib.sha256(data).hexdigest(), "len": len(data)}
    )


def rows(**options: str) -> list[Row]:
    names = "topic,partition,offset,timestamp_ms,timestamp_type,partition_leader_epoch,key,value,headers,error,tier"
    query = kafka_log.query({"columns": names, **options})
    return [row for task in kafka_log.plan(query) for batch in kafka_log.read(query, task) for row in batch.to_pylist()]


def as_consumed(row: Row) -> Row:
    headers = [[header["key"], digest(header["value"])] for header in row["headers"] or []]
    return {
        "offset": row["offset"],
        "timestamp": row["timestamp_ms"],
        "timestamp_type": row["timestamp_type"],
        "leader_epoch": row["partition_leader_epoch"],
        "key": digest(row["key"]),
        "value": digest(row["value"]),
        "headers": headers,
    }


@cache
def truth(run: str, topic: str, partition: int, level: str) -> list[Row]:
    return lines(tiered.run_files(run)[f"truth/{topic}-{partition}.{level}.jsonl"])


def options_of(run: Path) -> dict[str, str]:
    keys = run / "keys"
    if not keys.exists():
        return {}
    names = {path.name.partition(".")[0]: path.name for path in keys.glob("*.private.pem")}
    (keys / "keys.json").write_text(json.dumps(names))
    return {"encryptionKeys": str(keys / "keys.json")}


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("run", tiered.RUNS)
def test_disk_and_bucket_have_the_rows_of_consumers(golden: Path, run: str, level: str) -> None:
    folder = golden / run
    offsets = json.loads((folder / "truth/offsets.json").read_text())
    local = sorted(folder.glob("local*"))[-1 if run != "lineage" else 1]
    result = rows(path=str(local), remotePath=str(folder / "remote"), isolationLevel=level, **options_of(folder))
    there = {(row["topic"], row["partition"]) for row in result}
    assert len(there) >= (1 if run == "lineage" else len(offsets))
    for known in offsets:
        if run == "lineage" and (known["topic"], known["partition"]) not in there:
            continue  # a partition of another node
        expected = truth(run, known["topic"], known["partition"], level)
        mine = [row for row in result if (row["topic"], row["partition"]) == (known["topic"], known["partition"])]
        assert [row["error"] for row in mine if row["error"]] == []
        assert [as_consumed(row) for row in mine] == expected, (known["topic"], known["partition"])


# -- the bucket alone


def dated(folder: Path, how: str) -> None:
    """Change the dates of a bucket's objects: all equal, or in the order of names after a copy."""
    for k, path in enumerate(sorted(path for path in folder.rglob("*") if path.is_file())):
        when = 1_760_000_000 + (k if how == "by name" else 0)
        os.utime(path, (when, when))


@pytest.mark.parametrize("how", ["as written", "all the same", "by name"])
@pytest.mark.parametrize("run", tiered.RUNS)
def test_a_bucket_alone(bucket_rows: Callable[[str], list[Row]], tmp_path: Path, run: str, how: str) -> None:
    """The rows of consumers; only the log's start is unknown there."""
    offsets = json.loads(tiered.run_files(run)["truth/offsets.json"])
    if how == "as written":
        result = bucket_rows(run)
    else:
        tiered.extract(run, tmp_path)
        dated(tmp_path / "remote", how)
        result = rows(path=str(tmp_path / "remote"), **options_of(tmp_path))
    assert {row["tier"] for row in result} == {"remote"}
    for known in offsets:
        topic, partition, last = known["topic"], known["partition"], known["latest_tiered"]
        mine = [row for row in result if (row["topic"], row["partition"]) == (topic, partition)]
        assert [row["error"] for row in mine if row["error"]] == []
        expected = [row for row in truth(run, topic, partition, "read_uncommitted") if row["offset"] <= last]
        assert [as_consumed(row) for row in mine if row["offset"] >= known["log_start"]] == expected, (topic, partition)
        before = [row["offset"] for row in mine if row["offset"] < known["log_start"]]
        assert before == sorted(set(before))


@pytest.mark.parametrize("run", tiered.RUNS)
def test_a_bucket_alone_read_committed(golden: Path, bucket_rows: Callable[[str], list[Row]], run: str) -> None:
    """No rows from the first transaction on whose marker is not in the bucket."""
    folder = golden / run
    offsets = json.loads((folder / "truth/offsets.json").read_text())
    options = {"path": str(folder / "remote"), **options_of(folder)}
    result, everything = rows(isolationLevel="read_committed", **options), bucket_rows(run)
    held_back = 0
    for known in offsets:
        key = known["topic"], known["partition"]
        mine = [
            row for row in result if (row["topic"], row["partition"]) == key and row["offset"] >= known["log_start"]
        ]
        expected = [row for row in truth(run, *key, "read_committed") if row["offset"] <= known["latest_tiered"]]
        assert [as_consumed(row) for row in mine] == expected[: len(mine)], key
        held_back += len(expected) - len(mine)
        if known["topic"] != "payments":
            assert len(mine) == len(expected)
    assert 0 <= held_back <= 56
    assert len(result) < len(everything) or "payments" not in {known["topic"] for known in offsets}


@pytest.mark.parametrize("run", ["zstd", "enc", "leftovers"])
def test_offsets_and_times_are_found(golden: Path, bucket_rows: Callable[[str], list[Row]], run: str) -> None:
    folder = golden / run
    options = {"path": str(folder / "remote"), **options_of(folder)}
    everything = bucket_rows(run)
    for first, end in ((100, 101), (223, 225), (300, 500)):
        part = rows(startingOffset=str(first), endingOffset=str(end), **options)
        assert part == [row for row in everything if first <= row["offset"] < end]
    by_partition: dict[tuple[str, int], list[Row]] = {}
    for row in rows(controlRecords="true", **options):  # a marker has a timestamp as well
        by_partition.setdefault((row["topic"], row["partition"]), []).append(row)
    when = sorted(row["timestamp_ms"] for row in everything)[len(everything) // 2]
    begins = {
        partition: next((row["offset"] for row in log if row["timestamp_ms"] >= when), 2**63)
        for partition, log in by_partition.items()
    }
    expected = [row for row in everything if row["offset"] >= begins[row["topic"], row["partition"]]]
    assert rows(startingTimestamp=str(when), **options) == expected


# -- bad input


def is_left_of(before: list[Row], rows: list[Row]) -> bool:
    """Whether these rows are among the earlier rows, in the same order."""
    behind = iter(before)
    return all(row in behind for row in rows)


def objects(folder: Path, suffix: str) -> list[Path]:
    return sorted((folder / "remote").rglob(f"*{suffix}"))


def test_a_missing_key_is_a_clear_error(tmp_path: Path) -> None:
    tiered.extract("enc", tmp_path)
    options = options_of(tmp_path)
    with pytest.raises(ValueError, match=r"encrypted with the key key.*encryptionKeys must name"):
        rows(path=str(tmp_path / "remote"))
    keys = tmp_path / "keys"
    (keys / "one.json").write_text(json.dumps({"key1": "key1.private.pem"}))
    with pytest.raises(ValueError, match=r"one\.json has no key key-2.*it has key1"):
        rows(path=str(tmp_path / "remote"), encryptionKeys=str(keys / "one.json"))
    (keys / "swapped.json").write_text(json.dumps({"key1": "key-2.private.pem", "key-2": "key1.private.pem"}))
    with pytest.raises(ValueError, match="is not the one that the segments are encrypted with") as reported:
        rows(path=str(tmp_path / "remote"), encryptionKeys=str(keys / "swapped.json"))
    assert "PRIVATE" not in str(reported.value)
    (keys / "none.json").write_text(json.dumps({"key1": "key1.public.pem", "key-2": "key1.public.pem"}))
    with pytest.raises(ValueError, match="no PEM file of an RSA private key"):
        rows(path=str(tmp_path / "remote"), encryptionKeys=str(keys / "none.json"))
    (keys / "text.json").write_text("key1")
    with pytest.raises(ValueError, match="no JSON object of key ids"):
        rows(path=str(tmp_path / "remote"), encryptionKeys=str(keys / "text.json"))
    with pytest.raises(FileNotFoundError):
        rows(path=str(tmp_path / "remote"), encryptionKeys=str(keys / "gone.json"))
    assert rows(path=str(tmp_path / "remote"), **options)


def test_the_cache_of_data_keys_is_bounded() -> None:
    """Each segment has a data key, and a long query reads thousands."""
    for kept in (encryption_keys._cipher, encryption_keys._private_key):
        assert kept.cache_info().maxsize is not None


def test_a_corrupt_data_key_is_a_clear_error(tmp_path: Path) -> None:
    """For changed bytes at any position, and for any size."""
    tiered.extract("enc", tmp_path)
    options_of(tmp_path)
    path = str(tmp_path / "keys" / "keys.json")
    [manifest, *_] = objects(tmp_path, ".rsm-manifest")
    name, _, wrapped = json.loads(manifest.read_text())["encryption"]["dataKey"].partition(":")
    whole = base64.b64decode(wrapped)
    flipped = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in (0, 1, 100, len(whole) - 1)]
    for damaged in (b"", whole[:-1], whole + b"x", b"\xff" * len(whole), *flipped):
        text = f"{name}:{base64.b64encode(damaged).decode()}"
        with pytest.raises(ValueError, match="is not the one that the segments are encrypted with"):
            encryption_keys.Keys(path).decrypt(bytes(64), text, b"")
    with pytest.raises(ValueError, match="is not the one that the segments are encrypted with"):
        encryption_keys.Keys(path).decrypt(bytes(64), f"{name}:x", b"")


def test_a_manifest_of_another_version_is_a_clear_error(tmp_path: Path) -> None:
    tiered.extract("zstd", tmp_path)
    manifest = objects(tmp_path, ".rsm-manifest")[0]
    manifest.write_text(manifest.read_text().replace('"version":"1"', '"version":"2"'))
    with pytest.raises(ValueError, match=f"{manifest.name} is a manifest of version '2'"):
        rows(path=str(tmp_path / "remote"))


@pytest.mark.parametrize("run", ["zstd", "enc"])
@pytest.mark.parametrize("harm", ["flip", "cut"])
def test_a_corrupt_chunk_is_a_row_and_reading_continues(tmp_path: Path, run: str, harm: str) -> None:
    tiered.extract(run, tmp_path)
    options = {"path": str(tmp_path / "remote"), **options_of(tmp_path)}
    before = rows(**options)
    log = max(objects(tmp_path, ".log"), key=lambda path: path.stat().st_size)
    date, data = log.stat().st_mtime, bytearray(log.read_bytes())
    if harm == "flip":
        data[40] ^= 1
        log.write_bytes(data)
        os.utime(log, (date, date))
    after = rows(**options)
    if harm == "flip":
        errors = [row for row in after if row["error"]]
        valid = [row for row in after if not row["error"]]
        assert errors
        assert 0 < len(valid) < len(before)
        assert is_left_of(before, valid)
        return
    log.write_bytes(data[: len(data) // 2])
    left = rows(**options)
    assert [row["error"] for row in left if row["error"]]
    valid = [row for row in left if not row["error"]]
    assert 0 < len(valid) < len(after)
    assert is_left_of(before, valid)


# -- streams


def by_segment(folder: Path) -> list[list[Path]]:
    """The objects of a bucket by segment, in the order in which they were written."""
    result: dict[str, list[Path]] = {}
    for path in folder.rglob("*"):
        if path.is_file():
            result.setdefault(str(path).rpartition(".")[0], []).append(path)
    return sorted(result.values(), key=lambda paths: (max(path.stat().st_mtime for path in paths), str(paths[0])))


@pytest.mark.parametrize("run", ["plain", "enc"])
def test_a_stream_over_a_bucket_returns_each_record_once(
    golden: Path, bucket_rows: Callable[[str], list[Row]], tmp_path: Path, run: str
) -> None:
    source, target = golden / run / "remote", tmp_path / "bucket"
    stream, result = None, list[Row]()
    for objects_of_one in by_segment(source):
        for path in sorted(objects_of_one):  # the manifest is the last object
            copied = target / path.relative_to(source)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copied)
        stream = stream or kafka(target, **options_of(golden / run))
        result += stream.all()
    keys = ["topic", "partition", "offset", "key", "value"]
    everything = bucket_rows(run)
    expected = sorted([tuple(row[key] for key in keys) for row in everything], key=lambda row: row[:3])
    assert sorted([tuple(row[key] for key in keys) for row in result], key=lambda row: row[:3]) == expected


def test_segments_deleted_before_they_are_read_are_a_loss(golden: Path, tmp_path: Path) -> None:
    partition = next((golden / "plain/remote").glob("orders-*/0"))
    target = tmp_path / "bucket" / partition.relative_to(golden / "plain/remote")
    shutil.copytree(partition, target)
    stream = kafka(tmp_path / "bucket")
    assert stream.batch(max_bytes=1)
    last = max(path.name[:20] for path in target.iterdir())
    for path in target.iterdir():
        if not path.name.startswith(last):
            path.unlink()
    stream.restart()
    with pytest.raises(DataLossError, match=f"the log begins at offset {int(last)} now"):
        stream.batch()
    assert {row["offset"] for row in stream.lenient_batch()} == set(range(int(last), 679))


@pytest.mark.parametrize("run", ["plain", "lineage"])
def test_without_indexes_manifests_are_used(tmp_path: Path, run: str) -> None:
    tiered.extract(run, tmp_path)
    before = rows(path=str(tmp_path / "remote"))
    for path in objects(tmp_path, ".indexes"):
        path.unlink()
    assert rows(path=str(tmp_path / "remote")) == before


def test_a_topic_whose_name_looks_like_a_copy(tmp_path: Path) -> None:
    """``orders-2024-…-0`` is partition 0, for any length of the part between."""
    for topic in ("orders-2024-customer_events_v2_x", "orders-2024-" + "x" * 20, "a-1"):
        folder = tmp_path / f"{topic}-0"
        folder.mkdir()
        shutil.copy(Path(sparkwire.samples()) / "kafka/orders-0" / f"{0:020}.log", folder)
        result = rows(path=str(folder))
        assert {(row["topic"], row["partition"], row["tier"]) for row in result} == {(topic, 0, "local")}


def test_a_missing_file_of_keys_is_the_error(tmp_path: Path) -> None:
    tiered.extract("enc", tmp_path)
    remote_path, nowhere, names = str(tmp_path / "remote"), tmp_path / "nowhere.json", tmp_path / "names.json"
    with pytest.raises(FileNotFoundError, match=rf"^encryptionKeys names {nowhere}, which does not exist$"):
        rows(path=remote_path, encryptionKeys=str(nowhere))
    known = json.loads(Path(options_of(tmp_path)["encryptionKeys"]).read_text())
    names.write_text(json.dumps(dict.fromkeys(known, "nowhere.pem")))
    with pytest.raises(
        FileNotFoundError,
        match=rf"^encryptionKeys {names} names for the key .* the PEM file {tmp_path}/nowhere.pem, which does not exist",
    ):
        rows(path=remote_path, encryptionKeys=str(names))


def test_a_missing_path_names_its_option(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"remotePath: path .*nowhere does not exist"):
        rows(path=str(sparkwire.samples() / "kafka" / "orders-0"), remotePath=f"{tmp_path}/nowhere")
    with pytest.raises(FileNotFoundError, match=r"sourcePath: path .*nowhere does not exist"):
        log.write(tmp_path / "target", log.some_rows(1), sourcePath=f"{tmp_path}/nowhere")
    assert list(tmp_path.iterdir()) == []
