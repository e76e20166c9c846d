"""DataHub: BLOB messages of Data Integration. See `sparkwire.datahub` for the messages.

An image is a row. A TRUNCATE or ERASE of the table ends all its rows; other statements, heartbeats and marks of transactions
are left out. The order is the sequence id, a number of any length; both halves of an update have the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from sparkwire.base.json_text import parsed_json
from sparkwire.base.text_cache import text_cache
from sparkwire.changes.columns import DELETE, INSERT, TRUNCATE, UPDATE, UPDATE_BEFORE
from sparkwire.changes.orders import NUMBER, numbers
from sparkwire.changes.systems import ROW, TEXT, Fields, System
from sparkwire.datahub.layout import DATE, OPERATIONS, OTHER_TYPE, PATHS, TYPES
from sparkwire.json.grammar import ARRAY
from sparkwire.json.types import Type, type_of

_TYPES: Final = TYPES | {"TIMESTAMP": TYPES[DATE]}


def datahub_type(text: str) -> Type:
    """The type of a column: DataHub's own, or SQL's. Raises ValueError if it is neither."""
    return _TYPES.get(text.upper()) or type_of(text)


@text_cache(1024)
def _declared(text: str) -> Mapping[str, Type]:
    return {name: column_type(type) for name, type in declared_columns(text).items()}


def declared_columns(text: str) -> dict[str, str]:
    """The names and types in a message's ``schema.dataColumn``, as the message has them."""
    columns: list[dict[str, Any]] = []
    with suppress(ValueError):
        columns = [item for item in parsed_json(text) if isinstance(item, dict) and isinstance(item.get("name"), str)]
    return {column["name"]: str(column.get("type") or "") for column in columns}


def column_type(text: str) -> Type:
    """The type of a column, as a message declares it."""
    return _TYPES.get(text, OTHER_TYPE)


def _sequence(fields: Fields) -> pa.Array:
    return numbers(fields.texts("sequence"))


DATAHUB: Final = System(
    name="datahub",
    title="DataHub",
    fields={
        "op": PATHS["op"],
        "after": PATHS["after_image"],
        "before": PATHS["before_image"],
        "database": PATHS["database"],
        "schema": PATHS["schema_name"],
        "table": PATHS["table"],
        "keys": PATHS["primary_key"],
        "time": PATHS["event_time"],
        "types": PATHS["columns"],
        "sequence": PATHS["sequence_id"],
        "payload": "payload",
        "times": "payload.timestamp",
        "source": "schema.source",
    },
    operations={
        **dict.fromkeys(operation.op for operation in OPERATIONS),
        "INSERT": INSERT,
        "UPDATE_BEFOR": UPDATE_BEFORE,
        "UPDATE_BEFORE": UPDATE_BEFORE,
        "UPDATE_AFTER": UPDATE,
        "UPDATE": UPDATE,
        "DELETE": DELETE,
        "TRUNCATE": TRUNCATE,
        "ERASE": TRUNCATE,
    },
    marks=({"payload": ROW},),
    type_of=datahub_type,
    messages="[BLOB messages](formats/datahub.md)",
    also_pass="`columns` for a stream",
    example=(
        '{"schema":{"source":{"dbName":"d","tableName":"t"},"primaryKey":["id"],"dataColumn":[{"name":"id","type":"LONG"}]},'
        '"payload":{"op":"INSERT","sequenceId":"1","timestamp":{"eventTime":1},"after":{"dataColumn":{"id":1}}}}'
    ),
    certain_marks=({"op": TEXT, "times": ROW}, {"op": TEXT, "source": ROW}),
    types_kind=ARRAY,
    declared_types=_declared,
    position=NUMBER,
    positions=_sequence,
    position_remark="the sequence id, a number of any length",
)
