"""``kafka_batches``: a row for each entry, from its header, without decompression."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa

from sparkwire.base.error_codes import CRC_MISMATCH, ERRORS, OK, UNKNOWN_CODEC
from sparkwire.core.builders import Column, ColumnTable
from sparkwire.core.column import Binary, binary_of, from_codes, lists, primitive
from sparkwire.kafka.batch_headers import BatchHeaders, Nullable, header_block
from sparkwire.kafka.codecs import NAMES, READ_NAMES
from sparkwire.kafka.framing import FrameBlock, frame_blocks, framing_of
from sparkwire.kafka.layout import BATCH, DELETE_HORIZON, NO_TIMESTAMP, TIMESTAMP_TYPES

_NO_SEQUENCE = -1


class Batches(BatchHeaders):
    """The entries of a column of log bytes, and whether each is valid."""

    def lists(self, entries: pa.Array) -> pa.Array:
        ends = np.searchsorted(self.frames.row, np.arange(self.source.rows + 1)).astype(np.int32)
        return lists(ends, entries)


def nullable(column: Nullable) -> pa.Array:
    """An Arrow column of the values."""
    return primitive(np.ascontiguousarray(column.values), column.valid)


def _field(name: str) -> Column[Batches]:
    """A column for a field of the header, with the type and the doc from its layout."""
    field = BATCH[name].field
    return Column(
        name, field.sql, f"{field.doc[0].upper()}{field.doc[1:]}.", lambda batches: nullable(batches.field(name))
    )


def scan_batches(data: pa.Array) -> Batches:
    """All entries of a column of log bytes."""
    source = binary_of(data)
    return batches_of(source, frame_blocks(framing_of(source)))


def batches_of(source: Binary, frames: Iterable[FrameBlock]) -> Batches:
    """The entries that framing has found."""
    return Batches(source, [header_block(source.data, block) for block in frames])


BATCHES: Final = ColumnTable["Batches"]()
"""The columns of ``kafka_batches``."""


@BATCHES.column("INT")
def position(batches: Batches) -> pa.Array:
    """Position of the entry in the log bytes [bytes]."""
    return primitive(batches.position)


@BATCHES.column("INT")
def size(batches: Batches) -> pa.Array:
    """Size of the whole entry, including its offset and size field [bytes]; NULL for bytes that are not a credible entry."""
    sizes = (batches.frames.stop - batches.frames.begin).astype(np.int32)
    return primitive(sizes, batches.frames.whole)


@BATCHES.column("BIGINT")
def base_offset(batches: Batches) -> pa.Array:
    """Offset of the first record; NULL for a compressed message of magic 0 or 1, whose header does not have it."""
    offset = batches.field("offset")
    return primitive(offset.values, offset.valid & ~batches.is_wrapper)


@BATCHES.column("BIGINT")
def last_offset(batches: Batches) -> pa.Array:
    """Offset of the last record that was written; compaction may have removed that record."""
    return nullable(batches.last_offset)


@BATCHES.column("TINYINT")
def magic(batches: Batches) -> pa.Array:
    """Version of the format: 0, 1 or 2; any other value is returned unchanged."""
    return nullable(batches.field("magic"))


@BATCHES.column("BIGINT")
def crc(batches: Batches) -> pa.Array:
    """The checksum as stored: CRC-32 in magic 0 and 1, CRC-32C in magic 2."""
    return nullable(batches.field("crc"))


@BATCHES.column("BOOLEAN")
def crc_valid(batches: Batches) -> pa.Array:
    """Whether the checksum is right; NULL if bytes are missing."""
    error = batches.frames.error
    return primitive(error == OK, (error == OK) | (error == CRC_MISMATCH))


@BATCHES.column("STRING", doc=f"Codec: {', '.join(READ_NAMES)}; NULL for an unknown one.")
def compression(batches: Batches) -> pa.Array:
    return from_codes(batches.readable_codec, NAMES)


@BATCHES.column("STRING")
def timestamp_type(batches: Batches) -> pa.Array:
    """CreateTime or LogAppendTime; NULL in magic 0."""
    return from_codes(batches.timestamp_type, TIMESTAMP_TYPES)


@BATCHES.column("BIGINT")
def base_timestamp_ms(batches: Batches) -> pa.Array:
    """Base of the records' timestamps, which may also be a delete horizon [ms since epoch]."""
    return nullable(batches.field("base_timestamp").unless(NO_TIMESTAMP))


@BATCHES.column("BIGINT")
def max_timestamp_ms(batches: Batches) -> pa.Array:
    """Largest timestamp of the batch; in magic 1, the timestamp of the message [ms since epoch]."""
    return nullable(batches.max_timestamp())


@BATCHES.column("INT")
def record_count(batches: Batches) -> pa.Array:
    """Number of records that the batch still has; 1 for a plain message, NULL for a compressed message of magic 0 or 1."""
    count = batches.field("record_count")
    plain = batches.is_message & batches.codec.valid & ~batches.is_wrapper
    return primitive(np.where(plain, np.int32(1), count.values), count.valid | plain)


BATCHES.extend(map(_field, ("partition_leader_epoch", "producer_id", "producer_epoch", "base_sequence")))


@BATCHES.column("INT")
def last_sequence(batches: Batches) -> pa.Array:
    """Sequence of the last record that was written, -1 for none; 0 follows 2^31 - 1."""
    base, delta = batches.field("base_sequence"), batches.field("last_offset_delta")
    last = base.values.astype(np.int64) + delta.values
    last = np.where(last > 2**31 - 1, last - 2**31, last)
    return primitive(np.where(base.values == _NO_SEQUENCE, _NO_SEQUENCE, last).astype(np.int32), base.valid)


@BATCHES.column("BOOLEAN")
def is_transactional(batches: Batches) -> pa.Array:
    """Whether the batch belongs to a transaction."""
    return nullable(batches.is_transactional())


@BATCHES.column("BOOLEAN")
def is_control(batches: Batches) -> pa.Array:
    """Whether it is a control batch, which a broker writes, for example at the end of a transaction."""
    return nullable(batches.is_control())


@BATCHES.column("BIGINT")
def delete_horizon_ms(batches: Batches) -> pa.Array:
    """Time from which on compaction may remove the batch's tombstones; NULL if none is set [ms since epoch]."""
    base = batches.field("base_timestamp")
    return primitive(base.values, base.valid & batches.flag(DELETE_HORIZON).values)


@BATCHES.column("STRING")
def error(batches: Batches) -> pa.Array:
    """Why the entry cannot be read; NULL for a valid entry."""
    errors = batches.frames.error
    unknown = (errors == OK) & batches.codec.valid & (batches.readable_codec < 0)
    return from_codes(np.where(unknown, np.int8(UNKNOWN_CODEC), errors), ERRORS)
