"""The tables of the Debezium format: the paths of fields in a message, and its operations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from sparkwire.json.scan import Paths, paths

POSITION_FIELDS: Final = (
    "sequence",
    "lsn",
    "file",
    "pos",
    "row",
    "scn",
    "commit_scn",
    "ssn",
    "rs_id",
    "commit_lsn",
    "change_lsn",
    "event_serial_no",
    "ord",
    "commit_ts",
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
    "database_name",
    "schema_name",
    "table_name",
    "value_capture_type",
    "snapshot",
    "ts_us",
    "ts_ns",
    *POSITION_FIELDS,
)
"""fields of ``source`` for all connectors"""

TIMES: Final = ("ts_ms", "ts_us", "ts_ns")
"""fields that envelopes and notices may have, which depends on the version"""
ENVELOPE_FIELDS: Final = ("op", "before", "after", "source", "transaction", *TIMES)
ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    "op": ("op",),
    "after": ("after",),
    "before": ("before",),
    "source": ("source",),
    "database": ("source.db", "source.keyspace", "source.database_id", "source.database_name"),
    "schema": ("source.schema", "source.schema_name"),
    "table": ("source.table", "source.collection", "source.table_name"),
    "time": ("source.ts_ms",),
    "transaction": ("transaction.id",),
}
"""The fields of an envelope by role, as in `changes.systems.System`. The last names are CockroachDB's."""
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
ELSEWHERE: Final = ("_tidb.onlyHandleKey", "_tidb.claimCheckLocation")
"""what TiCDC writes in each of its formats if a row is too large: the message has only its key, or the row is in a file"""
TRANSACTION_FIELDS: Final = ("status", "id", "event_count", "data_collections")
HEARTBEAT_FIELDS: Final = ("ts_ms",)
SCHEMA_FIELDS: Final = ("source", "databaseName", "ddl")
"""the fields that every notice of its kind has"""

_ADDED_OF_SOURCE: Final = (
    "connector",
    "db",
    "schema",
    "table",
    "collection",
    "snapshot",
    *(field for field in POSITION_FIELDS if field not in ("ord", "ts_ms")),
)
"""fields of ``source`` that a flattened row may have, under one of two names"""
FLATTENED: Final = {
    "op": ("__op",),
    "transaction.id": ("__transaction_id",),
    **{f"source.{field}": (f"__{field}", f"__source_{field}") for field in _ADDED_OF_SOURCE},
    **{f"source.{time}": (f"__source_{time}",) for time in TIMES},
    **{time: (f"__{time}",) for time in TIMES},
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
    *ENVELOPE_FIELDS,
    "transaction.id",
    *(f"source.{field}" for field in _SOURCE),
    *_NOTICES,
    *ADDED_NAMES,
    *ELSEWHERE,
)
_SCHEMA: Final = ("payload", "schema", "schema.type", "schema.name", "schema.fields")
_AROUND: Final = ("specversion", "iodebeziumversion", "data")
"""what CloudEvents of Debezium have"""
SLOTS: Final = {field: slot for slot, field in enumerate((*_FIELDS, *_SCHEMA, *_AROUND))}

PLAIN, WRAPPED, CLOUD, CLOUD_WRAPPED = range(4)
"""forms of a message: a payload, {schema, payload}, and CloudEvents with these"""
_TO_PAYLOAD: Final = ("", "payload.", "data.", "data.payload.")
_TO_SCHEMA: Final = ("", "", "data.", "data.")
_NOWHERE: Final = "\0"


def path_in(form: int, field: str) -> str:
    """The path of a payload's field in a form. A CloudEvent has the images in ``data``, and other fields in its attributes."""
    if form < CLOUD or field in ("before", "after"):
        return f"{_TO_PAYLOAD[form]}{field}"
    if field == "transaction.id":
        return "iodebeziumtxid"
    if field == "op" or field.startswith("source."):
        return f"iodebezium{field.removeprefix('source.').replace('_', '')}"
    return f"{_NOWHERE}.{field}"


def _tree(form: int) -> Paths:
    schema = (f"{_TO_SCHEMA[form]}{field}" for field in _SCHEMA)
    return paths(*(path_in(form, field) for field in _FIELDS), *schema, *_AROUND)


TREES: Final = tuple(map(_tree, range(len(_TO_PAYLOAD))))
"""the paths of the same slots in each form"""


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

MONGODB, CASSANDRA = "mongodb", "cassandra"
WITH_CELLS: Final = ("yugabytedb", "scylla")
"""connectors whose columns may be objects with a value, NULL if the change does not set them"""
OLD_AND_NEW_VALUES, NEW_VALUES = "OLD_AND_NEW_VALUES", "NEW_VALUES"
"""of Spanner: what to capture, if it is only the columns that a change modifies"""
WITHOUT_ROWS: Final = (MESSAGE, TRANSACTION, HEARTBEAT, DDL)
"""operations of messages that are no rows of a table"""
WITHOUT_IMAGES: Final = (MONGODB, CASSANDRA)
"""connectors that may leave out images"""

INCREMENTAL: Final = "incremental"
"""the ``source.snapshot`` of a row that a connector reads between other changes, on request"""
UNAVAILABLE: Final = "__debezium_unavailable_value"
"""replaces a value that the database did not provide; ``unavailable.value.placeholder`` of the connector"""
