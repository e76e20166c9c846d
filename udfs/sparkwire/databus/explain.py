"""``dbus_explain``: an event byte by byte, from its layout tables and the results of the scan.

The lines follow each other as the fields do. A line has the name of the function that returns its field, if there is one. A part
has the lines length, attributes, digest and data. Bytes of no field are a line, too: between a key and the end of its header,
after the parts, after the event. The error of `dbus_error` is at the field where it arises.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import ClassVar, Final

import pyarrow as pa

from sparkwire.base.error_codes import ERRORS, OK
from sparkwire.base.grammar import Struct
from sparkwire.core.dump import Dump, Line
from sparkwire.core.walk import Scope, Walker
from sparkwire.databus import event_fields, event_kernels, layout
from sparkwire.databus.scan import Events

_FLAGS: Final = {
    "trace": (layout.V1_TRACE, layout.V2_TRACE),
    "replicated": (layout.V1_REPLICATED, layout.V2_REPLICATED),
    "metadata": (0, layout.V2_METADATA),
    "payload": (0, layout.V2_PAYLOAD),
}
_NOT_AS_WRITTEN: Final = "the bytes that it covers are not those that were written"


class _EventWalker(Walker):
    """Explains an event, with the results of the scan."""

    PLACES: ClassVar = {
        "BAD_MAGIC": {"magic": "not that of V2", "version": "neither V1 (0) nor V2 (2)"},
        "HEADER_CRC_MISMATCH": {"header_crc": _NOT_AS_WRITTEN},
        "VALUE_CRC_MISMATCH": {"value_crc": _NOT_AS_WRITTEN},
        "BAD_LENGTH": {"length": "{length} bytes end before the key does"},
    }
    SIZE_ERRORS = ("TRUNCATED", "BAD_LENGTH")

    def __init__(self, data: bytes) -> None:
        self.events = Events(pa.array([data], pa.binary()), check=True)
        self.variant = int(self.events.header.variants[0])
        self.is_v2 = self.variant >= layout.V2_BIG
        error = int(self.events.errors[0])
        dump = Dump(data, "little" if event_kernels.is_little(self.variant) else "big")
        super().__init__(dump, {} if error == OK else {0: ERRORS[error]})

    def value_of(self, accessor: Callable[[Events], pa.Array]) -> str | None:
        """The result of an accessor as text."""
        value = accessor(self.events)[0].as_py()
        return None if value is None else str(value)

    def note(self, scope: Scope, name: str, value: int | bytes) -> str | None:
        match name, value:
            case "attributes", int():
                return self._bits(value)
            case "timestamp_nanos", _:
                when = event_fields.timestamp(self.events)[0].as_py()
                return None if when is None else when.astimezone(datetime.UTC).isoformat().replace("+00:00", "Z")
            case "src_id", _:
                return self.value_of(event_fields.event_type)
            case "schema_id", _ if not self.is_v2:
                version = self.value_of(event_fields.schema_version)
                return version and f"read as REPL_DBUS does, schema version {version}"
            case "payload_attributes" | "metadata_attributes" | "key_attributes", int():
                kind = layout.DIGESTS.get(value & layout.DIGEST_MASK)
                return kind and f"{kind}, schema version {value >> 2}"
        return None

    def _bits(self, attributes: int) -> str:
        """The attribute bits by name."""
        key = self.value_of(event_fields.key_type)
        names = [self.value_of(event_fields.opcode) or "no opcode", f"{key} key" if key else "no key"]
        return ", ".join([*names, *(name for name, bits in _FLAGS.items() if attributes & bits[self.is_v2])])


def explain(data: bytes) -> list[Line]:
    """Every byte of one event."""
    walker = _EventWalker(data)
    if walker.variant == layout.NO_VARIANT:
        walker.walk(Struct("event", layout.EVENT_V1.parts[0]))
        walker.dump.rest("rest", "nothing is known of this version")
    else:
        walker.walk(layout.EVENT_V2 if walker.is_v2 else layout.EVENT_V1)
        walker.dump.rest("left_over", "after the event's end: no error")
    return walker.dump.end()
