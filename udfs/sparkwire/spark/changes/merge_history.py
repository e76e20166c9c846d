"""Find the values that the last row of a key lacks.

They are in earlier rows of the batch, in the table, or under the key that the row had before. Only keys whose last row lacks
values, or that were changed, are read again. A key's rows are that of the table and the later ones of the batch. The statement
of the merge checks that the table is still the one that was read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import reduce
from operator import and_

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

from sparkwire.base.sqltype import raised, sql_string
from sparkwire.changes.columns import DELETED, ORDER, TIME, UNEXPECTED
from sparkwire.changes.key_events import is_unique_sql
from sparkwire.changes.merge_memory import ARRIVAL, DEPARTURE, MEMORY, TOPIC, resolve_moves
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.history import epoch_split
from sparkwire.spark.changes.merge_clauses import DIGEST, remembered
from sparkwire.spark.changes.merge_order import NO_TOPIC, Place, Places, place_type
from sparkwire.spark.changes.merge_rows import last_truncate, literal, memory
from sparkwire.spark.changes.order_columns import key_text
from sparkwire.spark.frames import quoted

_NAMES = "ARRAY<STRING>"


def with_history(
    rows: DataFrame, steps: DataFrame, target: str, table: ChangedTable, truncate: str
) -> tuple[DataFrame, int | None]:
    """Replace the rows (`last_rows`) that lack values by complete ones, and add what the table has to remember and to forget.

    ``target`` is the table, and ``truncate`` the order of the batch's last TRUNCATE or "", as SQL. New columns:

    - ``is_read``: whether the row comes from the table, too;
    - ``read_at``: the order of the table's row then;
    - ``is_forgotten``: whether the table has to forget the entry.

    The second result is the table's `DIGEST`.
    """
    spark = rows.sparkSession
    stored = spark.table(target)
    has_topic = TOPIC in stored.columns
    digest, text, number_waiting, number_settled = spark.sql(
        f"SELECT {DIGEST}, {last_truncate(table.order.type, has_topic)}, count_if({MEMORY}.entry IS NULL), "
        f"count_if({_is_settled(f'{MEMORY}.event', f'{MEMORY}.waits')}) FROM {remembered(target)}"
    ).collect()[0]
    seen, all_new = _stored_steps(stored, table), _new_steps(steps, table)
    of_keys, again = seen.where("entry IS NULL"), F.expr("lacks OR moves")
    if number_waiting:
        # Such a row may get its values whatever the batch has of its key. So both are read together, or there would be two rows.
        waiting = F.broadcast(_keys(of_keys.where("waits IS NOT NULL"), "waiting", table))
        rows = rows.join(waiting, _same_key("waiting", table), "left")
        again = again | F.coalesce("is_waiting", F.lit(False))
    some = _keys(rows.where(again), "some", table)
    new = all_new.join(some, _same_key("some", table), "left_semi")
    if text is not None:
        new = new.where(_is_after(text, table, has_topic))
    of_keys = of_keys.join(some, _same_key("some", table), "left").where("is_some OR waits IS NOT NULL")
    so_far = _values_so_far(new.unionByName(of_keys.select(seen.columns)), table, has_topic, truncate)
    entries = _entries(seen, all_new if number_settled else None)
    found = _resolved(so_far.unionByName(_entries_so_far(entries, table)), table)
    own = rows.where(~again).withColumns(
        {"is_read": F.lit(False), "read_at": F.lit(None).cast(rows.schema["at"].dataType), "is_forgotten": F.lit(False)}
    )
    return own.select(found.columns).unionByName(found), digest


def _keys(rows: DataFrame, name: str, table: ChangedTable) -> DataFrame:
    """The keys of rows, for a join by `_same_key`."""
    keys = (F.col(key).alias(f"{name}_{key}") for key in table.key_names())
    return rows.select(*keys, F.lit(True).alias(f"is_{name}"))


def _same_key(name: str, table: ChangedTable) -> Column:
    return reduce(and_, (F.col(key).eqNullSafe(F.col(f"{name}_{key}")) for key in table.key_names()))


def _entries(seen: DataFrame, steps: DataFrame | None) -> DataFrame:
    """The entries through which rows may get values. Those of unique events stay, so only the batch's events are read of them."""
    is_settled = _is_settled("departure", "waits")
    entries = seen.where(f"(departure IS NOT NULL OR arrival IS NOT NULL) AND NOT ({is_settled})")
    if steps is None:
        return entries
    events = steps.selectExpr("coalesce(departure, arrival) AS event").where("event IS NOT NULL")
    return entries.unionByName(seen.where(is_settled).join(events, F.expr("departure = event"), "left_semi"))


