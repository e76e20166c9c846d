"""``sparkwire.kafka.cluster`` over directories of real brokers."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import crc32c
import pytest
from pyspark.sql import SparkSession

import sparkwire
from sparkwire.kafka.cluster.tables import TABLES
from sparkwire.spark.kafka_cluster import Cluster
from tests.support import kafka_cases as golden
from tests.support import kafka_tiered as tiered
from tests.support import log_files
from tests.support.log_files import CREATED
from tests.support.oracles import kafka as oracle

TRANSACTIONAL, MARKER, LOG_APPEND_TIME, DELETE_HORIZON = 0x10, 0x30, 0x08, 0x40
ABORT, COMMIT = 0, 1


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster")
    tiered.extract("plain", folder)
    return folder


def test_topics_partitions_and_the_rest(spark: SparkSession, run: Path) -> None:
    here = sparkwire.kafka.cluster(spark, str(run / "local"))
    known = json.loads((run / "truth/offsets.json").read_text())
    ids = {(row.topic, row.topic_id) for row in here.topics.collect()}
    assert {(line["topic"], line["topic_id"]) for line in known} <= ids
    partitions = {(row.topic, row.partition): row for row in here.partitions.collect()}
    assert {(line["topic"], line["partition"]) for line in known} <= set(partitions)
    assert {tuple(row.replicas) for row in partitions.values()} == {(1,)}
    assert here.partitions.columns[:8] == [
        "topic", "topic_id", "partition", "leader", "leader_epoch", "replicas", "isr", "adding_replicas",
    ]  # fmt: skip
    (broker,) = here.brokers.collect()
    assert [listener.security_protocol for listener in broker.listeners] == ["PLAINTEXT", "SASL_PLAINTEXT"]
    assert here.acls.columns == [
        "principal", "host", "operation", "permission", "resource_type", "resource", "pattern_type",
    ]  # fmt: skip
    assert here.acls.where("permission IN ('ALLOW', 'DENY')").count() == here.acls.count() > 5
    assert here.quotas.selectExpr("map_keys(entity)", "quota", "value").count() > 0
    assert here.users.columns == ["user", "mechanism", "iterations"]
    assert here.configs.where("resource = 'orders' AND name = 'segment.bytes'").collect()[0].value == "49152"
    assert here.features.where("feature = 'metadata.version'").collect()[0].level == 21


def test_as_of_an_offset_and_a_time(spark: SparkSession, run: Path) -> None:
    lines = [
        json.loads(line)
        for path in sorted((run / "truth/metadata").glob("*.log.jsonl"))
        for line in path.read_text().splitlines()
    ]
    topics = [line for line in lines if line.get("type") == "TOPIC_RECORD"]
    removals = [line for line in lines if line.get("type") == "REMOVE_TOPIC_RECORD"]
    for line in (topics[2], topics[-1]):
        removed = {other["record"]["topicId"] for other in removals if other["offset"] <= line["offset"]}
        before = [other["record"] for other in topics if other["offset"] <= line["offset"]]
        expected = {record["name"] for record in before if record["topicId"] not in removed}
        at = sparkwire.kafka.cluster(spark, str(run / "local"), at=line["offset"])
        assert {row.topic for row in at.topics.collect()} == expected
    when = datetime.fromtimestamp(topics[3]["timestamp"] / 1000, UTC)
    then = sparkwire.kafka.cluster(spark, str(run / "local"), at=when)
    names = {other["record"]["name"] for other in topics if other["timestamp"] <= topics[3]["timestamp"]}
    assert {row.topic for row in then.topics.collect()} == names


def test_a_wrong_option(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match=r"^cluster takes the options remotePath, encryptionKeys, got remote_path$"):
        sparkwire.kafka.cluster(spark, "/var/kafka", remote_path="/bucket")  # type: ignore[call-arg]


def test_segments_of_both_tiers_and_transactions(spark: SparkSession, run: Path) -> None:
    here = sparkwire.kafka.cluster(spark, str(run / "local"), remotePath=str(run / "remote"))
    ends = {
        (row.topic, row.partition): (row.first, row.end)
        for row in here.segments.groupBy("topic", "partition")
        .agg({"base_offset": "min", "next_offset": "max"})
        .toDF("topic", "partition", "first", "end")
        .collect()
    }
    for line in json.loads((run / "truth/offsets.json").read_text()):
        _, end = ends[line["topic"], line["partition"]]
        assert end == line["high_watermark"], line
    assert {row.tier for row in here.segments.select("tier").distinct().collect()} == {"local", "remote"}
    states = {row.transactional_id: row.state for row in here.transactions.collect()}
    assert states
    assert set(states.values()) <= {
        "Ongoing",
        "CompleteCommit",
        "CompleteAbort",
        "Empty",
        "PrepareCommit",
        "PrepareAbort",
    }
    assert here.groups.count() == 0


def test_groups_and_their_lag(spark: SparkSession, run: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "local/__cluster_metadata-0", tmp_path / "__cluster_metadata-0")
    shutil.copytree(run / "local/orders-0", tmp_path / "orders-0")
    (log,) = (log for log in golden.logs(("segments_other",)) if log.name.startswith("consumer_offsets/"))
    (tmp_path / "__consumer_offsets-0").mkdir()
    (tmp_path / "__consumer_offsets-0" / Path(log.name).name).write_bytes(log.data)
    groups = sparkwire.kafka.cluster(spark, str(tmp_path)).groups
    assert groups.columns == ["group", "topic", "partition", "committed_offset", "end_offset", "lag", "committed_at"]
    rows = groups.collect()
    assert rows
    of_orders = [row for row in rows if (row.topic, row.partition) == ("orders", 0)]
    assert {(row.end_offset, row.lag) for row in of_orders} == {
        (695, max(0, 695 - row.committed_offset)) for row in of_orders
    }
    assert all(row.end_offset is row.lag is None for row in rows if row.topic != "orders")


def batch(
    base: int,
    key: bytes,
    value: bytes,
    attributes: int = 0,
    producer: int = -1,
    times: tuple[int, int] = (CREATED, CREATED),
) -> bytes:
    """A record batch with one record, of short key and value; ``times`` are its base timestamp and its largest one."""
    body = b"".join([b"\0\0\0", bytes([2 * len(key)]), key, bytes([2 * len(value)]), value, b"\0"])
    covered = struct.pack(">hiqqqhii", attributes, 0, *times, producer, 0 if producer >= 0 else -1, -1, 1)
    covered += varint(len(body)) + body
    return struct.pack(">qiibI", base, 9 + len(covered), 0, 2, crc32c.crc32c(covered)) + covered


def varint(size: int) -> bytes:
    return bytes([2 * size]) if size < 64 else bytes([2 * size & 127 | 128, 2 * size >> 7])


def commit(base: int, group: str, offset: int, producer: int = -1) -> bytes:
    """A commit of a group for ``orders-0``, in a transaction if it has a producer."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in (group, "orders"))
    key, value = struct.pack(">h", 1) + names + bytes(4), struct.pack(">hqihq", 3, offset, -1, 0, CREATED)
    return batch(base, key, value, TRANSACTIONAL if producer >= 0 else 0, producer)


