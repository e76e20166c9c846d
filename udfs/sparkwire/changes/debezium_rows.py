"""The rows of `sparkwire.debezium.rows`: changes of Debezium with both images, and with the position in the database's log.

op            STRING    INSERT, UPDATE, DELETE, READ, TRUNCATE, UPSERT; NULL if unknown
position      STRUCT    the position of the change in the source's log, which sorts in the log's order; NULL if unknown
time          TIMESTAMP the time of the change
table, transaction, snapshot   STRING
keys          ARRAY<STRING>    names of the columns of the Kafka key
before, after STRUCT    the table's columns; NULL if the message does not have this image
unavailable, unexpected, error   as in a change table
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from sparkwire.base.sqltype import TIMESTAMP
from sparkwire.changes.columns import ChangeBatch
from sparkwire.changes.table_rows import TypedRows, cast_to
from sparkwire.core.column import struct
from sparkwire.debezium.positions import POSITION
from sparkwire.json.typed_images import named_lists, unexpected_map
from sparkwire.json.types import Type


def rows_schema(types: Mapping[str, Type]) -> pa.Schema:
    """The schema of the rows of a table with these columns."""
    image = pa.struct([(name, type.arrow) for name, type in types.items()])
    texts = pa.list_(pa.string())
    fields = {
        "op": pa.string(),
        "position": POSITION,
        "time": TIMESTAMP,
        "table": pa.string(),
        "transaction": pa.string(),
        "snapshot": pa.string(),
        "keys": texts,
        "before": image,
        "after": image,
        "unavailable": texts,
        "unexpected": pa.map_(pa.string(), pa.string()),
        "error": pa.string(),
    }
    return pa.schema([(f"_{name}_", type) for name, type in fields.items()])


def debezium_rows(typed: TypedRows, types: Mapping[str, Type], schema: pa.Schema) -> ChangeBatch:
    """The rows, in the order of the messages."""
    said = typed.said
    arrays = [
        said.ops,
        said.positions,
        said.times,
        said.tables,
        said.transactions,
        said.snapshots,
        typed.keys,
        typed.old,
        struct(dict(zip(types, typed.columns, strict=True)), typed.has_new),
        named_lists(typed.is_unavailable, list(types)),
        unexpected_map(typed.unexpected, len(said.messages)),
        typed.errors,
    ]
    return ChangeBatch(said.messages, pa.RecordBatch.from_arrays(cast_to(arrays, schema), schema=schema))
