"""Find the values that the last row of a key lacks, in the history of the key and of the key that it had before.

A row takes the value of an `_unavailable_` column from the newest step of its key that has it. If the key changed since, it takes
the value that the old key had when the key changed. No value is from before a delete of the key, or from before an INSERT or READ
that is no change of a key: there the life of another row ends or begins.

A connector that restarts sends messages again. The old key may have another row then. So of a unique event (`key_events`), the
first message counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from sparkwire.base.sqltype import sql_string
from sparkwire.changes.arrivals import with_moved_values
from sparkwire.changes.key_events import is_unique_sql
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.order_columns import key_text, sentence
from sparkwire.spark.changes.steps import LACKS_VALUES

_REPEATS: Final = "(departure IS NOT NULL AND NOT coalesce(was_live, TRUE))"
"""whether a step is the departure of a key that no longer exists: the connector has repeated its message"""
_REPEATED: Final = "array_max(transform(filter(departures, one -> one.event = departure AND one.lived), one -> one.at))"
"""the order of the departure that it repeats"""
_ARRIVED: Final = (
    "array_min(transform(filter(arrivals, one -> one.event = arrived.event AND one.life = life), one -> one.at))"
)
"""the order of the last arrival; if the connector has repeated its message, that of the first one in this life of the key"""


def with_earlier_values(steps: DataFrame, table: ChangedTable) -> DataFrame:
    """The last steps that lack values, filled with their earlier values, also from before a change of the key.

    Columns: the key, ``at``, ``topic``, ``time`` and the values. ``unexpected`` also has the texts of the earlier values.
    ``split`` is the error if a value depends on steps that are not comparable, or NULL.
    """
    places = table.value_places()
    moved = {
        name: f"(arrived.life = life AND coalesce(last_{place}.life < life OR last_{place}.at < arrived.at, TRUE))"
        for name, place in places.items()
    }
    values = ", ".join(
        f"{sql_string(place)}, CASE WHEN NOT coalesce({moved[name]}, FALSE) THEN {_value(name, place)} END"
        for name, place in places.items()
    )
    all_places = ", ".join(map(sql_string, places.values()))
    departed = _number("departures", "departure")
    repeated, arrived = _number("departures", "departure", _REPEATED), _number("arrivals", "arrived.event", _ARRIVED)
    result = _values_so_far(steps, table).selectExpr(
        *table.key_names(),
        *("at", "topic", "`time`", "unavailable", "unexpected", "wanted"),
        f"CASE WHEN departure IS NOT NULL AND (NOT {is_unique_sql('departure')} OR {departed} = 1) "
        f"THEN {_identity('departure', departed)} END AS departed",
        f"CASE WHEN {_REPEATS} THEN {_identity('departure', repeated)} ELSE {_identity('arrived.event', arrived)} END AS arrived",
        f"CASE WHEN {_REPEATS} THEN array({all_places}) "
        f"ELSE {_names_where({places[name]: condition for name, condition in moved.items()})} END AS moved",
        "CASE WHEN split.at >= arrived.at THEN split.error END AS split",
        f"named_struct({values}) AS row",
    )
    result = result.where("wanted OR departed IS NOT NULL AND NOT departed <=> arrived")

    def go_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        some = list(batches)
        if some:
            yield from with_moved_values(pa.Table.from_batches(some)).to_batches()

    # There are few changes of keys, so one task resolves them.
    complete = "size(moved) = 0"
    some = result.where(f"departed IS NOT NULL OR NOT {complete}").repartition(1).mapInArrow(go_on, result.schema)
    both = result.where(f"wanted AND {complete}").withColumn("split", F.lit(None).cast("STRING")).unionByName(some)
    return both.selectExpr(
        *table.key_names(),
        *("at", "topic", "`time`"),
        *(f"row.{place}.value AS {place}" for place in places.values()),
        f"{_unexpected(places) if table.has_unexpected else 'unexpected'} AS unexpected",
        f"coalesce({', '.join(['split', *(f'row.{place}.split' for place in places.values())])}) AS split",
    )


def _values_so_far(steps: DataFrame, table: ChangedTable) -> DataFrame:
    """The steps, each with what the steps of its key up to it say.

    ``life``: how many lives of the key ended or began before; ``arrived``: the last change of another key to this one;
    ``last_…``: the last value of each column; ``split``: the last step that has no common order with others of its epoch.
    """
    keys, places = [*table.key_names(), "is_truncate"], table.value_places()
    by_key = f"PARTITION BY {', '.join(keys)} ORDER BY {', '.join(table.order.sequence)}"
    now = f"({by_key} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    before = f"({by_key} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    # The row of an UPDATE_BEFORE lives on in the step with the same order.
    ends = (
        f"NOT live AND NOT coalesce(lead({table.order.as_struct()}) OVER ({by_key}) = {table.order.as_struct()}, FALSE)"
    )
    lives = steps.selectExpr("*", f"{table.order.as_struct()} AS at", f"{ends} AS is_end").selectExpr(
        "*",
        f"count_if(begins) OVER {now} + count_if(is_end) OVER {before} AS life",
        f"lag(live) OVER ({by_key}) AS was_live",
        f"lead(TRUE) OVER ({by_key}) IS NULL AND {LACKS_VALUES} AS wanted",
        f"{epoch_split(table)} AS error",
    )
    arrival = "CASE WHEN arrival IS NOT NULL THEN struct(at, arrival AS event, life) END"
    departure = (
        "CASE WHEN departure IS NOT NULL THEN struct(at, departure AS event, coalesce(was_live, TRUE) AS lived) END"
    )
    return lives.selectExpr(
        *(name for name in lives.columns if name not in places.values()),
        f"last({arrival}, TRUE) OVER {now} AS arrived",
        f"collect_set({arrival}) OVER {now} AS arrivals",
        f"collect_set({departure}) OVER {now} AS departures",
        f"last(CASE WHEN error IS NOT NULL THEN struct(at, error) END, TRUE) OVER {now} AS split",
        *(
            f"last(CASE WHEN has_values AND NOT {_lacks(name)} THEN named_struct('at', at, 'life', life, 'value', {place}, "
            f"'why', unexpected[{sql_string(name)}]) END, TRUE) OVER {now} AS last_{place}"
            for name, place in places.items()
        ),
    )


def _lacks(name: str) -> str:
    return f"coalesce(array_contains(unavailable, {sql_string(name)}), FALSE)"


def _value(name: str, place: str) -> str:
    """The value of a column, its text if it does not fit, and the error if the steps leave open which value it is."""
    known, own = f"coalesce(last_{place}.life = life, FALSE)", f"(has_values AND NOT {_lacks(name)})"
    unclear = f"NOT {own} AND NOT coalesce({known} AND split.at < last_{place}.at, FALSE)"
    return (
        f"named_struct('value', CASE WHEN {known} THEN last_{place}.value END, "
        f"'why', CASE WHEN {known} AND NOT {own} THEN last_{place}.why END, 'split', CASE WHEN {unclear} THEN split.error END)"
    )


def epoch_split(table: ChangedTable) -> str:
    """The error about the steps of a key in one epoch if they are not comparable, else NULL."""
    order = table.order
    by = ", ".join([*table.key_names(), "is_truncate", *([order.epoch] if order.epoch else [])])
    what = f"concat('the changes of the key ', {key_text(table.keys, table.key_names())})"
    cases = []
    for part, name in order.separate.items():
        least, greatest = (f"{function}({name}) OVER (PARTITION BY {by})" for function in ("min", "max"))
        cases.append(f"WHEN {least} <> {greatest} THEN {sentence(part, least, greatest, order.epoch or 'NULL', what)}")
    return f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS STRING)"


def _identity(event: str, number: str) -> str:
    """What a departure and its arrival have in common. ``number``: see `_number`."""
    return f"if({is_unique_sql(event)}, {event}, concat({event}, '#', {number}))"


def _number(events: str, event: str, until: str = "") -> str:
    """How often an event has occurred under this key: several changes of a key may have one event, if it is not unique.

    They have the same sequence under the old key and under the new one. ``until``: only up to this order.
    """
    early = f" AND one.at <= {until}" if until else ""
    return f"size(array_distinct(transform(filter({events}, one -> one.event = {event}{early}), one -> one.at)))"


def _names_where(conditions: Mapping[str, str]) -> str:
    """An array of the names whose condition is true."""
    names = (f"CASE WHEN {condition} THEN {sql_string(name)} END" for name, condition in conditions.items())
    return f"array_compact(array({', '.join(names)}))"


def _unexpected(places: Mapping[str, str]) -> str:
    """The unexpected values of a row, and those of the earlier values in it."""
    own = "map_filter(unexpected, (name, text) -> NOT coalesce(array_contains(unavailable, name), FALSE))"
    filled = ", ".join(f"struct({sql_string(name)} AS name, row.{place}.why AS text)" for name, place in places.items())
    both = (
        f"map_concat(coalesce({own}, CAST(map() AS MAP<STRING, STRING>)), "
        f"map_from_entries(filter(array({filled}), one -> one.text IS NOT NULL)))"
    )
    return f"if(size({both}) > 0, {both}, NULL)"
