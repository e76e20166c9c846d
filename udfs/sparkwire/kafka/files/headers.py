"""Read the headers of a log's batches without the bytes between them.

It cannot verify checksums. So a size counts only if the next header confirms it: that header is framed, and its offset follows
that of the batch. Otherwise it reads the batch like `decode.pieces`. So the rows are the same.
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
"""after an entry larger than this, it reads single headers [bytes]"""
NEAR = 256 << 10
"""size of a read if entries are small [bytes]"""
ROOM = 4096
_FEW = 16  # number of single headers to read before it checks them, at first
_FURTHEST = 2**31  # largest credible gap between offsets: compaction leaves smaller gaps in a segment
_UNKNOWN = -(2**63)
_SIZE = slice(ENTRY["size"].offset, ENTRY["size"].end)

_DONE, _MORE, _DOUBT = range(3)


class FoundBatches(NamedTuple):
    """Consecutive batches."""

    positions: Ints
    """positions in the file [bytes]"""
    scan: Batches


class _Headers(NamedTuple):
    """Headers of `BATCH_SIZE` bytes, and their positions."""

    data: Bytes
    positions: Ints
    stops: Ints


@kernel
def add_headers(
    data: Bytes, headers_only: bool, position: int, size: int, stop: int, last: int, count: int, out: _Headers
) -> tuple[int, int, int, int]:
    """Add the headers in ``data`` of entries before ``stop``; the file has ``size`` bytes, the first entry is at ``position``.

    If ``headers_only``, ``data`` consists of headers only; else it has whole entries.

    Returns why it ended, the number of headers, the position of the next header, and the last offset before it.
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
        pos += BATCH_SIZE if headers_only else length
        last = following
        count += 1
    return _MORE, count, at, last


def batch_pieces(log: Log, position: int, stop: int, joined: bool = False) -> Iterator[FoundBatches]:
    """The batches that begin from ``position`` to before ``stop``, with verified checksums; ``joined`` as in `pieces`."""
    for piece in pieces(log, position, stop, batch_decoder(), joined):
        if len(piece.scan.frames.begin):
            yield FoundBatches(piece.position + piece.scan.frames.begin, piece.scan)


def header_pieces(log: Log, position: int, stop: int, joined: bool = False) -> Iterator[FoundBatches]:
    """The batches that begin from ``position`` to before ``stop``. An item is valid until you take the next one.

    ``joined`` as in `pieces`.
    """
    if log.source.file.compressed:  # skipping does not save decompression
        yield from batch_pieces(log, position, stop, joined)
        return
    headers = _Headers(empty(ROOM * BATCH_SIZE, np.uint8), empty(ROOM, np.int64), empty(ROOM, np.int64))
    count, last, size = 0, _UNKNOWN, log.source.size
    window, few = BATCH_SIZE, _FEW
    while position < stop or count:
        headers_only = (
            count > 0 and position < size and bool(headers.stops[count - 1] - headers.positions[count - 1] > LARGE)
        )
        data = (
            _headers_from(log, position, stop, min(few, ROOM - count))
            if headers_only
            else log.source.view(position, window)
        )
        why, count, after, last = (
            int(n) for n in add_headers(data, headers_only, position, size, stop, last, count, headers)
        )
        if headers_only:  # a wrong header wastes at most as many reads as there were valid headers before it
            few = _FEW if why == _DOUBT else min(2 * few, ROOM)
        # The last header counts when the next header confirms it.
        confirmed = count if why == _DONE else count - 1
        if confirmed > 0 and (why != _MORE or count == ROOM):
            yield _batches_of(headers, confirmed)
            headers = _rest(headers, confirmed, count)
            count -= confirmed
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


def _headers_from(log: Log, position: int, stop: int, most: int) -> Bytes:
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
    """Fill in the readable size of each header."""
    for i in range(out.begin.size):
        out.reach[i] = reach_of(data, int64(out.begin[i]), int64(out.stop[i]), OK)


def _rest(headers: _Headers, first: int, count: int) -> _Headers:
    """Move the headers from ``first`` on to the front."""
    fresh = _Headers(empty(ROOM * BATCH_SIZE, np.uint8), empty(ROOM, np.int64), empty(ROOM, np.int64))
    fresh.data[: (count - first) * BATCH_SIZE] = headers.data[first * BATCH_SIZE : count * BATCH_SIZE]
    fresh.positions[: count - first] = headers.positions[first:count]
    fresh.stops[: count - first] = headers.stops[first:count]
    return fresh
