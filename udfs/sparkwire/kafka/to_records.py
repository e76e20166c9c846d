"""``to_kafka_message`` and ``to_kafka_records``: encode messages, message sets and record batches as Kafka's producers do.

- A set of magic 0 or 1 has one entry for each record, or one wrapper. A wrapper has the last record's offset and the latest
  timestamp. Offsets inside a wrapper are absolute in magic 0; in magic 1 they count from 0.
- A batch is like that of a producer without transactions or sequences: producer id, epoch and sequence are -1. The leader epoch
  is also -1, until a broker sets it. The base timestamp is the first record's. Varints have their shortest form.
- Records with offsets keep them, including gaps from compaction. If their offsets differ by more than 2^31 - 1, they become
  several batches.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import argument_error
from sparkwire.core.column import Spans, build, empty, plain_value, spans_of
from sparkwire.kafka import codecs
from sparkwire.kafka.batch_bytes import (
    RecordsToWrite,
    Sets,
    measure_sets,
    put_messages,
    put_section,
    put_sets,
)
from sparkwire.kafka.layout import BATCH_SIZE, MESSAGE_SIZES, NO_TIMESTAMP, NONE, OVERHEAD, TIMESTAMP_TYPES
from sparkwire.kernels import COPY_SLACK

Ints = npt.NDArray[np.int64]

_NAME = "to_kafka_records"
_LARGEST = 2**31 - 1  # [bytes]
LARGEST_OFFSET = 2**63 - 1
LARGEST_DELTA = 2**31 - 1
"""largest difference of the offsets of a batch's last and first record"""
_MESSAGE_SIZES = np.array(MESSAGE_SIZES, np.int64)
_HEADER_SIZES = np.array([*(OVERHEAD + size for size in MESSAGE_SIZES), BATCH_SIZE], np.int64)
"""size of a compressed set without its payload, by its magic [bytes]"""


def encode_message(key: pa.Array, value: pa.Array, timestamp_ms: pa.Array | None, magic: pa.Array | None) -> pa.Array:
    """One message for each row; a NULL key or value becomes a null key or value."""
    keys, values = spans_of(key), spans_of(value)
    stamps, stated = (_or_null(column, len(key)) for column in (timestamp_ms, magic))
    # Without a magic, the message gets magic 1 if it has a timestamp, else magic 0.
    magics = np.where(_valid(stated), _numbers(stated, 0), _valid(stamps))
    if ((magics < 0) | (magics > 1)).any():
        raise argument_error("to_kafka_message", "magic 0 or 1", magics[(magics < 0) | (magics > 1)][0])
    sizes = _MESSAGE_SIZES[magics] + np.maximum(keys.sizes, 0) + np.maximum(values.sizes, 0)
    _check_sizes("to_kafka_message", sizes)
    magic_bytes, times = magics.astype(np.int8), _numbers(stamps, NO_TIMESTAMP)
    return build(sizes, lambda offsets, out: put_messages(out, offsets, magic_bytes, times, keys, values), pa.binary())


def encode_records(
    records: pa.Array,
    base_offset: pa.Array,
    compression: pa.Array,
    magic: pa.Array,
    leader_epoch: pa.Array | None = None,
    timestamp_type: pa.Array | None = None,
) -> pa.Array:
    """One set for each row, empty for no records; several batches if one batch cannot hold the offsets."""
    magics = _magics(magic)
    numbers = _codecs(compression, magics)
    appended = _log_append_time(timestamp_type, magics)
    epochs = _numbers(_or_null(leader_epoch, len(magics)), -1).astype(np.int32)
    ends = np.concatenate([[0], np.cumsum(_lengths(records))])
    items = _records(records.flatten(), _numbers(base_offset, 0), ends)
    headed = (items.headers[ends[1:]] > items.headers[ends[:-1]]) & (magics < 2)
    if headed.any():
        raise argument_error(_NAME, "headers with magic 2 only", f"magic {magics[headed][0]}")
    cuts, rows = _split_by_offset(items.offset, ends, magics)
    sets = Sets(cuts[:-1], cuts[1:], magics[rows], numbers[rows], appended[rows], epochs[rows])
    if appended.any():
        items = items._replace(timestamp=_of_sets(sets, items.timestamp))
    return _by_row(encode(sets, items), np.searchsorted(rows, np.arange(len(magics) + 1)))


