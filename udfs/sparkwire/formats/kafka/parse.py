"""Kernels that read records: from entries and their payloads to columns, one pass, no object per record.

Readers append to ``Out`` and count in ``Out.used``; the caller has made room for the largest answer that the bytes
allow. What a reader does not finish it does not count, so the next one overwrites it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.codecs import BAD_FRAME, Blocks, plan
from sparkwire.errors import BAD_MAGIC, BAD_RECORD, CRC_MISMATCH, DECOMPRESS_FAILED, OK, UNKNOWN_CODEC
from sparkwire.formats.kafka.entries import Slab, walk
from sparkwire.formats.kafka.layout import (
    BATCH,
    BATCH_CODECS,
    BATCH_SIZE,
    CODEC_MASK,
    CONTROL,
    CONTROL_TYPES,
    LEAST_SIZE,
    LEGACY_CODECS,
    LOG_APPEND_TIME,
    MAGIC,
    NO_TIMESTAMP,
    NONE,
    OVERHEAD,
    SMALLEST_RECORD,
)
from sparkwire.formats.kafka.message import ATTRIBUTES, MESSAGE_MAGIC, TIMESTAMP, spans, within
from sparkwire.formats.kafka.running import Running
from sparkwire.kernels import COPY_SLACK, Bytes, copy, crc32, i8, i16, i32, i64, int64, kernel, prefetch, u32
from sparkwire.kernels.varint import varint, varlong

Ints = npt.NDArray[np.int64]
Offsets = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

_ATTRIBUTES = OVERHEAD + ATTRIBUTES
_TIMESTAMP = OVERHEAD + TIMESTAMP
_BATCH_ATTRIBUTES = BATCH["attributes"].offset
_BASE_TIMESTAMP = BATCH["base_timestamp"].offset
_MAX_TIMESTAMP = BATCH["max_timestamp"].offset
_BASE_SEQUENCE = BATCH["base_sequence"].offset
_COUNT = BATCH["count"].offset

# Bits of `Out.there`: which answers of a record are not NULL.
HAS_OFFSET, HAS_TIME, HAS_SEQUENCE, HAS_KEY, HAS_VALUE, HAS_HEADERS = (1 << bit for bit in range(6))
EVERYTHING = 63

# Counters of `Out.used`; the last are the answers that every record has.
RECORDS, KEY_BYTES, VALUE_BYTES, HEADERS, HEADER_KEY_BYTES, HEADER_VALUE_BYTES, COMMON = range(7)
COUNTERS = 7

# How much of a batch was read.
_ALL, _SOME, _NO_ROOM = range(3)

_SMALLEST_HEADER = 2  # two sizes [bytes]
_AHEAD = 2048  # how far before values the lines are asked for that they go to [bytes]

NO_WORD = -1
_UNKNOWN_CONTROL = len(CONTROL_TYPES) - 1
_INT32_MAX = 2**31 - 1


class Payloads(NamedTuple):
    """What is in the entries of a slab, an item each."""

    codec: npt.NDArray[np.int8]
    first: Ints
    last: Ints
    """its bytes; when decompressed, those in the arena"""
    inflated: Bools
    blocks: Ints
    """end of its blocks in the plan"""


class Out(NamedTuple):
    """Columns of records while they grow, and of headers. Ends of variable fields: item 0 is 0."""

    offset: Ints
    timestamp: Ints
    """[ms since epoch]"""
    stamp: npt.NDArray[np.int8]
    """timestamp type"""
    sequence: npt.NDArray[np.int32]
    control: npt.NDArray[np.int8]
    error: npt.NDArray[np.int8]
    there: npt.NDArray[np.uint8]
    key_ends: Offsets
    value_ends: Offsets
    header_ends: Offsets
    key: Bytes
    value: Bytes
    header_key_ends: Offsets
    header_value_ends: Offsets
    header_key: Bytes
    header_value: Bytes
    header_there: Bools
    used: Ints


@kernel
def read_plain(
    data: Bytes,
    offsets: npt.NDArray[Any],
    verify: bool,
    budget: int,
    state: Ints,
    search: Running,
    slab: Slab,
    payloads: Payloads,
    out: Out,
    rows: Offsets,
) -> tuple[int, int, bool]:
    """Find, check and read entries, about ``budget`` bytes at a time, so that they are read while they are in the cache.

    Goes on until entries are compressed, or there is no room for their records, or the slab is full. Returns how many
    entries have been found, how many of them have been read, and whether one of the others is compressed.
    """
    found = 0
    while found < slab.begin.size:
        start, found = found, walk(data, offsets, verify, budget, state, search, slab, found)
        compressed = locate(data, slab, payloads, start, found)
        if compressed or not fits(data, slab, payloads, start, found, out):
            return found, start, compressed
        done = read(data, data, slab, payloads, verify, out, rows, start, found)
        if done < found or start == found:
            return found, done, False
    return found, found, False


@kernel
def fits(data: Bytes, slab: Slab, payloads: Payloads, start: int, stop: int, out: Out) -> bool:
    """Whether there is room for all that entries can give, but for headers."""
    size = payload_bytes(payloads, start, stop) + COPY_SLACK
    records = most_records(data, slab, payloads, start, stop) + 1 + COPY_SLACK
    keys, values = out.key.size - out.used[KEY_BYTES], out.value.size - out.used[VALUE_BYTES]
    return bool(records <= out.offset.size - out.used[RECORDS] and size <= keys and size <= values)


@kernel
def locate(data: Bytes, slab: Slab, payloads: Payloads, start: int, stop: int) -> bool:
    """Say where the payloads of entries lie; whether one is compressed. Entries that cannot be opened get their error."""
    compressed = False
    for i in range(start, stop):
        payloads.codec[i] = NONE
        payloads.inflated[i] = False
        payloads.first[i] = payloads.last[i] = slab.stop[i]
        if slab.error[i] == OK:
            if i8(data, slab.begin[i] + MAGIC) == 2:
                slab.error[i] = _locate_batch(data, i, slab, payloads)
            else:
                slab.error[i] = _locate_message(data, i, slab, payloads)
            compressed |= payloads.codec[i] != NONE and slab.error[i] == OK
    return compressed


@kernel
def plan_blocks(data: Bytes, slab: Slab, payloads: Payloads, out: Blocks) -> int:
    """Plan how compressed payloads are opened; how many blocks there are, which may be more than ``out`` has room for.

    Entries that cannot be opened get their error.
    """
    count = 0
    for i in range(slab.begin.size):
        if payloads.codec[i] != NONE and slab.error[i] == OK:
            header_checked = i8(data, slab.begin[i] + MAGIC) != 0
            planned = plan(data, payloads.first[i], payloads.last[i], payloads.codec[i], header_checked, out, count)
            if planned == BAD_FRAME:
                slab.error[i] = DECOMPRESS_FAILED
            else:
                count = planned
        payloads.blocks[i] = count
    return count


@kernel
def _locate_batch(data: Bytes, i: int, slab: Slab, payloads: Payloads) -> int:
    count = i32(data, slab.begin[i] + _COUNT, False)
    codec = i16(data, slab.begin[i] + _BATCH_ATTRIBUTES, False) & CODEC_MASK
    if codec >= BATCH_CODECS:
        return UNKNOWN_CODEC
    if count < 0:
        return BAD_RECORD
    if count > 0:
        payloads.first[i] = slab.begin[i] + BATCH_SIZE
        payloads.codec[i] = codec
    return OK


@kernel
def _locate_message(data: Bytes, i: int, slab: Slab, payloads: Payloads) -> int:
    start = slab.begin[i] + OVERHEAD
    codec = i8(data, start + ATTRIBUTES) & CODEC_MASK
    payloads.first[i] = start
    if codec == NONE:
        return OK
    if codec >= LEGACY_CODECS:
        return UNKNOWN_CODEC
    _, _, value, value_size = spans(data, start, slab.stop[i])
    if not within(value, value_size, slab.stop[i]) or value_size < 0:
        return BAD_RECORD
    payloads.first[i] = value
    payloads.last[i] = value + value_size
    payloads.codec[i] = codec
    return OK


@kernel
def payload_bytes(payloads: Payloads, start: int, stop: int) -> int:
    """How many bytes there are to read, once compressed payloads are opened [bytes]."""
    total = 0
    for i in range(start, stop):
        total += payloads.last[i] - payloads.first[i]
    return total


@kernel
def most_records(data: Bytes, slab: Slab, payloads: Payloads, start: int, stop: int) -> int:
    """How many records and error rows entries can give at most."""
    total = 0
    for i in range(start, stop):
        size = payloads.last[i] - payloads.first[i]
        if slab.error[i] == OK and i8(data, slab.begin[i] + MAGIC) == 2:
            total += min(int64(i32(data, slab.begin[i] + _COUNT, False)), size // SMALLEST_RECORD)
        elif payloads.codec[i] != NONE:
            total += size // (OVERHEAD + LEAST_SIZE)
        total += 1
    return total


@kernel
def read(
    data: Bytes,
    arena: Bytes,
    slab: Slab,
    payloads: Payloads,
    verify: bool,
    out: Out,
    rows: Offsets,
    start: int,
    stop: int,
) -> int:
    """Append the records of entries; ``rows[i]`` is how many rows entry ``i`` became.

    Returns up to where entries were read: not all where the next has more headers than there is room for.
    """
    for i in range(start, stop):
        before = out.used[RECORDS]
        begin = slab.begin[i]
        source = arena if payloads.inflated[i] else data
        if slab.error[i] != OK:
            _error_row(data, begin, slab.reach[i], slab.error[i], out)
        elif i8(data, begin + MAGIC) == 2:
            if not _batch(data, begin, source, payloads.first[i], payloads.last[i], out):
                return i
        elif payloads.codec[i] != NONE:
            _wrapper(data, begin, source, payloads.first[i], payloads.last[i], verify, out)
        else:
            stamp, wrapper_time = _own_time(data, begin)
            offset = i64(data, begin, False)
            _message(data, payloads.first[i], payloads.last[i], offset, stamp, wrapper_time, False, True, out)
        rows[i] = out.used[RECORDS] - before
    return stop


@kernel
def _row(
    offset: int, timestamp: int, stamp: int, sequence: int, control: int, error: int, there: int, out: Out
) -> None:
    """Append a record whose key, value and headers have been written and counted."""
    row = out.used[RECORDS]
    if there & HAS_TIME and timestamp == NO_TIMESTAMP:
        there ^= HAS_TIME
    out.offset[row] = offset
    out.timestamp[row] = timestamp
    out.stamp[row] = stamp
    out.sequence[row] = sequence
    out.control[row] = control
    out.error[row] = error
    out.there[row] = there
    out.key_ends[row + 1] = out.used[KEY_BYTES]
    out.value_ends[row + 1] = out.used[VALUE_BYTES]
    out.header_ends[row + 1] = out.used[HEADERS]
    out.used[COMMON] &= there
    out.used[RECORDS] = row + 1


@kernel
def _error_row(data: Bytes, begin: int, reach: int, error: int, out: Out) -> None:
    """One row for an entry that cannot be read: the reason, and what of its header tells of a record."""
    there = 0
    offset = int64(0)
    timestamp = int64(NO_TIMESTAMP)
    stamp = NO_WORD
    if reach > MAGIC:
        there = HAS_OFFSET
        offset = i64(data, begin, False)
        magic = i8(data, begin + MAGIC)
        if magic == 2 and reach >= _BATCH_ATTRIBUTES + 2:
            stamp = _timestamp_type(int64(i16(data, begin + _BATCH_ATTRIBUTES, False)))
        if magic == 1 and reach > _ATTRIBUTES:
            stamp = _timestamp_type(int64(i8(data, begin + _ATTRIBUTES)))
        if magic == 1 and reach >= _TIMESTAMP + 8:
            timestamp = i64(data, begin + _TIMESTAMP, False)
            there |= HAS_TIME
    _row(offset, timestamp, stamp, 0, NO_WORD, error, there, out)


@kernel
def _timestamp_type(attributes: int) -> int:
    return 1 if attributes & LOG_APPEND_TIME else 0


# -- magic 2


@kernel
def _batch(data: Bytes, begin: int, source: Bytes, pos: int, end: int, out: Out) -> bool:
    """The records of a batch, up to the first that cannot be read: one row says so. Whether there was room for them."""
    count = int64(i32(data, begin + _COUNT, False))
    found = _batch_records(data, begin, source, pos, end, count, out) if count > 0 else _ALL
    if found == _SOME:
        _row(0, NO_TIMESTAMP, NO_WORD, 0, NO_WORD, BAD_RECORD, 0, out)
    return found != _NO_ROOM


@kernel
def _batch_records(data: Bytes, begin: int, source: Bytes, pos: int, end: int, count: int, out: Out) -> int:
    """Append ``count`` records that take all bytes, or those before the first that cannot be read, or, for want of room, none."""
    attributes = int64(i16(data, begin + _BATCH_ATTRIBUTES, False))
    base_offset = i64(data, begin, False)
    stamp = _timestamp_type(attributes)
    base_time = i64(data, begin + (_MAX_TIMESTAMP if stamp else _BASE_TIMESTAMP), False)
    # No call below takes `out`: handing on its arrays costs more than a record.
    first = out.used[RECORDS]
    row, keys, values = first, out.used[KEY_BYTES], out.used[VALUE_BYTES]
    headers = out.used[HEADERS]
    header_keys, header_values = out.used[HEADER_KEY_BYTES], out.used[HEADER_VALUE_BYTES]
    common = out.used[COMMON]
    missing = count
    while missing > 0:
        size, pos = varint(source, pos, end)
        if pos < 0 or size < 0 or size > end - pos:
            break
        stop = pos + size
        if missing == 1 and stop != end:  # the count is too small: Kafka refuses the record at which it finds out
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
            if header_count > (stop - pos) // _SMALLEST_HEADER:
                break
            room = min(out.header_key.size - header_keys, out.header_value.size - header_values) - COPY_SLACK
            if header_count >= out.header_there.size - headers or stop - pos > room:
                return _NO_ROOM
            new_header, new_key, new_value = headers, header_keys, header_values
            while header_count > 0:
                name_size, name = varint(source, pos, stop)
                if name < 0 or name_size < 0 or name_size > stop - name:
                    break
                content_size, content = varint(source, name + name_size, stop)
                if content < 0 or content_size > stop - content:
                    break
                copy(out.header_key, new_key, source, name, name_size)
                copy(out.header_value, new_value, source, content, max(content_size, 0))
                new_key += name_size
                new_value += max(content_size, 0)
                out.header_there[new_header] = content_size >= 0
                new_header += 1
                out.header_key_ends[new_header] = new_key
                out.header_value_ends[new_header] = new_value
                pos = content + max(content_size, 0)
                header_count -= 1
            if header_count > 0 or pos != stop:
                break
            headers, header_keys, header_values = new_header, new_key, new_value
        elif pos != stop:
            break
        time = base_time if stamp else base_time + time_delta
        there = HAS_OFFSET | HAS_SEQUENCE | HAS_HEADERS
        there |= (HAS_TIME if time != NO_TIMESTAMP else 0) | (HAS_KEY if key_size >= 0 else 0)
        there |= HAS_VALUE if value_size >= 0 else 0
        copy(out.key, keys, source, key, max(key_size, 0))
        keys += max(key_size, 0)
        copy(out.value, values, source, value, max(value_size, 0))
        values += max(value_size, 0)
        prefetch(out.value, values + _AHEAD)
        prefetch(out.value, values + _AHEAD + 64)
        at = np.uint64(row)  # an index without a sign needs no look whether it counts from the end
        out.offset[at] = base_offset + offset_delta
        out.timestamp[at] = time
        out.there[at] = there
        row += 1
        at = np.uint64(row)
        out.key_ends[at] = keys
        out.value_ends[at] = values
        out.header_ends[at] = headers
        common &= there
        missing -= 1
    # What the batch says of all its records goes in here, by loops that become a few wide stores.
    base_sequence = int64(i32(data, begin + _BASE_SEQUENCE, False))
    for i in range(first, row):
        out.stamp[i] = stamp
        out.error[i] = OK
        out.control[i] = NO_WORD
        out.sequence[i] = _sequence(base_sequence, out.offset[i] - base_offset)
    if attributes & CONTROL:
        for i in range(first, row):
            out.control[i] = _control_type(out.key, out.key_ends[i], out.key_ends[i + 1] - out.key_ends[i])
    out.used[RECORDS], out.used[KEY_BYTES], out.used[VALUE_BYTES] = row, keys, values
    out.used[HEADERS], out.used[HEADER_KEY_BYTES], out.used[HEADER_VALUE_BYTES] = headers, header_keys, header_values
    out.used[COMMON] = common
    return _SOME if missing else _ALL


@kernel
def _sequence(base: int, delta: int) -> int:
    """A record's sequence: from 2^31 - 1 it goes on with 0."""
    if base < 0:
        return -1
    sequence = base + delta
    return sequence - _INT32_MAX - 1 if sequence > _INT32_MAX else sequence


