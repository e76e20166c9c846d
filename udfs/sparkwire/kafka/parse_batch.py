"""Parse the records of one batch of magic 2. The loop is long, because passing the columns to a function costs more than a
record.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparkwire.base.error_codes import BAD_RECORD, OK
from sparkwire.kafka.layout import CONTROL, CONTROL_TYPES, LOG_APPEND_TIME, NO_TIMESTAMP, SMALLEST_HEADER
from sparkwire.kafka.record_columns import (
    COMMON,
    HAS_HEADERS,
    HAS_KEY,
    HAS_OFFSET,
    HAS_SEQUENCE,
    HAS_TIME,
    HAS_VALUE,
    HEADER_KEY_BYTES,
    HEADER_VALUE_BYTES,
    HEADERS,
    KEY_BYTES,
    NO_CODE,
    RECORDS,
    VALUE_BYTES,
    RecordColumns,
    SelectedColumns,
    append_row,
)
from sparkwire.kafka.search import matches_pattern
from sparkwire.kernels import COPY_SLACK, Bytes, copy, i16, int64, kernel, prefetch
from sparkwire.kernels.varint import varint, varlong

_AHEAD = 2048  # [bytes] distance at which the destination of a copy is prefetched
_UNKNOWN_CONTROL = len(CONTROL_TYPES) - 1
_CONTROL_KEY = 4  # i16 version, i16 type [bytes]
_INT32_MAX = 2**31 - 1

# The parsed part of a batch.
_ALL, _SOME, _NO_ROOM = range(3)


class BatchDefaults(NamedTuple):
    """The fields of a batch's header that apply to all its records."""

    base_offset: int
    time: int
    """base of the records' timestamps, or with log append time the timestamp of all records [ms since epoch]"""
    attributes: int
    base_sequence: int
    record_count: int


@kernel
def parse_batch(
    source: Bytes, pos: int, end: int, batch: BatchDefaults, selected: SelectedColumns, out: RecordColumns
) -> bool:
    """Append the records of a batch. An unreadable record is one error row, and the last. Return whether there was room."""
    record_count = _parse_records(source, pos, end, batch, selected, out) if batch.record_count > 0 else _ALL
    if record_count == _SOME:
        append_row(0, NO_TIMESTAMP, NO_CODE, BAD_RECORD, 0, out)
    return record_count != _NO_ROOM


