"""AWS Database Migration Service: JSON of its targets Kafka and Kinesis, one object for each row.

    data           {column: value}: the new row, of a delete the old one
    before-image   of an update {column: value}: old values, by default of the key; the task's FieldName is its name
    metadata       record-type data or control, operation, schema-name, table-name, timestamp, transaction-id, commit-timestamp
    control        of a create-table: table-def.columns {column: declaration}, table-def.primary-key [column]

Operations are load, insert, update and delete. The control records truncate-table and drop-table end all rows of the table. The
reader leaves out the others, and rows of the service's own tables. By default, DMS leaves out members that are NULL or an empty
text, so a missing member is unknown. Positions are not comparable. A transformation rule may put old values into data, by default
with the names BI_{column}: an update with an old key there is an error, unless the table has a column of that name.

Source: the service's user guide, and messages that users have shown in public.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.json_text import parsed_json
from sparkwire.base.sqltype import sql_name
from sparkwire.changes.columns import DELETE, INSERT, READ, TRUNCATE, UPDATE
from sparkwire.changes.systems import TEXT, Fields, System
from sparkwire.core.column import bools_of
from sparkwire.json import values
from sparkwire.json.grammar import OBJECT
from sparkwire.json.mysql_types import of_sql
from sparkwire.json.types import Type
from sparkwire.kernels import Bools, Ints

_CONTROLS: Final = (
    "create-table",
    "rename-table",
    "add-column",
    "drop-column",
    "rename-column",
    "change-columns",
    "column-type-change",
)
_MEMBERS: Final = ("data", "metadata", "control")
_OWN_TABLES: Final = "awsdms_"
_TYPES: Final = {
    "BOOLEAN": "boolean",
    "INT8": "tinyint",
    "INT16": "smallint",
    "INT32": "int",
    "INT64": "bigint",
    "UINT8": "smallint",
    "UINT16": "int",
    "UINT32": "bigint",
    "REAL4": "float",
    "REAL8": "double",
    "DATE": "date",
    "DATETIME": "timestamp",
    "BLOB": "binary_hex",
    "BYTES": "binary_hex",
}
"""the service's types; all others are texts, but for numbers with many digits"""
_ITS_WAY: Final = {"binary": "binary_hex", "timestamp_ntz": "timestamp_ntz_z"}
"""types whose values the service writes in another way than MySQL's capture systems"""


def _type_of(text: str) -> Type:
    type = of_sql(text)
    return type._replace(logical=_ITS_WAY.get(type.logical, type.logical))


def _declared(fields: Fields, rows: Ints) -> list[dict[str, str]]:
    """The columns in control records that create a table."""
    texts = values.objects(fields.value("definition").at(rows)).drop_null().to_pylist()
    return [_columns(text) for text in dict.fromkeys(texts)]


def _columns(text: str) -> dict[str, str]:
    with suppress(ValueError):
        return {
            name: sql_name(_of_definition(column).arrow).replace(" ", "")
            for name, column in parsed_json(text).items()
            if isinstance(column, dict)
        }
    return {}


def _of_definition(column: Mapping[str, Any]) -> Type:
    name, precision, scale = column.get("type"), column.get("precision"), column.get("scale")
    if name == "UINT64":
        return Type("text", "decimal", (20, 0))
    if name == "NUMERIC" and isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision != 0:
        return Type("text", "decimal", (precision, scale))
    return Type("text", _TYPES.get(str(name), "string"))


def _own_rows(fields: Fields) -> Bools:
    """Rows of the service's own tables."""
    return bools_of(pc.starts_with(fields.texts("table"), _OWN_TABLES).fill_null(False))


def _has_renamed_image(fields: Fields) -> Bools:
    """Updates without a before image, and with an object of another name: the image under the name that the task gives it."""
    is_update = bools_of(pc.equal(fields.texts("op"), "update").fill_null(False))
    rows = np.flatnonzero(is_update & ~fields.has("before") & fields.documents.intact)
    renamed = np.zeros(fields.count, np.bool_)
    if len(rows):
        begins, ends = fields.begins[rows], fields.ends[rows]
        listed = values.members(values.roots(fields.data, begins, ends, np.ones(len(rows), np.bool_)))
        is_other = ~bools_of(pc.is_in(values.texts(listed.keys), pa.array(_MEMBERS)))
        is_other &= listed.values.kinds == OBJECT
        renamed[np.repeat(rows, np.diff(listed.firsts))[is_other]] = True
    return renamed


DMS: Final = System(
    name="dms",
    title="AWS DMS",
    fields={
        "op": "metadata.operation",
        "after": "data",
        "before": "before-image",
        "schema": "metadata.schema-name",
        "table": "metadata.table-name",
        "keys": "control.table-def.primary-key",
        "time": ("metadata.commit-timestamp", "metadata.timestamp"),
        "transaction": "metadata.transaction-id",
        "record": "metadata.record-type",
        "definition": "control.table-def.columns",
    },
    operations={
        "load": READ,
        "insert": INSERT,
        "update": UPDATE,
        "delete": DELETE,
        "truncate-table": TRUNCATE,
        "drop-table": TRUNCATE,
        **dict.fromkeys(_CONTROLS),
    },
    marks=({"op": TEXT, "record": TEXT},),
    type_of=_type_of,
    messages="[JSON](formats/dms.md) of AWS Database Migration Service for its targets Kafka and Kinesis",
    also_pass="`columns` and `keys`, unless the batch has a `create-table` record with details",
    example=(
        '{"data":{"id":1},"metadata":{"timestamp":"2024-01-31T01:02:03.5Z","record-type":"data","operation":"insert",'
        '"schema-name":"d","table-name":"t","transaction-id":1}}'
    ),
    time_unit="text",
    delete_in_after=True,
    old_row="key",
    old_value_mark="BI_",
    renamable=("before",),
    declared_columns=_declared,
    left_out=_own_rows,
    contradicts=_has_renamed_image,
)