@kernel
def _control_type(source: Bytes, key: int, size: int) -> int:
    if size < 4:
        return NO_WORD
    kind = int64(i16(source, key + 2, False))
    return kind if 0 <= kind < _UNKNOWN_CONTROL else _UNKNOWN_CONTROL


# -- magic 0 and 1


@kernel
def _own_time(data: Bytes, begin: int) -> tuple[int, int]:
    """Timestamp type and timestamp of a top-level message."""
    if i8(data, begin + MAGIC) != 1:
        return NO_WORD, int64(NO_TIMESTAMP)
    return _timestamp_type(int64(i8(data, begin + _ATTRIBUTES))), i64(data, begin + _TIMESTAMP, False)


@kernel
def _message(
    source: Bytes, pos: int, end: int, offset: int, stamp: int, wrapper_time: int, inner: bool, right: bool, out: Out
) -> None:
    """Append the message ``source[pos:end]``; an inner one may have a wrong checksum, and then still has its fields.

    ``stamp`` is the type of the top-level entry; with log append time its timestamp replaces that of inner messages.
    """
    magic = i8(source, pos + MESSAGE_MAGIC)
    timestamp = int64(NO_TIMESTAMP)
    if magic == 1 and pos + TIMESTAMP + 8 <= end:
        timestamp = i64(source, pos + TIMESTAMP, False)
        if inner and stamp == 1:
            timestamp = wrapper_time
    if magic != 1:
        stamp = NO_WORD
    there = HAS_OFFSET | HAS_TIME
    key, key_size, value, value_size = spans(source, pos, end)
    sound = within(key, key_size, end) and within(value, value_size, end)
    if key_size >= 0 and within(key, key_size, end):
        there |= HAS_KEY
        copy(out.key, out.used[KEY_BYTES], source, key, key_size)
        out.used[KEY_BYTES] += key_size
    if value_size >= 0 and within(value, value_size, end):
        there |= HAS_VALUE
        copy(out.value, out.used[VALUE_BYTES], source, value, value_size)
        out.used[VALUE_BYTES] += value_size
    error = OK if right else CRC_MISMATCH
    if right and not sound:
        error = BAD_RECORD
    _row(offset, timestamp, stamp, 0, NO_WORD, error, there, out)


