"""The manifest of a segment in a bucket of Aiven's tiered storage: the facts about the segment, and the positions of its bytes.

    orders-GuCdKpmgR5i6jlGF8wo2DQ/0/00000000000000000224-VuGJNCBTSMqdCcBj2cjWuA.rsm-manifest     JSON, never encrypted
                                                                               ….log              the segment, in chunks
                                                                               ….indexes          five concatenated indexes

A chunk has a fixed number of the segment's bytes (the last chunk has fewer), compressed and encrypted separately. The plugin
writes the manifest last. Anyone with write access to the bucket can write a manifest, so the reader checks the bounds of each
value.

Source: Aiven-Open/tiered-storage-for-apache-kafka, `manifest.SegmentManifestV1`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sparkwire.base.printable import printable
from sparkwire.kafka.tiered.chunk_index import Chunks, InvalidManifestError, chunks_of, name, number

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
        raise ValueError(
            printable(f"{title} is a manifest of version {version[:20]!a}: version {VERSION!r} is known here")
        )
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
    given = tree.get("encryption")
    encryption = None if given is None else _encryption(given)
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
        encryption=encryption,
    )


def _epochs(given: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    pairs = ((number(int(epoch), range(2**31)), number(first, _OFFSETS)) for epoch, first in given.items())
    epochs = tuple(sorted(pairs))
    if not epochs:
        raise InvalidManifestError("it has no leader epoch")
    return epochs


def _span(given: Mapping[str, Any]) -> Span:
    return Span(number(given["position"], _OFFSETS), number(given["size"], _OFFSETS))


def _encryption(given: Mapping[str, Any]) -> Encryption:
    data_key = name(given["dataKey"])
    if not _DATA_KEY.fullmatch(data_key):
        raise InvalidManifestError("its data key is no id and base64 with a colon between them")
    return Encryption(data_key, base64.b64decode(given["aad"], validate=True))
