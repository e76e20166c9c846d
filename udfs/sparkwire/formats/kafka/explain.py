"""``kafka_explain``: log bytes byte by byte, from their layout tables and what the readers find.

    batch[0].crc                 a field of the first entry's header, a batch
    batch[0].record[3].key       of its fourth record
    batch[0].payload             the records of a batch that is compressed, as they are stored …
    batch[0].record[3].key       … and then as they are when decompressed
    message[1].inner[2].crc      of the third message inside of the second entry, a compressed message of magic 0 or 1

The lines of what is decompressed follow the payload's. Their notes begin with "decompressed", and their positions count from the
beginning of the decompressed payload: all other lines, in order, have every byte of the input once. Payloads are decompressed
as long as all together come to no more than ``MOST_INFLATED``.

What `kafka_records` answers as an error is at the place where it arises. A batch whose checksum is wrong is shown all the same,
unless it is compressed.
"""

from __future__ import annotations

import datetime
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa

from sparkwire.column import binary_of
from sparkwire.dump import Dump, Full, Line
from sparkwire.formats.kafka import layout
from sparkwire.formats.kafka.batch_headers import MAGIC_2, UNKNOWN, header_block
from sparkwire.formats.kafka.framing import frame_blocks
from sparkwire.formats.kafka.inflate import MAX_CELL_BYTES, Inflater
from sparkwire.formats.kafka.layout import (
    BATCH,
    BATCH_CODECS,
    CODEC_MASK,
    CODECS,
    CONTROL,
    CONTROL_TYPES,
    DELETE_HORIZON,
    ENTRY,
    LEGACY_CODECS,
    LOG_APPEND_TIME,
    MAGIC,
    MESSAGE_0,
    MESSAGE_1,
    MESSAGE_ENTRY_0,
    MESSAGE_ENTRY_1,
    NO_TIMESTAMP,
    NONE,
    OVERHEAD,
    TIMESTAMP_TYPES,
    TRANSACTIONAL,
)
from sparkwire.formats.kafka.payloads import EVERY_OFFSET, payloads_of
from sparkwire.formats.kafka.records import scan_records
from sparkwire.kernels import Bytes, crc32, crc32c, int64, kernel
from sparkwire.kernels.varint import varlong
from sparkwire.wire import Field, Layout

MOST_INFLATED: Final = 16 << 20
"""what all payloads of a value may become [bytes]"""

_VALUE_SIZE: Final = Field("value_size", "i32", "negative for a null value [bytes]")
_ATTRIBUTES: Final = Field("attributes", "i8", "none in use")
_COLUMNS: Final = ("position", "error")


@kernel
def checksum(data: Bytes, start: int, size: int, is_batch: bool) -> int:
    """What an entry's CRC is computed to be."""
    return int64(crc32c(data, start, size)) if is_batch else int64(crc32(data, start, size))


class _Errors:
    """What `kafka_records` answers: by the position of an entry, which of its rows have which error."""

    def __init__(self, column: pa.Array) -> None:
        records = scan_records(column, max_batch_bytes=MOST_INFLATED, columns=_COLUMNS)
        errors, positions = records.error(), records.position().to_numpy()
        bad = np.flatnonzero(errors.is_valid())
        rows = bad - np.searchsorted(positions, positions[bad])  # the rows of an entry follow each other
        self._by_entry: dict[int, dict[int, str]] = {}
        for at, row in zip(bad.tolist(), rows.tolist(), strict=True):
            self._by_entry.setdefault(int(positions[at]), {})[row] = errors[at].as_py()

    def of(self, position: int) -> dict[int, str]:
        return self._by_entry.get(position, {})


class _Entry:
    """An entry that is being explained."""

    def __init__(self, dump: Dump, path: str, errors: dict[int, str]) -> None:
        self.dump = dump
        self.path = path
        self.errors = errors
        """by row, those that are not yet at their place"""
        self.first = len(dump.lines)

    def blame(self, row: int, field: str, text: str, *codes: str) -> None:
        """Put the error of a row, if it is one of ``codes``, to the line of a field of this entry."""
        if self.errors.get(row) not in codes:
            return
        names = [line.field for line in self.dump.lines[self.first :]]
        at = names.index(f"{self.path}.{field}") if f"{self.path}.{field}" in names else 0
        self.dump.amend(self.first + at, f"{self.errors.pop(row)}: {text}")


def explain(data: bytes) -> list[Line]:
    """Every byte of log bytes."""
    dump = Dump(data)
    try:
        _log(dump, data)
    except Full:
        return dump.end()
    return dump.end()


def explain_message(data: bytes) -> list[Line]:
    """Every byte of one message of magic 0 or 1, from its CRC on; the set in a compressed one is not opened."""
    dump = Dump(data)
    entry = _Entry(dump, "message", {})
    magic = data[MESSAGE_0["magic"].offset] if len(data) > MESSAGE_0["magic"].offset else 0
    found = _header(entry, MESSAGE_1 if magic == 1 else MESSAGE_0)
    _key_and_value(entry, found)
    dump.rest("message.left_over")
    return dump.end()


