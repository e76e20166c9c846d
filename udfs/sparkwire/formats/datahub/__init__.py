"""Alibaba Cloud DataHub: change messages of a BLOB topic, as Data Integration writes them.

    message   one JSON object in UTF-8; a byte-order mark before it is tolerated
      schema    dataColumn [{name, type}]      every column of the table; type LONG, DOUBLE, BOOLEAN, STRING, DATE, BYTES
                primaryKey [name]
                source     {dbType, dbVersion, dbName, schemaName, tableName}
      payload   op                             see `layout.OPERATIONS`, case-sensitive
                sequenceId                     digits, in quotes or bare; both halves of an update have the same
                timestamp  {eventTime, systemTime, checkpointTime}     [ms since epoch]
                before     {dataColumn {name: value}}                  for DELETE and UPDATE_BEFOR
                after      {dataColumn {name: value}}                  for INSERT and UPDATE_AFTER
                ddl        {text, ddlMeta}                             ddlMeta in Base64
      version

In an image BYTES are Base64, a DATE is an integer [ms since epoch], everything else is plain JSON.

The names of fields above are fixed, the order of keys is not; keys that are not known are passed over. What the
source leaves open is answered so:

- JSON is RFC 8259 to the letter: NaN, comments and trailing commas are `BAD_JSON`, so are bytes that are not UTF-8.
  Nesting has no limit;
- of a key that stands twice in one object the last counts, whatever stood under the first;
- of a message that is `BAD_JSON` the fields are answered that stand whole before the damage;
- half a surrogate pair, escaped, reads as U+FFFD;
- JSON null is absent, but for the values of an image, where a map has the key with NULL;
- a text field whose value is no string is answered as the JSON that is written there; a time that is not an integer
  is NULL, and only eventTime's is an error;
- an image that is there and is not an object, or whose dataColumn is none, is `BAD_FIELD`;
- an op of another JSON type than a string is an unknown one.

Source: Alibaba Cloud, DataWorks, "Appendix: DataHub message formats".
"""

from __future__ import annotations

from functools import partial
from typing import Final

from sparkwire.formats.datahub import answers
from sparkwire.formats.datahub.answers import MessageAnswer, millis, text, time
from sparkwire.formats.datahub.messages import messages_of
from sparkwire.function import Function
from sparkwire.makers import Answer, struct_function

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


def _row(
    declaration: str, returns: str, doc: str, answer: MessageAnswer, example: str, sample: str = "blob"
) -> Function:
    name = f"datahub_{declaration}"
    return Function(
        f"{name}(blob BINARY) -> {returns}", doc, Answer(messages_of, answer), f"{name}({sample}) -> {example}"
    )


_time_row = partial(_row, returns="TIMESTAMP")

