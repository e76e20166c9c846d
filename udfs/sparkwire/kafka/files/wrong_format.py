"""Distinguish a file of another format from a corrupt log."""

from __future__ import annotations

from sparkwire.base.error_codes import BAD_LENGTH, BAD_MAGIC, TRUNCATED
from sparkwire.core.sources.storage import OpenFile
from sparkwire.kafka.files.log import SEARCHED
from sparkwire.kafka.framing import FrameBlock
from sparkwire.kafka.layout import ENTRY, MAGIC

_NEWEST_MAGIC = 2
_FRAMING = (TRUNCATED, BAD_MAGIC, BAD_LENGTH)


def is_wrong_format(source: OpenFile, position: int, frames: FrameBlock) -> bool:
    """Whether the entries at ``position`` are the whole file, none of them is valid, and the file does not begin like a log."""
    if position or len(frames.begin) != 1 or frames.error[0] not in _FRAMING:
        return False
    whole = int(frames.stop[0] - frames.begin[0]) == source.size
    return whole and not may_begin_a_log(bytes(source.read(0, min(MAGIC + 1, source.size))))


def may_begin_a_log(head: bytes) -> bool:
    """Whether the bytes may be the beginning of a log's first entry. A preallocated segment begins with zeros."""
    if len(head) < ENTRY.size:
        return True
    offset, size = (
        int.from_bytes(head[ENTRY[name].offset : ENTRY[name].end], "big", signed=True) for name in ("offset", "size")
    )
    return offset >= 0 and 0 <= size <= SEARCHED and all(magic <= _NEWEST_MAGIC for magic in head[MAGIC:])
