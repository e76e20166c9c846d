"""Build the statement of a merge: when a row of the source counts, and what it changes.

A row counts if its order is greater than that of the table's row, and than that of the last TRUNCATE. A row of the fold
(`merge_stored`) counts if the table still has the row that the merge has read. Rows without a common order are an error of the
statement, which then writes nothing.

All rows run the code of the statement. The JVM does not compile a method of more than 8,000 bytes, and runs it several times
slower. So whatever depends on the source alone is a column of the source. An error has the rows in JSON, of which Python makes
its message.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.types import DataType, StructType

from sparkwire.base.sqltype import sql_string
from sparkwire.changes.columns import DELETED, ORDER, TIME, UNAVAILABLE, UNEXPECTED
from sparkwire.changes.fold import MEMORY, TOPIC, TRUNCATE
from sparkwire.changes.orders import difference
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.merge_batch import BatchFacts, literal
from sparkwire.spark.changes.merge_statement import Clause, Statement
from sparkwire.spark.changes.merge_stored import without_value
from sparkwire.spark.changes.orders import NO_TOPIC, Place, Places, epoch_of, is_after, key_text, place_type
from sparkwire.spark.frames import quoted

CONFLICT: Final = "the table has changed since this merge has read it"
"""the error of a statement whose rows come from rows that the table no longer has"""
NOT_READ: Final = "a late row meets older values"
"""the error of a statement at a row that needs a fold with the table's own first"""
UNCLEAR: Final = "no common order: "
"""how the error of a statement begins at rows whose orders are not comparable; the rows follow in JSON"""
_CHANGED: Final = f"raise_error({sql_string(CONFLICT)})"


