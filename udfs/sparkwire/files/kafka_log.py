"""The table `kafka_log`: which files, which parts of them, and their rows as record batches.

`query` reads the options, `plan` finds files and cuts them into tasks, `read` gives the rows of one. None of them needs Spark,
and a task is plain data, made on one machine and read on another.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.builders import Column, columns_of
from sparkwire.column import primitive
from sparkwire.files import options
from sparkwire.files.decode import batch_decoder, pieces, record_decoder, record_positions
from sparkwire.files.log import Log
from sparkwire.files.naming import Segment, in_order, segments
from sparkwire.files.options import DROPMALFORMED, FAILFAST, PERMISSIVE, Comparison, Option
from sparkwire.files.plan import END, FIRST, Bounds, Part, Wanted, parts, tasks
from sparkwire.files.storage import Source, listed, place_of
from sparkwire.files.transactions import is_aborted
from sparkwire.formats.kafka.batches import BATCHES as BATCHES_TABLE
from sparkwire.formats.kafka.inflate import MAX_BATCH_BYTES
from sparkwire.formats.kafka.payloads import OffsetRange
from sparkwire.formats.kafka.records import RECORDS_TABLE, Records
from sparkwire.sqltype import arrow_type

NAME: Final = "kafka_log"
RECORDS, BATCHES = "records", "batches"
UNCOMMITTED, COMMITTED = "read_uncommitted", "read_committed"

OPTIONS: Final = (
    Option("path", options.one_path, (), "a file, a directory or a glob; local, or a URI that pyarrow.fs opens"),
    Option("paths", options.some_paths, (), "several of them, as `load` takes a list"),
    Option("rows", options.choice(RECORDS, BATCHES), RECORDS, "a row for each record, or for each batch"),
    Option("columns", options.text, "", "a comma list; what is not asked for is not decoded"),
    Option("mode", options.choice(PERMISSIVE, DROPMALFORMED, FAILFAST), PERMISSIVE, "what damage becomes"),
    Option("startingOffset", options.whole_number, None, "of each partition"),
    Option("endingOffset", options.whole_number, None, "of each partition, exclusive"),
    Option("startingTimestamp", options.instant, None, "from the first record not older"),
    Option("endingTimestamp", options.instant, None, "up to the first record not older, exclusive"),
    Option("isolationLevel", options.choice(UNCOMMITTED, COMMITTED), UNCOMMITTED, "whose view of transactions"),
    Option("controlRecords", options.boolean, False, "whether control records are rows"),
    Option("verifyCrc", options.boolean, True, "whether a wrong checksum is an error"),
    Option("maxBatchBytes", options.size, MAX_BATCH_BYTES, "what one compressed batch may become [bytes]"),
    Option("maxSplitBytes", options.size, 128 << 20, "what one task reads [bytes]"),
    Option("maxBytesPerTrigger", options.size, None, "streaming: what one batch reads [bytes]"),
    Option("failOnDataLoss", options.boolean, True, "streaming: whether it fails where what it has to read is gone"),
)

_OF_FILE: Final = {"topic": pa.string(), "partition": pa.int32(), "file": pa.string()}
_FIRST: Final = (
    "topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers", "timestamp_ms", "file", "position",
)  # fmt: skip


def _ordered(table: Sequence[Column[Any]], first: Sequence[str]) -> dict[str, pa.DataType]:
    """Type by name of a table's columns and those of a file, the ``first`` ones before the others."""
    types = {column.name: arrow_type(column.sql) for column in table} | {"position": pa.int64()} | _OF_FILE
    return {name: types[name] for name in [*first, *(name for name in types if name not in first)]}


COLUMNS: Final = {
    RECORDS: _ordered(RECORDS_TABLE, _FIRST),
    BATCHES: _ordered(BATCHES_TABLE, ("topic", "partition", "file", "position")),
}
"""type by name, in order, of both kinds of rows"""

_DOCS_OF_FILE: Final = {
    "topic": "From the directory's name; NULL where it has none.",
    "partition": "From the directory's name; NULL where it has none.",
    "file": "Which segment.",
    "position": "Where the entry begins in the file, also of a record within it [bytes].",
}
DOCS: Final = {
    rows: {column.name: column.doc for column in table} | _DOCS_OF_FILE
    for rows, table in ((RECORDS, RECORDS_TABLE), (BATCHES, BATCHES_TABLE))
}
"""what each of them means"""


class Filtered(NamedTuple):
    """What the filters of a query leave: other rows need not be read."""

    first_offset: int = FIRST
    end_offset: int = END
    first_timestamp: int | None = None
    """[ms since epoch]"""
    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None


class Query(NamedTuple):
    """What is asked for."""

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
    filtered: Filtered = Filtered()


