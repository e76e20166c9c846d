"""Kernels that write messages and record batches: the reverse of `parse`.

They measure sizes first, so that they write every byte directly to its position. Only compressed payloads come as bytes,
because their size is unknown before compression.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.core.column import Spans
from sparkwire.kafka import layout
from sparkwire.kernels import (
    Bytes,
    copy,
    crc32,
    crc32c,
    int64,
    kernel,
    prefetch,
    store_i16,
    store_i32,
    store_i64,
    store_u8,
)
from sparkwire.kernels.varint import put_varint, varint_size

Ints = npt.NDArray[np.int64]

_ENTRY_SIZE = layout.ENTRY["size"].offset
_CRC_END = layout.MESSAGE_0["crc"].end
_MESSAGE_MAGIC = layout.MESSAGE_0["magic"].offset
_ATTRIBUTES = layout.MESSAGE_0["attributes"].offset
_TIMESTAMP = layout.MESSAGE_1["timestamp"].offset
_KEY_0 = layout.MESSAGE_0["key_size"].offset
_KEY_1 = layout.MESSAGE_1["key_size"].offset

_LEADER_EPOCH = layout.BATCH["partition_leader_epoch"].offset
_BATCH_MAGIC = layout.BATCH["magic"].offset
_BATCH_CRC = layout.BATCH["crc"].offset
_BATCH_ATTRIBUTES = layout.BATCH["attributes"].offset
_LAST_DELTA = layout.BATCH["last_offset_delta"].offset
_BASE_TIMESTAMP = layout.BATCH["base_timestamp"].offset
_MAX_TIMESTAMP = layout.BATCH["max_timestamp"].offset
_PRODUCER_ID = layout.BATCH["producer_id"].offset
_PRODUCER_EPOCH = layout.BATCH["producer_epoch"].offset
_BASE_SEQUENCE = layout.BATCH["base_sequence"].offset
_COUNT = layout.BATCH["record_count"].offset

# Producer id, epoch and sequence of a batch without a producer's state.
_NOBODY = -1

_AHEAD = 4096  # [bytes]
_LINE = 64  # [bytes]


class RecordsToWrite(NamedTuple):
    """Records, with an item for each record, and their headers."""

    offset: Ints
    timestamp: Ints
    """[ms since epoch]"""
    key: Spans
    value: Spans
    headers: Ints
    """record ``i`` has the headers ``headers[i]`` to ``headers[i + 1]``"""
    header_key: Spans
    header_value: Spans


class Sets(NamedTuple):
    """The records of each set, with an item for each set."""

    first: Ints
    last: Ints
    magic: npt.NDArray[np.int8]
    codec: npt.NDArray[np.int8]
    log_append_time: npt.NDArray[np.bool_]
    """whether the broker sets the timestamp; all records of a set then have the same"""
    leader_epoch: npt.NDArray[np.int32]
    """-1 for none"""


# -- sizes


@kernel
def measure_sets(sets: Sets, records: RecordsToWrite, bodies: Ints, sizes: Ints) -> None:
    """Size of each set's records before compression; ``bodies`` gets the size of each record of magic 2 [bytes]."""
    for row in range(sizes.size):
        total = int64(0)
        first = sets.first[row]
        for i in range(first, sets.last[row]):
            if sets.magic[row] == 2:
                bodies[i] = _record_size(records, i, first)
                total += varint_size(bodies[i]) + bodies[i]
            else:
                total += layout.OVERHEAD + layout.MESSAGE_SIZES[sets.magic[row]]
                total += max(records.key.sizes[i], 0) + max(records.value.sizes[i], 0)
        sizes[row] = total


@kernel
def bound_records(records: RecordsToWrite, sizes: Ints) -> None:
    """The largest possible size of each record, in any batch [bytes]."""
    for i in range(sizes.size):
        body = _record_size(records, i, i) + layout.LONGEST_DELTAS
        sizes[i] = varint_size(body) + body


