"""Parsing: from entries and their payloads to columns of records, one pass, no object per record.

Parsers append to ``RecordColumns`` and count in ``used``; room has been made for the most that the bytes allow. What a
parser does not finish it does not count, so the next one overwrites it.
"""

from __future__ import annotations

from sparkwire.errors import BAD_RECORD, OK
from sparkwire.formats.kafka.batch_headers import MAGIC_0, MAGIC_1, MAGIC_2, Fields
from sparkwire.formats.kafka.columns import (
    HAS_OFFSET,
    HAS_TIME,
    HEADER_KEY_BYTES,
    HEADER_VALUE_BYTES,
    HEADERS,
    KEY_BYTES,
    RECORDS,
    VALUE_BYTES,
    GrowingColumns,
    RecordColumns,
    Wanted,
)
from sparkwire.formats.kafka.inflate import Opened
from sparkwire.formats.kafka.layout import (
    BATCH,
    LEAST_SIZE,
    LOG_APPEND_TIME,
    MAGIC,
    MESSAGE_ENTRY_1,
    NO_TIMESTAMP,
    NONE,
    OVERHEAD,
    SMALLEST_RECORD,
)
from sparkwire.formats.kafka.parse_batch import SMALLEST_HEADER, Batch, parse_batch
from sparkwire.formats.kafka.parse_messages import NO_CODE, append_row, parse_message, parse_wrapper
from sparkwire.kernels import Bytes, int64, kernel

_BATCH_ATTRIBUTES_END = BATCH["attributes"].end
_ATTRIBUTES_END = MESSAGE_ENTRY_1["attributes"].end
_TIMESTAMP_END = MESSAGE_ENTRY_1["timestamp"].end


def parse_records(data: Bytes, opened: Opened, verify: bool, wanted: Wanted, growing: GrowingColumns) -> None:
    """Append the records of opened entries."""
    begins = opened.entries.frames.begin
    start = 0
    payload, records = most_of(opened, 0, len(begins))
    more = {RECORDS: records + 1, KEY_BYTES: payload * wanted.key, VALUE_BYTES: payload * wanted.value}
    while True:
        growing.make_room(more, int(begins[start]))
        start = parse_entries(data, opened, verify, wanted, growing.columns, start)
        if start == len(begins):
            return
        payload, _ = most_of(opened, start, start + 1)
        more = {HEADERS: payload // SMALLEST_HEADER + 2, HEADER_KEY_BYTES: payload, HEADER_VALUE_BYTES: payload}


@kernel
def most_of(opened: Opened, start: int, stop: int) -> tuple[int, int]:
    """How many bytes there are to parse, and how many records and error rows they can give at most."""
    entries, payloads, _ = opened
    total = records = int64(0)
    for i in range(start, stop):
        size = payloads.last[i] - payloads.first[i]
        if entries.frames.error[i] == OK and entries.variant[i] == MAGIC_2:
            records += min(int64(entries.fields.record_count[i]), size // SMALLEST_RECORD)
        elif payloads.codec[i] != NONE:
            records += size // (OVERHEAD + LEAST_SIZE)
        records += 1
        total += size
    return total, records


@kernel
def parse_entries(data: Bytes, opened: Opened, verify: bool, wanted: Wanted, out: RecordColumns, start: int) -> int:
    """Append the records of the entries from ``start`` on, and say of each how many rows it became.

    Returns up to where entries were parsed: not all where the next has more headers than there is room for.
    """
    entries, payloads, arena = opened
    frames, fields = entries.frames, entries.fields
    for i in range(start, frames.begin.size):
        before = out.used[RECORDS]
        first, last = payloads.first[i], payloads.last[i]
        source = arena if payloads.inflated[i] else data
        magic = entries.variant[i]
        time_type = _timestamp_type(magic, fields.attributes[i])
        if payloads.skipped[i]:
            pass
        elif frames.error[i] != OK:
            append_error(fields, i, magic, frames.reach[i], frames.error[i], out)
        elif magic == MAGIC_2:
            batch = Batch(
                fields.offset[i],
                fields.timestamp[i] if time_type else fields.base_timestamp[i],
                int64(fields.attributes[i]),
                int64(fields.base_sequence[i]),
                int64(fields.record_count[i]),
            )
            if not parse_batch(source, first, last, batch, wanted, out):
                return i
        elif payloads.codec[i] == NONE:
            parse_message(source, first, last, fields.offset[i], time_type, fields.timestamp[i], True, wanted, out)
        elif not parse_wrapper(
            source, first, last, fields.offset[i], magic == MAGIC_1, time_type, fields.timestamp[i], verify, wanted, out
        ):
            append_error(fields, i, magic, frames.reach[i], BAD_RECORD, out)
        payloads.rows[i] = out.used[RECORDS] - before
    return frames.begin.size


@kernel
def _timestamp_type(magic: int, attributes: int) -> int:
    if magic == MAGIC_0:
        return NO_CODE
    return 1 if attributes & LOG_APPEND_TIME else 0


@kernel
def append_error(fields: Fields, i: int, magic: int, reach: int, error: int, out: RecordColumns) -> None:
    """One row for an entry that cannot be read: the reason, and what of its header tells of a record."""
    present = HAS_OFFSET if reach > MAGIC else 0
    time_type = NO_CODE
    timestamp = int64(NO_TIMESTAMP)
    if (magic == MAGIC_2 and reach >= _BATCH_ATTRIBUTES_END) or (magic == MAGIC_1 and reach >= _ATTRIBUTES_END):
        time_type = _timestamp_type(magic, fields.attributes[i])
    if magic == MAGIC_1 and reach >= _TIMESTAMP_END:
        timestamp = fields.timestamp[i]
        present |= HAS_TIME
    append_row(fields.offset[i], timestamp, time_type, error, present, out)
