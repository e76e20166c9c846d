"""Segments that brokers have moved to a bucket, as Aiven's plugin lays them out, and which of them are the log.

    PREFIX TOPIC-TOPICID/PARTITION/OFFSET-SEGMENTID.log, .indexes, .rsm-manifest
    TOPIC-PARTITION-TOPICID/OFFSET-SEGMENTID.log, .index, …       Kafka's own LocalTieredStorage, plain copies without a manifest

The union of what lies there is not the log: failed copies leave objects behind, a new leader copies offsets again, an unclean
election leaves another lineage, a deletion may have removed a part. Where each offset has one name, and the names were written in
the order of the offsets, they are believed, until a manifest says otherwise when its segment is read; else all manifests decide:

1. A segment counts whose manifest parses and whose `.log` is as long as its chunks.
2. The lineage is the leader epochs that the segment of the highest epoch has: an epoch reaches to where the next begins.
3. Of a segment those offsets are true whose epoch reaches over them; of several that have an offset, one gives it.

Epochs and states of a broker's directory, where they are at hand, are better: see `disk`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Final, NamedTuple

import numpy as np

from sparkwire.core.sources.storage import File, FileCut, OpenFile, listed
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.files.naming import Disk, Lineage, Remote, Segment, partition_of
from sparkwire.kafka.files.seek import PAGE, Seeker
from sparkwire.kafka.files.tier import index_of, small_file
from sparkwire.kafka.leader_epochs import entries_of
from sparkwire.kafka.tiered.chunks import ChunkLayer
from sparkwire.kafka.tiered.encryption_keys import Keys
from sparkwire.kafka.tiered.manifest import EPOCHS, Chunks, Manifest, NotWhole, parsed

MANIFEST, LOG = ".rsm-manifest", ".log"
_STEM: Final = re.compile(r"^(\d{20})-([\w-]{22})$")
_PLAIN: Final = re.compile(r"-(\d+)-([\w-]{22})$")
_FOLDER: Final = re.compile(r"^(.*)-([\w-]{22})$")
_REQUESTS: Final = 16  # at the same time
_REMEMBERED: Final = 10_000  # manifests: a stream looks at all of them with each of its batches


class Undecided(Exception):
    """A manifest says something else than the names."""


class Copy(NamedTuple):
    """The objects of a segment."""

    log: File
    manifest: File | None
    """None of a plain copy"""
    indexes: File | None
    base: int
    id: str

    @property
    def folder(self) -> tuple[str, str]:
        return self.log.root, self.log.folder


class LogPiece(NamedTuple):
    """A segment that has a part of the log, up to before an offset."""

    copy: Copy
    manifest: Manifest
    end: int


# -- names


def in_bucket(files: Iterable[File]) -> list[Copy]:
    """The segments among the files of one bucket whose manifest and bytes are there; by partition, in the order of offsets."""
    found: list[Copy] = []
    stem, log, indexes = "", None, None
    # A folder's files follow each other, in it a segment's objects, of these the manifest last.
    for file in sorted(files, key=lambda file: file.path):
        its, _, suffix = file.path.rpartition(".")
        if its != stem:
            stem, log, indexes = its, None, None
        if suffix == "indexes":
            indexes = file
        elif suffix == "log":
            log = file
            name = _STEM.match(stem.rpartition("/")[2])
            if name and _PLAIN.search(file.folder):
                found.append(Copy(file, None, None, int(name[1]), name[2]))
        elif suffix == "rsm-manifest" and log is not None and (name := _STEM.match(stem.rpartition("/")[2])):
            found.append(Copy(log, file, indexes, int(name[1]), name[2]))
    return found


def is_bucket(files: Iterable[File]) -> bool:
    """Whether files are those of a bucket."""
    return any(file.path.endswith(MANIFEST) or _is_plain_copy(file) for file in files)


def _is_plain_copy(file: File) -> bool:
    named = file.path.endswith(LOG) and _STEM.match(file.basename[: -len(LOG)])
    return bool(named and _PLAIN.search(file.folder))


def is_decided(copies: Sequence[Copy]) -> bool:
    """Whether the names of a partition tell the log: each offset once, written one after the other, the last one last."""
    times = [(copy.manifest or copy.log).modified or 0.0 for copy in copies]
    bases = [copy.base for copy in copies]
    return all(a < b for a, b in pairwise(bases)) and times == sorted(times) and times[-2:-1] != times[-1:]


def topic_id_of(copy: Copy) -> tuple[str, int] | None:
    """The topic's id and the partition that an object's folder names."""
    plain = _PLAIN.search(copy.log.folder)
    if plain:
        return plain[2], int(plain[1])
    above, _, partition = copy.log.folder.rpartition("/")
    name = _FOLDER.match(above.rpartition("/")[2])
    return (name[2], int(partition)) if name and partition.isdecimal() else None


def bucket_segments(copies: Iterable[Copy], keys: Keys, by_names: bool) -> list[Segment]:
    """The log of each partition, as the bucket alone tells."""
    found = []
    for _, partition in groupby(copies, key=lambda copy: copy.folder):
        found += segments_of(list(partition), keys, by_names)
    return found


def segments_of(copies: Sequence[Copy], keys: Keys, by_names: bool, disk: Disk | None = None) -> list[Segment]:
    """The segments that are the log of one partition; ``by_names``: of some of them only the names may be known yet."""
    if disk is not None:
        copies = [copy for copy in copies if copy.id not in disk.unfinished and copy.base < disk.local_start]
    if not copies:
        return []
    newest = loaded(copies[-1]) if by_names and is_decided(copies) else None
    if newest is None or not is_whole(copies[-1], newest):
        return true_log(copies, keys, disk)
    lineage = (disk.lineage if disk else ()) or lineage_of(copies[-1], newest, keys)
    if not lineage:
        return true_log(copies, keys, disk)
    begins = max(lineage[0][1], disk.log_start if disk else 0)
    named = [
        Segment(
            copy.log,
            newest.topic,
            newest.partition,
            copy.base,
            Remote(copy.manifest, copy.indexes, keys, lineage, begins, disk),
        )
        for copy, following in pairwise(copies)
        if following.base > begins
    ]
    try:
        return [
            *named,
            decided(copies[-1], newest, Remote(copies[-1].manifest, copies[-1].indexes, keys, lineage, begins, disk)),
        ]
    except Undecided:
        return true_log(copies, keys, disk)


# -- manifests


def loaded(copy: Copy) -> Manifest | None:
    """A segment's manifest; None where its upload was cut off, or it is gone."""
    return _of_plain_copy(copy) if copy.manifest is None else _loaded(copy.manifest)


