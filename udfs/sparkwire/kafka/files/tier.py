"""The indexes of a segment in a bucket: parts of one object, or files beside a plain copy."""

from __future__ import annotations

from typing import Final

from sparkwire.core.sources.storage import File, FileCut, OpenFile
from sparkwire.kafka.files.naming import Segment
from sparkwire.kafka.tiered.encryption_keys import Keys
from sparkwire.kafka.tiered.manifest import OFFSETS, PRODUCERS, TIMES, TRANSACTIONS, Manifest

LARGEST_INDEX: Final = 64 << 20
"""an index larger than this has no effect [bytes]"""
_PARTS: Final = {".index": OFFSETS, ".timeindex": TIMES, ".snapshot": PRODUCERS, ".txnindex": TRANSACTIONS}


def sibling_of(segment: Segment, suffix: str) -> bytes:
    """The content of the index that has this suffix on a broker's disk. A snapshot is that of the segment's end."""
    remote = segment.remote
    if remote is None or remote.manifest is None:
        return b""
    if remote.manifest.is_plain_copy:
        return small_file(segment.file.sibling(segment.file.basename.removesuffix(".log") + suffix))
    return index_of(remote.indexes, remote.manifest, remote.keys, _PARTS[suffix])


def index_of(indexes: File | None, manifest: Manifest, keys: Keys, name: str) -> bytes:
    """One of a segment's indexes; empty if it does not exist or cannot be read."""
    span = manifest.indexes.get(name)
    if indexes is None or span is None or not span.size:
        return b""
    try:
        with OpenFile(indexes) as source:
            raw = source.read(span.position, span.size)
    except (OSError, FileCut):  # without an index there are the headers
        return b""
    if manifest.encryption is None:
        return raw
    return keys.decrypt(raw, *manifest.encryption) or b""


def small_file(file: File) -> bytes:
    """A file's content; empty if it does not exist, cannot be read, or is too large."""
    try:
        with OpenFile(file) as source:
            return source.view(0, source.size).tobytes() if source.size <= LARGEST_INDEX else b""
    except (OSError, FileCut):  # without an index there are the headers
        return b""
