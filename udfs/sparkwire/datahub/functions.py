"""DataHub's functions: a row each, from which registration, docs and tests follow."""

from __future__ import annotations

from typing import Final

from sparkwire.core.builders import Accessor, Column, scalar_functions, struct_function
from sparkwire.core.function import Format, Function
from sparkwire.datahub import accessors
from sparkwire.datahub.accessors import millis, text, time
from sparkwire.datahub.blobs import messages_of
from sparkwire.datahub.to_blob import to_blob

_BLOB: Final = (
    b'{ "schema": { "dataColumn": [ { "name": "id", "type": "LONG" }, { "name": "name", "type": "STRING" }, '
    b'{ "name": "comment", "type": "STRING" } ], "source": { "dbName": "example_db", "dbType": "MySQL", '
    b'"tableName": "example_table_pk" }, "primaryKey": [ "id", "name" ] }, "payload": { "op": "UPDATE_AFTER", '
    b'"after": { "dataColumn": { "name": "joe", "comment": "com1", "id": 1 } }, "sequenceId": "1605339516000000005", '
    b'"timestamp": { "eventTime": 1605339934000, "systemTime": 1605339934951, "checkpointTime": 1605339934000 } }, '
    b'"version": "0.0.1" }'
)
_DELETE: Final = _BLOB.replace(b"UPDATE_AFTER", b"DELETE").replace(b'"after"', b'"before"')
_DDL: Final = (
    b'{ "schema": { "source": { "dbName": "example_db", "dbType": "MySQL", "tableName": "example_table_nopk" } }, '
    b'"payload": { "op": "ALTER", "sequenceId": "1605339516000000035", "ddl": { "text": '
    b'"alter table example_table_nopk add column holo text", "ddlMeta": "rO0ABXNy" }, "timestamp": '
    b'{ "eventTime": 1605342109000, "systemTime": 1605342109259, "checkpointTime": 1605342109000 } }, '
    b'"version": "0.0.1" }'
)
SAMPLES: Final = {"blob": _BLOB, "blob_delete": _DELETE, "blob_ddl": _DDL}
"""After the source's own samples; of the DDL's serialized statement only the first bytes."""


FIELDS: Final = (
    Column("op", "STRING", "payload.op, as written.", text("op"), "datahub_op(blob) -> UPDATE_AFTER"),
    Column(
        "operation",
        "STRING",
        "What the op is: INSERT, UPDATE_BEFORE, UPDATE_AFTER (an UPDATE too), DELETE, TRANSACTION, DDL or HEARTBEAT; NULL for "
        "an op that is not known.",
        accessors.operation,
        "datahub_operation(blob) -> UPDATE_AFTER",
    ),
    Column(
        "sequence_id",
        "STRING",
        "payload.sequenceId with all its digits, quoted or bare in the JSON. Both halves of an update have the same.",
        text("sequence_id"),
        "datahub_sequence_id(blob) -> 1605339516000000005",
    ),
    Column(
        "event_time",
        "TIMESTAMP",
        "When the record changed in the source database.",
        time("event_time"),
        "datahub_event_time(blob) -> 2020-11-14 07:45:34",
    ),
    Column(
        "event_time_ms",
        "BIGINT",
        "When the record changed in the source database [ms since epoch].",
        millis("event_time"),
        "datahub_event_time_ms(blob) -> 1605339934000",
    ),
    Column(
        "system_time",
        "TIMESTAMP",
        "When the synchronization handled the message; not every source has it.",
        time("system_time"),
        "datahub_system_time(blob) -> 2020-11-14 07:45:34.951",
    ),
    Column(
        "system_time_ms",
        "BIGINT",
        "When the synchronization handled the message [ms since epoch].",
        millis("system_time"),
        "datahub_system_time_ms(blob) -> 1605339934951",
    ),
    Column(
        "checkpoint_time",
        "TIMESTAMP",
        "Where a synchronization may start again; not every source has it.",
        time("checkpoint_time"),
        "datahub_checkpoint_time(blob) -> 2020-11-14 07:45:34",
    ),
    Column(
        "checkpoint_time_ms",
        "BIGINT",
        "Where a synchronization may start again [ms since epoch].",
        millis("checkpoint_time"),
        "datahub_checkpoint_time_ms(blob) -> 1605339934000",
    ),
    Column(
        "db_type",
        "STRING",
        "Kind of the source database, as written.",
        text("db_type"),
        "datahub_db_type(blob) -> MySQL",
    ),
    Column(
        "db_version",
        "STRING",
        "Version of the source database.",
        text("db_version"),
        "datahub_db_version(blob) -> NULL",
    ),
    Column(
        "database", "STRING", "Name of the source database.", text("database"), "datahub_database(blob) -> example_db"
    ),
    Column(
        "schema_name",
        "STRING",
        "Name of the schema within the database, where it has such (PostgreSQL, SQL Server).",
        text("schema_name"),
        "datahub_schema_name(blob) -> NULL",
    ),
    Column("table", "STRING", "Name of the source table.", text("table"), "datahub_table(blob) -> example_table_pk"),
    Column(
        "primary_key",
        "ARRAY<STRING>",
        "Names of the primary key's columns; NULL for a table without a key.",
        accessors.primary_key,
        "datahub_primary_key(blob) -> [id, name]",
    ),
    Column(
        "columns",
        "ARRAY<STRUCT<name STRING, type STRING>>",
        "The table's columns: LONG, DOUBLE, BOOLEAN, STRING, DATE or BYTES. NULL for an item that is not an object.",
        accessors.columns,
        "datahub_columns(blob) -> [{id, LONG}, {name, STRING}, {comment, STRING}]",
    ),
    Column(
        "before",
        "STRING",
        "The row before the change as JSON text, for from_json and parse_json: as written, but of a column that "
        "repeats only the last value.",
        accessors.before,
        'datahub_before(blob_delete) -> { "name": "joe", "comment": "com1", "id": 1 }',
    ),
    Column(
        "after",
        "STRING",
        "The row after the change as JSON text, for from_json and parse_json: as written, but of a column that "
        "repeats only the last value.",
        accessors.after,
        'datahub_after(blob) -> { "name": "joe", "comment": "com1", "id": 1 }',
    ),
    Column(
        "before_map",
        "MAP<STRING, STRING>",
        "The row before the change, values as text: numbers as written, BYTES in Base64, a DATE as yyyy-MM-ddTHH:mm:ss.SSSZ "
        "(as written outside of the years 1 to 9999), null as NULL.",
        accessors.before_map,
        "datahub_before_map(blob_delete)['id'] -> 1",
    ),
    Column(
        "after_map",
        "MAP<STRING, STRING>",
        "The row after the change, values as text: numbers as written, BYTES in Base64, a DATE as yyyy-MM-ddTHH:mm:ss.SSSZ "
        "(as written outside of the years 1 to 9999), null as NULL.",
        accessors.after_map,
        "datahub_after_map(blob)['id'] -> 1",
    ),
    Column(
        "ddl_text",
        "STRING",
        "The statement of a DDL message.",
        text("ddl_text"),
        "datahub_ddl_text(blob_ddl) -> alter table example_table_nopk add column holo text",
    ),
    Column(
        "ddl_meta",
        "BINARY",
        "The serialized statement of a DDL message, NULL where it is no Base64 (as java.util.Base64 reads it).",
        accessors.ddl_meta,
        "hex(datahub_ddl_meta(blob_ddl)) -> ACED00057372",
    ),
    Column(
        "version",
        "STRING",
        "Version of the format, as written; none is refused.",
        text("version"),
        "datahub_version(blob) -> 0.0.1",
    ),
    Column(
        "error",
        "STRING",
        "What is wrong with the message, the first that applies: BAD_JSON; op MISSING_FIELD or UNKNOWN_OPCODE; eventTime "
        "MISSING_FIELD or BAD_FIELD (not an integer); the image that the op needs MISSING_FIELD or BAD_FIELD. NULL for none.",
        accessors.error,
        "datahub_error(blob) -> NULL",
    ),
    Column(
        "is_valid", "BOOLEAN", "Whether datahub_error is NULL.", accessors.is_valid, "datahub_is_valid(blob) -> true"
    ),
)

