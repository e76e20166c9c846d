"""Compute the current table from a change table: the latest change of every key.

Spark exchanges the changes once, by key. Every branch of the query reads that exchange, so Spark decodes them once. The first
branch selects the row with the greatest order of each key. The second one finds the last TRUNCATEs, and whether the changes
are of two tables. A third one fills in values that last rows lack (`with_earlier_values`). AQE drops it if no row lacks values.

The last stage of the query raises the errors about several changes: PySpark has no class for the failure of two stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Final

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from sparkwire.base.sqltype import raised, sql_string
from sparkwire.changes.columns import ORDER, TIME, TWO_TABLES, UNEXPECTED
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.history import with_earlier_values
from sparkwire.spark.changes.moments import moment, until_order
from sparkwire.spark.changes.order_columns import key_text
from sparkwire.spark.changes.steps import LACKS_VALUES, LIVE_RANK, events
from sparkwire.spark.changes.truncates import Ended, last_truncates

_HISTORY: Final = ("unavailable", "has_values", "begins", "departure", "arrival")
"""columns of `events` that only `with_earlier_values` needs"""
_IS_LIVE: Final = f"coalesce(rank >= {LIVE_RANK}, FALSE)"
_NO_TIME: Final = f"%s has no {TIME}, and as_of has to compare it: pass an order as until instead"


def current(
    changes: DataFrame,
    keys: Sequence[str] | str | None = None,
    *,
    as_of: datetime | date | str | None = None,
    until: Any = None,
) -> DataFrame:
    """Compute the current table from its changes: the newest row of every key that is not deleted.

    The result does not depend on the order of the rows, or on duplicate or late changes. A change of the key moves the row. A
    TRUNCATE deletes every earlier row. If a message does not contain a value, the previous value stays. Rows with an
    ``_error_`` do not count.

    Parameters
    ----------
    changes
        a batch from `sparkwire.changes`, for one table. For a stream, use `sparkwire.merge`
    keys
        the names of the primary key's columns; by default those in the messages
    as_of
        returns the table at a time, by ``_time_``: a ``datetime``, a ``date`` (its first moment), or an ISO text in the
        session's time zone
    until
        returns the table after a change, by ``_order_``. A number or tuple is the order from ``scn``, ``offset`` or the position
        on; a Row or dict names parts. ``current`` compares only these parts. ``until=4711`` is the table after SCN 4711 of
        Databus

    Returns
    -------
    DataFrame
        the table's columns, then ``_order_`` and ``_time_`` of each row's last change, and ``_unexpected_`` if the changes may
        have such values

    Raises
    ------
    ValueError
        if the key is unknown, or ``changes`` is a stream or lacks the columns of `sparkwire.changes`. Also if ``as_of`` is no
        time, or ``until`` no such order. The query fails if the changes are of two tables. It also fails if the last changes
        of a key have no common order: they are of one epoch, and in two partitions, topics or logs.

    Examples
    --------
    >>> orders = sparkwire.changes(events, "event", format="databus", table="com.shop.Orders", schemas="/schemas")
    >>> sparkwire.current(orders, as_of="2024-01-31").count()
    """
    if changes.isStreaming:
        raise ValueError(
            "current() expected a batch, got a stream: use sparkwire.merge, which keeps a table up to date"
        )
    table = ChangedTable.of(changes, keys, "current")
    within = "TRUE" if until is None else until_order(until, table.schema)
    time = None if as_of is None else moment(as_of, table.schema)
    return _rows(events(changes, table, within), table, time).select(*_result_columns(table))


def _rows(steps: DataFrame, table: ChangedTable, time: Column | None) -> DataFrame:
    """The last row of each existing key with all its values: ``at``, ``time``, ``unexpected`` and the table's columns."""
    steps = _exchanged(_flat(steps, table), table)
    steps = _until_time(steps, table, time) if time is not None else steps.withColumn("undated", F.lit(False))
    facts, last = _facts(steps, table), _newest(steps.where("rank IS NOT NULL"), table)
    last = last.withColumn("live", F.expr(_IS_LIVE))
    lacks = LACKS_VALUES if table.may_lack_values else "FALSE"
    names = ["at", "time", *table.places().values(), *(["unexpected"] if table.has_unexpected else [])]
    complete = _with_facts(last, facts).where(_exists(table, lacks)).withColumn("at", F.expr(table.order.as_struct()))
    if not table.may_lack_values:
        return complete.select(names)
    some = last.where(lacks).limit(1).select(F.lit(True).alias("lacking"))
    history = _nested(steps.crossJoin(F.broadcast(some)), table)
    late = _with_facts(with_earlier_values(history, table), facts).where(_exists_late(table))
    return complete.select(names).unionByName(late.select(names))


