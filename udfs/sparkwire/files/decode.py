"""From the entries of a log to rows, a piece at a time; damage becomes a row that says so.

A piece is as many entries as come to about `DECODED` bytes once they are decompressed, or one that comes to more: memory
depends on neither the file nor what its compressed batches promise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from sparkwire.column import Binary, binary_of, empty
from sparkwire.errors import CRC_MISMATCH
from sparkwire.files.log import Damage, Log
from sparkwire.formats.kafka.batches import Batches, batches_of
from sparkwire.formats.kafka.framing import (
    IGNORED,
    THE_END,
    FrameBlock,
    Framing,
    entry_end,
    frame_blocks,
    framing_of,
    reach_of,
)
from sparkwire.formats.kafka.inflate import Inflater
from sparkwire.formats.kafka.layout import LEAST_SIZE, OVERHEAD
from sparkwire.formats.kafka.payloads import OffsetRange
from sparkwire.formats.kafka.records import Records, damaged_records, records_of
from sparkwire.kernels import Bytes, Ints, int64, kernel

DECODED = 8 << 20
"""what a piece comes to [bytes]"""
_UNBOUNDED = 2**62

Scan = TypeVar("Scan")


class Decoder(NamedTuple, Generic[Scan]):
    """How entries become rows."""

    scans: Callable[[Binary, Framing], Iterator[Scan]]
    """of a column, each entry a row of it; some entries each"""
    damaged: Callable[[Binary, FrameBlock], Scan]
    """of entries that cannot be read"""


class Piece(NamedTuple, Generic[Scan]):
    """The rows of some entries that follow each other."""

    position: int
    """of what its scan counts from, in the file [bytes]"""
    scan: Scan


@kernel
def find_begins(data: Bytes, out: Ints) -> int:
    """Where the entries of a chain begin, and where the last ends; how many there are."""
    pos, count = int64(0), 0
    while pos < data.size:
        out[count] = pos
        count += 1
        pos = entry_end(data, pos)
    out[count] = pos
    return count


def _entries(data: Bytes) -> Binary:
    """Whole entries that follow each other, a row each: what one becomes does not count against another."""
    offsets = empty(len(data) // (OVERHEAD + LEAST_SIZE) + 2, np.int64)
    count = find_begins(data, offsets)
    return Binary(data, offsets[: count + 1], None)


def pieces(log: Log, position: int, stop: int, decoder: Decoder[Scan]) -> Iterator[Piece[Scan]]:
    """The rows of the entries from ``position`` on that begin before ``stop``.

    A piece is valid until the next is asked for.
    """
    while position < stop:
        framed = log.framed(position, stop)
        source = _entries(framed.data)
        framing = framing_of(source, THE_END)
        for scan in decoder.scans(source, framing):
            yield Piece(position, scan)
        position += framing.position
        if (framing.position < len(framed.data) or not len(framed.data)) and position < stop:
            damage = log.damage(position)
            for scan in _damaged(log, damage, decoder):
                yield Piece(position, scan)
            position = damage.stop


def _damaged(log: Log, damage: Damage, decoder: Decoder[Scan]) -> Iterator[Scan]:
    """The row of what cannot be read; without ``verify`` an entry whose size is right is read as if its checksum were."""
    believed = not log.verify and damage.error == CRC_MISMATCH and damage.whole
    framed = log.framed(damage.position, damage.position + 1) if believed else None
    if framed is not None and len(framed.data):
        source = _entries(framed.data)
        yield from decoder.scans(source, framing_of(source, IGNORED))
        return
    yield decoder.damaged(binary_of(_array(damage.header)), _frame(damage))


def record_decoder(
    verify: bool, max_batch_bytes: int, columns: Collection[str], offsets: OffsetRange
) -> Decoder[Records]:
    """Entries become their records, as ``kafka_records`` reads them; see `scan_records`."""

    def scans(source: Binary, framing: Framing) -> Iterator[Records]:
        inflater = Inflater(max_batch_bytes, _UNBOUNDED)
        return records_of(source, framing, verify, inflater, columns, offsets, piece=DECODED)

    return Decoder(scans, damaged_records)


def batch_decoder() -> Decoder[Batches]:
    """Entries become their headers, as ``kafka_batches`` reads them."""

    def scans(source: Binary, framing: Framing) -> Iterator[Batches]:
        yield batches_of(source, frame_blocks(framing))

    return Decoder(scans, lambda source, frames: batches_of(source, [frames]))


def record_positions(records: Records) -> Ints:
    """Where the entry of each record begins, from the first byte of its run [bytes]."""
    return np.repeat(records.source.offsets[:-1], np.diff(records.ends)).astype(np.int64)


def _frame(damage: Damage) -> FrameBlock:
    """The one entry that is damaged, of which the bytes after its header are not at hand."""
    header = damage.header
    return FrameBlock(
        row=np.zeros(1, np.int32),
        begin=np.zeros(1, np.int64),
        stop=np.array([damage.stop - damage.position], np.int64),
        reach=np.array([reach_of(header, 0, len(header), damage.error)], np.int32),
        whole=np.array([damage.whole]),
        error=np.array([damage.error], np.int8),
    )


def _array(data: Bytes) -> pa.Array:
    """One row over these bytes, not copied."""
    offsets = np.array([0, len(data)], np.int64)
    return pa.Array.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
