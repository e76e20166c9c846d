"""Write one partition's rows as segments: batches, and the indexes that a broker would build for them.

An index gets an entry after each ``indexIntervalBytes`` of a segment, and the time index gets one at the end, as in
`LogSegment.recover`. So the files are the same, byte for byte, as those that a broker rebuilds from the segment. A snapshot
beside the segment states that there are no producers at its start. Without it, tiered storage does not copy the previous segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa

from sparkwire.base.printable import value_error
from sparkwire.core.column import bools_of
from sparkwire.core.sources.job import Staging
from sparkwire.kafka.batch_bytes import RecordsToWrite, Sets, bound_records
from sparkwire.kafka.files.kafka_log import NAME
from sparkwire.kafka.layout import BATCH, BATCH_SIZE, NO_TIMESTAMP, OVERHEAD
from sparkwire.kafka.producer_snapshot import NO_PRODUCERS
from sparkwire.kafka.to_records import LARGEST_DELTA, encode, records_of
from sparkwire.kafka.write.write_options import LogWrite
from sparkwire.kernels import Bools, Bytes, Ints, crc32c, int64, kernel

SNAPSHOT: Final = ".snapshot"
INDEXES: Final = {
    ".index": np.dtype([("offset", ">i4"), ("position", ">i4")]),
    ".timeindex": np.dtype([("timestamp", ">i8"), ("offset", ">i4")]),
}
"""types of their entries; offsets are relative to the offset in the segment's name"""
_AT_ONCE: Final = 8 << 20
"""size of the rows that one call encodes [bytes]"""


class StagedSegment(NamedTuple):
    """A complete segment that does not have its final name yet."""

    topic: str
    partition: int
    task: int
    first: int
    """offset of its first record"""
    last: int
    files: dict[str, str]
    """the staged file of each suffix"""
    epochs: tuple[tuple[int, int], ...]
    """leader epochs that begin in the segment, with the offset of their first record"""


@kernel
def cut_batches(sizes: Ints, offset: Ints, apart: Bools, most: int, ends: Ints) -> int:
    """Write the ends of batches to ``ends`` and return their number. The last batch may have room for more records.

    ``apart`` marks records that cannot share a batch with the previous record.
    """
    count, first, filled = 0, int64(0), int64(0)
    for i in range(sizes.size):
        full = filled + sizes[i] > most or offset[i] - offset[first] > LARGEST_DELTA
        if i > first and (full or apart[i]):
            ends[count] = i
            count += 1
            first, filled = int64(i), int64(0)
        filled += sizes[i]
    ends[count] = sizes.size
    return count + 1


