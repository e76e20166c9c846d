"""Build the state of a cluster from the records of its metadata: it applies a snapshot and the log after it, record by record.

    LOGDIR/__cluster_metadata-0/00000000000000000209-0000000002.checkpoint     the state before offset 209
                                00000000000000000166.log                       the changes

A change record of a partition has only the changed fields. A new leader begins a new leader epoch; every change begins a new
partition epoch. Records between `BeginTransactionRecord` and `EndTransactionRecord` apply together or not at all. It does not
keep secrets: neither salts and keys of users, nor values of configurations, unless Kafka's definitions mark a configuration as
public.

Source: apache/kafka, `metadata/src/main/java/org/apache/kafka/image`, `PartitionRegistration.merge`; KIP-868.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

Record = dict[str, Any]
Row = dict[str, Any]
Apply = Callable[["ClusterState", Record], None]

NO_LEADER_CHANGE: Final = -2
HIDDEN: Final = "[hidden]"
_OF_LISTENER: Final = re.compile(r"listener\.name\.[^.]+\.(?:[^.]+\.(?=sasl\.|connections\.max\.reauth))?")

CONFIG_TYPES: Final = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
RESOURCE_TYPES: Final = {
    2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 5: "TRANSACTIONAL_ID", 6: "DELEGATION_TOKEN", 7: "USER",
}  # fmt: skip
PATTERN_TYPES: Final = {3: "LITERAL", 4: "PREFIXED"}
OPERATIONS: Final = {
    2: "ALL", 3: "READ", 4: "WRITE", 5: "CREATE", 6: "DELETE", 7: "ALTER", 8: "DESCRIBE", 9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS", 11: "ALTER_CONFIGS", 12: "IDEMPOTENT_WRITE", 13: "CREATE_TOKENS", 14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}  # fmt: skip
PERMISSIONS: Final = {2: "DENY", 3: "ALLOW"}
MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
PROTOCOLS: Final = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}


class MetadataChange(NamedTuple):
    """A record of the metadata: the message's name, and its fields as in Kafka's JSON."""

    type: str
    record: Record


def named(names: dict[int, str], number: int) -> str:
    """The name of a number; an unknown number becomes its digits."""
    return names.get(number, str(number))


@cache
def _shown() -> dict[str, frozenset[str]]:
    """By type of resource, the configurations that are not secret."""
    text = (files(__package__) / "configs.json").read_text(encoding="utf-8")
    return {kind: frozenset(names) for kind, names in json.loads(text).items()}


def is_shown(type: int, name: str) -> bool:
    """Whether a configuration's value may be shown: Kafka defines the name and does not mark it as a secret."""
    kind = CONFIG_TYPES.get(type, "")
    if kind == "BROKER_LOGGER":
        return True  # levels of loggers, which may have any name
    return (_OF_LISTENER.sub("", name, count=1) if kind == "BROKER" else name) in _shown().get(kind, ())


