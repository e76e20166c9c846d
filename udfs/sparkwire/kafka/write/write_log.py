"""Write to `kafka_log`: tasks write segments, and the driver makes new versions of partitions from them."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Sequence
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from sparkwire.base.printable import value_error
from sparkwire.core.sources import job as jobs
from sparkwire.core.sources.folder import Folder, joined
from sparkwire.core.sources.job import Staging
from sparkwire.core.sources.job_file import Once, Process
from sparkwire.core.sources.partition_versions import Change
from sparkwire.core.sources.storage import File, OpenFile, listed, of_option
from sparkwire.kafka.files.entries import HEADERS, read_entries
from sparkwire.kafka.files.kafka_log import NAME
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.files.naming import Segment, base_offset_of
from sparkwire.kafka.files.seek import Seeker
from sparkwire.kafka.layout import ENTRY, OVERHEAD
from sparkwire.kafka.leader_epochs import checkpoint, entries_of
from sparkwire.kafka.producer_snapshot import NO_PRODUCERS
from sparkwire.kafka.to_records import LARGEST_DELTA
from sparkwire.kafka.write.log_ends import LogEnds, existing_segments, with_ends
from sparkwire.kafka.write.segment_writer import INDEXES, SNAPSHOT, PartitionWriter, StagedSegment
from sparkwire.kafka.write.write_options import ERROR, LARGEST_OFFSET, LogWrite, write_of
from sparkwire.kafka.write.write_rows import by_partition, rows_of

EPOCHS: Final = "leader-epoch-checkpoint"
METADATA: Final = "partition.metadata"
"""the file with the topic's id, which a replaced partition keeps"""

_MOST_OPEN: Final = 100
"""largest number of segments that a task has open"""
_WAITING: Final = 8 << 20
"""size of pending rows at which a task writes them [bytes]"""

Epochs = Sequence[tuple[int, int]]

__all__ = ["abort", "begin", "commit", "write_of", "write_rows"]


class PartitionEnd(NamedTuple):
    """The end of a partition's existing log, and its files."""

    removed: frozenset[str]
    """files that do not stay"""
    next: int | None = None
    """the offset after its last offset; None if it has no segment"""
    epochs: Epochs = ()
    has_producers: bool = False
    """whether producers exist at its end, according to its newest snapshot and the batches after it"""


def begin(write: LogWrite, job: str, owner: Process | None = None) -> None:
    """Begin a job, before any task runs; ValueError if a broker is running on the directory, and as in `jobs.begin`."""
    folder = Folder(write.path)
    _reject_broker(write, folder)
    if write.is_source_named and write.source is not None:
        with of_option("sourcePath"):
            for path in write.source.paths:
                listed(path)
    jobs.begin(folder, job, ".log", write.overwrite, owner)


def _reject_broker(write: LogWrite, folder: Folder) -> None:
    if is_locked(folder):
        raise value_error(
            f"{folder.shown('.lock')} is held by a running broker: stop it before {NAME} writes to {write.path}"
        )


def is_locked(folder: Folder) -> bool:
    """Whether a broker is running on a directory."""
    path = Path(folder.full(".lock"))
    if not folder.is_local or os.name != "posix" or not path.exists():
        return False
    import fcntl  # only on Unix

    with path.open("rb+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def write_rows(
    write: LogWrite, batches: Iterable[pa.RecordBatch], job: str, attempt: str, task: int
) -> list[StagedSegment]:
    """Write the segments of one attempt of a task, without their final names.

    ValueError if a row is invalid, or another job writes to the partition.
    """
    staging = Staging(Folder(write.path), job, attempt)
    writers = _Writers(write, staging, task)
    try:
        for batch in batches:
            for topic, partition, rows in by_partition(rows_of(write, batch)):
                writers.of(topic, partition).add(rows)
            writers.encode()
        staged = writers.close()
        staging.finish()
        return staged
    except BaseException:
        staging.discard()
        raise


