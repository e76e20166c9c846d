"""The rows of `kafka_log`: reads the records or batches of a part of a segment, and selects columns and rows."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import BAD_LENGTH, BAD_MAGIC, ERRORS, TRUNCATED, WRONG_FORMAT
from sparkwire.core.builders import columns_of
from sparkwire.core.column import primitive
from sparkwire.core.sources.storage import OpenFile
from sparkwire.core.sources.table import DROPMALFORMED, FAILFAST, PERMISSIVE, reject
from sparkwire.errors import CorruptDataError
from sparkwire.kafka.batch_headers import BATCHES as BATCHES_TABLE
from sparkwire.kafka.entry_payloads import OffsetRange
from sparkwire.kafka.files.entries import HEADERS, VERIFIED, Entries, Entry, RecordsDepth, read_entries
from sparkwire.kafka.files.log import SEARCHED, Log
from sparkwire.kafka.files.plan import SegmentPart
from sparkwire.kafka.files.seek import END, FIRST, first_entry
from sparkwire.kafka.files.transactions import is_aborted
from sparkwire.kafka.layout import CONTROL, ENTRY, MAGIC, TRANSACTIONAL
from sparkwire.kafka.records import RECORDS_TABLE, Records
from sparkwire.kafka.search import ANYTHING, Search

Ints = npt.NDArray[np.int64]


class Filtered(NamedTuple):
    """The bounds that follow from a query's filters. Rows outside them need not be read."""

    first_offset: int = FIRST
    end_offset: int = END
    first_timestamp: int | None = None
    """[ms since epoch]"""
    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None


FAIL, LONGEST, ALL = "fail", "longest", "all"
"""what to do if a partition is in several directories"""


class LogQuery(NamedTuple):
    """The options of a query, and its pushed-down columns and filters."""

    paths: tuple[str, ...]
    rows: str
    columns: tuple[str, ...]
    mode: str
    starting_offset: int | None
    ending_offset: int | None
    starting_timestamp: int | None
    ending_timestamp: int | None
    committed: bool
    control_records: bool
    verify: bool
    max_batch_bytes: int
    max_split_bytes: int
    max_bytes_per_trigger: int | None
    fail_on_data_loss: bool
    search: Search = Search()
    remote_path: str = ""
    encryption_keys: str = ""
    filtered: Filtered = Filtered()
    replicas: str = FAIL


_NEWEST_MAGIC = 2
_FRAMING = (TRUNCATED, BAD_MAGIC, BAD_LENGTH)


def is_wrong_format(source: OpenFile, block: Entries) -> bool:
    """Whether entries are the whole file, none of them is valid, and the file does not begin like a log."""
    if len(block.positions) != 1 or block.frames.error[0] not in _FRAMING:
        return False
    whole = block.positions[0] == 0 and block.end == source.size
    return whole and not may_begin_a_log(bytes(source.read(0, min(MAGIC + 1, source.size))))


def may_begin_a_log(head: bytes) -> bool:
    """Whether the bytes may be the beginning of a log's first entry. A preallocated segment begins with zeros."""
    if len(head) < ENTRY.size:
        return True
    offset, size = (
        int.from_bytes(head[ENTRY[name].offset : ENTRY[name].end], "big", signed=True) for name in ("offset", "size")
    )
    return offset >= 0 and 0 <= size <= SEARCHED and all(magic <= _NEWEST_MAGIC for magic in head[MAGIC:])


LOSSES: Final = {"first_lost": pa.int64(), "last_lost": pa.int64()}
DOCS_OF_LOSSES: Final = {
    "first_lost": "The first offset that is lost at this row; NULL if none is, or if an earlier row of the same gap has it.",
    "last_lost": "The last offset that is lost; NULL also if the log ends within the gap.",
}
OF_FILE: Final = {"topic": pa.string(), "partition": pa.int32(), "file": pa.string()}
TIER: Final = "tier"
"""the column with the place of a segment: local or remote"""
_OF_SEGMENT: Final = {**OF_FILE, TIER: pa.string()}
TIMESTAMP_TYPE: Final = "timestampType"
"""the column of Spark's own Kafka source, in addition to the readable `timestamp_type`"""
_NO_TYPE: Final = -1
"""Kafka's timestamp type for a record without a timestamp"""
HIDDEN: Final = "hidden"
"""the column with the reason why read_committed omits a row"""
_CHECKED: Final = frozenset({"crc_valid", "error", *LOSSES})
"""columns of batches that depend on checksums"""


