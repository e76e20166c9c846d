"""Read a segment's bytes from its chunks in a bucket: fetch a range of chunks in one request, decrypt and decompress them.

A corrupt chunk (truncated, with a wrong tag, or not zstd) is replaced by zeros of the same size. The reader of the segment treats
these as corrupt bytes: they become a row with an error, and reading continues after them. For an unencrypted and uncompressed
chunk, it returns the bytes that are left.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.kafka.tiered.encryption_keys import Keys
from sparkwire.kafka.tiered.manifest import Chunks, Encryption

_AT_LEAST, _AT_ONCE = 128 << 10, 16 << 20
"""maximum size of one request for several small chunks [bytes]"""
_DECODED = 64 << 20
"""largest total decompressed size of the chunks of one request, unless a single chunk is larger [bytes]"""


class Raw(Protocol):
    """The object, as `pyarrow.fs` opens it."""

    def read_at(self, nbytes: int, offset: int) -> bytes: ...
    def close(self) -> None: ...


class ChunkLayer:
    """The layer that reads the `.log` object as the segment.

    It keeps the last decompressed chunks for the next reader of the object, which usually begins in them.
    """

    def __init__(self, chunks: Chunks, encryption: Encryption | None, keys: Keys) -> None:
        self.chunks = chunks
        self.encryption = encryption
        self.keys = keys
        self.decoded: dict[int, bytes] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return ChunkLayer, (self.chunks, self.encryption, self.keys)

    def opened(self, raw: Callable[[], Raw]) -> ChunkInput:
        return ChunkInput(raw(), self)

    def original(self, data: bytes, k: int) -> bytes:
        """The content of chunk ``k``; zeros if the chunk is corrupt."""
        chunks = self.chunks
        size = min(chunks.original, chunks.size - k * chunks.original)
        content: bytes | None = data
        if self.encryption is not None:
            content = self.keys.decrypt(data, *self.encryption)
        if chunks.compressed and content is not None:
            try:
                content = pa.Codec("zstd").decompress(content, size, asbytes=True)
            except (OSError, ValueError):
                content = None
        if content is None or len(content) > size or (chunks.compressed and len(content) < size):
            return bytes(size)
        return content.ljust(size, b"\0")


class ChunkInput:
    """The segment, as a file that is open for reading."""

    def __init__(self, raw: Raw, layer: ChunkLayer) -> None:
        self._raw = raw
        self._layer = layer
        self._position = 0

    def size(self) -> int:
        return self._layer.chunks.size

    def close(self) -> None:
        self._raw.close()

    def seek(self, position: int) -> None:
        self._position = position

    def read_at(self, size: int, position: int) -> bytes:
        out = bytearray(max(0, min(size, self.size() - position)))
        self._fill(position, memoryview(out))
        return bytes(out)

    def readinto(self, out: memoryview) -> int:
        size = max(0, min(len(out), self.size() - self._position))
        self._fill(self._position, out[:size])
        self._position += size
        return size

    def _fill(self, position: int, out: memoryview) -> None:
        width, done = self._layer.chunks.original, 0
        k = position // width
        while done < len(out):
            for chunk in self._chunks(k, -(-(position + len(out)) // width)):
                begin = position + done - k * width
                part = chunk[begin : begin + len(out) - done]
                out[done : done + len(part)] = part
                done += len(part)
                k += 1

    def _chunks(self, first: int, stop: int) -> list[bytes]:
        """One or more chunks from ``first`` to before ``stop``."""
        decoded = [self._layer.decoded[k] for k in takewhile(self._layer.decoded.__contains__, range(first, stop))]
        if decoded:
            return decoded
        ends: npt.NDArray[np.int64] = self._layer.chunks.ends
        start = int(ends[first - 1]) if first else 0
        least, most = (int(np.searchsorted(ends, start + size, "right")) for size in (_AT_LEAST, _AT_ONCE))
        within = first + max(1, _DECODED // self._layer.chunks.original)
        stop = min(within, max(first + 1, least, min(stop, most)))
        data: Any = self._raw.read_at(int(ends[stop - 1]) - start, start)
        borders = [0, *(int(end) - start for end in ends[first:stop])]
        chunks = [self._layer.original(data[borders[i] : borders[i + 1]], first + i) for i in range(stop - first)]
        self._layer.decoded = dict(enumerate(chunks, first))
        return chunks


_BYTES = b"\xff"


class HoleLayer:
    """A layer that returns fixed bytes instead of an object's; the object need not exist."""

    size = len(_BYTES)

    def opened(self, raw: Callable[[], Any]) -> Any:
        return pa.BufferReader(_BYTES)