_CHANGE: Final = struct_function(
    "datahub_change(blob BINARY)",
    FIELDS,
    messages_of,
    "Every field in one pass, named as the functions are without `datahub_`.",
    "datahub_change(blob).operation -> UPDATE_AFTER",
)

FUNCTIONS: Final = (
    *scalar_functions("datahub_{}(blob BINARY)", FIELDS, messages_of),
    _CHANGE,
    Function(
        "datahub_tuple(blob BINARY) -> STRUCT<_sequence_id_ STRING, _operation_type_ STRING, _excute_time_ BIGINT, "
        "_source_table_ STRING, _before_image_ STRING, _after_image_ STRING>",
        "The metadata columns that a TUPLE topic has for this message: I, U or D, eventTime [ms since epoch], the table's "
        "name, Y or N for each image. NULL for a message that such a topic cannot carry.",
        Accessor(messages_of, accessors.tuple_columns),
        "datahub_tuple(blob) -> {1605339516000000005, U, 1605339934000, example_table_pk, N, Y}",
        field_docs={
            "_sequence_id_": "The same for both halves of an update.",
            "_operation_type_": "I, U or D.",
            "_excute_time_": "eventTime [ms since epoch].",
            "_source_table_": "The table's name alone.",
            "_before_image_": "Y where this is the row before the change, else N.",
            "_after_image_": "Y where this is the row after the change, else N.",
        },
    ),
    Function(
        "datahub_shard_key(blob BINARY) -> STRING",
        "What the message is sharded by: the primary key's values as a JSON array, out of the after image, else the before "
        "image; the table's name where there is no key or no image.",
        Accessor(messages_of, accessors.shard_key),
        'datahub_shard_key(blob) -> [1,"joe"]',
    ),
    Function(
        f"to_datahub_blob(change {_CHANGE.returns}) -> BINARY",
        "The message that datahub_change reads as this, out of any of its fields. op wins over operation, a time in "
        "milliseconds over its TIMESTAMP, before and after (JSON objects, inserted as they are) over their maps; error and "
        "is_valid are not looked at.",
        to_blob,
        "CAST(to_datahub_blob(named_struct('op', 'DELETE', 'event_time_ms', 1605339937000)) AS STRING) -> "
        '{"schema":{},"payload":{"op":"DELETE","timestamp":{"eventTime":1605339937000}}}',
    ),
)

FORMAT: Final = Format("datahub", "DataHub", "datahub_", FUNCTIONS, SAMPLES, "datahub_change")
