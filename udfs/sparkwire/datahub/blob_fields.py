"""The fields of a message, in the order of ``datahub_change``. Each is a function and a column of the struct."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import ERRORS, OK
from sparkwire.core.builders import Column, ColumnTable
from sparkwire.core.column import from_codes, primitive, struct, timestamps
from sparkwire.datahub.blobs import BlobColumn
from sparkwire.datahub.images import keys_text, text_map
from sparkwire.datahub.layout import OPERATIONS
from sparkwire.json import values
from sparkwire.json.grammar import OBJECT
from sparkwire.json.images import Images, json_text

FIELDS = ColumnTable[BlobColumn]()

_CANONICAL: Final = tuple(operation.canonical for operation in OPERATIONS)
_TUPLE_TYPES: Final = tuple(operation.tuple_type for operation in OPERATIONS)
_HAS_BEFORE: Final = np.array([*(operation.image == "before" for operation in OPERATIONS), False])
_IN_TUPLES: Final = np.array([*(bool(operation.tuple_type) for operation in OPERATIONS), False])
_NO_YES: Final = ("N", "Y")


def _text(name: str, doc: str, result: str, sample: str = "blob") -> Column[BlobColumn]:
    """A field as text: the content of a string, or the JSON of any other value as written."""
    example = f"datahub_{name}({sample}) -> {result}"
    return Column(name, "STRING", doc, lambda messages: values.texts(messages.value(name)), example)


def _times(name: str, doc: str, result: str, remark: str, result_ms: str) -> tuple[Column[BlobColumn], ...]:
    """A time as a TIMESTAMP and [ms since epoch], NULL for what is not an integer."""

    def time(messages: BlobColumn) -> pa.Array:
        numbers, valid = messages.time(name)
        return timestamps(numbers, "ms", valid)

    example, doc_ms = f"datahub_{name}(blob) -> 2020-11-14 {result}", f"{doc} [ms since epoch]."
    return (
        Column(name, "TIMESTAMP", f"{doc}{remark}.", time, example),
        Column(
            f"{name}_ms",
            "BIGINT",
            doc_ms,
            lambda messages: primitive(*messages.time(name)),
            f"datahub_{name}_ms(blob) -> {result_ms}",
        ),
    )


FIELDS.append(_text("op", "payload.op, as written.", "UPDATE_AFTER"))


@FIELDS.column("STRING", "datahub_operation(blob) -> UPDATE_AFTER")
def operation(messages: BlobColumn) -> pa.Array:
    """Kind of operation: INSERT, UPDATE_BEFORE, UPDATE_AFTER (also for UPDATE), DELETE, TRANSACTION, DDL or HEARTBEAT. NULL for
    an unknown op.
    """
    return from_codes(messages.operations, _CANONICAL)


_SEQUENCE: Final = (
    "payload.sequenceId with all its digits, quoted or not in the JSON. Both halves of an update have the same."
)
_SCHEMA: Final = "Name of the schema within the database, if the database has schemas (PostgreSQL, SQL Server)."
_EVENT: Final = "When the record changed in the source database"
_SYSTEM: Final = "When the synchronization handled the message"
_CHECKPOINT: Final = "Checkpoint from which a synchronization may restart"
_NOT_EVERY: Final = "; not every source has it"

FIELDS += [
    _text("sequence_id", _SEQUENCE, "1605339516000000005"),
    *_times("event_time", _EVENT, "07:45:34", "", "1605339934000"),
    *_times("system_time", _SYSTEM, "07:45:34.951", _NOT_EVERY, "1605339934951"),
    *_times("checkpoint_time", _CHECKPOINT, "07:45:34", _NOT_EVERY, "1605339934000"),
    _text("db_type", "Kind of the source database, as written.", "MySQL"),
    _text("db_version", "Version of the source database.", "NULL"),
    _text("database", "Name of the source database.", "example_db"),
    _text("schema_name", _SCHEMA, "NULL"),
    _text("table", "Name of the source table.", "example_table_pk"),
]


@FIELDS.column("ARRAY<STRING>", "datahub_primary_key(blob) -> [id, name]")
def primary_key(messages: BlobColumn) -> pa.Array:
    """Names of the primary key's columns; NULL for a table without a key."""
    return messages.primary_keys


