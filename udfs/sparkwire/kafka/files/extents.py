"""The start and end of a partition's log, from its segments and the broker's checkpoint.

    00000000000000000040.log            the first segment: the log starts at 40, or later
    log-start-offset-checkpoint         beside the partitions: the log's start, if it is inside a segment
    the last batch                      its last offset is the offset before the log's end, even if it has no records

The end offset is the position of consumers that have read everything. It remains without the records before it, for example
markers and compacted records.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from sparkwire.core.sources.storage import OpenFile
from sparkwire.kafka.files.entries import read_entries
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.files.naming import Segment
from sparkwire.kafka.files.plan import OpenPartition
from sparkwire.kafka.files.seek import END, log_dir_file
from sparkwire.kafka.to_records import LARGEST_DELTA

LOG_STARTS: Final = "log-start-offset-checkpoint"
_LINE: Final = re.compile(r"^(\S+) (\d+) (\d{1,19})$", re.MULTILINE)


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


def checkpointed(text: bytes) -> dict[str, int]:
    """The offset of each partition in a checkpoint file of a log directory, without invalid lines."""
    lines = _LINE.findall(text.decode("utf-8", "replace"))
    return {f"{topic}-{int(partition)}": int(offset) for topic, partition, offset in lines}


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
    starts = checkpointed(log_dir_file(segments[0], LOG_STARTS))
    start = max(first, starts.get(f"{segments[0].topic}-{segments[0].partition}", 0))
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
