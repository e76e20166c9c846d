"""The headers of entries as columns, an item for each entry."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.column import Binary
from sparkwire.formats.kafka.entries import Slab, slab_of
from sparkwire.formats.kafka.layout import (
    BATCH,
    BATCH_CODECS,
    CODEC_MASK,
    CONTROL,
    LEGACY_CODECS,
    LOG_APPEND_TIME,
    MAGIC,
    MESSAGE_0,
    MESSAGE_1,
    NO_TIMESTAMP,
    OVERHEAD,
    TRANSACTIONAL,
)
from sparkwire.formats.kafka.message import ATTRIBUTES, TIMESTAMP
from sparkwire.kernels import Bytes, i8, i16, i32, i64, kernel, u32

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# What `read_headers` notes of an entry, whatever its magic.
OFFSET, MAGIC_BYTE, CRC, ATTRIBUTE_BITS, MAX_TIMESTAMP, LAST_DELTA, BASE_TIMESTAMP = range(7)
LEADER_EPOCH, PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE, COUNT = range(7, 12)
NUMBERS = 12

_BATCH_ENDS = {
    CRC: BATCH["crc"].end,
    ATTRIBUTE_BITS: BATCH["attributes"].end,
    MAX_TIMESTAMP: BATCH["max_timestamp"].end,
    LAST_DELTA: BATCH["last_offset_delta"].end,
    BASE_TIMESTAMP: BATCH["base_timestamp"].end,
    LEADER_EPOCH: BATCH["partition_leader_epoch"].end,
    PRODUCER_ID: BATCH["producer_id"].end,
    PRODUCER_EPOCH: BATCH["producer_epoch"].end,
    BASE_SEQUENCE: BATCH["base_sequence"].end,
    COUNT: BATCH["count"].end,
}
_MESSAGE_ENDS = {
    CRC: OVERHEAD + MESSAGE_0["crc"].end,
    ATTRIBUTE_BITS: OVERHEAD + MESSAGE_0["attributes"].end,
    MAX_TIMESTAMP: OVERHEAD + MESSAGE_1["timestamp"].end,
}


class Column(NamedTuple):
    """Values and whether they are there."""

    values: npt.NDArray[Any]
    valid: Bools

    def unless(self, value: int) -> Column:
        """Without those that equal ``value``."""
        return Column(self.values, self.valid & (self.values != value))


@kernel
def read_headers(data: Bytes, slab: Slab, out: Ints) -> None:
    """Fill ``out`` (NUMBERS, entries) with what the reach of each entry covers."""
    for i in range(slab.begin.size):
        reach = slab.reach[i]
        if reach > MAGIC:
            begin = slab.begin[i]
            out[OFFSET, i] = i64(data, begin, False)
            out[MAGIC_BYTE, i] = i8(data, begin + MAGIC)
            if out[MAGIC_BYTE, i] == 2:
                _read_batch(data, begin, reach, out, i)
            else:
                _read_message(data, begin, reach, out, i)


@kernel
def _read_message(data: Bytes, begin: int, reach: int, out: Ints, at: int) -> None:
    out[CRC, at] = u32(data, begin + OVERHEAD, False)
    if reach > OVERHEAD + ATTRIBUTES:
        out[ATTRIBUTE_BITS, at] = i8(data, begin + OVERHEAD + ATTRIBUTES)
    if reach >= OVERHEAD + TIMESTAMP + 8:
        out[MAX_TIMESTAMP, at] = i64(data, begin + OVERHEAD + TIMESTAMP, False)


@kernel
def _read_batch(data: Bytes, begin: int, reach: int, out: Ints, at: int) -> None:
    out[LEADER_EPOCH, at] = i32(data, begin + _EPOCH_AT, False)
    if reach >= _CRC_AT + 4:
        out[CRC, at] = u32(data, begin + _CRC_AT, False)
    if reach >= _ATTRIBUTES_AT + 2:
        out[ATTRIBUTE_BITS, at] = i16(data, begin + _ATTRIBUTES_AT, False)
    if reach >= _DELTA_AT + 4:
        out[LAST_DELTA, at] = i32(data, begin + _DELTA_AT, False)
    if reach >= _BASE_AT + 8:
        out[BASE_TIMESTAMP, at] = i64(data, begin + _BASE_AT, False)
    if reach >= _MAX_AT + 8:
        out[MAX_TIMESTAMP, at] = i64(data, begin + _MAX_AT, False)
    if reach >= _PRODUCER_AT + 8:
        out[PRODUCER_ID, at] = i64(data, begin + _PRODUCER_AT, False)
    if reach >= _PRODUCER_EPOCH_AT + 2:
        out[PRODUCER_EPOCH, at] = i16(data, begin + _PRODUCER_EPOCH_AT, False)
    if reach >= _SEQUENCE_AT + 4:
        out[BASE_SEQUENCE, at] = i32(data, begin + _SEQUENCE_AT, False)
    if reach >= _COUNT_AT + 4:
        out[COUNT, at] = i32(data, begin + _COUNT_AT, False)


_EPOCH_AT = BATCH["partition_leader_epoch"].offset
_CRC_AT = BATCH["crc"].offset
_ATTRIBUTES_AT = BATCH["attributes"].offset
_DELTA_AT = BATCH["last_offset_delta"].offset
_BASE_AT = BATCH["base_timestamp"].offset
_MAX_AT = BATCH["max_timestamp"].offset
_PRODUCER_AT = BATCH["producer_id"].offset
_PRODUCER_EPOCH_AT = BATCH["producer_epoch"].offset
_SEQUENCE_AT = BATCH["base_sequence"].offset
_COUNT_AT = BATCH["count"].offset


class Headers:
    """The entries of a column: ``add`` slabs in order, then ask for columns."""

    def __init__(self, source: Binary) -> None:
        self.source = source
        self._slabs = [slab_of(0)]

    def add(self, slab: Slab) -> None:
        self._slabs.append(slab)

    @cached_property
    def slab(self) -> Slab:
        """All entries."""
        return Slab._make(np.concatenate(columns) for columns in zip(*self._slabs, strict=True))

    @cached_property
    def _all(self) -> Ints:
        numbers = np.zeros((NUMBERS, len(self.slab.begin)), np.int64)
        read_headers(self.source.data, self.slab, numbers)
        return numbers

    def number(self, which: int, dtype: npt.DTypeLike = np.int64) -> Column:
        """A number of the header, as stored."""
        reach = self.slab.reach
        if which in (OFFSET, MAGIC_BYTE):
            valid = reach > MAGIC
        else:
            message = self.is_message & (reach >= _MESSAGE_ENDS[which]) if which in _MESSAGE_ENDS else False
            valid = self.is_batch & (reach >= _BATCH_ENDS[which]) | message
        return Column(self._all[which].astype(dtype, copy=False), valid)

    @cached_property
    def is_batch(self) -> Bools:
        batch: Bools = (self.slab.reach > MAGIC) & (self._all[MAGIC_BYTE] == 2)
        return batch

    @cached_property
    def is_message(self) -> Bools:
        """Magic 0 or 1."""
        magic = self._all[MAGIC_BYTE]
        message: Bools = (self.slab.reach > MAGIC) & (magic >= 0) & (magic < 2)
        return message

    @cached_property
    def position(self) -> npt.NDArray[np.int32]:
        """From the row's start [bytes]."""
        return (self.slab.begin - self.source.offsets[self.slab.row]).astype(np.int32)

    @cached_property
    def codec(self) -> Column:
        """The codec, known or not."""
        attributes = self.number(ATTRIBUTE_BITS)
        return Column((attributes.values & CODEC_MASK).astype(np.int8), attributes.valid)

    @cached_property
    def codec_known(self) -> Bools:
        known: Bools = self.codec.valid & (self.codec.values < np.where(self.is_batch, BATCH_CODECS, LEGACY_CODECS))
        return known

    @cached_property
    def is_wrapper(self) -> Bools:
        """A message of magic 0 or 1 that stands for a set of others."""
        wrapper: Bools = self.is_message & self.codec.valid & (self.codec.values > 0)
        return wrapper

    def flag(self, bit: int) -> Column:
        """A bit of a batch's attributes, False in magic 0 and 1."""
        attributes = self.number(ATTRIBUTE_BITS)
        return Column(self.is_batch & (attributes.values & bit != 0), self.is_message | attributes.valid)

    @property
    def is_transactional(self) -> Column:
        return self.flag(TRANSACTIONAL)

    @property
    def is_control(self) -> Column:
        return self.flag(CONTROL)

    @cached_property
    def timestamp_type(self) -> Column:
        """0 create time, 1 log append time; none in magic 0."""
        attributes = self.number(ATTRIBUTE_BITS)
        late = attributes.values & LOG_APPEND_TIME != 0
        return Column(late.astype(np.int8), attributes.valid & (self._all[MAGIC_BYTE] > 0))

    @cached_property
    def max_timestamp(self) -> Column:
        stored = self.number(MAX_TIMESTAMP)
        return Column(stored.values, stored.valid & (self._all[MAGIC_BYTE] > 0)).unless(NO_TIMESTAMP)

    @cached_property
    def last_offset(self) -> Column:
        """Of the entry's last record: as stored in magic 0 and 1, the base offset and a delta in magic 2."""
        offset, delta = self.number(OFFSET), self.number(LAST_DELTA)
        last = offset.values + np.where(self.is_batch, delta.values, 0)
        return Column(last, self.is_message | delta.valid)
