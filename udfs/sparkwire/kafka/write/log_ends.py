"""Keep the start and end of source logs in written logs.

Consumers store offsets. So a log without its first records keeps its start, and a log without its last records or markers keeps
its end: an empty batch has the last offset, as after Kafka's own compaction. Start and end come from the source of the rows, and
with `overwrite` from the replaced log. The end never decreases.

    00000000000000000040.log            the first segment: the log starts at 40, or later
    log-start-offset-checkpoint         beside the partitions: the log's start, if it is inside a segment
    the last batch                      its last offset is the offset before the log's end, even if it has no records
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from sparkwire.base.printable import value_error
from sparkwire.core.sources.folder import Folder, joined
from sparkwire.core.sources.job import Staging
from sparkwire.core.sources.storage import File, OpenFile
from sparkwire.kafka.files.entries import read_entries
from sparkwire.kafka.files.kafka_log import NAME, find
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.files.naming import Segment, base_offset_of, partition_of
from sparkwire.kafka.files.plan import OpenPartition
from sparkwire.kafka.files.seek import END, LOG_STARTS, checkpoint_of
from sparkwire.kafka.to_records import LARGEST_DELTA
from sparkwire.kafka.write.segment_writer import StagedSegment, empty_segment
from sparkwire.kafka.write.write_options import LogWrite


class Extent(NamedTuple):
    """The start and end of a log."""

    start: int
    end: int
    """the offset after its last offset"""
    epoch: int = -1
    """leader epoch of its last batch, -1 for none"""
    first_stored: int = 0
    """first offset that its segments may have; less than ``start`` if a broker has deleted the records between them"""

    @property
    def is_empty(self) -> bool:
        return self.start >= self.end


def extent_of(segments: Sequence[Segment]) -> Extent:
    """The extent of one partition's log. It ignores entries with offsets that their segment cannot have."""
    partition = OpenPartition(segments)
    with partition.opened:
        first = partition.begins()
        end, epoch = max(first, segments[-1].base_offset or 0), -1
        for k in range(len(segments) - 1, -1, -1):
            seeker = partition.seeker(k)
            last = seeker.last()
            if last is not None and seeker.base <= last.first <= last.last <= seeker.base + LARGEST_DELTA:
                end, epoch = max(end, last.last + 1), last.id.epoch
                break
    start = max(first, checkpoint_of(segments[0], LOG_STARTS) or 0)
    return Extent(start, max(start, end), epoch, first)


def open_transaction_of(segments: Sequence[Segment]) -> int | None:
    """The first offset of the first open transaction in a partition's log; None if none is open."""
    partition = OpenPartition(segments)
    with partition.opened:
        return partition.transactions(END).first_open


def has_records(segments: Sequence[Segment]) -> bool:
    """Whether a log has a record that is not a control record."""
    for segment in segments:
        with OpenFile(segment.file) as source:
            for block in read_entries(Log(source), 0, source.size):
                has_any = block.headers.is_message | (block.headers.field("record_count").values != 0)
                if (block.is_valid & has_any & ~block.headers.is_control().values).any():
                    return True
    return False


class Bounds(NamedTuple):
    """The offsets that a written log must cover, even without rows."""

    start: int | None
    """largest allowed start; None if the first row determines it"""
    end: int
    """smallest allowed end, exclusive"""
    epoch: int
    """leader epoch at that end, -1 if unknown"""


