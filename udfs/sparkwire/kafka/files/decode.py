"""Decode the entries of a log to rows, a piece at a time. Corrupt bytes become a row with an error.

A piece has entries of about `DECODED` bytes after decompression, or one larger entry. So memory depends neither on the size of
the file nor on the sizes that its compressed batches claim.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from sparkwire.core.column import Binary, empty
from sparkwire.errors import WrongIndexError
from sparkwire.kafka.batches import Batches, batches_of
from sparkwire.kafka.entry_payloads import OffsetRange
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.framing import (
    THE_END,
    Framing,
    entry_end,
    frame_blocks,
    framing_of,
    framing_of_entries,
)
from sparkwire.kafka.inflate import Inflater
from sparkwire.kafka.layout import LEAST_SIZE, OVERHEAD
from sparkwire.kafka.records import Records, records_of
from sparkwire.kafka.search import ANYTHING, SearchPattern
from sparkwire.kernels import Bytes, Ints, int64, kernel

DECODED = 8 << 20
"""approximate decompressed size of a piece [bytes]"""
_UNBOUNDED = 2**62

Scan = TypeVar("Scan")


Decoder = Callable[[Binary, Framing], Iterator[Scan]]
"""decodes a column, which has an entry in each row, to scans of some entries at a time"""


class DecodedRows(NamedTuple, Generic[Scan]):
    """The rows of consecutive entries."""

    position: int
    """position in the file from which the positions of its scan count [bytes]"""
    scan: Scan


@kernel
def find_begins(data: Bytes, out: Ints) -> int:
    """Note the starts of consecutive entries, and the end of the last entry. Return the number of entries."""
    pos, count = int64(0), 0
    while pos < data.size:
        out[count] = pos
        count += 1
        pos = entry_end(data, pos)
    out[count] = pos
    return count


def _entries(data: Bytes) -> Binary:
    """Consecutive complete entries, with each entry as a row, so that the limits of a row apply to one entry."""
    offsets = empty(len(data) // (OVERHEAD + LEAST_SIZE) + 2, np.int64)
    count = find_begins(data, offsets)
    return Binary(data, offsets[: count + 1], None)


def pieces(
    log: Log, position: int, stop: int, decoder: Decoder[Scan], joined: bool = False
) -> Iterator[DecodedRows[Scan]]:
    """The rows of the entries that begin from ``position`` to before ``stop``. If ``joined``, the last must end at ``stop``.

    A piece is valid until you take the next one. WrongIndexError if the last entry ends elsewhere.
    """
    while position < stop:
        run = log.run(position, stop)
        source = _entries(run.data)
        framing = framing_of(source, THE_END)
        for scan in decoder(source, framing):
            yield DecodedRows(position, scan)
        position += framing.position
        if position < stop and position < run.position + max(1, len(run.data)):
            block = log.corrupt(position, stop)
            for scan in decoder(*framing_of_entries(block.data, block.frames)):
                yield DecodedRows(block.position, scan)
            position = block.stop
    if joined:
        check_joined(log, position, stop)


def check_joined(log: Log, end: int, stop: int) -> None:
    """WrongIndexError if entries end at ``end`` and not at ``stop``, so that the log was split inside an entry."""
    if end != stop:
        raise WrongIndexError(
            f"{log.source.file.name} has no batch at byte {stop}, although its .index has this position: delete the "
            ".index, or move it away, and run the query again"
        )


def record_decoder(
    verify: bool,
    max_batch_bytes: int,
    columns: Collection[str],
    offsets: OffsetRange,
    pattern: SearchPattern = ANYTHING,
) -> Decoder[Records]:
    """A decoder of entries to records, as in ``kafka_records``; see `records_of`."""

    def scans(source: Binary, framing: Framing) -> Iterator[Records]:
        inflater = Inflater(max_batch_bytes, _UNBOUNDED)
        return records_of(source, framing, verify, inflater, columns, offsets, DECODED, pattern)

    return scans


def batch_decoder() -> Decoder[Batches]:
    """A decoder of entries to headers, as in ``kafka_batches``."""

    def scans(source: Binary, framing: Framing) -> Iterator[Batches]:
        yield batches_of(source, frame_blocks(framing))

    return scans


def record_positions(records: Records) -> Ints:
    """Position of each record's entry, from the first byte of its run [bytes]."""
    return records.spread(records.entries.frames.begin)