def query(given: Mapping[str, str]) -> Query:
    """Read the options of a query.

    Raises
    ------
    ValueError
        where one is wrong, or path is missing.
    """
    o = options.parsed(NAME, OPTIONS, given)
    paths = o["path"] + o["paths"]
    if not paths:
        raise ValueError(f"{NAME} needs path: a file, a directory or a glob")
    names = tuple(COLUMNS[o["rows"]])
    columns = options.chosen_columns(NAME, names, o["columns"]) if o["columns"] else names
    return Query(
        paths, o["rows"], columns, o["mode"], o["startingOffset"], o["endingOffset"], o["startingTimestamp"],
        o["endingTimestamp"], o["isolationLevel"] == COMMITTED, o["controlRecords"], o["verifyCrc"], o["maxBatchBytes"],
        o["maxSplitBytes"], o["maxBytesPerTrigger"], o["failOnDataLoss"],
    )  # fmt: skip


def find(paths: Sequence[str]) -> list[Segment]:
    """The segments at some paths, those of a partition in the order of their offsets.

    Raises
    ------
    OSError
        where there is nothing, or it must not be read.
    ValueError
        where there are files, but no segment among them.
    """
    found: dict[str, Segment] = {}
    for path in paths:
        files, single = listed(path)
        new = segments(files, single, place_of(path).path)
        if not new:
            raise ValueError(
                f"path {path} has no segment among its {len(files)} files: {NAME} reads files named by their first offset "
                "(00000000000000000000.log), and any single file that path names itself"
            )
        found |= {segment.file.name: segment for segment in new}
    return in_order(found.values())


def types(asked: Query) -> dict[str, pa.DataType]:
    """Type by name of all columns that the query may have."""
    return COLUMNS[asked.rows]


def docs(asked: Query) -> Mapping[str, str]:
    """What each column means."""
    return DOCS[asked.rows]


def schema(asked: Query) -> pa.Schema:
    return pa.schema([pa.field(name, types(asked)[name]) for name in asked.columns])


def plan(asked: Query) -> list[tuple[Part, ...]]:
    """The tasks of a query.

    Raises
    ------
    OSError, ValueError
        as `find`, and where the start lies beyond the end.
    """
    bounds = Bounds(asked.starting_offset, asked.ending_offset, asked.starting_timestamp, asked.ending_timestamp)
    its = asked.filtered
    found = [
        segment
        for segment in find(asked.paths)
        if (its.topics is None or segment.topic in its.topics)
        and (its.partitions is None or segment.partition in its.partitions)
    ]
    wanted = Wanted(its.first_offset, its.end_offset, its.first_timestamp)
    return tasks(parts(found, bounds, wanted, asked.committed, asked.max_split_bytes), asked.max_split_bytes)


def narrowed(asked: Query, comparisons: Sequence[Comparison]) -> Query:
    """The query with filters of which all have to hold; rows that do not hold may still be given."""
    its = asked.filtered
    for column, operator, value in comparisons:
        if value is None:
            continue
        if column == "offset":
            first, end = options.bounds_of(operator, value)
            its = its._replace(first_offset=max(its.first_offset, first), end_offset=min(its.end_offset, end))
        elif column in ("timestamp", "timestamp_ms"):
            # Not the end: a younger record may come before an older one.
            millis = options.floor_millis(value) if isinstance(value, datetime) else value
            first, _ = options.bounds_of(operator, millis)
            if first > FIRST:
                its = its._replace(
                    first_timestamp=max(first if its.first_timestamp is None else its.first_timestamp, first)
                )
        elif column in ("topic", "partition") and operator in ("=", "in"):
            kept = frozenset(value if operator == "in" else (value,))
            if column == "topic":
                its = its._replace(topics=kept if its.topics is None else kept & its.topics)
            else:
                its = its._replace(partitions=kept if its.partitions is None else kept & its.partitions)
    return asked._replace(filtered=its)


def read(asked: Query, task: Sequence[Part]) -> Iterator[pa.RecordBatch]:
    """The rows of a task.

    Raises
    ------
    ValueError
        with mode FAILFAST where a row has an error, and where a file has been cut since it was planned.
    """
    for part in task:
        with Source(part.segment.file) as source:
            log = Log(source, asked.verify)
            stop = min(part.stop, source.size)
            found = _records(asked, part, log, stop) if asked.rows == RECORDS else _batches(asked, part, log, stop)
            for batch in found:
                if batch.num_rows:
                    yield batch


