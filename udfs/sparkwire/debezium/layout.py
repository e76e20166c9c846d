"""The tables of the Debezium format: the paths of fields in a message, and its operations."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from sparkwire.json.scan import paths

POSITION_FIELDS: Final = (
    "sequence",
    "lsn",
    "file",
    "pos",
    "row",
    "scn",
    "commit_scn",
    "ssn",
    "commit_lsn",
    "change_lsn",
    "event_serial_no",
    "ord",
    "ts_ms",
)
"""fields of ``source`` with the position of a change in its database's log, for all connectors"""
_SOURCE: Final = (
    "connector",
    "db",
    "keyspace",
    "database_id",
    "schema",
    "table",
    "collection",
    "snapshot",
    "ts_us",
    "ts_ns",
    *POSITION_FIELDS,
)
"""fields of ``source`` for all connectors"""

_ENVELOPE: Final = ("op", "before", "after", "source", "transaction", "transaction.id", "ts_ms", "ts_us", "ts_ns")
_NOTICES: Final = (
    "status",
    "id",
    "event_count",
    "data_collections",
    "ddl",
    "tableChanges",
    "databaseName",
    "schemaName",
)
"""fields of messages about transactions and schemas"""
TRANSACTION_FIELDS: Final = ("status", "id", "event_count", "data_collections", "ts_ms", "ts_us", "ts_ns")
HEARTBEAT_FIELDS: Final = ("ts_ms", "ts_us", "ts_ns")

FLATTENED: Final = {
    "op": ("__op",),
    "source.connector": ("__connector", "__source_connector"),
    "source.db": ("__db", "__source_db"),
    "source.schema": ("__schema", "__source_schema"),
    "source.table": ("__table", "__source_table"),
    "source.collection": ("__collection", "__source_collection"),
    "source.snapshot": ("__snapshot", "__source_snapshot"),
    "source.ts_ms": ("__source_ts_ms",),
    "source.ts_us": ("__source_ts_us",),
    "source.ts_ns": ("__source_ts_ns",),
    "source.sequence": ("__sequence", "__source_sequence"),
    "source.lsn": ("__lsn", "__source_lsn"),
    "source.file": ("__file", "__source_file"),
    "source.pos": ("__pos", "__source_pos"),
    "source.row": ("__row", "__source_row"),
    "source.scn": ("__scn", "__source_scn"),
    "source.commit_scn": ("__commit_scn", "__source_commit_scn"),
    "source.commit_lsn": ("__commit_lsn", "__source_commit_lsn"),
    "source.change_lsn": ("__change_lsn", "__source_change_lsn"),
    "source.event_serial_no": ("__event_serial_no", "__source_event_serial_no"),
    "ts_ms": ("__ts_ms",),
    "ts_us": ("__ts_us",),
    "ts_ns": ("__ts_ns",),
    "transaction.id": ("__transaction_id",),
}
"""the names that ``ExtractNewRecordState`` gives to the envelope's fields in its ``add.fields``"""
_ADDED: Final = re.compile(
    r"__(deleted|op|ts_[mun]s|source_\w+|transaction_\w+|" + "|".join(_SOURCE) + "|txId|gtid|name|version)"
)


def is_added(name: str) -> bool:
    """Whether a field of a flattened message was added and is not a column of the table."""
    return _ADDED.fullmatch(name) is not None


ADDED_NAMES: Final = ("__deleted", *dict.fromkeys(name for names in FLATTENED.values() for name in names))

_FIELDS: Final = (
    *_ENVELOPE,
    *(f"source.{field}" for field in _SOURCE),
    *_NOTICES,
    *ADDED_NAMES,
)
_AROUND: Final = ("payload", "schema", "schema.type", "schema.name", "schema.fields")
SLOTS: Final = {field: slot for slot, field in enumerate((*_FIELDS, *_AROUND))}
PLAIN: Final = paths(*_FIELDS, *_AROUND)
"""the paths in a message without an embedded schema"""
WRAPPED: Final = paths(*(f"payload.{field}" for field in _FIELDS), *_AROUND)
"""the paths in a message with ``schema`` and ``payload``; the slots are the same as in `PLAIN`"""


class Operation(NamedTuple):
    """A case-sensitive value of ``op``, and its meaning."""

    op: str
    name: str
    image: str = ""
    """the image that the message must have"""


OPERATIONS: Final = (
    Operation("c", "INSERT", "after"),
    Operation("u", "UPDATE", "after"),
    Operation("d", "DELETE", "before"),
    Operation("r", "READ", "after"),
    Operation("t", "TRUNCATE"),
    Operation("m", "MESSAGE"),
)
OTHER_OPERATIONS: Final = ("UPSERT", "TRANSACTION", "HEARTBEAT", "DDL")
"""operations of messages without an op"""
OPERATION_NAMES: Final = (*(operation.name for operation in OPERATIONS), *OTHER_OPERATIONS)
INSERT, UPDATE, DELETE, READ, TRUNCATE, MESSAGE, UPSERT, TRANSACTION, HEARTBEAT, DDL = range(len(OPERATION_NAMES))

WITHOUT_IMAGES: Final = ("mongodb", "cassandra")
"""connectors that may leave out images"""

UNAVAILABLE: Final = "__debezium_unavailable_value"
"""replaces a value that the database did not provide; ``unavailable.value.placeholder`` of the connector"""
