"""The manifest of a segment in a bucket of Aiven's tiered storage: what the segment is, and where its bytes lie in the objects.

    orders-GuCdKpmgR5i6jlGF8wo2DQ/0/00000000000000000224-VuGJNCBTSMqdCcBj2cjWuA.rsm-manifest     JSON, never encrypted
                                                                               ….log              the segment, in chunks
                                                                               ….indexes          five indexes in a row

A chunk is so many bytes of the segment, the last one fewer, compressed and encrypted by itself. The manifest is written last.

Source: Aiven-Open/tiered-storage-for-apache-kafka, `manifest.SegmentManifestV1`, `manifest.index.serde.ChunkSizesBinaryCodec`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

VERSION: Final = "1"
OFFSETS, TIMES, PRODUCERS, EPOCHS, TRANSACTIONS = (
    "offset", "timestamp", "producerSnapshot", "leaderEpoch", "transaction",
)  # fmt: skip
_LARGEST_INDEX: Final = 10 << 20  # what the sizes of chunks may come to, decompressed [bytes]
_SIZES_HEADER: Final = 9  # how many, the smallest of them, and how wide the others are [bytes]


class NotWhole(ValueError):
    """A manifest that is no JSON: its upload was cut off, and the segment never was finished."""


class Span(NamedTuple):
    """A part of an object."""

    position: int
    size: int
    """[bytes]"""


class Encryption(NamedTuple):
    """How a segment's chunks and indexes are encrypted."""

    data_key: str
    """``KEYID:BASE64``, itself encrypted with the RSA key of this id"""
    aad: bytes


class Chunks(NamedTuple):
    """Where a segment's bytes lie in its `.log` object."""

    original: int
    """of the segment in each chunk but the last [bytes]"""
    size: int
    """of the segment [bytes]"""
    ends: npt.NDArray[np.int64]
    """where each chunk ends in the object [bytes]"""
    compressed: bool

    @property
    def stored(self) -> int:
        """Of the object [bytes]."""
        return int(self.ends[-1]) if len(self.ends) else 0


class Manifest(NamedTuple):
    """A segment."""

    topic: str
    topic_id: str
    partition: int
    first: int
    last: int
    """its last offset"""
    max_timestamp: int
    """[ms since epoch]"""
    epochs: tuple[tuple[int, int], ...]
    """leader epochs, each with its first offset in this segment"""
    chunks: Chunks
    indexes: Mapping[str, Span | None]
    encryption: Encryption | None
    is_plain_copy: bool = False
    """whether it is Kafka's own files, one by one, that tell all this"""


def parsed(raw: bytes, name: str) -> Manifest:
    """Read a manifest; ``name`` is its object's.

    NotWhole where it is cut off; ValueError where it is of a version that is not known, or contradicts itself.
    """
    try:
        tree = json.loads(raw)
    except ValueError as error:
        raise NotWhole(f"{name} is no JSON") from error
    version = tree.get("version") if isinstance(tree, dict) else None
    if version != VERSION:
        raise ValueError(f"{name} is a manifest of version {version!r}: version {VERSION!r} is known here")
    try:
        return _manifest(tree)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OSError) as error:
        raise ValueError(f"{name} is no manifest of a segment: {type(error).__name__} {error}") from error


def _manifest(tree: Mapping[str, Any]) -> Manifest:
    about = tree["remoteLogSegmentMetadata"]
    of_partition = about["remoteLogSegmentId"]["topicIdPartition"]
    encryption = tree.get("encryption")
    return Manifest(
        topic=of_partition["topicPartition"]["topic"],
        topic_id=of_partition["topicId"],
        partition=int(of_partition["topicPartition"]["partition"]),
        first=int(about["startOffset"]),
        last=int(about["endOffset"]),
        max_timestamp=int(about["maxTimestampMs"]),
        epochs=tuple(sorted((int(epoch), int(first)) for epoch, first in about["segmentLeaderEpochs"].items())),
        chunks=_chunks(tree["chunkIndex"], bool(tree["compression"])),
        indexes={
            name: None if span is None else Span(int(span["position"]), int(span["size"]))
            for name, span in tree["segmentIndexes"].items()
        },
        encryption=None
        if encryption is None
        else Encryption(encryption["dataKey"], base64.b64decode(encryption["aad"])),
    )


def _chunks(index: Mapping[str, Any], compressed: bool) -> Chunks:
    original, size = int(index["originalChunkSize"]), int(index["originalFileSize"])
    if original < 1 or size < 0:
        raise ValueError(f"chunks of {original} bytes of {size}")
    count = -(-size // original)
    if index["type"] == "fixed":
        sizes = np.full(count, int(index["transformedChunkSize"]), np.int64)
        sizes[-1:] = int(index["finalTransformedChunkSize"])
    elif index["type"] == "variable":
        sizes = _sizes(base64.b64decode(index["transformedChunks"]))
    else:
        raise ValueError(f"chunk index of type {index['type']!r}")
    if len(sizes) != count or (sizes < 0).any():
        raise ValueError(f"{len(sizes)} chunks for {count}")
    return Chunks(original, size, np.cumsum(sizes), compressed)


def _sizes(compressed: bytes) -> npt.NDArray[np.int64]:
    """The sizes of chunks: all but the last as what they are above the smallest."""
    with pa.CompressedInputStream(pa.BufferReader(compressed), "zstd") as stream:
        raw = stream.read(_LARGEST_INDEX)
    count = int.from_bytes(raw[:4])
    if count < 2:
        return np.frombuffer(raw[4 : 4 + 4 * count], ">i4").astype(np.int64)
    smallest, width = int.from_bytes(raw[4:8]), raw[8]
    above = np.frombuffer(raw[_SIZES_HEADER : _SIZES_HEADER + (count - 1) * width], np.uint8).reshape(count - 1, width)
    weights = 1 << np.arange(8 * (width - 1), -1, -8, dtype=np.int64)
    last = int.from_bytes(raw[_SIZES_HEADER + (count - 1) * width :][:4])
    return np.append(smallest + above.astype(np.int64) @ weights, last)
