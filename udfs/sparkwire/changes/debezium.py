"""Decode Debezium messages to changes.

Connectors fill unknown values of an old row with zeros. So only the key of `before` is used, unless the user specifies otherwise.
A change of a key is two messages; the second has the old key in a header, which becomes its `_before_`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import ERRORS, MISSING_FIELD
from sparkwire.changes.batches import ChangeBatch, change_schema, names_column
from sparkwire.changes.columns import DELETE, READ
from sparkwire.core.column import bools_of
from sparkwire.core.table_names import Table
from sparkwire.debezium.change_rows import POSITION, MessageSide, changes_of, key_rows, row_schema

_OLD_KEY: Final = "__debezium.oldkey"


class DebeziumTable(NamedTuple):
    """How to read the messages of a table. Contains only plain data, which Spark pickles for workers."""

    table: Table
    columns: Mapping[str, str]
    keys: tuple[str, ...] | None
    whole_before: bool
    placeholder: str
    by_offset: bool


def debezium_schema(how: DebeziumTable) -> pa.Schema:
    fields = list(row_schema(how.columns).field("after").type)
    return change_schema(pa.int64() if how.by_offset else POSITION, fields)


def debezium_changes(
    values: MessageSide,
    how: DebeziumTable,
    *,
    keys: MessageSide | None = None,
    headers: pa.Array | None = None,
    topics: pa.Array | None = None,
    offsets: pa.Array | None = None,
) -> ChangeBatch:
    """The changes of a table, from the columns of Kafka records that are available."""
    changes = changes_of(values, how.table, how.columns, keys, topics, how.placeholder)
    rows, batch = changes.rows, changes.batch
    has_value = values.column.is_valid().take(pa.array(rows))
    if offsets is None and len(rows):
        # A tombstone has no position, and only repeats the delete before it. So drop it.
        rows, batch = rows[bools_of(has_value)], batch.filter(has_value)
        has_value = has_value.filter(has_value)
    schema = debezium_schema(how)
    names = [field.name for field in schema.field("_before_").type]
    old_keys = _old_keys(headers, rows, how.columns)
    before = _old_rows(batch, names, how, old_keys)
    old_row = before if how.keys is not None and not how.whole_before else batch["before"]
    has_after = batch["after"].is_valid()
    fields = [
        pc.if_else(has_after, after, old)
        for after, old in zip(batch["after"].flatten(), old_row.flatten(), strict=True)
    ]
    orders = _positions(batch) if offsets is None else offsets.take(pa.array(rows)).cast(pa.int64())
    lost = pc.if_else(orders.is_null(), ERRORS[MISSING_FIELD], None)
    columns_out = [
        batch["op"],
        orders,
        batch["time"],
        batch["table"],
        batch["transaction"],
        batch["keys"] if how.keys is None else names_column(how.keys, len(rows)),
        before,
        *fields,
        batch["unavailable"],
        batch["unexpected"],
        pc.coalesce(pc.if_else(has_value, batch["error"], None), lost),
    ]
    return ChangeBatch(
        rows,
        pa.RecordBatch.from_arrays(
            [_as(one, field) for one, field in zip(columns_out, schema, strict=True)], schema=schema
        ),
    )


def _as(column: pa.Array, field: pa.Field) -> pa.Array:
    return column if column.type == field.type else column.cast(field.type)


def _old_rows(batch: pa.RecordBatch, names: Sequence[str], how: DebeziumTable, old_keys: pa.Array | None) -> pa.Array:
    """The old row, in full or only its key. After a change of the key, the old key."""
    before = batch["before"]
    if not how.whole_before:
        keys = [set(how.keys or ())] if how.keys is not None else None
        columns = [
            column if keys is None or name in keys[0] else pa.nulls(len(column), column.type)
            for name, column in zip(names, before.flatten(), strict=True)
        ]
        if keys is not None:
            before = pa.StructArray.from_arrays(columns, fields=list(before.type), mask=before.is_null())
    if old_keys is None:
        return before
    moved = pc.and_(old_keys.is_valid(), pc.not_equal(batch["op"], DELETE).fill_null(False))
    return pc.if_else(moved, old_keys, before)


def _old_keys(headers: pa.Array | None, rows: np.ndarray, columns: Mapping[str, str]) -> pa.Array | None:
    """STRUCT of the columns: the old key of each row, NULL if no header has it."""
    if headers is None or not len(rows):
        return None
    lists = headers.take(pa.array(rows))
    items = lists.flatten()
    parents = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
    named = np.flatnonzero(bools_of(pc.equal(items.field(0).cast(pa.string()), _OLD_KEY).fill_null(False)))
    if not len(named):
        return None
    texts = items.field(1).take(pa.array(named))
    old = key_rows(texts, columns)
    places = np.full(len(rows), -1)
    places[parents[named]] = np.arange(len(named))
    return old.take(pa.array(places, mask=places < 0))


def _positions(batch: pa.RecordBatch) -> pa.Array:
    """The positions in the source. A snapshot's row without a position gets one before all others."""
    positions = batch["position"]
    first = pa.scalar({part.name: None for part in POSITION}, POSITION)
    unplaced = pc.and_(positions.is_null(), pc.equal(batch["op"], READ).fill_null(False))
    return pa.concat_arrays([positions, pa.array([first], POSITION)]).take(
        pc.if_else(unplaced, len(positions), pa.array(np.arange(len(positions))))
    )