class _Writers:
    """The writers of a task's partitions. They limit the number of open files and the size of pending rows."""

    def __init__(self, write: LogWrite, staging: Staging, task: int) -> None:
        self._write = write
        self._staging = staging
        self._task = task
        self._all: dict[str, PartitionWriter] = {}
        self._open: dict[str, None] = {}

    def of(self, topic: str, partition: int) -> PartitionWriter:
        name = f"{topic}-{partition}"
        if name not in self._all:
            self._staging.lock(name)
            epoch = None if self._write.has_epochs else _epoch(self._write, self._staging.folder, name)
            self._all[name] = PartitionWriter(self._write, self._staging, topic, partition, self._task, epoch)
        self._open.pop(name, None)
        self._open[name] = None  # it is now the most recently used
        if len(self._open) > _MOST_OPEN:
            oldest = next(iter(self._open))
            del self._open[oldest]
            self._all[oldest].pause()
        return self._all[name]

    def encode(self) -> None:
        if sum(self._all[name].bytes for name in self._open) >= _WAITING:
            for name in self._open:
                self._all[name].encode(is_last=False)

    def close(self) -> list[StagedSegment]:
        return [staged for writer in self._all.values() for staged in writer.close()]


def _epoch(write: LogWrite, folder: Folder, partition: str) -> int:
    """The leader epoch for rows without one; for appended rows, the epoch of the existing rows."""
    if write.leader_epoch is not None:
        return write.leader_epoch
    epochs = [] if write.overwrite else _epochs(folder, partition)
    return epochs[-1][0] if epochs else 0


def _epochs(folder: Folder, partition: str) -> Epochs:
    text = folder.read(joined(partition, EPOCHS))
    if text is None:
        return []
    epochs = entries_of(text)
    if epochs is None:
        raise value_error(
            f"{folder.shown(joined(partition, EPOCHS))} is corrupt or has a number below 0, and a broker would reject it: "
            "delete it, or write with mode overwrite"
        )
    return epochs


def commit(write: LogWrite, job: str, staged: Sequence[StagedSegment], once: Once | None = None) -> None:
    """Make new versions of partitions from a job's segments; ``once`` as in `jobs.commit`.

    ValueError if an offset occurs twice, in the rows or in the existing log. Then nothing is changed.
    """
    folder = Folder(write.path)
    partitions = {
        name: list(segments)
        for name, segments in groupby(
            sorted(staged, key=_order), key=lambda segment: f"{segment.topic}-{segment.partition}"
        )
    }

    ends = LogEnds(write, folder)

    def changes() -> list[Change]:
        _reject_broker(write, folder)
        staging = Staging(folder, job, "ends")
        without_rows = ends.emptied(partitions)
        for name in without_rows:
            staging.lock(name)
        names = {**partitions, **dict.fromkeys(without_rows, ())}
        result = [_change(write, folder, job, name, some, ends, staging) for name, some in names.items()]
        staging.finish()
        return result

    jobs.commit(folder, job, changes, once)


def abort(write: LogWrite, job: str) -> None:
    """Delete all files that a job's tasks have written."""
    jobs.abort(Folder(write.path), job)


def _order(staged: StagedSegment) -> tuple[Any, ...]:
    return staged.topic, staged.partition, staged.task, staged.first