def _split_by_offset(offsets: Ints, ends: Ints, magics: npt.NDArray[np.int8]) -> tuple[Ints, Ints]:
    """The ends of sets, beginning with 0, and each set's row. A row is one set, or several batches that can hold their
    offsets.
    """
    cuts, rows = [0], []
    filled = np.flatnonzero((ends[1:] > ends[:-1]) & (magics == 2))
    if len(filled) == 0 or (offsets[ends[filled + 1] - 1] - offsets[ends[filled]]).max() <= LARGEST_DELTA:
        return ends, np.arange(len(magics))
    for row, (first, end) in enumerate(pairwise(ends.tolist())):
        while magics[row] == 2 and first < end:
            first += int(np.searchsorted(offsets[first:end] - offsets[first], LARGEST_DELTA, "right"))
            cuts.append(first)
            rows.append(row)
        if cuts[-1] < end or rows[-1:] != [row]:
            cuts.append(end)
            rows.append(row)
    return np.array(cuts), np.array(rows)


def _of_sets(sets: Sets, timestamps: Ints) -> Ints:
    """The timestamps of records. In a set with log append time, all get the latest, because a broker appends them at once."""
    latest = timestamps.copy()
    for k in np.flatnonzero(sets.log_append_time & (sets.last > sets.first)).tolist():
        some = slice(sets.first[k], sets.last[k])
        latest[some] = timestamps[some].max()
    return latest


def _by_row(sets: pa.Array, firsts: Ints) -> pa.Array:
    """The concatenated sets of each row."""
    if len(sets) == len(firsts) - 1:
        return sets
    _, offsets, data = sets.buffers()
    ends = np.frombuffer(offsets, np.int32)[firsts]
    return pa.Array.from_buffers(pa.binary(), len(firsts) - 1, [None, pa.py_buffer(ends), data])


def encode(sets: Sets, records: RecordsToWrite) -> pa.Array:
    """BINARY: the bytes of each set."""
    bodies = empty(len(records.timestamp), np.int64)
    sizes = empty(len(sets.first), np.int64)
    measure_sets(sets, records, bodies, sizes)
    _check_sizes(_NAME, sizes + BATCH_SIZE)
    filled = sets.last > sets.first
    packed = filled & (sets.codec != NONE)
    payloads = _payloads(sets, records, bodies, np.where(packed, sizes, 0))
    headers = np.where(packed | (filled & (sets.magic == 2)), _HEADER_SIZES[sets.magic], 0)
    totals = headers + np.where(packed, payloads.sizes, sizes)
    return build(totals, lambda offsets, out: put_sets(out, offsets, sets, records, bodies, payloads), pa.binary())


def _payloads(sets: Sets, records: RecordsToWrite, bodies: Ints, sizes: Ints) -> Spans:
    """The compressed payloads of sets; ``sizes`` has their uncompressed sizes [bytes]."""
    plain = empty(int(sizes.max(initial=0)), np.uint8, COPY_SLACK)
    made: list[bytes] = []
    compressed = np.zeros(len(sizes), np.int64)
    for row in np.flatnonzero(sizes).tolist():
        put_section(plain, 0, row, sets, records, bodies)
        made.append(codecs.compressed(int(sets.codec[row]), plain.data[: sizes[row]], int(sets.magic[row])))
        compressed[row] = len(made[-1])
    data = np.frombuffer(b"".join(made) or bytes(1), np.uint8)
    return Spans(data, np.cumsum(compressed) - compressed, compressed)


# -- columns


def _records(items: pa.Array, base_offsets: Ints, ends: Ints) -> RecordsToWrite:
    if items.null_count:
        raise argument_error(_NAME, "records that are not NULL", "NULL among them")
    key, value, timestamp, headers, offset = items.flatten()
    offsets = _offsets(offset, base_offsets, ends)
    return records_of(offsets, _numbers(timestamp, NO_TIMESTAMP), key, value, headers)


def _offsets(offset: pa.Array, base_offsets: Ints, ends: Ints) -> Ints:
    """The offsets of records: their own, or if no record of a row has one, numbered from the row's base offset on."""
    with_offset = np.concatenate([[0], np.cumsum(_valid(offset))])
    counts, offset_counts = np.diff(ends), np.diff(with_offset[ends])
    if ((offset_counts != 0) & (offset_counts != counts)).any():
        raise argument_error(_NAME, "an offset in each record or in none", "NULL among them")
    numbered = offset_counts == 0
    offsets = np.where(np.repeat(numbered, counts), _numbered(base_offsets, ends, numbered), _numbers(offset, 0))
    _check_order(offsets, ends)
    return offsets


