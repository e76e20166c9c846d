"""Prepare rows for `kafka_log`: check them, convert their columns, and group them by partition."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.printable import value_error
from sparkwire.core.arguments import coerce
from sparkwire.core.column import bools_of, primitive
from sparkwire.kafka.files.kafka_log import NAME
from sparkwire.kafka.files.log_rows import HIDDEN
from sparkwire.kafka.layout import NO_TIMESTAMP, TIMESTAMP_TYPES
from sparkwire.kafka.write.write_options import LARGEST_OFFSET, LogWrite, column_names, is_topic

HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ROWS: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int64()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),  # [ms since epoch], NO_TIMESTAMP for none
        ("log_append_time", pa.bool_()),
        ("epoch", pa.int64()),  # -1 for none
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
    ]
)
_LARGEST_PARTITION: Final = 2**31 - 1


def rows_of(write: LogWrite, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of Spark as `ROWS`; ValueError for a row that it cannot write, with topic, partition and offset."""
    columns = dict(zip(column_names(batch.schema), batch.columns, strict=True))
    if "timestamp_type" not in columns and "timestampType" in columns:  # the column of Spark's own Kafka source
        columns["timestamp_type"] = _named_types(columns["timestampType"])
    count = batch.num_rows

    def column(name: str, type: pa.DataType, instead: Any = None) -> pa.Array:
        if name in columns:
            return columns[name].cast(type)
        return pa.nulls(count, type) if instead is None else pa.repeat(pa.scalar(instead, type), count)

    rows = pa.RecordBatch.from_arrays(
        [
            column("topic", pa.string(), write.topic),
            column("partition", pa.int64(), write.partition),
            pa.repeat(pa.scalar(0, pa.int64()), count) if write.assign else column("offset", pa.int64()),
            _millis(columns, count),
            _appended(write, columns, count),
            column("partition_leader_epoch", pa.int64()).fill_null(-1),
            column("key", pa.binary()),
            column("value", pa.binary()),
            _headers(columns, count),
        ],
        schema=ROWS,
    )
    _check(write, rows, columns)
    return rows


def _named_types(numbers: pa.Array) -> pa.Array:
    """The names of Kafka's timestamp types; -1 stands for a record without a timestamp."""
    numbers = numbers.cast(pa.int64())
    names = [None, *TIMESTAMP_TYPES]
    valid = pc.and_(pc.greater_equal(numbers, -1), pc.less(numbers, len(TIMESTAMP_TYPES)))
    named = pa.array(names, pa.string()).take(pc.add(pc.if_else(valid, numbers, -1), 1))
    return pc.if_else(valid, named, numbers.cast(pa.string()))


def _millis(columns: dict[str, pa.Array], count: int) -> pa.Array:
    stored = columns["timestamp_ms"].cast(pa.int64()) if "timestamp_ms" in columns else pa.nulls(count, pa.int64())
    if "timestamp" in columns:
        stored = pc.coalesce(stored, _floor_millis(columns["timestamp"]))
    return stored.fill_null(NO_TIMESTAMP)