def _change(
    write: LogWrite,
    folder: Folder,
    job: str,
    name: str,
    staged: Sequence[StagedSegment],
    ends: LogEnds,
    staging: Staging,
) -> Change:
    existing = _existing_end(write, folder, name)
    if write.overwrite:
        ends.check_open(name)
    bounds = ends.of(name, existing_segments(folder, name) if write.overwrite else ())
    if write.assign:
        first = write.starting_offset if existing.next is None else existing.next
        staged = _numbered(folder, staged, first)
    elif staged:
        staged = sorted(staged, key=lambda segment: segment.first)
        _check_offsets(folder, name, existing, staged)
        ends.check_deleted(name, staged[0].first)
    after = None if existing.next is None else (existing.next, existing.epochs[-1][0] if existing.epochs else 0)
    topic, _, partition = name.rpartition("-")
    staged = with_ends(write, staging, (topic, int(partition)), staged, bounds, after)
    staged = _without_gaps(folder, staged, bounds.start if existing.next is None else existing.next)
    placed = {
        file: f"{segment.first:020}{suffix}"
        for segment in staged
        for suffix, file in sorted(segment.files.items())
        if suffix != SNAPSHOT or not existing.has_producers
    }
    epochs = _joined_epochs(
        folder, name, [*existing.epochs, *chain.from_iterable(segment.epochs for segment in staged)]
    )
    if staged:  # a broker removes an epoch that begins at the log's end
        epochs = [(epoch, offset) for epoch, offset in epochs if offset <= staged[-1].last]
    removed = set(existing.removed)
    if epochs and list(epochs) != list(existing.epochs):
        staging = Staging(folder, job, f"epochs-{name}")
        file, stream = staging.create(EPOCHS)
        with stream:
            stream.write(checkpoint(epochs))
        staging.finish()
        placed[file] = EPOCHS
        removed.add(EPOCHS)
    return Change(name, placed, removed)


def _existing_end(write: LogWrite, folder: Folder, name: str) -> PartitionEnd:
    """The remaining end of a partition, and its files that do not stay: all files, or those of an empty last segment."""
    files = folder.names(name)
    if write.overwrite:
        return PartitionEnd(frozenset(files) - {METADATA})
    paths = [joined(name, file) for file in files]
    logs = sorted(path for path in paths if path.endswith(".log") and _base(path) is not None)
    if not logs:
        return PartitionEnd(frozenset(), epochs=_epochs(folder, name))
    last = _base(logs[-1]) or 0
    with _opened(folder, logs[-1]) as source:
        entry = Seeker(Log(source), Segment(source.file, None, None, last)).last()
        end = entry.stop if entry else 0
        if end < source.size:
            raise value_error(
                f"{source.file.name} ends in {source.size - end} bytes that are no batch, and a broker would delete records "
                "after them. sparkwire.kafka.check shows details; mode overwrite replaces the partition"
            )
    if write.if_exists == ERROR and (entry or len(logs) > 1):
        raise value_error(f"{folder.shown(name)} has records: append to them, overwrite them, or write elsewhere")
    stem = logs[-1].removesuffix("log")
    removed = frozenset(
        file for file, path in zip(files, paths, strict=True) if entry is None and path.startswith(stem)
    )
    after = entry.last + 1 if entry else last
    return PartitionEnd(removed, after, _epochs(folder, name), _has_producers(folder, paths, logs))


def _base(path: str) -> int | None:
    return base_offset_of(path.rpartition("/")[2])


def _opened(folder: Folder, name: str) -> OpenFile:
    place = folder.place
    return OpenFile(File(place.root, f"{place.path}/{name}", place.query, -1))


def _has_producers(folder: Folder, paths: Sequence[str], logs: Sequence[str]) -> bool:
    snapshots = sorted(path for path in paths if path.endswith(SNAPSHOT))
    if snapshots and folder.read(snapshots[-1]) != NO_PRODUCERS:
        return True
    newest = snapshots[-1].removesuffix(SNAPSHOT) if snapshots else ""
    return any(_names_producers(folder, log) for k, log in enumerate(logs) if log == logs[-1] or logs[k + 1] > newest)


def _names_producers(folder: Folder, log: str) -> bool:
    with _opened(folder, log) as source:
        producers = (block.headers.field("producer_id") for block in read_entries(Log(source), 0, source.size, HEADERS))
        return any(bool((ids.valid & (ids.values >= 0)).any()) for ids in producers)