def record_rows(query: LogQuery, part: SegmentPart) -> Iterator[pa.RecordBatch]:
    """The records of a part, a block at a time."""
    names = _decoded(query)
    offsets = OffsetRange(part.first_offset, part.end_offset - 1)
    # The lost offsets at an unreadable record are those between its neighbours, so these must be read, too.
    pattern = query.search.pattern() if query.search.active and not _selects_losses(query) else ANYTHING
    depth = RecordsDepth(names, offsets, query.max_batch_bytes, pattern)
    table = [column for column in RECORDS_TABLE if column.name in names and column.name != "position"]
    with OpenFile(part.segment.file) as source:
        log = Log(source, query.verify)
        holes = Holes(log, part) if _selects_losses(query) else None
        for block in read_entries(log, part.start, min(part.stop, source.size), depth, part.joined):
            records = block.records
            columns = columns_of(records, table)
            if holes is not None:
                columns |= holes.of_records(block)
            if HIDDEN in names:
                columns[HIDDEN] = _hidden_records(part, records)
            if TIMESTAMP_TYPE in names:
                columns[TIMESTAMP_TYPE] = _timestamp_types(records)
            if "position" in names:
                columns["position"] = primitive(records.spread(block.positions))
            if "error" in names and is_wrong_format(source, block):
                columns["error"] = pa.array([ERRORS[WRONG_FORMAT]])
            yield _finished(query, part, columns, records.rows, _selected_records(query, part, records))


def batch_rows(query: LogQuery, part: SegmentPart) -> Iterator[pa.RecordBatch]:
    """The batches of a part, a block at a time. It computes checksums only if the query needs them."""
    needed = {*_decoded(query), "size", "base_offset", "last_offset"}
    if query.committed or HIDDEN in needed:
        needed |= {"is_control", "is_transactional", "producer_id"}
    checked = is_checked(query)
    table = [column for column in BATCHES_TABLE if column.name in needed | (_CHECKED if checked else set())]
    with OpenFile(part.segment.file) as source:
        log, stop = Log(source, query.verify), min(part.stop, source.size)
        holes = Holes(log, part) if _selects_losses(query) else None
        for block in read_entries(log, part.start, stop, VERIFIED if checked else HEADERS, part.joined):
            columns = columns_of(block.headers, table)
            if holes is not None:
                columns |= holes.of_batches(block, columns["error"])
            if HIDDEN in needed:
                columns[HIDDEN] = _hidden(part, _first_offset(columns), _is_aborted_batch(part, columns))
            columns["position"] = primitive(block.positions)
            if "error" in columns and is_wrong_format(source, block):
                columns["error"] = pa.array([ERRORS[WRONG_FORMAT]])
            if "record_count" in needed:  # an incomplete batch announces records that do not exist
                columns["record_count"] = pc.if_else(columns["size"].is_valid(), columns["record_count"], None)
            selected = _selected_batches(query, part, columns)
            chosen = {name: columns[name] for name in _decoded(query)}
            yield _finished(query, part, chosen, len(columns["position"]), selected)


def _selects_losses(query: LogQuery) -> bool:
    return not LOSSES.keys().isdisjoint(query.columns)


def is_checked(query: LogQuery) -> bool:
    """Whether rows of batches depend on more than headers."""
    return query.mode != PERMISSIVE or not _CHECKED.isdisjoint(query.columns)


