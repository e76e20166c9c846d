"""``dbus_explain``: an event byte by byte, from its layout tables and what the scan finds.

The lines follow each other as the fields do; a line is named by the accessor that answers it, where there is one. A part has
the lines length, attributes, digest and data. Bytes that belong to no field are a line, too: between a key and the end of its
header, after the parts, after the event. What `dbus_error` answers is at the place where it arises.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from sparkwire.base.error_codes import BAD_MAGIC, ERRORS, HEADER_CRC_MISMATCH, OK, TRUNCATED, VALUE_CRC_MISMATCH
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


class _EventWalker(Walker):
    """Explains an event, with what the scan finds."""

    SHOWS_EMPTY = True

    def __init__(self, data: bytes) -> None:
        self.events = Events(pa.array([data], pa.binary()), check=True)
        self.variant = int(self.events.header.variants[0])
        self.is_v2 = self.variant >= layout.V2_BIG
        self.contradictions: list[int] = []
        """the lines that say what cannot be"""
        super().__init__(Dump(data, "little" if event_kernels.is_little(self.variant) else "big"))

    def value_of(self, accessor: Callable[[Events], pa.Array]) -> str | None:
        """What an accessor answers, as text."""
        value = accessor(self.events)[0].as_py()
        return None if value is None else str(value)

    def wrong(self, scope: Scope, line: int, text: str) -> None:
        self.contradictions.append(line)
        super().wrong(scope, line, text)

    def note(self, scope: Scope, name: str, number: int | None) -> str | None:
        match name:
            case "attributes":
                return None if number is None else self._bits(number)
            case "timestamp_nanos":
                when = event_fields.timestamp(self.events)[0].as_py()
                return None if when is None else when.astimezone(datetime.UTC).isoformat().replace("+00:00", "Z")
            case "src_id":
                return self.value_of(event_fields.event_type)
            case "schema_id" if not self.is_v2:
                version = self.value_of(event_fields.schema_version)
                return version and f"read as REPL_DBUS does, schema version {version}"
            case "payload_attributes" | "metadata_attributes" | "key_attributes" if number is not None:
                kind = layout.DIGESTS.get(number & layout.DIGEST_MASK)
                return kind and f"{kind}, schema version {number >> 2}"
        return None

    def _bits(self, attributes: int) -> str:
        """The attribute bits by name."""
        key = self.value_of(event_fields.key_type)
        names = [self.value_of(event_fields.opcode) or "no opcode", f"{key} key" if key else "no key"]
        return ", ".join([*names, *(name for name, bits in _FLAGS.items() if attributes & bits[self.is_v2])])


def explain(data: bytes) -> list[Line]:
    """Every byte of one event."""
    walker = _EventWalker(data)
    dump = walker.dump
    if walker.variant == layout.NO_VARIANT:
        scope = walker.walk(Struct("event", layout.EVENT_V1.parts[0]))
        dump.rest("rest", "nothing is known of this version")
    else:
        scope = walker.walk(layout.EVENT_V2 if walker.is_v2 else layout.EVENT_V1)
        dump.rest("left_over", "after the event's end: no error")
    error = int(walker.events.errors[0])
    if error != OK:
        if not dump.lines:
            dump.take("event", 0)
        at, text = _origin(walker, scope, error)
        dump.amend(at, f"{ERRORS[error]}: {text}")
    return dump.end()


def _origin(walker: _EventWalker, scope: Scope, error: int) -> tuple[int, str]:
    """The line at which an error arises, and what it is."""
    if error == BAD_MAGIC:
        known = walker.variant != layout.NO_VARIANT
        return (scope.lines["magic"], "not that of V2") if known else (0, "neither V1 (0) nor V2 (2)")
    if error in (HEADER_CRC_MISMATCH, VALUE_CRC_MISMATCH):
        name = "header_crc" if error == HEADER_CRC_MISMATCH else "value_crc"
        return scope.lines[name], "the bytes that it covers are not those that were written"
    size, length = len(walker.dump.data), scope.values.get("length", 0)
    header_end = scope.place(("header", "key_long", "key_length"), 1)
    if error == TRUNCATED:
        if size < max(size + 1 if header_end is None else header_end, layout.V2_KEY if walker.is_v2 else layout.V1_KEY):
            return len(walker.dump.lines) - 1, "the bytes end within the header"
        return scope.lines["length"], f"the event has {length} bytes, {size} are here"
    if walker.is_v2 and not layout.V2_KEY <= (header_end or 0) <= length:
        return scope.lines["header_length"], f"a header ends between {layout.V2_KEY} and the event's end"
    if walker.contradictions:
        return walker.contradictions[0], "it contradicts what is around it"
    return scope.lines["length"], f"{length} bytes end before the key does"
