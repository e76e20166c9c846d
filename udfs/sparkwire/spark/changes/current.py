"""Compute the current table from a change table: the latest change of every key.

The changes are exchanged once, by key. Every branch of the query reads that exchange, so the changes are decoded once. The first
branch selects the row with the greatest order of each key. The second one finds the last TRUNCATE, and whether the changes are of
two tables; then the query fails.

- A TRUNCATE ends every row with a smaller order. TRUNCATEs are a separate group of rows.
- A change with another key in ``_before_`` counts for both keys: it deletes the old key, with the same order.
- A row with ``_unavailable_`` columns takes their values from the newest row of its key that has them. After a change of the
  key, it continues with the earlier rows of the old key (`settled`). AQE drops this branch if no row lacks values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql.types import ArrayType, StringType, StructType

from sparkwire.base.sqltype import sql_string
from sparkwire.changes.arrivals import settle
from sparkwire.changes.columns import (
    BEFORE,
    ERROR,
    KEYS,
    KEYS_KNOWN,
    LIVE,
    NEVER,
    OP,
    ORDER,
    TABLE,
    TIME,
    TRUNCATE,
    TWO_TABLES,
    UNAVAILABLE,
    check_columns,
    check_keys,
    table_columns,
)  # fmt: skip
from sparkwire.changes.orders import as_order
from sparkwire.spark.frames import quoted

_NAMES: Final = ArrayType(StringType())
_ORDER: Final = ("at", "rank")
"""the parts of ``o``: the order, and the rank of rows with the same order, see `_rank`"""
_LIVE: Final = 4
"""the rank of a live row, or a greater one"""
_HISTORY: Final = ("unavailable", "has_values", "gone", "event")
"""columns of `events` that only `settled` needs"""
_GONE: Final = "_gone_"
"""the column ``gone`` beside the columns of a table"""
_HAS_UNAVAILABLE: Final = "coalesce(size(unavailable), 0) > 0"


class ChangedTable(NamedTuple):
    """The facts about a table before reading its changes."""

    columns: list[str]
    keys: list[str]
    schema: StructType
    """the schema of the change table"""

    @classmethod
    def of(cls, changes: DataFrame, keys: Sequence[str] | str | None, function: str) -> ChangedTable:
        """Raises ValueError if ``changes`` is not a change table, or the keys are unknown."""
        schema = changes.schema
        check_columns(schema.names, function)
        columns = table_columns(schema.names, _fields(schema))
        own = [keys] if isinstance(keys, str) else list(keys) if keys is not None else keys_of(changes, function)
        check_keys(own, columns, function)
        return cls(columns, own, schema)

    @property
    def values(self) -> list[str]:
        """The columns that are not part of the key."""
        return [name for name in self.columns if name not in self.keys]

    @property
    def may_lack_values(self) -> bool:
        """Whether a row may have `_unavailable_` columns."""
        return UNAVAILABLE in self.schema.names and not _is_never(self.schema, UNAVAILABLE)

    @property
    def may_move(self) -> bool:
        """Whether a row may have another key in `_before_`."""
        before = _fields(self.schema)
        return before is not None and not _is_never(self.schema, BEFORE) and set(self.keys) <= set(before)

    def places(self) -> dict[str, str]:
        """The names of the columns in ``row``."""
        return {name: f"c{k}" for k, name in enumerate(self.columns)}

    def flat_places(self) -> dict[str, str]:
        """The names of the columns in rows without ``row``, where the key's columns are `key_names`."""
        return self.places() | dict(zip(self.keys, self.key_names(), strict=True))

    def key_names(self) -> list[str]:
        return [f"key_{k}" for k in range(len(self.keys))]


def _fields(schema: StructType) -> list[str] | None:
    if BEFORE not in schema.names:
        return None
    type = schema[BEFORE].dataType
    return type.names if isinstance(type, StructType) else None


def _is_never(schema: StructType, name: str) -> bool:
    return bool((schema[name].metadata or {}).get(NEVER))