@kernel
def _parse_records(
    source: Bytes, pos: int, end: int, batch: BatchDefaults, selected: SelectedColumns, out: RecordColumns
) -> int:
    """Append all records, or those before the first unreadable one. Append none if there is not enough room."""
    base_offset, base_time, attributes, base_sequence, missing = batch
    time_type = 1 if attributes & LOG_APPEND_TIME else 0
    begin = pos
    filtered = selected.pattern.active and not attributes & CONTROL
    # No call in the loop takes `out`, because passing its arrays costs more than a record.
    first = out.used[RECORDS]
    row, keys, values = first, out.used[KEY_BYTES], out.used[VALUE_BYTES]
    headers = out.used[HEADERS]
    header_keys, header_values = out.used[HEADER_KEY_BYTES], out.used[HEADER_VALUE_BYTES]
    common = out.used[COMMON]
    while missing > 0:
        size, pos = varint(source, pos, end)
        if pos < 0 or size < 0 or size > end - pos:
            break
        stop = pos + size
        if missing == 1 and stop != end:  # the count is too small: Kafka rejects this record
            break
        time_delta, pos = varlong(source, pos + 1, stop)
        if pos < 0:
            break
        offset_delta, pos = varint(source, pos, stop)
        if pos < 0:
            break
        key_size, key = varint(source, pos, stop)
        if key < 0 or key_size > stop - key:
            break
        value_size, value = varint(source, key + max(key_size, 0), stop)
        if value < 0 or value_size > stop - value:
            break
        header_count, pos = varint(source, value + max(value_size, 0), stop)
        if pos < 0 or header_count < 0:
            break
        if header_count > 0:
            if header_count > (stop - pos) // SMALLEST_HEADER:
                break
            if selected.headers:
                room = min(out.header_key.size - header_keys, out.header_value.size - header_values) - COPY_SLACK
                if header_count >= out.header_valid.size - headers or stop - pos > room:
                    return _NO_ROOM
            new_header, new_key, new_value = headers, header_keys, header_values
            while header_count > 0:
                name_size, name = varint(source, pos, stop)
                if name < 0 or name_size < 0 or name_size > stop - name:
                    break
                content_size, content = varint(source, name + name_size, stop)
                if content < 0 or content_size > stop - content:
                    break
                if selected.headers:
                    copy(out.header_key, new_key, source, name, name_size)
                    copy(out.header_value, new_value, source, content, max(content_size, 0))
                    new_key += name_size
                    new_value += max(content_size, 0)
                    out.header_valid[new_header] = content_size >= 0
                    new_header += 1
                    out.header_key_ends[new_header] = new_key
                    out.header_value_ends[new_header] = new_value
                pos = content + max(content_size, 0)
                header_count -= 1
            if header_count > 0 or pos != stop:
                break
        else:
            new_header, new_key, new_value = headers, header_keys, header_values
            if pos != stop:
                break
        missing -= 1
        if filtered and not matches_pattern(source, key, key_size, value, value_size, selected.pattern):
            continue
        headers, header_keys, header_values = new_header, new_key, new_value
        time = base_time if time_type else base_time + time_delta
        present = HAS_OFFSET | HAS_SEQUENCE | HAS_HEADERS
        present |= (HAS_TIME if time != NO_TIMESTAMP else 0) | (HAS_KEY if key_size >= 0 else 0)
        present |= HAS_VALUE if value_size >= 0 else 0
        if selected.key:
            copy(out.key, keys, source, key, max(key_size, 0))
            keys += max(key_size, 0)
        if selected.value:
            copy(out.value, values, source, value, max(value_size, 0))
            values += max(value_size, 0)
            prefetch(out.value, values + _AHEAD)
            prefetch(out.value, values + _AHEAD + 64)
        at = np.uint64(row)  # an unsigned index needs no check for negative values
        out.offset[at] = base_offset + offset_delta
        out.timestamp[at] = time
        out.present[at] = present
        row += 1
        at = np.uint64(row)
        out.key_ends[at] = keys
        out.value_ends[at] = values
        out.header_ends[at] = headers
        common &= present
    # Fill in the fields of the batch, in loops that compile to a few wide stores.
    for i in range(first, row):
        out.timestamp_type[i] = time_type
        out.error[i] = OK
        out.sequence[i] = _sequence(base_sequence, out.offset[i] - base_offset)
        out.control[i] = NO_CODE
    if attributes & CONTROL:
        _parse_control_types(source, begin, end, first, row, out)
    out.used[RECORDS], out.used[KEY_BYTES], out.used[VALUE_BYTES] = row, keys, values
    out.used[HEADERS], out.used[HEADER_KEY_BYTES], out.used[HEADER_VALUE_BYTES] = headers, header_keys, header_values
    out.used[COMMON] = common
    return _SOME if missing else _ALL


@kernel
def _sequence(base: int, delta: int) -> int:
    """A record's sequence; 0 follows 2^31 - 1."""
    if base < 0:
        return -1
    sequence = base + delta
    return sequence - _INT32_MAX - 1 if sequence > _INT32_MAX else sequence


@kernel
def _parse_control_types(source: Bytes, pos: int, end: int, first: int, last: int, out: RecordColumns) -> None:
    """Parse the control types of all parsed records. It is a separate loop, so that other batches do not check every record."""
    for i in range(first, last):
        size, pos = varint(source, pos, end)
        stop = pos + size
        _, pos = varlong(source, pos + 1, stop)
        _, pos = varint(source, pos, stop)
        key_size, key = varint(source, pos, stop)
        out.control[i] = _control_type(source, key, key_size)
        pos = stop


@kernel
def _control_type(source: Bytes, key: int, size: int) -> int:
    if size < _CONTROL_KEY:
        return NO_CODE
    kind = int64(i16(source, key + 2, False))
    return kind if 0 <= kind < _UNKNOWN_CONTROL else _UNKNOWN_CONTROL
