"""The headers of entries: the fields of all magics, read by one table, and the columns that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.core.column import Binary, arrays, empty, part
from sparkwire.kafka import layout
from sparkwire.kafka.codecs import READABLE
from sparkwire.kafka.framing import FrameBlock
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


class BatchHeaders:
    """The headers of a column's entries, with an item for each entry."""

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
