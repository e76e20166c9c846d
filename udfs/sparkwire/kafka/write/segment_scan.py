"""Scan a segment like a broker that verifies every batch, and build the same indexes.

Source: apache/kafka, `LogSegment.recover`, `OffsetIndex.append`, `TimeIndex.maybeAppend`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from sparkwire.base.error_codes import ERRORS, OK
from sparkwire.core.sources.storage import OpenFile
from sparkwire.kafka.files.entries import Entries, read_entries
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.layout import BATCH, ENTRY, MAGIC, NO_TIMESTAMP, OVERHEAD
from sparkwire.kafka.to_records import LARGEST_DELTA

INDEX_INTERVAL: Final = 4096
"""default of `index.interval.bytes` [bytes]"""


class Scan(NamedTuple):
    """The result of a scan of a segment."""

    size: int
    end: int
    """end of the valid entries [bytes]"""
    error: str
    """the error at ``end``"""
    first: int | None
    """first offset of the valid entries"""
    smallest: int
    largest: int
    """largest last offset of the valid entries; negative if there are none"""
    last: int
    """last offset of the last valid entry; negative if there are none"""
    back: int | None
    """position of the first entry whose offsets go back behind those of the previous entry"""
    framed: int
    """last offset of the last entry with a readable header, even if its checksum is wrong; negative for none"""
    stops: bool
    """whether reading headers meets an invalid size, at which Kafka stops"""


def scan(source: OpenFile) -> Scan:
    """Verify every entry."""
    position, first, smallest, largest, last, error, back = 0, None, 2**63 - 1, -1, -1, OK, None
    for block, count in _valid(source):
        if count:
            firsts, lasts = block.first[:count], block.last[:count]
            ends = np.maximum.accumulate(np.concatenate([[largest], lasts]))
            begins_before = np.flatnonzero((firsts <= ends[:-1]) & (ends[:-1] >= 0))
            if back is None and len(begins_before):
                back = int(block.positions[begins_before[0]])
            first = int(firsts[0]) if first is None else first
            smallest = min(smallest, int(lasts.min()))
            largest, last = int(ends[-1]), int(lasts[-1])
            position = int(block.stops[count - 1])
        if count < len(block.frames.error):
            error = int(block.frames.error[count])
    framed, stops = _framed(source, position, last)
    wrong = "" if error == OK else ERRORS[error]
    return Scan(source.size, position, wrong, first, smallest, largest, last, back, framed, stops)


def _valid(source: OpenFile) -> Iterator[tuple[Entries, int]]:
    """Blocks up to the first invalid entry, and the number of entries before it in each."""
    for block in read_entries(Log(source), 0, source.size):
        wrong = np.flatnonzero(~block.is_valid)
        if len(wrong):
            yield block, int(wrong[0])
            return
        yield block, len(block.frames.error)


def _framed(source: OpenFile, position: int, last: int) -> tuple[int, bool]:
    """The last offset by headers from a position on, and whether they end in an invalid size, at which a broker stops.

    A broker reads any magic here, and does not search for a later entry, so these are not the entries of `read_entries`.

    Source: apache/kafka, `FileLogInputStream`.
    """
    framed = last
    while source.size - position > MAGIC:
        header = source.read(position, min(BATCH.size, source.size - position))
        size = ENTRY["size"].read(header)
        if size < _LEAST:
            return framed, True
        if position + OVERHEAD + size > source.size:
            break
        is_batch = header[MAGIC] >= 2 and len(header) == BATCH.size
        framed = ENTRY["offset"].read(header) + (BATCH["last_offset_delta"].read(header) if is_batch else 0)
        position += OVERHEAD + size
    return framed, False


def has_bad_indexes(source: OpenFile, base: int, interval: int) -> bool:
    """Whether offsets go back, so that the segment cannot have an index."""
    indexed, last, timed = 0, base, (NO_TIMESTAMP, base)
    latest, at_latest, entries, times = NO_TIMESTAMP, base, 0, 0
    for block, count in _valid(source):
        columns = (column[:count].tolist() for column in (block.positions, block.last, block.max_timestamp))
        for position, offset, time in zip(*columns, strict=True):
            if time > latest:
                latest, at_latest = time, offset
            if position - indexed > interval:
                if entries and offset <= last:
                    return True
                entries, last, indexed = entries + 1, offset, position
                if times and at_latest < timed[1]:
                    return True
                if latest > timed[0]:
                    times, timed = times + 1, (latest, at_latest)
    return bool(times and at_latest < timed[1])


def overflows(scan: Scan, base: int) -> bool:
    """Whether the segment has an offset that is too far from its base offset for an index."""
    return scan.largest >= 0 and not base <= scan.smallest <= scan.largest <= base + LARGEST_DELTA


def splits(scan: Scan, base: int) -> bool:
    """Whether a broker splits a segment that `overflows`. It does not if the last offset fits, or if bytes are corrupt.

    Source: apache/kafka, `LogSegment.hasOverflow`, `LocalLog.splitOverflowedSegment`.
    """
    return scan.smallest >= base and scan.last > base + LARGEST_DELTA and scan.end == scan.size


def bases_after_split(source: OpenFile) -> list[int]:
    """The base offsets of the segments into which a broker splits a segment."""
    bases: list[int] = []
    for block, count in _valid(source):
        for first, last in zip(block.first[:count].tolist(), block.last[:count].tolist(), strict=True):
            if not bases or not bases[-1] <= last <= bases[-1] + LARGEST_DELTA:
                bases.append(first)
    return bases


_LEAST: Final = 14
"""smallest size of an entry that Kafka reads from a file [bytes]"""
