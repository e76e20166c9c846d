"""Read the transactions from a broker's files beside the segments, if these files agree with the log.

    00000000000000000280.txnindex   the transactions aborted in segment 280; does not exist if there are none
    00000000000000000280.snapshot   the producers before offset 280, with the first offsets of their open transactions

A transaction index has no checksum, and either file may be of another partition. So an entry counts only if the log has its
batches: the transaction's first batch and its abort marker. An index that lacks entries cannot be distinguished from a complete
one; consumers rely on it, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from sparkwire.base.error_codes import OK
from sparkwire.kafka.files.entries import Entries
from sparkwire.kafka.files.naming import Segment
from sparkwire.kafka.files.seek import PAGE, sibling_of
from sparkwire.kafka.files.transactions import ABORT, DATA, Aborted, transactional_batches
from sparkwire.kafka.indexes import TXN_INDEX, aborted_txns
from sparkwire.kafka.producer_snapshot import Producers
from sparkwire.kafka.tiered.manifest import TRANSACTIONS

_NEWEST: Final = (
    8  # number of producers without an open transaction to look up, to check that the snapshot is of this partition
)


class LoggedBatch(NamedTuple):
    """A batch of magic 2 in the log."""

    producer_id: int
    first: int
    marker: int | None
    """`transactions.DATA`, or a control type; None if the batch is not transactional"""


BatchAt = Callable[[int], LoggedBatch | None]
"""returns the batch that contains an offset, None if there is none"""


def batch_of(entry: Entries) -> LoggedBatch | None:
    """The facts about the producer of a single entry. None for magic 0 or 1."""
    if not entry.headers.is_batch[0]:
        return None
    for batch in transactional_batches(entry):
        return LoggedBatch(batch.producer_id, batch.first, batch.marker)
    return LoggedBatch(int(entry.headers.field("producer_id").values[0]), int(entry.first[0]), None)


def aborted_in(segment: Segment, end: int, log_start: int, batch_at: BatchAt) -> list[Aborted] | None:
    """The transactions aborted in a segment whose offsets end before ``end``; None without a valid index."""
    raw = sibling_of(segment, ".txnindex")
    # With many entries, reading the whole segment is faster than looking them up.
    if not raw or len(raw) // TXN_INDEX.size * 2 * PAGE > segment.file.size:
        return None
    aborted = _aborted(raw, segment.base_offset or 0, end)
    agrees = aborted is not None and all(
        batch_at(one.last) == LoggedBatch(one.producer_id, one.last, ABORT)
        and (one.first < log_start or batch_at(one.first) == LoggedBatch(one.producer_id, one.first, DATA))
        for one in aborted
    )
    return aborted if agrees else None


def aborted_in_remote(segment: Segment, end: int) -> list[Aborted] | None:
    """The transactions aborted in a segment in a bucket, whose upload includes the index; None if it is unreadable."""
    assert segment.remote is not None
    assert segment.remote.manifest is not None
    manifest = segment.remote.manifest
    if not manifest.is_plain_copy and manifest.indexes.get(TRANSACTIONS) is None:
        return []
    raw = sibling_of(segment, ".txnindex")
    if not raw:
        return [] if manifest.is_plain_copy else None
    return _aborted(raw, segment.base_offset or 0, end)


def _aborted(raw: bytes, begin: int, end: int) -> list[Aborted] | None:
    if len(raw) % TXN_INDEX.size:
        return None
    fields = aborted_txns(_value(raw)).fields
    names = ("version", "producer_id", "first_offset", "last_offset")
    entries = list(zip(*(fields[name].tolist() for name in names), strict=True))
    markers = [begin, *(last for _, _, _, last in entries), end]
    if any(version != 0 for version, _, _, _ in entries) or markers != sorted(set(markers)):
        return None
    return [Aborted(producer, first, last) for _, producer, first, last in entries]


def open_before(segment: Segment, log_start: int, batch_at: BatchAt) -> dict[int, int] | None:
    """By producer, the first offset of the transactions that are open at a segment's start; None without a valid snapshot."""
    producers = _snapshot(segment)
    if producers is None:
        return None
    fields = producers.fields
    ids, last = fields["producer_id"], fields["last_offset"]
    opened = _opened(producers)
    started = all(
        first < log_start or batch_at(first) == LoggedBatch(producer, first, DATA) for producer, first in opened.items()
    )
    newest = [k for k in np.argsort(last)[::-1][:_NEWEST].tolist() if last[k] >= log_start]
    known = [batch_at(int(last[k])) for k in newest]
    written = [one is not None and one.producer_id == ids[k] for one, k in zip(known, newest, strict=True)]
    return opened if started and written and all(written) else None


def open_after_remote(segment: Segment) -> dict[int, int] | None:
    """The same for the end of a segment in a bucket; None if its snapshot cannot be read."""
    producers = _snapshot(segment)
    return None if producers is None else _opened(producers)


def _snapshot(segment: Segment) -> Producers | None:
    raw = sibling_of(segment, ".snapshot")
    producers = Producers(_value(raw)) if raw else None
    sound = producers is not None and len(producers.errors) and not (producers.errors != OK).any()
    return producers if sound else None


def _opened(producers: Producers) -> dict[int, int]:
    ids, opened = producers.fields["producer_id"], producers.fields["current_txn_first_offset"]
    return {int(ids[k]): int(opened[k]) for k in np.flatnonzero(opened >= 0)}


def _value(raw: bytes) -> pa.Array:
    return pa.array([raw], pa.binary())
