"""What the names in a broker's directories mean: topic, partition, base offset, and which files are segments.

    orders-0/00000000000000004711.log      a segment of partition 0 of the topic orders; its first offset is 4711 or higher
    …/00000000000000004711-<id>.log        the same as tiered storage names it
    orders-0-<topic id>/…                  the same in Kafka's own LocalTieredStorage
    …/00000000000000004711.log.gz          the same, compressed by whoever made the copy

    …/00000000000000004711-0000000003.checkpoint
                                           a snapshot of `__cluster_metadata`, whose offsets begin at 0: read where a path
                                           names snapshots and no segment

The reader skips, in any directory:

- files of any other name (indexes, snapshots, checkpoints, a server's own `server.log`);
- segments that are being deleted or created (`.log.deleted`, `.log.cleaned`, `.log.swap`);
- directories of partitions that are being deleted or moved, or that strayed (`orders-0.<id>-delete`, `-future`, `-stray`).

It reads a file or directory that the path itself names, whatever its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from sparkwire.core.sources.storage import GZIP, File
from sparkwire.kafka.tiered.encryption_keys import Keys
from sparkwire.kafka.tiered.manifest import Manifest

_SEGMENT = re.compile(r"^(\d{20})(?:-[\w-]+)?\.log(?:\.gz)?$")
_SNAPSHOT = re.compile(r"^\d{20}-\d{10}\.checkpoint$|^bootstrap\.checkpoint$")
_WITH_ID = re.compile(r"^(.+?)-(\d+)-[\w-]{22}$")
_PARTITION = re.compile(r"^(.+?)-(\d+)(?:\.[0-9a-f]+-(?:delete|future|stray))?$")
_LEAVING = re.compile(r"\.[0-9a-f]+-(?:delete|future|stray)$")
_INT32_MAX = 2**31 - 1


Lineage = tuple[tuple[int, int], ...]
"""leader epochs and where each begins, in ascending order"""


class Disk(NamedTuple):
    """What a broker's directory says of one of its partitions."""

    log: tuple[str, str]
    """`Segment.log` of what is on disk"""
    lineage: Lineage
    """empty where it says nothing"""
    log_start: int | None
    """None where it says nothing"""
    local_start: int
    """the offset with which what is on disk begins"""
    unfinished: frozenset[str]
    """ids of segments whose copying is not finished, or whose deletion has begun"""


class Remote(NamedTuple):
    """What makes a segment of one in a bucket."""

    object: File | None
    """its manifest's; None of a plain copy"""
    indexes: File | None
    keys: Keys
    lineage: Lineage
    """of the log"""
    begins: int
    """the log's first offset"""
    disk: Disk | None = None
    """what the partition's directory says, where that belongs to it"""
    manifest: Manifest | None = None
    """None until first use"""
    end: int | None = None
    """the offset before which another segment continues with the log, if that is before the segment's own end"""
    lost: str = ""
    """why it cannot be read, of what stands for offsets that no segment gives"""


class Segment(NamedTuple):
    """A file of log bytes and what its name says."""

    file: File
    topic: str | None
    partition: int | None
    base_offset: int | None
    """of the name; None where the name has none"""
    remote: Remote | None = None
    """of one in a bucket"""

    @property
    def log(self) -> tuple[str, str]:
        """What segments of the same partition share; what has no offset in its name is a separate log."""
        if self.remote is not None and self.remote.disk is not None:
            return self.remote.disk.log
        return self.file.root, self.file.folder if self.base_offset is not None else self.file.path


def segments(files: list[File], single: bool, below: str) -> list[Segment]:
    """The segments among ``files``, `in_order`.

    ``single``: the path names this one file. ``below``: the directory that the path names, which may have any name.
    """
    if single:
        return [_segment(files[0])]
    by_name = [_segment(file) for file in files if _SEGMENT.match(file.basename) and not _left_out(file, below)]
    if not by_name:
        return in_order(_segment(file) for file in files if _SNAPSHOT.match(file.basename))
    plain = {segment.file.path for segment in by_name if not segment.file.compressed}
    once = [s for s in by_name if not (s.file.compressed and s.file.path.removesuffix(GZIP) in plain)]
    # Of copies that a directory has under several names, the longest.
    longest = {(s.log, s.base_offset): s for s in sorted(once, key=lambda s: (s.file.size, s.file.path))}
    return in_order(longest.values())


def in_order(segments: Iterable[Segment]) -> list[Segment]:
    """By partition, each partition's by their offsets."""
    return sorted(segments, key=lambda segment: (segment.log, segment.base_offset or 0, segment.file.path))


def _left_out(file: File, below: str) -> bool:
    inside = file.folder.removeprefix(below)
    return any(_LEAVING.search(folder) for folder in inside.split("/"))


def _segment(file: File) -> Segment:
    topic, partition = partition_of(file.folder.rsplit("/", 1)[-1], "-" in file.basename)
    return Segment(file, topic, partition, base_offset_of(file.basename))


def base_offset_of(file: str) -> int | None:
    """The offset in a segment's name; None where it has none."""
    match = _SEGMENT.match(file)
    return int(match.group(1)) if match else None


def partition_of(folder: str, with_ids: bool = False) -> tuple[str | None, int | None]:
    """Topic and partition of a directory's name; None where it has none. ``with_ids``: its segments have ids in their names."""
    match = (_WITH_ID.match(folder) if with_ids else None) or _PARTITION.match(folder)
    if match is None or int(match.group(2)) > _INT32_MAX:
        return None, None
    return match.group(1), int(match.group(2))


def is_partition(folder: str) -> bool:
    """Whether a directory's name is that of a partition."""
    return partition_of(folder) != (None, None)
