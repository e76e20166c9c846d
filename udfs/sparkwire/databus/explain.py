"""``dbus_explain``: an event byte by byte, from its layout tables and the results of the scan.

A line has the name of the function that returns its field, if there is one. Bytes of no field are a line, too: between a key and
the end of its header, after the parts, after the event. The error of `dbus_error` is at the field where it arises.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import pyarrow as pa

from sparkwire.base.error_codes import OK
from sparkwire.base.grammar import Sized, Struct
from sparkwire.core.builders import columns_of
from sparkwire.core.explain import Explained, Scope, Walker, time_of
from sparkwire.databus import layout
from sparkwire.databus.event_fields import FIELDS
from sparkwire.databus.scan import Events
from sparkwire.databus.stream import Stream

_FLAGS: Final = {
    "trace": (layout.V1_TRACE, layout.V2_TRACE),
    "replicated": (layout.V1_REPLICATED, layout.V2_REPLICATED),
    "metadata": (0, layout.V2_METADATA),
    "payload": (0, layout.V2_PAYLOAD),
}
_NOTED: Final = ("version", "byte_order", "error", "event_type", "schema_version", "opcode", "key_type")
_COLUMNS: Final = [column for column in FIELDS if column.name in _NOTED]
_UNKNOWN: Final = Struct(
    "event", layout.EVENT_V1.parts[0], Sized("rest", doc="nothing is known of this version", opaque=True)
)
_NOT_AS_WRITTEN: Final = "the bytes that it covers are not those that were written"


class _EventWalker(Walker):
    PLACES: ClassVar = {
        "BAD_MAGIC": {"magic": "not that of V2", "version": "neither V1 (0) nor V2 (2)"},
        "HEADER_CRC_MISMATCH": {"header_crc": _NOT_AS_WRITTEN},
        "VALUE_CRC_MISMATCH": {"value_crc": _NOT_AS_WRITTEN},
        "BAD_LENGTH": {"length": "{value} bytes end before the key does"},
    }
    SIZE_ERRORS = ("TRUNCATED", "BAD_LENGTH")
    after = ("left_over", "after the event's end: no error")
    event: dict[str, Any]
    """what the functions of the current event return, as far as notes and errors need it"""

    def walk_event(self, stop: int, path: str = "") -> None:
        """Write the lines of the next event."""
        events = Events(pa.array([self.data[self.at : stop]], pa.binary()), check=True)
        self.event = {name: column[0].as_py() for name, column in columns_of(events, _COLUMNS).items()}
        order, table = self.event["byte_order"], layout.EVENT_V2 if self.is_v2 else layout.EVENT_V1
        self.order = "little" if order == layout.BYTE_ORDERS[1] else "big"
        self.walk(table if order else _UNKNOWN, path, [self.event["error"]], stop)

    @property
    def is_v2(self) -> bool:
        return bool(self.event["version"] == 2)

    def note(self, scope: Scope, name: str, value: int | bytes) -> str | None:
        match name, value:
            case "attributes", int():
                opcode, key = self.event["opcode"], self.event["key_type"]
                flags = [name for name, bits in _FLAGS.items() if value & bits[self.is_v2]]
                return ", ".join([opcode or "no opcode", f"{key} key" if key else "no key", *flags])
            case "timestamp_nanos", int():
                return time_of(value // 1000)
            case "src_id", _:
                return str(self.event["event_type"])
            case "schema_id", _ if not self.is_v2:
                return f"read as REPL_DBUS does, schema version {self.event['schema_version']}"
            case "payload_attributes" | "metadata_attributes" | "key_attributes", int():
                kind = layout.DIGESTS.get(value & layout.DIGEST_MASK)
                return kind and f"{kind}, schema version {value >> 2}"
        return None


def explain(data: bytes) -> Explained:
    """Every byte of one event."""
    walker = _EventWalker(data)
    walker.walk_event(len(data))
    version, order = "V2" if walker.is_v2 else "V1", walker.event["byte_order"]
    return Explained(f"an event of Databus, {version}, {order}", walker.lines)


def explain_stream(data: bytes) -> Explained:
    """Every byte of one event, or of the events of a stream, with their positions in the stream."""
    rows, walker = Stream(pa.array([data], pa.binary())).rows, _EventWalker(data)
    if len(rows.sizes) < 2 or not (rows.errors == OK).any():
        return explain(data)
    for number, stop in enumerate((rows.positions + rows.sizes).tolist()):
        walker.walk_event(stop, f"event[{number}]")
    return Explained("events of Databus", walker.lines)
