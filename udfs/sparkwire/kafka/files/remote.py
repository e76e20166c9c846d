"""Segments that brokers have moved to a bucket with Aiven's plugin, and the choice of the segments that form the log.

The log is not the union of all objects. Failed copies leave objects behind, a new leader copies offsets again, an unclean
election leaves another lineage, and a deletion may have removed a part. The names determine the log if each offset has one name,
and the upload times have the order of the offsets. If not, or if a manifest contradicts the names, all manifests determine the
log:

1. A segment counts if its manifest agrees with the names, with the neighbouring segments, or with the segment's bytes.
2. The lineage is the list of leader epochs in the segment of the highest epoch. An epoch ends where the next epoch begins.
3. A segment's offsets count if they are in the range of their epoch. If several segments have an offset, one of them is chosen.
   If no offset of a segment counts, its batches say whether its manifest has the right epochs.
4. Offsets within the log that no segment has are a hole, which is read as a corrupt segment.

Epochs and states in a broker's directory are more reliable, and take precedence: see `disk`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, pairwise
from typing import Final, NamedTuple

import numpy as np

from sparkwire.base.text_cache import text_cache
from sparkwire.core.sources.storage import File, FileCut, OpenFile, PathParts, listed_at
from sparkwire.kafka.files.entries import HEADERS, header_at, read_entries
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.files.naming import (
    LOG,
    Copy,
    Disk,
    Lineage,
    Remote,
    Segment,
    in_bucket,
    is_decided,
    partition_of,
    topic_id_of,
    topic_of,
    without_leftovers,
)
from sparkwire.kafka.files.seek import PAGE, Seeker, index_of, small_file
from sparkwire.kafka.leader_epochs import entries_of
from sparkwire.kafka.tiered.chunks import ChunkLayer, HoleLayer
from sparkwire.kafka.tiered.encryption_keys import Keys
from sparkwire.kafka.tiered.manifest import EPOCHS, InvalidManifestError, Manifest, parsed, plain_chunks

_REQUESTS: Final = 16  # number of parallel requests
_REMEMBERED: Final = 10_000  # number of cached manifests: each batch of a stream needs all of them


class ManifestMismatchError(Exception):
    """A manifest contradicts the names."""


class LogPiece(NamedTuple):
    """A segment with a part of the log, up to before the offset ``end``."""

    copy: Copy
    manifest: Manifest
    end: int


class Unread(NamedTuple):
    """A segment that cannot be read at all, or not from the offset ``first`` on, or that has no place in the log."""

    copy: Copy
    first: int
    why: str


class SharedFacts(NamedTuple):
    """The facts that all segments of a partition's log share."""

    keys: Keys
    lineage: Lineage
    begins: int
    disk: Disk | None
    topic: str | None
    partition: int | None
    folder: File
    """an object in the partition's folder"""


# -- choice of segments


def bucket_segments(copies: Iterable[Copy], keys: Keys, by_names: bool) -> list[Segment]:
    """The log of each partition, from the bucket without a broker's directory."""
    segments = []
    for _, partition in groupby(copies, key=lambda copy: copy.folder):
        segments += segments_of(list(partition), keys, by_names)
    return segments


def segments_of(copies: Sequence[Copy], keys: Keys, by_names: bool, disk: Disk | None = None) -> list[Segment]:
    """The segments of one partition's log. With ``by_names``, segments need not have their manifest yet."""
    if disk is not None:
        copies = [copy for copy in copies if copy.id not in disk.unfinished and copy.base < disk.local_start]
    copies = without_leftovers(copies)
    if not copies:
        return []
    if by_names and is_decided(copies):
        named = _by_names(copies, keys, disk)
        if named is not None:
            return named
    return log_of_manifests(copies, keys, disk)