def _log(dump: Dump, data: bytes) -> None:
    column = pa.array([data], pa.binary())
    source = binary_of(column)
    errors = _Errors(column)
    inflater = Inflater(MOST_INFLATED, MAX_CELL_BYTES)
    blocks = (header_block(source.data, block) for block in frame_blocks(source, True))
    payloads = ((block, payloads_of(source.data, block, EVERY_OFFSET)) for block in blocks)
    inflated, number = 0, 0
    for opened in chain.from_iterable(inflater.opened(source, *found) for found in payloads):
        frames = opened.entries.frames
        for i in range(len(frames.begin)):
            begin, stop, variant = int(frames.begin[i]), int(frames.stop[i]), int(opened.entries.variant[i])
            kind = "batch" if variant == MAGIC_2 else "message" if variant < MAGIC_2 else "entry"
            dump.stop = stop
            entry = _Entry(dump, f"{kind}[{number}]", errors.of(begin))
            payload = None
            if opened.payloads.inflated[i]:
                payload = opened.arena[opened.payloads.first[i] : opened.payloads.last[i]].tobytes()
                inflated += len(payload)
            if not frames.whole[i] or variant == UNKNOWN:
                _damaged(entry, int(frames.reach[i]), bool(frames.whole[i]))
            elif variant == MAGIC_2:
                _batch(entry, payload)
            else:
                _message(entry, variant, payload)
            dump.stop = len(data)
            number += 1
            if inflated > MOST_INFLATED:
                raise Full


# -- entries


def _damaged(entry: _Entry, reach: int, whole: bool) -> None:
    """Bytes that are no whole entry: what of a header can be read, and the rest."""
    dump = entry.dump
    begin, end = dump.at, dump.stop
    dump.stop = begin + min(max(reach, OVERHEAD), end - begin)
    magic = dump.data[begin + MAGIC] if reach > MAGIC else None
    _header(entry, {0: MESSAGE_ENTRY_0, 1: MESSAGE_ENTRY_1, 2: BATCH}.get(magic if magic is not None else -1, ENTRY))
    if magic is not None and dump.at == begin + OVERHEAD:
        dump.take(f"{entry.path}.before_magic", begin + MAGIC - dump.at, None, "as every entry has before its magic")
        dump.number(Field("magic", "i8"), name=f"{entry.path}.magic")
    dump.stop = end
    dump.rest(f"{entry.path}.rest", "up to the next entry" if not whole else None)
    size = int.from_bytes(dump.data[begin + 8 : begin + OVERHEAD], "big", signed=True)
    is_cut = end - begin < OVERHEAD
    says = (
        "the bytes end before a size does"
        if is_cut
        else f"it says {size} bytes, {len(dump.data) - begin - OVERHEAD} are here"
    )
    entry.blame(0, "offset" if is_cut and end - begin < 8 else "size", says, "TRUNCATED")
    entry.blame(0, "size", f"no entry has {size} bytes", "BAD_LENGTH")
    entry.blame(0, "magic", "neither 0, 1 nor 2", "BAD_MAGIC")
    entry.blame(0, "crc", "the bytes that it covers are not those that were written, or size is wrong", "CRC_MISMATCH")


def _header(entry: _Entry, table: Layout) -> dict[str, int]:
    """The fields of a header, as far as they are there."""
    begin = entry.dump.at
    found: dict[str, int] = {}
    for field in table.fields:
        if entry.dump.left <= 0:
            break
        notes = _notes(entry.dump, table, field, begin, found)
        number = entry.dump.number(field, *notes, field.doc, name=f"{entry.path}.{field.name}")
        if number is not None:
            found[field.name] = number
    return found


def _notes(dump: Dump, table: Layout, field: Field, begin: int, found: dict[str, int]) -> list[str | None]:
    """What a field of a header says here."""
    if dump.left < field.width:
        return []
    number = dump.peek(field)
    if field.name == "crc" and dump.stop - begin == OVERHEAD + found.get("size", dump.stop - begin - OVERHEAD):
        first = begin + table["crc"].end
        computed = int(checksum(np.frombuffer(dump.data, np.uint8), first, dump.stop - first, table is BATCH))
        return [f"{'right' if computed == number else 'wrong'}: stored {number}, computed {computed}"]
    if field.name == "attributes":
        return [_bits(number, table)]
    if field.name in ("timestamp", "base_timestamp"):
        return [_time(number)]
    if field.name == "last_offset_delta":
        return [f"offset {found['offset'] + number}"]
    return []


def _bits(attributes: int, table: Layout) -> str:
    """The attribute bits by name."""
    codec = attributes & CODEC_MASK
    names = [CODECS[codec] if codec < (BATCH_CODECS if table is BATCH else LEGACY_CODECS) else f"unknown codec {codec}"]
    if table not in (MESSAGE_ENTRY_0, MESSAGE_0):
        names.append(TIMESTAMP_TYPES[1 if attributes & LOG_APPEND_TIME else 0])
    if table is BATCH:
        flags = {TRANSACTIONAL: "transactional", CONTROL: "control", DELETE_HORIZON: "delete horizon"}
        names += [name for bit, name in flags.items() if attributes & bit]
    return ", ".join(names)