@kernel
def _record_size(records: RecordsToWrite, i: int, base: int) -> int:
    """Size of record ``i`` without its length field, in a batch whose first record is ``base`` [bytes]."""
    first, last = records.headers[i], records.headers[i + 1]
    total = 1 + varint_size(records.timestamp[i] - records.timestamp[base])
    total += varint_size(records.offset[i] - records.offset[base]) + varint_size(last - first)
    total += _field_size(records.key, i) + _field_size(records.value, i)
    for k in range(first, last):
        total += _field_size(records.header_key, k) + _field_size(records.header_value, k)
    return total


@kernel
def _field_size(fields: Spans, i: int) -> int:
    size = int64(fields.sizes[i])
    return varint_size(size) + max(size, 0)


# -- messages of magic 0 and 1


@kernel
def put_messages(
    out: Bytes, offsets: npt.NDArray[np.int32], magic: npt.NDArray[np.int8], timestamp: Ints, key: Spans, value: Spans
) -> None:
    """Write one message for each row, from its CRC on."""
    for row in range(magic.size):
        if offsets[row] < offsets[row + 1]:
            _put_message(out, int64(offsets[row]), magic[row], layout.NONE, timestamp[row], key, value, row)


@kernel
def _put_message(
    out: Bytes, pos: int, magic: int, attributes: int, timestamp: int, key: Spans, value: Spans, i: int
) -> int:
    at = _put_message_header(out, pos, magic, attributes, timestamp)
    at = _put_sized(out, at, key, i)
    return _sealed_message(out, pos, _put_sized(out, at, value, i))


@kernel
def _put_wrapper(out: Bytes, pos: int, magic: int, attributes: int, timestamp: int, payload: Spans, i: int) -> int:
    """Write a message without a key whose value is a compressed set."""
    at = _put_message_header(out, pos, magic, attributes, timestamp)
    store_i32(out, at, np.int32(-1), False)
    return _sealed_message(out, pos, _put_sized(out, at + layout.LENGTH, payload, i))


@kernel
def _put_message_header(out: Bytes, pos: int, magic: int, attributes: int, timestamp: int) -> int:
    store_u8(out, pos + _MESSAGE_MAGIC, np.uint8(magic))
    store_u8(out, pos + _ATTRIBUTES, np.uint8(attributes))
    if magic == 0:
        return pos + _KEY_0
    store_i64(out, pos + _TIMESTAMP, timestamp, False)
    return pos + _KEY_1


@kernel
def _put_sized(out: Bytes, pos: int, fields: Spans, i: int) -> int:
    store_i32(out, pos, np.int32(fields.sizes[i]), False)
    return _put_bytes(out, pos + layout.LENGTH, fields, i)


@kernel
def _put_bytes(out: Bytes, pos: int, fields: Spans, i: int) -> int:
    start, size = int64(fields.starts[i]), int64(fields.sizes[i])
    if size <= 0:
        return pos
    for line in range(start, start + size, _LINE):
        prefetch(fields.data, line + _AHEAD)
    copy(out, pos, fields.data, start, size)
    return pos + size


@kernel
def _sealed_message(out: Bytes, pos: int, end: int) -> int:
    store_i32(out, pos, np.int32(crc32(out, pos + _CRC_END, end - pos - _CRC_END)), False)
    return end


# -- sets


@kernel
def put_sets(
    out: Bytes, offsets: npt.NDArray[np.int32], sets: Sets, records: RecordsToWrite, bodies: Ints, payloads: Spans
) -> None:
    """Write one set for each row; ``payloads`` has the compressed payloads."""
    for row in range(sets.magic.size):
        pos = int64(offsets[row])
        if pos == offsets[row + 1]:
            continue
        if sets.magic[row] == 2:
            _put_batch(out, pos, row, sets, records, bodies, payloads)
        elif sets.codec[row] == layout.NONE:
            put_section(out, pos, row, sets, records, bodies)
        else:
            latest = _latest(row, sets, records)
            end = _put_wrapper(
                out,
                pos + layout.OVERHEAD,
                sets.magic[row],
                _attributes(sets, row, sets.codec[row]),
                latest,
                payloads,
                row,
            )
            _put_entry(out, pos, records.offset[sets.last[row] - 1], end)


@kernel
def _attributes(sets: Sets, row: int, codec: int) -> int:
    return int64(codec) | (layout.LOG_APPEND_TIME if sets.log_append_time[row] else 0)


