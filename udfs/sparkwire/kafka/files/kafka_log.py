"""The table `kafka_log`: selects files, splits them into tasks, and reads their rows as record batches.

`query` reads the options, `plan` finds files and splits them into tasks, and `read` returns the rows of a task. None of them
needs Spark. A task is plain data, so one machine can plan it and another can read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple

import pyarrow as pa

from sparkwire.base.printable import value_error
from sparkwire.base.sqltype import arrow_type
from sparkwire.core.builders import Column
from sparkwire.core.sources import options
from sparkwire.core.sources.options import Comparison, Option
from sparkwire.core.sources.storage import File, absolute_paths, of_option, steady
from sparkwire.core.sources.table import CHOICES, PATHS, TASKS, batches_of, files_at, selected_columns, selected_paths
from sparkwire.kafka.batch_headers import BATCHES as BATCHES_TABLE
from sparkwire.kafka.files.disk import with_bucket
from sparkwire.kafka.files.log_rows import (
    ALL,
    DOCS_OF_LOSSES,
    FAIL,
    HIDDEN,
    LONGEST,
    LOSSES,
    OF_FILE,
    TIER,
    TIMESTAMP_TYPE,
    LogQuery,
    batch_rows,
    is_checked,
    record_rows,
)
from sparkwire.kafka.files.naming import Segment, in_bucket, in_order, is_bucket, is_partition, segments
from sparkwire.kafka.files.plan import (
    LogBounds,
    OpenPartition,
    SegmentPart,
    SelectedRows,
    Transacted,
    parts,
    parts_now,
    tasks,
)
from sparkwire.kafka.files.remote import bucket_segments
from sparkwire.kafka.files.seek import FIRST
from sparkwire.kafka.inflate import MAX_BATCH_BYTES
from sparkwire.kafka.records import RECORDS_TABLE
from sparkwire.kafka.search import Search
from sparkwire.kafka.tiered.encryption_keys import Keys

NAME: Final = "kafka_log"
RECORDS, BATCHES = "records", "batches"
UNCOMMITTED, COMMITTED = "read_uncommitted", "read_committed"
_SHOWN: Final = 3  # number of directories that a message names
HEADERS_SPAN: Final = 8
"""a task that reads only headers covers this many times `maxSplitBytes`"""

OPTIONS: Final = (
    *PATHS,
    Option(
        "rows",
        options.choice(RECORDS, BATCHES),
        RECORDS,
        "`batches`: a row for each batch, the columns of `kafka_batches`",
    ),
    *CHOICES,
    Option("startingOffset", options.whole_number, None, "the first offset to read in each partition"),
    Option("endingOffset", options.whole_number, None, "the offset before which reading ends in each partition"),
    Option(
        "startingTimestamp",
        options.instant,
        None,
        "starts at the first record that is not older, as in Kafka's lookup by time: milliseconds, or ISO text with a time zone",
    ),
    Option(
        "endingTimestamp",
        options.instant,
        None,
        "ends before the first record that is not older; written like `startingTimestamp`",
    ),
    Option(
        "isolationLevel",
        options.choice(UNCOMMITTED, COMMITTED),
        UNCOMMITTED,
        "`read_committed` leaves out aborted transactions, and everything from the first open transaction on",
    ),
    Option(
        "key", options.content, None, "reads records with this key (text, or bytes as `0x…`), and rows with `error`"
    ),
    Option("keyPrefix", options.content, None, "reads records whose key begins with this; otherwise like `key`"),
    Option("valueContains", options.content, None, "reads records whose value contains this; otherwise like `key`"),
    Option(
        "replicas",
        options.choice(FAIL, LONGEST, ALL),
        FAIL,
        "what to do if a partition is in several directories (replicas of brokers, backups). `fail` names them. `longest` reads "
        "the log that goes furthest. `all` reads every one; `file` shows the directory of each row",
    ),
    Option(
        "remotePath",
        options.text,
        "",
        "the bucket of tiered storage, with the plugin's prefix, to which the brokers' directories in `path` have moved segments",
    ),
    Option("encryptionKeys", options.text, "", "a JSON file of a bucket's RSA keys: key id to PEM file"),
    Option("controlRecords", options.boolean, False, "whether to return control records as rows"),
    Option("verifyCrc", options.boolean, True, "whether a wrong checksum is an error"),
    Option(
        "maxBatchBytes", options.size, MAX_BATCH_BYTES, "maximum size of a compressed batch after decompression [bytes]"
    ),
    *TASKS,
)

_FIRST: Final = (
    "topic", "partition", "offset", "timestamp", "timestamp_type", TIMESTAMP_TYPE, "key", "value", "headers", "timestamp_ms",
    "file", "position",
)  # fmt: skip


def _ordered(table: Sequence[Column[Any]], first: Sequence[str]) -> dict[str, pa.DataType]:
    """Type by name of the columns of a table and of a file; the columns ``first`` come first."""
    types = {column.name: arrow_type(column.sql) for column in table} | {"position": pa.int64()} | OF_FILE
    types |= {TIMESTAMP_TYPE: pa.int32()} if TIMESTAMP_TYPE in first else {}
    return {name: types[name] for name in [*first, *(name for name in types if name not in first)]}


_MOST_KEYS: Final = 64
"""largest number of keys to compare with each record"""

COLUMNS: Final = {
    RECORDS: _ordered(RECORDS_TABLE, _FIRST),
    BATCHES: _ordered(BATCHES_TABLE, ("topic", "partition", "file", "position")),
}
"""for each kind of rows, type by name, in order"""
ON_REQUEST: Final = {**LOSSES, HIDDEN: pa.string(), TIER: pa.string()}
"""type by name of the columns that a query must select by name"""

_DOCS_OF_FILE: Final = {
    "topic": "Topic in the directory's name; NULL if the name has none.",
    "partition": "Partition in the directory's name; NULL if the name has none.",
    "file": "Path of the segment.",
    "position": "Position of the record's batch, or of its outermost message, in the file [bytes].",
    TIMESTAMP_TYPE: "The same as in Spark's Kafka source: 0 CreateTime, 1 LogAppendTime, -1 none (magic 0).",
    **DOCS_OF_LOSSES,
    TIER: "Where the segment is: local, or remote, in a bucket of tiered storage.",
    HIDDEN: "Why read_committed leaves the row out: ABORTED, or OPEN from the first open transaction on; NULL if it does not.",
}
DOCS: Final = {
    rows: {column.name: column.doc for column in table} | _DOCS_OF_FILE
    for rows, table in ((RECORDS, RECORDS_TABLE), (BATCHES, BATCHES_TABLE))
}
DOCS[BATCHES]["record_count"] += " NULL also for bytes that are not a credible batch."
"""description of each column, by kind of rows"""


def query(texts: Mapping[str, str]) -> LogQuery:
    """Read the options of a query; ValueError if an option is wrong or contradicts another, or path is missing."""
    o = options.parsed(NAME, OPTIONS, texts)
    paths = selected_paths(NAME, o)
    columns = selected_columns(NAME, tuple(COLUMNS[o["rows"]]), tuple(ON_REQUEST), o)
    return LogQuery(
        paths, o["rows"], columns, o["mode"], o["startingOffset"], o["endingOffset"], o["startingTimestamp"],
        o["endingTimestamp"], o["isolationLevel"] == COMMITTED, o["controlRecords"], o["verifyCrc"], o["maxBatchBytes"],
        o["maxSplitBytes"], o["maxBytesPerTrigger"], o["failOnDataLoss"], _search(o),
        o["remotePath"], o["encryptionKeys"], replicas=o["replicas"],
    )  # fmt: skip


def _search(o: Mapping[str, Any]) -> Search:
    key, prefix, within = o["key"], o["keyPrefix"], o["valueContains"]
    if key is not None and prefix is not None:
        raise ValueError(f"{NAME} takes key or keyPrefix, got both")
    if o["rows"] == BATCHES and (key, prefix, within) != (None, None, None):
        raise ValueError(f"{NAME} takes key, keyPrefix and valueContains only with rows => records")
    keys = None if (one := prefix if key is None else key) is None else (one,)
    return Search(keys, prefix is not None, within or b"")


def find(
    paths: Sequence[str],
    remote_path: str = "",
    encryption_keys: str = "",
    by_names: bool = True,
    replicas: str = FAIL,
    may_be_empty: bool = False,
) -> list[Segment]:
    """The segments at some paths, with those of the same partitions in a bucket; by partition and offset.

    ``by_names``: whether to use names in a bucket until a task reads the segment. ``may_be_empty``: whether a directory without
    files is allowed.

    OSError if a path does not exist, or you may not read it. ValueError if its files include no segment, and as in
    `chosen_replicas`.
    """
    keys = Keys(encryption_keys)
    chosen = partial(_segments, keys, by_names)
    segments_found = in_order(files_at(paths, chosen, _NO_SEGMENT, is_partition, may_be_empty=may_be_empty))
    if remote_path:
        with of_option("remotePath"):
            segments_found = with_bucket(segments_found, remote_path, keys, by_names)
    return chosen_replicas(segments_found, replicas)


def input_files(query: LogQuery) -> list[Segment]:
    """The segments of a query; errors as `find`."""
    return find(query.paths, query.remote_path, query.encryption_keys, replicas=query.replicas)


_NO_SEGMENT = (
    f"path {{path}} has no segment among its {{files}} files: {NAME} reads files named by their first offset "
    "(00000000000000000000.log), and any single file that path names itself"
)


def _segments(keys: Keys, by_names: bool, files: list[File], single: bool, below: str) -> dict[str, Segment]:
    in_tier = not single and is_bucket(files)
    segments_found = bucket_segments(in_bucket(files), keys, by_names) if in_tier else segments(files, single, below)
    return {segment.file.name: segment for segment in segments_found}


# -- partitions in several directories, such as replicas of brokers or daily backups


def chosen_replicas(segments: Sequence[Segment], replicas: str) -> list[Segment]:
    """The segments of one log of each partition, or with ``all`` of every log, one log after the other.

    ValueError with ``fail`` if a partition has more than one log.
    """
    if replicas == ALL:
        return list(segments)
    logs = [list(log) for _, log in groupby(segments, key=lambda segment: segment.log)]
    of_partitions: dict[tuple[str, int | None], list[list[Segment]]] = {}
    for log in logs:
        if log[0].topic is not None and log[0].base_offset is not None:
            of_partitions.setdefault((log[0].topic, log[0].partition), []).append(log)
    left_out = set[int]()
    for (topic, partition), same in of_partitions.items():
        if len(same) > 1 and replicas == FAIL:
            raise value_error(_several(f"{topic}-{partition}", same))
        if len(same) > 1:
            longest = max(same, key=_extent)
            left_out |= {id(log) for log in same if log is not longest}
    return [segment for log in logs if id(log) not in left_out for segment in log]


def _extent(log: Sequence[Segment]) -> tuple[int, int]:
    """The order of logs: by their end; with equal ends, a log that begins earlier is greater."""
    partition = OpenPartition(log)
    with partition.opened:
        reach = partition.reach()
        return reach.next, -reach.first


def _several(name: str, logs: Sequence[Sequence[Segment]]) -> str:
    folders = ["".join(log[0].log) for log in logs]
    shown = ", ".join(folders[:_SHOWN]) + (", …" if len(folders) > _SHOWN else "")
    return (
        f"partition {name} is in {len(folders)} directories, {shown}: name one of them in path, or set replicas to "
        "longest (the log that goes furthest) or all (the rows of each, with its file)"
    )


# -- columns


def types(query: LogQuery) -> dict[str, pa.DataType]:
    """Type by name of all columns that the query may have."""
    return COLUMNS[query.rows] | ON_REQUEST


def docs(query: LogQuery) -> Mapping[str, str]:
    """Description of each column."""
    return DOCS[query.rows]


def marks(query: LogQuery) -> Mapping[str, Mapping[str, str]]:
    """Metadata of the columns that record the origin of their rows."""
    if query.rows == BATCHES:
        return {}
    origin = origin_of(query.paths, query.remote_path, query.encryption_keys, query.committed)
    return {column: {ORIGIN: origin.text} for column in MARKED}


def schema(query: LogQuery) -> pa.Schema:
    return pa.schema([pa.field(name, types(query)[name]) for name in query.columns])


# -- the origin of rows. A writer needs it to keep the start and end of the log.

ORIGIN: Final = "sparkwire.kafka_log"
"""the key in a column's metadata. Spark keeps it through filters, joins, sorts and changes of other columns; so does Parquet"""
MARKED: Final = ("offset", "is_transactional")
"""the columns that have the metadata"""


