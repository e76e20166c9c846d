"""Compute the current table from a change table: the latest change of every key.

Spark exchanges the changes once, by key. Every branch of the query reads that exchange, so Spark decodes them once, unless they
come from a data source in Python: its scans are never the same. The first branch finds the newest step of each key. The second
finds facts about all steps: the last TRUNCATE, whether the changes are of two tables, and whether none is readable. A third one
folds open keys (`sparkwire.spark.changes.states`). AQE drops it if the facts say that none is open.

The last stage of the query raises the errors about several changes: PySpark has no class for the failure of two stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType, IntegralType, NumericType, StringType, StructType, TimestampType

from sparkwire.base.printable import value_error
from sparkwire.base.sqltype import raised, sql_string
from sparkwire.changes.columns import OP, ORDER, READ, TIME, TWO_TABLES, UNAVAILABLE, UNEXPECTED
from sparkwire.changes.orders import SEPARATE, integer, named_parts
from sparkwire.spark.changes.changed_table import ChangedTable, with_new_names
from sparkwire.spark.changes.orders import NO_TOPIC, Place, Places, epoch_of, is_after, key_text
from sparkwire.spark.changes.states import (
    TABLE_NAME,
    TWO_TRUNCATES,
    Opening,
    counts,
    epoch_start,
    exchanged,
    fold,
    hash_of,
    last_truncate,
    newest_steps,
    open_steps,
    place_of_step,
    spread,
    unpruned,
    with_moved_values,
)
from sparkwire.spark.changes.steps import (
    FIRST_UNREADABLE,
    IS_LIVE,
    IS_OF_KEY,
    IS_TRUNCATE,
    LACKS_VALUES,
    UNREADABLE,
    events,
)
from sparkwire.spark.frames import quoted

_TRUNCATE: Final = Place("facts.truncate.place.at", "facts.truncate.place.topic")
_UNREADABLE: Final = (
    "none of the changes is readable: at least %d have an error, for example %s. sparkwire.explain shows what is in a "
    "message, and _error_ says why each of them is no change"
)
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
        of a key have no common order: they are of one epoch, and in two partitions, topics or logs. Without ``as_of`` and
        ``until``, it fails if there are changes, and each of them has an ``_error_``.

    Examples
    --------
    >>> orders = sparkwire.changes(events, "event", format="databus", table="com.shop.Orders", schemas="/schemas")
    >>> sparkwire.current(orders, as_of="2024-01-31").count()
    """
    if changes.isStreaming:
        raise ValueError(
            "current() expected a batch, got a stream: use sparkwire.merge, which keeps a table up to date"
        )
    changes = with_new_names(changes)
    table = ChangedTable.of(changes, keys, "current")
    within = "TRUE" if until is None else until_order(until, table.schema)
    time = None if as_of is None else moment(as_of, table.schema)
    unreadable = FIRST_UNREADABLE if until is None and time is None else "FALSE"
    steps = events(changes, table, within, unreadable=unreadable)
    if not table.may_lack_values:
        steps = steps.drop("has_values", "bounds")  # of the fold
    return _rows(exchanged(steps, table.key_names()), table, time).select(*_result_columns(table))


def _rows(steps: DataFrame, table: ChangedTable, time: Column | None) -> DataFrame:
    """The last row of each existing key with all its values: ``at``, ``time``, ``unexpected`` and the table's columns."""
    steps = _until_time(steps, table, time) if time is not None else steps.withColumn("undated", F.lit(False))
    facts = _facts(steps, table)
    last = _with_facts(newest_steps(steps, table), facts)
    names = ["at", "time", "unexpected", "unavailable", *table.places().values()]
    complete = last.where(_exists(table)).withColumn("at", F.expr(table.order.as_struct()))
    if not table.may_lack_values:
        return complete.select(names)
    opened = open_steps(steps, table, Opening.of(table), facts.where("facts.may_be_open"))
    counting = _with_facts(opened, facts).withColumn(
        "counts", F.expr(counts(table, _TRUNCATE, table.topic is not None))
    )
    states = with_moved_values(fold(counting, table), table)
    lacking = states.where(
        "event IS NULL AND CASE WHEN NOT live OR size(older) + size(moved) + size(unavailable) = 0 THEN FALSE "
        f"WHEN split IS NOT NULL THEN {raised('split')} ELSE TRUE END"
    )
    lacking = lacking.withColumn("unavailable", F.expr("CASE WHEN size(unavailable) > 0 THEN unavailable END"))
    return complete.select(names).unionByName(lacking.select(names))