def _decoded(query: LogQuery) -> tuple[str, ...]:
    """The columns that the decoder must return."""
    needed: tuple[str, ...] = ("error", "position") if query.mode == FAILFAST else ()
    if query.search.active and _selects_losses(query):
        needed += ("key", "value")
    return tuple(dict.fromkeys([*(name for name in query.columns if name not in _OF_SEGMENT), *needed]))


def _finished(
    query: LogQuery, part: SegmentPart, columns: dict[str, pa.Array], rows: int, selected: pa.Array | None
) -> pa.RecordBatch:
    """The selected rows, with the columns about their file."""
    if selected is not None and (count := selected.true_count) < rows:
        rows = count
        columns = {name: column.filter(selected) for name, column in columns.items()}
    if query.mode == FAILFAST:
        at = pc.index(pc.is_valid(columns["error"]), True).as_py()
        if at >= 0:
            _reject(part, columns["position"][at].as_py(), columns["error"][at].as_py())
    segment = part.segment
    tier = "local" if segment.remote is None else "remote"
    values = {"topic": segment.topic, "partition": segment.partition, "file": segment.file.name, TIER: tier}
    for name in _OF_SEGMENT.keys() & set(query.columns):
        columns[name] = pa.repeat(pa.scalar(values[name], _OF_SEGMENT[name]), rows)
    return pa.RecordBatch.from_pydict({name: columns[name] for name in query.columns})


def _reject(part: SegmentPart, position: int, error: str) -> NoReturn:
    remote = part.segment.remote
    if remote is None or not remote.lost:
        reject(part.segment.file, position, error, "Kafka log")
    first = part.segment.base_offset
    offsets = f"offsets from {first} on" if part.following is None else f"offsets {first} to {part.following - 1}"
    raise CorruptDataError(
        f"{part.segment.file.name} cannot be read: {remote.lost}. No other segment has the {offsets}. "
        "Mode FAILFAST fails there; PERMISSIVE returns a row with error, DROPMALFORMED leaves it out"
    )


def _timestamp_types(records: Records) -> pa.Array:
    """Kafka's numbers of timestamp types."""
    codes, magic = records.timestamp_types, records.entries.field("magic")
    untyped = records.spread(magic.valid & (magic.values == 0))
    return primitive(np.where(untyped, np.int32(_NO_TYPE), codes), untyped | (codes >= 0))


# -- which rows


def _selected_records(query: LogQuery, part: SegmentPart, records: Records) -> pa.Array | None:
    """The selected records, None for all. None is the common case, for which it reads as little as possible."""
    masks = list[pa.Array]()
    if part.first_offset > FIRST or part.end_offset < END:
        masks += _within(part, records)
    if query.search.active and _selects_losses(query):
        others = pc.or_(_is_bad(records), pc.fill_null(records.is_control(), False))
        masks.append(pc.or_(query.search.mask(records.key(), records.value()), others))
    if query.mode == DROPMALFORMED:
        masks.append(pc.invert(_is_bad(records)))
    if not query.control_records and records.entries.may_have(CONTROL):
        masks.append(pc.or_(pc.invert(pc.fill_null(records.is_control(), False)), _is_bad(records)))
    if query.committed and part.aborted and records.entries.may_have(TRANSACTIONAL):
        masks.append(pc.invert(_is_aborted_record(part, records)))
    return _all(masks)


def _is_aborted_record(part: SegmentPart, records: Records) -> pa.Array:
    aborted = _aborted(part, records.header_field("producer_id"), records.offset())
    return _and_data(records.is_transactional(), records.is_control(), aborted)


def _hidden_records(part: SegmentPart, records: Records) -> pa.Array:
    return _hidden(part, records.offset(), _is_aborted_record(part, records))


def _hidden(part: SegmentPart, offsets: pa.Array, aborted: pa.Array) -> pa.Array:
    """The reasons why read_committed omits rows."""
    is_open = pc.greater_equal(offsets, END - 1 if part.first_open is None else part.first_open)
    return pc.if_else(
        aborted, "ABORTED", pc.if_else(pc.fill_null(is_open, False), "OPEN", pa.scalar(None, pa.string()))
    )


