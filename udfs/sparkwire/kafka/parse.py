"""Parse entries and their payloads to columns of records, in one pass and without an object per record.

Parsers append to ``RecordColumns`` and count in ``used``. The caller makes room for the largest number of records that the bytes
allow. If a parser does not finish an entry, it does not count its rows, so the next parser overwrites them.

While nothing is compressed, one kernel does all steps from `framing` on, a cacheful at a time. So it parses bytes while the
checksum has them in the cache. A Python call between the steps would take longer than parsing a cacheful.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.base.error_codes import BAD_MAGIC, BAD_RECORD, CRC_MISMATCH, OK
from sparkwire.core.column import Binary, arrays, part
from sparkwire.kafka import layout
from sparkwire.kafka.batch_headers import (
    MAGIC_0,
    MAGIC_1,
    MAGIC_2,
    HeaderBlock,
    HeaderFields,
    header_room,
    read_headers,
)
from sparkwire.kafka.entry_payloads import EntryPayloads, OffsetRange, locate
from sparkwire.kafka.framing import BLOCK_ENTRIES, POSITION, FrameBlock, Framing, find_entries
from sparkwire.kafka.inflate import Inflater, ParserInput
from sparkwire.kafka.messages import COVERED, NOWHERE, read_message, walk_set
from sparkwire.kafka.parse_batch import BatchDefaults, parse_batch
from sparkwire.kafka.record_columns import (
    HAS_KEY,
    HAS_OFFSET,
    HAS_TIME,
    HAS_VALUE,
    HEADER_KEY_BYTES,
    HEADER_VALUE_BYTES,
    HEADERS,
    KEY_BYTES,
    NO_CODE,
    RECORDS,
    VALUE_BYTES,
    GrowingColumns,
    RecordColumns,
    SelectedColumns,
    append_row,
)
from sparkwire.kafka.search import matches_pattern
from sparkwire.kernels import COPY_SLACK, Bytes, copy, crc32, i32, i64, int64, kernel

RowsOfEntries = npt.NDArray[np.int32]

CACHEFUL = 1 << 18  # [bytes] log bytes of this size and their records stay in the L2 cache
_FEW_ENTRIES = 1 << 11  # most columns have fewer entries, so the first block has room for this many
_OPENED = 16  # [cachefuls] processed at a time if entries are compressed, to amortize the overhead of Python
_FIRST = 4  # the first part is smaller by this factor; it serves to estimate the size of the result

_SIZE = layout.ENTRY["size"].offset
_BATCH_ATTRIBUTES_END = layout.BATCH["attributes"].end
_ATTRIBUTES_END = layout.MESSAGE_ENTRY_1["attributes"].end
_TIMESTAMP_END = layout.MESSAGE_ENTRY_1["timestamp"].end


class EntryTime(NamedTuple):
    """The timestamp of an entry, and its type. With log append time, all messages of the entry have it."""

    type: int
    timestamp: int


def parse_log(
    source: Binary,
    framing: Framing,
    verify: bool,
    inflater: Inflater,
    selected: SelectedColumns,
    offsets: OffsetRange,
    growing: GrowingColumns,
    piece: int,
) -> Iterator[tuple[HeaderBlock, RowsOfEntries]]:
    """Append the records of all entries to ``growing``. Yield blocks of entries, with the number of rows of each entry.

    A block has up to ``piece`` bytes of records, or a single larger entry.
    """
    data, most = source.data, _FEW_ENTRIES
    while room := min(framing.most_entries, most):
        entries, payloads = header_room(arrays(FrameBlock, room)), arrays(EntryPayloads, room)
        block, first, count = ParserInput(entries, payloads, data), 0, 0
        while count < room and framing.most_entries:
            count, parsed, compressed = parse_plain(
                framing, block, count, offsets, verify, selected, growing.columns, CACHEFUL, piece - growing.size
            )
            if not compressed:
                parse_records(data, block, parsed, count, verify, selected, growing)
                if growing.size < piece:
                    continue
                parsed = count
            yield entries.part(first, parsed), payloads.rows[first:parsed]
            first = count
            if compressed:
                for opened in inflater.decompressed(source, entries.part(parsed, count), part(payloads, parsed, count)):
                    parse_records(data, opened, 0, len(opened.payloads.rows), verify, selected, growing)
                    yield opened.entries, opened.payloads.rows
        yield entries.part(first, count), payloads.rows[first:count]
        most = BLOCK_ENTRIES


@kernel
def parse_plain(
    framing: Framing,
    block: ParserInput,
    count: int,
    offsets: OffsetRange,
    verify: bool,
    selected: SelectedColumns,
    out: RecordColumns,
    cacheful: int,
    most: int,
) -> tuple[int, int, bool]:
    """Find about ``most`` bytes of entries and append their records. Stop at a compressed entry or if there is no room left.

    ``count`` is the number of entries in the block. Returns the new number, the end of the parsed entries, and whether an entry
    after these is compressed.
    """
    entries, payloads, data = block
    first = framing.progress[POSITION]
    parsed = count
    compressed = False
    budget = 1 + cacheful // _FIRST
    while framing.progress[POSITION] - first < most:
        start = count
        count = find_entries(framing, budget, entries.frames, start)
        if count == start:
            break
        read_headers(data, entries, start, count)
        compressed |= locate(data, entries, offsets, payloads, start, count)
        if compressed:
            if framing.progress[POSITION] - entries.frames.begin[parsed] >= _OPENED * cacheful:
                break
        elif not fits(block, start, count, selected, out):
            break
        else:
            parsed = parse_entries(data, block, verify, selected, out, start, count)
            if parsed < count:
                break
        budget = cacheful
    return count, parsed, compressed


@kernel
def fits(opened: ParserInput, start: int, stop: int, selected: SelectedColumns, out: RecordColumns) -> bool:
    """Whether ``out`` has room for the largest possible result of entries, without headers."""
    payload, records = most_of(opened, start, stop)
    return bool(
        out.used[RECORDS] + records + 1 + COPY_SLACK <= out.offset.size
        and out.used[KEY_BYTES] + payload * selected.key + COPY_SLACK <= out.key.size
        and out.used[VALUE_BYTES] + payload * selected.value + COPY_SLACK <= out.value.size
    )


def parse_records(
    data: Bytes,
    opened: ParserInput,
    start: int,
    stop: int,
    verify: bool,
    selected: SelectedColumns,
    growing: GrowingColumns,
) -> None:
    """Append the records of the entries from ``start`` to before ``stop``."""
    if start == stop:
        return
    payload, records = most_of(opened, start, stop)
    more = {RECORDS: records + 1, KEY_BYTES: payload * selected.key, VALUE_BYTES: payload * selected.value}
    while True:
        growing.make_room(more, int(opened.entries.frames.begin[start]))
        start = parse_entries(data, opened, verify, selected, growing.columns, start, stop)
        if start == stop:
            return
        payload, _ = most_of(opened, start, start + 1)
        more = {HEADERS: payload // layout.SMALLEST_HEADER + 2, HEADER_KEY_BYTES: payload, HEADER_VALUE_BYTES: payload}


@kernel
def most_of(opened: ParserInput, start: int, stop: int) -> tuple[int, int]:
    """Size of the bytes to parse, and the largest possible number of their records and error rows."""
    entries, payloads, _ = opened
    total = records = int64(0)
    for i in range(start, stop):
        size = payloads.last[i] - payloads.first[i]
        if entries.frames.error[i] == OK and entries.variant[i] == MAGIC_2:
            records += min(int64(entries.fields.record_count[i]), size // layout.SMALLEST_RECORD)
        elif payloads.codec[i] != layout.NONE:
            records += size // (layout.OVERHEAD + layout.LEAST_SIZE)
        records += 1
        total += size
    return total, records


@kernel
def parse_entries(
    data: Bytes, opened: ParserInput, verify: bool, selected: SelectedColumns, out: RecordColumns, start: int, stop: int
) -> int:
    """Append the records of the entries from ``start`` to before ``stop``, and note the number of rows of each.

    Returns the end of the parsed entries. It is less than ``stop`` if the headers of the next entry do not fit.
    """
    entries, payloads, arena = opened
    frames, fields = entries.frames, entries.fields
    for i in range(start, stop):
        before = out.used[RECORDS]
        first, last = payloads.first[i], payloads.last[i]
        source = arena if payloads.inflated[i] else data
        magic = entries.variant[i]
        time = EntryTime(_timestamp_type(magic, fields.attributes[i]), fields.timestamp[i])
        if payloads.skipped[i]:
            pass
        elif frames.error[i] != OK:
            append_error(fields, i, magic, frames.reach[i], frames.error[i], out)
        elif magic == MAGIC_2:
            batch = BatchDefaults(
                fields.offset[i],
                time.timestamp if time.type else fields.base_timestamp[i],
                int64(fields.attributes[i]),
                int64(fields.base_sequence[i]),
                int64(fields.record_count[i]),
            )
            if not parse_batch(source, first, last, batch, selected, out):
                return i
        elif payloads.codec[i] == layout.NONE:
            # Framing has checked it, and its attributes have no codec.
            parse_message(source, first, last, fields.offset[i], time, False, selected, out)
        elif not parse_wrapper(source, first, last, fields.offset[i], magic == MAGIC_1, time, verify, selected, out):
            append_error(fields, i, magic, frames.reach[i], BAD_RECORD, out)
        payloads.rows[i] = out.used[RECORDS] - before
    return stop


@kernel
def _timestamp_type(magic: int, attributes: int) -> int:
    if magic == MAGIC_0:
        return NO_CODE
    return 1 if attributes & layout.LOG_APPEND_TIME else 0


@kernel
def append_error(fields: HeaderFields, i: int, magic: int, reach: int, error: int, out: RecordColumns) -> None:
    """Append one row for an entry that cannot be read, with the error and the readable fields of its header."""
    present = HAS_OFFSET if reach > layout.MAGIC else 0
    time_type = NO_CODE
    timestamp = int64(layout.NO_TIMESTAMP)
    if (magic == MAGIC_2 and reach >= _BATCH_ATTRIBUTES_END) or (magic == MAGIC_1 and reach >= _ATTRIBUTES_END):
        time_type = _timestamp_type(magic, fields.attributes[i])
    if magic == MAGIC_1 and reach >= _TIMESTAMP_END:
        timestamp = fields.timestamp[i]
        present |= HAS_TIME
    append_row(fields.offset[i], timestamp, time_type, error, present, out)


@kernel
def parse_wrapper(
    source: Bytes,
    pos: int,
    end: int,
    stored: int,
    relative: bool,
    time: EntryTime,
    verify: bool,
    selected: SelectedColumns,
    out: RecordColumns,
) -> bool:
    """Append the messages of a decompressed set, with absolute offsets.

    Returns false if the set has no complete message or the wrapper's offset is impossible.
    """
    _, last, whole_end = walk_set(source, pos, end)
    if whole_end == pos or (relative and stored != 0 and stored < last):
        return False
    base = stored - last if relative and stored != 0 else int64(0)
    while pos < whole_end:
        offset = base + i64(source, pos, False)
        start = pos + layout.OVERHEAD
        pos = start + int64(i32(source, pos + _SIZE, False))
        parse_message(source, start, pos, offset, time, verify, selected, out)
    if whole_end != end:
        append_row(0, layout.NO_TIMESTAMP, NO_CODE, BAD_RECORD, 0, out)
    return True


@kernel
def parse_message(
    source: Bytes,
    start: int,
    end: int,
    offset: int,
    time: EntryTime,
    verify: bool,
    selected: SelectedColumns,
    out: RecordColumns,
) -> None:
    """Append the message ``source[start:end]``. If its checksum is wrong, the row still has its fields."""
    message = read_message(source, start, end)
    crc_ok = not verify or crc32(source, start + COVERED, end - start - COVERED) == message.crc
    is_message = 0 <= message.magic <= 1
    is_nested = crc_ok and message.attributes & layout.CODEC_MASK != layout.NONE
    error = OK if crc_ok else CRC_MISMATCH
    if not is_message:
        error = BAD_MAGIC
    elif is_nested or (crc_ok and message.end == NOWHERE):
        error = BAD_RECORD
    if error == OK and selected.pattern.active:
        key_size, value_size = message.key_size, message.value_size
        if not matches_pattern(source, message.key, key_size, message.value, value_size, selected.pattern):
            return
    present, time_type, timestamp = HAS_OFFSET, int64(NO_CODE), int64(layout.NO_TIMESTAMP)
    if is_message and not is_nested:
        present |= HAS_TIME | message.present & (HAS_KEY | HAS_VALUE)
        if message.magic == MAGIC_1:
            time_type, timestamp = time.type, time.timestamp if time.type == 1 else message.timestamp
    if selected.key and present & HAS_KEY:
        copy(out.key, out.used[KEY_BYTES], source, message.key, message.key_size)
        out.used[KEY_BYTES] += message.key_size
    if selected.value and present & HAS_VALUE:
        copy(out.value, out.used[VALUE_BYTES], source, message.value, message.value_size)
        out.used[VALUE_BYTES] += message.value_size
    append_row(offset, timestamp, time_type, error, present, out)
