"""The rows that a merge gives to its statement: the last row of each key in a batch.

| columns | |
|---|---|
| ``key_0`` … | the key; NULL for an entry |
| ``at``, ``topic``, ``time``, ``live`` | order and time of the last change; whether the row exists after it |
| ``known`` | whether the following columns are values of the key; else those of the table stay |
| ``c0`` …, ``unexpected`` | the newest values. A row that was inserted and deleted in one batch has them, too |
| ``kept`` | the columns whose value is not in the batch: those of the table stay |
| ``memory`` | what the table has to remember, see `sparkwire.changes.merge_memory` |

Facts about the batch are one aggregate over these rows, as one JSON text. Spark returns some types of observed metrics only
as Java objects. Orders and keys are texts in it, which `literal` makes literals of SQL.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from sparkwire.base.printable import printable
from sparkwire.base.sqltype import sql_string
from sparkwire.changes.columns import ORDER, TWO_TABLES
from sparkwire.changes.merge_memory import MEMORY, TOPIC, TRUNCATE
from sparkwire.changes.orders import EPOCH
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.merge_order import NO_TOPIC, place_type
from sparkwire.spark.changes.order_columns import epoch_of, key_text
from sparkwire.spark.frames import quoted

MEMORY_TYPE: Final = StructType(
    [
        StructField("entry", StringType()),
        StructField("event", StringType()),
        StructField("arrival", StringType()),
        StructField("waits", ArrayType(StringType())),
    ]
)
_RANGES: Final = (ByteType, ShortType, IntegerType, LongType, DateType)
"""types of keys whose range lets a table skip files"""


def last_rows(steps: DataFrame, table: ChangedTable) -> DataFrame:
    """The last row of each key, and of the TRUNCATEs. One sort serves all columns.

    It has the columns above and some more:

    - ``lacks``: whether earlier rows of the batch, or another key, may have values of the row;
    - ``moves``: whether the key changed;
    - for the facts ``least_table``, ``greatest_table`` and ``split``, the error if the rows of the key are not comparable.
    """
    order, keys = table.order, [*table.key_names(), "is_truncate"]
    by_key = f"PARTITION BY {', '.join(keys)} ORDER BY {', '.join(f'{name} DESC' for name in order.sequence)}"
    until_now = f"{by_key} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    of_key = f"({by_key} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    text = f"if(is_truncate, 'of TRUNCATE', {key_text(table.keys, table.key_names())})"
    split = (
        f"CASE WHEN {order.differs()} THEN {order.difference(text)} END" if order.separate else "CAST(NULL AS STRING)"
    )
    values = [*table.value_places().values(), "unavailable", "unexpected", "begins"]
    newest = (
        f"CASE WHEN has_values THEN named_struct({', '.join(f'{sql_string(name)}, {name}' for name in values)}) END"
    )
    # The changes of a TRUNCATE have no key, whatever their columns say.
    own_keys = {name: F.expr(f"if(is_truncate, NULL, {name})") for name in table.key_names()}
    last = (
        steps.withColumns(own_keys)
        .repartition(*table.key_names())
        .selectExpr("*", f"row_number() OVER ({by_key}) AS nth", *order.firsts(until_now))
        .selectExpr("*", f"{split} AS differs")
        .selectExpr(
            *(*keys, "nth", *order.names, "topic", "`time`", "live"),
            f"first({newest}, TRUE) OVER {of_key} AS newest",
            f"count(1) OVER {of_key} AS steps",
            f"max(departure IS NOT NULL OR arrival IS NOT NULL) OVER {of_key} AS moves",
            f"min(`table`) OVER {of_key} AS least_table",
            f"max(`table`) OVER {of_key} AS greatest_table",
            f"max(differs) OVER {of_key} AS split",
        )
    )
    # Two messages of a change of the key may come in two merges, so the table has to remember the first one.
    remembered = "moves OR " if table.has_events else ""
    lacks = f"({remembered}coalesce(size(newest.unavailable), 0) > 0 AND (moves OR steps > 1))"
    return last.where("nth = 1").selectExpr(
        *table.key_names(),
        f"CASE WHEN is_truncate THEN {memory(entry=sql_string(TRUNCATE))} END AS memory",
        f"{order.as_struct()} AS at",
        *("topic", "`time`", "live", "newest IS NOT NULL AS known"),
        *(f"newest.{place} AS {place}" for place in table.value_places().values()),
        *("newest.unexpected AS unexpected", "if(newest.begins, NULL, newest.unavailable) AS kept"),
        f"{lacks if table.may_lack_values else 'FALSE'} AS lacks",
        *("moves", "least_table", "greatest_table", "split"),
    )


def memory(**fields: str) -> str:
    """What a row remembers, as SQL of the column `MEMORY`."""
    types = {field.name: field.dataType.simpleString() for field in MEMORY_TYPE}
    parts = (f"{sql_string(name)}, CAST({fields.get(name, 'NULL')} AS {type})" for name, type in types.items())
    return f"named_struct({', '.join(parts)})"


def last_truncate(order: DataType, has_topic: bool) -> str:
    """An aggregate over the table's rows: the last TRUNCATE as JSON, whose texts `literal` reads."""
    place = f"struct({ORDER} AS at, {TOPIC if has_topic else NO_TOPIC} AS topic)"
    last = f"max(CASE WHEN {MEMORY}.entry = {sql_string(TRUNCATE)} THEN {place} END)"
    return f"to_json({_text(last, place_type(order))}, map('ignoreNullFields', 'false'))"


