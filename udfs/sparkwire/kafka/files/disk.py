"""Join the segments in a broker's directory with those that the broker has moved to a bucket, to one log.

LOGDIR/orders-0/partition.metadata           the topic's id, which is in the name of the bucket's folder
LOGDIR/orders-0/leader-epoch-checkpoint      the lineage, which includes the bucket's segments
LOGDIR/log-start-offset-checkpoint           the start offsets of partitions
LOGDIR/__remote_log_metadata-N/              the segments that are complete, and those being deleted
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

import pyarrow as pa

from sparkwire.core.sources.storage import File, OpenFile, children_below, listed
from sparkwire.kafka.cluster.internal_json import decode_internal_record
from sparkwire.kafka.files import remote
from sparkwire.kafka.files.entries import RecordsDepth, read_entries
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.files.naming import Copy, Disk, Segment, in_bucket, in_order, segments, topic_id_of
from sparkwire.kafka.files.seek import LOG_STARTS, checkpoint_of, small_file
from sparkwire.kafka.tiered.encryption_keys import Keys

_TOPIC_ID: Final = re.compile(rb"^topic_id:\s*([\w-]{22})\s*$", re.MULTILINE)
_STATES: Final = "__remote_log_metadata"
_FINISHED: Final = 1


def with_bucket(local: Sequence[Segment], path: str, keys: Keys, by_names: bool) -> list[Segment]:
    """Segments on disk, and before those of each partition its segments in the bucket at ``path``."""
    files = listed(path).files
    by_partition: dict[tuple[str, int], list[Copy]] = {}
    for copy in in_bucket(files):
        partition = topic_id_of(copy)
        if partition is not None:
            by_partition.setdefault(partition, []).append(copy)
    unfinished: dict[str, frozenset[str]] = {}
    joined: list[Segment] = []
    for _, log in groupby(local, key=lambda segment: segment.log):
        on_disk = list(log)
        folder = on_disk[0].file.folder.rpartition("/")[0]
        copies = by_partition.get((_topic_id(on_disk[0]), on_disk[0].partition or 0), [])
        if copies and folder not in unfinished:
            unfinished[folder] = frozenset(_unfinished(on_disk[0].file, folder))
        disk = _disk(on_disk[0], unfinished.get(folder, frozenset()))
        moved = remote.segments_of(copies, keys, by_names, disk)
        joined += moved or remote.missing(on_disk[0], keys, disk)
        joined += on_disk
    return joined


def _topic_id(segment: Segment) -> str:
    match = _TOPIC_ID.search(small_file(segment.file.sibling("partition.metadata")))
    return match[1].decode() if match else ""


def _disk(first: Segment, unfinished: frozenset[str]) -> Disk:
    """The facts in a broker's directory about the partition whose first segment on disk is ``first``."""
    epochs = remote.epochs_of(small_file(first.file.sibling("leader-epoch-checkpoint")))
    return Disk(first.log, epochs, checkpoint_of(first, LOG_STARTS), first.base_offset or 0, unfinished)


def _unfinished(file: File, folder: str) -> Iterator[str]:
    """The ids of segments that are not complete, or no longer complete, by the broker's own records."""
    states: dict[str, int] = {}
    files = children_below(file, folder, f"{_STATES}-")
    for segment in in_order(segments(files, False, folder)):
        states.update(_states(segment))
    yield from (id for id, state in states.items() if state != _FINISHED)


def _states(segment: Segment) -> Iterator[tuple[str, int]]:
    """Ids of segments and their new states, in order."""
    with OpenFile(segment.file) as source:
        for block in read_entries(Log(source), 0, source.size, RecordsDepth(("value",))):
            values = block.records.value()
            topics = pa.repeat(_STATES, len(values))
            states = decode_internal_record(topics, pa.nulls(len(values), pa.binary()), values)
            for text in states.field("value").drop_null().to_pylist():
                record = json.loads(text)
                if "remoteLogSegmentState" in record:
                    yield record["remoteLogSegmentId"]["id"], record["remoteLogSegmentState"]