class LogEnds:
    """The starts and ends that a write must keep."""

    def __init__(self, write: LogWrite, folder: Folder) -> None:
        self._write = write
        self._folder = folder

    @cached_property
    def _source(self) -> dict[str, list[Segment]]:
        """The segments of each partition of the source; empty if the source is unknown or no longer exists."""
        source = self._write.source
        if source is None:
            return {}
        try:
            segments = find(source.paths, source.remote_path, source.encryption_keys)
        except FileNotFoundError:
            if self._write.is_source_named:
                raise
            return {}
        named = [segment for segment in segments if segment.topic is not None and segment.partition is not None]
        return {
            f"{topic}-{partition}": list(some)
            for (topic, partition), some in groupby(
                sorted(named, key=_by_partition), key=lambda segment: (segment.topic, segment.partition)
            )
        }

    def emptied(self, staged: Collection[str]) -> list[str]:
        """The partitions to write although they have no rows left; ``staged`` are the partitions with rows.

        ValueError if it is not clear whether to empty a partition.
        """
        write = self._write
        if write.is_source_named:
            left = [self._target(name) for name in self._source if self._target(name) not in staged]
            topics = {_topic(name) for name in staged}
            if len({_topic(self._target(name)) for name in self._source}) > 1:
                for name in left:
                    if _topic(name) not in topics:
                        raise value_error(
                            f"sourcePath has several topics, and no row of {_topic(name)} is left: its partitions would "
                            "become empty. Name one topic in sourcePath, and write each topic separately"
                        )
            return left
        if write.overwrite and write.topic is not None and write.partition is not None:
            return [] if staged else [f"{write.topic}-{write.partition}"]
        if write.overwrite:
            self._reject_left_out(staged)
        return []

    def _target(self, name: str) -> str:
        """The partition that a partition of the source becomes."""
        topic, partition = partition_of(name)
        topics = {_topic(one) for one in self._source}
        topic = self._write.topic if self._write.topic is not None and len(topics) == 1 else topic
        return f"{topic}-{partition}"

    def _reject_left_out(self, staged: Collection[str]) -> None:
        """ValueError if a partition of this directory was read and has no rows left, because you may want to empty it."""
        for name, some in self._source.items():
            if name not in staged and self._is_in_place(name, some) and has_records(some):
                raise value_error(
                    f"{self._folder.shown(name)} was read, but no row of it is left to write. Pass sourcePath: a path "
                    "with this partition empties it, a path without it leaves it unchanged"
                )

    def of(self, name: str, replaced: Sequence[Segment]) -> Bounds:
        """The bounds of a partition; ``replaced`` are the segments that the write replaces."""
        write, source = self._write, self._source_of(name)
        extent = None if source is None else extent_of(source)
        before = extent_of(replaced) if replaced and not write.assign else None
        start = extent.start if extent else before.start if before and not before.is_empty else None
        extents = [each for each in (extent, before) if each is not None]
        end = max((each.end for each in extents), default=0)
        start, end = _requested(write.starts, name, start), _requested(write.ends, name, end) or 0
        return Bounds(start, max(start or 0, end), max((each.epoch for each in extents), default=-1))

    def check_deleted(self, name: str, first: int) -> None:
        """ValueError if rows begin with records that a broker has deleted from the source, but not yet from its files."""
        source = self._source_of(name)
        if source is None or _requested(self._write.starts, name, None) is not None:
            return
        extent = extent_of(source)
        if extent.first_stored <= first < extent.start:
            raise value_error(
                f"{NAME} cannot write {name}: its rows begin with offset {first}, but the log that they come from starts at "
                f"{extent.start} (log-start-offset-checkpoint): earlier records are deleted. Leave them out, or pass "
                "startOffset"
            )

    def check_open(self, name: str) -> None:
        """ValueError if rows replace the log that they were read from, and a transaction is open in it.

        `read_committed` returns no rows from the start of that transaction on, so the write would lose later records.
        """
        source = self._source_of(name)
        if source is None or not self._is_in_place(name, source):
            return
        first = open_transaction_of(source)
        if first is not None:
            raise value_error(
                f"{NAME} cannot replace {self._folder.shown(name)} with an incomplete reading: a transaction is open "
                f"from offset {first} on, and read_committed reads no later record. These records would be lost. End the "
                "transaction while a broker runs (kafka-transactions.sh --abort), or write to another directory"
            )

    def _is_in_place(self, name: str, source: Sequence[Segment]) -> bool:
        return f"{source[0].file.root}{source[0].file.folder}" == self._folder.shown(name)

    def _source_of(self, name: str) -> list[Segment] | None:
        return next((some for one, some in self._source.items() if self._target(one) == name), None)


def _requested(offsets: Mapping[str, int] | None, name: str, otherwise: int | None) -> int | None:
    if offsets is None:
        return otherwise
    return offsets.get(name, offsets.get("", otherwise))


def _by_partition(segment: Segment) -> tuple[str, int, int]:
    return segment.topic or "", segment.partition or 0, segment.base_offset or 0


def _topic(name: str) -> str:
    return name.rpartition("-")[0]


def existing_segments(folder: Folder, name: str) -> list[Segment]:
    """The segments in a partition's directory."""
    topic, partition = partition_of(name)
    place = folder.place
    bases = {file: base_offset_of(file) for file in folder.names(name) if file.endswith(".log")}
    return [
        Segment(File(place.root, f"{place.path}/{joined(name, file)}", place.query, -1), topic, partition, base)
        for file, base in sorted(bases.items())
        if base is not None
    ]


def with_ends(
    write: LogWrite,
    staging: Staging,
    names: tuple[str, int],
    staged: Sequence[StagedSegment],
    bounds: Bounds,
    after: tuple[int, int] | None,
) -> list[StagedSegment]:
    """The segments of a log, in order, with empty segments before and after them that keep its start and end.

    ``after`` is for appended rows: the end of the existing log, and the leader epoch there. It is None for a complete log.
    """
    files = list(staged)
    epoch = write.leader_epoch if write.leader_epoch is not None else _last_epoch(staged, bounds, after)

    def empty(base: int, last: int | None, epoch: int) -> StagedSegment:
        return empty_segment(write, staging, (*names, 0), base, last, epoch)

    if after is not None:
        begin = after[0]
    else:
        first = files[0].first if files else bounds.end
        begin = first if bounds.start is None else min(first, bounds.start)
        reached = files[0].last if files else bounds.end - 1
        if (
            begin < first and reached - begin > LARGEST_DELTA
        ):  # a segment cannot have offsets so far from its base offset
            files.insert(0, empty(begin, begin, files[0].epochs[0][0] if files and files[0].epochs else epoch))
    end = files[-1].last + 1 if files else begin
    if end < bounds.end:
        last = bounds.end - 1
        files.append(empty(end if last - end <= LARGEST_DELTA else last, last, epoch))
    elif not files and after is None:
        files.append(empty(begin, None, epoch))
    return files


def _last_epoch(staged: Sequence[StagedSegment], bounds: Bounds, after: tuple[int, int] | None) -> int:
    epochs = [epoch for segment in staged for epoch, _ in segment.epochs]
    return max([*epochs, bounds.epoch, after[1] if after else 0])