class BatchFacts(NamedTuple):
    """Facts about the last rows of a batch."""

    keys: int
    """number of keys"""
    lacking: int
    """number of rows that lack values, see `last_rows`"""
    kept: int
    """number of rows that keep values of the table"""
    unknown: int
    """number of rows without values"""
    truncated: Any
    """the last TRUNCATE, see `place_type`"""
    null_keys: int
    """number of rows with NULL in a column of the key"""
    bounds: list[tuple[str, str] | None]
    """the least and the greatest value of each column of the key"""
    name: str | None
    """the name of the table"""

    @classmethod
    def column(cls, table: ChangedTable) -> Column:
        """The aggregate with the facts."""
        order, null = table.schema[ORDER].dataType, " OR ".join(f"{name} IS NULL" for name in table.key_names())
        bounds = (
            _bounds(name, table.schema[key].dataType) for key, name in zip(table.keys, table.key_names(), strict=True)
        )
        facts = {
            "keys": "count_if(memory.entry IS NULL)",
            "lacking": "count_if(lacks)",
            "kept": "count_if(coalesce(size(kept), 0) > 0)",
            "unknown": "count_if(NOT known)",
            "truncated": _text("max(CASE WHEN memory.entry IS NOT NULL THEN struct(at, topic) END)", place_type(order)),
            "null_keys": f"count_if(memory.entry IS NULL AND ({null}))",
            "bounds": f"array({', '.join(bounds)})",
            "first": "min(least_table)",
            "last": "max(greatest_table)",
            "split": f"max(CASE WHEN split IS NOT NULL THEN struct({epoch_of('at', order)} AS epoch, split) END)",
        }
        pairs = ", ".join(f"{sql_string(name)}, {fact}" for name, fact in facts.items())
        # One expression of SQL takes one call to the JVM.
        return F.expr(f"to_json(named_struct({pairs}), map('ignoreNullFields', 'false'))")

    @classmethod
    def read(cls, text: str, noted: str | None) -> BatchFacts:
        """Read the aggregate. ``noted``: the name of the table whose changes the target has.

        Raises ValueError if rows cannot be compared, or if the changes are of two tables, or of another table than ``noted``.
        """
        row: dict[str, Any] = json.loads(text)
        split, truncated = row.pop("split"), row["truncated"]
        if split and not _is_superseded(split["epoch"], truncated):
            raise ValueError(printable(split["split"]))
        names = sorted({name for name in (row.pop("first"), row.pop("last"), noted) if name is not None})
        if len(names) > 1:
            raise ValueError(printable(TWO_TABLES % tuple(names[:2])))
        return cls(**row | {"name": names[0] if names else None})


def _is_superseded(epoch: int | None, truncated: Any) -> bool:
    """Whether the rows of an epoch ended with the last TRUNCATE, which is of a later epoch."""
    at = None if truncated is None else truncated["at"]
    last = at.get(EPOCH) if isinstance(at, dict) else None
    return epoch is not None and last is not None and epoch < int(last)


def _bounds(name: str, type: DataType) -> str:
    """The least and the greatest value of a column of the key, if they let a table skip files."""
    if not isinstance(type, _RANGES):
        return "CAST(NULL AS ARRAY<STRING>)"
    return f"CASE WHEN count({name}) > 0 THEN array({_text(f'min({name})', type)}, {_text(f'max({name})', type)}) END"


def _text(value: str, type: DataType) -> str:
    """An expression of SQL as text for `literal`, whatever the session's time zone is. The fields of a STRUCT are texts."""
    if isinstance(type, StructType):
        parts = (
            f"{sql_string(field.name)}, {_text(f'{value}.{quoted(field.name)}', field.dataType)}" for field in type
        )
        return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(parts)}) END"
    if isinstance(type, BinaryType):
        return f"hex({value})"
    return f"CAST({f'unix_micros({value})' if isinstance(type, TimestampType) else value} AS STRING)"


def literal(text: Any, type: DataType) -> str:
    """A SQL literal."""
    if text is None:
        return f"CAST(NULL AS {type.simpleString()})"
    if isinstance(type, StructType):
        parts = (f"{sql_string(field.name)}, {literal(text[field.name], field.dataType)}" for field in type)
        return f"named_struct({', '.join(parts)})"
    if isinstance(type, BinaryType):
        return f"X'{text}'"
    if isinstance(type, TimestampType):
        return f"timestamp_micros({text})"
    return f"CAST({sql_string(text)} AS {type.simpleString()})"