class Origin(NamedTuple):
    """The paths and options with which `kafka_log` read the rows."""

    paths: tuple[str, ...]
    """empty if the paths may contain credentials"""
    remote_path: str = ""
    encryption_keys: str = ""
    committed: bool = False
    """whether the isolation level was `read_committed`"""

    @property
    def text(self) -> str:
        return json.dumps(self._asdict())


def origin_of(paths: Sequence[str], remote_path: str, encryption_keys: str, committed: bool) -> Origin:
    """The origin of a query, with absolute paths."""
    absolute = absolute_paths([path for path in (*paths, remote_path) if path])
    if not absolute:
        return Origin((), committed=committed)
    return Origin(absolute[: len(paths)], "".join(absolute[len(paths) :]), encryption_keys, committed)


def origin_in(metadata: Mapping[bytes, bytes] | None) -> Origin | None:
    """The origin in a column's metadata, None if there is none."""
    text = (metadata or {}).get(ORIGIN.encode())
    if text is None:
        return None
    try:
        document = json.loads(text)
        return Origin(tuple(document.pop("paths")), **document)
    except (ValueError, TypeError, KeyError, AttributeError):  # metadata of another program
        return None


# -- tasks


def plan(query: LogQuery) -> list[tuple[SegmentPart, ...]]:
    """The tasks of a query; OSError or ValueError as in `find`, and ValueError if the start is beyond the end."""
    return steady(partial(_planned, query))