def _until_time(steps: DataFrame, table: ChangedTable, time: Column) -> DataFrame:
    """The steps up to a time, inclusive. ``undated``: whether the step's own time is unknown, and decides whether it counts.

    A step without a time, such as a tombstone, is later than the one before it. So it does not count if that one is too late. If
    both delete the key, it does not matter.
    """
    keys = ", ".join([*table.key_names(), IS_OF_KEY])
    by_key = f"PARTITION BY {keys} ORDER BY {', '.join(table.order.sequence)}"
    before = f"last(CASE WHEN `time` IS NOT NULL THEN struct(`time`, {IS_LIVE} AS live) END, TRUE)"
    dated = steps.selectExpr(
        "*", f"{before} OVER ({by_key} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before"
    )
    counts = (F.col("time") <= time) | (
        F.col("time").isNull() & ~F.coalesce(F.col("before.`time`") > time, F.lit(False))
    )
    undated = f"`time` IS NULL AND ({IS_TRUNCATE} OR {IS_LIVE} OR coalesce(before.live, FALSE))"
    return dated.where(counts).withColumn("undated", F.expr(undated)).drop("before")


def _facts(steps: DataFrame, table: ChangedTable) -> DataFrame:
    """One row with ``facts``, a STRUCT:

    ``truncate``       ``place`` of the last TRUNCATE, and ``split``, the error about TRUNCATEs without a common order
    ``undated``        whether a TRUNCATE has no time
    ``two_tables``     whether the changes are of two tables
    ``unreadable``     the number of changes if all of them have an error
    ``error``          one of their errors
    ``may_be_open``    whether a key may be open, of a table that may lack values
    """
    order, name = table.order, hash_of(TABLE_NAME)
    aggregates = {
        "truncate": last_truncate(table),
        "undated": f"coalesce(bool_or({IS_TRUNCATE} AND undated), FALSE)",
        "two_tables": f"coalesce(min({name}) <> max({name}), FALSE)",
        "unreadable": f"CASE WHEN max(rank) = {UNREADABLE} THEN count(*) END",
        "error": f"max(CASE WHEN rank = {UNREADABLE} THEN `table` END)",
    }
    if table.replaces_epochs:
        aggregates["epoch"] = f"max({order.epoch})"
    if table.may_lack_values:
        aggregates["may_be_open"] = f"bool_or({Opening.of(table).may_be_open})"
    found = unpruned(steps.agg(*(F.expr(value).alias(name) for name, value in aggregates.items())))
    found = spread(found, "truncate", table, TWO_TRUNCATES)
    last = f"CASE WHEN {IS_TRUNCATE} THEN struct({place_of_step(table)} AS place, split) END"
    if table.replaces_epochs:
        begun = f"struct({epoch_start('epoch', order.type)} AS at, {NO_TOPIC} AS topic)"
        last = f"greatest({last}, struct({begun} AS place, CAST(NULL AS STRING) AS split))"
    names = ", ".join(name for name in aggregates if name != "truncate")
    return found.selectExpr(f"struct({last} AS truncate, {names}) AS facts")


def _with_facts(rows: DataFrame, facts: DataFrame) -> DataFrame:
    if hasattr(facts, "scalar"):  # since Spark 4.0: a subquery takes less time than a broadcast
        return rows.withColumn("facts", facts.scalar())
    return rows.crossJoin(F.broadcast(facts))


def _exists(table: ChangedTable) -> str:
    """The condition for a last row that exists and has all its values. The query fails if the changes have no clear result.

    It is one expression: Spark moves separate conditions, and rows that it dropped before could not fail. The one error at its
    end keeps its code short: the JVM compiles no method of more than 8,000 bytes.
    """
    order, key = table.order, key_text(table.keys, table.key_names())
    row, places = Place(order.as_struct(), "topic"), Places(order.type, table.topic is not None)
    epoch, last_epoch = epoch_of(row.at, order.type), epoch_of(_TRUNCATE.at, order.type)
    apart = places.are_apart(row, _TRUNCATE)
    is_complete = f"NOT {LACKS_VALUES}" if table.may_lack_values else "TRUE"
    unclear = "CAST(NULL AS BOOLEAN)"
    cases = [
        f"WHEN rank IS NULL THEN CASE WHEN facts.unreadable IS NULL THEN FALSE ELSE {unclear} END",
        f"WHEN facts.two_tables OR facts.undated THEN {unclear}",
        f"WHEN {epoch} < {last_epoch} THEN FALSE",
        f"WHEN split IS NOT NULL OR undated THEN {unclear}",
        "WHEN NOT live THEN FALSE",
        f"WHEN facts.truncate IS NULL OR {epoch} > {last_epoch} THEN {is_complete}",
        f"WHEN {apart} THEN {unclear}",
        f"WHEN NOT {is_after(row.at, _TRUNCATE.at, order.type)} THEN FALSE",
        f"WHEN facts.truncate.split IS NOT NULL THEN {unclear}",
    ]
    undated = f"format_string({sql_string(_NO_TIME % 'a change of the key %s')}, {key})"
    two_tables = f"format_string({sql_string(TWO_TABLES)}, coalesce(`table`, 'one without a name'), 'another')"
    difference = places.difference(_TRUNCATE, row, what=f"concat('a TRUNCATE and the row of the key ', {key})")
    texts = [
        f"WHEN rank IS NULL THEN format_string({sql_string(_UNREADABLE)}, facts.unreadable, facts.error)",
        f"WHEN facts.two_tables THEN {two_tables}",
        f"WHEN facts.undated THEN {sql_string(_NO_TIME % 'a TRUNCATE')}",
        "WHEN split IS NOT NULL THEN split",
        f"WHEN undated THEN {undated}",
        f"WHEN {apart} THEN {difference}",
    ]
    text = f"CASE {' '.join(texts)} ELSE facts.truncate.split END"
    return f"coalesce(CASE {' '.join(cases)} ELSE {is_complete} END, {raised(text)})"


