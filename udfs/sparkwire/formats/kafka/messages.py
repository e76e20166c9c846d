"""``kafka_crc`` … ``kafka_message``: the fields of single messages of magic 0 and 1.

A message does not say how long it is: it ends where its value does, and what follows is not part of it. Kafka takes the
length from the entry around it and has its checksum cover all of that; so where bytes follow the value and the checksum
is not right without them, it is computed with them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.column import arrays, binary_of, checked_total, empty, from_codes, primitive, timestamps
from sparkwire.errors import BAD_LENGTH, BAD_MAGIC, CRC_MISMATCH, ERRORS, OK, TRUNCATED, UNKNOWN_CODEC
from sparkwire.formats.kafka.layout import (
    CODEC_MASK,
    CODECS,
    LEGACY_CODECS,
    LOG_APPEND_TIME,
    MESSAGE_0,
    MESSAGE_1,
    NO_TIMESTAMP,
    TIMESTAMP_TYPES,
)
from sparkwire.formats.kafka.message import MESSAGE_MAGIC, NOWHERE, Content, content, within
from sparkwire.formats.kafka.output import binary
from sparkwire.kernels import (
    COPY_SLACK,
    Bools,
    Bytes,
    copy,
    crc32,
    field_reader,
    i8,
    int64,
    kernel,
    prefetch,
    variant_of,
)

COVERED = MESSAGE_0["crc"].end
"""where what the checksum covers begins [bytes]"""

_AHEAD = 4096  # [bytes]
_LINE = 64  # [bytes]

# Which layout a message has: by its magic, or none that is known.
MAGIC_0, MAGIC_1, UNKNOWN = range(3)


class Fields(NamedTuple):
    """The fields of messages, an item each, 0 where a message lacks the field or its bytes."""

    crc: npt.NDArray[np.int64]
    magic: npt.NDArray[np.int8]
    attributes: npt.NDArray[np.int32]
    timestamp: npt.NDArray[np.int64]


class Found(NamedTuple):
    """What follows from the fields and the bytes after them, an item each."""

    present: npt.NDArray[np.uint8]
    """bits: what is not NULL"""
    codec: npt.NDArray[np.int8]
    timestamp_type: npt.NDArray[np.int8]
    computed: npt.NDArray[np.int64]
    crc_ok: npt.NDArray[np.int8]
    """1 yes, 0 no, -1 where bytes that it covers are missing"""
    error: npt.NDArray[np.int8]
    key: npt.NDArray[np.int64]
    key_size: npt.NDArray[np.int32]
    key_ends: npt.NDArray[np.int32]
    """where the keys end when they lie one after the other; item 0 is 0"""
    value: npt.NDArray[np.int64]
    value_size: npt.NDArray[np.int32]
    value_ends: npt.NDArray[np.int32]


# Bits of `Found.present`.
_CRC, _MAGIC, _ATTRIBUTES, _TIME, _KEY_SIZE, _VALUE_SIZE, _KEY, _VALUE = (1 << bit for bit in range(8))
_EVERYTHING = 255

_ATTRIBUTES_END = MESSAGE_0["attributes"].end
_TIMESTAMP_END = MESSAGE_1["timestamp"].end


_KNOWN_FIELDS = (variant_of(table, Fields._fields) for table in (MESSAGE_0, MESSAGE_1))
# Of an unknown magic only what lies before it can be read, and itself.
_UNKNOWN_FIELDS = variant_of(MESSAGE_0, [name if name in ("crc", "magic") else "" for name in Fields._fields])
_read_fields = field_reader([*_KNOWN_FIELDS, _UNKNOWN_FIELDS])


class Verdict(NamedTuple):
    """What is wrong with a message, whether its checksum is right (1, 0, -1), and the checksum computed."""

    error: int
    crc_ok: int
    computed: int


@kernel
def read_messages(data: Bytes, offsets: npt.NDArray[Any], fields: Fields, out: Found) -> int:
    """Fill ``fields`` and ``out``; the bits of ``present`` that all rows have."""
    common = _EVERYTHING
    keys = values = int64(0)
    out.key_ends[0] = out.value_ends[0] = 0
    for row in range(offsets.size - 1):
        # Only here are the arrays at hand: handing them on costs more than the message.
        start, end = int64(offsets[row]), int64(offsets[row + 1])
        for line in range(start, end, _LINE):
            prefetch(data, line + _AHEAD)
        size = end - start
        variant = _variant(data, start, size)
        _read_fields(data, start, size, variant, fields, row)
        known = variant != UNKNOWN and size >= _ATTRIBUTES_END
        found = content(data, start, end) if known else Content(NOWHERE, int64(0), NOWHERE, int64(0))
        verdict = _verdict(data, start, end, variant, fields.crc[row], found)
        attributes = fields.attributes[row]
        codec = attributes & CODEC_MASK if known and attributes & CODEC_MASK < LEGACY_CODECS else int64(-1)
        present = _present(size, variant, fields.timestamp[row], found, end)
        if present & _KEY:
            keys += found.key_size
        if present & _VALUE:
            values += found.value_size
        out.present[row] = present
        out.codec[row] = codec
        out.timestamp_type[row] = (1 if attributes & LOG_APPEND_TIME else 0) if known and variant == MAGIC_1 else -1
        out.key[row] = found.key
        out.key_size[row] = found.key_size
        out.key_ends[row + 1] = keys
        out.value[row] = found.value
        out.value_size[row] = found.value_size
        out.value_ends[row + 1] = values
        out.error[row] = UNKNOWN_CODEC if verdict.error == OK and codec < 0 else verdict.error
        out.crc_ok[row] = verdict.crc_ok
        out.computed[row] = verdict.computed
        common &= present
    return common


@kernel
def _variant(data: Bytes, start: int, size: int) -> int:
    if size <= MESSAGE_MAGIC:
        return int64(UNKNOWN)
    magic = int64(i8(data, start + MESSAGE_MAGIC))
    return magic if 0 <= magic <= 1 else int64(UNKNOWN)


@kernel
def _present(size: int, variant: int, timestamp: int, found: Content, end: int) -> int:
    """Bits: what is not NULL."""
    present = (_CRC if size >= COVERED else 0) | (_MAGIC if size > MESSAGE_MAGIC else 0)
    if variant != UNKNOWN and size >= _ATTRIBUTES_END:
        present |= _ATTRIBUTES
    if variant == MAGIC_1 and size >= _TIMESTAMP_END and timestamp != NO_TIMESTAMP:
        present |= _TIME
    present |= (_KEY_SIZE if found.key != NOWHERE else 0) | (_VALUE_SIZE if found.value != NOWHERE else 0)
    present |= _KEY if found.key_size >= 0 and within(found.key, found.key_size, end) else 0
    present |= _VALUE if found.value_size >= 0 and within(found.value, found.value_size, end) else 0
    return present


@kernel
def copy_fields(data: Bytes, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int32], out: Bytes) -> None:
    """Keys or values one after the other, where ``ends`` says."""
    for row in range(starts.size):
        size = int64(ends[row + 1]) - int64(ends[row])
        if size > 0:
            copy(out, int64(ends[row]), data, starts[row], size)


@kernel
def _verdict(data: Bytes, start: int, end: int, variant: int, crc: int, found: Content) -> Verdict:
    """The checksum covers the message, or all bytes where they do not tell its end."""
    size = end - start
    if size < COVERED:
        return Verdict(int64(TRUNCATED), int64(-1), int64(0))
    computed = int64(crc32(data, start + COVERED, size - COVERED))
    crc_ok = computed == crc
    if variant == UNKNOWN and size > MESSAGE_MAGIC:
        return Verdict(int64(BAD_MAGIC), int64(crc_ok), computed)
    if not within(found.value, found.value_size, end):
        # If the checksum covers just these bytes, none is missing: a size is wrong.
        if crc_ok and found.key != NOWHERE:
            return Verdict(int64(BAD_LENGTH), int64(1), computed)
        return Verdict(int64(TRUNCATED), int64(-1), computed)
    last = found.value + max(found.value_size, 0)
    if not crc_ok and last < end:
        computed = int64(crc32(data, start + COVERED, last - start - COVERED))
        crc_ok = computed == crc
    return Verdict(int64(OK if crc_ok else CRC_MISMATCH), int64(crc_ok), computed)


class Messages:
    """The messages of a column."""

    def __init__(self, data: pa.Array) -> None:
        self.source = binary_of(data)
        rows = self.source.rows
        checked_total(
            int(self.source.offsets[rows] - self.source.offsets[0])
        )  # only those of a large_binary may be too much
        self._fields = arrays(Fields, rows)
        ends = {name: empty(rows + 1, np.int32) for name in ("key_ends", "value_ends")}
        self._found = arrays(Found, rows)._replace(**ends)
        self._common = read_messages(self.source.data, self.source.offsets, self._fields, self._found)

    def _present(self, bit: int) -> Bools | None:
        return None if self._common & bit else self._found.present & bit != 0

    def _bytes(self, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int32], bit: int) -> pa.Array:
        out = empty(int(ends[-1]), np.uint8, COPY_SLACK)
        copy_fields(self.source.data, starts, ends, out)
        return binary(ends, out, self._present(bit))

    def crc(self) -> pa.Array:
        return primitive(self._fields.crc, self._present(_CRC))

    def crc_computed(self) -> pa.Array:
        return primitive(self._found.computed, self._present(_CRC))

    def crc_valid(self) -> pa.Array:
        return primitive(self._found.crc_ok > 0, self._found.crc_ok >= 0)

    def magic(self) -> pa.Array:
        return primitive(self._fields.magic, self._present(_MAGIC))

    def attributes(self) -> pa.Array:
        return primitive(self._fields.attributes, self._present(_ATTRIBUTES))

    def compression(self) -> pa.Array:
        return from_codes(self._found.codec, CODECS)

    def timestamp(self) -> pa.Array:
        return timestamps(self._fields.timestamp, "ms", self._present(_TIME))

    def timestamp_ms(self) -> pa.Array:
        return primitive(self._fields.timestamp, self._present(_TIME))

    def timestamp_type(self) -> pa.Array:
        return from_codes(self._found.timestamp_type, TIMESTAMP_TYPES)

    def key(self) -> pa.Array:
        return self._bytes(self._found.key, self._found.key_ends, _KEY)

    def key_size(self) -> pa.Array:
        return primitive(self._found.key_size, self._present(_KEY_SIZE))

    def value(self) -> pa.Array:
        return self._bytes(self._found.value, self._found.value_ends, _VALUE)

    def value_size(self) -> pa.Array:
        return primitive(self._found.value_size, self._present(_VALUE_SIZE))

    def error(self) -> pa.Array:
        return from_codes(self._found.error, ERRORS)

    def is_valid(self) -> pa.Array:
        return primitive(self._found.error == OK)