def _planned(query: LogQuery) -> list[tuple[SegmentPart, ...]]:
    bounds = LogBounds(query.starting_offset, query.ending_offset, query.starting_timestamp, query.ending_timestamp)
    filtered = query.filtered
    chosen = [
        segment
        for segment in input_files(query)
        if (filtered.topics is None or segment.topic in filtered.topics)
        and (filtered.partitions is None or segment.partition in filtered.partitions)
    ]
    wanted = SelectedRows(filtered.first_offset, filtered.end_offset, filtered.first_timestamp)
    transacted = Transacted(query.committed, HIDDEN in query.columns)
    return tasks(parts(chosen, bounds, wanted, transacted, query.verify, part_bytes(query)), query.max_split_bytes)


def part_bytes(query: LogQuery) -> int:
    """Size of the part of a file that a task covers; it is larger if the task reads only headers [bytes]."""
    return query.max_split_bytes * (HEADERS_SPAN if query.rows == BATCHES and not is_checked(query) else 1)


def with_filters(query: LogQuery, comparisons: Sequence[Comparison]) -> LogQuery:
    """The query with pushed-down filters, which apply together. It may still return rows that do not match."""
    filtered = query.filtered
    for column, operator, *values in options.not_null(comparisons):
        if column == "offset":
            first, end = options.bounds_of(operator, *values)
            filtered = filtered._replace(
                first_offset=max(filtered.first_offset, first), end_offset=min(filtered.end_offset, end)
            )
        elif column in ("timestamp", "timestamp_ms"):
            # Only the start: a newer record may come before an older one.
            first, _ = options.bounds_of(operator, *map(options.floor_millis, values))
            if first > FIRST:
                filtered = filtered._replace(first_timestamp=max(filtered.first_timestamp or FIRST, first))
        elif column == "topic" and operator in ("=", "in"):
            filtered = filtered._replace(topics=options.within(filtered.topics, values))
        elif column == "partition" and operator in ("=", "in"):
            filtered = filtered._replace(partitions=options.within(filtered.partitions, values))
        elif column == "key" and operator in ("=", "in") and query.search.keys is None and len(values) <= _MOST_KEYS:
            query = query._replace(search=query.search._replace(keys=tuple(map(bytes, values))))
    return query._replace(filtered=filtered)


def read(query: LogQuery, task: Sequence[SegmentPart]) -> Iterator[pa.RecordBatch]:
    """The rows of a task.

    CorruptDataError with mode FAILFAST if a row has an error. FileChangedError if a file became shorter after the plan. With
    failOnDataLoss, DataLossError if a segment of a stream has other bytes than in the plan.
    """
    rows = record_rows if query.rows == RECORDS else batch_rows

    def read_part(part: SegmentPart) -> Iterator[pa.RecordBatch]:
        for one in parts_now(part, query.verify, part_bytes(query)):
            yield from rows(query, one)

    return batches_of(task, read_part)
