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
from sparkwire.base.wire import Field, Layout, described
from sparkwire.core.dump import Dump, Line
from sparkwire.core.walk import UNDECIDED
from sparkwire.databus import event_fields, event_kernels, layout
from sparkwire.databus.scan import Events
from sparkwire.kernels.checksums.one_bit import REFLECTED_IEEE

_KEY_SIZE: Final = Field("key_length", "i32", "Length of the key's bytes [bytes]")
_KEY: Final = "key_long"
_DIGESTS: Final = (("MD5", layout.MD5_SIZE), ("CRC-32", layout.CRC32_SIZE))
# A part's length, attributes, digest and data.
_PAYLOAD_PART: Final = ("payload_length", "payload_attributes", "schema_id", "value")
_METADATA_PART: Final = ("metadata_length", "metadata_attributes", "metadata_schema_id", "metadata")
_KEY_PART: Final = ("key_length", "key_attributes", "key_schema_id", "key_bytes")


class _Event:
    """An event that is being explained: its bytes, its lines, and what the scan finds."""

    def __init__(self, data: bytes) -> None:
        self.found = Events(pa.array([data], pa.binary()), check=True)
        self.variant = int(self.found.header.variants[0])
        self.dump = Dump(data, "little" if event_kernels.is_little(self.variant) else "big")
        self.is_v2 = self.variant >= layout.V2_BIG
        self.table: Layout = layout.V2 if self.is_v2 else layout.V1
        self.size = len(data)
        self.length = int(event_kernels.total_length(self.found.data, 0, self.size, self.variant))
        self.header_end = int(event_kernels.header_end(self.found.data, 0, self.size, self.variant))
        self.contradictions: list[int] = []
        """the lines that say what cannot be"""

    def value_of(self, accessor: Callable[[Events], pa.Array]) -> str | None:
        """What an accessor answers, as text."""
        value = accessor(self.found)[0].as_py()
        return None if value is None else str(value)

    def lie(self, at: int, note: str) -> None:
        """Line ``at`` says what cannot be."""
        self.contradictions.append(at)
        self.dump.amend(at, note)


def explain(data: bytes) -> list[Line]:
    """Every byte of one event."""
    shown = _Event(data)
    dump = shown.dump
    if shown.variant == layout.NO_VARIANT:
        dump.number(layout.V1["version"].field, described("version", layout.V1)[1].rstrip("."))
        dump.rest("rest", "nothing is known of this version")
    else:
        _header(shown)
        _key(shown)
        _body(shown)
        dump.rest("left_over", "after the event's end: no error")
    _blame(shown, int(shown.found.errors[0]))
    return dump.end()


def _header(shown: _Event) -> None:
    """The fixed fields before the key."""
    for field in shown.table.fields:
        if field.name != _KEY:
            shown.dump.number(field, *_notes(shown, field))


def _notes(shown: _Event, field: Field) -> list[str | None]:
    """What is to be known of a field: what it means here, then what it is."""
    name = field.name
    here: list[str | None] = []
    if name in ("header_crc", "value_crc"):
        here = [_checksum(shown, 0 if name == "header_crc" else 1)]
    elif name == "attributes":
        here = [_bits(shown)]
    elif name == "timestamp_nanos":
        here = [_time(shown)]
    elif name == "src_id":
        here = [shown.value_of(event_fields.event_type)]
    elif name == "schema_id":
        version = shown.value_of(event_fields.schema_version)
        here = [version and f"read as REPL_DBUS does, schema version {version}"]
    return [*here, described(name, layout.V1, layout.V2)[1].rstrip(".")]


def _checksum(shown: _Event, which: int) -> str | None:
    """What is stored and what is computed."""
    stored = shown.value_of(event_fields.fixed(("header_crc", "value_crc")[which], "").accessor)
    computed = shown.value_of(event_fields.crc_computed(which))
    valid = shown.value_of(event_fields.crc_valid(which))
    if stored is None or computed is None:
        return None
    if valid == "False":
        first, stop = _covered(shown, which)
        shown.dump.mismatch(len(shown.dump.lines), first, stop, REFLECTED_IEEE, int(stored) ^ int(computed))
    verdict = {"True": "right", "False": "wrong"}.get(valid or "", UNDECIDED)
    return f"{verdict}: stored {stored}, computed {computed}"


def _covered(shown: _Event, which: int) -> tuple[int, int]:
    """The bytes of the header's (0) or the value's (1) checksum, from the first one to the one after the last."""
    # What the value's checksum covers begins where the header's ends: in V1 keys of bytes are part of the value.
    border = shown.header_end
    if not shown.is_v2 and int(shown.found.key_types[0]) == layout.BYTES_KEY:
        border = shown.table[_KEY].offset + _KEY_SIZE.width
    if which == 1:
        return border, shown.length
    return shown.table["header_crc"].end, border