def _time(ms: int) -> str | None:
    if ms == NO_TIMESTAMP:
        return "none"
    try:
        return (datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=ms)).isoformat() + "Z"
    except OverflowError:
        return "outside of the years 1 to 9999"


def _blame_header(entry: _Entry) -> None:
    entry.blame(0, "crc", "the bytes that it covers are not those that were written", "CRC_MISMATCH")
    entry.blame(0, "attributes", "no such codec", "UNKNOWN_CODEC")
    entry.blame(0, "payload", "it is not what its codec writes", "DECOMPRESS_FAILED")
    entry.blame(0, "payload", f"it becomes more than {MOST_INFLATED} bytes, the bound of an explanation", "TOO_LARGE")


# -- batches of magic 2


def _batch(entry: _Entry, payload: bytes | None) -> None:
    dump = entry.dump
    found = _header(entry, BATCH)
    inside = dump
    if found["attributes"] & CODEC_MASK == NONE:
        _records(entry, inside, found)
    elif dump.left:
        codec = _bits(found["attributes"], BATCH).partition(",")[0]
        size = "not decompressed" if payload is None else f"{len(payload)} bytes when decompressed"
        dump.take(f"{entry.path}.payload", dump.left, None, f"{codec}, {size}")
        if payload is not None:
            _records(entry, dump.decompressed(payload), found)
    _blame_header(entry)
    entry.blame(0, "record_count", "a number of records is not negative", "BAD_RECORD")


def _records(entry: _Entry, inside: Dump, found: dict[str, int]) -> None:
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


def _record(entry: _Entry, dump: Dump, name: str, found: dict[str, int]) -> bool:
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


def _bad(entry: _Entry, row: int, at: int, text: str) -> None:
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
    dump.amend(len(dump.lines) - 1, _time(found["timestamp"] if late else found["base_timestamp"] + delta) or "")
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


# -- messages of magic 0 and 1


def _message(entry: _Entry, variant: int, payload: bytes | None) -> None:
    dump = entry.dump
    found = _header(entry, (MESSAGE_ENTRY_0, MESSAGE_ENTRY_1)[variant])
    trouble = _key_and_value(entry, found, payload)
    if payload is not None:
        _inner(entry, dump.decompressed(payload))
    _blame_header(entry)
    entry.blame(0, trouble or "size", "the message ends before what it announces", "BAD_RECORD")


def _key_and_value(entry: _Entry, found: dict[str, int], payload: bytes | None = None) -> str | None:
    """What follows a message's header; which size says more than there is."""
    dump, path = entry.dump, entry.path
    trouble = None
    key_size = found.get("key_size")
    if key_size is None:
        return "key_size"
    if key_size > 0 and dump.left:
        dump.content(f"{path}.key", key_size)
    if key_size > 0 and key_size > dump.left and not dump.left:
        trouble = "key_size"
    value_size = dump.number(_VALUE_SIZE, _VALUE_SIZE.doc, name=f"{path}.value_size")
    if value_size is None:
        dump.rest(f"{path}.rest")
        return trouble or "key_size"
    compressed = found["attributes"] & CODEC_MASK != NONE
    if value_size > dump.left or (compressed and value_size < 0):
        trouble = "value_size"
    if value_size > 0 and compressed:
        size = "not decompressed" if payload is None else f"{len(payload)} bytes when decompressed"
        dump.take(f"{path}.payload", value_size, None, size)
    elif value_size > 0 and dump.left:
        dump.content(f"{path}.value", value_size)
    dump.rest(f"{path}.left_over", "after the value: no error")
    return trouble


def _inner(entry: _Entry, dump: Dump) -> None:
    """The messages of a compressed set."""
    number = 0
    while dump.left:
        begin, end = dump.at, dump.stop
        inner = _Entry(dump, f"{entry.path}.inner[{number}]", entry.errors)
        stated = int.from_bytes(dump.data[begin + 8 : begin + OVERHEAD], "big", signed=True)
        whole = dump.left > MAGIC and layout.LEAST_SIZE <= stated <= dump.left - OVERHEAD
        magic = dump.data[begin + MAGIC] if whole else None
        if whole:
            dump.stop = begin + OVERHEAD + stated
        found = _header(inner, {0: MESSAGE_ENTRY_0, 1: MESSAGE_ENTRY_1}.get(-1 if magic is None else magic, ENTRY))
        trouble = "size"
        if magic in (0, 1):
            trouble = _key_and_value(inner, found) or "size"
        elif whole:
            dump.take(f"{inner.path}.before_magic", begin + MAGIC - dump.at)
            dump.number(Field("magic", "i8"), name=f"{inner.path}.magic")
        dump.rest(f"{inner.path}.rest")
        inner.blame(number, "crc", "the bytes that it covers are not those that were written", "CRC_MISMATCH")
        inner.blame(number, "magic", "a compressed set has messages of magic 0 and 1", "BAD_MAGIC")
        inner.blame(number, trouble, "it contradicts the bytes that are there", "BAD_RECORD")
        dump.stop = end
        number += 1
