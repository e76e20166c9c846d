"""``kafka_batches``: a row for each entry, from the fields of its header, without decompression. One table reads all magics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import CRC_MISMATCH, ERRORS, OK, UNKNOWN_CODEC
from sparkwire.core.builders import Column, ColumnTable
from sparkwire.core.column import Binary, arrays, binary_of, empty, from_codes, lists, part, primitive
from sparkwire.kafka import layout
from sparkwire.kafka.codecs import NAMES, READ_NAMES, READABLE
from sparkwire.kafka.framing import FrameBlock, frame_blocks, framing_of
from sparkwire.kafka.layout import BATCH, DELETE_HORIZON, NO_TIMESTAMP, TIMESTAMP_TYPES
from sparkwire.kernels import Bytes, field_reader, i8, int64, kernel, variant_of

Bools = npt.NDArray[np.bool_]

# The layouts of headers, by magic; the last is for an unknown magic.
MAGIC_0, MAGIC_1, MAGIC_2, UNKNOWN = range(4)


class HeaderFields(NamedTuple):
    """The fields of headers, with an item for each header; 0 if a header lacks the field or its bytes."""

    offset: npt.NDArray[np.int64]
    magic: npt.NDArray[np.int8]
    crc: npt.NDArray[np.int64]
    attributes: npt.NDArray[np.int16]
    timestamp: npt.NDArray[np.int64]
    """timestamp of a message, or largest timestamp of a batch"""
    last_offset_delta: npt.NDArray[np.int32]
    base_timestamp: npt.NDArray[np.int64]
    partition_leader_epoch: npt.NDArray[np.int32]
    producer_id: npt.NDArray[np.int64]
    producer_epoch: npt.NDArray[np.int16]
    base_sequence: npt.NDArray[np.int32]
    record_count: npt.NDArray[np.int32]


_OF_BATCH = ["max_timestamp" if name == "timestamp" else name for name in HeaderFields._fields]
_VARIANTS = (
    *(variant_of(table, HeaderFields._fields) for table in (layout.MESSAGE_ENTRY_0, layout.MESSAGE_ENTRY_1)),
    variant_of(layout.BATCH, _OF_BATCH),
    # For an unknown magic, only the magic and the fields before it can be read.
    variant_of(
        layout.BATCH, [name if name in layout.ENTRY.places or name == "magic" else "" for name in HeaderFields._fields]
    ),
)
_NEVER = np.iinfo(np.int32).max
_ENDS = {
    name: np.array([_NEVER if (place := variant[at]) is None else place.end for variant in _VARIANTS], np.int32)
    for at, name in enumerate(HeaderFields._fields)
}
_read_fields = field_reader(_VARIANTS)


class HeaderBlock(NamedTuple):
    """A block of entries and their headers."""

    frames: FrameBlock
    fields: HeaderFields
    variant: npt.NDArray[np.int8]

    def part(self, start: int, stop: int) -> HeaderBlock:
        """Its entries from ``start`` to before ``stop``, without copying."""
        return HeaderBlock(part(self.frames, start, stop), part(self.fields, start, stop), self.variant[start:stop])


def header_block(data: Bytes, frames: FrameBlock) -> HeaderBlock:
    """Read the headers of a block's entries."""
    block = header_room(frames)
    read_headers(data, block, 0, len(frames.begin))
    return block


def header_room(frames: FrameBlock) -> HeaderBlock:
    """Empty arrays for the headers of a block's entries."""
    entries = len(frames.begin)
    return HeaderBlock(frames, arrays(HeaderFields, entries), empty(entries, np.int8))


@kernel
def read_headers(data: Bytes, block: HeaderBlock, start: int, stop: int) -> None:
    """Read the headers of entries, as far as `FrameBlock.reach` allows."""
    frames, fields = block.frames, block.fields
    for i in range(start, stop):
        begin, reach = int64(frames.begin[i]), int64(frames.reach[i])
        magic = int64(i8(data, begin + layout.MAGIC)) if reach > layout.MAGIC else int64(-1)
        variant = magic if 0 <= magic <= 2 else int64(UNKNOWN)
        block.variant[i] = variant
        _read_fields(data, begin, reach, variant, fields, i)


class Nullable(NamedTuple):
    """Values, and whether each is valid (not NULL)."""

    values: npt.NDArray[Any]
    valid: Bools

    def unless(self, value: int) -> Nullable:
        """The column with NULL instead of ``value``."""
        return Nullable(self.values, self.valid & (self.values != value))


