"""The manifest of a segment in a bucket of Aiven's tiered storage: the facts about the segment, and the positions of its bytes.

    orders-GuCdKpmgR5i6jlGF8wo2DQ/0/00000000000000000224-VuGJNCBTSMqdCcBj2cjWuA.rsm-manifest     JSON, never encrypted
                                                                               ….log              the segment, in chunks
                                                                               ….indexes          five concatenated indexes

A chunk has a fixed number of the segment's bytes (the last chunk has fewer), compressed and encrypted separately. The plugin
writes the manifest last. Anyone with write access to the bucket can write a manifest, so the reader checks the bounds of each
value.

The manifest's chunk index has each chunk's size in the object: two numbers if all sizes are equal (`fixed`), else a
zstd-compressed table of differences from the smallest size (`variable`). Memory depends on the object's size, not on the index: a
chunk has at least one byte, so the reader lists no more chunks than bytes.

Source: Aiven-Open/tiered-storage-for-apache-kafka, `manifest.SegmentManifestV1`, `manifest.index`,
`manifest.index.serde.ChunkSizesBinaryCodec`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.printable import value_error
from sparkwire.kafka.tiered.encryption_keys import IV, TAG


class InvalidManifestError(ValueError):
    """A manifest is not the one of its segment: it is truncated, of another segment, or contradicts itself."""


def number(value: Any, allowed: range) -> int:
    """An integer; InvalidManifestError for another type, or a value out of bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
        raise InvalidManifestError(
            f"it has {_shown(value)} where a number from {allowed.start} to {allowed.stop - 1} belongs"
        )
    return value


def name(value: Any) -> str:
    """A printable text; InvalidManifestError for any other value."""
    if not isinstance(value, str) or not value.isprintable() or not value:
        raise InvalidManifestError(f"it has {_shown(value)} where a name belongs")
    return value


def _shown(value: Any) -> str:
    if isinstance(value, (str, int, float, bool)) or value is None:
        return f"{str(value)[:40]!a}" if isinstance(value, str) else f"{value:.6g}" if value is not None else "null"
    return f"a {type(value).__name__}"


Ints = npt.NDArray[np.int64]

ADDED: Final = IV + TAG
"""size of an IV and a tag, which encryption adds to a chunk [bytes]"""
_PIECE: Final = 1 << 20  # chunk size for a segment whose object has its unchanged bytes [bytes]
_LARGEST_TABLE: Final = 10 << 20  # largest decompressed size of the table of sizes [bytes]
_LARGEST_CHUNK: Final = 256 << 20  # largest decompressed size of a chunk [bytes]
_LEAST_FRAME: Final = 9  # smallest frame of zstd [bytes]
_LARGEST_RATIO: Final = 1 << 15  # largest compression ratio of zstd: a block of 128 KiB takes at least four bytes
_LARGEST_SEGMENT: Final = 2**31 - 1  # Kafka keeps positions in 32 bits [bytes]
_SIZES_HEADER: Final = 9  # [bytes] number of sizes, the smallest size, and the width of the differences


class Chunks(NamedTuple):
    """The chunks of a segment in its `.log` object."""

    original: int
    """number of the segment's bytes in each chunk except the last"""
    size: int
    """size of the segment, as far as its chunks exist [bytes]"""
    ends: Ints
    """end of each chunk in the object [bytes]"""
    compressed: bool
    is_whole: bool = True
    """whether the object has every chunk"""


class _Sizes(NamedTuple):
    """The sizes of the first chunks in the object, and the total size of all chunks [bytes]."""

    listed: Ints
    total: int


