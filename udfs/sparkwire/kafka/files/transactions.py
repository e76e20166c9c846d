"""Find the records that a `read_committed` consumer does not get: those of aborted transactions, and all from the first open
transaction on.

A transaction of a producer begins with its first transactional batch and ends with a marker, COMMIT or ABORT. Both are in the
partition's own log. So one pass over the entries of all segments finds the aborted transactions, and those open at the end. A
broker's own files (`txn_files`) replace a part of that pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.kafka.files.entries import Entries, read_entries
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.files.seek import END
from sparkwire.kafka.layout import BATCH_SIZE, CONTROL_TYPES, TRANSACTIONAL
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
    for one in aborted:
        by_producer.setdefault(one.producer_id, []).append((one.first, one.last))
    out = np.zeros(len(offsets), np.bool_)
    for producer in np.unique(producer_ids).tolist():
        spans = np.array(by_producer.get(producer, []), np.int64).reshape(-1, 2)
        if len(spans):
            at = np.searchsorted(spans[:, 0], offsets, "right") - 1
            out |= (producer_ids == producer) & (at >= 0) & (offsets <= spans[at, 1])
    return out
