"""The columns of a topic's tables, as the messages declare them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.core.column import bools_of, primitive
from sparkwire.core.names import Table
from sparkwire.datahub.blobs import BlobColumn
from sparkwire.json import values
from sparkwire.json.grammar import ABSENT
from sparkwire.kernels import Bools, Ints

_RECENCY: Final = ("digits", "sequence_id", "event_time_ms")


def of_table(messages: BlobColumn, table: Table) -> Bools:
    """Whether each message is of the table; false for NULL. True for a corrupt message if its table's name is lost."""
    damaged = ~messages.documents.intact
    valid = messages.source.valid
    chosen = np.ones(messages.source.rows, np.bool_) if valid is None else valid.copy()
    for field, name in (("table", table.name), ("database", table.database), ("schema_name", table.schema)):
        if name is not None:
            value = messages.value(field)
            same = bools_of(pc.equal(values.texts(value), name).fill_null(False))
            chosen &= same | (damaged & (value.kinds == ABSENT))
    return chosen


def declarations(blobs: pa.Array, table: Table) -> pa.RecordBatch:
    """The different lists of columns that messages of the table declare.

    Returns
    -------
    pa.RecordBatch
        ``columns`` ARRAY<STRUCT<name STRING, type STRING>>, and ``recency`` STRUCT<digits INT, sequence_id STRING,
        event_time_ms BIGINT> of the list's last message. Recencies have the same order as the numbers of the sequence ids.
    """
    messages = BlobColumn(blobs)
    columns = messages.columns.distinct
    rows = np.flatnonzero(of_table(messages, table) & messages.documents.intact & (columns.codes >= 0))
    recency = _recency(messages, rows)
    newest_first = pc.sort_indices(recency, [(name, "descending") for name in _RECENCY])
    _, firsts = np.unique(columns.codes[rows][newest_first], return_index=True)
    latest = np.asarray(newest_first)[firsts]
    lists = messages.column_lists.take(primitive(rows[latest]))
    recencies = recency.take(primitive(latest)).to_struct_array()
    return pa.record_batch([lists, recencies], names=["columns", "recency"])


def _recency(messages: BlobColumn, rows: Ints) -> pa.RecordBatch:
    ids = values.texts(messages.value("sequence_id").at(rows)).fill_null("")
    numbers = pc.if_else(pc.match_substring_regex(ids, "^[0-9]+$"), pc.utf8_ltrim(ids, "0"), "")
    times, timed = messages.event_time
    columns = [pc.utf8_length(numbers), numbers, primitive(np.where(timed, times, -1)[rows])]
    return pa.record_batch(columns, names=list(_RECENCY))


def latest_columns(lists: Iterable[Iterable[Mapping[str, Any] | None]]) -> dict[str, str]:
    """Name and type of every column of these lists; ``lists`` begins with the oldest.

    The result begins with the columns of the newest list. A column has its type from the newest list that contains it.
    """
    columns: dict[str, str] = {}
    for items in lists:
        newest = {item["name"]: item["type"] or "" for item in items if item is not None and item["name"] is not None}
        columns = newest | {name: type for name, type in columns.items() if name not in newest}
    return columns