def _by_names(copies: Sequence[Copy], keys: Keys, disk: Disk | None) -> list[Segment] | None:
    """The log according to the names; None if the newest segment or the broker's directory contradicts them."""
    newest = loaded(copies[-1])
    if isinstance(newest, str) or not newest.chunks.is_whole:
        return None
    lineage = (disk.lineage if disk else ()) or lineage_of(copies[-1], newest, keys)
    if not lineage:
        return None
    begins = max(lineage[0][1], disk.log_start or 0 if disk else 0)
    if disk is not None and (newest.last + 1 < disk.local_start or copies[0].base > (disk.log_start or begins)):
        return None
    remotes = [Remote(copy.manifest, copy.indexes, keys, lineage, begins, disk) for copy in copies]
    try:
        last = decided(copies[-1], newest, remotes[-1])
    except ManifestMismatchError:
        return None
    named = [
        Segment(copy.any, newest.topic, newest.partition, copy.base, remote)
        for copy, following, remote in zip(copies[:-1], copies[1:], remotes[:-1], strict=True)
        if following.base > begins
    ]
    return [*named, last]


# -- manifests


def loaded(copy: Copy) -> Manifest | str:
    """A segment's manifest, or why it is invalid."""
    if copy.is_plain:
        return _of_plain_copy(copy)
    if copy.log is None:
        return f"its {LOG} is not there"
    if copy.manifest is None:
        return "its manifest is not there: its upload was not finished, or it is lost"
    manifest = _loaded(copy.manifest, copy.log.size)
    if isinstance(manifest, str):
        return manifest
    place = topic_id_of(copy)
    if manifest.id != copy.id or (place is not None and place != (manifest.topic_id, manifest.partition)):
        return "its manifest is that of another segment"
    if not manifest.chunks.size:
        return f"its {LOG} is empty"
    return manifest._replace(first=copy.base)


@text_cache(_REMEMBERED, 64 << 20, lambda arguments: arguments[0].size)
def _loaded(object: File, stored: int) -> Manifest | str:
    try:
        with OpenFile(object) as source:
            raw = source.view(0, source.size).tobytes()
        return parsed(raw, object.name, stored)
    except (InvalidManifestError, FileNotFoundError, FileCut) as error:
        return f"its manifest is invalid: {error}"


def _of_plain_copy(copy: Copy) -> Manifest | str:
    """A manifest from the files of a plain copy, or why it is invalid."""
    log = copy.any
    topic, partition = partition_of(log.folder.rpartition("/")[2], with_ids=True)
    segment = Segment(log, topic, partition, copy.base)
    with OpenFile(log) as source:
        last = Seeker(Log(source, chunk=PAGE), segment).last()
        if last is None:
            return "it has no record batch"
        lineage = _plain_lineage(copy, last.last) or _epochs_in(Log(source)) or ((0, copy.base),)
    ends = [*(start for _, start in lineage[1:]), last.last + 1]
    epochs = tuple(
        (epoch, max(start, copy.base))
        for (epoch, start), end in zip(lineage, ends, strict=True)
        if end > copy.base and start <= last.last
    )
    topic_id = topic_id_of(copy)
    return Manifest(
        topic or "", topic_id[0] if topic_id else "", partition or 0, copy.id, copy.base, last.last, last.max_timestamp, epochs,
        plain_chunks(log.size), {}, None, True,
    )  # fmt: skip


def forget_manifests() -> None:
    """Empty the cache of manifests."""
    _loaded.clear()


def lineage_of(copy: Copy, manifest: Manifest, keys: Keys) -> Lineage:
    """The leader epochs of the log up to a segment's end; empty without an index of epochs."""
    if manifest.is_plain_copy:
        return _plain_lineage(copy, manifest.last)
    return epochs_of(index_of(copy.indexes, manifest, keys, EPOCHS))


