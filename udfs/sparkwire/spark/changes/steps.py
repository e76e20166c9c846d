"""The steps of a table (`sparkwire.changes.fold`): one row for each key that a change touches.

No column of the table can have one of these names:

| columns | |
|---|---|
| ``key_0`` … | the key; NULL for a TRUNCATE, and for a row with an error |
| ``at_0`` …, ``topic`` | the order, see `OrderColumns` |
| ``rank`` | sorts the steps with one order, see `sparkwire.changes.fold.LIVE_RANK`; negative if it is no step of a key |
| ``live`` | whether the key has a row after the step |
| ``has_values`` | whether the columns of the table are those of the key |
| ``bounds`` | whether a life begins or ends: an INSERT or READ, a change of the key, a DELETE |
| ``time``, ``table`` | |
| ``c0`` … | the columns of the table that are not part of the key |
| ``unavailable``, ``unexpected`` | |
| ``departure``, ``arrival`` | the event of a change of the key: in the step of the old key, and in that of the new one |

`events` leaves out ``live``, and each column that is NULL in every step of its table: Spark exchanges fewer bytes. `completed`
adds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from sparkwire.base.sqltype import raised, sql_string
from sparkwire.changes.columns import (
    BEFORE,
    ERROR,
    EVENT,
    INSERT,
    LIVE,
    OP,
    OPERATIONS,
    ORDER,
    READ,
    TABLE,
    TIME,
    TRUNCATE,
    UNAVAILABLE,
    UNEXPECTED,
    UPDATE_BEFORE,
)
from sparkwire.changes.fold import LIVE_RANK, OLD_KEY_RANK, event_kinds
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.frames import quoted

UNREADABLE: Final = -2
"""the rank of a row with an error, the least of all"""
_OF_TRUNCATE: Final = -1
IS_TRUNCATE: Final = f"rank = {_OF_TRUNCATE}"
IS_READABLE: Final = f"rank <> {UNREADABLE}"
IS_OF_KEY: Final = "rank >= 0"
IS_LIVE: Final = f"rank >= {LIVE_RANK}"
_UNREADABLE_OP: Final = "UNREADABLE"
# Within CASE, Spark numbers the rows for which it computes the branch: those with an error, from 0 on in each task.
FIRST_UNREADABLE: Final = "(monotonically_increasing_id() & 8589934591) < 100000"
"""a condition for the first rows with an error in each task"""
_HAS_UNAVAILABLE: Final = "coalesce(size(unavailable), 0) > 0"
LACKS_VALUES: Final = f"({IS_LIVE} AND {_HAS_UNAVAILABLE})"
"""whether a step lacks values, as SQL"""
_MICROS: Final = "yyyy-MM-dd HH:mm:ss.SSSSSS"
_AS_TEXT: Final = f"map('timeZone', 'UTC', 'timestampFormat', '{_MICROS}', 'timestampNTZFormat', '{_MICROS}')"
"""options of JSON, so that different times have different texts, the same in all sessions"""
_ABSENT: Final = {
    "topic": "STRING",
    "unavailable": "ARRAY<STRING>",
    "unexpected": "MAP<STRING, STRING>",
    "departure": "STRING",
    "arrival": "STRING",
}
"""columns that the steps of a table may not have, and their types"""


def events(changes: DataFrame, table: ChangedTable, within: str = "TRUE", *, unreadable: str = "FALSE") -> DataFrame:
    """The steps of the changes that fulfil ``within``, a condition of SQL.

    Rows with an error are left out, and no others: the query fails at a row that has neither an order nor an error.
    ``unreadable``: those with this condition are steps of no key, with the rank `UNREADABLE`, and their error as ``table``.
    """
    keys, order, names = table.key_names(), table.order, changes.columns
    marks = unreadable != "FALSE" and ERROR in names
    old = [f"old_{name}" for name in keys]
    before = [
        f"{BEFORE}.{quoted(name)} AS {place}" for name, place in zip(table.keys, old, strict=True) if table.may_move
    ]
    own_table = TABLE if TABLE in names else "CAST(NULL AS STRING)"
    # Somebody may have dropped columns from the changes: their values do not matter.
    unavailable = f"array_intersect({UNAVAILABLE}, {lists_of(table.values)})"
    columns = changes.where(_is_counted(names, within, unreadable)).selectExpr(
        *(f"{quoted(name)} AS {place}" for name, place in table.places().items()),
        *before,
        *order.split(f"if({ERROR} IS NULL, {ORDER}, NULL)" if marks else ORDER),
        f"{f'if({ERROR} IS NULL, {OP}, {sql_string(_UNREADABLE_OP)})' if marks else OP} AS op",
        f"CAST({quoted(table.topic) if table.topic else 'NULL'} AS STRING) AS topic",
        f"{TIME if TIME in names else 'CAST(NULL AS TIMESTAMP_LTZ)'} AS `time`",
        f"{f'coalesce({ERROR}, {own_table})' if marks else own_table} AS `table`",
        f"{unavailable if table.may_lack_values else 'CAST(NULL AS ARRAY<STRING>)'} AS unavailable",
        f"{UNEXPECTED if table.has_unexpected else 'CAST(NULL AS MAP<STRING, STRING>)'} AS unexpected",
        f"{EVENT if table.has_events else 'CAST(NULL AS STRING)'} AS event",
    )
    is_live = f"op IN ({', '.join(map(sql_string, LIVE))})"
    is_pair, identifies = event_kinds("event")
    is_old_key, moves, stored_keys = "FALSE", "FALSE", keys
    if table.may_move:
        # One message: it is a step of both keys.
        has_old_key = " OR ".join(f"{name} IS NOT NULL" for name in old)
        differs = " OR ".join(f"NOT {name} <=> {place}" for name, place in zip(keys, old, strict=True))
        moves = f"({is_live} AND NOT {is_pair} AND ({has_old_key}) AND ({differs}))"
        columns = columns.selectExpr("*", f"explode(if({moves}, array(FALSE, TRUE), array(FALSE))) AS is_old_key")
        is_old_key = "is_old_key"
        stored_keys = [
            f"CASE WHEN is_old_key THEN {place} ELSE {name} END" for name, place in zip(keys, old, strict=True)
        ]
    is_readable = f"op <> {sql_string(_UNREADABLE_OP)}" if marks else "TRUE"
    # The changes of a TRUNCATE have no key, whatever their columns say.
    has_key = f"op NOT IN ({sql_string(TRUNCATE)}, {sql_string(_UNREADABLE_OP)})"
    departure = arrival = "CAST(NULL AS STRING)"
    if table.may_lack_values:
        # A message that does not say which change it reports is identified by its own order.
        event = f"CASE WHEN {_HAS_UNAVAILABLE} THEN coalesce(event, to_json(struct({order.as_struct()} AS at), {_AS_TEXT})) END"
        departure = (
            f"CASE WHEN is_old_key THEN {event} WHEN NOT {is_live} AND {identifies} AND {is_readable} THEN event END"
        )
        arrival = f"CASE WHEN is_old_key OR NOT {is_live} THEN NULL WHEN {identifies} THEN event WHEN {moves} THEN {event} END"
        departure, arrival = (text.replace("is_old_key", is_old_key) for text in (departure, arrival))
    live = f"({is_live} AND NOT {is_old_key})"
    begins = f"op IN ({sql_string(INSERT)}, {sql_string(READ)}) OR {is_pair} OR {moves}"
    steps = columns.selectExpr(
        *(f"CASE WHEN {has_key} THEN {value} END AS {name}" for value, name in zip(stored_keys, keys, strict=True)),
        *order.names,
        "topic",
        _rank(live, is_old_key, f"({live} AND NOT {_HAS_UNAVAILABLE})"),
        f"({live} OR op = {sql_string(UPDATE_BEFORE)}) AS has_values",
        f"(NOT {live} OR {begins}) AS bounds",
        f"{f'CASE WHEN {is_readable} THEN `time` END' if marks else '`time`'} AS `time`",
        *("`table`", *table.value_places().values(), "unavailable", "unexpected"),
        f"{departure} AS departure",
        f"{arrival} AS arrival",
    )
    return steps.drop(*_absent(table))


def lists_of(names: Sequence[str]) -> str:
    """An ARRAY<STRING> of SQL."""
    return f"CAST(array({', '.join(map(sql_string, names))}) AS ARRAY<STRING>)"


def completed(steps: DataFrame, table: ChangedTable) -> DataFrame:
    """The steps with the columns that `events` leaves out."""
    absent = {name: F.expr(f"CAST(NULL AS {_ABSENT[name]})") for name in _absent(table)}
    return steps.withColumns(absent | {"live": F.expr(f"coalesce({IS_LIVE}, FALSE)")})


def _absent(table: ChangedTable) -> list[str]:
    has = dict.fromkeys(_ABSENT, table.may_lack_values)
    has |= {"topic": table.topic is not None, "unexpected": table.has_unexpected}
    return [name for name, is_there in has.items() if not is_there]


def _is_counted(names: list[str], within: str, unreadable: str) -> str:
    """The condition for a change to count. One expression, because Spark may change the sequence of several conditions.

    ``unreadable`` is the condition for a row with an error.
    """
    operations = ", ".join(map(sql_string, OPERATIONS))
    error = f"WHEN {ERROR} IS NOT NULL THEN {unreadable}" if ERROR in names else ""
    unknown = f"format_string('a change has the {OP} %s, which is none of {', '.join(OPERATIONS)}', {OP})"
    return (
        f"CASE {error} "
        f"WHEN {ORDER} IS NULL THEN raise_error('a change has neither {ORDER} nor {ERROR}: set one of them') "
        f"WHEN NOT coalesce({OP} IN ({operations}), FALSE) "
        f"THEN {raised(unknown)} "
        f"ELSE {within} END"
    )


def _rank(live: str, is_old_key: str, complete: str) -> str:
    parts = f"if({live}, {LIVE_RANK}, 0)", f"if({is_old_key}, {OLD_KEY_RANK}, 0)", f"if({complete}, 1, 0)"
    cases = (
        f"WHEN op = {sql_string(op)} THEN {rank}"
        for op, rank in ((TRUNCATE, _OF_TRUNCATE), (_UNREADABLE_OP, UNREADABLE))
    )
    return f"CAST(CASE {' '.join(cases)} ELSE {' + '.join(parts)} END AS TINYINT) AS rank"