def chunks_of(index: Mapping[str, Any], compressed: bool, encrypted: bool, stored: int) -> Chunks:
    """The chunks of an object of ``stored`` bytes; InvalidManifestError if the index contradicts itself."""
    original = number(index["originalChunkSize"], range(1, 2**31))
    size = number(index["originalFileSize"], range(_LARGEST_SEGMENT + 1))
    if compressed and min(original, size) > _LARGEST_CHUNK:
        raise InvalidManifestError(f"its chunks become {min(original, size)} bytes, and {_LARGEST_CHUNK} are the most")
    count = -(-size // original)
    added = ADDED if encrypted else 0
    least = added + (_LEAST_FRAME if compressed else 1)
    most = min(count, stored // least + 1)
    if index["type"] == "fixed":
        sizes = _fixed(index, count, most)
    elif index["type"] == "variable":
        sizes = _variable(base64.b64decode(index["transformedChunks"], validate=True), count, most)
    else:
        raise InvalidManifestError(f"its chunk index is of type {index['type']!r:.20}")
    contents = np.minimum(original, size - original * np.arange(most, dtype=np.int64))
    if (sizes.listed < least).any() or (contents > (sizes.listed - added) * _LARGEST_RATIO).any():
        raise InvalidManifestError("it has chunks of fewer bytes than their content takes")
    if not compressed:
        if (sizes.listed != contents + added).any():
            raise InvalidManifestError("its chunks are not as long as their content")
        if not encrypted:
            return plain_chunks(min(size, stored), size <= stored)
    ends = np.cumsum(sizes.listed)
    existing = int(np.searchsorted(ends - sizes.listed, stored, "left"))
    return Chunks(original, min(size, existing * original), ends[:existing], compressed, sizes.total <= stored)


def plain_chunks(size: int, is_whole: bool = True) -> Chunks:
    """The chunks of a segment whose object has its unchanged bytes: pieces of a fixed size."""
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
    """Decode sizes that are stored as differences from the smallest size, except the last."""
    with pa.CompressedInputStream(pa.BufferReader(compressed), "zstd") as stream:
        raw = stream.read(_LARGEST_TABLE)
    if int.from_bytes(raw[:4]) != count:
        raise InvalidManifestError(f"it has {int.from_bytes(raw[:4])} chunks where its size makes {count}")
    if count < 2:
        listed = np.frombuffer(raw, ">i4", count, 4).astype(np.int64)
        return _Sizes(listed[:most], int(listed.sum()))
    smallest, width = int.from_bytes(raw[4:8]), raw[8]
    table = np.frombuffer(raw, np.uint8, (count - 1) * width, _SIZES_HEADER).reshape(count - 1, width)
    weights = 1 << np.arange(8 * (width - 1), -1, -8, dtype=np.int64)
    listed = smallest + table[:most].astype(np.int64) @ weights
    if most < count:
        return _Sizes(listed, smallest * count + int(listed.sum()))  # more chunks than the object has bytes
    last = int.from_bytes(raw[_SIZES_HEADER + table.size :][:4])
    listed = np.append(listed[: count - 1], last)
    return _Sizes(listed, int(listed.sum()))


VERSION: Final = "1"
OFFSETS, TIMES, PRODUCERS, EPOCHS, TRANSACTIONS = (
    "offset", "timestamp", "producerSnapshot", "leaderEpoch", "transaction",
)  # fmt: skip
_LARGEST: Final = 32 << 20  # largest manifest that is read [bytes]
_OFFSETS: Final = range(2**63)
_SIGNED: Final = range(-(2**63), 2**63)
_DATA_KEY: Final = re.compile(r"[^:]+:[A-Za-z0-9+/]+=*")


class Span(NamedTuple):
    """A part of an object."""

    position: int
    size: int
    """[bytes]"""


class Encryption(NamedTuple):
    """The encryption of a segment's chunks and indexes."""

    data_key: str
    """``KEYID:BASE64``, encrypted with the RSA key of this id"""
    aad: bytes


class Manifest(NamedTuple):
    """The manifest of a segment."""

    topic: str
    topic_id: str
    partition: int
    id: str
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
    """whether the segment is a copy of Kafka's own files, and the facts come from these"""


def parsed(raw: bytes, title: str, stored: int) -> Manifest:
    """Read a manifest; ``title`` is its object's name, ``stored`` the size of the `.log` object [bytes].

    InvalidManifestError if it is truncated or contradicts itself; ValueError for an unknown version.
    """
    if len(raw) > _LARGEST:
        raise InvalidManifestError(f"it has {len(raw)} bytes, and {_LARGEST} are the most")
    try:
        tree = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InvalidManifestError("it is no JSON") from error
    version = tree.get("version") if isinstance(tree, dict) else None
    if isinstance(version, str) and version != VERSION:
        raise value_error(f"{title} is a manifest of version {version[:20]!a}: version {VERSION!r} is known here")
    try:
        return _manifest(tree, stored)
    except InvalidManifestError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OSError) as error:
        raise InvalidManifestError(
            f"it is no manifest of a segment: {type(error).__name__} {str(error)[:80]!a}"
        ) from error


def _manifest(tree: Mapping[str, Any], stored: int) -> Manifest:
    about = tree["remoteLogSegmentMetadata"]
    of_segment = about["remoteLogSegmentId"]
    of_partition = of_segment["topicIdPartition"]
    encryption = tree.get("encryption")
    return Manifest(
        topic=name(of_partition["topicPartition"]["topic"]),
        topic_id=name(of_partition["topicId"]),
        partition=number(of_partition["topicPartition"]["partition"], range(2**31)),
        id=name(of_segment["id"]),
        first=number(about["startOffset"], _SIGNED),
        last=number(about["endOffset"], _SIGNED),
        max_timestamp=number(about["maxTimestampMs"], _SIGNED),
        epochs=_epochs(about["segmentLeaderEpochs"]),
        chunks=chunks_of(tree["chunkIndex"], bool(tree["compression"]), encryption is not None, stored),
        indexes={part: None if span is None else _span(span) for part, span in tree["segmentIndexes"].items()},
        encryption=None if encryption is None else _encryption(encryption),
    )


def _epochs(starts: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    pairs = ((number(int(epoch), range(2**31)), number(first, _OFFSETS)) for epoch, first in starts.items())
    epochs = tuple(sorted(pairs))
    if not epochs:
        raise InvalidManifestError("it has no leader epoch")
    return epochs


def _span(tree: Mapping[str, Any]) -> Span:
    return Span(number(tree["position"], _OFFSETS), number(tree["size"], _OFFSETS))


def _encryption(tree: Mapping[str, Any]) -> Encryption:
    data_key = name(tree["dataKey"])
    if not _DATA_KEY.fullmatch(data_key):
        raise InvalidManifestError("its data key is no id and base64 with a colon between them")
    return Encryption(data_key, base64.b64decode(tree["aad"], validate=True))
