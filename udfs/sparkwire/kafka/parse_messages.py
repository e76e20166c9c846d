"""Parse the records of messages of magic 0 and 1: of a plain message, and of a wrapper's set."""

from __future__ import annotations

from sparkwire.base.error_codes import BAD_MAGIC, BAD_RECORD, CRC_MISMATCH, OK
from sparkwire.kafka import record_columns
from sparkwire.kafka.layout import CODEC_MASK, ENTRY, LEAST_SIZE, MESSAGE_1, NO_TIMESTAMP, NONE, OVERHEAD
from sparkwire.kafka.read_messages import MESSAGE_MAGIC, content, within
from sparkwire.kafka.record_columns import RecordColumns, SelectedColumns
from sparkwire.kafka.search import matches_pattern
from sparkwire.kernels import Bytes, copy, crc32, i8, i32, i64, int64, kernel, u32

NO_CODE = -1
"""stands for no timestamp type and no control type"""

_SIZE = ENTRY["size"].offset
_COVERED = MESSAGE_1["crc"].end
_ATTRIBUTES = MESSAGE_1["attributes"].offset
_TIMESTAMP = MESSAGE_1["timestamp"].offset
_TIMESTAMP_END = MESSAGE_1["timestamp"].end


@kernel
def append_row(offset: int, timestamp: int, time_type: int, error: int, present: int, out: RecordColumns) -> None:
    """Append a record without sequence and control type, after its key and value."""
    row = out.used[record_columns.RECORDS]
    if present & record_columns.HAS_TIME and timestamp == NO_TIMESTAMP:
        present ^= record_columns.HAS_TIME
    out.offset[row] = offset
    out.timestamp[row] = timestamp
    out.timestamp_type[row] = time_type
    out.sequence[row] = 0
    out.control[row] = NO_CODE
    out.error[row] = error
    out.present[row] = present
    out.key_ends[row + 1] = out.used[record_columns.KEY_BYTES]
    out.value_ends[row + 1] = out.used[record_columns.VALUE_BYTES]
    out.header_ends[row + 1] = out.used[record_columns.HEADERS]
    out.used[record_columns.COMMON] &= present
    out.used[record_columns.RECORDS] = row + 1


@kernel
def parse_message(
    source: Bytes,
    pos: int,
    end: int,
    offset: int,
    time_type: int,
    timestamp: int,
    crc_ok: bool,
    selected: SelectedColumns,
    out: RecordColumns,
) -> None:
    """Append the message ``source[pos:end]``. If its checksum is wrong, the row still has its fields."""
    present = record_columns.HAS_OFFSET | record_columns.HAS_TIME
    message = content(source, pos, end)
    has_key, has_value = within(message.key, message.key_size, end), within(message.value, message.value_size, end)
    filtered = selected.pattern.active and crc_ok and has_key and has_value
    if filtered and not matches_pattern(
        source, message.key, message.key_size, message.value, message.value_size, selected.pattern
    ):
        return
    if message.key_size >= 0 and has_key:
        present |= record_columns.HAS_KEY
        if selected.key:
            copy(out.key, out.used[record_columns.KEY_BYTES], source, message.key, message.key_size)
            out.used[record_columns.KEY_BYTES] += message.key_size
    if message.value_size >= 0 and has_value:
        present |= record_columns.HAS_VALUE
        if selected.value:
            copy(out.value, out.used[record_columns.VALUE_BYTES], source, message.value, message.value_size)
            out.used[record_columns.VALUE_BYTES] += message.value_size
    error = OK if crc_ok else CRC_MISMATCH
    if crc_ok and not (has_key and has_value):
        error = BAD_RECORD
    if i8(source, pos + MESSAGE_MAGIC) != 1:
        append_row(offset, NO_TIMESTAMP, NO_CODE, error, present, out)
    else:
        append_row(offset, timestamp, time_type, error, present, out)


@kernel
def parse_wrapper(
    source: Bytes,
    pos: int,
    end: int,
    stored: int,
    relative: bool,
    time_type: int,
    timestamp: int,
    verify: bool,
    selected: SelectedColumns,
    out: RecordColumns,
) -> bool:
    """Append the messages of a decompressed set, with absolute offsets.

    Returns false if the set has no complete message or the wrapper's offset is impossible. With log append time, all inner
    messages have the wrapper's ``timestamp``.
    """
    last, whole_end = _last_inner(source, pos, end)
    if whole_end == pos or (relative and stored != 0 and stored < last):
        return False
    base = stored - last if relative and stored != 0 else int64(0)
    while pos < whole_end:
        offset = base + i64(source, pos, False)
        start = pos + OVERHEAD
        pos = start + int64(i32(source, pos + _SIZE, False))
        _parse_inner(source, start, pos, offset, time_type, timestamp, verify, selected, out)
    if whole_end != end:
        append_row(0, NO_TIMESTAMP, NO_CODE, BAD_RECORD, 0, out)
    return True


@kernel
def _last_inner(source: Bytes, pos: int, end: int) -> tuple[int, int]:
    """Offset and end of the last complete message of a set."""
    last = int64(0)
    while end - pos >= OVERHEAD + LEAST_SIZE:
        size = int64(i32(source, pos + _SIZE, False))
        if size < LEAST_SIZE or size > end - pos - OVERHEAD:
            break
        last = i64(source, pos, False)
        pos += OVERHEAD + size
    return last, pos


@kernel
def _parse_inner(
    source: Bytes,
    start: int,
    end: int,
    offset: int,
    time_type: int,
    wrapper_time: int,
    verify: bool,
    selected: SelectedColumns,
    out: RecordColumns,
) -> None:
    magic = i8(source, start + MESSAGE_MAGIC)
    covered = start + _COVERED
    crc_ok = not verify or crc32(source, covered, end - covered) == u32(source, start, False)
    if magic < 0 or magic > 1:
        append_row(offset, NO_TIMESTAMP, NO_CODE, BAD_MAGIC, record_columns.HAS_OFFSET, out)
    elif crc_ok and i8(source, start + _ATTRIBUTES) & CODEC_MASK != NONE:
        append_row(offset, NO_TIMESTAMP, NO_CODE, BAD_RECORD, record_columns.HAS_OFFSET, out)
    else:
        timestamp = int64(NO_TIMESTAMP)
        if magic == 1 and start + _TIMESTAMP_END <= end:
            timestamp = wrapper_time if time_type == 1 else i64(source, start + _TIMESTAMP, False)
        parse_message(source, start, end, offset, time_type, timestamp, crc_ok, selected, out)