def _floor_millis(timestamp: pa.Array) -> pa.Array:
    """A TIMESTAMP column [ms since epoch], rounded toward the past."""
    moments = timestamp.cast(pa.timestamp("us", "UTC"))
    return primitive(np.asarray(moments.cast(pa.int64()).fill_null(0)) // 1000, bools_of(moments.is_valid()))


def _appended(write: LogWrite, columns: dict[str, pa.Array], count: int) -> pa.Array:
    if write.log_append_time is not None or "timestamp_type" not in columns:
        return pa.repeat(pa.scalar(bool(write.log_append_time)), count)
    return pc.equal(columns["timestamp_type"].cast(pa.string()), TIMESTAMP_TYPES[1]).fill_null(False)


def _headers(columns: dict[str, pa.Array], count: int) -> pa.Array:
    return coerce(columns["headers"], HEADERS, NAME, "headers") if "headers" in columns else pa.nulls(count, HEADERS)


_RANGES: Final = (
    ("partition", 0, _LARGEST_PARTITION),
    ("offset", 0, LARGEST_OFFSET),
    ("timestamp", NO_TIMESTAMP, 2**63 - 1),
    ("epoch", -1, 2**31 - 1),
)


def _check(write: LogWrite, rows: pa.RecordBatch, columns: dict[str, pa.Array]) -> None:
    """ValueError for the first invalid row."""
    _reject_first(rows, rows.column("topic").is_null(), "topic is NULL")
    for name, least, most in _RANGES:
        numbers = rows.column(name)
        if numbers.null_count:
            _reject_first(rows, numbers.is_null(), f"{name} is NULL")
        extremes = pc.min_max(numbers)
        if rows.num_rows and (extremes["min"].as_py() < least or extremes["max"].as_py() > most):
            wrong = pc.or_(pc.less(numbers, least), pc.greater(numbers, most))
            _reject_first(rows, wrong, f"{name} has to be from {least} to {most}")
    for name in ("timestamp", "timestamp_ms"):
        if name in columns:
            is_mark = pc.and_(columns[name].is_valid(), pc.equal(rows.column("timestamp"), NO_TIMESTAMP))
            _reject_first(
                rows, is_mark, f"its timestamp is {NO_TIMESTAMP} ms, which means none in Kafka: use NULL for none"
            )
    if "timestamp" in columns and "timestamp_ms" in columns:
        differ = pc.not_equal(_floor_millis(columns["timestamp"]), columns["timestamp_ms"].cast(pa.int64()))
        _reject_first(rows, differ, "its timestamp and its timestamp_ms differ: leave out one of the two columns")
    headers = rows.column("headers")
    if headers.flatten().flatten()[0].null_count:
        keys = ((k, some.values.flatten()[0]) for k, some in enumerate(headers) if some.is_valid)
        reject_row(rows, next(k for k, some in keys if some.null_count), "a header without a key")
    if "timestamp_type" in columns:
        types = columns["timestamp_type"].cast(pa.string())
        unknown = pc.and_(types.is_valid(), pc.invert(pc.is_in(types, pa.array(TIMESTAMP_TYPES))))
        _reject_first(rows, unknown, f"timestamp_type is none of {', '.join(TIMESTAMP_TYPES)}")
    if "error" in columns:
        _reject_first(rows, columns["error"].is_valid(), "a row with an error is no record: leave it out")
    if "is_control" in columns:
        _reject_first(
            rows, columns["is_control"].fill_null(False), "a control record, which only a broker writes: leave it out"
        )
    if HIDDEN in columns:
        _reject_first(
            rows,
            columns[HIDDEN].is_valid(),
            f"{HIDDEN} says that its transaction, or one before it, is not committed: read with isolationLevel => read_committed",
        )
    elif "is_transactional" in columns and not write.committed:
        _reject_first(
            rows,
            columns["is_transactional"].fill_null(False),
            "it is part of a transaction, which may be aborted or open: end open ones, and read the log with isolationLevel => "
            "read_committed",
        )


def _reject_first(rows: pa.RecordBatch, wrong: pa.Array, what: str) -> None:
    marks = bools_of(wrong.fill_null(False))
    if marks.any():
        reject_row(rows, int(marks.argmax()), what)


def reject_row(rows: pa.RecordBatch, at: int, what: str) -> NoReturn:
    topic, partition, offset = (rows.column(name)[at].as_py() for name in ("topic", "partition", "offset"))
    raise value_error(f"{NAME} cannot write topic {topic}, partition {partition}, offset {offset}: {what}")


def by_partition(rows: pa.RecordBatch) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """The rows of each partition, in order."""
    if not rows.num_rows:
        return
    topics = rows.column("topic").dictionary_encode()
    for topic in topics.dictionary.to_pylist():
        if not is_topic(topic):
            at = int(pc.index(rows.column("topic"), topic).as_py())
            reject_row(
                rows, at, "Kafka takes as a topic's name up to 249 letters, digits, dots, underscores and hyphens"
            )
    codes = np.stack([np.asarray(topics.indices).astype(np.int64), np.asarray(rows.column("partition"))])
    if _changes(codes).any():
        order = np.lexsort(codes[::-1])
        if (np.diff(order) != 1).any():
            rows, codes = rows.take(primitive(order)), codes[:, order]
    ends = [0, *(np.flatnonzero(_changes(codes)) + 1).tolist(), rows.num_rows]
    for first, end in pairwise(ends):
        some = rows.slice(first, end - first)
        yield some.column("topic")[0].as_py(), some.column("partition")[0].as_py(), some


def _changes(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    changes: npt.NDArray[np.bool_] = (np.diff(codes) != 0).any(axis=0)
    return changes