def keys_of(changes: DataFrame, function: str) -> list[str]:
    """The primary key's columns, from `changes` if it knew them, else from the messages, which this reads.

    Raises ValueError if the messages contain no key, or different ones.
    """
    give = f"pass keys=[…], the names of the primary key's columns, to {function}"
    if KEYS not in changes.columns:
        raise ValueError(f"the key of the table is not known: {give}")
    known = (changes.schema[KEYS].metadata or {}).get(KEYS_KNOWN)
    if known:
        return list(known)
    if changes.isStreaming:
        raise ValueError(f"the key of the table is not known before the stream is read: {give}")
    key_lists = [list(row[0]) for row in changes.select(KEYS).where(F.size(KEYS) > 0).distinct().limit(2).collect()]
    if not key_lists:
        raise ValueError(f"no message names the primary key of the table: {give}")
    if len(key_lists) > 1:
        raise ValueError(f"messages name different primary keys, {key_lists[0]} and {key_lists[1]}: {give}")
    return key_lists[0]


def current(changes: DataFrame, keys: Sequence[str] | str | None, as_of: Any) -> DataFrame:
    """See ``sparkwire.current``."""
    if changes.isStreaming:
        raise ValueError(
            "current() expected a batch, got a stream: use sparkwire.merge, which keeps a table up to date"
        )
    table = ChangedTable.of(changes, keys, "current")
    changes = until(changes, as_of)
    steps = events(changes, table)
    return _rows(steps, table).select(*_result_columns(table))


def _rows(steps: DataFrame, table: ChangedTable) -> DataFrame:
    """The last row of each existing key with all its values: ``at``, ``time`` and the table's columns, see `_flat`."""
    flat = _exchanged(_flat(steps, table), table)
    facts = _facts(flat)
    last = newest(flat.where("rank IS NOT NULL"), table.key_names())
    live = F.col("rank") >= _LIVE
    lacks = live & F.expr(_HAS_UNAVAILABLE) if table.may_lack_values else F.lit(False)
    names = ["at", "time", *table.flat_places().values()]
    rows = _with_facts(last, facts).where(_unless_two_tables(live & ~lacks & F.expr(_AFTER_TRUNCATE))).select(names)
    if not table.may_lack_values:
        return rows
    some = last.where(lacks).limit(1).select(F.lit(True).alias("lacking"))
    history = _nested(flat, table).crossJoin(F.broadcast(some)).drop("lacking")
    late = _with_facts(settled(history, table, dead_too=False), facts).where(_AFTER_TRUNCATE)
    columns = (F.col("row")[table.places()[name]].alias(place) for name, place in table.flat_places().items())
    return rows.unionByName(late.select("at", "time", *columns))


def _flat(steps: DataFrame, table: ChangedTable) -> DataFrame:
    """The rows of `events` without STRUCTs, which cost time in an exchange and a sort. A TRUNCATE has no ``rank``."""
    places = table.places()
    return steps.select(
        *table.key_names(),
        "o.at",
        F.when(~F.col("is_truncate"), F.col("o.rank")).alias("rank"),
        *("time", "table"),
        *(F.col("row")[places[name]].alias(places[name]) for name in table.values),
        *(_HISTORY if table.may_lack_values else ()),
    )


def _nested(flat: DataFrame, table: ChangedTable) -> DataFrame:
    """The rows of `events` again."""
    places = table.places()
    return flat.select(
        *table.key_names(),
        F.col("rank").isNull().alias("is_truncate"),
        *("time", *_HISTORY),
        F.struct(*_ORDER).alias("o"),
        F.coalesce(F.col("rank") >= _LIVE, F.lit(False)).alias("live"),
        F.struct(*(F.col(flat).alias(places[name]) for name, flat in table.flat_places().items())).alias("row"),
    )


def _exchanged(flat: DataFrame, table: ChangedTable) -> DataFrame:
    """The rows of an exchange by key, so that all branches of a query read the same exchange.

    Spark would push a branch's conditions and its selection of columns below the exchange. Then each branch would have its own
    exchange, and decode the changes again. Spark does not push a condition that is not deterministic and uses every column.
    """
    df = flat.repartition(*table.key_names())
    always = F.monotonically_increasing_id() >= 0
    return df.where(always | (F.to_json(F.struct(*df.columns)) != ""))


