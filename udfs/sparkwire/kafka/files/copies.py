"""Find the objects of each segment in a bucket by their names.

PREFIX TOPIC-TOPICID/PARTITION/OFFSET-SEGMENTID.log, .indexes, .rsm-manifest
TOPIC-PARTITION-TOPICID/OFFSET-SEGMENTID.log, .index, …       Kafka's own LocalTieredStorage, plain copies without a manifest
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from sparkwire.core.sources.storage import File

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
