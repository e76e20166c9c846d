"""Scan a segment like a broker that verifies every batch, and build the same indexes.

Source: apache/kafka, `LogSegment.recover`, `OffsetIndex.append`, `TimeIndex.maybeAppend`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from sparkwire.base.error_codes import ERRORS, OK
from sparkwire.core.sources.storage import OpenFile
from sparkwire.kafka.files.log import Block, Log
from sparkwire.kafka.layout import BATCH, ENTRY, MAGIC, MESSAGE_1, NO_TIMESTAMP, OVERHEAD
from sparkwire.kafka.to_records import LARGEST_DELTA
from sparkwire.kernels import Ints

INDEX_INTERVAL: Final = 4096
"""default of `index.interval.bytes` [bytes]"""


class EntryRange(NamedTuple):
    """Consecutive entries of a log."""

    position: Ints
    """[bytes]"""
    first: Ints
    """first offset; in magic 0 and 1, the last offset"""
    last: Ints
    time: Ints
    """largest timestamp [ms since epoch]"""
    epoch: Ints
    """leader epoch, -1 for none"""


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
    for entries, error in _valid(source):  # noqa: B007  the last one is used below
        if len(entries.first):
            ends = np.maximum.accumulate(np.concatenate([[largest], entries.last]))
            begins_before = np.flatnonzero((entries.first <= ends[:-1]) & (ends[:-1] >= 0))
            if back is None and len(begins_before):
                back = int(entries.position[begins_before[0]])
            first = int(entries.first[0]) if first is None else first
            smallest = min(smallest, int(entries.last.min()))
            largest, last = int(ends[-1]), int(entries.last[-1])
        position = _end_of(source, entries, position)
    framed, stops = _framed(source, position, last)
    wrong = "" if error == OK else ERRORS[error]
    return Scan(source.size, position, wrong, first, smallest, largest, last, back, framed, stops)


def _valid(source: OpenFile) -> Iterator[tuple[EntryRange, int]]:
    """Entries up to the first invalid one, and its error."""
    for block in Log(source).blocks(0, source.size):
        wrong = np.flatnonzero(block.frames.error != OK)
        count = int(wrong[0]) if len(wrong) else len(block.frames.error)
        yield entries_of(block, count), int(block.frames.error[count]) if len(wrong) else OK
        if len(wrong):
            return


def entries_of(block: Block, count: int) -> EntryRange:
    """The first ``count`` entries of a block, which must be valid."""
    begin = block.frames.begin[:count].astype(np.int64)
    magic = block.data[begin + MAGIC] if count else np.zeros(0, np.uint8)

    def field(place: int, width: int) -> Ints:
        at = np.minimum(begin[:, None] + place + np.arange(width), max(0, len(block.data) - 1))
        numbers: Ints = block.data[at].copy().view(f">i{width}").astype(np.int64).reshape(-1)
        return numbers

    first = field(ENTRY["offset"].offset, 8)
    is_batch = magic == 2
    last = first + np.where(is_batch, field(BATCH["last_offset_delta"].offset, 4), 0)
    stamped = np.where(magic == 1, field(OVERHEAD + MESSAGE_1["timestamp"].offset, 8), NO_TIMESTAMP)
    time = np.where(is_batch, field(BATCH["max_timestamp"].offset, 8), stamped)
    epoch = np.where(is_batch, field(BATCH["partition_leader_epoch"].offset, 4), -1)
    return EntryRange(block.position + begin, first, last, time, epoch)


def _end_of(source: OpenFile, entries: EntryRange, before: int) -> int:
    if not len(entries.position):
        return before
    at = int(entries.position[-1])
    return at + OVERHEAD + ENTRY["size"].read(source.read(at, OVERHEAD))


def _framed(source: OpenFile, position: int, last: int) -> tuple[int, bool]:
    """The last offset by headers from a position on, without checksums, and whether they end in an invalid size."""
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
    for entry, _ in _valid(source):
        columns = (column.tolist() for column in entry[:4])
        for position, _first, offset, time in zip(*columns, strict=True):
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
    for entries, _ in _valid(source):
        for first, last in zip(entries.first.tolist(), entries.last.tolist(), strict=True):
            if not bases or not bases[-1] <= last <= bases[-1] + LARGEST_DELTA:
                bases.append(first)
    return bases


_LEAST: Final = 14
"""smallest size of an entry that Kafka reads from a file [bytes]"""
