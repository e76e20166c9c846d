"""The batch of a merge: the newest step of each key, all steps of open keys (`states`), and facts about them.

Facts are one aggregate over these rows, as one JSON text. Spark returns some types of observed metrics only as Java objects.
Orders and keys are texts in it, which `literal` makes literals of SQL.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StructType,
    TimestampType,
)

from sparkwire.base.printable import printable
from sparkwire.base.sqltype import sql_string
from sparkwire.changes.columns import ORDER
from sparkwire.changes.orders import EPOCH
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.order_columns import key_text
from sparkwire.spark.changes.orders_of_rows import place_type
from sparkwire.spark.changes.states import Opening, by_key, exchanged, newest_steps, open_steps
from sparkwire.spark.frames import quoted

_RANGES: Final = (ByteType, ShortType, IntegerType, LongType, DateType)
"""types of keys whose range lets a table skip files"""


def batch_rows(steps: DataFrame, table: ChangedTable, *, keep: bool, departed: DataFrame | None = None) -> DataFrame:
    """The newest step of each key and of the TRUNCATEs, and all steps of open keys.

    New columns: ``is_open``; ``nth``, which is 1 in the newest step; and ``split``, the error about steps without a common order.
    An open key with that error has one more row, in which ``nth`` is 0.
    """
    keys = table.key_names()
    # The changes of a TRUNCATE have no key, whatever their columns say.
    steps = steps.withColumns({name: F.expr(f"if(is_truncate, NULL, {name})") for name in keys}).drop("table")
    if departed is not None:
        known = departed.select(
            *(F.col(name).alias(f"departed_{name}") for name in keys), F.lit(True).alias("has_left")
        )
        same = [F.col(name).eqNullSafe(F.col(f"departed_{name}")) for name in keys]
        steps = steps.join(F.broadcast(known), same, "left").drop(*(f"departed_{name}" for name in keys))
    opening = Opening.of(table, keep=keep, departed=departed is not None)
    if opening.is_open:
        steps = exchanged(steps, keys)
    # A tombstone has no time: the DELETE before it has deleted the row.
    sequence = f"struct({', '.join(table.order.sequence)})"
    dated = f"max_by(struct(live, `time`), {sequence}) FILTER (WHERE live OR `time` IS NOT NULL) AS dated"
    newest = newest_steps(steps, table, "is_truncate", opening=opening, also=[dated])
    text = f"if(is_truncate, 'of TRUNCATE', {key_text(table.keys, keys)})"
    split = f"CASE WHEN {table.order.differs()} THEN {table.order.difference(text)} END"
    columns = [name for name in steps.columns if name not in ("time", "has_left")]
    rows = newest.selectExpr(
        *columns,
        "CASE WHEN live OR `time` IS NOT NULL THEN `time` WHEN NOT dated.live THEN dated.`time` END AS `time`",
        f"{split if table.order.separate else 'CAST(NULL AS STRING)'} AS split",
        "is_open",
        "1 AS nth",
    )
    if not opening.is_open:
        return rows
    opened = open_steps(steps, table, opening, "is_truncate").selectExpr(
        *columns,
        "`time`",
        "CAST(NULL AS STRING) AS split",
        "TRUE AS is_open",
        f"row_number() OVER ({by_key(table, 'is_truncate')}) AS nth",
    )
    return rows.where("NOT is_open OR split IS NOT NULL").withColumn("nth", F.expr("if(is_open, 0, 1)")).union(opened)


class BatchFacts(NamedTuple):
    """Facts about the rows of a batch."""

    keys: int
    """number of keys"""
    opened: int
    """number of open keys"""
    moves: int
    """number of steps that depart or arrive with an event"""
    unknown: int
    """number of keys that have no row after the batch"""
    unexpected: int
    """number of rows with unexpected values"""
    truncated: Any
    """the last TRUNCATE, see `place_type`"""
    epochs: tuple[int, int] | None
    """the least and the greatest epoch"""
    null_keys: int
    """number of rows with NULL in a column of the key"""
    bounds: list[tuple[str, str] | None]
    """the least and the greatest value of each column of the key"""

    @classmethod
    def column(cls, table: ChangedTable) -> Column:
        """The aggregate with the facts."""
        order, null = table.schema[ORDER].dataType, " OR ".join(f"{name} IS NULL" for name in table.key_names())
        bounds = (
            _bounds(name, table.schema[key].dataType) for key, name in zip(table.keys, table.key_names(), strict=True)
        )
        at, is_key = table.order.as_struct(), "nth = 1 AND NOT is_truncate"
        epoch = table.order.epoch or "CAST(NULL AS INT)"
        facts = {
            "keys": f"count_if({is_key})",
            "opened": f"count_if({is_key} AND is_open)",
            "moves": "count(coalesce(departure, arrival))",
            "unknown": f"count_if({is_key} AND NOT live)",
            "unexpected": "count(unexpected)",
            "truncated": _text(f"max(CASE WHEN is_truncate THEN struct({at} AS at, topic) END)", place_type(order)),
            "epochs": f"CASE WHEN count({epoch}) > 0 THEN array(min({epoch}), max({epoch})) END",
            "null_keys": f"count_if({is_key} AND ({null}))",
            "bounds": f"array({', '.join(bounds)})",
            "split": f"max(CASE WHEN split IS NOT NULL THEN struct({epoch} AS epoch, split) END)",
        }
        pairs = ", ".join(f"{sql_string(name)}, {fact}" for name, fact in facts.items())
        # One expression of SQL takes one call to the JVM.
        return F.expr(f"to_json(named_struct({pairs}), map('ignoreNullFields', 'false'))")

    @classmethod
    def read(cls, text: str) -> BatchFacts:
        """Read the aggregate. Raises ValueError if rows have no common order."""
        row: dict[str, Any] = json.loads(text)
        split, truncated = row.pop("split"), row["truncated"]
        if split and not _is_superseded(split.get("epoch"), truncated):
            raise ValueError(printable(split["split"]))
        return cls(**row)


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


def place_text(value: str, order: DataType) -> str:
    """A STRUCT of an order and its topic as JSON, whose texts `literal` reads."""
    return f"to_json({_text(value, place_type(order))}, map('ignoreNullFields', 'false'))"


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