_ACCESSORS: Final = (
    _row("op", "STRING", "payload.op, as written.", text("op"), "UPDATE_AFTER"),
    _row(
        "operation",
        "STRING",
        "What the op is: INSERT, UPDATE_BEFORE, UPDATE_AFTER (an UPDATE too), DELETE, TRANSACTION, DDL or HEARTBEAT; NULL for "
        "an op that is not known.",
        answers.operation,
        "UPDATE_AFTER",
    ),
    _row(
        "sequence_id",
        "STRING",
        "payload.sequenceId with all its digits, quoted or bare in the JSON. Both halves of an update have the same.",
        text("sequence_id"),
        "1605339516000000005",
    ),
    _row(
        "event_time",
        "TIMESTAMP",
        "When the record changed in the source database.",
        time("event_time"),
        "2020-11-14 07:45:34",
    ),
    _row("event_time_ms", "BIGINT", "The same [ms since epoch].", millis("event_time"), "1605339934000"),
    _row(
        "system_time",
        "TIMESTAMP",
        "When the synchronization handled the message; not every source has it.",
        time("system_time"),
        "2020-11-14 07:45:34.951",
    ),
    _row("system_time_ms", "BIGINT", "The same [ms since epoch].", millis("system_time"), "1605339934951"),
    _row(
        "checkpoint_time",
        "TIMESTAMP",
        "Where a synchronization may start again; not every source has it.",
        time("checkpoint_time"),
        "2020-11-14 07:45:34",
    ),
    _row("checkpoint_time_ms", "BIGINT", "The same [ms since epoch].", millis("checkpoint_time"), "1605339934000"),
    _row("db_type", "STRING", "Kind of the source database, as written.", text("db_type"), "MySQL"),
    _row("db_version", "STRING", "Version of the source database.", text("db_version"), "NULL"),
    _row("database", "STRING", "Name of the source database.", text("database"), "example_db"),
    _row(
        "schema_name",
        "STRING",
        "Name of the schema within the database, where it has such (PostgreSQL, SQL Server).",
        text("schema_name"),
        "NULL",
    ),
    _row("table", "STRING", "Name of the source table.", text("table"), "example_table_pk"),
    _row(
        "primary_key",
        "ARRAY<STRING>",
        "Names of the primary key's columns; NULL for a table without a key.",
        answers.primary_key,
        "[id, name]",
    ),
    _row(
        "columns",
        "ARRAY<STRUCT<name STRING, type STRING>>",
        "The table's columns: LONG, DOUBLE, BOOLEAN, STRING, DATE or BYTES. NULL for an item that is not an object.",
        answers.columns,
        "[{id, LONG}, {name, STRING}, {comment, STRING}]",
    ),
    _row(
        "before",
        "STRING",
        "The row before the change as JSON text, for from_json and parse_json: as written, but of a column that stands "
        "twice only the last value.",
        answers.before,
        '{ "name": "joe", "comment": "com1", "id": 1 }',
        "blob_delete",
    ),
    _row(
        "after",
        "STRING",
        "The row after the change as JSON text, for from_json and parse_json: as written, but of a column that stands "
        "twice only the last value.",
        answers.after,
        '{ "name": "joe", "comment": "com1", "id": 1 }',
    ),
    _row(
        "before_map",
        "MAP<STRING, STRING>",
        "The row before the change, values as text: numbers as written, BYTES in Base64, a DATE as yyyy-MM-ddTHH:mm:ss.SSSZ "
        "(as written outside of the years 1 to 9999), null as NULL.",
        answers.before_map,
        "{name -> joe, comment -> com1, id -> 1}",
        "blob_delete",
    ),
    _row(
        "after_map",
        "MAP<STRING, STRING>",
        "The row after the change, values as text: numbers as written, BYTES in Base64, a DATE as yyyy-MM-ddTHH:mm:ss.SSSZ "
        "(as written outside of the years 1 to 9999), null as NULL.",
        answers.after_map,
        "{name -> joe, comment -> com1, id -> 1}",
    ),
    _row(
        "ddl_text",
        "STRING",
        "The statement of a DDL message.",
        text("ddl_text"),
        "alter table example_table_nopk add column holo text",
        "blob_ddl",
    ),
    _row(
        "ddl_meta",
        "BINARY",
        "The serialized statement of a DDL message, NULL where it is no Base64 (as java.util.Base64 reads it).",
        answers.ddl_meta,
        "X'ACED00057372'",
        "blob_ddl",
    ),
    _row("version", "STRING", "Version of the format, as written; none is refused.", text("version"), "0.0.1"),
    _row(
        "error",
        "STRING",
        "Why the message is unsound, the first that applies: BAD_JSON; op MISSING_FIELD or UNKNOWN_OPCODE; eventTime "
        "MISSING_FIELD or BAD_FIELD (not an integer); the image that the op needs MISSING_FIELD or BAD_FIELD. NULL if sound.",
        answers.error,
        "NULL",
    ),
    _row("is_valid", "BOOLEAN", "Whether datahub_error is NULL.", answers.is_valid, "true"),
)

_CHANGE: Final = struct_function(
    "datahub_change(blob BINARY)",
    "datahub_",
    messages_of,
    _ACCESSORS,
    "Every field in one pass, named as the functions are without `datahub_`.",
    "datahub_change(blob).operation -> UPDATE_AFTER",
)

FUNCTIONS: Final = (
    *_ACCESSORS,
    _CHANGE,
    _row(
        "tuple",
        "STRUCT<_sequence_id_ STRING, _operation_type_ STRING, _excute_time_ BIGINT, _source_table_ STRING, "
        "_before_image_ STRING, _after_image_ STRING>",
        "The metadata columns that a TUPLE topic has for this message: I, U or D, eventTime [ms since epoch], the table's "
        "name, Y or N for each image. NULL for a message that such a topic cannot carry.",
        answers.tuple_columns,
        "{1605339516000000005, U, 1605339934000, example_table_pk, N, Y}",
    ),
    _row(
        "shard_key",
        "STRING",
        "What the message is sharded by: the primary key's values as a JSON array, out of the after image, else the before "
        "image; the table's name where there is no key or no image.",
        answers.shard_key,
        '[1,"joe"]',
    ),
)