def marker(base: int, kind: int, producer: int) -> bytes:
    return batch(base, struct.pack(">hh", 0, kind), bytes(6), MARKER, producer)


def test_commits_of_aborted_and_open_transactions_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    """Like a coordinator that loads the topic. An open transaction hides no commits of other groups."""
    first = [commit(0, "plain", 50), commit(1, "once", 40, 7), marker(2, COMMIT, 7), commit(3, "once", 90, 7)]
    second = [
        marker(4, ABORT, 7), commit(5, "open", 30), commit(6, "open", 95, 8), commit(7, "plain", 60),
        commit(8, "after", 70, 9), marker(9, COMMIT, 9), commit(10, "never", 10, 7),
    ]  # fmt: skip
    for base, entries in ((0, first), (4, second)):
        log_files.segment(tmp_path / "__consumer_offsets-0", base, entries)
    log_files.segment(tmp_path / "orders-0", 0, log_files.entries(0, 100, size=10))
    rows = sparkwire.kafka.cluster(spark, str(tmp_path)).groups.collect()
    assert {row.group: (row.committed_offset, row.lag) for row in rows} == {
        "plain": (60, 40),
        "once": (40, 60),
        "open": (30, 70),
        "after": (70, 30),
    }


def test_segments_of_unusual_batches(spark: SparkSession, tmp_path: Path) -> None:
    """A batch with a delete horizon, with log append time, with times beyond TIMESTAMP; a torn batch at the end."""
    whole, torn = log_files.entries(0, 2)
    logs: dict[str, Iterable[bytes]] = {
        "compacted": [batch(0, b"k", b"", DELETE_HORIZON, times=(CREATED + 86_400_000, CREATED))],
        "appended": [batch(0, b"k", b"", LOG_APPEND_TIME, times=(0, CREATED))],
        "micros": [batch(0, b"k", b"", times=(1000 * CREATED, 1000 * CREATED))],
        "nanos": [batch(0, b"k", b"", times=(10**6 * CREATED, 10**6 * CREATED))],
        "torn": [whole, torn[:-1]],
    }
    for topic, entries in logs.items():
        log_files.segment(tmp_path / f"{topic}-0", 0, entries)
    segments = sparkwire.kafka.cluster(spark, str(tmp_path)).segments
    times = segments.selectExpr("topic", "next_offset", "unix_millis(first_timestamp)", "unix_millis(last_timestamp)")
    assert {row[0]: tuple(row[1:]) for row in times.collect()} == {
        "compacted": (1, None, CREATED),
        "appended": (1, CREATED, CREATED),
        "micros": (1, None, None),
        "nanos": (1, None, None),
        "torn": (1, CREATED, CREATED),
    }


