"""The batch of a merge: the newest step of each key, all steps of open keys (`states`), and facts about them.

Orders are texts in the facts, which `literal` makes literals of SQL.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from typing import Any, Final, NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, Row
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
from sparkwire.changes.columns import ORDER, TWO_TABLES
from sparkwire.changes.fold import OLD_KEY_RANK
from sparkwire.changes.orders import EPOCH
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.orders import key_text, place_type
from sparkwire.spark.changes.states import Opening, by_key, exchanged, newest_steps, open_steps
from sparkwire.spark.changes.steps import UNREADABLE
from sparkwire.spark.frames import quoted

_RANGES: Final = (ByteType, ShortType, IntegerType, LongType, DateType)
"""types of keys whose range lets a table skip files"""
_IS_READABLE: Final = f"rank <> {UNREADABLE}"
_IS_CHANGE: Final = f"rank NOT IN ({UNREADABLE}, {OLD_KEY_RANK})"
"""whether a step is one for each change: a change of a key is a step of the old one, too"""
_TABLE: Final = f"CASE WHEN {_IS_READABLE} THEN `table` END"
_COUNTS: Final = {
    "changes": f"count_if({_IS_CHANGE})",
    "errors": f"count_if(rank = {UNREADABLE})",
    "first_table": f"min({_TABLE})",
    "last_table": f"max({_TABLE})",
}


def batch_rows(steps: DataFrame, table: ChangedTable, *, keep: bool, departed: DataFrame | None = None) -> DataFrame:
    """The newest step of each key and of the TRUNCATEs, and all steps of open keys.

    New columns: ``is_open``; ``nth``, which is 1 in the newest step; and ``split``, the error about steps without a common order.
    An open key with that error has one more row, in which ``nth`` is 0. Rows with an error are in one more, in which it is NULL.
    ``changes``, ``errors``, ``first_table`` and ``last_table`` are for `BatchFacts`.
    """
    keys = table.key_names()
    # The changes of a TRUNCATE have no key, whatever their columns say.
    steps = steps.withColumns({name: F.expr(f"if(is_truncate, NULL, {name})") for name in keys})
    if departed is not None:
        departures = departed.select(
            *(F.col(name).alias(f"departed_{name}") for name in keys), F.lit(True).alias("has_left")
        )
        same = [F.col(name).eqNullSafe(F.col(f"departed_{name}")) for name in keys]
        steps = steps.join(F.broadcast(departures), same, "left").drop(*(f"departed_{name}" for name in keys))
    opening = Opening.of(table, keep=keep, departed=departed is not None)
    # Most batches have few changes of each key, so sorting them before the exchange, too, takes more time than it saves.
    steps = exchanged(steps, keys) if opening.is_open else steps.repartition(*keys)
    # A tombstone deletes, and has no time: the deleted row shows the time of the DELETE before it.
    sequence = f"struct({', '.join(table.order.sequence)})"
    dated = f"max_by(struct(live, `time`), {sequence}) FILTER (WHERE live OR `time` IS NOT NULL) AS dated"
    also = [dated, *(f"{value} AS {name}" for name, value in _COUNTS.items())]
    newest = newest_steps(steps, table, "is_truncate", counted=_IS_READABLE, opening=opening, also=also)
    text = f"if(is_truncate, 'of TRUNCATE', {key_text(table.keys, keys)})"
    split = f"CASE WHEN {table.order.differs()} THEN {table.order.difference(text)} END"
    columns = [name for name in steps.columns if name not in ("time", "table", "has_left")]
    rows = newest.selectExpr(
        *columns,
        "CASE WHEN live OR `time` IS NOT NULL THEN `time` WHEN NOT dated.live THEN dated.`time` END AS `time`",
        f"{split if table.order.separate else 'CAST(NULL AS STRING)'} AS split",
        "is_open",
        "CASE WHEN rank IS NOT NULL THEN 1 END AS nth",
        *_COUNTS,
    )
    if not opening.is_open:
        return rows
    opened = open_steps(steps.where(_IS_READABLE), table, opening, "is_truncate").selectExpr(
        *columns,
        "`time`",
        "CAST(NULL AS STRING) AS split",
        "TRUE AS is_open",
        f"row_number() OVER ({by_key(table, 'is_truncate')}) AS nth",
        f"CAST({_IS_CHANGE} AS BIGINT) AS changes",
        "0L AS errors",
        "`table` AS first_table",
        "`table` AS last_table",
    )
    others = rows.where("NOT is_open OR split IS NOT NULL OR errors > 0").withColumns(
        {
            "nth": F.expr("CASE WHEN NOT is_open THEN nth WHEN split IS NOT NULL THEN 0 END"),
            "changes": F.expr("if(is_open, 0, changes)"),
        }
    )
    return others.union(opened)


class BatchFacts(NamedTuple):
    """Facts about the rows of a batch."""

    changes: int
    """number of changes without an error"""
    errors: int
    """number of rows with an error"""
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
    null_keys: int
    """number of rows with NULL in a column of the key"""
    truncated: Any
    """the last TRUNCATE, see `place_type`"""
    epochs: tuple[int, int] | None
    """the least and the greatest epoch"""
    table_name: str | None
    """the name of the table whose changes these and the earlier ones are"""
    ranges: Mapping[str, tuple[int, int]]
    """columns of the key whose range may let a table skip files: the least and the greatest value, of dates in days since 1970"""

    @classmethod
    def of(cls, rows: DataFrame, table: ChangedTable, noted: str | None) -> BatchFacts:
        """Compute the facts of stored rows. ``noted``: the name of the target's table.

        Raises ValueError if rows have no common order, or if the changes are of two tables, or of another one than the target's.

        A separate job counts each row once, and a metric that Spark observes counts those of a repeated task twice. Numbers take
        less time than STRUCTs and texts, so only other jobs compute those that nearly no batch has.
        """
        null = " OR ".join(f"{name} IS NULL" for name in table.key_names())
        epoch, is_key = table.order.epoch or "CAST(NULL AS INT)", "nth = 1 AND NOT is_truncate"
        facts = {
            "changes": "coalesce(sum(changes), 0)",
            "errors": "coalesce(sum(errors), 0)",
            "keys": f"count_if({is_key})",
            "opened": f"count_if({is_key} AND is_open)",
            "moves": "count(coalesce(departure, arrival))",
            "unknown": f"count_if({is_key} AND NOT live)",
            "unexpected": "count(unexpected)",
            "null_keys": f"count_if({is_key} AND ({null}))",
        }
        more = {
            "texts": "count_if(is_truncate OR split IS NOT NULL)",
            **_ends("table", *map(_hash, ("first_table", "last_table"))),
            "noted_table": f"xxhash64({sql_string(noted)})" if noted is not None else "CAST(NULL AS BIGINT)",
            **_ends("epoch", epoch),
        }
        ranges = {}
        for key, name in zip(table.keys, table.key_names(), strict=True):
            if isinstance(type := table.schema[key].dataType, _RANGES):
                ranges[key] = name
                more |= _ends(name, f"unix_date({name})" if isinstance(type, DateType) else name)
        [found] = rows.selectExpr(*(f"{value} AS {name}" for name, value in (facts | more).items())).collect()
        return cls(
            **{name: found[name] for name in facts},
            truncated=_truncated(rows, table) if found["texts"] else None,
            epochs=_pair(found, "epoch"),
            table_name=_table_name(
                rows, {found[f"{name}_table"] for name in ("least", "greatest", "noted")} - {None}, noted
            ),
            ranges={key: pair for key, name in ranges.items() if (pair := _pair(found, name))},
        )

    def narrow_range(self, key: str, type: DataType) -> tuple[str, str] | None:
        """Literals of the range of a key's column. None if its keys fill less than half of it.

        Then they are probably from all of the table, and queries about the table's files take time, and find none to skip.
        """
        if key not in self.ranges or 2 * self.keys <= self.ranges[key][1] - self.ranges[key][0]:
            return None
        least, greatest = (
            f"date_from_unix_date({end})" if isinstance(type, DateType) else literal(str(end), type)
            for end in self.ranges[key]
        )
        return least, greatest


def _ends(name: str, *values: str) -> dict[str, str]:
    least, greatest = (f"{of}({', '.join(values)})" if len(values) > 1 else values[0] for of in ("least", "greatest"))
    return {f"least_{name}": f"min({least})", f"greatest_{name}": f"max({greatest})"}


def _hash(name: str) -> str:
    """Spark aggregates numbers faster than texts."""
    return f"CASE WHEN {name} IS NOT NULL THEN xxhash64({name}) END"


def _pair(found: Row, name: str) -> tuple[int, int] | None:
    least, greatest = found[f"least_{name}"], found[f"greatest_{name}"]
    return None if least is None else (least, greatest)


def _table_name(rows: DataFrame, hashes: Set[int], noted: str | None) -> str | None:
    """The name of the table. Raises ValueError if the changes are of two, or of another one than the target has."""
    if not hashes or (noted is not None and len(hashes) == 1):
        return noted
    found = rows.selectExpr("explode(array(first_table, last_table)) AS name").where("name IS NOT NULL")
    of_batch = {str(row["name"]) for row in found.distinct().limit(2).collect()}
    names = sorted(of_batch | (set() if noted is None else {noted}))
    if len(names) > 1:
        raise ValueError(printable(TWO_TABLES % tuple(names[:2])))
    return names[0]


def _truncated(rows: DataFrame, table: ChangedTable) -> Any:
    """The last TRUNCATE, see `place_type`. Raises ValueError if rows have no common order."""
    order, epoch = table.schema[ORDER].dataType, table.order.epoch or "CAST(NULL AS INT)"
    place = f"max(CASE WHEN is_truncate THEN struct({table.order.as_struct()} AS at, topic) END)"
    split = f"max(CASE WHEN split IS NOT NULL THEN struct({epoch} AS epoch, split) END)"
    text = f"to_json(struct({_text(place, place_type(order))} AS place, {split} AS split), map('ignoreNullFields', 'false'))"
    row: dict[str, Any] = json.loads(rows.agg(F.expr(text)).collect()[0][0])
    if row["split"] and not _is_superseded(row["split"].get("epoch"), row["place"]):
        raise ValueError(printable(row["split"]["split"]))
    return row["place"]


def _is_superseded(epoch: int | None, truncated: Any) -> bool:
    """Whether the rows of an epoch ended with the last TRUNCATE, which is of a later epoch."""
    at = None if truncated is None else truncated["at"]
    last = at.get(EPOCH) if isinstance(at, dict) else None
    return epoch is not None and last is not None and epoch < int(last)


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