@lru_cache(_REMEMBERED)
def _loaded(object: File) -> Manifest | None:
    try:
        with OpenFile(object) as source:
            raw = source.view(0, source.size).tobytes()
        return parsed(raw, object.name)
    except (NotWhole, FileNotFoundError, FileCut):
        return None


def _of_plain_copy(copy: Copy) -> Manifest | None:
    """What the files of a plain copy tell of it; None where it has no batch."""
    topic, partition = partition_of(copy.log.folder.rpartition("/")[2], with_ids=True)
    segment = Segment(copy.log, topic, partition, copy.base)
    with OpenFile(copy.log) as source:
        last = Seeker(Log(source, chunk=PAGE), segment).last()
    if last is None:
        return None
    lineage = _plain_lineage(copy) or ((0, copy.base),)
    ends = [*(start for _, start in lineage[1:]), last.last + 1]
    epochs = tuple(
        (epoch, max(start, copy.base))
        for (epoch, start), end in zip(lineage, ends, strict=True)
        if end > copy.base and start <= last.last
    )
    chunks = Chunks(max(1, copy.log.size), copy.log.size, np.array([copy.log.size]), False)
    found = topic_id_of(copy)
    return Manifest(
        topic or "", found[0] if found else "", partition or 0, copy.base, last.last, last.max_timestamp, epochs, chunks,
        {}, None, True,
    )  # fmt: skip


def forget_manifests() -> None:
    """As a new process has them."""
    _loaded.cache_clear()


def is_whole(copy: Copy, manifest: Manifest) -> bool:
    """Whether the `.log` has all that the manifest names."""
    return copy.log.size >= manifest.chunks.stored


def lineage_of(copy: Copy, manifest: Manifest, keys: Keys) -> Lineage:
    """The leader epochs of the log up to a segment's end; none where no index tells."""
    if manifest.is_plain_copy:
        return _plain_lineage(copy)
    return epochs_of(index_of(copy.indexes, manifest, keys, EPOCHS))


def lineage_of_all(whole: Sequence[tuple[Copy, Manifest]], keys: Keys) -> Lineage:
    """The leader epochs of the log: those that the segment of the highest epoch knows; without its index, what all tell."""
    highest = max(whole, key=lambda one: (one[1].epochs[-1][0] if one[1].epochs else -1, one[1].last))
    known = lineage_of(*highest, keys)
    if known:
        return known
    begins: dict[int, int] = {}
    for epoch, first in sorted(entry for _, manifest in whole for entry in manifest.epochs):
        begins.setdefault(epoch, first)
    found: list[tuple[int, int]] = []
    for epoch, first in sorted(begins.items(), reverse=True):
        if not found or first < found[-1][1]:
            found.append((epoch, first))
    return tuple(reversed(found))