def _and_data(transactional: pa.Array, control: pa.Array, aborted: pa.Array) -> pa.Array:
    """The aborted records without markers and without records outside of transactions."""
    data = pc.and_(pc.fill_null(transactional, False), pc.invert(pc.fill_null(control, False)))
    return pc.and_(data, aborted)


def _within(part: SegmentPart, records: Records) -> Iterator[pa.Array]:
    """Masks of the records within the query's offsets; no mask if all are within."""
    offsets = records.offset()
    limits = pc.min_max(offsets)
    least, most = limits["min"].as_py(), limits["max"].as_py()
    if least is not None and least < part.first_offset:
        yield pc.fill_null(pc.or_(pc.greater_equal(offsets, part.first_offset), _is_bad(records)), True)
    if most is not None and most >= part.end_offset:
        yield pc.fill_null(pc.less(offsets, part.end_offset), True)


def _is_bad(records: Records) -> pa.Array:
    return pc.is_valid(records.error())


def _selected_batches(query: LogQuery, part: SegmentPart, columns: dict[str, pa.Array]) -> pa.Array | None:
    """The selected batches, None for all."""
    masks = list[pa.Array]()
    if part.first_offset > FIRST:
        masks.append(pc.fill_null(pc.greater_equal(columns["last_offset"], part.first_offset), True))
    if part.end_offset < END:
        masks.append(pc.fill_null(pc.less(_first_offset(columns), part.end_offset), True))
    if query.mode == DROPMALFORMED:
        masks.append(pc.is_null(columns["error"]))
    if query.committed and part.aborted:
        masks.append(pc.invert(_is_aborted_batch(part, columns)))
    return _all(masks)


def _is_aborted_batch(part: SegmentPart, columns: dict[str, pa.Array]) -> pa.Array:
    aborted = _aborted(part, columns["producer_id"], _first_offset(columns))
    return _and_data(columns["is_transactional"], columns["is_control"], aborted)


def _first_offset(columns: dict[str, pa.Array]) -> pa.Array:
    return pc.coalesce(columns["base_offset"], columns["last_offset"])


def _aborted(part: SegmentPart, producers: pa.Array, offsets: pa.Array) -> pa.Array:
    numbers = (column.fill_null(-1).to_numpy(zero_copy_only=False) for column in (producers, offsets))
    return pa.array(is_aborted(part.aborted, *numbers))


def _all(masks: Sequence[pa.Array]) -> pa.Array | None:
    return functools.reduce(pc.and_, masks) if masks else None


# -- lost offsets

_UNKNOWN: Final = np.int64(FIRST)


