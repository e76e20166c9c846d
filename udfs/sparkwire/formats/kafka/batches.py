"""``kafka_batches`` and what needs headers only: how far log bytes are sound, and where an offset is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.column import binary_of, empty, from_codes, lists, primitive, struct
from sparkwire.errors import BAD_MAGIC, CRC_MISMATCH, ERRORS, OK, UNKNOWN_CODEC
from sparkwire.formats.kafka import headers as header
from sparkwire.formats.kafka.entries import checks, frame, next_of, slabs
from sparkwire.formats.kafka.headers import Column, Headers
from sparkwire.formats.kafka.layout import BATCH, CODECS, DELETE_HORIZON, MAGIC, NO_TIMESTAMP, TIMESTAMP_TYPES
from sparkwire.kernels import Bytes, i8, i32, i64, int64, kernel

Ints = npt.NDArray[np.int64]

_LAST_DELTA = BATCH["last_offset_delta"].offset
_NO_SEQUENCE = -1


def decode_batches(data: pa.Array) -> pa.Array:
    source = binary_of(data)
    entries = Headers(source)
    for slab in slabs(source, verify=True):
        entries.add(slab)
    offsets = np.searchsorted(entries.slab.row, np.arange(source.rows + 1)).astype(np.int32)
    return lists(offsets, struct(_columns(entries)))


def _columns(entries: Headers) -> dict[str, pa.Array]:
    error = entries.slab.error
    known_bad = (error == OK) & entries.codec.valid & ~entries.codec_known
    judged = (error == OK) | (error == CRC_MISMATCH)
    crc = entries.number(header.CRC)
    codes = np.where(entries.codec_known, entries.codec.values, -1).astype(np.int8)
    stamps = np.where(entries.timestamp_type.valid, entries.timestamp_type.values, -1).astype(np.int8)
    size = (entries.slab.stop - entries.slab.begin).astype(np.int32)
    return {
        "position": primitive(entries.position),
        "size": primitive(size, entries.slab.whole),
        "base_offset": _column(_base_offset(entries)),
        "last_offset": _column(entries.last_offset),
        "magic": _column(entries.number(header.MAGIC_BYTE, np.int8)),
        "crc": _column(crc),
        "crc_valid": primitive(error == OK, judged),
        "compression": from_codes(codes, CODECS),
        "timestamp_type": from_codes(stamps, TIMESTAMP_TYPES),
        "base_timestamp_ms": _column(entries.number(header.BASE_TIMESTAMP).unless(NO_TIMESTAMP)),
        "max_timestamp_ms": _column(entries.max_timestamp),
        "record_count": _column(_record_count(entries)),
        "partition_leader_epoch": _column(entries.number(header.LEADER_EPOCH, np.int32)),
        "producer_id": _column(entries.number(header.PRODUCER_ID)),
        "producer_epoch": _column(entries.number(header.PRODUCER_EPOCH, np.int16)),
        "base_sequence": _column(entries.number(header.BASE_SEQUENCE, np.int32)),
        "last_sequence": _column(_last_sequence(entries)),
        "is_transactional": _column(entries.is_transactional),
        "is_control": _column(entries.is_control),
        "delete_horizon_ms": _column(_delete_horizon(entries)),
        "error": from_codes(np.where(known_bad, np.int8(UNKNOWN_CODEC), error), ERRORS),
    }


def _column(column: Column) -> pa.Array:
    return primitive(np.ascontiguousarray(column.values), column.valid)


def _base_offset(entries: Headers) -> Column:
    offset = entries.number(header.OFFSET)
    return Column(offset.values, offset.valid & ~entries.is_wrapper)


def _record_count(entries: Headers) -> Column:
    count = entries.number(header.COUNT, np.int32)
    plain = entries.is_message & entries.codec.valid & ~entries.is_wrapper
    return Column(np.where(plain, np.int32(1), count.values), count.valid | plain)


def _last_sequence(entries: Headers) -> Column:
    """Of the last record that was written: from 2^31 - 1 sequences go on with 0."""
    base, delta = entries.number(header.BASE_SEQUENCE), entries.number(header.LAST_DELTA)
    last = base.values + delta.values
    last = np.where(last > 2**31 - 1, last - 2**31, last)
    return Column(np.where(base.values == _NO_SEQUENCE, _NO_SEQUENCE, last).astype(np.int32), base.valid)


def _delete_horizon(entries: Headers) -> Column:
    base = entries.number(header.BASE_TIMESTAMP)
    return Column(base.values, base.valid & entries.flag(DELETE_HORIZON).values)


# -- how far the bytes are sound


@kernel
def last_offset(data: Bytes, pos: int) -> int:
    """Of the last record of the well-framed entry at ``pos``."""
    offset = i64(data, pos, False)
    return offset + int64(i32(data, pos + _LAST_DELTA, False)) if i8(data, pos + MAGIC) == 2 else offset


@kernel
def sound_prefixes(data: Bytes, offsets: npt.NDArray[Any], sizes: npt.NDArray[np.int32], following: Ints) -> None:
    """How many bytes from the front are sound entries [bytes], and the offset behind the last of them."""
    for row in range(sizes.size):
        start, end = int64(offsets[row]), int64(offsets[row + 1])
        pos = start
        following[row] = 0
        while pos < end and frame(data, pos, end) == OK and checks(data, pos):
            following[row] = last_offset(data, pos) + 1
            pos = next_of(data, pos)
        sizes[row] = pos - start


def _prefixes(data: pa.Array) -> tuple[npt.NDArray[np.int32], Ints]:
    source = binary_of(data)
    sizes, following = empty(source.rows, np.int32), empty(source.rows, np.int64)
    sound_prefixes(source.data, source.offsets, sizes, following)
    return sizes, following


def decode_valid_bytes(data: pa.Array) -> pa.Array:
    return primitive(_prefixes(data)[0])


def decode_next_offset(data: pa.Array) -> pa.Array:
    sizes, following = _prefixes(data)
    return primitive(following, sizes > 0)


# -- where an offset is


@kernel
def find_offsets(rows: npt.NDArray[np.int32], offsets: Ints, usable: Any, targets: Ints, found: Ints) -> None:
    """``found[row]``: the first usable entry of the row whose offset is at least ``targets[row]``; -1 if none."""
    for entry in range(rows.size):
        row = rows[entry]
        if found[row] < 0 and usable[entry] and offsets[entry] >= targets[row]:
            found[row] = entry


def decode_search_offset(data: pa.Array, target: pa.Array) -> pa.Array:
    source = binary_of(data)
    entries = Headers(source)
    for slab in slabs(source, verify=False):
        entries.add(slab)
    last = entries.last_offset
    found = np.full(source.rows, -1, np.int64)
    targets = target.fill_null(0).to_numpy(zero_copy_only=False)
    usable = entries.slab.whole & (entries.slab.error != BAD_MAGIC)
    find_offsets(entries.slab.row, last.values, usable, targets, found)
    some = found >= 0
    at = found[some]
    offset, position = np.zeros(source.rows, np.int64), np.zeros(source.rows, np.int32)
    offset[some] = last.values[at]
    position[some] = entries.position[at]
    return struct({"offset": primitive(offset), "position": primitive(position)}, some)
