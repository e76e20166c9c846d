"""The records of a batch, line by line."""

from __future__ import annotations

from typing import Final

from sparkwire.base.wire import Field
from sparkwire.core.dump import Dump
from sparkwire.kafka.explain_entry import ExplainedEntry, bits, blame_header, header, time_of
from sparkwire.kafka.layout import BATCH, CODEC_MASK, CONTROL, CONTROL_TYPES, LOG_APPEND_TIME, NONE
from sparkwire.kernels.varint import varlong

_ATTRIBUTES: Final = Field("attributes", "i8", "none in use")


def batch(entry: ExplainedEntry, payload: bytes | None) -> None:
    dump = entry.dump
    found = header(entry, BATCH)
    inside = dump
    if found["attributes"] & CODEC_MASK == NONE:
        _records(entry, inside, found)
    elif dump.left:
        codec = bits(found["attributes"], BATCH).partition(",")[0]
        size = "not decompressed" if payload is None else f"{len(payload)} bytes when decompressed"
        dump.take(f"{entry.path}.payload", dump.left, None, f"{codec}, {size}")
        if payload is not None:
            _records(entry, dump.decompressed(payload), found)
    blame_header(entry)
    entry.blame(0, "record_count", "a number of records is not negative", "BAD_RECORD")


def _records(entry: ExplainedEntry, inside: Dump, found: dict[str, int]) -> None:
    """The records of a batch, up to one that cannot be read."""
    count = found["record_count"]
    bad = min(entry.errors) if set(entry.errors.values()) == {"BAD_RECORD"} else None
    number = 0
    while number < count and inside.left and _record(entry, inside, f"record[{number}]", found):
        number += 1
    if bad is not None and 0 <= bad < count and entry.errors:
        at = f"record[{bad}].length"
        entry.blame(bad, at if bad < number else "record_count", _mismatch(inside, count, number), "BAD_RECORD")
    inside.rest(f"{entry.path}.left_over", "after the last record")


def _mismatch(inside: Dump, count: int, number: int) -> str:
    if number < count:
        return f"the bytes end after {number} of {count} records"
    return f"it is the last of {count} records, and {inside.left} bytes are left after it"


def _record(entry: ExplainedEntry, dump: Dump, name: str, found: dict[str, int]) -> bool:
    """One record; whether the next can be read."""
    path, end = f"{entry.path}.{name}", dump.stop
    row = int(name[7:-1])
    first = len(dump.lines)
    size = dump.varint(f"{path}.length", "of what follows [bytes]")
    if size is None or not 0 <= size <= dump.left:
        if size is None:
            dump.take(f"{path}.length", dump.left, None, "no varint")
        _bad(entry, row, first, f"a record of {size} bytes, {dump.left} are left" if size is not None else "no varint")
        return False
    dump.stop = dump.at + size
    trouble = _inside_record(dump, path, found)
    if trouble is None and dump.left:
        trouble = f"{dump.left} bytes are left in the record"
    if trouble is not None:
        _bad(entry, row, len(dump.lines) - 1, trouble)
        dump.rest(f"{path}.rest")
    dump.stop = end
    return trouble is None


def _bad(entry: ExplainedEntry, row: int, at: int, text: str) -> None:
    if entry.errors.get(row) == "BAD_RECORD":
        text = f"{entry.errors.pop(row)}: {text}"
    entry.dump.amend(at, text)


def _inside_record(dump: Dump, path: str, found: dict[str, int]) -> str | None:
    """The fields of a record after its length; what is wrong."""
    if dump.left == 0:
        return "it has no attributes"
    dump.number(_ATTRIBUTES, _ATTRIBUTES.doc, name=f"{path}.attributes")
    delta = dump.varint(f"{path}.timestamp_delta", "from base_timestamp [ms]", read=varlong)
    if delta is None:
        return "no timestamp_delta"
    late = found["attributes"] & LOG_APPEND_TIME
    dump.amend(len(dump.lines) - 1, time_of(found["timestamp"] if late else found["base_timestamp"] + delta) or "")
    offset = dump.varint(f"{path}.offset_delta", "from base_offset")
    if offset is None:
        return "no offset_delta"
    dump.amend(len(dump.lines) - 1, f"offset {found['offset'] + offset}")
    control = found["attributes"] & CONTROL
    trouble = _sized(dump, path, "key", control=bool(control)) or _sized(dump, path, "value")
    return trouble or _headers(dump, path)


def _sized(dump: Dump, path: str, name: str, control: bool = False) -> str | None:
    """A size and so many bytes."""
    size = dump.varint(f"{path}.{name}_size", "-1 for null [bytes]")
    if size is None:
        return f"no {name}_size"
    if size > dump.left:
        return f"a {name} of {size} bytes, {dump.left} are left"
    if size > 0:
        raw = dump.data[dump.at : dump.at + size]
        dump.content(f"{path}.{name}", size, _control(raw) if control else None)
    return None


def _control(key: bytes) -> str | None:
    """What a control record's key says."""
    if len(key) < 4:
        return None
    type = int.from_bytes(key[2:4], "big", signed=True)
    return CONTROL_TYPES[type] if 0 <= type < len(CONTROL_TYPES) - 1 else CONTROL_TYPES[-1]


def _headers(dump: Dump, path: str) -> str | None:
    count = dump.varint(f"{path}.header_count", "headers that follow")
    if count is None or count < 0:
        return "no header_count" if count is None else f"{count} headers"
    for number in range(count):
        if dump.left == 0:
            return f"the record ends after {number} of {count} headers"
        here = f"{path}.header[{number}]"
        size = dump.varint(f"{here}.key_size", "[bytes]")
        if size is None or not 0 <= size <= dump.left:
            return "no header's key_size" if size is None else f"a header's key of {size} bytes, {dump.left} are left"
        if size:
            dump.content(f"{here}.key", size)
        trouble = _sized(dump, here, "value")
        if trouble:
            return trouble
    return None
