"""The options and columns of a write to `kafka_log`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa

from sparkwire.base.printable import value_error
from sparkwire.core.sources import options
from sparkwire.core.sources.job import JOB_ID
from sparkwire.core.sources.options import Option
from sparkwire.kafka import codecs
from sparkwire.kafka.files.kafka_log import COLUMNS, MARKED, NAME, ON_REQUEST, RECORDS, Origin, origin_in
from sparkwire.kafka.files.log_rows import HIDDEN
from sparkwire.kafka.layout import TIMESTAMP_TYPES
from sparkwire.kafka.to_records import LARGEST_DELTA

KEEP, ASSIGN = "keep", "assign"
APPEND, ERROR = "append", "error"
LARGEST_OFFSET: Final = 2**63 - 2
LARGEST_END: Final = LARGEST_OFFSET + 1
"""the offset after `LARGEST_OFFSET`"""
MAX_MESSAGE_BYTES: Final = 1_048_588
"""default of a topic's `max.message.bytes`"""
_LEGAL_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def _topic(value: str) -> str:
    if not is_topic(value):
        raise ValueError("a topic's name: up to 249 letters, digits, dots, underscores and hyphens")
    return value


def _segment_size(value: str) -> int:
    size = options.size(value)
    if size > LARGEST_DELTA:
        raise ValueError(f"a size of up to {LARGEST_DELTA} bytes, which is what an index can point into")
    return size


def _number(least: int, most: int) -> options.Parse:
    def parse(value: str) -> int:
        number = options.whole_number(value)
        if not least <= number <= most:
            raise value_error(f"a whole number from {least} to {most}")
        return number

    return parse


def _offsets(value: str) -> dict[str, int]:
    """One offset for every partition, under the key ``""``, or an offset by partition, as in Spark's Kafka source."""
    what = f'an offset from 0 to {LARGEST_END}, or {{"topic": {{"0": offset}}}} by partition'
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError(what) from None
    by_name = {"": document}
    if isinstance(document, dict) and all(isinstance(one, dict) for one in document.values()):
        by_name = {
            f"{topic}-{partition}": offset for topic, some in document.items() for partition, offset in some.items()
        }
    for offset in by_name.values():
        if not isinstance(offset, int) or isinstance(offset, bool) or not 0 <= offset <= LARGEST_END:
            raise ValueError(what)
    return by_name


WRITE_OPTIONS: Final = (
    Option("path", options.text, "", "a directory, as a broker's `log.dirs` names it: partitions are directories in it"),
    Option("topic", _topic, None, "the topic of rows, if they have no column `topic`"),
    Option("partition", options.whole_number, None, "the partition of rows, if they have no column `partition`"),
    Option("compression", options.choice(*codecs.writable()), "none", "the codec of every batch"),
    Option("batchBytes", options.size, 64 << 10, "target size of a batch before compression [bytes]"),
    Option("segmentBytes", _segment_size, 1 << 30, "maximum size of a segment: `segment.bytes` [bytes]"),
    Option("indexIntervalBytes", options.whole_number, 4096, "from one index entry to the next: `index.interval.bytes` [bytes]"),
    Option(
        "leaderEpoch",
        _number(0, 2**31 - 1),
        None,
        "the leader epoch of every batch. Default: the `partition_leader_epoch` of its rows, else 0; for appended rows at "
        "least the log's last epoch",
    ),
    Option(
        "offsets",
        options.choice(KEEP, ASSIGN),
        None,
        "`keep` uses the column `offset`, and is the default if it exists. `assign` numbers the rows in the order of "
        "tasks and of rows in a task",
    ),
    Option(
        "startingOffset",
        _number(0, LARGEST_OFFSET),
        0,
        "the first offset that `assign` gives in a new partition",
    ),
    Option(
        "sourcePath",
        options.text,
        "",
        "the log that the rows come from, a path as `kafka_log` reads it. Each of its partitions keeps its start and its end. "
        "`overwrite` also empties a partition without remaining rows. Default: the log that `kafka_log` has read, without this",
    ),
    Option(
        "startOffset",
        _offsets,
        None,
        "each log starts at this offset or before it: a number, or JSON by partition (`{\"orders\": {\"0\": 40}}`). Default: "
        "the start of the source",
    ),
    Option(
        "endOffset",
        _offsets,
        None,
        "each log ends at this offset (exclusive) or after it; written like `startOffset`. Default: the end of the source",
    ),
    Option(
        "timestampType",
        options.choice(*TIMESTAMP_TYPES),
        None,
        "the timestamp type of every batch. Default: the `timestamp_type` of its rows, else CreateTime",
    ),
    Option(
        "maxMessageBytes",
        options.size,
        MAX_MESSAGE_BYTES,
        "maximum size of a batch after compression: the topic's `max.message.bytes` [bytes]",
    ),
    Option(
        "ifExists",
        options.choice(APPEND, ERROR),
        APPEND,
        "`error` rejects partitions that have records; Spark's mode `overwrite` replaces them",
    ),
    JOB_ID,
    Option("checkpointLocation", options.text, "", "streaming: Spark's checkpoint"),
)  # fmt: skip


