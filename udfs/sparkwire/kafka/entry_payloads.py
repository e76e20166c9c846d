"""Locate the payloads of entries, and read their codecs. This module does not decompress."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.base.error_codes import BAD_RECORD, OK, UNKNOWN_CODEC
from sparkwire.core.column import arrays
from sparkwire.kafka.batch_headers import MAGIC_2, HeaderBlock, HeaderFields
from sparkwire.kafka.codecs import READABLE
from sparkwire.kafka.framing import FrameBlock
from sparkwire.kafka.layout import BATCH_SIZE, CODEC_MASK, NONE, OVERHEAD
from sparkwire.kafka.messages import read_message
from sparkwire.kafka.record_columns import HAS_VALUE
from sparkwire.kernels import Bytes, Ints, kernel


class OffsetRange(NamedTuple):
    """The entries to decompress: those that may have records from offset ``first`` to ``last``."""

    first: int
    last: int


EVERY_OFFSET = OffsetRange(-(2**63), 2**63 - 1)


class EntryPayloads(NamedTuple):
    """The payloads of a block's entries, with an item for each entry."""

    codec: npt.NDArray[np.int8]
    first: Ints
    last: Ints
    """``first`` and ``last`` are the payload's bounds in the data, or in the arena after decompression"""
    inflated: npt.NDArray[np.bool_]
    skipped: npt.NDArray[np.bool_]
    """whether all its records are outside the selected offsets"""
    rows: npt.NDArray[np.int32]
    """number of rows after parsing"""


def payloads_of(data: Bytes, entries: HeaderBlock, selected: OffsetRange) -> EntryPayloads:
    """The payloads of entries. It sets the error of unreadable entries."""
    payloads = arrays(EntryPayloads, len(entries.variant))
    locate(data, entries, selected, payloads, 0, len(entries.variant))
    return payloads


@kernel
def locate(data: Bytes, entries: HeaderBlock, selected: OffsetRange, out: EntryPayloads, start: int, stop: int) -> bool:
    """Locate the payloads of the entries from ``start`` to before ``stop``. Return whether any is compressed."""
    frames, fields = entries.frames, entries.fields
    compressed = False
    for i in range(start, stop):
        out.codec[i] = NONE
        out.inflated[i] = False
        out.skipped[i] = False
        out.first[i] = out.last[i] = frames.stop[i]
        if frames.error[i] == OK:
            if _is_outside(fields, i, entries.variant[i] == MAGIC_2, selected):
                out.skipped[i] = True
            else:
                frames.error[i] = _locate_payload(data, frames, fields, i, entries.variant[i], out)
            compressed |= out.codec[i] != NONE
    return compressed


@kernel
def _is_outside(fields: HeaderFields, i: int, is_batch: bool, selected: OffsetRange) -> bool:
    """Whether an entry certainly has no record in the selected offsets; the header of a wrapper has only its last offset."""
    first = fields.offset[i]
    last = first + fields.last_offset_delta[i]
    wrapper = not is_batch and fields.attributes[i] & CODEC_MASK != NONE
    return bool(last < selected.first or (first > selected.last and not wrapper))


@kernel
def _locate_payload(
    data: Bytes, frames: FrameBlock, fields: HeaderFields, i: int, magic: int, out: EntryPayloads
) -> int:
    """Note the payload of an entry: the records of a batch, a plain message, or a wrapper's value. Return the error."""
    codec = fields.attributes[i] & CODEC_MASK
    if not READABLE[magic] >> codec & 1:
        return UNKNOWN_CODEC
    if magic == MAGIC_2:
        if fields.record_count[i] <= 0:
            return OK if fields.record_count[i] == 0 else BAD_RECORD
        out.first[i] = frames.begin[i] + BATCH_SIZE
    else:
        out.first[i] = frames.begin[i] + OVERHEAD
        if codec != NONE:
            message = read_message(data, out.first[i], frames.stop[i])
            if not message.present & HAS_VALUE:
                return BAD_RECORD
            out.first[i], out.last[i] = message.value, message.end
    out.codec[i] = codec
    return OK