def _is_settled(event: str, waits: str) -> str:
    """Whether an entry has all its values, and stays for repeated messages. There are no ARRIVALs with such an event."""
    return f"{event} IS NOT NULL AND {waits} IS NULL AND {is_unique_sql(event)}"


def _new_steps(steps: DataFrame, table: ChangedTable) -> DataFrame:
    """The steps of the batch, with the columns of `_stored_steps`."""
    return steps.where("NOT is_truncate").selectExpr(
        *table.key_names(),
        *table.order.names,
        f"{table.order.as_struct()} AS at",
        *("topic", "rank", "live", "has_values", "`time`", *table.value_places().values(), "unavailable", "unexpected"),
        *("departure", "arrival", "begins", "ends", "FALSE AS is_stored"),
        "CAST(NULL AS STRING) AS entry",
        f"CAST(NULL AS {_NAMES}) AS waits",
        "CAST(NULL AS STRING) AS waits_for",
        "is_truncate",
    )


def _stored_steps(stored: DataFrame, table: ChangedTable) -> DataFrame:
    """The rows of the table as steps. Entries have NULL as their key, and ``entry``.

    ``waits_for`` identifies the arrival through which the values of the columns ``waits`` come.
    """
    is_event = [
        f"CASE WHEN {MEMORY}.entry = {sql_string(entry)} THEN {MEMORY}.event END" for entry in (DEPARTURE, ARRIVAL)
    ]
    return stored.selectExpr(
        *(f"{quoted(key)} AS {name}" for key, name in zip(table.keys, table.key_names(), strict=True)),
        *table.order.split(),
        f"{ORDER} AS at",
        f"{TOPIC if TOPIC in stored.columns else NO_TOPIC} AS topic",
        "CAST(0 AS TINYINT) AS rank",
        f"NOT {DELETED} AS live",
        "TRUE AS has_values",
        f"{TIME} AS `time`",
        *(f"{quoted(column)} AS {place}" for column, place in table.value_places().items()),
        f"{MEMORY}.waits AS unavailable",
        f"{UNEXPECTED if UNEXPECTED in stored.columns else 'CAST(NULL AS MAP<STRING, STRING>)'} AS unexpected",
        f"{is_event[0]} AS departure",
        f"{is_event[1]} AS arrival",
        *("FALSE AS begins", f"{DELETED} AS ends", "TRUE AS is_stored"),
        *(f"{MEMORY}.entry AS entry", f"{MEMORY}.waits AS waits", f"{MEMORY}.arrival AS waits_for"),
        "FALSE AS is_truncate",
    )