@FIELDS.column(
    "ARRAY<STRUCT<name STRING, type STRING>>",
    "datahub_columns(blob) -> [{id, LONG}, {name, STRING}, {comment, STRING}]",
)
def columns(messages: BlobColumn) -> pa.Array:
    """Names and types of the table's columns: LONG, DOUBLE, BOOLEAN, STRING, DATE or BYTES. NULL for an item that is not an
    object.
    """
    return messages.column_lists


@FIELDS.column("STRING", 'datahub_before(blob_delete) -> { "name": "joe", "comment": "com1", "id": 1 }')
def before(messages: BlobColumn) -> pa.Array:
    """The row before the change as JSON text, as written, for from_json and parse_json. If a column repeats, only its last value
    remains.
    """
    return json_text(messages.before)


@FIELDS.column("STRING", 'datahub_after(blob) -> { "name": "joe", "comment": "com1", "id": 1 }')
def after(messages: BlobColumn) -> pa.Array:
    """The row after the change as JSON text, as written, for from_json and parse_json. If a column repeats, only its last value
    remains.
    """
    return json_text(messages.after)


@FIELDS.column("MAP<STRING, STRING>", "datahub_before_map(blob_delete)['id'] -> 1")
def before_map(messages: BlobColumn) -> pa.Array:
    """The row before the change, with values as text: numbers as written, BYTES in Base64, null as NULL. A DATE is
    yyyy-MM-ddTHH:mm:ss.SSSZ, or as written outside the years 1 to 9999.
    """
    return text_map(messages.before, messages.declared)


@FIELDS.column("MAP<STRING, STRING>", "datahub_after_map(blob)['id'] -> 1")
def after_map(messages: BlobColumn) -> pa.Array:
    """The row after the change, with values as text: numbers as written, BYTES in Base64, null as NULL. A DATE is
    yyyy-MM-ddTHH:mm:ss.SSSZ, or as written outside the years 1 to 9999.
    """
    return text_map(messages.after, messages.declared)


_STATEMENT: Final = "alter table example_table_nopk add column holo text"

FIELDS.append(_text("ddl_text", "The statement of a DDL message.", _STATEMENT, "blob_ddl"))


@FIELDS.column("BINARY", "hex(datahub_ddl_meta(blob_ddl)) -> ACED00057372")
def ddl_meta(messages: BlobColumn) -> pa.Array:
    """The serialized statement of a DDL message; NULL if it is not Base64 as java.util.Base64 decodes it."""
    return values.from_base64(values.texts(messages.value("ddl_meta")))


FIELDS.append(_text("version", "Version of the format, as written; any is valid.", "0.0.1"))


@FIELDS.column("STRING", "datahub_error(blob) -> NULL")
def error(messages: BlobColumn) -> pa.Array:
    """The first error of the message, in this order. BAD_JSON; op: MISSING_FIELD or UNKNOWN_OPCODE; eventTime: MISSING_FIELD or
    BAD_FIELD (not an integer); the image that the op needs: MISSING_FIELD or BAD_FIELD. NULL for a valid message.
    """
    return from_codes(messages.errors, ERRORS)


@FIELDS.column("BOOLEAN", "datahub_is_valid(blob) -> true")
def is_valid(messages: BlobColumn) -> pa.Array:
    """Whether datahub_error is NULL."""
    return primitive(messages.errors == OK)


def tuple_columns(messages: BlobColumn) -> pa.Array:
    """The metadata columns of a TUPLE topic; NULL for a message that such a topic does not carry."""
    operations = messages.operations
    carried = _IN_TUPLES[operations]
    has_before = _HAS_BEFORE[operations].astype(np.int8)
    return struct(
        {
            "_sequence_id_": values.texts(messages.value("sequence_id")),
            "_operation_type_": from_codes(operations, _TUPLE_TYPES),
            "_excute_time_": primitive(*messages.event_time),
            "_source_table_": values.texts(messages.value("table")),
            "_before_image_": from_codes(has_before, _NO_YES),
            "_after_image_": from_codes(np.int8(1) - has_before, _NO_YES),
        },
        carried,
    )


def shard_key(messages: BlobColumn) -> pa.Array:
    """The primary key's values from the after image, else from the before image; without key or image, the table's name."""
    before, after = messages.before.objects, messages.after.objects
    images = Images(before.unless(after.kinds == OBJECT, after))
    keys = keys_text(images, messages.key_names)
    return pc.coalesce(keys, values.texts(messages.value("table")))