class PartitionWriter:
    """Writes a task's segments of one partition. ``epoch`` is the epoch of all rows, None if each row has one."""

    def __init__(
        self, write: LogWrite, staging: Staging, topic: str, partition: int, task: int, epoch: int | None
    ) -> None:
        self._write = write
        self._staging = staging
        self._epoch = epoch
        self._names = topic, partition, task
        self._waiting: list[pa.RecordBatch] = []
        self.bytes = 0
        """size of the pending rows"""
        self._next = 0
        self._segment: _Segment | None = None
        self._done: list[StagedSegment] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows; ValueError if their offsets do not ascend."""
        if self._write.assign:
            numbers = pa.array(np.arange(self._next, self._next + rows.num_rows))
            columns = [numbers if name == "offset" else rows.column(name) for name in rows.schema.names]
            rows = pa.RecordBatch.from_arrays(columns, names=rows.schema.names)
        offsets = np.asarray(rows.column("offset"))
        before = np.concatenate([[self._next - 1], offsets[:-1]])
        if (offsets <= before).any():
            at = int((offsets <= before).argmax())
            if offsets[at] == before[at]:
                self._reject(
                    int(offsets[at]),
                    f"it comes after {before[at]}, a row with the same offset: read only one replica of the partition, or drop "
                    "the duplicates",
                )
            self._reject(
                int(offsets[at]),
                f"it comes after {before[at]}: the rows of a partition must be in the order of their offsets; "
                "sparkwire.kafka.write sorts them",
            )
        self._next = int(offsets[-1]) + 1
        self._waiting.append(rows)
        self.bytes += rows.nbytes

    def close(self) -> list[StagedSegment]:
        """Write the pending rows."""
        self.pause()
        return self._done

    def pause(self) -> None:
        """Close the segment. The next rows begin another one."""
        self.encode(is_last=True)
        self._end_segment()

    def encode(self, is_last: bool) -> None:
        """Write the pending rows, except those of a batch that has room for more."""
        whole = _joined(self._waiting)
        self._waiting.clear()
        self.bytes = 0
        for k, rows in enumerate(whole):
            offset, time, epochs = (np.asarray(rows.column(name)) for name in ("offset", "timestamp", "epoch"))
            if self._epoch is not None:
                epochs = np.full(len(epochs), self._epoch)
            stamped = bools_of(rows.column("log_append_time"))
            records = records_of(offset, time, rows.column("key"), rows.column("value"), rows.column("headers"))
            sizes = np.empty(len(offset), np.int64)
            bound_records(records, sizes)
            ends = np.empty(len(sizes) + 1, np.int64)
            most = min(self._write.batch_bytes, self._write.max_message_bytes - BATCH_SIZE)
            count = int(cut_batches(sizes, offset, _apart(records, stamped, epochs), most, ends[1:]))
            ends[0] = 0
            if not is_last and k == len(whole) - 1:
                count -= 1
                rest = np.arange(ends[count], rows.num_rows)
                self._waiting.append(rows.take(pa.array(rest)))  # a slice would keep all rows in memory
                self.bytes += self._waiting[-1].nbytes
            self._write_batches(records, ends[: count + 1], stamped, epochs, np.cumsum(sizes))

    def _write_batches(self, records: RecordsToWrite, ends: Ints, stamped: Bools, epochs: Ints, filled: Ints) -> None:
        """Write batches, a few megabytes at a time, so that encoded bytes are in the cache when it writes them."""
        for first, stop in _pieces(ends, filled):
            begin, end = ends[first:stop], ends[first + 1 : stop + 1]
            count = len(begin)
            sets = Sets(
                begin, end, np.full(count, 2, np.int8), np.full(count, self._write.codec, np.int8), stamped[begin],
                epochs[begin].astype(np.int32),
            )  # fmt: skip
            self._append(encode(sets, records), _Batches.of(sets, records))

    def _append(self, data: pa.Array, batches: _Batches) -> None:
        _, buffer, content = data.buffers()
        places = np.frombuffer(buffer, np.int32)[: len(data) + 1].astype(np.int64)
        sizes = np.diff(places)
        if sizes.max(initial=0) > self._write.max_message_bytes:
            at = int((sizes > self._write.max_message_bytes).argmax())
            self._reject(
                int(batches.first[at]),
                f"its batch has {sizes[at]} bytes, and a broker takes {self._write.max_message_bytes} (maxMessageBytes, the "
                "topic's max.message.bytes)",
            )
        at = 0
        while at < len(sizes):
            if self._segment is None:
                self._segment = _Segment(self._write, self._staging, self._names, int(batches.first[at]))
            room = self._segment.room(places[at:], batches.last[at:])
            if room == 0:
                self._end_segment()
                continue
            self._segment.append(
                content.slice(int(places[at]), int(places[at + room] - places[at])),
                sizes[at : at + room],
                batches.part(at, room),
            )
            at += room

    def _end_segment(self) -> None:
        if self._segment is not None:
            self._done.append(self._segment.close())
            self._segment = None

    def _reject(self, offset: int, what: str) -> NoReturn:
        topic, partition, _ = self._names
        raise value_error(f"{NAME} cannot write topic {topic}, partition {partition}, offset {offset}: {what}")


def _joined(waiting: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The rows as one batch, or as several if one batch cannot hold them: it has up to 2 GiB of keys or values."""
    return pa.Table.from_batches(waiting).combine_chunks().to_batches() if waiting else []


def _apart(records: RecordsToWrite, stamped: Bools, epochs: Ints) -> Bools:
    """Records that must begin a batch, because a batch has one leader epoch, one timestamp type and one append time."""
    apart = np.zeros(len(stamped), np.bool_)
    times = records.timestamp
    apart[1:] = (epochs[1:] != epochs[:-1]) | (stamped[1:] != stamped[:-1]) | (stamped[1:] & (times[1:] != times[:-1]))
    return apart


def _pieces(ends: Ints, filled: Ints) -> Iterator[tuple[int, int]]:
    """Ranges of batches of about `_AT_ONCE` bytes."""
    if len(ends) > 1:
        pieces = filled[ends[1:] - 1] // _AT_ONCE
        yield from pairwise([0, *(np.flatnonzero(np.diff(pieces)) + 1).tolist(), len(pieces)])