def _check_offsets(folder: Folder, name: str, existing: PartitionEnd, staged: Sequence[StagedSegment]) -> None:
    if existing.next is not None and staged[0].first < existing.next:
        raise value_error(
            f"{folder.shown(name)} ends at offset {existing.next - 1}, but the rows to append begin with {staged[0].first}: "
            "write only later rows, or replace the partition with mode overwrite"
        )
    for before, after in pairwise(staged):
        if after.first <= before.last:
            raise value_error(
                f"{folder.shown(name)}: offset {after.first} of one task is within {before.first} to {before.last} of "
                "another: the rows of a partition must be in the order of their offsets; sparkwire.kafka.write sorts them"
            )


def _joined_epochs(folder: Folder, name: str, epochs: Epochs) -> Epochs:
    joint: list[tuple[int, int]] = []
    for epoch, first in epochs:
        if joint and epoch < joint[-1][0]:
            raise value_error(
                f"{folder.shown(name)}: leader epoch {epoch} at offset {first} comes after {joint[-1][0]}: leader epochs "
                "never decrease. The option leaderEpoch gives all rows the same epoch"
            )
        if not joint or epoch != joint[-1][0]:
            joint.append((epoch, first))
    return joint


def _numbered(folder: Folder, staged: Sequence[StagedSegment], first: int) -> list[StagedSegment]:
    """The segments with their offsets counted from ``first`` on, in the order of tasks."""
    numbered, start = [], first
    for _, of_task in groupby(staged, key=lambda segment: segment.task):
        shift = start
        for segment in of_task:
            if segment.last + shift > LARGEST_OFFSET:
                raise value_error(
                    f"{folder.shown(f'{segment.topic}-{segment.partition}')}: offset {LARGEST_OFFSET} is the largest, "
                    f"but the rows would end at {segment.last + shift}: pass a smaller startingOffset"
                )
            if shift:
                _shift(folder, segment.files[".log"], shift)
            epochs = tuple((epoch, offset + shift) for epoch, offset in segment.epochs)
            numbered.append(segment._replace(first=segment.first + shift, last=segment.last + shift, epochs=epochs))
            start = segment.last + shift + 1
    return numbered


def _without_gaps(folder: Folder, staged: Sequence[StagedSegment], end: int | None) -> list[StagedSegment]:
    """The segments, each named by the offset after the previous segment, like the segments that a broker rolls.

    Tiered storage finds offsets by these names. It would wait for an offset in a gap between two segments.
    """
    result = []
    for segment in staged:
        gap = 0 if end is None else max(0, segment.first - end)
        if gap and segment.last - segment.first + gap <= LARGEST_DELTA:
            for suffix, layout in INDEXES.items():
                _shift_index(folder, segment.files[suffix], layout, gap)
            segment = segment._replace(first=segment.first - gap)
        result.append(segment)
        end = segment.last + 1
    return result


def _shift_index(folder: Folder, name: str, layout: np.dtype[Any], by: int) -> None:
    entries = np.frombuffer(folder.read(name) or b"", layout).copy()
    entries["offset"] += by
    with folder.create(name) as stream:
        stream.write(entries.tobytes())
    folder.sync(name)


def _shift(folder: Folder, name: str, shift: int) -> None:
    """Add ``shift`` to the offset of each batch of a segment. No checksum covers it, and indexes have relative offsets."""
    if folder.is_local:
        with Path(folder.full(name)).open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            _shift_batches(mapped, shift)
        folder.sync(name)
        return
    data = bytearray(folder.read(name) or b"")
    _shift_batches(data, shift)
    with folder.create(name) as stream:
        stream.write(data)


def _shift_batches(data: bytearray | mmap.mmap, shift: int) -> None:
    at, size, width = 0, ENTRY["size"], ENTRY["offset"].end
    while at < len(data):
        base = int.from_bytes(data[at : at + width], "big") + shift
        data[at : at + width] = base.to_bytes(width, "big")
        at += OVERHEAD + int.from_bytes(data[at + size.offset : at + size.end], "big")