def _result_columns(table: ChangedTable) -> list[Column]:
    """The table's columns, then order and time."""
    columns = [F.col(place).alias(name) for name, place in table.flat_places().items()]
    return [*columns, F.col("at").alias(ORDER), F.col("time").alias(TIME)]


def until(changes: DataFrame, as_of: Any) -> DataFrame:
    """The changes up to and including a time or an order."""
    if as_of is None:
        return changes
    if isinstance(as_of, datetime) or (isinstance(as_of, str) and not as_of.isdigit()):
        if TIME not in changes.columns:
            raise ValueError(f"current() expected changes with a column {TIME}, because as_of is a time; got none")
        return changes.where(F.col(TIME) <= F.lit(as_of).cast("timestamp"))
    type = changes.schema[ORDER].dataType
    if not isinstance(type, StructType):
        return changes.where(F.col(ORDER) <= F.lit(as_of).cast(type))
    parts = _parts(as_of, type)
    return changes.where(F.struct(*(F.col(ORDER)[name] for name in type.names[: len(parts)])) <= F.struct(*parts))


def _parts(value: Any, type: StructType) -> list[Column]:
    """All parts of an order, or its first parts. Raises ValueError if the value is not such an order."""
    plain = value.asDict() if hasattr(value, "asDict") else value
    return [F.lit(part).cast(field.dataType) for part, field in zip(as_order(plain, type.names), type, strict=False)]


def events(changes: DataFrame, table: ChangedTable) -> DataFrame:
    """One row for each key of a change: ``key_…``, ``is_truncate``, ``o`` for ordering, and the change's data.

    ``has_values``: whether ``row`` has the values of the key. ``event`` identifies a change of a key in both its rows, otherwise
    it is NULL. ``gone`` is true in the row of the old key. The expressions are SQL, which takes one call to the JVM each.
    """
    names = changes.columns
    is_valid = f"{ERROR} IS NULL AND " if ERROR in names else ""
    changes = changes.where(f"{is_valid}{OP} IS NOT NULL AND {ORDER} IS NOT NULL")
    is_live = f"{OP} IN ({', '.join(map(sql_string, LIVE))})"
    keys = [quoted(name) for name in table.keys]
    gone, event, stored_keys = "FALSE", "CAST(NULL AS STRING)", keys
    if table.may_move:
        old = [f"{BEFORE}.{name}" for name in keys]
        differs = " OR ".join(f"NOT {new} <=> {before}" for new, before in zip(keys, old, strict=True))
        moved = f"({BEFORE} IS NOT NULL AND {old[0]} IS NOT NULL AND {is_live} AND ({differs}))"
        both = F.expr(f"explode(CASE WHEN {moved} THEN array(FALSE, TRUE) ELSE array(FALSE) END)")
        changes, gone = changes.withColumn(_GONE, both), _GONE
        event = (
            f"CASE WHEN {moved} THEN to_json(struct(struct({', '.join(keys)}), struct({', '.join(old)}), {ORDER})) END"
        )
        stored_keys = [f"CASE WHEN {gone} THEN {b} ELSE {new} END" for new, b in zip(keys, old, strict=True)]
    live = f"({is_live} AND NOT {gone})"
    unavailable = UNAVAILABLE if UNAVAILABLE in names else "CAST(NULL AS ARRAY<STRING>)"
    whole = f"({live} AND coalesce(size({unavailable}), 0) <= 0)"
    return changes.selectExpr(
        *(f"{key} AS {name}" for key, name in zip(stored_keys, table.key_names(), strict=True)),
        f"{OP} = {sql_string(TRUNCATE)} AS is_truncate",
        _ordered(live, gone, whole),
        f"{live} AS live",
        f"{live} AS has_values",
        f"{TIME if TIME in names else 'CAST(NULL AS TIMESTAMP_LTZ)'} AS `time`",
        f"{TABLE if TABLE in names else 'CAST(NULL AS STRING)'} AS `table`",
        _row(table),
        f"{unavailable} AS unavailable",
        f"{gone} AS gone",
        f"{event} AS event",
    )