def lineage_of_all(readable: Sequence[tuple[Copy, Manifest]], keys: Keys) -> Lineage:
    """The log's leader epochs: those of the segment with the highest epoch, or without its index, those of all segments."""
    highest = sorted(
        readable, key=lambda pair: (pair[1].epochs[-1][0] if pair[1].epochs else -1, pair[1].last), reverse=True
    )
    for copy, manifest in highest:
        lineage = lineage_of(copy, manifest, keys)
        if (
            lineage and reach(manifest, lineage) == manifest.last + 1
        ):  # else the index belongs to another segment, or the manifest is wrong
            return lineage
    begins: dict[int, int] = {}
    for epoch, first in sorted(entry for _, manifest in readable for entry in manifest.epochs):
        begins.setdefault(epoch, first)
    joined: list[tuple[int, int]] = []
    for epoch, first in sorted(begins.items(), reverse=True):
        if not joined or first < joined[-1][1]:
            joined.append((epoch, first))
    return tuple(reversed(joined))


def _plain_lineage(copy: Copy, last: int) -> Lineage:
    """The leader epochs of a plain copy; empty if they begin after its ``last`` offset, so that they are of another segment."""
    stem = copy.any.basename.removesuffix(LOG)
    lineage = epochs_of(small_file(copy.any.sibling(f"{stem}.leader_epoch_checkpoint")))
    return lineage if lineage and lineage[0][1] <= last else ()


def _epochs_in(log: Log) -> Lineage:
    """The leader epochs of a segment's batches, each with its first offset; empty for messages of magic 0 and 1."""
    begins: dict[int, int] = {}
    for entries in read_entries(log, 0, log.source.size, HEADERS):
        epochs = entries.headers.field("partition_leader_epoch")
        found, places = np.unique(epochs.values[epochs.valid], return_index=True)
        for epoch, offset in zip(found.tolist(), entries.first[epochs.valid][places].tolist(), strict=True):
            begins.setdefault(epoch, offset)
    return tuple(sorted(begins.items()))


def epochs_of(checkpoint: bytes) -> Lineage:
    """The leader epochs of a checkpoint file; empty if it is corrupt."""
    return tuple(sorted(entries_of(checkpoint) or ())) if checkpoint else ()


def reach(manifest: Manifest, lineage: Lineage) -> int:
    """The offset before which a segment is part of the log; its first offset if it is not part of it."""
    begin = dict(lineage)
    ends = {epoch: following for (epoch, _), (_, following) in pairwise(lineage)}
    lasts = [*(first - 1 for _, first in manifest.epochs), manifest.last][1:]
    end = manifest.first
    for (epoch, first), last in zip(manifest.epochs, lasts, strict=True):
        if epoch not in begin or first >= ends.get(epoch, first + 1):
            break
        end = min(last + 1, ends.get(epoch, last + 1))
        if end <= last:
            break
    return end


def log_of_manifests(copies: Sequence[Copy], keys: Keys, disk: Disk | None = None) -> list[Segment]:
    """The log of one partition according to all its manifests; ValueError for a manifest of an unknown version."""
    limit = disk.local_start if disk is not None else None
    bases = sorted({copy.base for copy in copies if copy.is_complete} | ({limit} if limit is not None else set()))
    following = dict(pairwise(bases))
    with ThreadPoolExecutor(_REQUESTS) as pool:
        manifests = list(pool.map(lambda copy: checked_manifest(copy, keys, following.get(copy.base)), copies))
    readable, unread = _readable_and_unread(copies, manifests)
    unread += [
        Unread(copy, manifest.last + 1, f"its {LOG} is shorter than its manifest says")
        for copy, manifest in readable
        if not manifest.chunks.is_whole
    ]
    of_disk: Lineage = disk.lineage if disk else ()
    lineage = of_disk or lineage_of_all(readable, keys)
    with_epochs = [_with_epochs(copy, manifest, lineage, keys) for copy, manifest in readable]
    readable, without_place = _readable_and_unread([copy for copy, _ in readable], with_epochs)
    unread += without_place
    lineage = of_disk or lineage_of_all(readable, keys)  # epochs of batches may be later ones
    begins = max(lineage[0][1] if lineage else 0, disk.log_start or 0 if disk else 0)
    about = readable[0][1] if readable else None
    place = topic_id_of(copies[0])
    log = SharedFacts(
        keys, lineage, begins, disk, about.topic if about else topic_of(copies[0]),
        about.partition if about else place and place[1], copies[0].any,
    )  # fmt: skip
    return list(_with_holes(log, _pieces(log, readable), unread))


