"""Detect that a file of a stream has changed between planning and reading."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparkwire.base.error_codes import OK
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.framing import frame_error
from sparkwire.kafka.layout import BATCH, BATCH_SIZE, ENTRY, MAGIC, MESSAGE_ENTRY_0


class EntryId(NamedTuple):
    """Identifies an entry."""

    offset: int
    """offset as stored"""
    crc: int
    epoch: int
    """leader epoch, -1 in magic 0 and 1"""


class Expected(NamedTuple):
    """An entry that a segment must have at a position [bytes]."""

    position: int
    id: EntryId


class Guard(NamedTuple):
    """The state of the log for which a part was planned."""

    log: str
    expected: tuple[Expected, ...]
    first: int
    """offset of the part's first record"""
    end: int
    """offset after the part's last record"""
    fails: bool
    """whether data loss fails the query"""


def end_of_entry(log: Log, position: int) -> tuple[int, int]:
    """The end of an entry according to its header, and the offset after it. The entry may be corrupt."""
    header = log.source.read(position, BATCH_SIZE)
    delta = BATCH["last_offset_delta"].read(header) if header[MAGIC] == 2 else 0
    return position + ENTRY.size + ENTRY["size"].read(header), ENTRY["offset"].read(header) + delta + 1


def entry_at(log: Log, position: int) -> Expected | None:
    """The entry framed at a position."""
    entry = entry_id(log, position)
    return None if entry is None else Expected(position, entry)


def entry_id(log: Log, position: int) -> EntryId | None:
    """The identity of the entry at a position; None if there is no entry."""
    if not 0 <= position < log.source.size:
        return None
    header = log.source.read(position, BATCH_SIZE)
    if frame_error(np.frombuffer(header, np.uint8), 0, log.source.size - position) != OK:
        return None
    layout = BATCH if header[MAGIC] == 2 else MESSAGE_ENTRY_0
    epoch = BATCH["partition_leader_epoch"].read(header) if header[MAGIC] == 2 else -1
    return EntryId(ENTRY["offset"].read(header), layout["crc"].read(header), epoch)