def _bits(shown: _Event) -> str | None:
    """The attribute bits by name."""
    attributes = shown.value_of(event_fields.fixed("attributes", "").accessor)
    if attributes is None:
        return None
    key = shown.value_of(event_fields.key_type)
    names = [shown.value_of(event_fields.opcode) or "no opcode", f"{key} key" if key else "no key"]
    flags = {"trace": (layout.V1_TRACE, layout.V2_TRACE), "replicated": (layout.V1_REPLICATED, layout.V2_REPLICATED)}
    flags |= {"metadata": (0, layout.V2_METADATA), "payload": (0, layout.V2_PAYLOAD)}
    return ", ".join([*names, *(name for name, bits in flags.items() if int(attributes) & bits[shown.is_v2])])


def _time(shown: _Event) -> str | None:
    when = event_fields.timestamp(shown.found)[0].as_py()
    return None if when is None else when.astimezone(datetime.UTC).isoformat().replace("+00:00", "Z")


def _key(shown: _Event) -> None:
    dump, kind = shown.dump, int(shown.found.key_types[0])
    if kind == layout.LONG_KEY:
        dump.number(shown.table[_KEY].field, described(_KEY, layout.V1, layout.V2)[1].rstrip("."))
    elif kind == layout.SCHEMA_KEY:
        _part(shown, _KEY_PART, shown.header_end, "header")
    elif kind == layout.BYTES_KEY:
        size = dump.number(_KEY_SIZE, _KEY_SIZE.doc)
        if size is None:
            return
        last, within = (shown.header_end, "header") if shown.is_v2 else (shown.length, "event")
        if size < 0 or dump.at + size > last:
            shown.lie(len(dump.lines) - 1, f"a key of {size} bytes does not end within the {within}")
        if size >= 0 and dump.left:
            dump.content("key_bytes", size, "BYTES")


def _part(shown: _Event, names: tuple[str, str, str, str], last: int, within: str) -> bool:
    """A part, which has to end at ``last``; whether what follows it can be found."""
    dump, at = shown.dump, len(shown.dump.lines)
    size = dump.number(layout.PART.fields[0], layout.PART.fields[0].doc, name=names[0])
    attributes = dump.number(layout.PART.fields[1], layout.PART.fields[1].doc, name=names[1])
    if size is None or attributes is None:
        return False
    kind = attributes & 3
    if kind >= len(_DIGESTS):
        shown.lie(at + 1, f"kind of digest {kind} is unknown")
        return False
    name, digest = _DIGESTS[kind]
    dump.amend(at + 1, f"{name}, schema version {attributes >> 2}")
    if size < 0 or dump.at + digest + size > last:
        shown.lie(at, f"a part of {size} bytes does not end within the {within}")
    if dump.left:
        raw = dump.data[dump.at : dump.at + digest]
        dump.take(names[2], digest, raw.hex() if len(raw) == digest else None, name)
    if dump.left and size >= 0:
        dump.content(names[3], size)
    return size >= 0


def _body(shown: _Event) -> None:
    """What is between the header and the event's end."""
    dump = shown.dump
    if not shown.is_v2:
        header_is_whole = 0 <= shown.header_end <= dump.at
        if header_is_whole and shown.length > dump.at and not shown.contradictions:
            dump.content("value", shown.length - dump.at)
        return
    if shown.header_end > dump.at:
        dump.take("unclaimed", shown.header_end - dump.at, None, "between the key and the end of the header")
    if shown.header_end == dump.at:
        # Parts that would begin inside of the key are not looked for: each byte has one line.
        _parts(shown)
    if shown.length > dump.at and dump.left:
        dump.take("unclaimed", shown.length - dump.at, None, "of no part, within the event's length")


def _parts(shown: _Event) -> None:
    attributes = int(shown.found.header.fields["attributes"][0])
    for bit, names in ((layout.V2_METADATA, _METADATA_PART), (layout.V2_PAYLOAD, _PAYLOAD_PART)):
        if attributes & bit and shown.dump.left and not _part(shown, names, shown.length, "event"):
            return


def _blame(shown: _Event, error: int) -> None:
    """Put the event's error where it arises."""
    if error == OK:
        return
    dump = shown.dump
    if not dump.lines:
        dump.take("event", 0)
    at, text = _place(shown, error)
    dump.amend(at, f"{ERRORS[error]}: {text}")


def _place(shown: _Event, error: int) -> tuple[int, str]:
    """The line at which an error arises, and what it is."""
    fields = [line.field for line in shown.dump.lines]
    if error == BAD_MAGIC:
        known = shown.variant != layout.NO_VARIANT
        return (fields.index("magic"), "not that of V2") if known else (0, "neither V1 (0) nor V2 (2)")
    if error in (HEADER_CRC_MISMATCH, VALUE_CRC_MISMATCH):
        name = "header_crc" if error == HEADER_CRC_MISMATCH else "value_crc"
        return fields.index(name), "the bytes that it covers are not those that were written"
    if error == TRUNCATED:
        if shown.header_end < 0 or shown.size < max(shown.header_end, shown.table[_KEY].offset):
            return len(fields) - 1, "the bytes end within the header"
        return fields.index("length"), f"the event has {shown.length} bytes, {shown.size} are here"
    if shown.is_v2 and not layout.V2_KEY <= shown.header_end <= shown.length:
        return fields.index("header_length"), f"a header ends between {layout.V2_KEY} and the event's end"
    if shown.contradictions:
        return shown.contradictions[0], "it contradicts what is around it"
    return fields.index("length"), f"{shown.length} bytes end before the key does"