def _joined(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


class Batches:
    """The headers of a column's entries, with an item for each entry, and whether each entry is valid."""

    def __init__(self, source: Binary, blocks: Sequence[HeaderBlock]) -> None:
        self.source = source
        self._blocks = blocks or [header_room(arrays(FrameBlock, 0))]

    @cached_property
    def frames(self) -> FrameBlock:
        """All entries."""
        columns = zip(*(block.frames for block in self._blocks), strict=True)
        return FrameBlock._make(map(_joined, columns))

    @cached_property
    def variant(self) -> npt.NDArray[np.int8]:
        return _joined([block.variant for block in self._blocks])

    def field(self, name: str) -> Nullable:
        """A field as stored."""
        values = _joined([getattr(block.fields, name) for block in self._blocks])
        return Nullable(values, self.frames.reach >= _ENDS[name][self.variant])

    @cached_property
    def is_batch(self) -> Bools:
        batch: Bools = self.variant == MAGIC_2
        return batch

    @cached_property
    def is_message(self) -> Bools:
        """Whether the magic is 0 or 1."""
        message: Bools = self.variant < MAGIC_2
        return message

    @cached_property
    def position(self) -> npt.NDArray[np.int32]:
        """Position from the row's start [bytes]."""
        return (self.frames.begin - self.source.offsets[self.frames.row]).astype(np.int32)

    @cached_property
    def attributes(self) -> Nullable:
        return self.field("attributes")

    @cached_property
    def codec(self) -> Nullable:
        """The codec as stored, which may be unknown."""
        return Nullable((self.attributes.values & layout.CODEC_MASK).astype(np.int8), self.attributes.valid)

    @cached_property
    def readable_codec(self) -> npt.NDArray[np.int8]:
        """The codec, -1 if it is missing or has no decoder."""
        of_magic = np.array([*READABLE, 0])[np.where(self.is_message | self.is_batch, self.variant, -1)]
        readable = self.codec.valid & (of_magic >> self.codec.values & 1 == 1)
        return np.where(readable, self.codec.values, np.int8(-1))

    @cached_property
    def is_wrapper(self) -> Bools:
        """Whether the entry is a message of magic 0 or 1 whose value is a set of messages."""
        wrapper: Bools = self.is_message & self.codec.valid & (self.codec.values > 0)
        return wrapper

    def flag(self, bit: int) -> Nullable:
        """A bit of a batch's attributes, False in magic 0 and 1."""
        return Nullable(self.is_batch & (self.attributes.values & bit != 0), self.is_message | self.attributes.valid)

    def may_have(self, bit: int) -> bool:
        """Whether any entry may have a bit of a batch's attributes. It is a fast check: False is certain, True is not."""
        return any(bool((block.fields.attributes & bit).any()) for block in self._blocks)

    def is_transactional(self) -> Nullable:
        return self.flag(layout.TRANSACTIONAL)

    def is_control(self) -> Nullable:
        return self.flag(layout.CONTROL)

    @cached_property
    def timestamp_type(self) -> npt.NDArray[np.int8]:
        """0 create time, 1 log append time; -1 in magic 0 or if it is missing."""
        late = self.attributes.values & layout.LOG_APPEND_TIME != 0
        valid = self.attributes.valid & (self.variant != MAGIC_0)
        return np.where(valid, late.astype(np.int8), np.int8(-1))

    def max_timestamp(self) -> Nullable:
        return self.field("timestamp").unless(layout.NO_TIMESTAMP)

    @cached_property
    def last_offset(self) -> Nullable:
        """Offset of the entry's last record: as stored in magic 0 and 1, the first offset plus a delta in magic 2."""
        offset, delta = self.field("offset"), self.field("last_offset_delta")
        return Nullable(offset.values + delta.values, self.is_message | delta.valid)

    def lists(self, entries: pa.Array) -> pa.Array:
        ends = np.searchsorted(self.frames.row, np.arange(self.source.rows + 1)).astype(np.int32)
        return lists(ends, entries)


# -- columns

_NO_SEQUENCE = -1


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
    """The entries of framing."""
    return Batches(source, [header_block(source.data, block) for block in frames])


BATCHES: Final = ColumnTable[Batches]()
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
