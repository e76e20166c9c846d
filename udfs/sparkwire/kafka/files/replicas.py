"""One partition in several directories: a replica of each broker, a backup of each day. They are never added up in silence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from sparkwire.kafka.files.naming import Segment
from sparkwire.kafka.files.plan import OpenPartition

FAIL, LONGEST, ALL = "fail", "longest", "all"
_SHOWN: Final = 3

Log = Sequence[Segment]


def chosen_replicas(segments: Sequence[Segment], replicas: str) -> list[Segment]:
    """The segments of each partition, whose logs follow each other: of one log, or with ``all`` of every one.

    ValueError with ``fail`` where a partition has more than one.
    """
    logs = [list(log) for _, log in groupby(segments, key=lambda segment: segment.log)]
    if replicas == ALL:
        return list(segments)
    of_partitions: dict[tuple[str | None, int | None], list[Log]] = {}
    for log in logs:
        of_partitions.setdefault(_partition_of(log), []).append(log)
    left_out = list[Log]()
    for (topic, partition), same in of_partitions.items():
        if topic is None or len(same) == 1:
            continue
        if replicas == FAIL:
            raise ValueError(_several(f"{topic}-{partition}", same))
        longest = max(same, key=_extent)
        left_out += [log for log in same if log is not longest]
    out = {id(log) for log in left_out}
    return [segment for log in logs if id(log) not in out for segment in log]


def _partition_of(log: Log) -> tuple[str | None, int | None]:
    """Topic and partition; none of a file whose name tells no offset, which is a separate log."""
    first = log[0]
    return (None, None) if first.base_offset is None else (first.topic, first.partition)


def _extent(log: Log) -> tuple[int, int]:
    """How far a log goes, and of two that go as far, how early it begins."""
    partition = OpenPartition(log)
    with partition.opened:
        reach = partition.reach()
        return reach.next, -reach.first


def _several(name: str, logs: Sequence[Log]) -> str:
    folders = ["".join(log[0].log) for log in logs]
    shown = ", ".join(folders[:_SHOWN]) + (", …" if len(folders) > _SHOWN else "")
    return (
        f"partition {name} is in {len(folders)} directories, {shown}: name one of them in path, or set replicas to "
        "longest (the log that goes furthest) or all (the rows of each, with its file)"
    )