@dataclass(frozen=True)
class Clauses:
    """What the clauses of a merge depend on."""

    table: ChangedTable
    stored: StructType
    """the schema of the target"""
    facts: BatchFacts
    keep: bool
    """whether deleted rows show their last values"""
    truncated: Any = None
    """the last TRUNCATE of the batch, see `place_type`"""
    reads_truncate: bool = False
    """whether the table may have a TRUNCATE"""
    has_entries: bool = False
    """whether the table or the source may have rows that are none of their key"""
    has_partial: bool = False
    """whether the table may have rows with older values"""
    read_truncate: Any = None
    """the last TRUNCATE at the time of the fold"""
    has_read: bool = False
    """whether the source has rows from a fold with those of the table"""
    untold: Sequence[str] = ()
    """columns that are new in the table, and whose values no message has told"""

    @property
    def order(self) -> DataType:
        return self.stored[ORDER].dataType

    @property
    def places(self) -> Places:
        return Places(self.order, TOPIC in self.stored.names)

    @property
    def of_table(self) -> Place:
        return Place(f"t.{ORDER}", f"t.{TOPIC}" if TOPIC in self.stored.names else NO_TOPIC)

    @property
    def of_source(self) -> Place:
        return Place("s.at", "s.topic")

    @property
    def of_truncate(self) -> Place:
        """The last TRUNCATE of the batch."""
        place = literal(self.truncated, place_type(self.order))
        return Place(f"({place}).at", f"({place}).topic")

    def statement(self, view: str) -> Statement:
        matched, ended = [Clause(self._counts(), self._updated())], []
        live = f"NOT t.{DELETED}{f' AND t.{MEMORY}.entry IS NULL' if self.has_entries else ''}"
        if self.truncated is not None:
            values = dict.fromkeys(self.table.values, "NULL") if not self.keep else {}
            end = {DELETED: "TRUE", **values, **self._nothing_told()}
            ends = f"CASE WHEN {live} THEN {self._ends_table()} ELSE FALSE END"
            matched.append(Clause(ends, end))
            ended.append(Clause(ends, end))
        if self.untold:
            none = "CAST(array() AS ARRAY<STRING>)"
            names = f"array_union(coalesce(t.{UNAVAILABLE}, {none}), {without_value(self.untold, 't.')})"
            ended.append(Clause(live, {UNAVAILABLE: f"nullif({names}, {none})"}))
        inserted = Clause(self._is_inserted(), self._inserted())
        return Statement(self._source(view), self._condition(), matched, inserted, ended)

    def lateness(self, view: str, target: str) -> str:
        """A query for the numbers of keys in a batch that are late, that have the table's own order, and whose time is later."""
        last = self._last_truncate(target) if self.reads_truncate else self._no_truncate
        same = " AND ".join(
            f"t.{quoted(key)} <=> s.{name}" for key, name in zip(self.table.keys, self.table.key_names(), strict=True)
        )
        is_ended = f"(s.truncated IS NOT NULL AND NOT {is_after('s.at', 's.truncated.at', self.order)})"
        late = f"(t.{ORDER} IS NOT NULL AND NOT ({self._is_newer('s.live')}) OR coalesce({is_ended}, FALSE))"
        return (
            f"SELECT count_if({late}) AS late, count_if({late} AND s.at <=> t.{ORDER}) AS repeated, "
            f"count_if({late} AND coalesce(s.time > t.{TIME}, TRUE)) AS recent "
            f"FROM (SELECT *, {last} AS truncated FROM {view}) s "
            f"LEFT JOIN (SELECT * FROM {target} WHERE {MEMORY}.entry IS NULL) t ON {same}"
        )

    # -- the source and the condition

    @property
    def _no_truncate(self) -> str:
        return f"CAST(NULL AS {place_type(self.order).simpleString()})"

    def _last_truncate(self, target: str) -> str:
        topic = TOPIC if TOPIC in self.stored.names else NO_TOPIC
        return (
            f"(SELECT max(struct({ORDER} AS at, {topic} AS topic)) FROM {target} "
            f"WHERE {MEMORY}.entry = {sql_string(TRUNCATE)})"
        )

    def _source(self, view: str) -> str:
        if self.truncated is None and not self.reads_truncate:
            return f"SELECT *, live AS exists_after, FALSE AS is_superseded, TRUE AS is_after, FALSE AS is_unclear FROM {view}"
        now = f"{self._last_truncate('{target}') if self.reads_truncate else self._no_truncate} AS truncated"
        check = ""
        if self.has_read and self.reads_truncate:
            # Delta rejects a subquery in the condition itself.
            before = literal(self.read_truncate, place_type(self.order))
            check = f" WHERE CASE WHEN truncated <=> {before} THEN TRUE ELSE {_CHANGED} END"
        row, last = Place("at", "topic"), Place("truncated.at", "truncated.topic")
        are_apart, exists = self.places.are_apart(row, last), "live"
        after = is_after(row.at, last.at, self.order)
        if self.truncated is not None:
            is_late = f"truncated IS NOT NULL AND NOT {are_apart} AND NOT {after}"
            ends = self._ends(row, self.of_truncate, key_text(self.table.keys, self.table.key_names()))
            exists = f"CASE WHEN NOT live OR {is_late} THEN FALSE ELSE NOT {ends} END"
        return (
            f"SELECT *, {self._is_superseded()} AS is_superseded, "
            f"CASE WHEN truncated IS NULL OR {are_apart} THEN TRUE ELSE {after} END AS is_after, "
            f"exists_after AND truncated IS NOT NULL AND {are_apart} AS is_unclear "
            f"FROM (SELECT *, {exists} AS exists_after FROM (SELECT *, {now} FROM {view}){check})"
        )

    def _condition(self) -> str:
        facts, parts = self.facts, []
        operator = "<=>" if self.has_entries or facts.null_keys else "="
        for key, name in zip(self.table.keys, self.table.key_names(), strict=True):
            parts.append(f"t.{quoted(key)} {operator} s.{name}")
            if operator == "=" and (ends := facts.narrow_range(key, self.table.schema[key].dataType)):
                parts.append(f"t.{quoted(key)} BETWEEN {ends[0]} AND {ends[1]}")
        if self.has_entries:
            parts += [f"t.{MEMORY}.{name} <=> s.memory.{name}" for name in ("entry", "event")]
        return " AND ".join(parts)

    # -- when a row counts

    def _counts(self) -> str:
        """Whether a row of the source changes the table's row."""
        stored, new = self.of_table, self.of_source
        apart = self._error(stored, new, f"concat('the changes of ', {self._key('s')})")
        cases = []
        if self.has_read:
            is_same = f"({stored.at} <=> s.read_at AND t.{MEMORY} <=> s.read_memory)"
            cases.append(f"WHEN s.is_read THEN CASE WHEN {is_same} THEN TRUE ELSE {_CHANGED} END")
        cases += [
            "WHEN s.is_superseded THEN FALSE",
            f"WHEN {self.places.are_apart(stored, new)} THEN {apart}",
            f"WHEN {self._is_newer('s.exists_after')} THEN {self._after()}",
        ]
        if self.has_partial:
            older = f"t.{MEMORY} IS NOT NULL AND t.{MEMORY}.entry IS NULL AND {new.at} < {stored.at}"
            cases.append(f"WHEN {older} THEN raise_error({sql_string(NOT_READ)})")
        return f"CASE {' '.join(cases)} ELSE FALSE END"

    def _is_superseded(self) -> str:
        """Whether a TRUNCATE of a later epoch ends a row of the source."""
        orders = ["truncated.at", *([self.of_truncate.at] if self.truncated is not None else [])]
        epoch = epoch_of("at", self.order)
        return " OR ".join(f"coalesce({epoch} < {epoch_of(order, self.order)}, FALSE)" for order in orders)

    def _is_newer(self, lives: str) -> str:
        """Whether a row of the source is later than the stored one.

        Of two with one order, a row that lives is later than its deletion, and the later snapshot than the earlier one.
        """
        stored, new = self.of_table.at, self.of_source.at
        later = self.places.later_snapshot(new, "s.time", f"t.{TIME}")
        return f"{stored} IS NULL OR {new} > {stored} OR {new} = {stored} AND ({lives} AND t.{DELETED} OR {later})"

    def _is_inserted(self) -> str:
        if not self.has_read and not self.has_entries:
            return self._after()
        return f"CASE WHEN s.is_read OR s.memory.entry IS NOT NULL THEN TRUE ELSE {self._after()} END"

    def _after(self) -> str:
        """Whether a row of the source is later than the stored TRUNCATE."""
        if not self.reads_truncate:
            return "s.is_after"
        last = Place("s.truncated.at", "s.truncated.topic")
        error = self._error(self.of_source, last, f"concat('TRUNCATE and the changes of ', {self._key('s')})")
        return f"CASE WHEN s.is_unclear THEN {error} ELSE s.is_after END"

    def _ends_table(self) -> str:
        return self._ends(self.of_table, self.of_truncate, self._key("t"))

    def _ends(self, place: Place, truncate: Place, key: str) -> str:
        """Whether a TRUNCATE ends a row."""
        error = self._error(place, truncate, f"concat('TRUNCATE and the changes of the key ', {key})")
        after = is_after(place.at, truncate.at, self.order)
        return f"CASE WHEN {self.places.are_apart(place, truncate)} THEN {error} ELSE NOT {after} END"

    def _error(self, one: Place, other: Place, what: str) -> str:
        places = ", ".join(f"struct({place.at} AS at, {place.topic} AS topic)" for place in (one, other))
        return f"raise_error(concat({sql_string(UNCLEAR)}, to_json(struct({what} AS what, array({places}) AS places))))"

    def explained(self, text: str) -> str:
        """The sentence about the rows in the text of an exception."""
        rows, _ = json.JSONDecoder().raw_decode(text, text.index(UNCLEAR) + len(UNCLEAR))
        return difference(**rows, order=self.order.names if isinstance(self.order, StructType) else [])

    def _key(self, row: str) -> str:
        names = self.table.key_names() if row == "s" else map(quoted, self.table.keys)
        key = key_text(self.table.keys, [f"{row}.{name}" for name in names])
        return key if row == "t" else f"if(s.memory.entry IS NULL, concat('the key ', {key}), 'TRUNCATE')"

    # -- what it changes

    def _updated(self) -> dict[str, str]:
        """The columns after an update. A deleted row keeps its last values only with ``keep``."""
        stays = self.keep and bool(self.facts.unknown)
        assigned = "CASE WHEN s.has_values THEN {} ELSE t.{} END" if stays else "{}"
        values = {
            name: assigned.format(f"s.{place}", quoted(name)) for name, place in self.table.value_places().items()
        }
        told = {UNEXPECTED: "s.unexpected", UNAVAILABLE: "s.unavailable"}
        values |= {name: assigned.format(new, name) for name, new in told.items() if name in self.stored.names}
        # A tombstone does not take the time from the delete before it.
        time = f"CASE WHEN s.time IS NULL AND NOT s.live AND t.{DELETED} THEN t.{TIME} ELSE s.time END"
        return values | self._common() | {TIME: time}

    def _inserted(self) -> dict[str, str]:
        values = {name: f"s.{place}" for name, place in self.table.places().items()}
        told = {UNEXPECTED: "s.unexpected", UNAVAILABLE: "s.unavailable"}
        values |= {name: new for name, new in told.items() if name in self.stored.names}
        # Delta computes a condition for all rows, and values only where they count. So the error is in a value.
        order = f"CASE WHEN s.read_at IS NOT NULL THEN {_CHANGED} ELSE s.at END" if self.has_read else "s.at"
        return values | self._common() | {TIME: "s.time", ORDER: order}

    def _common(self) -> dict[str, str]:
        values = {ORDER: "s.at", DELETED: "NOT s.exists_after", MEMORY: "s.memory"}
        if TOPIC in self.stored.names:
            values[TOPIC] = "s.topic"
        return values

    def _nothing_told(self) -> dict[str, str]:
        """What a row that a TRUNCATE ends no longer has."""
        names = (UNAVAILABLE, *(() if self.keep else (UNEXPECTED,)))
        return {MEMORY: "NULL"} | {name: "NULL" for name in names if name in self.stored.names}
