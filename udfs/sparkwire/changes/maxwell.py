"""Maxwell: messages of MySQL and MariaDB, one for each row.

    type       insert, update, delete, bootstrap-insert; bootstrap-start, bootstrap-complete; table-create and other statements
    data       {column: value}: the new row, of a delete the old one
    old        {column: value}: of an update, the old values of the columns that changed
    database, table, ts [s since epoch], xid, xoffset or commit, position ``file:offset``, gtid, primary_key_columns

A change of the key is one update. With ``output_nulls=false``, NULL is left out (``nulls="absent"``). The rows of a bootstrap are
READ. Statements are left out, as are the marks of a bootstrap and the rows of Maxwell's own tables; a TRUNCATE has no message.

The order in the source is ``position`` and ``xoffset``, or ``xid`` and ``xoffset`` without a position. The last row of a
transaction has ``commit`` instead of ``xoffset``. A row of a bootstrap has its place if it has a position.

Sources: Maxwell 1.44.1, its messages over MariaDB; Apache Flink writes the same form.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.json_text import is_unicode, parsed_json
from sparkwire.changes.columns import DELETE, INSERT, READ, UPDATE
from sparkwire.changes.systems import NOTHING, ROW, TEXT, Fields, System
from sparkwire.core.column import binary_of, bools_of, lists, primitive
from sparkwire.json import values
from sparkwire.json.grammar import TRUE
from sparkwire.json.images import Images
from sparkwire.json.mysql_types import of_maxwell, of_sql
from sparkwire.json.scan import paths
from sparkwire.kernels import Bools, Ints

_STATEMENTS: Final = tuple(f"{of}-{what}" for of in ("table", "database") for what in ("create", "alter", "drop"))
_BOOTSTRAP: Final = "bootstrap-insert"
_MARKS_OF_BOOTSTRAP: Final = ("bootstrap-start", "bootstrap-complete")
_OWN_DATABASE: Final = "maxwell"
_OWN_TABLES: Final = ("bootstrap", "columns", "databases", "heartbeats", "positions", "schemas", "tables")
_PLACE: Final = r"^(?P<log>[^:]*?)\.?(?P<file>[0-9]{1,18}):(?P<at>[0-9]{1,18})$"
_PREFIX: Final = "pk."
_ANY: Final = paths("database")
_LAST: Final = 2**63 - 1
POSITION: Final = pa.struct(
    [("log", pa.string()), ("position", pa.int64()), ("sub_position", pa.int64()), ("row", pa.int64())]
)


def _own_rows(fields: Fields) -> Bools:
    """Rows of Maxwell's own tables."""
    is_own = bools_of(pc.equal(fields.texts("database"), _OWN_DATABASE).fill_null(False))
    if not is_own.any():
        return is_own
    return is_own & bools_of(pc.is_in(fields.texts("table"), pa.array(_OWN_TABLES)).fill_null(False))


def _positions(fields: Fields) -> pa.Array:
    """The file, the place in it and the row; or the transaction and the row.

    A row of a bootstrap comes after all rows of its place: a bootstrap reads the table later than the log up to that place.
    """
    place = pc.extract_regex(fields.texts("position"), _PLACE)
    log, file, at = (pc.struct_field(place, name) for name in ("log", "file", "at"))
    xid, offset = (primitive(*values.integers(fields.value(role))) for role in ("transaction", "xoffset"))
    has_place = place.is_valid()
    of_bootstrap = pc.and_(pc.equal(fields.texts("op"), _BOOTSTRAP), has_place).fill_null(False)
    is_last = pc.or_(primitive(fields.value("commit").kinds == TRUE, type=pa.bool_()), of_bootstrap)
    row = pc.if_else(is_last, _LAST, offset)
    first = pc.if_else(has_place, file.cast(pa.int64()), xid)
    second = pc.if_else(has_place, at.cast(pa.int64()), 0)
    valid = bools_of(pc.and_(first.is_valid(), row.is_valid()))
    return pa.StructArray.from_arrays([log, first, second, row], fields=list(POSITION), mask=pa.array(~valid))