def _result_columns(table: ChangedTable) -> list[Column]:
    """The table's columns, then order, time and unexpected values."""
    columns = [F.col(place).alias(name) for name, place in table.places().items()]
    unavailable = [F.col("unavailable").alias(UNAVAILABLE)] if table.may_lack_values else []
    unexpected = [F.col("unexpected").alias(UNEXPECTED)] if table.has_unexpected else []
    return [*columns, F.col("at").alias(ORDER), F.col("time").alias(TIME), *unavailable, *unexpected]


def moment(as_of: Any, schema: StructType) -> Column:
    """The time ``as_of``. Raises ValueError if it is no time, or the changes have none."""
    time = _parsed(as_of) if isinstance(as_of, str) else as_of
    if not isinstance(time, date) or time != time:  # such as pandas.NaT
        raise _no_time(as_of)
    if TIME not in schema.names:
        raise ValueError(
            f"current() expected changes with the column {TIME} for as_of, got none: pass an order as until"
        )
    if (
        isinstance(as_of, str) and isinstance(time, datetime) and time.tzinfo is None
    ):  # as in SQL: of the session's time zone
        return F.lit(time.isoformat(" ")).cast(TimestampType())
    return F.lit(time if isinstance(time, datetime) else time.isoformat()).cast(TimestampType())


def _parsed(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise _no_time(text) from None
    if text.isdigit():  # such as 20240131, which may be an order
        raise _no_time(text)
    return time


def _no_time(value: Any) -> ValueError:
    return ValueError(
        f'current() expected as_of to be a datetime, a date or an ISO text such as "2024-01-31 12:00:00", got {value!r}: '
        "pass an order as until"
    )


def until_order(until: Any, schema: StructType) -> str:
    """The condition for a change up to and including an order, as SQL. Raises ValueError if it is no such order.

    It compares the parts that ``until`` names, in the order's own sequence. A part that is NULL decides only for a snapshot's
    row, which is before all changes. Two partitions or logs are not compared: the query fails.
    """
    type = schema[ORDER].dataType
    if not isinstance(type, StructType):
        return f"{ORDER} <= {_literal(until, ORDER, type)}"
    condition = "TRUE"
    for name, value in reversed(named_parts(until, type.names).items()):
        condition = _compared(name, _literal(value, name, type[name].dataType), condition)
    return condition


def _compared(name: str, value: str, then: str) -> str:
    """Compare a part of the order; ``then`` is the condition if it is equal."""
    part = f"{ORDER}.{quoted(name)}"
    no_value = f"until names {name}, and a change has no {name} in its {ORDER}: leave {name} out of until"
    start = f"CASE WHEN {part} IS NULL THEN if({OP} <=> {sql_string(READ)}, TRUE, raise_error({sql_string(no_value)}))"
    if name not in SEPARATE:
        return f"{start} WHEN {part} < {value} THEN TRUE WHEN {part} > {value} THEN FALSE ELSE {then} END"
    other = (
        f"until is in the {name} %s, and a change is in the {name} %s, which have no common order: leave {name} out of until, "
        f"or filter the changes by {ORDER}.{name}"
    )
    apart = f"format_string({sql_string(other)}, {value}, {part})"
    return f"{start} WHEN {part} = {value} THEN {then} ELSE {raised(apart)} END"


def _literal(value: Any, name: str, type: DataType) -> str:
    """A value of ``until`` for one part of the order."""
    if isinstance(type, IntegralType):
        return str(integer(value, name))
    if isinstance(type, StringType) and isinstance(value, str):
        return sql_string(value)
    if isinstance(type, NumericType) and isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return f"CAST({sql_string(str(value))} AS {type.simpleString()})"
    raise value_error(f"current() expected {type.simpleString().upper()} for {name} in until, got {value!r}")