class ClusterState:
    """A cluster's metadata."""

    def __init__(self) -> None:
        self.brokers: dict[int, Row] = {}
        self.topics: dict[str, str] = {}
        """names by id"""
        self.partitions: dict[tuple[str, int], Row] = {}
        self.configs: dict[tuple[int, str, str], str] = {}
        self.acls: dict[str, Row] = {}
        self.users: dict[tuple[str, int], Row] = {}
        self.quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}
        self.features: dict[str, int] = {}

    def apply(self, changes: Iterable[MetadataChange]) -> ClusterState:
        """Apply records in order. Records of a transaction apply when it ends, but not if it aborts or never ends."""
        held: list[MetadataChange] | None = None
        for change in changes:
            if change.type == "BeginTransactionRecord":
                held = []
            elif change.type in ("EndTransactionRecord", "AbortTransactionRecord"):
                if change.type == "EndTransactionRecord":
                    self._all(held or ())
                held = None
            elif held is not None:
                held.append(change)
            else:
                self._all((change,))
        return self

    def _all(self, changes: Iterable[MetadataChange]) -> None:
        for type, record in changes:
            apply = _APPLY.get(type)
            if apply is not None:
                apply(self, record)

    # -- tables

    def broker_rows(self) -> list[Row]:
        return [self.brokers[key] for key in sorted(self.brokers)]

    def topic_rows(self) -> list[Row]:
        counts: dict[str, int] = {}
        for topic_id, _ in self.partitions:
            counts[topic_id] = counts.get(topic_id, 0) + 1
        rows = [{"topic": name, "topic_id": id, "partitions": counts.get(id, 0)} for id, name in self.topics.items()]
        return sorted(rows, key=lambda row: str(row["topic"]))

    def partition_rows(self) -> list[Row]:
        rows = [
            {"topic": self.topics.get(id), "topic_id": id, "partition": number, **row}
            for (id, number), row in self.partitions.items()
        ]
        return sorted(rows, key=lambda row: (str(row["topic"]), row["partition"]))

    def config_rows(self) -> list[Row]:
        return [
            {
                "resource_type": named(CONFIG_TYPES, type),
                "resource": resource,
                "name": name,
                "value": value if is_shown(type, name) else HIDDEN,
            }
            for (type, resource, name), value in sorted(self.configs.items())
        ]

    def acl_rows(self) -> list[Row]:
        return sorted(self.acls.values(), key=lambda row: [str(value) for value in row.values()])

    def user_rows(self) -> list[Row]:
        return [self.users[key] for key in sorted(self.users)]

    def quota_rows(self) -> list[Row]:
        return [
            {"entity": dict(entity), "quota": quota, "value": value}
            for entity, quotas in sorted(self.quotas.items(), key=lambda item: str(item[0]))
            for quota, value in sorted(quotas.items())
        ]

    def feature_rows(self) -> list[Row]:
        return [{"feature": name, "level": level} for name, level in sorted(self.features.items())]


# -- records


def _register_broker(state: ClusterState, record: Record) -> None:
    state.brokers[record["brokerId"]] = {
        "broker_id": record["brokerId"],
        "rack": record["rack"],
        "fenced": record["fenced"],
        "listeners": [
            {
                "name": end["name"],
                "host": end["host"],
                "port": end["port"],
                "security_protocol": named(PROTOCOLS, end["securityProtocol"]),
            }
            for end in sorted(record["endPoints"], key=lambda end: str(end["name"]))
        ],
        "in_controlled_shutdown": record.get("inControlledShutdown", False),
        "broker_epoch": record["brokerEpoch"],
        "incarnation_id": record["incarnationId"],
        "log_dirs": record.get("logDirs", []),
    }


def _change_broker(state: ClusterState, record: Record) -> None:
    broker = state.brokers.get(record["brokerId"])
    if broker is None:
        return
    if record.get("fenced", 0):
        broker["fenced"] = record["fenced"] > 0
    if record.get("inControlledShutdown", 0):
        broker["in_controlled_shutdown"] = record["inControlledShutdown"] > 0
    if record.get("logDirs"):
        broker["log_dirs"] = record["logDirs"]


def _fence(fenced: bool) -> Apply:
    def apply(state: ClusterState, record: Record) -> None:
        if record["id"] in state.brokers:
            state.brokers[record["id"]]["fenced"] = fenced

    return apply


def _add_topic(state: ClusterState, record: Record) -> None:
    state.topics[record["topicId"]] = record["name"]


def _remove_topic(state: ClusterState, record: Record) -> None:
    name = state.topics.pop(record["topicId"], None)
    for key in [key for key in state.partitions if key[0] == record["topicId"]]:
        del state.partitions[key]
    topic = next(number for number, type in CONFIG_TYPES.items() if type == "TOPIC")
    for config in [config for config in state.configs if config[:2] == (topic, name)]:
        del state.configs[config]


def _add_partition(state: ClusterState, record: Record) -> None:
    state.partitions[record["topicId"], record["partitionId"]] = {
        "leader": record["leader"],
        "leader_epoch": record["leaderEpoch"],
        "replicas": record["replicas"],
        "isr": record["isr"],
        "adding_replicas": record["addingReplicas"],
        "removing_replicas": record["removingReplicas"],
        "partition_epoch": record["partitionEpoch"],
        "leader_recovery_state": record.get("leaderRecoveryState", 0),
        "directories": record.get("directories", []),
        "eligible_leader_replicas": record.get("eligibleLeaderReplicas") or [],
        "last_known_elr": record.get("lastKnownElr") or [],
    }