class _Batches(NamedTuple):
    """The values of each batch that indexes need."""

    first: Ints
    """offset"""
    last: Ints
    """offset"""
    latest: Ints
    """largest timestamp [ms since epoch]"""
    epoch: Ints

    @classmethod
    def of(cls, sets: Sets, records: RecordsToWrite) -> _Batches:
        low, high = int(sets.first[0]), int(sets.last[-1])
        latest = np.maximum.reduceat(records.timestamp[low:high], sets.first - low)
        return cls(
            records.offset[sets.first], records.offset[sets.last - 1], latest, sets.leader_epoch.astype(np.int64)
        )

    def part(self, at: int, count: int) -> _Batches:
        return _Batches(*(column[at : at + count] for column in self))


class _Segment:
    """The segment in progress."""

    def __init__(self, write: LogWrite, staging: Staging, names: tuple[str, int, int], base: int) -> None:
        self._write = write
        self._staging = staging
        self._names = names
        self._base = base
        self._last = base
        self._size = 0
        self._indexed = 0
        self._largest = NO_TIMESTAMP, base
        self._offsets: list[tuple[int, int]] = []
        self._times: list[tuple[int, int]] = []
        self._epochs: list[tuple[int, int]] = []
        self._files: dict[str, str] = {}
        self._stream = self._create(".log")

    def _create(self, suffix: str) -> Any:
        self._files[suffix], stream = self._staging.create(f"{self._base:020}{suffix}")
        return stream

    def room(self, places: Ints, last: Ints) -> int:
        """The number of batches, which begin at ``places``, that fit; at least one if the segment is empty."""
        ends = places[1:] - places[0]
        fitting = int(np.searchsorted(ends, self._write.segment_bytes - self._size, "right"))
        fitting = min(fitting, int(np.searchsorted(last - self._base, LARGEST_DELTA, "right")))
        return max(fitting, 1) if self._size == 0 else fitting

    def append(self, data: pa.Buffer, sizes: Ints, batches: _Batches) -> None:
        self._stream.write(data)
        columns = (column.tolist() for column in (sizes, *batches))
        for size, first, last, latest, epoch in zip(*columns, strict=True):
            if latest > self._largest[0]:
                self._largest = latest, last
            if self._size - self._indexed > self._write.index_interval_bytes:
                self._offsets.append((last - self._base, self._size))
                self._index_time()
                self._indexed = self._size
            if epoch >= 0 and (not self._epochs or self._epochs[-1][0] != epoch):
                self._epochs.append((epoch, first))
            self._size += size
            self._last = last

    def _index_time(self) -> None:
        before = self._times[-1][0] if self._times else NO_TIMESTAMP
        if self._largest[0] > before:
            self._times.append((self._largest[0], self._largest[1] - self._base))

    def close(self) -> StagedSegment:
        self._stream.close()
        self._index_time()
        for (suffix, layout), entries in zip(INDEXES.items(), (self._offsets, self._times), strict=True):
            with self._create(suffix) as stream:
                stream.write(np.array(entries, layout).tobytes())
        with self._create(SNAPSHOT) as stream:
            stream.write(NO_PRODUCERS)
        return StagedSegment(*self._names, self._base, self._last, self._files, tuple(self._epochs))


def empty_segment(
    write: LogWrite, staging: Staging, names: tuple[str, int, int], base: int, last: int | None, epoch: int
) -> StagedSegment:
    """A segment without records: an empty batch with the offset ``last``, or no bytes if ``last`` is None."""
    segment = _Segment(write, staging, names, base)
    if last is not None:
        batches = _Batches(*(np.array([number]) for number in (last, last, NO_TIMESTAMP, epoch)))
        segment.append(pa.py_buffer(empty_batch(last, epoch)), np.array([BATCH_SIZE]), batches)
    closed = segment.close()
    return closed if last is not None else closed._replace(last=base - 1, epochs=((epoch, base),) if epoch >= 0 else ())


def empty_batch(offset: int, epoch: int) -> bytes:
    """A batch with an offset and no record, as Kafka's cleaner leaves it after it has removed all records."""
    numbers = dict.fromkeys(
        ("base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence"), -1
    ) | {
        "offset": offset,
        "size": BATCH_SIZE - OVERHEAD,
        "partition_leader_epoch": epoch,
        "magic": 2,
    }
    data = np.zeros(BATCH_SIZE, np.uint8)
    for name, number in numbers.items():
        place = BATCH[name]
        data[place.offset : place.end] = list(number.to_bytes(place.field.width, "big", signed=True))
    crc, covered = BATCH["crc"], BATCH["attributes"].offset
    data[crc.offset : crc.end] = list(int(_checksum(data, covered)).to_bytes(4, "big"))
    return data.tobytes()


@kernel
def _checksum(data: Bytes, begin: int) -> int:
    """CRC-32C of the bytes from ``begin`` on."""
    return int64(crc32c(data, begin, data.size - begin))
