"""The options of a write to `kafka_log`, and the columns that it takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import pyarrow as pa

from sparkwire.core.sources import options
from sparkwire.core.sources.options import Option
from sparkwire.core.sources.staging import JOB_ID
from sparkwire.kafka import codecs
from sparkwire.kafka.files.kafka_log import COLUMNS, NAME, RECORDS
from sparkwire.kafka.layout import TIMESTAMP_TYPES
from sparkwire.kafka.to_records import LARGEST_DELTA

KEEP, ASSIGN = "keep", "assign"
APPEND, ERROR = "append", "error"
MAX_MESSAGE_BYTES: Final = 1_048_588
"""a topic's default of `max.message.bytes`"""
_LEGAL_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def _topic(value: str) -> str:
    if not is_topic(value):
        raise ValueError("a topic's name: up to 249 letters, digits, dots, underscores and hyphens")
    return value


def _segment_size(value: str) -> int:
    found = options.size(value)
    if found > LARGEST_DELTA:
        raise ValueError(f"a size of up to {LARGEST_DELTA} bytes, which is what an index can point into")
    return found


WRITE_OPTIONS: Final = (
    Option("path", options.text, "", "a directory, as a broker's `log.dirs` names it: partitions are directories in it"),
    Option("topic", _topic, None, "of rows without a column `topic`"),
    Option("partition", options.whole_number, None, "of rows without a column `partition`"),
    Option("compression", options.choice(*codecs.writable()), "none", "of every batch"),
    Option("batchBytes", options.size, 64 << 10, "up to which a batch is filled, before it is compressed [bytes]"),
    Option("segmentBytes", _segment_size, 1 << 30, "up to which a segment is filled: `segment.bytes` [bytes]"),
    Option("indexIntervalBytes", options.whole_number, 4096, "between entries of an index: `index.interval.bytes` [bytes]"),
    Option(
        "leaderEpoch",
        options.whole_number,
        None,
        "of every batch; by default that of its rows' `partition_leader_epoch`, 0 without it, and where rows are appended at "
        "least the last one that is there",
    ),
    Option(
        "offsets",
        options.choice(KEEP, ASSIGN),
        None,
        "`keep` those of the column `offset`, the default where it is; `assign` numbers the rows in their order, a task's after "
        "those of the tasks before",
    ),
    Option("startingOffset", options.whole_number, 0, "the first one that is assigned, in a partition that has none yet"),
    Option(
        "timestampType",
        options.choice(*TIMESTAMP_TYPES),
        None,
        "of every batch; by default that of its rows' `timestamp_type`, CreateTime without it",
    ),
    Option(
        "maxMessageBytes",
        options.size,
        MAX_MESSAGE_BYTES,
        "what a batch may come to, as it is written: the topic's `max.message.bytes` [bytes]",
    ),
    Option(
        "ifExists",
        options.choice(APPEND, ERROR),
        APPEND,
        "`error` refuses partitions that have records; Spark's mode `overwrite` replaces them",
    ),
    JOB_ID,
    Option("checkpointLocation", options.text, "", "streaming: Spark's own"),
)  # fmt: skip


class LogWrite(NamedTuple):
    """What is to be written, and how."""

    path: str
    topic: str | None
    partition: int | None
    codec: int
    batch_bytes: int
    segment_bytes: int
    index_interval_bytes: int
    leader_epoch: int | None
    has_epochs: bool
    """whether each row says its own"""
    assign: bool
    starting_offset: int
    log_append_time: bool | None
    max_message_bytes: int
    if_exists: str
    overwrite: bool
    job_id: str | None


def is_topic(name: str) -> bool:
    """Whether Kafka takes a topic of this name."""
    return bool(_LEGAL_TOPIC.fullmatch(name)) and name not in (".", "..")


def write_of(given: Mapping[str, str], schema: pa.Schema, overwrite: bool) -> LogWrite:
    """Read the options of a write of rows with these columns.

    ValueError where an option or a column is wrong, or one is missing.
    """
    o = options.parsed(NAME, WRITE_OPTIONS, given)
    names = _checked(schema)
    if not o["path"]:
        raise ValueError(f"{NAME} needs path: the directory that partitions are written to")
    for name in ("topic", "partition"):
        if (name in names) == (o[name] is not None):
            raise ValueError(f"{NAME} takes {name} as a column or as an option: give one of them")
    kept = o["offsets"] or (KEEP if "offset" in names else None)
    if kept is None or (kept == KEEP and "offset" not in names):
        raise ValueError(f"{NAME} needs a column offset, or offsets => {ASSIGN}, which numbers the rows")
    epoch, stamped = o["leaderEpoch"], o["timestampType"]
    has_epochs = epoch is None and "partition_leader_epoch" in names
    return LogWrite(
        o["path"], o["topic"], o["partition"], codecs.BY_NAME[o["compression"]].id, o["batchBytes"], o["segmentBytes"],
        o["indexIntervalBytes"], epoch, has_epochs, kept == ASSIGN, o["startingOffset"],
        None if stamped is None else stamped == TIMESTAMP_TYPES[1], o["maxMessageBytes"], o["ifExists"], overwrite, o["jobId"],
    )  # fmt: skip


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
    "key": (_BYTES, "BINARY or STRING"),
    "value": (_BYTES, "BINARY or STRING"),
    "headers": ((pa.types.is_list,), "ARRAY<STRUCT<key STRING, value BINARY>>"),
    "partition_leader_epoch": (_INTEGERS, "INT"),
}
"""the columns that are written, with the types that each may have"""
IGNORED: Final = frozenset(COLUMNS[RECORDS]) - set(_TAKEN) - {"error", "is_control"}
"""what else `kafka_log` reads: it says where and how a record was stored"""


def _checked(schema: pa.Schema) -> list[str]:
    """The names of the columns, each of which is known and has its type."""
    known = [*_TAKEN, "error", "is_control", *IGNORED]
    for field in schema:
        if field.name not in known:
            raise ValueError(f"{NAME} has no column {field.name!r} to write: it takes {', '.join(_TAKEN)}")
        fit, sql = _TAKEN.get(field.name, ((lambda _: True,), ""))
        if not any(one(field.type) for one in fit) and not pa.types.is_null(field.type):
            raise ValueError(f"{NAME} takes {field.name} {sql}, got {field.type}")
    return list(schema.names)