def test_a_snapshot_without_a_footer_is_ignored(spark: SparkSession, run: Path, tmp_path: Path) -> None:
    """If the newest snapshot is truncated, an older one and the log are used. Without the log, there is a clear error."""
    source, target = run / "local/__cluster_metadata-0", tmp_path / "__cluster_metadata-0"
    shutil.copytree(source, target)
    newest = max(target.glob("*.checkpoint"))
    newest.chmod(0o600)
    newest.write_bytes(newest.read_bytes()[:-60])
    whole = sparkwire.kafka.cluster(spark, str(run / "local"))
    cut = sparkwire.kafka.cluster(spark, str(tmp_path))
    assert cut.partitions.collect() == whole.partitions.collect()
    for path in [*target.glob("*.checkpoint"), target / f"{0:020}.log"]:
        path.unlink()
    with pytest.raises(ValueError, match="begins at offset 166, and no complete snapshot"):
        _ = sparkwire.kafka.cluster(spark, str(tmp_path)).topics


def test_missing_metadata_give_a_clear_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    with pytest.raises(FileNotFoundError, match=r"has no __cluster_metadata-0: name a directory of log\.dirs"):
        _ = sparkwire.kafka.cluster(spark, str(tmp_path)).topics


def metadata_of(run: Path, folder: Path) -> Path:
    """Copy only the log, up to offset 165. Returns its path."""
    target = folder / "__cluster_metadata-0"
    target.mkdir()
    shutil.copy(run / f"local/__cluster_metadata-0/{0:020}.log", target)
    return target / f"{0:020}.log"


@pytest.mark.parametrize("tail", [bytes(4096), b"\x7f" * 100, "torn"])
def test_a_corrupt_tail_is_dropped_with_a_warning(
    spark: SparkSession, run: Path, tmp_path: Path, tail: bytes | str, caplog: pytest.LogCaptureFixture
) -> None:
    log = metadata_of(run, tmp_path)
    whole = sparkwire.kafka.cluster(spark, str(tmp_path)).partitions.collect()
    assert caplog.text == ""
    data = log.read_bytes()
    log.write_bytes(data + (data[:80] if isinstance(tail, str) else tail))
    assert sparkwire.kafka.cluster(spark, str(tmp_path)).partitions.collect() == whole
    assert f"is unreadable from byte {len(data)} on" in caplog.text


def test_corruption_before_valid_records_is_an_error(spark: SparkSession, run: Path, tmp_path: Path) -> None:
    log = metadata_of(run, tmp_path)
    data = bytearray(log.read_bytes())
    data[80] ^= 1
    log.write_bytes(data)
    with pytest.raises(ValueError, match="cannot be read"):
        _ = sparkwire.kafka.cluster(spark, str(tmp_path)).topics


def test_zeros_before_valid_records_are_an_error(spark: SparkSession, run: Path, tmp_path: Path) -> None:
    log = metadata_of(run, tmp_path)
    second = oracle.batches(log.read_bytes())[1]
    data = bytearray(log.read_bytes())
    data[second["position"] : second["position"] + second["size"]] = bytes(second["size"])
    log.write_bytes(data)
    with pytest.raises(
        ValueError, match=rf"has no records \d+ to \d+: .*cannot be read at byte {second['position']}: BAD"
    ):
        _ = sparkwire.kafka.cluster(spark, str(tmp_path)).topics


def test_missing_records_after_the_snapshot_are_an_error(spark: SparkSession, run: Path, tmp_path: Path) -> None:
    """As in a copy that lacks a segment."""
    log = metadata_of(run, tmp_path)
    data, batches = log.read_bytes(), oracle.batches(log.read_bytes())
    cut, end = (batches[k]["position"] for k in (5, 20))
    log.write_bytes(data[:cut])
    log_files.segment(log.parent, batches[20]["base_offset"], [data[end:]])
    lost = f"has no records {batches[5]['base_offset']} to {batches[20]['base_offset'] - 1}$"
    with pytest.raises(ValueError, match=lost):
        _ = sparkwire.kafka.cluster(spark, str(tmp_path)).topics


@pytest.mark.parametrize(
    "at",
    [-1, 10**6, 2**70, datetime.min, datetime(1960, 1, 1, tzinfo=UTC), datetime(1971, 1, 1, tzinfo=UTC), "now", True],
)
def test_at_out_of_range_gives_a_clear_error(spark: SparkSession, run: Path, tmp_path: Path, at: object) -> None:
    metadata_of(run, tmp_path)
    with pytest.raises(ValueError, match=r"^at "):
        _ = sparkwire.kafka.cluster(spark, str(tmp_path), at=at).topics  # type: ignore[arg-type]


@pytest.mark.parametrize("name", TABLES)
def test_every_column_has_its_comment(name: str, spark: SparkSession, run: Path) -> None:
    """For tables with rows, and for empty ones."""
    documented = [(column.name, column.doc) for column in TABLES[name].columns]
    assert all(doc.endswith(".") for _, doc in documented)
    without_topics = str(run / "local" / "__cluster_metadata-0")
    for path in (str(run / "local"), without_topics):
        table = getattr(sparkwire.kafka.cluster(spark, path), name)
        assert [(field.name, field.metadata.get("comment")) for field in table.schema] == documented


def test_every_table_is_documented() -> None:
    properties = {name for name, one in vars(Cluster).items() if isinstance(one, property | cached_property)}
    assert set(TABLES) == properties - {"_state"}
