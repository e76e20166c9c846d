"""Fold the open keys of a batch together with the rows that the table has for them.

A stored row is a few steps (`sparkwire.changes.fold.unfolded`), so its fold with those of the batch is that of all changes. The
statement of the merge checks that each row is still the one that was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import and_
from typing import Final

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    StringType,
    StructField,
    StructType,
)

from sparkwire.base.sqltype import sql_string
from sparkwire.changes.columns import DELETED, ORDER, TIME, UNAVAILABLE, UNEXPECTED
from sparkwire.changes.fold import DEPARTURE, MEMORY, TOPIC, unfolded
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.orders import NO_TOPIC, Place
from sparkwire.spark.changes.states import counts, fold, states_schema, with_moved_values
from sparkwire.spark.frames import checkpointed, quoted

_READ: Final = ("read_at", "read_time", "read_live", "read_memory")
"""columns of a stored row as it was read"""
_NO_MAP: Final = "CAST(NULL AS MAP<STRING, STRING>)"


def memory_type(order: DataType) -> StructType:
    """The type of `MEMORY`: what a row keeps beside its values.

    ``entry`` and ``event`` are of rows that are none of their key: the last TRUNCATE, and departures. The other parts are
    those of a state.
    """
    orders = ArrayType(StructType([StructField("name", StringType()), StructField("at", order)]))
    fields = {
        "entry": StringType(),
        "event": StringType(),
        "born": order,
        "ref": StringType(),
        "older": orders,
        "moved": orders,
    }
    return StructType([StructField(name, type) for name, type in fields.items()])


def memory(order: DataType, **parts: str) -> str:
    """A value of `MEMORY` as SQL."""
    fields = (
        f"{sql_string(field.name)}, CAST({parts.get(field.name, 'NULL')} AS {field.dataType.simpleString()})"
        for field in memory_type(order)
    )
    return f"named_struct({', '.join(fields)})"


def plain_source(batch: DataFrame, table: ChangedTable, has_deletes: bool = True) -> DataFrame:
    """The source of a statement from the newest steps of keys that are not open.

    The values that a DELETE reports are none of the table: they may be fillers, and a deleted row has none.
    """
    order = table.schema[ORDER].dataType
    shown = "CASE WHEN live THEN {0} END AS {0}" if has_deletes else "{0}"
    return batch.where("nth = 1 AND NOT is_open").selectExpr(
        *table.key_names(),
        f"{table.order.as_struct()} AS at",
        *("topic", "`time`", "live", "live AS has_values"),
        *(shown.format(place) for place in (*table.value_places().values(), "unexpected")),
        "CAST(NULL AS ARRAY<STRING>) AS unavailable",
        f"CAST(NULL AS {memory_type(order).simpleString()}) AS memory",
        "FALSE AS is_read",
        f"CAST(NULL AS {order.simpleString()}) AS read_at",
        f"CAST(NULL AS {memory_type(order).simpleString()}) AS read_memory",
        "CAST(NULL AS STRING) AS split",
    )


def departed_keys(stored: DataFrame, table: ChangedTable) -> DataFrame:
    """The keys of stored departures."""
    keys = (F.col(quoted(key)).alias(name) for key, name in zip(table.keys, table.key_names(), strict=True))
    return stored.where(f"{MEMORY}.entry = {sql_string(DEPARTURE)}").select(*keys).distinct()


def with_stored(
    batch: DataFrame,
    stored: DataFrame,
    table: ChangedTable,
    *,
    truncate: Place,
    every: bool,
    keep: bool,
    untold: Sequence[str],
) -> DataFrame:
    """The source of a statement: the last row of each key, and departures.

    ``every``: whether rows of other keys may change: there is a change of a key, or a TRUNCATE. ``untold``: columns that the
    stored rows do not have yet.
    """
    read = checkpointed(_read_states(batch, stored, table, every=every, keep=keep, untold=untold))
    read_keys = _keys(read.select(*table.key_names()).distinct(), "read", table)
    marked = batch.join(read_keys, _same("read", table), "left")
    chosen = marked.where("is_open OR is_read IS NOT NULL")
    others = marked.where("is_read IS NULL").select(*batch.columns)
    steps = _with_nothing_read(chosen, table).unionByName(_steps_of(read, table))
    has_topic = TOPIC in stored.columns
    counting = steps.withColumn("counts", F.expr(counts(table, truncate, has_topic)))
    states = fold(counting, table, keep=keep)
    states = with_moved_values(states, table) if every else states.withColumn("is_needed", F.lit(False))
    return plain_source(others, table).unionByName(_source(states, table, keep))


def _read_states(
    batch: DataFrame, stored: DataFrame, table: ChangedTable, *, every: bool, keep: bool, untold: Sequence[str]
) -> DataFrame:
    """The stored rows of open keys, rows with older values, and all departures, as states."""
    keys = batch.where("nth = 1").select(*table.key_names(), "is_open")
    names = [f"_batch_{name}_" for name in table.key_names()]  # the stored rows may have columns with any other name
    keys = keys.toDF(*names, "_is_open_").withColumn("_is_in_batch_", F.lit(True))
    same = reduce(
        and_, (F.col(quoted(key)).eqNullSafe(F.col(name)) for key, name in zip(table.keys, names, strict=True))
    )
    rows = stored.join(keys, same, "left").where(
        f"{MEMORY}.entry = {sql_string(DEPARTURE)} OR {MEMORY}.entry IS NULL AND (coalesce(_is_open_, FALSE) "
        f"OR {MEMORY} IS NOT NULL AND {'TRUE' if every else 'coalesce(_is_in_batch_, FALSE)'})"
    )
    order = table.schema[ORDER].dataType.simpleString()
    orders = f"ARRAY<STRUCT<name: STRING, at: {order}>>"
    unavailable = f"coalesce({UNAVAILABLE}, array())" if UNAVAILABLE in stored.columns else "array()"
    return rows.selectExpr(
        *(f"{quoted(key)} AS {name}" for key, name in zip(table.keys, table.key_names(), strict=True)),
        f"CAST({ORDER} AS {order}) AS at",
        f"{TOPIC if TOPIC in stored.columns else NO_TOPIC} AS topic",
        f"{TIME} AS `time`",
        f"NOT {DELETED} AS live",
        f"{'TRUE' if keep else f'NOT {DELETED}'} AS has_values",
        *(f"{quoted(column)} AS {place}" for column, place in table.value_places().items()),
        f"{UNEXPECTED if UNEXPECTED in stored.columns else _NO_MAP} AS unexpected",
        f"{MEMORY}.event AS event",
        f"CAST({MEMORY}.born AS {order}) AS born",
        f"{MEMORY}.ref AS ref",
        f"array_union(CAST({unavailable} AS ARRAY<STRING>), {without_value(untold)}) AS unavailable",
        f"coalesce(CAST({MEMORY}.older AS {orders}), CAST(array() AS {orders})) AS older",
        f"coalesce(CAST({MEMORY}.moved AS {orders}), CAST(array() AS {orders})) AS moved",
        f"{ORDER} AS read_at",
        f"{TIME} AS read_time",
        f"NOT {DELETED} AS read_live",
        f"{MEMORY} AS read_memory",
    )


def without_value(columns: Sequence[str], row: str = "") -> str:
    """The names of the columns that are NULL in a row, as SQL.

    A merge may have been killed after it stored values of new columns, and before it noted that: those values count.
    """
    names = (f"CASE WHEN {row}{quoted(name)} IS NULL THEN {sql_string(name)} END" for name in columns)
    return f"array_compact(CAST(array({', '.join(names)}) AS ARRAY<STRING>))"


def _steps_of(read: DataFrame, table: ChangedTable) -> DataFrame:
    """The steps of stored states, with the columns of `_with_nothing_read`."""
    types = {field.name: field.dataType for field in states_schema(table)}
    fields = [
        *(StructField(name, types[name]) for name in (*table.key_names(), "topic", "time")),
        *(StructField(place, types[place]) for place in table.value_places().values()),
        *(StructField(name, types[name]) for name in ("unexpected", "at")),
        StructField("rank", ByteType()),
        *(
            StructField(name, BooleanType())
            for name in ("live", "has_values", "bounds", "is_stored", "is_entry", "of_entry")
        ),
        *(StructField(name, StringType()) for name in ("arrival", "departure")),
        StructField("unavailable", ArrayType(StringType())),
        StructField("moved", types["moved"]),
        *(read.schema[name] for name in _READ),
    ]
    schema = StructType(fields)
    steps = read.mapInArrow(partial(_unfolded, table.value_places(), schema.names), schema)
    return steps.selectExpr(*(quoted(name) for name in schema.names if name != "at"), *table.order.split("at"))


def _unfolded(
    places: Mapping[str, str], names: Sequence[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            yield from unfolded(pa.Table.from_batches([batch]), places).select(names).combine_chunks().to_batches()


def _with_nothing_read(steps: DataFrame, table: ChangedTable) -> DataFrame:
    order = table.schema[ORDER].dataType
    return steps.selectExpr(
        *table.key_names(),
        *table.order.names,
        *("topic", "`time`", "rank", "live", "has_values", "bounds", "arrival", "departure"),
        *("unavailable", *table.value_places().values(), "unexpected"),
        f"CAST(array() AS ARRAY<STRUCT<name: STRING, at: {order.simpleString()}>>) AS moved",
        *("FALSE AS is_stored", "FALSE AS is_entry", "FALSE AS of_entry"),
        f"CAST(NULL AS {order.simpleString()}) AS read_at",
        f"CAST(NULL AS {table.time_type.simpleString()}) AS read_time",
        "CAST(NULL AS BOOLEAN) AS read_live",
        f"CAST(NULL AS {memory_type(order).simpleString()}) AS read_memory",
    )


def _source(states: DataFrame, table: ChangedTable, keep: bool) -> DataFrame:
    """States as rows of the source: those that differ from the stored ones."""
    order = table.schema[ORDER].dataType
    parts = {name: name for name in ("born", "ref", "older", "moved")}
    entry = memory(order, entry=sql_string(DEPARTURE), event="event", **parts)
    partial_row = memory(order, **parts)
    is_partial = "(live AND size(older) + size(moved) + size(unavailable) > 0)"
    of_row = f"CASE WHEN event IS NOT NULL THEN {entry} WHEN {is_partial} THEN {partial_row} END"
    shown = "live OR event IS NOT NULL" + (" OR TRUE" if keep else "")
    rows = states.selectExpr(
        *table.key_names(),
        *("at", "topic", "`time`", "live", f"{shown} AS has_values"),
        *(f"CASE WHEN {shown} THEN {place} END AS {place}" for place in table.value_places().values()),
        "unexpected",
        f"CASE WHEN ({shown}) AND size(unavailable) > 0 THEN unavailable END AS unavailable",
        f"{of_row} AS memory",
        *("TRUE AS is_read", *_READ, "CASE WHEN live THEN split END AS split"),
        *("event", "is_needed"),
    )
    as_read = {"at": "read_at", "`time`": "read_time", "live": "read_live", "memory": "read_memory"}
    is_same = " AND ".join(["read_at IS NOT NULL", *(f"{name} <=> {read}" for name, read in as_read.items())])
    return rows.where(f"(event IS NULL OR is_needed) AND NOT ({is_same})").drop(
        "event", "is_needed", "read_time", "read_live"
    )


def _keys(rows: DataFrame, name: str, table: ChangedTable) -> DataFrame:
    """Keys, for a join by `_same`."""
    keys = (F.col(key).alias(f"{name}_{key}") for key in table.key_names())
    return rows.select(*keys, F.lit(True).alias(f"is_{name}"))


def _same(name: str, table: ChangedTable) -> Column:
    return reduce(and_, (F.col(key).eqNullSafe(F.col(f"{name}_{key}")) for key in table.key_names()))