def _flat(steps: DataFrame, table: ChangedTable) -> DataFrame:
    """The columns of `events` that the query needs. A TRUNCATE has no ``rank``."""
    return steps.select(
        *table.key_names(),
        *table.order.names,
        F.expr("CASE WHEN NOT is_truncate THEN rank END AS rank"),
        *("time", "table"),
        *table.value_places().values(),
        *(["topic"] if table.topic else []),
        *(["unexpected"] if table.has_unexpected else []),
        *(_HISTORY if table.may_lack_values else ()),
    )


def _nested(flat: DataFrame, table: ChangedTable) -> DataFrame:
    """The columns of `events` again."""
    topic, unexpected = "CAST(NULL AS STRING) AS topic", "CAST(NULL AS MAP<STRING, STRING>) AS unexpected"
    return flat.selectExpr(
        *table.key_names(),
        *table.order.names,
        *("rank", "rank IS NULL AS is_truncate", f"{_IS_LIVE} AS live", "`time`", *_HISTORY),
        *table.value_places().values(),
        "topic" if table.topic else topic,
        "unexpected" if table.has_unexpected else unexpected,
    )


def _exchanged(flat: DataFrame, table: ChangedTable) -> DataFrame:
    """The rows of an exchange by key, so that all branches of a query read the same exchange.

    Spark would push a branch's conditions and its selection of columns below the exchange. Then each branch would have its own
    exchange, and decode the changes again. Spark does not push a condition that is not deterministic and uses every column.
    """
    df = flat.repartition(*table.key_names())
    always = F.monotonically_increasing_id() >= 0
    return df.where(always | (F.to_json(F.struct(*df.columns)) != ""))


def _until_time(steps: DataFrame, table: ChangedTable, time: Column) -> DataFrame:
    """The steps up to a time, inclusive. ``undated``: whether the step's own time is unknown, and decides whether it counts.

    A step without a time, such as a tombstone, is later than the one before it. So it does not count if that one is too late. If
    both delete the key, it does not matter.
    """
    by_key = f"PARTITION BY {', '.join(table.key_names())}, rank IS NULL ORDER BY {', '.join(table.order.sequence)}"
    before = f"last(CASE WHEN `time` IS NOT NULL THEN struct(`time`, {_IS_LIVE} AS live) END, TRUE)"
    dated = steps.selectExpr(
        "*", f"{before} OVER ({by_key} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before"
    )
    counts = (F.col("time") <= time) | (
        F.col("time").isNull() & ~F.coalesce(F.col("before.`time`") > time, F.lit(False))
    )
    undated = f"`time` IS NULL AND (rank IS NULL OR {_IS_LIVE} OR coalesce(before.live, FALSE))"
    return dated.where(counts).withColumn("undated", F.expr(undated)).drop("before")


def _newest(steps: DataFrame, table: ChangedTable) -> DataFrame:
    """The step with the greatest order of each key, and steps that are not comparable with it (``nth`` is greater than 1).

    Spark sorts the steps and keeps the first of each group. This is faster than ``max_by``, which sorts them, too.
    """
    order = table.order
    by_key = (
        f"PARTITION BY {', '.join(table.key_names())} ORDER BY {', '.join(f'{name} DESC' for name in order.sequence)}"
    )
    by_key += " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    ranked = steps.selectExpr("*", f"row_number() OVER ({by_key}) AS nth", *order.firsts(by_key))
    return ranked.where(f"nth = 1 OR {order.differs()}" if order.separate else "nth = 1")


