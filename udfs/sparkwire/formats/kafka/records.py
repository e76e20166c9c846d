"""``kafka_records``: every record of log bytes, compressed sets opened.

A column is read a cacheful of entries at a time: find and check them, decompress the compressed ones into memory that is
used again and again, append their records to the columns of the answer. What is the same for all records of an entry is
kept once an entry and repeated at the end.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire import codecs
from sparkwire.codecs import Arena, Blocks, inflate
from sparkwire.column import Binary, binary_of, empty, from_codes, lists, primitive, struct, timestamps
from sparkwire.errors import DECOMPRESS_FAILED, ERRORS, OK, TOO_LARGE
from sparkwire.formats.kafka import headers as header
from sparkwire.formats.kafka.entries import POSITION, SLAB_ENTRIES, Slab, before_first, part, slab_of
from sparkwire.formats.kafka.headers import Column, Headers
from sparkwire.formats.kafka.layout import CODECS, CONTROL_TYPES, NONE, SMALLEST_RECORD, TIMESTAMP_TYPES
from sparkwire.formats.kafka.output import INT32_MAX, binary, text, too_much
from sparkwire.formats.kafka.parse import (
    COMMON,
    COUNTERS,
    EVERYTHING,
    HAS_HEADERS,
    HAS_KEY,
    HAS_OFFSET,
    HAS_SEQUENCE,
    HAS_TIME,
    HAS_VALUE,
    HEADER_KEY_BYTES,
    HEADER_VALUE_BYTES,
    HEADERS,
    KEY_BYTES,
    RECORDS,
    VALUE_BYTES,
    Out,
    Payloads,
    fits,
    most_records,
    payload_bytes,
    plan_blocks,
    read,
    read_plain,
)
from sparkwire.kernels import COPY_SLACK

Bools = npt.NDArray[np.bool_]

MAX_BATCH_BYTES = 268_435_456
_ARENA_BYTES = 4 << 20  # still in the cache when it is read, and too much for Python's part of a filling to count
_PIECE_BYTES = 1 << 20  # as is what has been checked
_FIRST_BYTES = 1 << 16  # by them it is estimated what all will need

_RECORD_COLUMNS = {
    "offset": np.int64, "timestamp": np.int64, "stamp": np.int8, "sequence": np.int32, "control": np.int8,
    "error": np.int8, "there": np.uint8, "key_ends": np.int32, "value_ends": np.int32, "header_ends": np.int32,
}  # fmt: skip
_HEADER_COLUMNS = {"header_key_ends": np.int32, "header_value_ends": np.int32, "header_there": np.bool_}
_BYTE_COLUMNS = {
    "key": KEY_BYTES, "value": VALUE_BYTES, "header_key": HEADER_KEY_BYTES, "header_value": HEADER_VALUE_BYTES,
}  # fmt: skip
_DTYPES = _RECORD_COLUMNS | _HEADER_COLUMNS | dict.fromkeys(_BYTE_COLUMNS, np.uint8)
COLUMNS_OF = {counter: (name,) for name, counter in _BYTE_COLUMNS.items()} | {
    RECORDS: tuple(_RECORD_COLUMNS),
    HEADERS: tuple(_HEADER_COLUMNS),
}
"""which columns of `Out` grow with a counter"""


class Records:
    """All records of a column of log bytes.

    Parameters
    ----------
    verify
        whether an entry, or an inner message, with a wrong checksum is an error
    max_batch_bytes
        bound of what one compressed entry may become [bytes]
    """

    def __init__(self, data: pa.Array, verify: bool = True, max_batch_bytes: int = MAX_BATCH_BYTES) -> None:
        self.source = binary_of(data)
        self.entries = Headers(self.source)
        self._verify = verify
        self._limit = min(max_batch_bytes, INT32_MAX)
        self._payload = self.source.data.data
        self._arena = Arena(_ARENA_BYTES)
        self._row_bytes = (-1, 0)  # the row last met, its size and what its compressed entries have become
        self._room = _first_room(self.source)
        self._columns = self._first_columns()
        self._counts: list[npt.NDArray[np.int32]] = []
        self._read_all()

    # -- reading

    def _read_all(self) -> None:
        data, offsets = self.source.data, self.source.offsets
        state, search = before_first(self.source)
        payloads = payloads_of(SLAB_ENTRIES)
        budget = _FIRST_BYTES
        while state[POSITION] < offsets[-1]:
            slab, rows = slab_of(SLAB_ENTRIES), empty(SLAB_ENTRIES, np.int32)
            found, done, compressed = read_plain(
                data, offsets, self._verify, budget, state, search, slab, payloads, self._columns, rows
            )
            if compressed:
                some = Payloads._make(column[done:found] for column in payloads)
                self._take(part(slab, done, found), some, rows[done:found])
            elif done < found:
                self._read(slab, payloads, rows, done, found)
            self.entries.add(part(slab, 0, found))
            self._counts.append(rows[:found])
            budget = _PIECE_BYTES

    def _take(self, slab: Slab, payloads: Payloads, rows: npt.NDArray[np.int32]) -> None:
        """Read entries some of which are compressed."""
        n = len(slab.begin)
        planned = planned_blocks(self.source.data, slab, payloads)
        compressed = np.flatnonzero((payloads.codec != NONE) & (slab.error == OK))
        # As Python's own numbers: what is done for a batch may take no longer than the library does.
        blocks = list(zip(*(column.tolist() for column in planned), strict=True)) if len(compressed) else []
        start = 0
        while len(compressed):
            done = self._inflate(slab, payloads, blocks, compressed)
            compressed = compressed[done:]
            if len(compressed):
                stop = int(compressed[0])
                self._read(slab, payloads, rows, start, stop)
                start = stop
        self._read(slab, payloads, rows, start, n)

    def _inflate(
        self, slab: Slab, payloads: Payloads, blocks: list[tuple[int, int, int, int]], entries: npt.NDArray[np.int64]
    ) -> int:
        """Open some of the compressed ``entries``, until the arena is as full as the cache; how many."""
        ends = payloads.blocks[entries].tolist()
        begins = np.where(entries > 0, payloads.blocks[entries - 1], 0).tolist()
        sizes: list[int] = []
        starts: list[int] = []
        arena, (row, before) = self._arena, self._row_bytes
        for its_row, begin, end in zip(slab.row[entries].tolist(), begins, ends, strict=True):
            if arena.used > _ARENA_BYTES:
                break
            if its_row != row:
                # Whatever a row holds, its own records fit into one Arrow column.
                row, before = its_row, int(self.source.offsets[its_row + 1] - self.source.offsets[its_row])
            starts.append(arena.used)
            size = inflate(self._payload, blocks[begin:end], arena, max(0, min(self._limit, INT32_MAX - before)))
            sizes.append(size)
            before += max(size, 0)
        self._row_bytes = row, before
        done = entries[: len(sizes)]
        first, size_of = np.array(starts, np.int64), np.array(sizes, np.int64)
        failed = size_of < 0
        slab.error[done[failed]] = np.where(size_of[failed] == codecs.TOO_LARGE, TOO_LARGE, DECOMPRESS_FAILED)
        opened = done[~failed]
        payloads.inflated[opened] = True
        payloads.first[opened] = first[~failed]
        payloads.last[opened] = (first + size_of)[~failed]
        return len(sizes)

    def _read(self, slab: Slab, payloads: Payloads, rows: npt.NDArray[np.int32], start: int, stop: int) -> None:
        arena = self._arena.bytes.view()
        arena.flags.writeable = False
        data = self.source.data
        if not fits(data, slab, payloads, start, stop, self._columns):
            more = {RECORDS: most_records(data, slab, payloads, start, stop) + 1}
            more |= dict.fromkeys((KEY_BYTES, VALUE_BYTES), payload_bytes(payloads, start, stop))
            self._make_room(more, slab.begin[start])
        while start < stop:
            start = read(data, arena, slab, payloads, self._verify, self._columns, rows, start, stop)
            if start < stop:
                size = payload_bytes(payloads, start, start + 1)
                more = {HEADERS: size // 2 + 2}
                self._make_room(more | dict.fromkeys((HEADER_KEY_BYTES, HEADER_VALUE_BYTES), size), slab.begin[start])
        self._arena.clear()

    # -- room

    def _first_columns(self) -> Out:
        """Room for what is read first."""
        columns: dict[str, Any] = {}
        for counter, size in self._room.items():
            for name in COLUMNS_OF[counter]:
                columns[name] = empty(size, _DTYPES[name])
        for name in ("key_ends", "value_ends", "header_ends", "header_key_ends", "header_value_ends"):
            columns[name][0] = 0
        used = np.zeros(COUNTERS, np.int64)
        used[COMMON] = EVERYTHING
        return Out(**columns, used=used)

    def _make_room(self, more: dict[int, int], position: int) -> None:
        """See that so many items more fit, by counter; ``position`` says how much has been read."""
        used = self._columns.used.tolist()
        if any(used[counter] + items > INT32_MAX for counter, items in more.items()):
            raise too_much("records")
        larger = {}
        for counter, items in more.items():
            least = used[counter] + items + COPY_SLACK
            wanted = self._expected(counter, least, used[counter], position)
            # Where one has to grow, others that soon would have to grow with it.
            if least > self._room[counter] or wanted > 2 * self._room[counter]:
                self._room[counter] = wanted
                for name in COLUMNS_OF[counter]:
                    larger[name] = _grown(getattr(self._columns, name), used[counter] + 1, wanted)
        self._columns = self._columns._replace(**larger)

    def _expected(self, counter: int, least: int, used: int, position: int) -> int:
        """How many items all will take, if it goes on like this.

        But no more than four times ``least``, or than the source has: what is decompressed may promise anything.
        """
        total = int(self.source.offsets[-1] - self.source.offsets[0])
        done = (int(position) - int(self.source.offsets[0])) / max(1, total)
        expected = int(used / done * 1.02) if done else 0
        # What is read next has to fit wherever its bytes go: all of them may be keys.
        expected += least - used + (2 * _PIECE_BYTES if counter in (KEY_BYTES, VALUE_BYTES) else 0)
        return min(max(least, min(expected, max(4 * least, total))), INT32_MAX + COPY_SLACK)

    # -- answers

    @cached_property
    def rows(self) -> int:
        return int(self._columns.used[RECORDS])

    def _there(self, bit: int) -> Bools | None:
        """Where an answer is not NULL, None for everywhere."""
        if self._columns.used[COMMON] & bit:
            return None
        there: Bools = self._columns.there[: self.rows] & bit != 0
        return there

    @cached_property
    def _repeats(self) -> npt.NDArray[np.int32]:
        """How many rows each entry became."""
        return np.concatenate([np.empty(0, np.int32), *self._counts])

    def _spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.repeat(values, self._repeats)

    def _of_entry(self, column: Column) -> pa.Array:
        valid = None if column.valid.all() else self._spread(column.valid)
        return primitive(self._spread(column.values), valid)

    def _bytes(self, name: str, ends: str, bit: int) -> pa.Array:
        offsets = getattr(self._columns, ends)[: self.rows + 1]
        return binary(offsets, getattr(self._columns, name), self._there(bit))

    def offset(self) -> pa.Array:
        return primitive(self._columns.offset[: self.rows], self._there(HAS_OFFSET))

    def timestamp(self) -> pa.Array:
        return timestamps(self._columns.timestamp[: self.rows], "ms", self._there(HAS_TIME))

    def timestamp_ms(self) -> pa.Array:
        return primitive(self._columns.timestamp[: self.rows], self._there(HAS_TIME))

    def timestamp_type(self) -> pa.Array:
        return from_codes(self._columns.stamp[: self.rows], TIMESTAMP_TYPES)

    def key(self) -> pa.Array:
        return self._bytes("key", "key_ends", HAS_KEY)

    def value(self) -> pa.Array:
        return self._bytes("value", "value_ends", HAS_VALUE)

    def headers(self) -> pa.Array:
        columns = self._columns
        n = int(columns.used[HEADERS])
        there = columns.header_there[:n]
        keys = binary(columns.header_key_ends[: n + 1], columns.header_key, None)
        values = binary(columns.header_value_ends[: n + 1], columns.header_value, there)
        return lists(
            columns.header_ends[: self.rows + 1],
            struct({"key": text(keys), "value": values}),
            self._there(HAS_HEADERS),
        )

    def position(self) -> pa.Array:
        return primitive(self._spread(self.entries.position))

    def magic(self) -> pa.Array:
        return self._of_entry(self.entries.number(header.MAGIC_BYTE, np.int8))

    def compression(self) -> pa.Array:
        codes = np.where(self.entries.codec_known, self.entries.codec.values, -1).astype(np.int8)
        return from_codes(self._spread(codes), CODECS)

    def producer_id(self) -> pa.Array:
        return self._of_entry(self.entries.number(header.PRODUCER_ID))

    def producer_epoch(self) -> pa.Array:
        return self._of_entry(self.entries.number(header.PRODUCER_EPOCH, np.int16))

    def sequence(self) -> pa.Array:
        return primitive(self._columns.sequence[: self.rows], self._there(HAS_SEQUENCE))

    def partition_leader_epoch(self) -> pa.Array:
        return self._of_entry(self.entries.number(header.LEADER_EPOCH, np.int32))

    def is_transactional(self) -> pa.Array:
        return self._of_entry(self.entries.is_transactional)

    def is_control(self) -> pa.Array:
        return self._of_entry(self.entries.is_control)

    def control_type(self) -> pa.Array:
        return from_codes(self._columns.control[: self.rows], CONTROL_TYPES)

    def error(self) -> pa.Array:
        return from_codes(self._columns.error[: self.rows], ERRORS)

    def lists(self, values: pa.Array) -> pa.Array:
        """``values``, one a record, as an ARRAY for each row of the column."""
        entries = np.searchsorted(self.entries.slab.row, np.arange(self.source.rows + 1))
        ends = np.concatenate([np.zeros(1, np.int32), np.cumsum(self._repeats, dtype=np.int32)])
        return lists(ends[entries], values)


COLUMNS = (
    "offset", "timestamp", "timestamp_ms", "timestamp_type", "key", "value", "headers", "position", "magic",
    "compression", "producer_id", "producer_epoch", "sequence", "partition_leader_epoch", "is_transactional",
    "is_control", "control_type", "error",
)  # fmt: skip


def record_columns(records: Records, names: tuple[str, ...] = COLUMNS) -> dict[str, pa.Array]:
    """Some answers of all records, one item a record."""
    return {name: getattr(records, name)() for name in names}


def decode_records(data: pa.Array, verify_crc: bool, max_batch_bytes: int) -> pa.Array:
    if max_batch_bytes < 1:
        raise ValueError(f"kafka_records takes max_batch_bytes BIGINT of 1 or more, got {max_batch_bytes}")
    records = Records(data, verify_crc, max_batch_bytes)
    return records.lists(struct(record_columns(records)))


def payloads_of(entries: int) -> Payloads:
    """Room for what is in so many entries."""
    return Payloads._make(empty(entries, dtype) for dtype in (np.int8, np.int64, np.int64, np.bool_, np.int64))


def planned_blocks(data: npt.NDArray[np.uint8], slab: Slab, payloads: Payloads) -> Blocks:
    """What compressed payloads are made of."""
    planned = codecs.blocks(8 * len(slab.begin))  # a batch has one or a few
    count = plan_blocks(data, slab, payloads, planned)
    if count > len(planned.kind):
        planned = codecs.blocks(count)
        plan_blocks(data, slab, payloads, planned)
    return Blocks._make(column[:count] for column in planned)


def _first_room(source: Binary) -> dict[int, int]:
    """Items by counter: for the records that are read first, if none is compressed or has headers."""
    size = min(2 * _FIRST_BYTES, int(source.offsets[-1] - source.offsets[0]))  # the last entry of them runs over
    room = dict.fromkeys(COLUMNS_OF, 1)
    room[RECORDS] = size // SMALLEST_RECORD + 2 + COPY_SLACK
    room[KEY_BYTES] = room[VALUE_BYTES] = size + COPY_SLACK
    return room


def _grown(column: npt.NDArray[Any], used: int, size: int) -> npt.NDArray[Any]:
    """The same with room for ``size`` items."""
    larger = empty(size, column.dtype)
    larger[:used] = column[:used]
    return larger
