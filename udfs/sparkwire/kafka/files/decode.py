"""From the entries of a log to rows, a piece at a time; corrupt bytes become a row that says so.

A piece is as many entries as come to about `DECODED` bytes after decompression, or one that comes to more: memory
depends on neither the file nor what its compressed batches promise.
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
from sparkwire.kafka.sought import ANYTHING, Sought
from sparkwire.kernels import Bytes, Ints, int64, kernel

DECODED = 8 << 20
"""what a piece comes to [bytes]"""
_UNBOUNDED = 2**62

Scan = TypeVar("Scan")


Decoder = Callable[[Binary, Framing], Iterator[Scan]]
"""How a column becomes rows, each entry a row of it; some entries at a time."""


class DecodedRows(NamedTuple, Generic[Scan]):
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


def pieces(
    log: Log, position: int, stop: int, decoder: Decoder[Scan], joined: bool = False
) -> Iterator[DecodedRows[Scan]]:
    """The rows of the entries from ``position`` on that begin before ``stop``; ``joined``: of which the last has to end there.

    A piece is valid until the next request. WrongIndexError if the parts do not join.
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
    """WrongIndexError where entries end at ``end``, and the log was cut at ``stop``: what begins there is inside of one."""
    if end != stop:
        raise WrongIndexError(
            f"{log.source.file.name} has no batch at byte {stop}, although its .index has this position: delete the "
            ".index, or move it away, and run the query again"
        )


def record_decoder(
    verify: bool, max_batch_bytes: int, columns: Collection[str], offsets: OffsetRange, sought: Sought = ANYTHING
) -> Decoder[Records]:
    """Entries become their records, as ``kafka_records`` reads them; see `records_of`."""

    def scans(source: Binary, framing: Framing) -> Iterator[Records]:
        inflater = Inflater(max_batch_bytes, _UNBOUNDED)
        return records_of(source, framing, verify, inflater, columns, offsets, DECODED, sought)

    return scans


def batch_decoder() -> Decoder[Batches]:
    """Entries become their headers, as ``kafka_batches`` reads them."""

    def scans(source: Binary, framing: Framing) -> Iterator[Batches]:
        yield batches_of(source, frame_blocks(framing))

    return scans


def record_positions(records: Records) -> Ints:
    """Where the entry of each record begins, from the first byte of its run [bytes]."""
    return np.repeat(records.source.offsets[:-1], np.diff(records.ends)).astype(np.int64)