def _names_in_key(keys: pa.Array) -> pa.Array:
    """The names in keys such as {"pk.id": 1}, or ["db", "table", [{"id": 1}]]."""
    source = binary_of(keys)
    begins, ends = values.bounds(source)
    intact = values.documents(source.data, begins, ends, _ANY).intact
    images = Images(values.roots(source.data, begins, ends, intact))
    found = np.flatnonzero(bools_of(pc.starts_with(images.names, _PREFIX).fill_null(False)))
    firsts = np.searchsorted(found, images.listed.firsts).astype(np.int32)
    names = pc.utf8_slice_codeunits(images.names.take(primitive(found)), len(_PREFIX))
    of_objects = lists(firsts, names, np.diff(firsts) > 0)
    others = np.flatnonzero(~intact & bools_of(keys.is_valid()))
    if not len(others):
        return of_objects
    of_arrays = pa.array([_names(key) for key in keys.take(primitive(others)).to_pylist()], of_objects.type)
    places = np.arange(len(keys))
    places[others] = len(keys) + np.arange(len(others))
    return pa.concat_arrays([of_objects, of_arrays]).take(primitive(places))


def _names(key: bytes | str) -> list[str] | None:
    with suppress(ValueError):  # a random id, of a statement
        match parsed_json(key):
            case [_, _, [*parts]]:
                names = [name for part in parts if isinstance(part, dict) for name in part]
                return names if names and all(map(is_unicode, names)) else None
    return None


def _declared(fields: Fields, rows: Ints) -> list[dict[str, str]]:
    """The columns in statements that create or alter a table."""
    texts = values.objects(fields.value("definition").at(rows)).drop_null().to_pylist()
    return [_columns(text) for text in dict.fromkeys(texts)]


def _columns(definition: str) -> dict[str, str]:
    with suppress(ValueError):
        columns = parsed_json(definition).get("columns")
        named = [column for column in columns if isinstance(column, dict)] if isinstance(columns, list) else []
        return {column["name"]: of_maxwell(column) for column in named if isinstance(column.get("name"), str)}
    return {}


def _contradicts(fields: Fields) -> Bools:
    """Statements and marks with rows, and rows with a statement."""
    is_left_out = bools_of(pc.is_in(fields.texts("op"), pa.array((*_MARKS_OF_BOOTSTRAP, *_STATEMENTS))))
    has_statement = fields.has("statement") | fields.has("definition")
    contradicts: Bools = np.where(is_left_out, fields.value("after").are_filled, has_statement)
    return contradicts


MAXWELL: Final = System(
    name="maxwell",
    title="Maxwell",
    fields={
        "op": "type",
        "after": "data",
        "before": "old",
        "database": "database",
        "table": "table",
        "keys": "primary_key_columns",
        "time": "ts",
        "transaction": "xid",
        "xoffset": "xoffset",
        "commit": "commit",
        "position": "position",
        "definition": "def",
        "statement": "sql",
    },
    operations={
        "insert": INSERT,
        "update": UPDATE,
        "delete": DELETE,
        _BOOTSTRAP: READ,
        **dict.fromkeys((*_MARKS_OF_BOOTSTRAP, *_STATEMENTS)),
    },
    marks=({"op": TEXT, "after": ROW}, {"op": TEXT, "database": TEXT, "statement": TEXT, "after": NOTHING}),
    type_of=of_sql,
    messages="[messages](formats/maxwell.md) of Maxwell or Flink",
    also_pass="`columns`, unless the batch has the table's DDL; `key`, unless the messages have key names",
    example='{"database":"d","table":"t","type":"insert","ts":1,"xid":1,"xoffset":0,"primary_key_columns":["id"],"data":{"id":1}}',
    time_unit="s",
    delete_in_after=True,
    old_row="changed",
    declared_columns=_declared,
    names_in_key=_names_in_key,
    left_out=_own_rows,
    contradicts=_contradicts,
    position=POSITION,
    positions=_positions,
)
