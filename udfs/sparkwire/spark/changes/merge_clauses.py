"""Build the statement of a merge: when a row of the source counts, and what it changes.

A row counts if its order is greater than that of the table's row, and than that of the last TRUNCATE. Orders that cannot be
compared are an error of the statement, so nothing is written. The statement itself reads the last TRUNCATE, in the version of
the table that it changes.

All rows run the code of the statement. The JVM does not compile a method of more than 8,000 bytes, and runs it several times
slower. So whatever depends on the source alone is a column of the source, and only a second statement names rows in its errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import DataType, StructType

from sparkwire.base.sqltype import sql_string
from sparkwire.changes.columns import DELETED, ORDER, TIME, UNEXPECTED
from sparkwire.changes.merge_memory import MEMORY, TOPIC, TRUNCATE
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.merge_order import NO_TOPIC, Place, Places, place_type
from sparkwire.spark.changes.merge_rows import BatchFacts, literal
from sparkwire.spark.changes.merge_statement import Clause, Statement
from sparkwire.spark.changes.order_columns import epoch_of, key_text
from sparkwire.spark.frames import quoted

CONFLICT: Final = "the table has changed since this merge has read it"
"""the error of a statement whose rows were computed from rows that the table no longer has"""
_CHANGED: Final = f"raise_error({sql_string(CONFLICT)})"
UNCLEAR: Final = "rows have no common order"
"""the error of a statement at rows whose orders are not comparable. With `Clauses.explains`, it names them"""
_IS_LOST: Final = "(s.is_forgotten OR s.read_at IS NOT NULL)"
"""whether a row that matches none was computed from one"""
_MAP: Final = "CAST(map() AS MAP<STRING, STRING>)"
_BEGINS: Final = f"(s.known AND t.{DELETED})"
"""whether the row did not exist before the batch"""
DIGEST: Final = f"bit_xor(xxhash64(to_json({MEMORY}), to_json(struct({ORDER}))))"
"""an aggregate that differs if the table remembers something else, see `remembered`"""


def remembered(target: str) -> str:
    """The rows of a table that remember something, as SQL."""
    return f"{target} WHERE {MEMORY} IS NOT NULL"


@dataclass(frozen=True)
class Clauses:
    """What the clauses of a merge depend on."""

    table: ChangedTable
    stored: StructType
    """the schema of the target"""
    facts: BatchFacts
    digest: int | None = None
    """`DIGEST` of the target when rows were computed from it"""
    has_read: bool = False
    """whether rows were computed from the target"""
    explains: bool = False
    """whether errors name the rows, which is much code"""

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
        place = literal(self.facts.truncated, place_type(self.order))
        return Place(f"({place}).at", f"({place}).topic")

    @property
    def known(self) -> str:
        """Whether the source has values of the key."""
        return "s.known" if self.facts.unknown else "TRUE"

    @property
    def truncate_order(self) -> str:
        return "" if self.facts.truncated is None else self.of_truncate.at

    @property
    def is_exact(self) -> bool:
        """Whether the source has entries."""
        return self.has_read or self.facts.truncated is not None

    def statement(self, view: str) -> Statement:
        matched = [Clause("s.is_forgotten", None)] if self.has_read else []
        matched.append(Clause(self._counts(), self._updated()))
        ended = []
        if self.facts.truncated is not None:
            ends = f"CASE WHEN t.{DELETED} OR t.{MEMORY}.entry IS NOT NULL THEN FALSE ELSE {self._ends_table()} END"
            ended = [Clause(ends, {DELETED: "TRUE"})]
        inserted = Clause(self._is_inserted(), self._inserted())
        return Statement(self._source(view), self._condition(), [*matched, *ended], inserted, ended)

    def lateness(self, view: str, target: str) -> str:
        """A query for the numbers of keys in a batch that are late, that have the table's own order, and whose time is later."""
        last = self._last_truncate(target)
        same = " AND ".join(
            f"t.{quoted(key)} <=> s.{name}" for key, name in zip(self.table.keys, self.table.key_names(), strict=True)
        )
        late = (
            f"(t.{ORDER} IS NOT NULL AND NOT ({self._is_newer('s.live')}) OR coalesce(s.at <= s.truncated.at, FALSE))"
        )
        return (
            f"SELECT count_if({late}) AS late, count_if({late} AND s.at <=> t.{ORDER}) AS repeated, "
            f"count_if({late} AND coalesce(s.time > t.{TIME}, TRUE)) AS recent "
            f"FROM (SELECT *, {last} AS truncated FROM {view} WHERE memory.entry IS NULL) s "
            f"LEFT JOIN (SELECT * FROM {target} WHERE {MEMORY}.entry IS NULL) t ON {same}"
        )

    # -- the source and the condition

    def _last_truncate(self, target: str) -> str:
        topic = TOPIC if TOPIC in self.stored.names else NO_TOPIC
        return (
            f"(SELECT max(struct({ORDER} AS at, {topic} AS topic)) FROM {remembered(target)} "
            f"AND {MEMORY}.entry = {sql_string(TRUNCATE)})"
        )

    def _source(self, view: str) -> str:
        now, check = f"{self._last_truncate('{target}')} AS truncated", ""
        if self.has_read:
            # Delta rejects a subquery in the condition itself.
            now += f", (SELECT {DIGEST} FROM {remembered('{target}')}) AS digest"
            before = "NULL" if self.digest is None else str(self.digest)
            check = f" WHERE CASE WHEN digest <=> CAST({before} AS BIGINT) THEN TRUE ELSE {_CHANGED} END"
        own, last = Place("at", "topic"), Place("truncated.at", "truncated.topic")
        are_apart, exists = self.places.are_apart(own, last), "live"
        if self.facts.truncated is not None:
            is_late = f"truncated IS NOT NULL AND NOT {are_apart} AND at <= truncated.at"
            ends = self._ends(own, self.of_truncate, key_text(self.table.keys, self.table.key_names()))
            exists = f"CASE WHEN NOT live OR {is_late} THEN FALSE ELSE NOT {ends} END"
        return (
            f"SELECT * {'' if self.explains else 'EXCEPT (truncated)'}, {self._is_superseded()} AS is_superseded, "
            f"CASE WHEN truncated IS NULL OR {are_apart} THEN TRUE ELSE at > truncated.at END AS is_after, "
            f"exists_after AND truncated IS NOT NULL AND {are_apart} AS is_unclear "
            f"FROM (SELECT *, {exists} AS exists_after FROM (SELECT *, {now} FROM {view}){check})"
        )

    def _condition(self) -> str:
        facts, parts = self.facts, []
        operator = "<=>" if self.is_exact or facts.null_keys else "="
        for key, name, bounds in zip(self.table.keys, self.table.key_names(), facts.bounds, strict=True):
            parts.append(f"t.{quoted(key)} {operator} s.{name}")
            if bounds and bounds[0] is not None and operator == "=":
                least, greatest = (literal(bound, self.stored[key].dataType) for bound in bounds)
                parts.append(f"t.{quoted(key)} BETWEEN {least} AND {greatest}")
        if self.is_exact:
            parts += [f"t.{MEMORY}.{name} <=> s.memory.{name}" for name in ("entry", "event")]
            parts.append(f"(s.memory.event IS NULL OR t.{ORDER} = s.at)")
        elif facts.null_keys:
            parts.append(f"t.{MEMORY}.entry IS NULL")
        return " AND ".join(parts)

    # -- when a row counts

    def _counts(self) -> str:
        """Whether a row of the source changes the table's row."""
        own, other = self.of_table, self.of_source
        newer = self._is_newer("s.exists_after")
        apart = self._error(own, other, f"concat('the changes of ', {self._key('s')})")
        counts = f"s.at <=> s.read_at OR {self._after()}"
        read = f"WHEN s.is_read THEN CASE WHEN {own.at} <=> s.read_at THEN {counts} ELSE {_CHANGED} END"
        return (
            f"CASE {read if self.has_read else ''} WHEN s.is_superseded THEN FALSE "
            f"WHEN {self.places.are_apart(own, other)} THEN {apart} "
            f"WHEN {newer} THEN {self._after()} ELSE FALSE END"
        )

    def _is_superseded(self) -> str:
        """Whether a TRUNCATE of a later epoch ends a row of the source."""
        orders = ["truncated.at", *([self.truncate_order] if self.truncate_order else [])]
        own = epoch_of("at", self.order)
        return " OR ".join(f"coalesce({own} < {epoch_of(order, self.order)}, FALSE)" for order in orders)

    def _is_newer(self, lives: str) -> str:
        own, other = self.of_table.at, self.of_source.at
        later = self.places.later_snapshot(other, "s.time", f"t.{TIME}")
        return f"{own} IS NULL OR {other} > {own} OR {other} = {own} AND ({lives} AND t.{DELETED} OR {later})"

    def _is_inserted(self) -> str:
        if not self.has_read:
            return self._after()
        return f"CASE WHEN {_IS_LOST} OR s.memory.entry IS NOT NULL THEN TRUE ELSE {self._after()} END"

    def _after(self) -> str:
        """Whether a row of the source is later than the stored TRUNCATE."""
        last = Place("s.truncated.at", "s.truncated.topic")
        error = self._error(self.of_source, last, f"concat('TRUNCATE and the changes of ', {self._key('s')})")
        return f"CASE WHEN s.is_unclear THEN {error} ELSE s.is_after END"

    def _ends_table(self) -> str:
        return self._ends(self.of_table, self.of_truncate, self._key("t"))

    def _ends(self, place: Place, truncate: Place, key: str) -> str:
        """Whether a TRUNCATE ends a row."""
        error = self._error(place, truncate, f"concat('TRUNCATE and the changes of the key ', {key})")
        return f"CASE WHEN {self.places.are_apart(place, truncate)} THEN {error} ELSE {place.at} <= {truncate.at} END"

    def _error(self, one: Place, other: Place, what: str) -> str:
        return self.places.error(one, other, what) if self.explains else f"raise_error({sql_string(UNCLEAR)})"

    def _key(self, row: str) -> str:
        names = self.table.key_names() if row == "s" else map(quoted, self.table.keys)
        key = key_text(self.table.keys, [f"{row}.{name}" for name in names])
        return key if row == "t" else f"if(s.memory.entry IS NULL, concat('the key ', {key}), 'TRUNCATE')"

    # -- what it changes

    def _updated(self) -> dict[str, str]:
        # The values of a deleted row are not those of a new row with its key.
        unknown = f"WHEN {_BEGINS} THEN NULL" if self.facts.kept else ""
        values = {
            name: f"CASE WHEN {self._is_own(name)} THEN s.{place} {unknown} ELSE t.{quoted(name)} END"
            for name, place in self.table.value_places().items()
        }
        return values | self._common() | {MEMORY: self._memory()}

    def _inserted(self) -> dict[str, str]:
        values = {name: f"s.{place}" for name, place in self.table.places().items()}
        unexpected = {UNEXPECTED: "s.unexpected"} if UNEXPECTED in self.stored.names else {}
        # Delta computes a condition for all rows, and values only where they count. So the error is in a value.
        order = f"CASE WHEN {_IS_LOST} THEN {_CHANGED} ELSE s.at END" if self.has_read else "s.at"
        return values | self._common() | unexpected | {MEMORY: "s.memory", ORDER: order}

    def _common(self) -> dict[str, str]:
        values = {ORDER: "s.at", TIME: "s.time", DELETED: "NOT s.exists_after"}
        if TOPIC in self.stored.names:
            values[TOPIC] = "s.topic"
        if UNEXPECTED in self.stored.names:
            values[UNEXPECTED] = self._unexpected()
        return values

    def _is_own(self, name: str) -> str:
        """Whether the source has the value of a column."""
        kept = f" AND NOT coalesce(array_contains(s.kept, {sql_string(name)}), FALSE)" if self.facts.kept else ""
        return f"{self.known}{kept}"

    def _unexpected(self) -> str:
        own = "s.unexpected"
        if self.facts.kept:
            of_source = "map_filter(s.unexpected, (name, text) -> NOT array_contains(s.kept, name))"
            of_table = f"map_filter(t.{UNEXPECTED}, (name, text) -> array_contains(s.kept, name) AND NOT {_BEGINS})"
            both = f"map_concat(coalesce({of_source}, {_MAP}), coalesce({of_table}, {_MAP}))"
            own = f"CASE WHEN s.kept IS NULL THEN s.unexpected WHEN size({both}) > 0 THEN {both} END"
        return f"CASE WHEN {self.known} THEN {own} ELSE t.{UNEXPECTED} END"

    def _memory(self) -> str:
        """What the row remembers: the values for which it still waits, see `sparkwire.changes.merge_memory`."""
        waits = f"array_intersect(t.{MEMORY}.waits, s.kept)"
        still = (
            f" WHEN NOT {_BEGINS} AND size({waits}) > 0 THEN named_struct('entry', t.{MEMORY}.entry, 'event', t.{MEMORY}.event, "
            f"'arrival', t.{MEMORY}.arrival, 'waits', {waits})"
        )
        read = "WHEN s.is_read THEN s.memory " if self.has_read else ""
        return f"CASE {read}WHEN NOT {self.known} THEN t.{MEMORY}{still if self.facts.kept else ' ELSE NULL'} END"
