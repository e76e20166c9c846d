"""Name the system of a message that is not of the requested format, so that its error says what to do.

Each supported system is recognized by its declaration. A few other systems are known here, only to be named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import BAD_JSON, ERRORS, WRONG_FORMAT
from sparkwire.changes.canal import CANAL
from sparkwire.changes.maxwell import MAXWELL
from sparkwire.changes.ogg import OGG
from sparkwire.changes.systems import NUMBER, ROW, TEXT, Fields, Marks, System
from sparkwire.core.column import bools_of, from_codes, primitive
from sparkwire.json.mysql_types import of_sql
from sparkwire.kernels import Bools, Ints

SYSTEMS: Final = {system.name: system for system in (CANAL, MAXWELL, OGG)}
_PEEKED: Final = 64  # [bytes]


class Known(NamedTuple):
    """A kind of message, and the advice for it."""

    advice: str
    fields: Mapping[str, str]
    marks: tuple[Marks, ...]
    format: str = ""
    operations: tuple[str, ...] = ()
    """values of ``op``; any if empty"""


def _supported(system: System) -> Known:
    operations = tuple(system.operations)
    return Known(f"{system.title}: pass format='{system.name}'", system.fields, system.marks, system.name, operations)


_KNOWN: Final = (
    Known(
        "Debezium's MongoDB connector is not supported",
        {"op": "op", "connector": "source.connector", "collection": "source.collection"},
        ({"op": TEXT, "collection": TEXT},),
    ),
    Known(
        "Debezium's MongoDB connector is not supported",
        {"op": "payload.op", "collection": "payload.source.collection"},
        ({"op": TEXT, "collection": TEXT},),
    ),
    Known(
        "Debezium: pass format='debezium'", {"op": "op", "source": "source"}, ({"op": TEXT, "source": ROW},), "debezium"
    ),
    Known(
        "Debezium: pass format='debezium'",
        {"op": "payload.op", "source": "payload.source"},
        ({"op": TEXT, "source": ROW},),
        "debezium",
    ),
    Known(
        "DataHub: pass format='datahub'",
        {"op": "payload.op", "timestamp": "payload.timestamp", "source": "schema.source"},
        ({"op": TEXT, "timestamp": ROW}, {"op": TEXT, "source": ROW}),
        "datahub",
    ),
    *map(_supported, SYSTEMS.values()),
    Known(
        "CloudEvents of Debezium: pass format='debezium'",
        {"specversion": "specversion", "op": "iodebeziumop"},
        ({"specversion": TEXT, "op": TEXT},),
        "debezium",
    ),
    Known(
        "CloudEvents of another source than Debezium are not supported",
        {"version": "specversion", "type": "type"},
        ({"version": TEXT, "type": TEXT},),
    ),
    Known(
        "CloudEvents with Avro data are not supported: set data.serializer.type=json",
        {"version": "specversion", "op": "iodebeziumop", "data": "data"},
        ({"version": TEXT, "op": TEXT, "data": TEXT},),
    ),
    Known(
        "TiCDC's simple protocol is not supported: use its protocol debezium or canal-json",
        {"type": "type", "table": "table", "commit": "commitTs"},
        ({"type": TEXT, "table": TEXT, "commit": NUMBER},),
    ),
    Known(
        "AWS DMS is not supported",
        {"data": "data", "operation": "metadata.operation"},
        ({"data": ROW, "operation": TEXT}, {"operation": TEXT}),
    ),
    Known(
        "a change stream of MongoDB is not supported",
        {"op": "operationType", "ns": "ns", "id": "_id"},
        ({"op": TEXT, "ns": ROW}, {"op": TEXT, "id": ROW}),
    ),
)


ROLES: Final = frozenset(path.partition(".")[0] for known in _KNOWN for path in known.fields.values())
"""the members by which messages are recognized"""


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
        messages = column.take(primitive(np.array(open_rows)))
        for known in _KNOWN:
            if known.format == format and format:
                continue
            for k in np.flatnonzero(_is(messages, known)).tolist():
                found[open_rows[k]] = found[open_rows[k]] or known.advice
    return found


def is_foreign(column: pa.Array, format: str) -> Bools:
    """Which messages are of a known system other than that of the format."""
    foreign = np.zeros(len(column), np.bool_)
    for known in _KNOWN:
        if known.format != format or not format:
            foreign |= _is(column, known)
    return foreign


def _is(messages: pa.Array, known: Known) -> Bools:
    fields = Fields(_as_system(known), messages)
    recognized = fields.recognized & fields.documents.intact
    if known.operations and recognized.any():
        is_op = pc.is_in(fields.texts("op"), pa.array(known.operations))
        recognized &= bools_of(is_op.fill_null(False))
    return recognized


def _as_system(known: Known) -> System:
    """Enough of a declaration to recognize messages."""
    return System(known.format, known.advice, known.fields, {}, known.marks, of_sql)


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