def _facts(steps: DataFrame, table: ChangedTable) -> DataFrame:
    """One row with ``facts``: of the TRUNCATEs those of `last_truncates`, and ``two_tables``.

    Spark aggregates fixed-size values faster than texts, so this compares the hashes of the tables' names. It groups by the
    TRUNCATE because the greatest STRUCT of a column takes longer.
    """
    topic = "topic" if table.topic else "CAST(NULL AS STRING)"
    end = f"CASE WHEN rank IS NULL THEN struct({table.order.as_struct()} AS at, {topic} AS topic) END"
    name = "CASE WHEN `table` IS NOT NULL THEN xxhash64(`table`) END"
    few = steps.groupBy(F.expr(end).alias("end")).agg(
        F.expr(f"min({name}) AS least"),
        F.expr(f"max({name}) AS greatest"),
        F.expr("bool_or(rank IS NULL AND undated) AS undated"),
    )
    one = few.agg(
        F.collect_list("end").alias("ends"),
        F.expr("coalesce(min(least) <> max(greatest), FALSE) AS two_tables"),
        F.expr("coalesce(bool_or(undated), FALSE) AS undated"),
    )
    return last_truncates(one, table.order.type).select(
        F.struct("epoch", "ends", "two_tables", "undated").alias("facts")
    )


def _with_facts(rows: DataFrame, facts: DataFrame) -> DataFrame:
    if hasattr(facts, "scalar"):  # since Spark 4.0: a subquery takes less time than a broadcast
        return rows.withColumn("facts", facts.scalar())
    return rows.crossJoin(F.broadcast(facts))


def _exists(table: ChangedTable, lacks: str) -> str:
    """The condition for a last row that exists and has all its values. The query fails if the changes have no clear result.

    It is one expression: Spark moves separate conditions, and rows that it dropped before could not fail.
    """
    order, key = table.order, key_text(table.keys, table.key_names())
    ended = Ended(table, order.as_struct())
    two_tables = f"format_string({sql_string(TWO_TABLES)}, coalesce(`table`, 'one without a name'), 'another')"
    undated = f"format_string({sql_string(_NO_TIME % 'a change of the key %s')}, {key})"
    cases = [
        f"WHEN facts.two_tables THEN {raised(two_tables)}",
        f"WHEN facts.undated THEN raise_error({sql_string(_NO_TIME % 'a TRUNCATE')})",
        f"WHEN {ended.by_epoch} THEN FALSE",
        f"WHEN nth > 1 THEN {raised(order.difference(key))}" if order.separate else "",
        f"WHEN undated THEN {raised(undated)}",
        "WHEN NOT live THEN FALSE",
        f"WHEN {ended.never} THEN NOT {lacks}",
        f"WHEN {ended.by_order} THEN FALSE",
        f"WHEN {ended.unknown} THEN {raised(ended.error)}" if order.separate else "",
    ]
    return f"CASE {' '.join(cases)} ELSE NOT {lacks} END"


def _exists_late(table: ChangedTable) -> str:
    """The condition for a last row with values from earlier rows."""
    ended = Ended(table, "at")
    cases = f"WHEN {ended.by_epoch} THEN FALSE WHEN NOT {ended.never} AND {ended.by_order} THEN FALSE"
    return f"CASE {cases} WHEN split IS NOT NULL THEN {raised('split')} ELSE TRUE END"


def _result_columns(table: ChangedTable) -> list[Column]:
    """The table's columns, then order, time and unexpected values."""
    columns = [F.col(place).alias(name) for name, place in table.places().items()]
    unexpected = [F.col("unexpected").alias(UNEXPECTED)] if table.has_unexpected else []
    return [*columns, F.col("at").alias(ORDER), F.col("time").alias(TIME), *unexpected]