def _numbered(base_offsets: Ints, ends: Ints, rows: npt.NDArray[np.bool_]) -> Ints:
    """The offsets of records without offsets, numbered from their row's base offset, which must be valid in these ``rows``."""
    counts = np.diff(ends)
    beyond = rows & ((base_offsets < 0) | (base_offsets > LARGEST_OFFSET - counts))
    if beyond.any():
        raise argument_error(
            _NAME, "a base_offset of 0 or more that leaves room for the records", base_offsets[beyond][0]
        )
    return np.arange(ends[-1]) + np.repeat(base_offsets - ends[:-1], counts)


def _check_order(offsets: Ints, ends: Ints) -> None:
    """ValueError if the offsets of a row are negative or do not ascend."""
    wrong = offsets < 0
    wrong[1:] |= (offsets[1:] <= offsets[:-1]) & ~np.isin(np.arange(1, len(offsets)), ends)
    if wrong.any():
        at = int(wrong.argmax())
        raise argument_error(
            _NAME, "offsets of 0 or more that ascend", f"{offsets[at]}" + (f" after {offsets[at - 1]}" if at else "")
        )


def records_of(offsets: Ints, timestamps: Ints, key: pa.Array, value: pa.Array, headers: pa.Array) -> RecordsToWrite:
    """The columns of records for kernels; ``headers`` is ARRAY<STRUCT<key STRING, value BINARY>>.

    ValueError if a header has no key.
    """
    header_key, header_value = headers.flatten().flatten()
    if header_key.null_count:
        raise argument_error(_NAME, "headers with a key", "NULL")
    ends = np.concatenate([[0], np.cumsum(_lengths(headers))])
    return RecordsToWrite(
        offsets, timestamps, spans_of(key), spans_of(value), ends, spans_of(header_key), spans_of(header_value)
    )


def _lengths(lists: pa.Array) -> Ints:
    """The number of items in each row; 0 for NULL."""
    return np.asarray(lists.value_lengths().fill_null(0), np.int64)


def _numbers(column: pa.Array, absent: int) -> Ints:
    return np.asarray(column.cast(pa.int64()).fill_null(absent))


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(column.is_valid())


# -- arguments


def _codecs(compression: pa.Array, magics: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    written = codecs.writable()
    places = pc.index_in(pc.ascii_lower(compression), pa.array(written))
    unknown = compression.filter(pc.and_(compression.is_valid(), places.is_null()))
    if len(unknown):
        raise argument_error(_NAME, f"compression {codecs.listed(written)}", repr(plain_value(unknown[0])))
    ids = np.array([codecs.BY_NAME[name].id for name in written], np.int8)
    numbers: npt.NDArray[np.int8] = ids[np.asarray(places.fill_null(written.index(codecs.BY_ID[NONE].name)))]
    for codec in codecs.CODECS:
        other = (numbers == codec.id) & ~np.isin(magics, codec.magics)
        if other.any():
            only = " and ".join(map(str, codec.magics))
            raise argument_error(
                _NAME, f"compression {codec.name} with magic {only} only", f"magic {magics[other].min()}"
            )
    return numbers


def _log_append_time(timestamp_type: pa.Array | None, magics: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
    types = _or_null(timestamp_type, len(magics)).cast(pa.string())
    codes = pc.index_in(types, pa.array(TIMESTAMP_TYPES))
    unknown = types.filter(pc.and_(types.is_valid(), codes.is_null()))
    if len(unknown):
        raise argument_error(_NAME, f"timestamp_type {' or '.join(TIMESTAMP_TYPES)}", repr(plain_value(unknown[0])))
    appended: npt.NDArray[np.bool_] = np.asarray(codes.fill_null(0)) == 1
    if (appended & (magics == 0)).any():
        raise argument_error(_NAME, f"timestamp_type {TIMESTAMP_TYPES[1]} with magic 1 and 2 only", "magic 0")
    return appended


def _or_null(column: pa.Array | None, rows: int) -> pa.Array:
    return pa.nulls(rows) if column is None else column


def _magics(magic: pa.Array) -> npt.NDArray[np.int8]:
    magics = _numbers(magic, 2)
    if ((magics < 0) | (magics > 2)).any():
        raise argument_error(_NAME, "magic 0, 1 or 2", magics[(magics < 0) | (magics > 2)][0])
    return magics.astype(np.int8)


def _check_sizes(function: str, sizes: Ints) -> None:
    largest = int(sizes.max(initial=0))
    if largest > _LARGEST:
        raise argument_error(function, f"up to {_LARGEST} bytes for each row", f"{largest}")