def _readable_and_unread(
    copies: Sequence[Copy], manifests: Sequence[Manifest | str]
) -> tuple[list[tuple[Copy, Manifest]], list[Unread]]:
    """The segments with a manifest, and those with the reason why they have none."""
    pairs = list(zip(copies, manifests, strict=True))
    readable = [(copy, either) for copy, either in pairs if not isinstance(either, str)]
    return readable, [Unread(copy, copy.base, either) for copy, either in pairs if isinstance(either, str)]


def _pieces(log: SharedFacts, readable: Sequence[tuple[Copy, Manifest]]) -> list[LogPiece]:
    """The segments that form the log, each up to the start of the next."""

    def order(pair: tuple[Copy, Manifest]) -> tuple[int, bool, int]:
        manifest = pair[1]
        return manifest.first, not manifest.chunks.is_whole, -reach(manifest, log.lineage)

    pieces: list[LogPiece] = []
    covered = log.begins
    for copy, manifest in sorted(readable, key=order):
        end = reach(manifest, log.lineage)
        if end > max(covered, manifest.first):
            pieces.append(LogPiece(copy, manifest, end))
            covered = end
    ends = [*(piece.manifest.first for piece in pieces), covered][1:]
    return [piece._replace(end=min(piece.end, end)) for piece, end in zip(pieces, ends, strict=True)]


def _with_holes(log: SharedFacts, pieces: Sequence[LogPiece], unread: Sequence[Unread]) -> Iterator[Segment]:
    """The segments of a log, with a hole for offsets that no segment has."""
    disk = log.disk
    covered = log.begins if disk is not None and disk.log_start is not None else None
    for piece in pieces:
        if (
            covered is None
        ):  # the log may begin at any offset: earlier offsets were deleted, unless an object of them exists
            bases = [each.first for each in unread if log.begins <= each.first < piece.manifest.first]
            covered = min(bases, default=piece.manifest.first)
        if covered < piece.manifest.first:
            yield hole(log, covered, piece.manifest.first, unread)
        yield segment_of(
            piece.copy,
            piece.manifest,
            Remote(piece.copy.manifest, piece.copy.indexes, log.keys, log.lineage, log.begins, disk),
            piece.end,
        )
        covered = piece.end
    behind = [each.first for each in unread if each.copy.is_finished and each.first >= (covered or 0)]
    if disk is not None:
        if covered is not None and covered < disk.local_start:
            yield hole(log, covered, disk.local_start, unread)
    elif behind:
        yield hole(log, min(behind) if covered is None else covered, None, unread)


def missing(first: Segment, keys: Keys, disk: Disk) -> list[Segment]:
    """A hole for the offsets before a partition's first segment on disk, if the bucket has none of them."""
    if disk.log_start is None or disk.log_start >= disk.local_start:
        return []
    log = SharedFacts(keys, disk.lineage, disk.log_start, disk, first.topic, first.partition, first.file)
    return [hole(log, disk.log_start, disk.local_start, ())]


def hole(log: SharedFacts, first: int, end: int | None, unread: Sequence[Unread]) -> Segment:
    """A corrupt segment in place of offsets that no segment has, from ``first`` to before ``end``, if known."""
    of_it = [each for each in unread if each.first >= first and (end is None or each.first < end)]
    if of_it:
        copy, _, why = min(of_it, key=lambda each: each.first)
        file = copy.manifest or copy.any
    else:
        why, file = "no object has them", log.folder.sibling(f"{first:020}-*{LOG}")
    layer = HoleLayer()
    last = first if end is None else end - 1
    manifest = Manifest(
        log.topic or "", "", log.partition or 0, "", first, last, 0, (), plain_chunks(layer.size), {}, None
    )
    remote = Remote(None, None, log.keys, log.lineage, log.begins, log.disk, manifest, None, why)
    # It has no time, because at the end of a log the offsets that a stream waits for may still come.
    return Segment(file._replace(size=layer.size, modified=None, layer=layer), log.topic, log.partition, first, remote)