def _records(asked: Query, part: Part, log: Log, stop: int) -> Iterator[pa.RecordBatch]:
    names = _decoded(asked)
    offsets = OffsetRange(part.first_offset, part.end_offset)
    decoder = record_decoder(asked.verify, asked.max_batch_bytes, names, offsets)
    table = [column for column in RECORDS_TABLE if column.name in names and column.name != "position"]
    for piece in pieces(log, part.start, stop, decoder):
        records = piece.scan
        columns = columns_of(records, table)
        if "position" in names:
            columns["position"] = primitive(record_positions(records) + piece.position)
        yield _finished(asked, part, columns, records.rows, _kept_records(asked, part, records))


def _batches(asked: Query, part: Part, log: Log, stop: int) -> Iterator[pa.RecordBatch]:
    for piece in pieces(log, part.start, stop, batch_decoder()):
        columns = columns_of(piece.scan, BATCHES_TABLE)
        columns["position"] = primitive(piece.scan.frames.begin + piece.position)
        kept = _kept_batches(asked, part, columns)
        chosen = {name: columns[name] for name in _decoded(asked)}
        yield _finished(asked, part, chosen, len(columns["error"]), kept)


def _decoded(asked: Query) -> tuple[str, ...]:
    """The columns that a decoder has to give."""
    needed = ("error", "position") if asked.mode == FAILFAST else ()
    return tuple(dict.fromkeys([*(name for name in asked.columns if name not in _OF_FILE), *needed]))


def _finished(
    asked: Query, part: Part, columns: dict[str, pa.Array], rows: int, kept: pa.Array | None
) -> pa.RecordBatch:
    """The rows that are asked for, with what their file says of them."""
    if kept is not None:
        columns = {name: column.filter(kept) for name, column in columns.items()}
        rows = int(pc.sum(kept).as_py() or 0)
    if asked.mode == FAILFAST:
        _fail(part, columns)
    segment = part.segment
    values = {"topic": segment.topic, "partition": segment.partition, "file": segment.file.name}
    columns |= {name: pa.repeat(pa.scalar(values[name], type), rows) for name, type in _OF_FILE.items()}
    return pa.RecordBatch.from_arrays([columns[name] for name in asked.columns], schema=schema(asked))


def _fail(part: Part, columns: dict[str, pa.Array]) -> None:
    at = pc.index(pc.is_valid(columns["error"]), True).as_py()
    if at >= 0:
        raise ValueError(
            f"{part.segment.file.name} cannot be read at byte {columns['position'][at]}: {columns['error'][at]}; "
            "mode FAILFAST fails there, PERMISSIVE gives a row with error, DROPMALFORMED none"
        )


# -- which rows


def _kept_records(asked: Query, part: Part, records: Records) -> pa.Array | None:
    """Which records are asked for, None for all."""
    offsets, bad = records.offset(), pc.is_valid(records.error())
    masks = []
    limits = pc.min_max(offsets)
    least, most = limits["min"].as_py(), limits["max"].as_py()
    if least is not None and least < part.first_offset:
        masks.append(pc.fill_null(pc.or_(pc.greater_equal(offsets, part.first_offset), bad), True))
    if most is not None and most >= part.end_offset:
        masks.append(pc.fill_null(pc.less(offsets, part.end_offset), True))
    if asked.mode == DROPMALFORMED:
        masks.append(pc.invert(bad))
    if part.aborted or not asked.control_records:
        control = pc.fill_null(records.is_control(), False)
        if not asked.control_records:
            masks.append(pc.or_(pc.invert(control), bad))
        if part.aborted:
            data = pc.and_(pc.fill_null(records.is_transactional(), False), pc.invert(control))
            masks.append(pc.invert(pc.and_(data, _aborted(part, records.header_field("producer_id"), offsets))))
    return _all(masks)


def _kept_batches(asked: Query, part: Part, columns: dict[str, pa.Array]) -> pa.Array | None:
    """Which batches are asked for, None for all."""
    first = pc.coalesce(columns["base_offset"], columns["last_offset"])
    masks = [
        pc.fill_null(pc.greater_equal(columns["last_offset"], part.first_offset), True),
        pc.fill_null(pc.less(first, part.end_offset), True),
    ]
    if asked.mode == DROPMALFORMED:
        masks.append(pc.is_null(columns["error"]))
    if part.aborted:
        control = pc.fill_null(columns["is_control"], False)
        data = pc.and_(pc.fill_null(columns["is_transactional"], False), pc.invert(control))
        masks.append(pc.invert(pc.and_(data, _aborted(part, columns["producer_id"], first))))
    return _all(masks)


def _aborted(part: Part, producers: pa.Array, offsets: pa.Array) -> pa.Array:
    known = (column.fill_null(-1).to_numpy(zero_copy_only=False) for column in (producers, offsets))
    return pa.array(is_aborted(part.aborted, *known))


def _all(masks: Sequence[pa.Array]) -> pa.Array | None:
    return functools.reduce(pc.and_, masks) if masks else None
