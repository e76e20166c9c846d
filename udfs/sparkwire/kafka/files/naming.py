"""Find segments by the names of files: in a broker's directories, and in a bucket of tiered storage.

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

In a bucket, each segment has several objects:

    PREFIX TOPIC-TOPICID/PARTITION/OFFSET-SEGMENTID.log, .indexes, .rsm-manifest
    TOPIC-PARTITION-TOPICID/OFFSET-SEGMENTID.log, .index, …       Kafka's own LocalTieredStorage, plain copies without a manifest
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final, NamedTuple

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


# -- objects in a bucket

MANIFEST, LOG, INDEXES = ".rsm-manifest", ".log", ".indexes"
_STEM: Final = re.compile(r"^(\d{20})-([\w-]{22})$")
_PLAIN: Final = re.compile(r"-(\d+)-([\w-]{22})$")
_FOLDER: Final = re.compile(r"^(.*)-([\w-]{22})$")


class Copy(NamedTuple):
    """The existing objects of a segment. At least the log or the manifest exists."""

    log: File | None
    manifest: File | None
    """None for a plain copy"""
    indexes: File | None
    base: int
    id: str

    @property
    def any(self) -> File:
        """An object of the segment: the log if it exists, else the manifest."""
        file = self.log or self.manifest
        assert file is not None
        return file

    @property
    def folder(self) -> tuple[str, str]:
        return self.any.root, self.any.folder

    @property
    def is_plain(self) -> bool:
        return self.manifest is None and bool(_PLAIN.search(self.any.folder))

    @property
    def is_complete(self) -> bool:
        """Whether all objects exist that are necessary to read the segment."""
        return self.log is not None and self.log.size > 0 and (self.manifest is not None or self.is_plain)

    @property
    def is_finished(self) -> bool:
        """Whether the upload reached its last step, the manifest, or the step before it."""
        return self.manifest is not None or self.indexes is not None or self.is_plain


def in_bucket(files: Iterable[File]) -> list[Copy]:
    """The segments among the files of one bucket, by partition and offset."""
    ordered = sorted(files, key=lambda file: (file.root, file.path))
    return [copy for stem, of_one in groupby(ordered, key=_stem) for copy in _copy(stem, of_one)]


def _stem(file: File) -> str:
    return file.path.rpartition(".")[0]


def _copy(stem: str, files: Iterable[File]) -> Iterator[Copy]:
    name = _STEM.match(stem.rpartition("/")[2])
    if name is not None:
        objects = {file.path[len(stem) :]: file for file in files}
        if LOG in objects or MANIFEST in objects:
            yield Copy(objects.get(LOG), objects.get(MANIFEST), objects.get(INDEXES), int(name[1]), name[2])


def is_bucket(files: Iterable[File]) -> bool:
    """Whether files are from a bucket of tiered storage."""
    return any(file.path.endswith(MANIFEST) or _is_plain_copy(file) for file in files)


def _is_plain_copy(file: File) -> bool:
    named = file.path.endswith(LOG) and _STEM.match(file.basename[: -len(LOG)])
    return bool(named and _PLAIN.search(file.folder))


def is_decided(copies: Sequence[Copy]) -> bool:
    """Whether names determine a partition's log: each offset exists once, and the offsets have the order of their uploads."""
    if not all(copy.is_complete for copy in copies):
        return False
    times = [(copy.manifest or copy.any).modified or 0.0 for copy in copies]
    bases = [copy.base for copy in copies]
    return all(a < b for a, b in pairwise(bases)) and times == sorted(times) and times[-2:-1] != times[-1:]


def without_leftovers(copies: Sequence[Copy]) -> list[Copy]:
    """The copies of a partition without failed copies, which have another id and the same offset."""
    bases = {copy.base for copy in copies if copy.is_complete}
    return [copy for copy in copies if copy.is_complete or copy.base not in bases]


def topic_id_of(copy: Copy) -> tuple[str, int] | None:
    """The topic's id and the partition, from the name of an object's folder."""
    plain = _PLAIN.search(copy.any.folder)
    if plain:
        return plain[2], int(plain[1])
    above, _, partition = copy.any.folder.rpartition("/")
    name = _FOLDER.match(above.rpartition("/")[2])
    return (name[2], int(partition)) if name and partition.isdecimal() else None


def topic_of(copy: Copy) -> str | None:
    """The topic, from the name of an object's folder, including the plugin's prefix; None if it names no topic."""
    folder = copy.any.folder
    plain = _PLAIN.search(folder)
    above = folder[: plain.start()] if plain else folder.rpartition("/")[0]
    name = None if plain else _FOLDER.match(above.rpartition("/")[2])
    return above.rpartition("/")[2] if plain else name and name[1]
