"""Find the records that a `read_committed` consumer does not get: those of aborted transactions, and all from the first open
transaction on.

A transaction of a producer begins with its first transactional batch and ends with a marker, COMMIT or ABORT. Both are in the
partition's own log. So one pass over the entries of all segments finds the aborted transactions, and those open at the end.

A broker's files beside the segments replace a part of that pass, if they agree with the log:

    00000000000000000280.txnindex   the transactions aborted in segment 280; does not exist if there are none
    00000000000000000280.snapshot   the producers before offset 280, with the first offsets of their open transactions

A transaction index has no checksum, and either file may be of another partition. So an entry counts only if the log has its
batches: the transaction's first batch and its abort marker. An index that lacks entries cannot be distinguished from a complete
one; consumers rely on it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import OK
from sparkwire.kafka.files.entries import Entries, read_entries
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.files.naming import Segment
from sparkwire.kafka.files.seek import END, PAGE, sibling_of
from sparkwire.kafka.indexes import TXN_INDEX, aborted_txns
from sparkwire.kafka.layout import BATCH_SIZE, CONTROL_TYPES, TRANSACTIONAL
from sparkwire.kafka.producer_snapshot import Producers
from sparkwire.kafka.tiered.manifest import TRANSACTIONS
from sparkwire.kernels import Bools, Bytes, i16, int64, kernel
from sparkwire.kernels.varint import varint, varlong

Ints = npt.NDArray[np.int64]

ABORT, _COMMIT = CONTROL_TYPES.index("ABORT"), CONTROL_TYPES.index("COMMIT")
DATA = -1
"""the value in place of a control type for a batch with data"""


class Aborted(NamedTuple):
    """An aborted transaction: its producer's transactional batches with ``first <= offset <= last``."""

    producer_id: int
    first: int
    last: int
    """the marker's offset"""


class PartitionTransactions(NamedTuple):
    """The transactions of a partition."""

    aborted: tuple[Aborted, ...]
    """in the order of their markers"""
    first_open: int | None
    """offset at which the first open transaction begins"""


class TransactionalBatch(NamedTuple):
    """A transactional batch in the log."""

    producer_id: int
    first: int
    last: int
    marker: int
    """the control type, `DATA` for a batch with data"""


def transactional_batches(block: Entries) -> Iterator[TransactionalBatch]:
    """The transactional batches among entries with all their bytes."""
    headers = block.headers
    if not headers.may_have(TRANSACTIONAL):
        return
    chosen = np.flatnonzero(block.is_valid & headers.is_transactional().values)
    markers = np.full(len(chosen), DATA, np.int64)
    begin, stop, is_control = block.frames.begin, block.frames.stop, headers.is_control().values
    read_markers(block.source.data, begin[chosen], stop[chosen], is_control[chosen], markers)
    columns = (headers.field("producer_id").values, block.first, block.last)
    yield from map(TransactionalBatch, *(column[chosen].tolist() for column in columns), markers.tolist())


@kernel
def read_markers(data: Bytes, begin: Ints, stop: Ints, is_control: Bools, out: Ints) -> None:
    """Note the control types of the batches that are control batches."""
    for i in range(begin.size):
        if is_control[i]:
            out[i] = _marker(data, int64(begin[i]) + BATCH_SIZE, int64(stop[i]))


@kernel
def _marker(data: Bytes, pos: int, end: int) -> int:
    """Control type of the record at ``pos``, -2 if it cannot be read."""
    _, pos = varint(data, pos, end)
    if pos < 0 or pos >= end:
        return -2
    _, pos = varlong(data, pos + 1, end)
    if pos < 0:
        return -2
    _, pos = varint(data, pos, end)
    if pos < 0:
        return -2
    size, pos = varint(data, pos, end)
    if pos < 0 or size < 4 or end - pos < 4:
        return -2
    return int64(i16(data, pos + 2, False))


class Tracker:
    """The transactions of a partition up to the entries read so far."""

    def __init__(self) -> None:
        self._opened: dict[int, int] = {}
        self._aborted: list[Aborted] = []

    def follow(self, log: Log, position: int, stop: int, before: int = END) -> int:
        """Read the entries that begin from ``position`` to before ``stop``. Return the position of the next entry.

        ``before`` is the offset from which on another segment is the log.
        """
        for block in read_entries(log, position, stop):
            for producer, first, last, marker in transactional_batches(block):
                if first >= before:
                    continue
                if marker == DATA:
                    self._opened.setdefault(producer, first)
                elif marker in (ABORT, _COMMIT):
                    first_offset = self._opened.pop(producer, None)
                    if marker == ABORT and first_offset is not None:
                        self._aborted.append(Aborted(producer, first_offset, last))
            position = block.end
        return position

    def skip_to(self, aborted: Iterable[Aborted], opened: Mapping[int, int]) -> None:
        """Skip the next entries, and use their aborted transactions, and those open after them, from elsewhere."""
        self._aborted += aborted
        self._opened = dict(opened)

    def transactions(self) -> PartitionTransactions:
        return PartitionTransactions(tuple(self._aborted), min(self._opened.values(), default=None))


def is_aborted(aborted: Iterable[Aborted], producer_ids: Ints, offsets: Ints) -> npt.NDArray[np.bool_]:
    """Which transactional records, by producer and offset, are of aborted transactions."""
    by_producer: dict[int, list[tuple[int, int]]] = {}
    for transaction in aborted:
        by_producer.setdefault(transaction.producer_id, []).append((transaction.first, transaction.last))
    out = np.zeros(len(offsets), np.bool_)
    for producer in np.unique(producer_ids).tolist():
        spans = np.array(by_producer.get(producer, []), np.int64).reshape(-1, 2)
        if len(spans):
            at = np.searchsorted(spans[:, 0], offsets, "right") - 1
            out |= (producer_ids == producer) & (at >= 0) & (offsets <= spans[at, 1])
    return out


# -- a broker's files

_NEWEST: Final = 8
"""number of producers without an open transaction to look up, to check that the snapshot is of this partition"""


class LoggedBatch(NamedTuple):
    """A batch of magic 2 in the log."""

    producer_id: int
    first: int
    marker: int | None
    """`DATA`, or a control type; None if the batch is not transactional"""


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
        batch_at(transaction.last) == LoggedBatch(transaction.producer_id, transaction.last, ABORT)
        and (
            transaction.first < log_start
            or batch_at(transaction.first) == LoggedBatch(transaction.producer_id, transaction.first, DATA)
        )
        for transaction in aborted
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
    batches = [batch_at(int(last[k])) for k in newest]
    written = [batch is not None and batch.producer_id == ids[k] for batch, k in zip(batches, newest, strict=True)]
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
