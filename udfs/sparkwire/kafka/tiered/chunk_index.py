"""Where the chunks of a segment are in its object, out of the manifest's chunk index.

A chunk holds a fixed number of the segment's bytes, the last one fewer. The index gives each chunk's size in the object: two
numbers where all are alike (`fixed`), else a table of differences from the smallest (`variable`), which zstd has compressed.

Memory depends on the object, not on what the index claims: a chunk has a byte at least, so more chunks than bytes are not listed.

Source: Aiven-Open/tiered-storage-for-apache-kafka, `manifest.index`, `manifest.index.serde.ChunkSizesBinaryCodec`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.kafka.tiered.believed import NotBelieved, number

Ints = npt.NDArray[np.int64]

ADDED: Final = 12 + 16
"""what encryption adds to a chunk: an IV and a tag [bytes]"""
_PIECE: Final = 1 << 20  # of a segment whose chunks are its own bytes [bytes]
_LARGEST_TABLE: Final = 10 << 20  # of sizes, decompressed [bytes]
_LARGEST_CHUNK: Final = 256 << 20  # what one compressed chunk may become [bytes]
_LEAST_FRAME: Final = 9  # of zstd [bytes]
_LARGEST_RATIO: Final = 1 << 15  # of zstd: a block of 128 KiB takes four bytes at least
_LARGEST_SEGMENT: Final = 2**31 - 1  # Kafka keeps positions in 32 bits [bytes]
_SIZES_HEADER: Final = 9  # how many, the smallest of them, and how wide the others are [bytes]


class Chunks(NamedTuple):
    """Where a segment's bytes are in its `.log` object."""

    original: int
    """of the segment in each chunk but the last [bytes]"""
    size: int
    """of the segment, as far as its chunks are there [bytes]"""
    ends: Ints
    """where each chunk ends in the object [bytes]"""
    compressed: bool
    is_whole: bool = True
    """whether the object has every chunk"""


class _Sizes(NamedTuple):
    """The sizes of the first chunks in the object, and of all together [bytes]."""

    listed: Ints
    total: int


def chunks_of(index: Mapping[str, Any], compressed: bool, encrypted: bool, stored: int) -> Chunks:
    """The chunks of an object of ``stored`` bytes; NotBelieved where the index contradicts itself."""
    original = number(index["originalChunkSize"], range(1, 2**31))
    size = number(index["originalFileSize"], range(_LARGEST_SEGMENT + 1))
    if compressed and min(original, size) > _LARGEST_CHUNK:
        raise NotBelieved(f"its chunks become {min(original, size)} bytes, and {_LARGEST_CHUNK} are the most")
    count = -(-size // original)
    added = ADDED if encrypted else 0
    least = added + (_LEAST_FRAME if compressed else 1)
    most = min(count, stored // least + 1)
    if index["type"] == "fixed":
        sizes = _fixed(index, count, most)
    elif index["type"] == "variable":
        sizes = _variable(base64.b64decode(index["transformedChunks"], validate=True), count, most)
    else:
        raise NotBelieved(f"its chunk index is of type {index['type']!r:.20}")
    contents = np.minimum(original, size - original * np.arange(most, dtype=np.int64))
    if (sizes.listed < least).any() or (contents > (sizes.listed - added) * _LARGEST_RATIO).any():
        raise NotBelieved("it has chunks of fewer bytes than their content takes")
    if not compressed:
        if (sizes.listed != contents + added).any():
            raise NotBelieved("its chunks are not as long as their content")
        if not encrypted:
            return plain_chunks(min(size, stored), size <= stored)
    ends = np.cumsum(sizes.listed)
    there = int(np.searchsorted(ends - sizes.listed, stored, "left"))
    return Chunks(original, min(size, there * original), ends[:there], compressed, sizes.total <= stored)


def plain_chunks(size: int, is_whole: bool = True) -> Chunks:
    """Those of a segment whose object is its own bytes: any pieces of it."""
    ends = np.minimum(np.arange(_PIECE, size + _PIECE, _PIECE, dtype=np.int64), size)
    return Chunks(_PIECE, size, ends, False, is_whole)


def _fixed(index: Mapping[str, Any], count: int, most: int) -> _Sizes:
    full = number(index["transformedChunkSize"], range(2**31))
    final = number(index["finalTransformedChunkSize"], range(2**31))
    listed = np.full(most, full, np.int64)
    if most == count:
        listed[-1:] = final
    return _Sizes(listed, full * (count - 1) + final if count else 0)


def _variable(compressed: bytes, count: int, most: int) -> _Sizes:
    """All sizes but the last as what they are above the smallest."""
    with pa.CompressedInputStream(pa.BufferReader(compressed), "zstd") as stream:
        raw = stream.read(_LARGEST_TABLE)
    if int.from_bytes(raw[:4]) != count:
        raise NotBelieved(f"it has {int.from_bytes(raw[:4])} chunks where its size makes {count}")
    if count < 2:
        listed = np.frombuffer(raw, ">i4", count, 4).astype(np.int64)
        return _Sizes(listed[:most], int(listed.sum()))
    smallest, width = int.from_bytes(raw[4:8]), raw[8]
    table = np.frombuffer(raw, np.uint8, (count - 1) * width, _SIZES_HEADER).reshape(count - 1, width)
    weights = 1 << np.arange(8 * (width - 1), -1, -8, dtype=np.int64)
    listed = smallest + table[:most].astype(np.int64) @ weights
    if most < count:
        return _Sizes(listed, smallest * count + int(listed.sum()))  # more than there are bytes
    last = int.from_bytes(raw[_SIZES_HEADER + table.size :][:4])
    listed = np.append(listed[: count - 1], last)
    return _Sizes(listed, int(listed.sum()))
