"""A cluster's metadata: the log, replayed up to a snapshot's offset, equals the snapshot."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sparkwire.kafka.cluster.metadata import HIDDEN, ClusterState, MetadataChange
from sparkwire.kafka.write.check import cluster_state
from tests.support import kafka_tiered as tiered
from tests.support.oracles import kafka as oracle

Table = list[dict[str, Any]]
LOGS = [
    (run, local)
    for run in tiered.RUNS
    for local in (("local",) if run != "lineage" else ("local-1", "local-2", "local-3"))
]


def tables(state: ClusterState) -> dict[str, Table]:
    return {name: getattr(state, name)() for name in dir(state) if name.endswith("_rows")}


def changes(run: str, local: str, file: str) -> list[tuple[int, MetadataChange]]:
    """Offset and change of each data record of a log or a snapshot."""
    return [
        (offset, MetadataChange(row["type"], json.loads(row["value"])))
        for offset, row in tiered.decoded_metadata(run, local, file)
        if row["value"] is not None
    ]


@pytest.mark.parametrize(("run", "local"), LOGS)
def test_the_log_up_to_a_snapshot_equals_the_snapshot(run: str, local: str) -> None:
    files = tiered.metadata_files(run, local)
    logs = [change for file in files if file.endswith(".log") for change in changes(run, local, file)]
    compared = 0
    for file in files:
        name = re.match(r"(\d{20})-(\d{10})\.checkpoint", file)
        if name is None or int(name[1]) == 0 or not logs or logs[0][0] > 5:
            continue
        replayed = ClusterState().apply(change for offset, change in logs if offset < int(name[1]))
        said = ClusterState().apply(change for _, change in changes(run, local, file))
        for brokers in (replayed.brokers, said.brokers):
            for broker in brokers.values():
                broker["broker_epoch"] = 0  # broker epochs are not compared
        assert tables(replayed) == tables(said), file
        compared += 1
    assert compared or run in ("local", "lineage")


def test_tables_of_the_cluster() -> None:
    state = ClusterState().apply(
        change
        for file in tiered.metadata_files("plain", "local")
        if file.endswith(".log")
        for _, change in changes("plain", "local", file)
    )
    offsets = json.loads(tiered.run_files("plain")["truth/offsets.json"])
    topics = {row["topic"]: row["topic_id"] for row in state.topic_rows()}
    assert {(line["topic"], line["topic_id"]) for line in offsets} <= set(topics.items())
    assert "gone" not in topics
    assert {(line["topic"], line["partition"]) for line in offsets} <= {
        (row["topic"], row["partition"]) for row in state.partition_rows()
    }
    assert {row["leader"] for row in state.partition_rows()} == {-1}  # the only broker had a clean shutdown
    assert {row["mechanism"] for row in state.user_rows()} <= {"SCRAM-SHA-256", "SCRAM-SHA-512"}
    assert state.acl_rows()
    assert all(set(row) == {"user", "mechanism", "iterations"} for row in state.user_rows())
    assert {row["feature"]: row["level"] for row in state.feature_rows()}["metadata.version"] == 21


def test_records_of_a_transaction_apply_together_or_not_at_all() -> None:
    def topic(name: str) -> MetadataChange:
        return MetadataChange("TopicRecord", {"name": name, "topicId": name})

    begin, end = MetadataChange("BeginTransactionRecord", {"name": None}), MetadataChange("EndTransactionRecord", {})
    abort = MetadataChange("AbortTransactionRecord", {"reason": None})
    some = [begin, topic("a"), end, begin, topic("b"), abort, topic("c"), begin, topic("d")]
    assert [row["topic"] for row in ClusterState().apply(some).topic_rows()] == ["a", "c"]


BROKER, TOPIC, LOGGER = 4, 2, 8
SECRETS = [
    (BROKER, "ssl.keystore.password"),
    (BROKER, "listener.name.sasl.scram-sha-256.sasl.jaas.config"),
    (BROKER, "ssl.keystore.key"),
    (BROKER, "my.secret"),
    (BROKER, "rsm.config.storage.azure.account.key"),
    (BROKER, "rsm.config.storage.gcs.credentials.json"),
    (BROKER, "bearer.auth.token"),
    (BROKER, "confluent.license"),
    (BROKER, "listener.name.internal.any.plugin"),
    (TOPIC, "a.plugin.of.somebody"),
    (99, "retention.ms"),
]
SHOWN = [
    (BROKER, "log.retention.ms"),
    (BROKER, "ssl.keystore.location"),
    (BROKER, "listener.name.internal.ssl.keystore.location"),
    (BROKER, "listener.name.internal.scram-sha-256.sasl.login.class"),
    (BROKER, "leader.replication.throttled.rate"),
    (TOPIC, "retention.ms"),
    (TOPIC, "remote.storage.enable"),
    (LOGGER, "kafka.controller"),
]


def test_only_values_that_are_no_secret_are_shown() -> None:
    state = ClusterState().apply(
        MetadataChange("ConfigRecord", {"resourceType": type, "resourceName": "1", "name": name, "value": "hunter2"})
        for type, name in (*SECRETS, *SHOWN)
    )
    rows = {row["name"] for row in state.config_rows() if row["value"] == "hunter2"}
    assert rows == {name for _, name in SHOWN}
    hidden = {(row["resource_type"], row["name"]) for row in state.config_rows() if row["value"] == HIDDEN}
    assert {name for _, name in hidden} == {name for _, name in SECRETS}


def test_a_change_has_only_the_changed_fields() -> None:
    partition = {
        "partitionId": 0, "topicId": "t", "replicas": [1, 2, 3], "isr": [1, 2, 3], "removingReplicas": [], "addingReplicas": [],
        "leader": 1, "leaderEpoch": 4, "partitionEpoch": 7, "eligibleLeaderReplicas": [2], "lastKnownElr": [3],
    }  # fmt: skip
    place = {"partitionId": 0, "topicId": "t"}
    state = ClusterState().apply(
        [
            MetadataChange("TopicRecord", {"name": "orders", "topicId": "t"}),
            MetadataChange("PartitionRecord", partition),
            MetadataChange("PartitionChangeRecord", place | {"isr": [2, 3], "leader": 2}),
            MetadataChange("PartitionChangeRecord", place | {"leader": -2, "isr": None}),
            MetadataChange("PartitionChangeRecord", place | {"leader": -1, "isr": []}),
        ]
    )
    (row,) = state.partition_rows()
    assert (row["leader"], row["leader_epoch"], row["isr"], row["partition_epoch"]) == (-1, 6, [], 10)
    state.apply([MetadataChange("ClearElrRecord", {"topicName": "orders"})])
    assert state.partition_rows()[0]["eligible_leader_replicas"] == []


@pytest.mark.parametrize("byte", [b"\0", b"\x7f"])
def test_the_log_ends_at_unreadable_bytes(byte: bytes, tmp_path: Path) -> None:
    """A broker truncates the log there, so that valid batches after them do not count."""
    data = tiered.run_files("plain")[f"local/__cluster_metadata-0/{0:020}.log"]
    corrupt = next(batch for batch in oracle.batches(data) if batch["base_offset"] > 60)
    begin, size = corrupt["position"], corrupt["size"]
    log = tmp_path / f"__cluster_metadata-0/{0:020}.log"
    log.parent.mkdir()
    log.write_bytes(data[:begin])
    before = cluster_state(str(tmp_path))
    log.write_bytes(data[:begin] + byte * size + data[begin + size :])
    after = cluster_state(str(tmp_path))
    assert before is not None
    assert after is not None
    assert tables(after) == tables(before)
    assert before.topics
