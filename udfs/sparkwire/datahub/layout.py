"""The tables of the DataHub format: the paths of fields in a message, the operations, the types."""

from __future__ import annotations

from typing import Final, NamedTuple

from sparkwire.json.scan import paths
from sparkwire.json.types import Type

PATHS: Final = {
    "op": "payload.op",
    "sequence_id": "payload.sequenceId",
    "event_time": "payload.timestamp.eventTime",
    "system_time": "payload.timestamp.systemTime",
    "checkpoint_time": "payload.timestamp.checkpointTime",
    "db_type": "schema.source.dbType",
    "db_version": "schema.source.dbVersion",
    "database": "schema.source.dbName",
    "schema_name": "schema.source.schemaName",
    "table": "schema.source.tableName",
    "primary_key": "schema.primaryKey",
    "columns": "schema.dataColumn",
    "before": "payload.before",
    "before_image": "payload.before.dataColumn",
    "after": "payload.after",
    "after_image": "payload.after.dataColumn",
    "ddl_text": "payload.ddl.text",
    "ddl_meta": "payload.ddl.ddlMeta",
    "version": "version",
}
SLOTS: Final = {field: slot for slot, field in enumerate(PATHS)}
MESSAGE: Final = paths(*PATHS.values())
COLUMN: Final = paths("name", "type")
"""one item of schema.dataColumn"""


class Operation(NamedTuple):
    """A value of ``payload.op``, case-sensitive, and its meaning."""

    op: str
    canonical: str
    tuple_type: str = ""
    """its name in a TUPLE topic; empty if such a topic does not carry it"""
    image: str = ""
    """the image that the message must have"""


# The operations of the source's table and sample, and UPDATE_BEFORE, which the source misspells.
OPERATIONS: Final = (
    Operation("INSERT", "INSERT", "I", "after"),
    Operation("UPDATE_BEFOR", "UPDATE_BEFORE", "U", "before"),
    Operation("UPDATE_BEFORE", "UPDATE_BEFORE", "U", "before"),
    Operation("UPDATE_AFTER", "UPDATE_AFTER", "U", "after"),
    Operation("UPDATE", "UPDATE_AFTER", "U", "after"),
    Operation("DELETE", "DELETE", "D", "before"),
    *(
        Operation(op, "TRANSACTION")
        for op in ("TRANSACTION_BEGIN", "TRANSACTION_END", "GTID", "XACOMMIT", "XAROLLBACK")
    ),
    *(Operation(op, "DDL") for op in ("CREATE", "ALTER", "ERASE", "QUERY", "TRUNCATE", "RENAME", "CINDEX", "DINDEX")),
    Operation("MHEARTBEAT", "HEARTBEAT"),
)

DATE: Final = "DATE"
TYPES: Final = {
    "LONG": Type("int64"),
    "DOUBLE": Type("double"),
    "BOOLEAN": Type("boolean"),
    "STRING": Type("string"),
    DATE: Type("int64", "Instant"),
    "BYTES": Type("bytes"),
}
"""how the values of each type that schema.dataColumn may name are read"""
OTHER_TYPE: Final = Type("text", "string")
"""of a type that the format does not define: any value as text"""