def stored_steps(
    stored: DataFrame, table: ChangedTable, name: str | None, live: str, *, is_truncate: bool = False
) -> DataFrame:
    """The rows of a stored table in the form of `events`: the last change of each. ``live`` is a condition of SQL."""
    whole = str(not is_truncate)
    return stored.selectExpr(
        *(f"{quoted(key)} AS {alias}" for key, alias in zip(table.keys, table.key_names(), strict=True)),
        f"{is_truncate} AS is_truncate",
        _ordered(live, "FALSE", whole),
        f"{live} AS live",
        f"{whole} AS has_values",
        f"{TIME} AS `time`",
        f"CAST({'NULL' if name is None else sql_string(name)} AS STRING) AS `table`",
        _row(table),
        "CAST(NULL AS ARRAY<STRING>) AS unavailable",
        "FALSE AS gone",
        "CAST(NULL AS STRING) AS event",
    )


def _ordered(live: str, gone: str, whole: str) -> str:
    """The order, and which of the rows with it wins: the live one, then that of an old key, then one with all values."""
    bits = f"if({live}, {_LIVE}, 0) + if({gone}, 2, 0) + if({whole}, 1, 0)"
    return f"named_struct('at', {ORDER}, 'rank', CAST({bits} AS TINYINT)) AS o"


def _row(table: ChangedTable) -> str:
    return f"named_struct({', '.join(f'{sql_string(place)}, {quoted(name)}' for name, place in table.places().items())}) AS row"


