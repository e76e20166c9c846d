"""Handle a partition in several directories, such as replicas of brokers or daily backups. By default it is an error."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from sparkwire.base.printable import printable
from sparkwire.kafka.files.naming import Segment
from sparkwire.kafka.files.plan import OpenPartition

FAIL, LONGEST, ALL = "fail", "longest", "all"
_SHOWN: Final = 3

Log = Sequence[Segment]


def chosen_replicas(segments: Sequence[Segment], replicas: str) -> list[Segment]:
    """The segments of one log of each partition, or with ``all`` of every log, one log after the other.

    ValueError with ``fail`` if a partition has more than one log.
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
            raise ValueError(printable(_several(f"{topic}-{partition}", same)))
        longest = max(same, key=_extent)
        left_out += [log for log in same if log is not longest]
    out = {id(log) for log in left_out}
    return [segment for log in logs if id(log) not in out for segment in log]


def _partition_of(log: Log) -> tuple[str | None, int | None]:
    """Topic and partition; None for a file without an offset in its name, which is a separate log."""
    first = log[0]
    return (None, None) if first.base_offset is None else (first.topic, first.partition)


def _extent(log: Log) -> tuple[int, int]:
    """The order of logs: by their end; with equal ends, a log that begins earlier is greater."""
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