@kernel
def _wrapper(data: Bytes, begin: int, source: Bytes, pos: int, end: int, verify: bool, out: Out) -> None:
    """The messages of a decompressed set, with absolute offsets."""
    stored = i64(data, begin, False)
    last, whole_end = _last_inner(source, pos, end)
    base = int64(0)
    relative = i8(data, begin + MAGIC) == 1
    if whole_end == pos or (relative and stored != 0 and stored < last):
        _error_row(data, begin, _TIMESTAMP + 8, BAD_RECORD, out)
        return
    if relative and stored != 0:
        base = stored - last
    stamp, time = _own_time(data, begin)
    while pos < whole_end:
        offset = base + i64(source, pos, False)
        start = pos + OVERHEAD
        pos = start + int64(i32(source, start - 4, False))
        _inner(source, start, pos, offset, stamp, time, verify, out)
    if whole_end != end:
        _row(0, NO_TIMESTAMP, NO_WORD, 0, NO_WORD, BAD_RECORD, 0, out)


@kernel
def _last_inner(source: Bytes, pos: int, end: int) -> tuple[int, int]:
    """Offset of the last whole message of a set, and where it ends."""
    last = int64(0)
    while end - pos >= OVERHEAD + LEAST_SIZE:
        size = int64(i32(source, pos + OVERHEAD - 4, False))
        if size < LEAST_SIZE or size > end - pos - OVERHEAD:
            break
        last = i64(source, pos, False)
        pos += OVERHEAD + size
    return last, pos


@kernel
def _inner(source: Bytes, start: int, end: int, offset: int, stamp: int, time: int, verify: bool, out: Out) -> None:
    magic = i8(source, start + MESSAGE_MAGIC)
    right = not verify or crc32(source, start + 4, end - start - 4) == u32(source, start, False)
    if magic < 0 or magic > 1:
        _row(offset, NO_TIMESTAMP, NO_WORD, 0, NO_WORD, BAD_MAGIC, HAS_OFFSET, out)
    elif right and i8(source, start + ATTRIBUTES) & CODEC_MASK != NONE:
        _row(offset, NO_TIMESTAMP, NO_WORD, 0, NO_WORD, BAD_RECORD, HAS_OFFSET, out)
    else:
        _message(source, start, end, offset, stamp, time, True, right, out)
