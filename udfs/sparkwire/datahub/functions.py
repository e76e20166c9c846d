"""The table of DataHub's functions: registration, documentation and tests read it."""

from __future__ import annotations

from typing import Final

from sparkwire.core.builders import Accessor, scalar_functions, struct_function
from sparkwire.core.function import Format, Function
from sparkwire.datahub import blob_fields
from sparkwire.datahub.blob_fields import FIELDS
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
"""Based on the source's samples. Of the DDL's serialized statement, it has only the first bytes."""


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
        "The metadata columns of this message in a TUPLE topic. NULL for a message that such a topic cannot carry.",
        Accessor(messages_of, blob_fields.tuple_columns),
        "datahub_tuple(blob) -> {1605339516000000005, U, 1605339934000, example_table_pk, N, Y}",
        field_docs={
            "_sequence_id_": "Sequence id; both halves of an update have the same.",
            "_operation_type_": "I, U or D.",
            "_excute_time_": "eventTime [ms since epoch].",
            "_source_table_": "The table's name without database and schema.",
            "_before_image_": "Y if this is the row before the change, else N.",
            "_after_image_": "Y if this is the row after the change, else N.",
        },
    ),
    Function(
        "datahub_shard_key(blob BINARY) -> STRING",
        "The sharding key: the primary key's values as a JSON array, from the after image, else from "
        "the before image. Without a key or an image, it is the table's name.",
        Accessor(messages_of, blob_fields.shard_key),
        'datahub_shard_key(blob) -> [1,"joe"]',
    ),
    Function(
        f"to_datahub_blob(change {_CHANGE.returns}) -> BINARY",
        "Encodes a message from any of the fields of datahub_change. op takes precedence over operation, and a time in "
        "milliseconds over its TIMESTAMP. before and after are JSON objects, inserted unchanged; they take precedence "
        "over their maps. error and is_valid are ignored.",
        to_blob,
        "CAST(to_datahub_blob(named_struct('op', 'DELETE', 'event_time_ms', 1605339937000)) AS STRING) -> "
        '{"schema":{},"payload":{"op":"DELETE","timestamp":{"eventTime":1605339937000}}}',
    ),
)

ARGUMENTS: Final = {
    "blob": "One message of a BLOB topic: JSON in UTF-8.",
    "change STRUCT": "The fields to write: any of the fields of `datahub_change`.",
}
FORMAT: Final = Format("datahub", "DataHub", "datahub_", FUNCTIONS, SAMPLES, "datahub_change", arguments=ARGUMENTS)
