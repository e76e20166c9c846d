"""Read the entries of a segment in blocks of consecutive entries, as deep as the caller needs.

    HEADERS          only the headers, not the bytes between them
    VERIFIED         all bytes, with checksums
    RecordsDepth     also the records of each entry

The entries are the same at each depth; corrupt bytes are an entry with an error. Headers alone cannot verify a checksum. So a
size counts only if the next header confirms it: that header is framed, and its offset follows that of the entry. Otherwise the
entries there are read as with `VERIFIED`.

A block with records has entries of about `DECODED` bytes after decompression, or one larger entry. So memory depends neither on
the size of the file nor on the sizes that its compressed batches claim.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Final, Literal, NamedTuple

import numpy as np

from sparkwire.base.error_codes import OK
from sparkwire.core.column import Binary, arrays, empty, part
from sparkwire.errors import WrongIndexError
from sparkwire.kafka.batch_headers import Batches, batches_of
from sparkwire.kafka.entry_payloads import EVERY_OFFSET, OffsetRange
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.framing import FrameBlock, entry_end, frame_blocks, frame_error, last_offset, reach_of
from sparkwire.kafka.inflate import MAX_BATCH_BYTES, Inflater
from sparkwire.kafka.layout import (
    BATCH,
    BATCH_SIZE,
    ENTRY,
    MAGIC,
    MESSAGE_ENTRY_0,
    MESSAGE_ENTRY_1,
    NO_TIMESTAMP,
    OVERHEAD,
)
from sparkwire.kafka.records import Records, records_of
from sparkwire.kafka.search import ANYTHING, SearchPattern
from sparkwire.kernels import Bools, Bytes, Ints, i64, int64, kernel

DECODED = 8 << 20
"""approximate decompressed size of a block with records [bytes]"""
LARGE = 16 << 10
"""after an entry larger than this, single headers are read [bytes]"""
NEAR = 256 << 10
"""size of a read of headers if entries are small [bytes]"""
ROOM = 4096
"""largest number of headers in a block"""
_FEW = 16  # number of single headers to read before they are checked, at first
_FURTHEST = 2**31  # largest credible gap between offsets: compaction leaves smaller gaps in a segment
_UNKNOWN = -(2**63)
_UNBOUNDED = 2**62
_SIZE = slice(ENTRY["size"].offset, ENTRY["size"].end)

_LAYOUTS = ((MESSAGE_ENTRY_0, ""), (MESSAGE_ENTRY_1, "timestamp"), (BATCH, "max_timestamp"))
"""for each magic the header, and its field with the largest timestamp"""

HEADERS: Final = "headers"
VERIFIED: Final = "verified"


class RecordsDepth(NamedTuple):
    """The depth at which entries have their records, as in ``kafka_records``; see `records_of`."""

    columns: Collection[str] = ()
    offsets: OffsetRange = EVERY_OFFSET
    max_batch_bytes: int = MAX_BATCH_BYTES
    pattern: SearchPattern = ANYTHING


Depth = Literal["headers", "verified"] | RecordsDepth


class EntryId(NamedTuple):
    """Identifies an entry."""

    offset: int
    """offset as stored"""
    crc: int
    epoch: int
    """leader epoch, -1 in magic 0 and 1"""


class Entry(NamedTuple):
    """An entry, by its header."""

    position: int
    size: int
    first: int
    """stored offset: of the first record in magic 2, of the last record in magic 0 and 1"""
    last: int
    max_timestamp: int
    """[ms since epoch], `NO_TIMESTAMP` for none"""
    id: EntryId
    after: int
    """end of the previous valid entry; the bytes between are corrupt"""

    @property
    def stop(self) -> int:
        """Position of the next entry [bytes]."""
        return self.position + self.size


class Entries:
    """Consecutive entries of a segment, one or more; valid until you take the next ones.

    Parameters
    ----------
    positions
        positions in the file [bytes]
    source
        their bytes; with the depth `HEADERS`, only their headers
    frames
        their positions in ``source``, and their errors
    records
        their records, None with another depth than `RecordsDepth`
    """

    def __init__(self, positions: Ints, source: Binary, frames: FrameBlock, records: Records | None = None) -> None:
        self.positions = positions
        self.source = source
        self.frames = frames
        self._records = records

    @property
    def records(self) -> Records:
        """The records of the entries, at the depth `RecordsDepth`."""
        assert self._records is not None
        return self._records

    @cached_property
    def headers(self) -> Batches:
        """The fields of the headers, read on first use."""
        return batches_of(self.source, [self.frames]) if self._records is None else self._records.entries

    @cached_property
    def is_valid(self) -> Bools:
        valid: Bools = self.frames.error == OK
        return valid

    @cached_property
    def stops(self) -> Ints:
        """Position of the next entry after each [bytes]."""
        stops: Ints = self.positions + (self.frames.stop - self.frames.begin)
        return stops

    @property
    def end(self) -> int:
        """Position of the entry after the last one [bytes]."""
        return int(self.positions[-1] + self.frames.stop[-1] - self.frames.begin[-1])

    @property
    def first(self) -> Ints:
        """Stored offsets: of the first record in magic 2, of the last record in magic 0 and 1."""
        return self.headers.field("offset").values

    @property
    def last(self) -> Ints:
        """Offsets of the last records."""
        return self.headers.last_offset.values

    @property
    def max_timestamp(self) -> Ints:
        """Largest timestamps, `NO_TIMESTAMP` for none [ms since epoch]."""
        stamps = self.headers.max_timestamp()
        return np.where(stamps.valid, stamps.values, NO_TIMESTAMP)

    def entry(self, k: int, after: int = 0) -> Entry:
        """A valid entry; ``after`` is the end of the last valid entry before the block."""
        begin, stop = int(self.frames.begin[k]), int(self.frames.stop[k])
        header = self.source.data[begin : begin + BATCH_SIZE].tobytes()
        layout, time = _LAYOUTS[header[MAGIC]]
        first, crc = layout["offset"].read(header), layout["crc"].read(header)
        is_batch = layout is BATCH
        last = first + BATCH["last_offset_delta"].read(header) if is_batch else first
        epoch = BATCH["partition_leader_epoch"].read(header) if is_batch else -1
        max_timestamp = layout[time].read(header) if time else NO_TIMESTAMP
        return Entry(
            int(self.positions[k]), stop - begin, first, last, max_timestamp, EntryId(first, crc, epoch),
            self.valid_until(k, after),
        )  # fmt: skip

    def valid_until(self, k: int, after: int) -> int:
        """The end of the last valid entry before the entry ``k``; ``after`` if the block has none."""
        valid = np.flatnonzero(self.is_valid[:k])
        return int(self.stops[valid[-1]]) if len(valid) else after


def read_entries(
    log: Log, position: int, stop: int, depth: Depth = VERIFIED, joined: bool = False
) -> Iterator[Entries]:
    """The entries that begin from ``position`` to before ``stop``. If ``joined``, the last must end at ``stop``.

    WrongIndexError if it ends elsewhere, so that the log was split inside an entry.
    """
    # To skip bytes of a compressed file does not save their decompression.
    headers_only = depth == HEADERS and not log.source.file.compressed
    for block in _from_headers(log, position, stop) if headers_only else _from_bytes(log, position, stop, depth):
        position = block.end
        yield block
    if joined and position != stop:
        raise WrongIndexError(
            f"{log.source.file.name} has no batch at byte {stop}, although its .index has this position: delete the "
            ".index, or move it away, and run the query again"
        )


def _from_bytes(log: Log, position: int, stop: int, depth: Depth) -> Iterator[Entries]:
    """The entries with all their bytes."""
    for place, source, framing in log.sections(position, stop, isinstance(depth, RecordsDepth)):
        if isinstance(depth, RecordsDepth):
            inflater = Inflater(depth.max_batch_bytes, _UNBOUNDED)
            for records in records_of(
                source, framing, log.verify, inflater, depth.columns, depth.offsets, DECODED, depth.pattern
            ):
                frames = records.entries.frames
                if len(frames.begin):
                    yield Entries(place + frames.begin, source, frames, records)
        else:
            for frames in frame_blocks(framing):
                if len(frames.begin):
                    yield Entries(place + frames.begin, source, frames)


# -- headers

_DONE, _MORE, _DOUBT = range(3)


class _Headers(NamedTuple):
    """Headers of `BATCH_SIZE` bytes."""

    data: Bytes
    positions: Ints
    """positions in the file [bytes]"""
    frames: FrameBlock
    """the entries, from the positions of the headers in ``data`` on"""


def _room(count: int) -> _Headers:
    return _Headers(empty(count * BATCH_SIZE, np.uint8), empty(count, np.int64), arrays(FrameBlock, count))


@kernel
def add_headers(
    data: Bytes, headers_only: bool, position: int, size: int, stop: int, last: int, count: int, out: _Headers
) -> tuple[int, int, int, int]:
    """Add the headers in ``data`` of entries before ``stop``; the file has ``size`` bytes, the first entry is at ``position``.

    If ``headers_only``, ``data`` consists of headers only; else it has whole entries.

    Returns why it ended, the number of headers, the position of the next header, and the last offset before it.
    """
    pos, at = int64(0), int64(position)
    frames = out.frames
    while count < out.positions.size:
        if at == size:
            return _DONE, count, at, last
        if pos + min(BATCH_SIZE, size - at) > data.size:
            return _MORE, count, at, last
        if frame_error(data, pos, pos + size - at) != OK:
            return _DOUBT, count, at, last
        first = i64(data, pos, False)
        if last != _UNKNOWN and not 0 < first - last <= _FURTHEST:
            return _DOUBT, count, at, last
        if at >= stop:
            return _DONE, count, at, last
        begin = count * BATCH_SIZE
        for k in range(min(BATCH_SIZE, data.size - pos)):
            out.data[begin + k] = data[pos + k]
        length = entry_end(data, pos) - pos
        out.positions[count] = at
        frames.row[count] = 0
        frames.begin[count] = begin
        frames.stop[count] = begin + length
        frames.reach[count] = reach_of(data, pos, pos + length, OK)
        frames.whole[count] = True
        frames.error[count] = OK
        last = last_offset(data, pos)
        count += 1
        at += length
        pos += BATCH_SIZE if headers_only else length
    return _MORE, count, at, last


def _from_headers(log: Log, position: int, stop: int) -> Iterator[Entries]:
    """The entries, from their headers as far as these confirm each other."""
    few, size = _FEW, log.source.size
    while position < stop:
        headers, why, count, at, last = _room(ROOM), _MORE, 0, position, _UNKNOWN
        window = BATCH_SIZE
        while why == _MORE and count < ROOM:
            headers_only = count > 0 and at < size and bool(at - headers.positions[count - 1] > LARGE)
            some = min(few, ROOM - count)
            data = _single_headers(log, at, stop, some) if headers_only else log.source.view(at, window)
            why, count, at, last = map(int, add_headers(data, headers_only, at, size, stop, last, count, headers))
            if headers_only:  # a wrong header wastes at most as many reads as there were valid headers before it
                few = _FEW if why == _DOUBT else min(2 * few, ROOM)
            window = NEAR
        # The last header counts when the next header confirms it.
        confirmed = count if why == _DONE else count - 1
        if confirmed > 0:
            block = _entries_of(headers, confirmed)
            position = block.end
            yield block
        if why == _DONE:
            return
        if why == _DOUBT:
            for block in _from_bytes(log, position, min(stop, position + NEAR), VERIFIED):
                position = block.end
                yield block


def _single_headers(log: Log, position: int, stop: int, most: int) -> Bytes:
    """The header at ``position`` and the headers after it, located by their sizes, which are not confirmed yet.

    It ends at ``stop``, or after an entry that is not large.
    """
    headers = [log.source.read(position, BATCH_SIZE)]
    while position < stop and len(headers) < most:
        size = OVERHEAD + int.from_bytes(headers[-1][_SIZE], "big", signed=True)
        position += size
        if size <= LARGE or position >= log.source.size:
            break
        headers.append(log.source.read(position, BATCH_SIZE))
    return np.frombuffer(b"".join(headers), np.uint8)


def _entries_of(headers: _Headers, count: int) -> Entries:
    source = Binary(headers.data, np.array([0, count * BATCH_SIZE], np.int64), None)
    return Entries(headers.positions[:count], source, part(headers.frames, 0, count))


def header_at(log: Log, position: int) -> Entry | None:
    """The entry framed at a position, by its header alone; None if there is none. It may be corrupt."""
    size = log.source.size
    if not 0 <= position < size:
        return None
    headers, data = _room(1), np.frombuffer(log.source.read(position, BATCH_SIZE), np.uint8)
    _, count, _, _ = add_headers(data, True, position, size, position + 1, _UNKNOWN, 0, headers)
    return _entries_of(headers, 1).entry(0) if count else None
