"""A simple writer of a segment's objects in tiered storage, like Aiven's plugin, for tests without the plugin.

It shares no code with the package. A segment is split into chunks; each is compressed and then encrypted separately.

Source: Aiven-Open/tiered-storage-for-apache-kafka, `manifest`, `transform` and `security`.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import zstandard
from Crypto.Cipher import PKCS1_OAEP
from Crypto.Hash import SHA3_512
from Crypto.PublicKey import RSA
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

INDEXES = ("offset", "timestamp", "producerSnapshot", "leaderEpoch", "transaction")
"""the indexes, in the order of their object"""


class Key(NamedTuple):
    """An RSA key: its id and its PEM file."""

    id: str
    pem: bytes


class Cipher:
    """The data key of a segment."""

    def __init__(self, key: Key) -> None:
        self.aad, data_key = os.urandom(32), os.urandom(32)
        wrapped = PKCS1_OAEP.new(RSA.import_key(key.pem), SHA3_512).encrypt(data_key)  # type: ignore[arg-type]
        self.told = {"dataKey": f"{key.id}:{base64.b64encode(wrapped).decode()}", "aad": _base64(self.aad)}
        self._cipher = AESGCM(data_key)

    def encrypt(self, data: bytes) -> bytes:
        """Encrypt data with a new IV, which is stored before them. An empty index is not encrypted."""
        iv = os.urandom(12)
        return iv + self._cipher.encrypt(iv, data, self.aad) if data else b""


def write(
    log: bytes,
    indexes: Mapping[str, bytes | None],
    about: Mapping[str, Any],
    chunk: int,
    compressed: bool = False,
    key: Key | None = None,
) -> dict[str, bytes]:
    """The objects by suffix. ``about`` is Kafka's metadata of the segment, ``chunk`` the size of a chunk [bytes]."""
    cipher = None if key is None else Cipher(key)
    chunks = [log[start : start + chunk] for start in range(0, len(log), chunk)]
    if compressed:
        chunks = [zstandard.ZstdCompressor().compress(data) for data in chunks]
    if cipher is not None:
        chunks = [cipher.encrypt(data) for data in chunks]
    spans: dict[str, Any] = {}
    stored = b""
    for name in INDEXES:
        index = indexes[name]
        data = index if index is None or cipher is None else cipher.encrypt(index)
        spans[name] = None if data is None else {"position": len(stored), "size": len(data)}
        stored += data or b""
    manifest = {
        "version": "1",
        "chunkIndex": _chunk_index(len(log), chunk, [len(data) for data in chunks], compressed, cipher is not None),
        "segmentIndexes": spans,
        "compression": compressed,
        **({} if cipher is None else {"encryption": cipher.told}),
        "remoteLogSegmentMetadata": about,
    }
    text = json.dumps(manifest, separators=(",", ":"))
    return {"log": b"".join(chunks), "indexes": stored, "rsm-manifest": text.encode()}


def _chunk_index(size: int, chunk: int, sizes: list[int], compressed: bool, encrypted: bool) -> dict[str, Any]:
    whole = {"originalChunkSize": chunk, "originalFileSize": size}
    if compressed:
        table = zstandard.ZstdCompressor().compress(_table(sizes))
        return {"type": "variable", **whole, "transformedChunks": _base64(table)}
    full = chunk + (28 if encrypted else 0)
    return {"type": "fixed", **whole, "transformedChunkSize": full, "finalTransformedChunkSize": sizes[-1]}


def _table(sizes: list[int]) -> bytes:
    """The number of sizes, and all sizes except the last as differences to the smallest, in the fewest bytes."""
    *others, last = sizes
    table = len(sizes).to_bytes(4, "big")
    if others:
        smallest = min(others)
        width = max(1, (max(others) - smallest).bit_length() + 7 >> 3)
        table += smallest.to_bytes(4, "big") + bytes([width])
        table += b"".join((size - smallest).to_bytes(width, "big") for size in others)
    return table + last.to_bytes(4, "big")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