def _plain_lineage(copy: Copy) -> Lineage:
    stem = copy.log.basename.removesuffix(LOG)
    return epochs_of(small_file(copy.log.beside(f"{stem}.leader_epoch_checkpoint")))


def epochs_of(checkpoint: bytes) -> Lineage:
    """The leader epochs of a checkpoint; none where it is corrupt."""
    return tuple(sorted(entries_of(checkpoint) or ())) if checkpoint else ()


def reach(manifest: Manifest, lineage: Lineage) -> int:
    """The offset up to before which a segment is the log; its first one where it is not."""
    begin = dict(lineage)
    ends = {epoch: following for (epoch, _), (_, following) in pairwise(lineage)}
    starts = [first for _, first in manifest.epochs]
    end = manifest.first
    for (epoch, first), last in zip(manifest.epochs, [*(s - 1 for s in starts[1:]), manifest.last], strict=True):
        if epoch not in begin or first >= ends.get(epoch, first + 1):
            break
        end = min(last + 1, ends.get(epoch, last + 1))
        if end <= last:
            break
    return end


def true_log(copies: Sequence[Copy], keys: Keys, disk: Disk | None = None) -> list[Segment]:
    """The log of one partition as all its manifests tell; ValueError where a manifest is of a version that is not known."""
    with ThreadPoolExecutor(_REQUESTS) as pool:
        manifests = list(pool.map(loaded, copies))
    whole = [
        (copy, manifest)
        for copy, manifest in zip(copies, manifests, strict=True)
        if manifest is not None and is_whole(copy, manifest)
    ]
    if not whole:
        return []
    lineage: Lineage = disk.lineage if disk else ()
    lineage = lineage or lineage_of_all(whole, keys)
    begins = max(lineage[0][1] if lineage else 0, disk.log_start if disk else 0)
    pieces: list[LogPiece] = []
    covered = begins
    for copy, manifest in sorted(whole, key=lambda one: (one[1].first, -reach(one[1], lineage))):
        end = reach(manifest, lineage)
        if end > max(covered, manifest.first):
            pieces.append(LogPiece(copy, manifest, end))
            covered = end
    followed = [*(piece.manifest.first for piece in pieces[1:]), covered]
    return [
        segment_of(
            copy, manifest, Remote(copy.manifest, copy.indexes, keys, lineage, begins, disk), min(end, following)
        )
        for (copy, manifest, end), following in zip(pieces, followed, strict=True)
    ]


def decided(copy: Copy, manifest: Manifest, remote: Remote) -> Segment:
    """A segment of the log that its manifest agrees with; Undecided where it is not what its name and the lineage say."""
    whole = manifest.first == copy.base and is_whole(copy, manifest)
    if not whole or reach(manifest, remote.lineage) != manifest.last + 1:
        raise Undecided
    return segment_of(copy, manifest, remote, manifest.last + 1)


def segment_of(copy: Copy, manifest: Manifest, remote: Remote, end: int) -> Segment:
    """A segment whose bytes can be read, up to before the offset ``end``."""
    if remote.disk is not None:
        end = min(end, remote.disk.local_start)
    # Also of chunks that are nothing else than the segment's bytes: a look-up then is one request, not one for each page.
    layer = None if manifest.is_plain_copy else ChunkLayer(manifest.chunks, manifest.encryption, remote.keys)
    file = copy.log._replace(size=manifest.chunks.size, layer=layer)
    remote = remote._replace(manifest=manifest, end=end if end <= manifest.last else None)
    return Segment(file, manifest.topic, manifest.partition, manifest.first, remote)


def at_hand(segment: Segment, following: int | None) -> Segment:
    """The segment with its manifest; Undecided where the manifest says something else than the names."""
    remote = segment.remote
    if remote is None or remote.manifest is not None:
        return segment
    copy = Copy(segment.file, remote.object, remote.indexes, segment.base_offset or 0, "")
    manifest = loaded(copy)
    if manifest is None or (following is not None and manifest.last + 1 != following):
        raise Undecided
    return decided(copy, manifest, remote)


def anew(log: Sequence[Segment]) -> list[Segment]:
    """The log of a partition, some of whose segments are in a bucket, as all manifests there tell."""
    its, local = log[0].remote, [segment for segment in log if segment.remote is None]
    if its is None:
        return list(log)
    file = log[0].file
    files, _ = listed(f"{file.root}{file.folder}{file.query}")
    return true_log(in_bucket(files), its.keys, its.disk) + local