def newest(flat: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The row with the greatest order of each key.

    Spark sorts the rows and keeps the first of each group. This is faster than ``max_by``, which sorts them, too.
    """
    in_order = Window.partitionBy(*keys).orderBy(*(F.desc(name) for name in _ORDER))
    return flat.withColumn("nth", F.row_number().over(in_order)).where("nth = 1").drop("nth")


def latest(steps: DataFrame, table: ChangedTable) -> DataFrame:
    """The row with the greatest order of each key, and the names of its table: ``least_table`` and ``greatest_table``.

    A key may have rows of two tables, and rows without a name. One sort serves both the order and the names.
    """
    keys, places = [*table.key_names(), "is_truncate"], table.places().values()
    in_order = f"PARTITION BY {', '.join(keys)} ORDER BY {', '.join(f'{name} DESC' for name in _ORDER)}"
    of_key = f"({in_order} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    flat = steps.selectExpr(
        *keys, "o.*", "live", "`time`", "`table`", "unavailable", "has_values", *(f"row.{place}" for place in places)
    )
    last = flat.repartition(*table.key_names()).selectExpr(
        "*",
        f"row_number() OVER ({in_order}) AS nth",
        f"min(`table`) OVER {of_key} AS least_table",
        f"max(`table`) OVER {of_key} AS greatest_table",
    )
    row = f"named_struct({', '.join(f'{sql_string(place)}, {place}' for place in places)}) AS row"
    names = ["least_table", "greatest_table", "at", "live", "`time`", row, "unavailable", "has_values"]
    return last.where("nth = 1").selectExpr(*keys, *names)


def lacks_values(dead_too: bool) -> str:
    """Whether the last row of a key lacks values, as SQL. With ``dead_too``, also for deleted rows."""
    lacks = f"live AND {_HAS_UNAVAILABLE}"
    return f"({lacks} OR NOT is_truncate AND NOT live AND NOT has_values)" if dead_too else f"({lacks})"


def _facts(flat: DataFrame) -> DataFrame:
    """One row with ``facts``: ``truncated``, the order of the last TRUNCATE, and ``two_tables``.

    Spark aggregates fixed-size values faster than texts, so this compares the hashes of the tables' names.
    """
    table = F.when(F.col("table").isNotNull(), F.xxhash64("table"))
    one = flat.agg(
        F.max(F.when(F.col("rank").isNull(), F.col("at"))).alias("truncated"),
        F.min(table).alias("least"),
        F.max(table).alias("greatest"),
    )
    two = F.coalesce(F.col("least") != F.col("greatest"), F.lit(False))
    return one.select(F.struct("truncated", two.alias("two_tables")).alias("facts"))


def _with_facts(rows: DataFrame, facts: DataFrame) -> DataFrame:
    if hasattr(facts, "scalar"):  # since Spark 4.0: a subquery takes less time than a broadcast
        return rows.withColumn("facts", facts.scalar())
    return rows.crossJoin(F.broadcast(facts))


_AFTER_TRUNCATE: Final = "facts.truncated IS NULL OR at > facts.truncated"


def _unless_two_tables(condition: Column) -> Column:
    """The condition; the query fails if the changes are of two tables.

    Spark moves separate conditions, and rows that it dropped before could not fail. Only one branch of a query has this: PySpark
    has no class for the failure of two.
    """
    name = F.coalesce("table", F.lit("one without a name"))
    fails = F.raise_error(F.format_string(TWO_TABLES, name, F.lit("another")))
    return F.when(F.col("facts.two_tables"), fails).otherwise(condition)


def with_history(steps: DataFrame, table: ChangedTable, last: DataFrame) -> DataFrame:
    """The last rows with all their values, including those of deleted rows."""
    columns = [*table.key_names(), "is_truncate", "at", "live", "time", "row"]
    whole = last.where(f"NOT {lacks_values(dead_too=True)}")
    return whole.select(columns).unionByName(settled(steps, table, dead_too=True).select(columns))


def settled(steps: DataFrame, table: ChangedTable, dead_too: bool) -> DataFrame:
    """The last rows that lack values, filled with their earlier values, also from before a change of the key."""
    places = table.places()
    keys = [*table.key_names(), "is_truncate"]
    in_order = Window.partitionBy(*keys).orderBy("o")
    until_now = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    at, lacks = F.col("o.at").alias("at"), F.coalesce(F.col("unavailable"), F.array().cast(_NAMES))

    def last_of(of: Column, value: Column) -> Column:
        return F.last(F.when(of, F.struct(at, value)), ignorenulls=True).over(until_now)

    def stored_value(name: str) -> Column:
        return last_of(F.col("has_values") & ~F.array_contains(lacks, name), F.col("row")[places[name]].alias("value"))

    seen = steps.select(
        *keys,
        *("time", "row", "gone", "event", "unavailable", "has_values", "live", at),
        F.lead(F.lit(True)).over(in_order).isNull().alias("is_last"),
        last_of(F.col("live") & F.col("event").isNotNull(), F.col("event")).alias("arrived"),
        *(stored_value(name).alias(f"told_{places[name]}") for name in table.values),
    )
    needed = F.col("is_last") & F.expr(lacks_values(dead_too))
    told_of = {name: F.col(f"told_{places[name]}") for name in table.values}
    since = F.col("arrived.at")
    from_before = {
        name: since.isNotNull() & F.coalesce(one["at"] < since, F.lit(True)) for name, one in told_of.items()
    }
    known = {name: F.when(~from_before[name], one["value"]) for name, one in told_of.items()}
    values = [known.get(name, F.col("row")[place]).alias(place) for name, place in places.items()]
    result = seen.where(needed | F.col("gone")).select(
        *keys,
        *("at", "live", "time", F.struct(*values).alias("row")),
        needed.alias("wanted"),
        F.when(F.col("gone"), F.col("event")).alias("departure"),
        F.col("arrived.event").alias("arrival"),
        _names_where(from_before).alias("missing"),
    )
    complete = F.size("missing") == 0
    columns, names = table.columns, result.columns

    def go_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        some = list(batches)
        if some:
            yield from settle(pa.Table.from_batches(some), columns).to_batches()

    # There are few changes of keys, so one task resolves them.
    moved = result.where(F.col("departure").isNotNull() | ~complete).repartition(1).mapInArrow(go_on, result.schema)
    both = result.where(F.col("wanted") & complete).unionByName(moved.where(~complete))
    return both.select(*names[: names.index("wanted")])


def _names_where(conditions: Mapping[str, Column]) -> Column:
    """The names whose condition is true."""
    names = F.array(*(F.when(condition, F.lit(name)) for name, condition in conditions.items()))
    return F.array_compact(names.cast(_NAMES))
