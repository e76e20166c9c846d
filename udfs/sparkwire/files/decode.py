"""From the entries of a log to rows, a piece at a time; damage becomes a row that says so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from sparkwire.column import binary_of
from sparkwire.errors import CRC_MISMATCH
from sparkwire.files.log import Damage, Log, chain
from sparkwire.formats.kafka.batches import Batches, batches_of, scan_batches
from sparkwire.formats.kafka.framing import FrameBlock, reach_of
from sparkwire.formats.kafka.payloads import OffsetRange
from sparkwire.formats.kafka.records import Records, records_of, scan_records
from sparkwire.kernels import Bytes

FIRST_PIECE = 64 << 10
LARGEST_PIECE = 2 << 20
DECODED = 8 << 20
"""what a piece should become: it is the next piece's size that is adapted [bytes]"""

Scan = TypeVar("Scan")


class Decoder(NamedTuple, Generic[Scan]):
    """How entries become rows."""

    entries: Callable[[Bytes], Scan]
    damage: Callable[[Damage], Scan]
    frames: Callable[[Scan], FrameBlock]


class Piece(Generic[Scan]):
    """The rows of some entries that follow each other.

    ``decoded`` is to be set to what they came to [bytes], by which the next piece is measured.
    """

    def __init__(self, position: int, scan: Scan) -> None:
        self.position = position
        self.scan = scan
        self.decoded = 0


def pieces(log: Log, position: int, stop: int, decoder: Decoder[Scan]) -> Iterator[Piece[Scan]]:
    """The rows of the entries from ``position`` on that begin before ``stop``.

    A piece is valid until the next is asked for.
    """
    budget = FIRST_PIECE
    while position < stop:
        run = log.framed(position, stop)
        size = len(run.data)
        at, intact = 0, size > 0
        while intact and at < size:
            cut = int(chain(run.data, at, size, min(at + budget, size)))
            piece = Piece(position + at, decoder.entries(run.data[at:cut]))
            good = _intact(decoder.frames(piece.scan), cut - at)
            intact = good == cut - at
            if not intact and good:
                piece = Piece(position + at, decoder.entries(run.data[at : at + good]))
            if good:
                yield piece
                budget = max(FIRST_PIECE, min(budget * DECODED // max(piece.decoded, 1), 4 * budget, LARGEST_PIECE))
            at += good
        position += at
        if not intact and position < stop:
            damage = log.damage(position)
            yield Piece(position, decoder.damage(damage))
            position = damage.stop


def _intact(frames: FrameBlock, size: int) -> int:
    """Where the first entry begins whose checksum is wrong; ``size`` if there is none."""
    wrong = np.flatnonzero(frames.error == CRC_MISMATCH)
    return int(frames.begin[wrong[0]]) if len(wrong) else size


def record_decoder(
    verify: bool, max_batch_bytes: int, columns: Collection[str], offsets: OffsetRange
) -> Decoder[Records]:
    """Entries become their records, as ``kafka_records`` reads them; see `scan_records`."""

    def entries(data: Bytes) -> Records:
        return scan_records(_array(data), verify, max_batch_bytes, columns, offsets)

    def damaged(damage: Damage) -> Records:
        header = binary_of(_array(damage.header))
        return records_of(header, [_frame(damage)], verify, max_batch_bytes, columns, offsets)

    return Decoder(entries, damaged, lambda records: records.entries.frames)


def batch_decoder(verify: bool) -> Decoder[Batches]:
    """Entries become their headers, as ``kafka_batches`` reads them."""

    def entries(data: Bytes) -> Batches:
        return scan_batches(_array(data), verify)

    def damaged(damage: Damage) -> Batches:
        return batches_of(binary_of(_array(damage.header)), [_frame(damage)])

    return Decoder(entries, damaged, lambda batches: batches.frames)


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
