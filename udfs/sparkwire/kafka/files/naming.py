"""Read topic, partition and base offset from the names in a broker's directories, and find the segments.

    orders-0/00000000000000004711.log      a segment of partition 0 of the topic orders; its first offset is 4711 or higher
    …/00000000000000004711-<id>.log        the same, with a name of tiered storage
    orders-0-<topic id>/…                  the same in Kafka's own LocalTieredStorage
    …/00000000000000004711.log.gz          a compressed copy

    …/00000000000000004711-0000000003.checkpoint
                                           a snapshot of `__cluster_metadata`, whose offsets begin at 0; read if a path
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
"""leader epochs with their start offsets, in ascending order"""


class Disk(NamedTuple):
    """The facts about one partition in a broker's directory."""

    log: tuple[str, str]
    """`Segment.log` of the segments on disk"""
    lineage: Lineage
    """empty if unknown"""
    log_start: int | None
    """None if unknown"""
    local_start: int
    """first offset of the segments on disk"""
    unfinished: frozenset[str]
    """ids of segments whose upload is not finished, or whose deletion has begun"""


class Remote(NamedTuple):
    """The additional facts about a segment in a bucket."""

    object: File | None
    """the manifest's object; None for a plain copy"""
    indexes: File | None
    keys: Keys
    lineage: Lineage
    """lineage of the log"""
    begins: int
    """the log's first offset"""
    disk: Disk | None = None
    """the facts in the broker's directory of this partition, if known"""
    manifest: Manifest | None = None
    """None until first use"""
    end: int | None = None
    """the offset from which on another segment is the log, if that is before the segment's own end"""
    lost: str = ""
    """why the offsets cannot be read; only of a segment in place of offsets that no segment has"""


class Segment(NamedTuple):
    """A file of log bytes, with the facts in its name."""

    file: File
    topic: str | None
    partition: int | None
    base_offset: int | None
    """offset in the name; None if it has none"""
    remote: Remote | None = None
    """only of a segment in a bucket"""

    @property
    def log(self) -> tuple[str, str]:
        """Identifies the log of the segment. A file without an offset in its name is a separate log."""
        if self.remote is not None and self.remote.disk is not None:
            return self.remote.disk.log
        return self.file.root, self.file.folder if self.base_offset is not None else self.file.path


def segments(files: list[File], single: bool, below: str) -> list[Segment]:
    """The segments among ``files``, `in_order`.

    ``single``: whether the path is this one file. ``below``: the path's directory, which may have any name.
    """
    if single:
        return [_segment(files[0])]
    by_name = [_segment(file) for file in files if _SEGMENT.match(file.basename) and not _left_out(file, below)]
    if not by_name:
        return in_order(_segment(file) for file in files if _SNAPSHOT.match(file.basename))
    plain = {segment.file.path for segment in by_name if not segment.file.compressed}
    once = [s for s in by_name if not (s.file.compressed and s.file.path.removesuffix(GZIP) in plain)]
    # If a directory has several copies of a segment, the longest counts.
    longest = {(s.log, s.base_offset): s for s in sorted(once, key=lambda s: (s.file.size, s.file.path))}
    return in_order(longest.values())


def in_order(segments: Iterable[Segment]) -> list[Segment]:
    """Segments in the order of partitions and offsets."""
    return sorted(segments, key=lambda segment: (segment.log, segment.base_offset or 0, segment.file.path))


def _left_out(file: File, below: str) -> bool:
    inside = file.folder.removeprefix(below)
    return any(_LEAVING.search(folder) for folder in inside.split("/"))


def _segment(file: File) -> Segment:
    topic, partition = partition_of(file.folder.rsplit("/", 1)[-1], "-" in file.basename)
    return Segment(file, topic, partition, base_offset_of(file.basename))


def base_offset_of(file: str) -> int | None:
    """The offset in a segment's name; None if it has none."""
    match = _SEGMENT.match(file)
    return int(match.group(1)) if match else None


def partition_of(folder: str, with_ids: bool = False) -> tuple[str | None, int | None]:
    """Topic and partition in a directory's name, else None. ``with_ids``: whether its segments have ids in their names."""
    match = (_WITH_ID.match(folder) if with_ids else None) or _PARTITION.match(folder)
    if match is None or int(match.group(2)) > _INT32_MAX:
        return None, None
    return match.group(1), int(match.group(2))


def is_partition(folder: str) -> bool:
    """Whether a directory has the name of a partition."""
    return partition_of(folder) != (None, None)