def _values_so_far(steps: DataFrame, table: ChangedTable, has_topic: bool, truncate: str) -> DataFrame:
    """What the rows of each key show: for its last row, and for each change of a key, the values up to it.

    A value does not outlive its row. ``arrived`` identifies the arrival with which the row began, and ``missing`` names the
    columns whose values came with it. A message that the connector repeated is no further change of the key: the old key
    no longer exists, or the new one lives.
    """
    keys, places = ", ".join(table.key_names()), table.value_places()
    by_key = f"PARTITION BY {keys} ORDER BY {', '.join(table.order.sequence)}"
    now = f"({by_key} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    before = f"({by_key} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    of_table = (
        f"max(CASE WHEN is_stored THEN struct(at, topic, NOT live AS is_dead, `time`) END) OVER (PARTITION BY {keys})"
    )
    newest = f"max({table.order.epoch or 'CAST(NULL AS INT)'}) OVER (PARTITION BY {keys})"
    is_over = f"coalesce(last(CASE WHEN live THEN FALSE WHEN ends THEN TRUE END, TRUE) OVER {before}, FALSE)"
    starts = "live AND (begins OR arrives IS NOT NULL OR is_over) OR waits_for IS NOT NULL"
    truncated = f"max(if(live AND at > {truncate}, 1, 0)) OVER {now}" if truncate else "0"
    own = f"if({is_unique_sql('arrives')}, arrives, to_json(struct(arrives AS event, at)))"
    was_live = f"lag(live) OVER ({by_key})"
    if truncate:
        was_live += f" AND NOT (at > {truncate} AND lag(at) OVER ({by_key}) <= {truncate})"
    identity = f"CASE WHEN arrives IS NOT NULL THEN {own} ELSE waits_for END"
    last = {
        place: f"last(CASE WHEN has_values AND NOT {_lacks(name)} THEN named_struct('n', n, 'life', life, 'value', {place}, "
        f"'why', unexpected[{sql_string(name)}]) END, TRUE) OVER {now} AS {place}"
        for name, place in places.items()
    }
    is_known = {name: f"coalesce({place}.life = life, FALSE)" for name, place in places.items()}
    moved = {name: f"NOT {known} AND born.life = life AND born.id IS NOT NULL" for name, known in is_known.items()}
    columns = (*table.key_names(), "at", "topic", "`time`", "live", "is_stored", "read_at", "is_last")
    return (
        steps.selectExpr("*", f"{of_table} AS stored", f"{newest} AS newest_epoch")
        .where(_is_later(table, has_topic))
        .selectExpr("*", "stored.at AS read_at", f"{was_live} AS was_live", f"{is_over} AS is_over")
        .selectExpr(
            "*",
            "CASE WHEN coalesce(was_live, TRUE) THEN departure END AS departs",
            "CASE WHEN NOT coalesce(was_live, FALSE) THEN arrival END AS arrives",
            f"{epoch_split(table)} AS error",
        )
        .selectExpr(
            "*",
            f"row_number() OVER ({by_key}) AS n",
            f"count_if({starts}) OVER {now} + {truncated} AS life",
            f"lead(TRUE) OVER ({by_key}) IS NULL AS is_last",
        )
        .selectExpr(
            *(*columns, "n", "life", "departs AS departure", "arrives AS arrival"),
            f"last(CASE WHEN {identity} IS NOT NULL OR begins THEN struct(life, {identity} AS id) END, TRUE) OVER {now} AS born",
            f"last(CASE WHEN error IS NOT NULL THEN struct(n, error) END, TRUE) OVER {now} AS split",
            f"last(CASE WHEN has_values THEN struct(unexpected) END, TRUE) OVER {now} AS unexpected",
            *last.values(),
        )
        .where("is_last OR departure IS NOT NULL OR arrival IS NOT NULL")
        .selectExpr(
            *(*columns, "departure", "arrival"),
            "CASE WHEN born.life = life THEN born.id END AS arrived",
            f"{_names_where(moved)} AS missing",
            "unexpected.unexpected AS unexpected",
            *(f"{_value(place, is_known[name])} AS {place}" for name, place in places.items()),
        )
    )


def _lacks(name: str) -> str:
    return f"coalesce(array_contains(unavailable, {sql_string(name)}), FALSE)"


def _value(place: str, is_known: str) -> str:
    """A value and its text if it does not fit. The query fails if the steps of the key do not show which value it is."""
    unclear = f"split IS NOT NULL AND NOT ({is_known} AND ({place}.n = n OR {place}.n > split.n))"
    return (
        f"CASE WHEN {unclear} THEN {raised('split.error')} "
        f"WHEN {is_known} THEN named_struct('value', {place}.value, 'why', {place}.why) END"
    )


def _is_after(truncate: str, table: ChangedTable, has_topic: bool) -> str:
    """Whether the table's last TRUNCATE (`last_truncate`) does not end a step. It also keeps steps that are not comparable."""
    place = literal(json.loads(truncate), place_type(table.order.type))
    own, last = Place("at", "topic"), Place(f"({place}).at", f"({place}).topic")
    return f"{Places(table.order.type, has_topic).are_apart(own, last)} OR at > {last.at}"


def _is_later(table: ChangedTable, has_topic: bool) -> str:
    """Whether a step is the table's, or later than it.

    The query fails at a step of the last epoch that cannot be compared with the table's. Steps of earlier epochs fail only where
    a value depends on them, see `epoch_split`.
    """
    places = Places(table.order.type, has_topic)
    own, stored = Place("at", "topic"), Place("stored.at", "stored.topic")
    what = f"concat('the changes of the key ', {key_text(table.keys, table.key_names())})"
    return (
        "CASE WHEN is_stored OR stored IS NULL THEN TRUE "
        f"WHEN {places.are_apart(own, stored)} THEN "
        f"CASE WHEN coalesce({table.order.epoch or 'CAST(NULL AS INT)'} < newest_epoch, FALSE) THEN TRUE "
        f"ELSE {places.error(own, stored, what)} END "
        "ELSE at > stored.at OR at = stored.at AND "
        f"(live AND stored.is_dead OR {places.later_snapshot('at', '`time`', 'stored.`time`')}) END"
    )


def _entries_so_far(entries: DataFrame, table: ChangedTable) -> DataFrame:
    """Entries in the form of `_values_so_far`."""
    return entries.selectExpr(
        *(*table.key_names(), "at", "topic", "`time`", "live", "is_stored", "at AS read_at", "FALSE AS is_last"),
        *("departure", "arrival"),
        "waits_for AS arrived",
        f"coalesce(waits, CAST(array() AS {_NAMES})) AS missing",
        "unexpected",
        *(
            f"named_struct('value', {place}, 'why', unexpected[{sql_string(name)}]) AS {place}"
            for name, place in table.value_places().items()
        ),
    )


def _resolved(so_far: DataFrame, table: ChangedTable) -> DataFrame:
    """The rows to merge, see `resolve_moves`."""
    places, keys, remembers = table.value_places(), table.key_names(), table.has_events
    schema = StructType(
        [
            *(field for field in so_far.schema if field.name not in ("is_last", "departure", "arrival", "missing")),
            StructField("entry", StringType()),
            StructField("event", StringType()),
            StructField("waits", ArrayType(StringType())),
            StructField("is_forgotten", BooleanType()),
        ]
    )

    def go_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        some = list(batches)
        if some:
            yield from resolve_moves(pa.Table.from_batches(some), keys, places, remembers).to_batches()

    # There are few such keys, so one task resolves them.
    rows = so_far.repartition(1).mapInArrow(go_on, schema)
    whys = ", ".join(f"struct({sql_string(name)} AS key, {place}.why AS value)" for name, place in places.items())
    own = "map_filter(unexpected, (name, text) -> NOT array_contains(array({}), name))".format(
        ", ".join(map(sql_string, places)) or "''"
    )
    filled = f"map_from_entries(filter(array({whys}), one -> one.value IS NOT NULL))" if places else "NULL"
    nothing = "CAST(map() AS MAP<STRING, STRING>)"
    unexpected = f"map_concat(coalesce({own}, {nothing}), coalesce({filled}, {nothing}))"
    remembers_something = "entry IS NOT NULL OR waits IS NOT NULL"
    noted = memory(entry="entry", event="event", arrival="arrived", waits="waits")
    return rows.selectExpr(
        *keys,
        *("at", "topic", "`time`", "entry IS NULL AND live AS live", "TRUE AS known"),
        *(f"{place}.value AS {place}" for place in places.values()),
        f"CASE WHEN size({unexpected}) > 0 THEN {unexpected} END AS unexpected",
        f"CAST(NULL AS {_NAMES}) AS kept",
        f"CASE WHEN {remembers_something} THEN {noted} END AS memory",
        "TRUE AS is_read",
        "CASE WHEN entry IS NULL OR is_stored THEN read_at END AS read_at",
        "is_forgotten",
    )


def _names_where(conditions: dict[str, str]) -> str:
    """The names whose condition is true."""
    names = (f"CASE WHEN {condition} THEN {sql_string(name)} END" for name, condition in conditions.items())
    return f"array_compact(CAST(array({', '.join(names)}) AS {_NAMES}))"
