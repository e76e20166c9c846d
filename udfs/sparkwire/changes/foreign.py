"""Name the system of a message, also if it is not of the requested format: then its error says what to do.

The declaration of a supported system recognizes its messages. A few other systems are here only for their names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import BAD_JSON, ERRORS, WRONG_FORMAT
from sparkwire.changes.declarations import SYSTEMS
from sparkwire.changes.systems import ANYTHING, NUMBER, ROW, TEXT, Fields, Marks, System
from sparkwire.core.column import bools_of, from_codes, primitive
from sparkwire.debezium.layout import NEW_VALUES, OPERATIONS, WITH_CELLS
from sparkwire.json.grammar import ARRAY
from sparkwire.json.types import type_of
from sparkwire.kernels import Bools, Ints

_PEEKED: Final = 64  # [bytes]
_DEBEZIUM: Final = "debezium"


class Known(NamedTuple):
    """A kind of message, and the advice for it."""

    system: System
    """without a name if it is not supported"""
    advice: str

    @property
    def marks(self) -> tuple[Marks, ...]:
        return self.system.certain_marks or self.system.marks


def _supported(system: System) -> Known:
    return Known(system, f"{system.title}: pass format='{system.name}'")


def _unsupported(advice: str, fields: Mapping[str, str], *marks: Marks, ops: Collection[str] = ()) -> Known:
    return Known(System("", "", fields, dict.fromkeys(ops), marks, type_of), advice)


def _debezium(title: str, marks: Marks, fields: Mapping[str, str]) -> Known:
    """Messages of Debezium, which no declaration reads."""
    operations = {operation.op: operation.name for operation in OPERATIONS}
    return _supported(System(_DEBEZIUM, title, fields, operations, (marks,), type_of))


def _envelope(prefix: str) -> Mapping[str, str]:
    source = f"{prefix}source"
    return {
        "op": f"{prefix}op",
        "after": f"{prefix}after",
        "before": f"{prefix}before",
        "source": source,
        "database": f"{source}.db",
        "schema": f"{source}.schema",
        "table": f"{source}.table",
        "time": f"{source}.ts_ms",
        "transaction": f"{prefix}transaction.id",
    }


_MARKS_OF_OTHERS: Final = {
    "_fivetran_deleted": "Fivetran",
    "_change_type": "Delta's change data feed",
    "_CHANGE_TYPE": "BigQuery",
    "METADATA$ACTION": "Snowflake's streams",
    "__$operation": "SQL Server's change tables",
    "_ab_cdc_deleted_at": "Airbyte",
    "_sdc_deleted_at": "Singer",
    "_PEERDB_IS_DELETED": "PeerDB",
    "_peerdb_is_deleted": "PeerDB",
    "__hevo__marked_deleted": "Hevo",
}
"""members of other systems' rows that say whether a row exists"""
_OPERATIONS_OF_OTHERS: Final = ("Op", "op", "_op", "op_type", "opType", "operation", "operation_type", "eventName")
"""members of many systems' rows with one of `_WORDS`"""
_WORDS: Final = tuple(
    form
    for word in ("I", "U", "D", "T", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REMOVE", "MODIFY", "UPSERT")
    for form in ((word, word.lower(), word.capitalize()) if len(word) > 1 else (word,))
)

_KNOWN: Final = (
    *(
        _unsupported(
            "Debezium's MongoDB connector is not supported",
            {"op": f"{prefix}op", "collection": f"{prefix}source.collection"},
            {"op": TEXT, "collection": TEXT},
        )
        for prefix in ("", "payload.")
    ),
    *(
        _unsupported(
            "Spanner's NEW_VALUES do not show which columns an update changes: create the change stream with NEW_ROW",
            {"op": path},
            {"op": TEXT},
            ops=[NEW_VALUES],
        )
        for path in ("source.value_capture_type", "payload.source.value_capture_type", "iodebeziumvaluecapturetype")
    ),
    *(
        _unsupported(
            'columns of this connector that are objects, such as {"value": 1}, are not supported',
            {"op": f"{prefix}source.connector"},
            {"op": TEXT},
            ops=WITH_CELLS,
        )
        for prefix in ("", "payload.")
    ),
    *(_debezium("Debezium", {"op": TEXT, "source": ROW}, _envelope(prefix)) for prefix in ("", "payload.")),
    *map(_supported, SYSTEMS.values()),
    _debezium(
        "CloudEvents of Debezium",
        {"specversion": TEXT, "op": TEXT},
        {
            "specversion": "specversion",
            "op": "iodebeziumop",
            "after": "data.after",
            "before": "data.before",
            "database": "iodebeziumdb",
            "schema": "iodebeziumschema",
            "table": "iodebeziumtable",
            "transaction": "iodebeziumtxid",
        },
    ),
    _unsupported(
        "CloudEvents of another source than Debezium are not supported",
        {"version": "specversion", "type": "type"},
        {"version": TEXT, "type": TEXT},
    ),
    _unsupported(
        "CloudEvents with Avro data are not supported: set data.serializer.type=json",
        {"version": "specversion", "op": "iodebeziumop", "data": "data"},
        {"version": TEXT, "op": TEXT, "data": TEXT},
    ),
    _unsupported(
        "TiCDC's simple protocol is not supported: use its protocol debezium or canal-json",
        {"type": "type", "table": "table", "commit": "commitTs"},
        {"type": TEXT, "table": TEXT, "commit": NUMBER},
    ),
    _unsupported(
        "wal2json's format version 1 is not supported: set its option format-version=2",
        {"change": "change"},
        {"change": (ARRAY,)},
    ),
    _unsupported(
        "a change stream of MongoDB is not supported",
        {"op": "operationType", "ns": "ns", "id": "_id"},
        {"op": TEXT, "ns": ROW},
        {"op": TEXT, "id": ROW},
    ),
    *(
        _unsupported(
            f"rows of {title} are not supported: their member {name} says what happened to the row",
            {"op": name},
            {"op": ANYTHING},
        )
        for name, title in _MARKS_OF_OTHERS.items()
    ),
    *(
        _unsupported(
            f"the member {name} says what happened to the row, in an unknown form. If it is a column, name it in columns",
            {"op": name},
            {"op": TEXT},
            ops=_WORDS,
        )
        for name in _OPERATIONS_OF_OTHERS
    ),
)


def explained(errors: Ints, column: pa.Array, format: str) -> pa.Array:
    """The texts of errors: a code, and after `WRONG_FORMAT` what the message looks like, if that is clear."""
    texts = from_codes(np.asarray(errors).astype(np.int8), ERRORS)
    rows = np.flatnonzero((errors == WRONG_FORMAT) | (errors == BAD_JSON))
    if not len(rows):
        return texts
    reasons = advice(column.take(primitive(rows)), format)
    named = [
        text if reason is None else f"{ERRORS[WRONG_FORMAT]}: {reason}"
        for text, reason in zip(texts.take(primitive(rows)).to_pylist(), reasons, strict=True)
    ]
    places = np.arange(len(texts))
    places[rows] = len(texts) + np.arange(len(rows))
    return pa.concat_arrays([texts, pa.array(named, pa.string())]).take(primitive(places))


def advice(column: pa.Array, format: str) -> list[str | None]:
    """What each message looks like; None if that is not clear."""
    found: list[str | None] = [_of_bytes(value) for value in _starts(column)]
    open_rows = [k for k, reason in enumerate(found) if reason is None]
    if open_rows:
        others = kinds_of(column.take(primitive(np.array(open_rows))), format)
        for row, known in zip(open_rows, others, strict=True):
            found[row] = None if known is None else known.advice
    return found


def kinds_of(column: pa.Array, format: str = "") -> list[Known | None]:
    """The kind of each message, except those of a format; None if it is not clear."""
    kinds: list[Known | None] = [None] * len(column)
    recognition = _Recognition(column)
    for known in _KNOWN:
        if not format or known.system.name != format:
            for row in np.flatnonzero(recognition.of(known)).tolist():
                kinds[row] = kinds[row] or known
    return kinds


def is_foreign(column: pa.Array, format: str, columns: Collection[str]) -> Bools:
    """Which messages are of a known system other than that of the format. Members that are columns of the table prove nothing."""
    recognition = _Recognition(column, columns)
    others = [recognition.of(known) for known in _KNOWN if known.system.name != format]
    foreign: Bools = np.logical_or.reduce(others)
    return foreign


def _paths(known: Known) -> set[str]:
    return {path for marks in known.marks for role in ("op", *marks) for path in known.system.paths(role)[:1]}


_MARKS: Final = System("", "", {path: path for known in _KNOWN for path in sorted(_paths(known))}, {}, (), type_of)
"""the values that identify the system of a message, each with its path as its role"""


class _Recognition:
    """One scan of messages for the marks of all systems."""

    def __init__(self, messages: pa.Array, columns: Collection[str] = ()) -> None:
        self._columns = frozenset(columns)
        self._fields = Fields(_MARKS, messages)
        self._intact = self._fields.documents.intact & self._fields.valid

    def of(self, known: Known) -> Bools:
        """Which messages have the marks of a system, and one of its operations."""
        fields, system = self._fields, known.system
        recognized = np.zeros(len(self._intact), np.bool_)
        for marks in known.marks:
            if {system.paths(role)[0].partition(".")[0] for role in marks} <= self._columns:
                continue
            each = [np.isin(fields.value(system.paths(role)[0]).kinds, kinds) for role, kinds in marks.items()]
            recognized |= np.logical_and.reduce(each)
        recognized &= self._intact
        if system.operations and recognized.any():
            is_op = pc.is_in(fields.texts(system.paths("op")[0]), pa.array(list(system.operations)))
            recognized &= bools_of(is_op.fill_null(False))
        return recognized


def _starts(column: pa.Array) -> list[bytes]:
    binary = column.cast(pa.binary()) if pa.types.is_string(column.type) else column
    return [b"" if value is None else value[:_PEEKED] for value in binary.to_pylist()]


def _of_bytes(start: bytes) -> str | None:
    """What the first bytes show of a value that is not JSON."""
    if start[:1] == b"\0" and len(start) > 5 and start[5:6] != b"{":
        return "the wire format of a schema registry, with Avro or Protobuf: pass schemas"
    if start.startswith(b"\x10\x01\x18\x07"):
        return "Canal's Protobuf messages are not supported: set canal.mq.flatMessage=true"
    if start.startswith(b"Struct{"):
        return "text of Connect's StringConverter is not supported: use JsonConverter"
    return None