@kernel
def _latest(row: int, sets: Sets, records: RecordsToWrite) -> int:
    latest = int64(layout.NO_TIMESTAMP)
    for i in range(sets.first[row], sets.last[row]):
        latest = max(latest, int64(records.timestamp[i]))
    return latest


@kernel
def _put_entry(out: Bytes, pos: int, offset: int, end: int) -> None:
    store_i64(out, pos, offset, False)
    store_i32(out, pos + _ENTRY_SIZE, np.int32(end - pos - layout.OVERHEAD), False)


@kernel
def put_section(out: Bytes, pos: int, row: int, sets: Sets, records: RecordsToWrite, bodies: Ints) -> int:
    """Write the records of a set: the part after a batch's header, or the message set of magic 0 and 1. Return its end."""
    first, magic = sets.first[row], sets.magic[row]
    # Compressed messages of magic 1 count from 0; their wrapper has the absolute offset.
    base = records.offset[first] if magic == 1 and sets.codec[row] != layout.NONE else int64(0)
    attributes = _attributes(sets, row, layout.NONE)
    for i in range(first, sets.last[row]):
        if magic == 2:
            pos = _put_record(out, pos, i, first, records, bodies)
        else:
            end = _put_message(
                out, pos + layout.OVERHEAD, magic, attributes, records.timestamp[i], records.key, records.value, i
            )
            _put_entry(out, pos, records.offset[i] - base, end)
            pos = end
    return pos


@kernel
def _put_batch(
    out: Bytes, pos: int, row: int, sets: Sets, records: RecordsToWrite, bodies: Ints, payloads: Spans
) -> None:
    end = pos + layout.BATCH_SIZE
    if sets.codec[row] == layout.NONE:
        end = put_section(out, end, row, sets, records, bodies)
    else:
        copy(out, end, payloads.data, payloads.starts[row], payloads.sizes[row])
        end += payloads.sizes[row]
    first, last = sets.first[row], sets.last[row] - 1
    _put_entry(out, pos, records.offset[first], end)
    store_i32(out, pos + _LEADER_EPOCH, sets.leader_epoch[row], False)
    store_u8(out, pos + _BATCH_MAGIC, np.uint8(2))
    store_i16(out, pos + _BATCH_ATTRIBUTES, np.int16(_attributes(sets, row, sets.codec[row])), False)
    store_i32(out, pos + _LAST_DELTA, np.int32(records.offset[last] - records.offset[first]), False)
    store_i64(out, pos + _BASE_TIMESTAMP, records.timestamp[first], False)
    store_i64(out, pos + _MAX_TIMESTAMP, _latest(row, sets, records), False)
    store_i64(out, pos + _PRODUCER_ID, _NOBODY, False)
    store_i16(out, pos + _PRODUCER_EPOCH, _NOBODY, False)
    store_i32(out, pos + _BASE_SEQUENCE, _NOBODY, False)
    store_i32(out, pos + _COUNT, np.int32(last - first + 1), False)
    covered = pos + _BATCH_ATTRIBUTES
    store_i32(out, pos + _BATCH_CRC, np.int32(crc32c(out, covered, end - covered)), False)


@kernel
def _put_record(out: Bytes, pos: int, i: int, first: int, records: RecordsToWrite, bodies: Ints) -> int:
    pos = put_varint(out, pos, bodies[i])
    store_u8(out, pos, np.uint8(0))
    pos = put_varint(out, pos + 1, records.timestamp[i] - records.timestamp[first])
    pos = put_varint(out, pos, records.offset[i] - records.offset[first])
    pos = _put_field(out, pos, records.key, i)
    pos = _put_field(out, pos, records.value, i)
    pos = put_varint(out, pos, records.headers[i + 1] - records.headers[i])
    for k in range(records.headers[i], records.headers[i + 1]):
        pos = _put_field(out, pos, records.header_key, k)
        pos = _put_field(out, pos, records.header_value, k)
    return pos


@kernel
def _put_field(out: Bytes, pos: int, fields: Spans, i: int) -> int:
    return _put_bytes(out, put_varint(out, pos, fields.sizes[i]), fields, i)