class Holes:
    """Finds the lost offsets of rows with an error: those between the valid entries before and after them.

    It works across the pieces of a part. Consecutive rows with errors are one hole, and the first row has its offsets. These
    include offsets next to the hole that compaction has removed, because they cannot be distinguished from lost ones.
    """

    def __init__(self, log: Log, part: SegmentPart) -> None:
        self._log, self._part = log, part
        self._before = _UNKNOWN
        """last offset of the valid entry before the next piece"""
        if part.guard is not None:
            self._before = np.int64(part.guard.first - 1)
        elif part.first_offset > FIRST:
            self._before = np.int64(part.first_offset - 1)
        if part.start == 0 and part.segment.base_offset is not None:
            self._before = max(self._before, np.int64(part.segment.base_offset - 1))
        self._within = False
        """whether the entry before the next piece is corrupt"""
        self._after: tuple[int, Entry | None] | None = None
        """the start and the result of the last search for a valid entry"""

    def of_batches(self, block: Entries, corrupt: pa.Array) -> dict[str, pa.Array]:
        """The columns of entries; ``corrupt`` has their errors."""
        first, last = self._of_entries(block)
        inside = np.asarray(corrupt.is_valid()) & block.is_valid
        first[inside], last[inside] = _first_offsets(block)[inside], block.last[inside]
        return self._columns(first, last)

    def of_records(self, block: Entries) -> dict[str, pa.Array]:
        """The columns of the entries' records."""
        records = block.records
        rows = records.entry_of_row()
        first, last = (of_entries[rows] for of_entries in self._of_entries(block))
        inside = np.asarray(records.error().is_valid()) & block.is_valid[rows]
        if inside.any():
            exact = records.offset()
            offsets = exact.fill_null(FIRST).to_numpy()
            readable = ~inside & np.asarray(exact.is_valid())
            lowest, highest = _first_offsets(block)[rows], block.last[rows]
            before = _carried(np.where(readable, offsets, _UNKNOWN), readable, rows)
            after = _carried(np.where(readable, offsets, _UNKNOWN)[::-1], readable[::-1], rows[::-1])[::-1]
            first[inside] = np.where(before == _UNKNOWN, lowest, before + 1)[inside]
            last[inside] = np.where(after == _UNKNOWN, highest, after - 1)[inside]
        return self._columns(first, last)

    def _of_entries(self, block: Entries) -> tuple[Ints, Ints]:
        """First and last lost offset of each entry that begins a hole, `_UNKNOWN` for other entries."""
        valid = block.is_valid
        count = len(valid)
        first, last = np.full(count, _UNKNOWN), np.full(count, _UNKNOWN)
        lowest, highest = _first_offsets(block), block.last
        if not valid.all():
            begins = ~valid & ~np.concatenate(([self._within], ~valid[:-1]))
            whole = np.zeros(count, np.int64)
            before = _carried(np.where(valid, highest, _UNKNOWN), valid, whole)
            before = np.where(before == _UNKNOWN, self._before, before)
            after = _carried(np.where(valid, lowest, _UNKNOWN)[::-1], valid[::-1], whole)[::-1]
            if begins[-1] or (begins.any() and not valid[np.flatnonzero(begins)[-1] :].any()):
                after = np.where(after == _UNKNOWN, self._first_after(block.end), after)
            follows = begins & (before != _UNKNOWN)
            first[follows] = before[follows] + 1
            precedes = begins & (after != _UNKNOWN)
            last[precedes] = after[precedes] - 1
        if valid.any():
            self._before = highest[valid][-1]
        self._within = not valid[-1]
        return first, last

    def _first_after(self, position: int) -> np.int64:
        """The offset of the first valid entry from a position on, or of the next segment."""
        since, first = self._after or (END, None)
        if since > position or (first is not None and first.position < position):
            first = first_entry(self._log, position, FIRST)
            self._after = position, first
        if first is not None:
            return np.int64(first.first)
        return _UNKNOWN if self._part.following is None else np.int64(self._part.following)

    def _columns(self, first: Ints, last: Ints) -> dict[str, pa.Array]:
        """The columns, limited to the query's offsets; NULL if no offset is lost."""
        first = np.where(first == _UNKNOWN, first, np.maximum(first, self._part.first_offset))
        if self._part.end_offset < END:
            last = np.minimum(last, self._part.end_offset - 1)
        is_range = (first == _UNKNOWN) | (last == _UNKNOWN) | (first <= last)
        return {
            "first_lost": primitive(first, is_range & (first != _UNKNOWN)),
            "last_lost": primitive(last, is_range & (last != _UNKNOWN)),
        }


def _first_offsets(block: Entries) -> Ints:
    """The first offset of each entry; that of a compressed message of magic 0 or 1 is unknown."""
    return np.where(block.headers.is_wrapper, _UNKNOWN, block.first)


def _carried(values: Ints, valid: npt.NDArray[np.bool_], groups: npt.NDArray[np.integer]) -> Ints:
    """The last valid value before each item in its group, `_UNKNOWN` if there is none."""
    places = np.maximum.accumulate(np.where(valid, np.arange(len(values)), -1))
    places = np.concatenate(([-1], places[:-1]))
    within = (places >= 0) & (groups[places] == groups)
    return np.where(within, values[places], _UNKNOWN)
