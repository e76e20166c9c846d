"""The tables of a cluster, with the descriptions of their columns.

Source: apache/kafka, `metadata/src/main/resources/common/metadata`, `OffsetCommitValue.json`, `TransactionLogValue.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from sparkwire.base.sqltype import sql_string


class TableColumn(NamedTuple):
    """A column of a table."""

    name: str
    type: str
    """type in SQL"""
    doc: str


class ClusterTable(NamedTuple):
    """A table of `sparkwire.kafka.cluster`."""

    doc: str
    """description of a row"""
    columns: tuple[TableColumn, ...]

    def ddl(self) -> str:
        """The columns as Spark declares them, with comments."""
        return ", ".join(f"{column.name} {column.type} COMMENT {sql_string(column.doc)}" for column in self.columns)


def _table(doc: str, *columns: tuple[str, str, str]) -> ClusterTable:
    return ClusterTable(doc, tuple(TableColumn(*column) for column in columns))


TABLES: Final[Mapping[str, ClusterTable]] = {
    "brokers": _table(
        "A registered broker.",
        ("broker_id", "INT", "Id of the broker: its `node.id`."),
        ("rack", "STRING", "Rack of the broker; NULL if it has none."),
        ("fenced", "BOOLEAN", "Whether the controller has fenced the broker, so that it leads no partition."),
        (
            "listeners",
            "ARRAY<STRUCT<name STRING, host STRING, port INT, security_protocol STRING>>",
            "Addresses at which clients and other brokers reach the broker, by the name of the listener.",
        ),
        ("in_controlled_shutdown", "BOOLEAN", "Whether the broker is shutting down and moves its partitions to others."),
        ("broker_epoch", "BIGINT", "Epoch of the registration: the offset of its metadata record."),
        ("incarnation_id", "STRING", "Id of the broker's process; it changes with each start."),
        ("log_dirs", "ARRAY<STRING>", "Ids of the directories in `log.dirs`; empty before Kafka 3.7."),
    ),
    "topics": _table(
        "A topic.",
        ("topic", "STRING", "Name of the topic."),
        ("topic_id", "STRING", "Id of the topic, as in `partition.metadata`: a new topic of the same name has another id."),
        ("partitions", "INT", "Number of partitions."),
    ),
    "partitions": _table(
        "A partition of a topic.",
        ("topic", "STRING", "Name of the topic."),
        ("topic_id", "STRING", "Id of the topic."),
        ("partition", "INT", "Number of the partition."),
        ("leader", "INT", "Broker id of the leader; -1 if there is none."),
        ("leader_epoch", "INT", "Number of the leader's term; each election adds one."),
        ("replicas", "ARRAY<INT>", "Broker ids of the replicas, the preferred leader first."),
        ("isr", "ARRAY<INT>", "Broker ids of the in-sync replicas."),
        ("adding_replicas", "ARRAY<INT>", "Broker ids that a reassignment in progress adds."),
        ("removing_replicas", "ARRAY<INT>", "Broker ids that a reassignment in progress removes."),
        ("partition_epoch", "INT", "Number of changes to this row's metadata."),
        ("leader_recovery_state", "INT", "1 while the leader recovers from an unclean election, else 0."),
        ("directories", "ARRAY<STRING>", "Id of the directory of each replica, in their order; empty before Kafka 3.7."),
        (
            "eligible_leader_replicas",
            "ARRAY<INT>",
            "Broker ids outside the ISR that have every committed record and may lead (KIP-966).",
        ),
        ("last_known_elr", "ARRAY<INT>", "Eligible leader replicas that had an unclean shutdown (KIP-966)."),
    ),
    "configs": _table(
        "A configuration that differs from its default.",
        ("resource_type", "STRING", "Kind of resource: TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS or GROUP."),
        ("resource", "STRING", "Name of the topic or group, or the broker's id; empty for the default of all brokers."),
        ("name", "STRING", "Name of the configuration."),
        ("value", "STRING", "Value; `[hidden]` unless Kafka defines the name and does not mark it as a secret."),
    ),
    "acls": _table(
        "An access rule.",
        ("principal", "STRING", "Principal of the rule, such as `User:alice`; `User:*` is everyone."),
        ("host", "STRING", "Address of the client; `*` is any."),
        ("operation", "STRING", "Operation: READ, WRITE, CREATE, DESCRIBE, ALTER, …; ALL is each of them."),
        ("permission", "STRING", "ALLOW or DENY; DENY takes precedence."),
        ("resource_type", "STRING", "TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN or USER."),
        ("resource", "STRING", "Name of the resource, or its prefix; `*` is any."),
        ("pattern_type", "STRING", "LITERAL, or PREFIXED for every resource whose name begins with this text."),
    ),
    "users": _table(
        "A SCRAM user, without secrets.",
        ("user", "STRING", "Name of the user."),
        ("mechanism", "STRING", "SCRAM-SHA-256 or SCRAM-SHA-512."),
        ("iterations", "INT", "Number of iterations of the password's hash."),
    ),
    "quotas": _table(
        "A quota of clients.",
        ("entity", "MAP<STRING, STRING>", "Limited clients: user, client-id or ip, and the name; NULL for the default."),
        ("quota", "STRING", "Kind of limit, such as `producer_byte_rate` [bytes per second]."),
        ("value", "DOUBLE", "The limit, in the unit of the quota."),
    ),
    "features": _table(
        "A feature of the cluster with its version.",
        ("feature", "STRING", "Name of the feature, such as `metadata.version`."),
        ("level", "INT", "The version that is in use."),
    ),
    "groups": _table(
        "A committed offset of a group in a partition.",
        ("group", "STRING", "Id of the consumer group."),
        ("topic", "STRING", "Name of the topic."),
        ("partition", "INT", "Number of the partition."),
        ("committed_offset", "BIGINT", "Offset of the next record that the group reads."),
        ("end_offset", "BIGINT", "End of the log in the given directories and bucket, exclusive; NULL without segments."),
        ("lag", "BIGINT", "Number of offsets from the committed one to the end; NULL without an end."),
        ("committed_at", "TIMESTAMP", "Time of the commit."),
    ),
    "transactions": _table(
        "A transactional id and its last transaction.",
        ("transactional_id", "STRING", "The producer's `transactional.id`."),
        ("producer_id", "BIGINT", "Producer id of the transactional id."),
        ("producer_epoch", "SMALLINT", "Epoch of the producer; a new epoch fences earlier producers."),
        ("state", "STRING", "State of the last transaction, such as `Ongoing`, `CompleteCommit` or `CompleteAbort`."),
    ),
    "segments": _table(
        "A segment, from the headers of its batches.",
        ("topic", "STRING", "Name of the topic."),
        ("partition", "INT", "Number of the partition."),
        ("tier", "STRING", "`local` on a disk, `remote` in the bucket of tiered storage."),
        ("base_offset", "BIGINT", "Offset of the first record."),
        ("next_offset", "BIGINT", "Offset after the last record."),
        ("bytes", "BIGINT", "Size of all batches [bytes]."),
        (
            "first_timestamp",
            "TIMESTAMP",
            "Earliest base timestamp of a batch, or append time. Batches with a delete horizon have none.",
        ),
        ("last_timestamp", "TIMESTAMP", "Latest timestamp of a record; NULL if TIMESTAMP cannot hold it."),
        ("file", "STRING", "Path of the segment."),
    ),
}  # fmt: skip
"""all tables, in the order of the documentation"""