def checked_manifest(copy: Copy, keys: Keys, following: int | None) -> Manifest | str:
    """A segment's manifest. If the next segment does not begin at its end, the end is that of the segment's bytes."""
    manifest = loaded(copy)
    if (
        isinstance(manifest, str)
        or manifest.is_plain_copy
        or (manifest.last + 1 == following and manifest.chunks.is_whole)
    ):
        return manifest
    segment = _alone(copy, manifest, keys)
    with OpenFile(segment.file) as source:
        last = Seeker(Log(source, chunk=PAGE), segment).last()
    if last is not None:
        return manifest._replace(last=last.last)
    if manifest.first <= manifest.last and (following is None or manifest.last < following):
        return manifest
    return manifest if following is None else manifest._replace(last=following - 1)


def _with_epochs(copy: Copy, manifest: Manifest, lineage: Lineage, keys: Keys) -> Manifest | str:
    """The manifest. If the log has no offset of its epochs, and the batches have others, it gets those.

    Returns why the segment has no place if the batches have no epochs.
    """
    if reach(manifest, lineage) > manifest.first:
        return manifest
    with OpenFile(_alone(copy, manifest, keys).file) as source:
        first = header_at(Log(source, chunk=PAGE), 0)
        if first is not None and first.id.epoch in dict(manifest.epochs):
            return manifest  # of a leader that the log does not follow; without reading all its batches
        epochs = _epochs_in(Log(source))
    return (
        manifest._replace(epochs=epochs) if epochs else "neither its manifest nor its batches have an epoch of the log"
    )


def _alone(copy: Copy, manifest: Manifest, keys: Keys) -> Segment:
    """A segment for itself, without regard to the log."""
    return segment_of(copy, manifest, Remote(copy.manifest, copy.indexes, keys, (), 0), manifest.last + 1)


def decided(copy: Copy, manifest: Manifest, remote: Remote) -> Segment:
    """A segment of the log; ManifestMismatchError if its manifest contradicts its name or the lineage."""
    if not manifest.chunks.is_whole or reach(manifest, remote.lineage) != manifest.last + 1:
        raise ManifestMismatchError
    return segment_of(copy, manifest, remote, manifest.last + 1)


def segment_of(copy: Copy, manifest: Manifest, remote: Remote, end: int) -> Segment:
    """A segment whose bytes can be read, for offsets before ``end``."""
    if remote.disk is not None:
        end = min(end, remote.disk.local_start)
    # Also if chunks are the segment's unchanged bytes, because then a look-up is one request, not one for each page.
    layer = None if manifest.is_plain_copy else ChunkLayer(manifest.chunks, manifest.encryption, remote.keys)
    file = copy.any._replace(size=manifest.chunks.size, layer=layer)
    remote = remote._replace(manifest=manifest, end=end if end <= manifest.last else None)
    return Segment(file, manifest.topic, manifest.partition, manifest.first, remote)


def with_manifest(segment: Segment, following: int | None) -> Segment:
    """The segment with its manifest; ManifestMismatchError if the manifest contradicts the names."""
    remote = segment.remote
    if remote is None or remote.manifest is not None:
        return segment
    (copy,) = in_bucket(file for file in (segment.file, remote.object, remote.indexes) if file is not None)
    manifest = loaded(copy)
    if isinstance(manifest, str) or (following is not None and manifest.last + 1 != following):
        raise ManifestMismatchError
    return decided(copy, manifest, remote)


def replan(log: Sequence[Segment]) -> list[Segment]:
    """The log of a partition with segments in a bucket, according to all manifests there."""
    remote, local = log[0].remote, [segment for segment in log if segment.remote is None]
    if remote is None:
        return list(log)
    file = log[0].file
    files = listed_at(PathParts(file.root, file.folder, file.query)).files
    return segments_of(in_bucket(files), remote.keys, False, remote.disk) + local