class LogWrite(NamedTuple):
    """The options of a write, and facts about its rows."""

    path: str
    topic: str | None
    partition: int | None
    codec: int
    batch_bytes: int
    segment_bytes: int
    index_interval_bytes: int
    leader_epoch: int | None
    has_epochs: bool
    """whether each row has a leader epoch"""
    assign: bool
    starting_offset: int
    log_append_time: bool | None
    max_message_bytes: int
    if_exists: str
    overwrite: bool
    job_id: str | None
    source: Origin | None
    """the source of the rows, if known"""
    is_source_named: bool
    """whether the user has named the source; then the job writes all its partitions"""
    starts: Mapping[str, int] | None
    """largest start offset of logs, by partition; ``""`` for all partitions"""
    ends: Mapping[str, int] | None
    """smallest end offset of logs, by partition; ``""`` for all partitions"""
    committed: bool
    """whether all transactional rows are of committed transactions"""


def is_topic(name: str) -> bool:
    """Whether Kafka accepts a topic with this name."""
    return bool(_LEGAL_TOPIC.fullmatch(name)) and name not in (".", "..")


def write_of(texts: Mapping[str, str], schema: pa.Schema, overwrite: bool) -> LogWrite:
    """Read the options of a write; ``schema`` has the rows' columns.

    ValueError if an option or a column is wrong or missing.
    """
    o = options.parsed(NAME, WRITE_OPTIONS, texts)
    names = _checked(schema)
    if not o["path"]:
        raise ValueError(f"{NAME} needs path: the directory to write partitions to")
    for name in ("topic", "partition"):
        if (name in names) == (o[name] is not None):
            raise value_error(f"{NAME} takes {name} as a column or as an option: pass one of them")
    offsets = o["offsets"] or (KEEP if "offset" in names else None)
    if offsets is None or (offsets == KEEP and "offset" not in names):
        raise ValueError(f"{NAME} needs a column offset, or offsets => {ASSIGN}, which numbers the rows")
    epoch, stamped = o["leaderEpoch"], o["timestampType"]
    read = next(
        (
            log_ends
            for name in MARKED
            if name in names and (log_ends := origin_in(schema.field(names.index(name)).metadata))
        ),
        None,
    )
    has_epochs = epoch is None and "partition_leader_epoch" in names
    return LogWrite(
        o["path"], o["topic"], o["partition"], codecs.BY_NAME[o["compression"]].id, o["batchBytes"], o["segmentBytes"],
        o["indexIntervalBytes"], epoch, has_epochs, offsets == ASSIGN, o["startingOffset"],
        None if stamped is None else stamped == TIMESTAMP_TYPES[1], o["maxMessageBytes"], o["ifExists"], overwrite, o["jobId"],
        _source(o, read, overwrite, offsets == ASSIGN), bool(o["sourcePath"]), o["startOffset"], o["endOffset"],
        read is not None and read.committed,
    )  # fmt: skip


def _source(o: Mapping[str, Any], read: Origin | None, overwrite: bool, assign: bool) -> Origin | None:
    """The log whose start and end count. For appended rows and rows with new offsets, only a log that the user names."""
    if o["sourcePath"]:
        return Origin((o["sourcePath"],))
    whole = overwrite or o["ifExists"] == ERROR
    return read if read is not None and read.paths and whole and not assign else None


# -- columns

_BYTES: Final = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string, pa.types.is_large_string)
_STRINGS: Final = (pa.types.is_string, pa.types.is_large_string)
_INTEGERS: Final = (pa.types.is_integer,)
_TAKEN: Final = {
    "topic": (_STRINGS, "STRING"),
    "partition": (_INTEGERS, "INT"),
    "offset": (_INTEGERS, "BIGINT"),
    "timestamp": ((lambda got: pa.types.is_timestamp(got) and got.tz is not None,), "TIMESTAMP"),
    "timestamp_ms": (_INTEGERS, "BIGINT"),
    "timestamp_type": (_STRINGS, "STRING"),
    "timestampType": (_INTEGERS, "INT"),
    "key": (_BYTES, "BINARY or STRING"),
    "value": (_BYTES, "BINARY or STRING"),
    "headers": ((pa.types.is_list,), "ARRAY<STRUCT<key STRING, value BINARY>>"),
    "partition_leader_epoch": (_INTEGERS, "INT"),
}
"""the columns to write, with the allowed types of each"""
CHECKED: Final = ("error", "is_control", "is_transactional", HIDDEN)
"""columns that determine whether a row may become a record"""
IGNORED: Final = (frozenset(COLUMNS[RECORDS]) | frozenset(ON_REQUEST)) - set(_TAKEN) - set(CHECKED)
"""the other columns of `kafka_log`, which describe where a record was read"""


_NAMES: Final = {name.lower(): name for name in (*_TAKEN, *CHECKED, *IGNORED)}


def column_names(schema: pa.Schema) -> list[str]:
    """The format's names of the columns, which may be in upper or lower case. ValueError for an unknown or repeated name."""
    for name in schema.names:
        if name.lower() not in _NAMES:
            raise ValueError(f"{NAME} has no column {name!r} to write: it takes {', '.join(_TAKEN)}")
    names = [_NAMES[name.lower()] for name in schema.names]
    for name in names:
        if names.count(name) > 1:
            raise value_error(f"{NAME} takes the column {name} once: names are the same in any case")
    return names


def _checked(schema: pa.Schema) -> list[str]:
    """The names of the columns, after a check of names and types."""
    names = column_names(schema)
    for name, field in zip(names, schema, strict=True):
        fit, sql = _TAKEN.get(name, ((lambda _: True,), ""))
        if not any(one(field.type) for one in fit) and not pa.types.is_null(field.type):
            raise value_error(f"{NAME} takes {field.name} {sql}, got {field.type}")
    return names
