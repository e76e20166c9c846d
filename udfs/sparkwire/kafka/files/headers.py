"""The batches of a log by their headers: of what is between them nothing is read.

No checksum is available, so a size counts if the next header agrees: it is framed, and its offset continues from that of the
batch. Otherwise it reads the batch as `decode.pieces` does. So the rows are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sparkwire.base.error_codes import OK
from sparkwire.core.column import Binary, empty
from sparkwire.kafka.batches import Batches, batches_of
from sparkwire.kafka.files.decode import batch_decoder, check_joined, pieces
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.files.seek import entry_numbers
from sparkwire.kafka.framing import FrameBlock, entry_end, frame_error, reach_of
from sparkwire.kafka.layout import BATCH_SIZE, ENTRY, OVERHEAD
from sparkwire.kernels import Bytes, Ints, int64, kernel

LARGE = 16 << 10
"""after an entry beyond that headers are read alone [bytes]"""
NEAR = 256 << 10
"""what is read at once where entries are small [bytes]"""
ROOM = 4096
_FEW = 16  # headers to read alone before checking them, at first
_FURTHEST = 2**31  # that offsets continue by: compaction leaves smaller gaps in a segment
_UNKNOWN = -(2**63)
_SIZE = slice(ENTRY["size"].offset, ENTRY["size"].end)

_DONE, _MORE, _DOUBT = range(3)


class FoundBatches(NamedTuple):
    """Batches that follow each other."""

    positions: Ints
    """in the file [bytes]"""
    scan: Batches


class _Headers(NamedTuple):
    """Headers, `BATCH_SIZE` bytes each, and where they were found."""

    data: Bytes
    positions: Ints
    stops: Ints


@kernel
def add_headers(
    data: Bytes, alone: bool, position: int, size: int, stop: int, last: int, count: int, out: _Headers
) -> tuple[int, int, int, int]:
    """Add the headers that are in ``data``, of entries before ``stop`` in a file of ``size``, the first at ``position``.

    ``alone``: after each header comes the next; else its entry's bytes.

    Returns why it ended, how many headers there are, where the next is, and the last offset before it.
    """
    pos, at = int64(0), int64(position)
    while count < out.positions.size:
        if at == size:
            return _DONE, count, at, last
        if pos + min(BATCH_SIZE, size - at) > data.size:
            return _MORE, count, at, last
        if frame_error(data, pos, pos + size - at) != OK:
            return _DOUBT, count, at, last
        first, following, _ = entry_numbers(data, pos)
        if last != _UNKNOWN and not 0 < first - last <= _FURTHEST:
            return _DOUBT, count, at, last
        if at >= stop:
            return _DONE, count, at, last
        begin = count * BATCH_SIZE
        for k in range(min(BATCH_SIZE, data.size - pos)):
            out.data[begin + k] = data[pos + k]
        length = entry_end(data, pos) - pos
        out.positions[count] = at
        at += length
        out.stops[count] = at
        pos += BATCH_SIZE if alone else length
        last = following
        count += 1
    return _MORE, count, at, last


def batch_pieces(log: Log, position: int, stop: int, joined: bool = False) -> Iterator[FoundBatches]:
    """The batches from ``position`` on that begin before ``stop``, their checksums computed; ``joined`` as in `pieces`."""
    for piece in pieces(log, position, stop, batch_decoder(), joined):
        if len(piece.scan.frames.begin):
            yield FoundBatches(piece.position + piece.scan.frames.begin, piece.scan)


def header_pieces(log: Log, position: int, stop: int, joined: bool = False) -> Iterator[FoundBatches]:
    """The batches from ``position`` on that begin before ``stop``; an item is valid until the next request.

    ``joined`` as in `pieces`.
    """
    if log.source.file.compressed:  # skipping does not save decompression
        yield from batch_pieces(log, position, stop, joined)
        return
    headers = _Headers(empty(ROOM * BATCH_SIZE, np.uint8), empty(ROOM, np.int64), empty(ROOM, np.int64))
    count, last, size = 0, _UNKNOWN, log.source.size
    window, few = BATCH_SIZE, _FEW
    while position < stop or count:
        alone = count > 0 and position < size and bool(headers.stops[count - 1] - headers.positions[count - 1] > LARGE)
        data = _alone(log, position, stop, min(few, ROOM - count)) if alone else log.source.view(position, window)
        why, count, after, last = (int(n) for n in add_headers(data, alone, position, size, stop, last, count, headers))
        if alone:  # after a wrong header, at most as many headers are read for nothing as came before it
            few = _FEW if why == _DOUBT else min(2 * few, ROOM)
        # The latest counts when the next agrees.
        believed = count if why == _DONE else count - 1
        if believed > 0 and (why != _MORE or count == ROOM):
            yield _batches_of(headers, believed)
            headers = _rest(headers, believed, count)
            count -= believed
        position = after
        if why == _DONE:
            break
        if why == _DOUBT:
            at = int(headers.positions[0]) if count else position
            count, last = 0, _UNKNOWN
            for piece in batch_pieces(log, at, min(stop, at + NEAR)):
                position = int(piece.positions[-1] + piece.scan.frames.stop[-1] - piece.scan.frames.begin[-1])
                yield piece
        window = NEAR
    if joined:
        check_joined(log, position, stop)


def _alone(log: Log, position: int, stop: int, most: int) -> Bytes:
    """The header at ``position`` and those that follow by their sizes, which nothing but the next header confirms.

    Up to the first at ``stop`` or later, or after an entry that is not large.
    """
    headers = [log.source.read(position, BATCH_SIZE)]
    while position < stop and len(headers) < most:
        size = OVERHEAD + int.from_bytes(headers[-1][_SIZE], "big", signed=True)
        position += size
        if size <= LARGE or position >= log.source.size:
            break
        headers.append(log.source.read(position, BATCH_SIZE))
    return np.frombuffer(b"".join(headers), np.uint8)


def _batches_of(headers: _Headers, count: int) -> FoundBatches:
    begin = np.arange(count, dtype=np.int64) * BATCH_SIZE
    positions = headers.positions[:count].copy()
    reach = np.empty(count, np.int32)
    frames = FrameBlock(
        row=np.zeros(count, np.int32),
        begin=begin,
        stop=begin + headers.stops[:count] - positions,
        reach=reach,
        whole=np.ones(count, np.bool_),
        error=np.full(count, OK, np.int8),
    )
    find_reaches(headers.data, frames)
    source = Binary(headers.data, np.array([0, count * BATCH_SIZE], np.int64), None)
    return FoundBatches(positions, batches_of(source, [frames]))


@kernel
def find_reaches(data: Bytes, out: FrameBlock) -> None:
    """Fill in how far each header can be read."""
    for i in range(out.begin.size):
        out.reach[i] = reach_of(data, int64(out.begin[i]), int64(out.stop[i]), OK)


def _rest(headers: _Headers, first: int, count: int) -> _Headers:
    """The headers from ``first`` on, before all others."""
    fresh = _Headers(empty(ROOM * BATCH_SIZE, np.uint8), empty(ROOM, np.int64), empty(ROOM, np.int64))
    fresh.data[: (count - first) * BATCH_SIZE] = headers.data[first * BATCH_SIZE : count * BATCH_SIZE]
    fresh.positions[: count - first] = headers.positions[first:count]
    fresh.stops[: count - first] = headers.stops[first:count]
    return fresh
