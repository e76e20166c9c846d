"""``to_kafka_message`` and ``to_kafka_records``: messages, message sets and record batches, as Kafka's producers write them.

- A set of magic 0 or 1 is one entry a record, or one wrapper: its offset is the last record's, its timestamp the latest.
  Offsets inside a wrapper are absolute in magic 0; in magic 1 they count from 0.
- A batch is that of a producer without transactions or sequences, before a broker stamps it: producer id, epoch, sequence and
  leader epoch are -1; the first timestamp is the base, varints are the shortest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.errors import refusal
from sparkwire.core.column import Spans, build, empty, plain_value, spans_of
from sparkwire.kafka.compress import compress
from sparkwire.kafka.encode import (
    MESSAGE_SIZES,
    Records,
    Sets,
    measure_sets,
    put_messages,
    put_section,
    put_sets,
)
from sparkwire.kafka.layout import BATCH_SIZE, CODECS, NO_TIMESTAMP, NONE, OVERHEAD, ZSTD
from sparkwire.kernels import COPY_SLACK

Ints = npt.NDArray[np.int64]

_LARGEST = 2**31 - 1  # [bytes]
_LARGEST_OFFSET = 2**63 - 1
_MESSAGE_SIZES = np.array(MESSAGE_SIZES, np.int64)
_HEADER_SIZES = np.array([*(OVERHEAD + size for size in MESSAGE_SIZES), BATCH_SIZE], np.int64)
"""of a compressed set before its payload, by its magic [bytes]"""


def encode_message(key: pa.Array, value: pa.Array, timestamp_ms: pa.Array | None, magic: pa.Array | None) -> pa.Array:
    """One message a row; a NULL key or value is null in the message, too."""
    keys, values = spans_of(key), spans_of(value)
    stamps, asked = (pa.nulls(len(key)) if column is None else column for column in (timestamp_ms, magic))
    # Without a magic, a message has the one that can say what there is.
    magics = np.where(_valid(asked), _numbers(asked, 0), _valid(stamps))
    if ((magics < 0) | (magics > 1)).any():
        raise refusal("to_kafka_message", "magic 0 or 1", magics[(magics < 0) | (magics > 1)][0])
    sizes = _MESSAGE_SIZES[magics] + np.maximum(keys.sizes, 0) + np.maximum(values.sizes, 0)
    _check_sizes("to_kafka_message", sizes)
    magic_bytes, times = magics.astype(np.int8), _numbers(stamps, NO_TIMESTAMP)
    return build(sizes, lambda offsets, out: put_messages(out, offsets, magic_bytes, times, keys, values), pa.binary())


def encode_records(records: pa.Array, base_offset: pa.Array, compression: pa.Array, magic: pa.Array) -> pa.Array:
    """One set a row, without bytes for no records."""
    codecs, magics = _codecs(compression), _magics(magic)
    if ((codecs == ZSTD) & (magics < 2)).any():
        raise refusal("to_kafka_records", "compression zstd with magic 2 only", f"magic {magics[codecs == ZSTD].min()}")
    counts, offsets = _lengths(records), _numbers(base_offset, 0)
    beyond = (offsets < 0) | (offsets > _LARGEST_OFFSET - counts)
    if beyond.any():
        raise refusal(
            "to_kafka_records", "a base_offset of 0 or more that leaves room for the records", offsets[beyond][0]
        )
    ends = np.concatenate([[0], np.cumsum(counts)])
    sets = Sets(ends[:-1], ends[1:], offsets, magics, codecs)
    items = _records(records.flatten())
    headed = (items.headers[sets.last] > items.headers[sets.first]) & (magics < 2)
    if headed.any():
        raise refusal("to_kafka_records", "headers with magic 2 only", f"magic {magics[headed][0]}")
    return _encode(sets, items)


def _encode(sets: Sets, records: Records) -> pa.Array:
    bodies = empty(len(records.timestamp), np.int64)
    sizes = empty(len(sets.first), np.int64)
    measure_sets(sets, records, bodies, sizes)
    _check_sizes("to_kafka_records", sizes + BATCH_SIZE)
    filled = sets.last > sets.first
    packed = filled & (sets.codec != NONE)
    payloads = _payloads(sets, records, bodies, np.where(packed, sizes, 0))
    headers = np.where(packed | (filled & (sets.magic == 2)), _HEADER_SIZES[sets.magic], 0)
    totals = headers + np.where(packed, payloads.sizes, sizes)
    return build(totals, lambda offsets, out: put_sets(out, offsets, sets, records, bodies, payloads), pa.binary())


def _payloads(sets: Sets, records: Records, bodies: Ints, sizes: Ints) -> Spans:
    """What compression makes of the sets that have a size [bytes]."""
    plain = empty(int(sizes.max(initial=0)), np.uint8, COPY_SLACK)
    made: list[bytes] = []
    compressed = np.zeros(len(sizes), np.int64)
    for row in np.flatnonzero(sizes).tolist():
        put_section(plain, 0, row, sets, records, bodies)
        made.append(compress(int(sets.codec[row]), plain.data[: sizes[row]], int(sets.magic[row])))
        compressed[row] = len(made[-1])
    data = np.frombuffer(b"".join(made) or bytes(1), np.uint8)
    return Spans(data, np.cumsum(compressed) - compressed, compressed)


# -- columns


def _records(items: pa.Array) -> Records:
    key, value, timestamp, headers = items.flatten()
    header_items = headers.flatten()
    header_key, header_value = header_items.flatten()
    if items.null_count:
        raise refusal("to_kafka_records", "records that are not NULL", "NULL among them")
    if header_key.null_count:
        raise refusal("to_kafka_records", "headers with a key", "NULL")
    ends = np.concatenate([[0], np.cumsum(_lengths(headers))])
    stamps = _numbers(timestamp, NO_TIMESTAMP)
    return Records(spans_of(key), spans_of(value), stamps, ends, spans_of(header_key), spans_of(header_value))


def _lengths(lists: pa.Array) -> Ints:
    """How many items each row has, a NULL row none."""
    return np.asarray(lists.value_lengths().fill_null(0), np.int64)


def _numbers(column: pa.Array, absent: int) -> Ints:
    return np.asarray(column.cast(pa.int64()).fill_null(absent))


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(column.is_valid())


# -- arguments


def _codecs(compression: pa.Array) -> npt.NDArray[np.int8]:
    known = pc.index_in(pc.ascii_lower(compression), pa.array(CODECS))
    unknown = compression.filter(pc.and_(compression.is_valid(), known.is_null()))
    if len(unknown):
        names = ", ".join(CODECS[:-1]) + f" or {CODECS[-1]}"
        raise refusal("to_kafka_records", f"compression {names}", repr(plain_value(unknown[0])))
    return np.asarray(known.fill_null(NONE), np.int8)


def _magics(magic: pa.Array) -> npt.NDArray[np.int8]:
    magics = _numbers(magic, 2)
    if ((magics < 0) | (magics > 2)).any():
        raise refusal("to_kafka_records", "magic 0, 1 or 2", magics[(magics < 0) | (magics > 2)][0])
    return magics.astype(np.int8)


def _check_sizes(function: str, sizes: Ints) -> None:
    largest = int(sizes.max(initial=0))
    if largest > _LARGEST:
        raise refusal(function, f"up to {_LARGEST} bytes a row", f"{largest}")