_CHANGED: Final = {
    "isr": "isr",
    "replicas": "replicas",
    "removingReplicas": "removing_replicas",
    "addingReplicas": "adding_replicas",
    "directories": "directories",
    "eligibleLeaderReplicas": "eligible_leader_replicas",
    "lastKnownElr": "last_known_elr",
}


def _change_partition(state: ClusterState, record: Record) -> None:
    partition = state.partitions.get((record["topicId"], record["partitionId"]))
    if partition is None:
        return
    for field, column in _CHANGED.items():
        if record.get(field) is not None:
            partition[column] = record[field]
    if record.get("leader", NO_LEADER_CHANGE) != NO_LEADER_CHANGE:
        partition["leader"] = record["leader"]
        partition["leader_epoch"] += 1
    if record.get("leaderRecoveryState", -1) >= 0:
        partition["leader_recovery_state"] = record["leaderRecoveryState"]
    partition["partition_epoch"] += 1


def _clear_elr(state: ClusterState, record: Record) -> None:
    for (topic_id, _), partition in state.partitions.items():
        if record["topicName"] in ("", state.topics.get(topic_id)):
            partition["eligible_leader_replicas"], partition["last_known_elr"] = [], []


def _set_config(state: ClusterState, record: Record) -> None:
    key = record["resourceType"], record["resourceName"], record["name"]
    if record["value"] is None:
        state.configs.pop(key, None)
    else:
        state.configs[key] = record["value"]


def _add_acl(state: ClusterState, record: Record) -> None:
    state.acls[record["id"]] = {
        "principal": record["principal"],
        "host": record["host"],
        "operation": named(OPERATIONS, record["operation"]),
        "permission": named(PERMISSIONS, record["permissionType"]),
        "resource_type": named(RESOURCE_TYPES, record["resourceType"]),
        "resource": record["resourceName"],
        "pattern_type": named(PATTERN_TYPES, record["patternType"]),
    }


def _add_user(state: ClusterState, record: Record) -> None:
    state.users[record["name"], record["mechanism"]] = {
        "user": record["name"],
        "mechanism": named(MECHANISMS, record["mechanism"]),
        "iterations": record["iterations"],
    }


def _set_quota(state: ClusterState, record: Record) -> None:
    entity = tuple(sorted((part["entityType"], part["entityName"]) for part in record["entity"]))
    quotas = state.quotas.setdefault(entity, {})
    if record["remove"]:
        quotas.pop(record["key"], None)
    else:
        quotas[record["key"]] = float(record["value"])
    if not quotas:
        del state.quotas[entity]


def _set_feature(state: ClusterState, record: Record) -> None:
    if record["featureLevel"]:
        state.features[record["name"]] = record["featureLevel"]
    else:
        state.features.pop(record["name"], None)


_APPLY: Final[dict[str, Apply]] = {
    "RegisterBrokerRecord": _register_broker,
    "UnregisterBrokerRecord": lambda state, record: void(state.brokers.pop(record["brokerId"], None)),
    "BrokerRegistrationChangeRecord": _change_broker,
    "FenceBrokerRecord": _fence(True),
    "UnfenceBrokerRecord": _fence(False),
    "TopicRecord": _add_topic,
    "RemoveTopicRecord": _remove_topic,
    "PartitionRecord": _add_partition,
    "PartitionChangeRecord": _change_partition,
    "ClearElrRecord": _clear_elr,
    "ConfigRecord": _set_config,
    "AccessControlEntryRecord": _add_acl,
    "RemoveAccessControlEntryRecord": lambda state, record: void(state.acls.pop(record["id"], None)),
    "UserScramCredentialRecord": _add_user,
    "RemoveUserScramCredentialRecord": lambda state, record: void(
        state.users.pop((record["name"], record["mechanism"]), None)
    ),
    "ClientQuotaRecord": _set_quota,
    "FeatureLevelRecord": _set_feature,
    "RemoveFeatureLevelRecord": lambda state, record: void(state.features.pop(record["name"], None)),
}


def void(_: object) -> None:
    """Ignore the result of a removal."""
