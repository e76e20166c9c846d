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

from sparkwire.base.printable import value_error
from sparkwire.base.sqltype import sql_string
from sparkwire.changes.columns import ORDER, TWO_TABLES
from sparkwire.changes.fold import OLD_KEY_RANK
from sparkwire.changes.orders import EPOCH
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.orders import place_type
from sparkwire.spark.changes.states import (
    TABLE_NAME,
    TWO_TRUNCATES,
    Opening,
    by_key,
    exchanged,
    hash_of,
    last_truncate,
    newest_steps,
    open_steps,
    place_of_step,
    spread,
)
from sparkwire.spark.changes.steps import IS_LIVE, IS_OF_KEY, IS_TRUNCATE, UNREADABLE
from sparkwire.spark.frames import quoted

_RANGES: Final = (ByteType, ShortType, IntegerType, LongType, DateType)
"""types of keys whose range lets a table skip files"""
_COUNTS: Final = {
    "changes": f"count_if({IS_OF_KEY} AND rank <> {OLD_KEY_RANK})",  # a change of a key is a step of the old one, too
    "truncates": f"count_if({IS_TRUNCATE})",
    "errors": f"count_if(rank = {UNREADABLE})",
    "first_table": f"min({TABLE_NAME})",
    "last_table": f"max({TABLE_NAME})",
}


def batch_rows(steps: DataFrame, table: ChangedTable, *, keep: bool, departed: DataFrame | None = None) -> DataFrame:
    """The newest step of each key, and all steps of open keys.

    New columns: ``is_open``; ``nth``, which is 1 in the newest step; and ``split``, the error about steps without a common order.
    An open key with that error has one more row, in which ``nth`` is 0. In one more row it is NULL: that of TRUNCATEs and of rows
    with an error. The others are for `BatchFacts`: ``truncate``, the last TRUNCATE, numbers of rows, and names of tables.
    """
    keys = table.key_names()
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
    is_dated = f"{IS_OF_KEY} AND ({IS_LIVE} OR `time` IS NOT NULL)"
    dated = f"max_by(struct({IS_LIVE} AS live, `time`), {sequence}) FILTER (WHERE {is_dated}) AS dated"
    also = [dated, f"{last_truncate(table)} AS truncate", *(f"{value} AS {name}" for name, value in _COUNTS.items())]
    newest = newest_steps(steps, table, opening, also)
    replaced = ("time", "table", "has_left", "dated", "split", "is_open", "truncate", *_COUNTS)
    columns = [name for name in newest.columns if name not in replaced]
    rows = newest.selectExpr(
        *columns,
        "CASE WHEN live OR `time` IS NOT NULL THEN `time` WHEN NOT dated.live THEN dated.`time` END AS `time`",
        *("split", "is_open", "CASE WHEN rank IS NOT NULL THEN 1 END AS nth", "truncate", *_COUNTS),
    )
    if not opening.is_open:
        return rows
    opened = open_steps(steps, table, opening, steps.where(opening.may_be_open)).selectExpr(
        *columns,
        "`time`",
        "CAST(NULL AS STRING) AS split",
        "TRUE AS is_open",
        f"row_number() OVER ({by_key(table)}) AS nth",
        f"CAST(NULL AS {rows.schema['truncate'].dataType.simpleString()}) AS truncate",
        f"CAST(rank <> {OLD_KEY_RANK} AS BIGINT) AS changes",
        *("0L AS truncates", "0L AS errors", "`table` AS first_table", "`table` AS last_table"),
    )
    others = rows.where("NOT is_open OR split IS NOT NULL OR errors + truncates > 0").withColumns(
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
        epoch, is_key = table.order.epoch, "nth = 1"
        facts = {
            "changes": "coalesce(sum(changes + truncates), 0)",
            "errors": "coalesce(sum(errors), 0)",
            "keys": f"count_if({is_key})",
            "opened": f"count_if({is_key} AND is_open)",
            "moves": "count(coalesce(departure, arrival))",
            "unknown": f"count_if({is_key} AND NOT live)",
            "unexpected": "count(unexpected)",
            "null_keys": f"count_if({is_key} AND ({null}))",
        }
        more = {
            "texts": "count_if(truncates > 0 OR split IS NOT NULL)",
            **_ends("table", *map(hash_of, ("first_table", "last_table"))),
            "noted_table": f"xxhash64({sql_string(noted)})" if noted is not None else "CAST(NULL AS BIGINT)",
            **_ends("epoch", *([epoch, f"truncate.step.{epoch}"] if epoch else ["CAST(NULL AS INT)"])),
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
        raise value_error(TWO_TABLES % tuple(names[:2]))
    return names[0]


def _truncated(rows: DataFrame, table: ChangedTable) -> Any:
    """The last TRUNCATE, see `place_type`. Raises ValueError if rows have no common order."""
    order, epoch = table.schema[ORDER].dataType, table.order.epoch or "CAST(NULL AS INT)"
    truncates = spread(rows.where("truncates > 0").select("truncate"), "truncate", table, TWO_TRUNCATES)
    place = _text(place_of_step(table), place_type(order))
    last = truncates.selectExpr(f"to_json(struct({place} AS place, split), map('ignoreNullFields', 'false'))").collect()
    truncate: dict[str, Any] = json.loads(last[0][0]) if last else {"place": None, "split": None}
    splits = rows.where("split IS NOT NULL").agg(F.expr(f"max(struct({epoch} AS epoch, split)) AS last"))
    [(epoch_of_split, split)] = splits.select("last.*").collect()
    if split and not _is_superseded(epoch_of_split, truncate["place"]):
        raise value_error(split)
    if truncate["split"]:
        raise value_error(truncate["split"])
    return truncate["place"]


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
