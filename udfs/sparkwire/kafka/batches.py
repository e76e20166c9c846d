"""``kafka_batches``: a row for each entry, from its header alone; nothing is decompressed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from sparkwire.base.errors import CRC_MISMATCH, ERRORS, OK, UNKNOWN_CODEC
from sparkwire.core.builders import Column
from sparkwire.core.column import Binary, binary_of, from_codes, lists, primitive
from sparkwire.kafka.batch_headers import BatchHeaders, Nullable, header_block
from sparkwire.kafka.framing import FrameBlock, frame_blocks, framing_of
from sparkwire.kafka.layout import BATCH, CODECS, DELETE_HORIZON, NO_TIMESTAMP, TIMESTAMP_TYPES

_NO_SEQUENCE = -1


class Batches(BatchHeaders):
    """The entries of a column of log bytes, and whether each is valid."""

    def lists(self, found: pa.Array) -> pa.Array:
        ends = np.searchsorted(self.frames.row, np.arange(self.source.rows + 1)).astype(np.int32)
        return lists(ends, found)


def nullable(column: Nullable) -> pa.Array:
    """A column of Arrow."""
    return primitive(np.ascontiguousarray(column.values), column.valid)


def _stored(name: str) -> Callable[[Batches], pa.Array]:
    return lambda batches: nullable(batches.field(name))


def _field(name: str) -> Column[Batches]:
    """A column that is a field of the header, with the type and the doc of its layout."""
    field = BATCH[name].field
    return Column(name, field.sql, _sentence(field.doc), _stored(name))


def _sentence(doc: str) -> str:
    return f"{doc[0].upper()}{doc[1:]}."


def size(batches: Batches) -> pa.Array:
    sizes = (batches.frames.stop - batches.frames.begin).astype(np.int32)
    return primitive(sizes, batches.frames.whole)


def base_offset(batches: Batches) -> pa.Array:
    offset = batches.field("offset")
    return primitive(offset.values, offset.valid & ~batches.is_wrapper)


def crc_valid(batches: Batches) -> pa.Array:
    error = batches.frames.error
    return primitive(error == OK, (error == OK) | (error == CRC_MISMATCH))


def record_count(batches: Batches) -> pa.Array:
    count = batches.field("record_count")
    plain = batches.is_message & batches.codec.valid & ~batches.is_wrapper
    return primitive(np.where(plain, np.int32(1), count.values), count.valid | plain)


def last_sequence(batches: Batches) -> pa.Array:
    """Of the last record that was written: from 2^31 - 1 sequences go on with 0."""
    base, delta = batches.field("base_sequence"), batches.field("last_offset_delta")
    last = base.values.astype(np.int64) + delta.values
    last = np.where(last > 2**31 - 1, last - 2**31, last)
    return primitive(np.where(base.values == _NO_SEQUENCE, _NO_SEQUENCE, last).astype(np.int32), base.valid)


def delete_horizon(batches: Batches) -> pa.Array:
    base = batches.field("base_timestamp")
    return primitive(base.values, base.valid & batches.flag(DELETE_HORIZON).values)


def error(batches: Batches) -> pa.Array:
    found = batches.frames.error
    unknown = (found == OK) & batches.codec.valid & (batches.known_codec < 0)
    return from_codes(np.where(unknown, np.int8(UNKNOWN_CODEC), found), ERRORS)


def scan_batches(data: pa.Array) -> Batches:
    """All entries of a column of log bytes."""
    source = binary_of(data)
    return batches_of(source, frame_blocks(framing_of(source)))


def batches_of(source: Binary, frames: Iterable[FrameBlock]) -> Batches:
    """The same of entries that have been framed."""
    return Batches(source, [header_block(source.data, block) for block in frames])


BATCHES: tuple[Column[Batches], ...] = (
    Column("position", "INT", "Where the entry begins in the bytes given [bytes].", lambda b: primitive(b.position)),
    Column(
        "size",
        "INT",
        "Of the whole entry with its offset and size field [bytes]; NULL for bytes that are no credible entry.",
        size,
    ),
    Column(
        "base_offset",
        "BIGINT",
        "Offset of the first record; NULL for a compressed message of magic 0 or 1, which does not tell it unopened.",
        base_offset,
    ),
    Column(
        "last_offset",
        "BIGINT",
        "Offset of the last record that was written, which compaction may have removed.",
        lambda b: nullable(b.last_offset),
    ),
    Column("magic", "TINYINT", "Version of the format: 0, 1 or 2; others as stored.", _stored("magic")),
    Column("crc", "BIGINT", "The checksum as stored: CRC-32 in magic 0 and 1, CRC-32C in magic 2.", _stored("crc")),
    Column("crc_valid", "BOOLEAN", "Whether it is that of the bytes; NULL where bytes are missing.", crc_valid),
    Column(
        "compression",
        "STRING",
        "Codec: none, gzip, snappy, lz4, zstd; NULL for an unknown one.",
        lambda b: from_codes(b.known_codec, CODECS),
    ),
    Column(
        "timestamp_type",
        "STRING",
        "CreateTime or LogAppendTime; NULL in magic 0.",
        lambda b: from_codes(b.timestamp_type, TIMESTAMP_TYPES),
    ),
    Column(
        "base_timestamp_ms",
        "BIGINT",
        "What the records' timestamps are stored relative to, also where it is a delete horizon [ms since epoch].",
        lambda b: nullable(b.field("base_timestamp").unless(NO_TIMESTAMP)),
    ),
    Column(
        "max_timestamp_ms",
        "BIGINT",
        "Largest timestamp of the batch; that of the message in magic 1 [ms since epoch].",
        lambda b: nullable(b.max_timestamp()),
    ),
    Column(
        "record_count",
        "INT",
        "Records that are left in it; 1 for a plain message, NULL for a compressed one of magic 0 or 1.",
        record_count,
    ),
    _field("partition_leader_epoch"),
    _field("producer_id"),
    _field("producer_epoch"),
    _field("base_sequence"),
    Column(
        "last_sequence",
        "INT",
        "Sequence of the last record that was written, -1 for none; after 2^31 - 1 comes 0.",
        last_sequence,
    ),
    Column(
        "is_transactional", "BOOLEAN", "Whether it belongs to a transaction.", lambda b: nullable(b.is_transactional())
    ),
    Column(
        "is_control",
        "BOOLEAN",
        "Whether its records are written by brokers, such as a transaction's end.",
        lambda b: nullable(b.is_control()),
    ),
    Column(
        "delete_horizon_ms",
        "BIGINT",
        "From when on compaction may remove its tombstones; NULL where none is set [ms since epoch].",
        delete_horizon,
    ),
    Column("error", "STRING", "Why the entry cannot be read; NULL for a valid one.", error),
)
"""The columns of ``kafka_batches``."""
