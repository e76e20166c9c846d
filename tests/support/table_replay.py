"""Apply changes one after the other to the tables of a database, and compare these with what the database printed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sparkwire.core.names import table_name
from tests.support.cdc_golden import Loss, Point, TableTruth, key_text

LIVE = ("INSERT", "UPDATE", "UPSERT", "READ")
Same = Callable[[Any, str, "str | None", "str | None"], bool]
"""whether a value, with its text in `_unexpected_`, equals the database's text of a type"""


class Change(NamedTuple):
    """A row of a change table."""

    line: int
    """the place of its message in the order of sending"""
    table: str
    op: str
    keys: Sequence[str] | None
    before: Mapping[str, Any] | None
    row: Mapping[str, Any]
    unavailable: Sequence[str] = ()
    unexpected: Mapping[str, str] = {}
    event: str | None = None
    """the change of a key that this message is a part of; the row with the old key has another message"""


class Statement(NamedTuple):
    """A statement that changes the structure of a table, and with it old rows."""

    line: int
    database: str
    sql: str


class Row(NamedTuple):
    values: dict[str, Any]
    unexpected: dict[str, str]
    """the texts of values that did not fit their columns"""


@dataclass
class Tables:
    """The tables of a database."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    departed: dict[str, list[Row]] = field(default_factory=dict)
    """rows that were deleted because their key changes, by the event"""
    unknown: int = 0
    """rows that were changed or deleted, and did not exist"""

    def apply(self, change: Change | Statement) -> None:
        if isinstance(change, Statement):
            self._restructure(change)
        elif change.op == "TRUNCATE":
            self.rows[change.table] = []
        elif change.op in LIVE:
            self._write(change)
        else:
            old = self._take(change, change.row)
            if change.event is not None and old is not None:
                self.departed.setdefault(change.event, []).append(old)

    def _write(self, change: Change) -> None:
        rows = self.rows.setdefault(change.table, [])
        old = None
        if change.event is not None:
            departed = self.departed.get(change.event)
            old = departed.pop(0) if departed else None
        elif change.before is not None and (
            not change.keys or _key(change.before, change.keys) != _key(change.row, change.keys)
        ):
            old = self._take(change, change.before)
        if change.keys:
            place = self._place(change, change.row)
            old = old if place is None else rows.pop(place)
        kept = {} if old is None else {name: old.values.get(name) for name in change.unavailable}
        rows.append(Row({**change.row, **kept}, dict(change.unexpected)))

    def _take(self, change: Change, values: Mapping[str, Any]) -> Row | None:
        place = self._place(change, values)
        if place is None:
            self.unknown += 1
            return None
        return self.rows[change.table].pop(place)

    def _place(self, change: Change, values: Mapping[str, Any]) -> int | None:
        """The row with the key of ``values``; of a table without a primary key, the row that has all of them."""
        names = change.keys or [name for name in values if name not in change.unavailable]
        wanted = _key(values, names)
        rows = self.rows.get(change.table, [])
        return next((place for place, row in enumerate(rows) if _key(row.values, names) == wanted), None)

    def _restructure(self, statement: Statement) -> None:
        """Apply what the golden scenario has: columns added, dropped and renamed, tables renamed and dropped."""
        name = r"(?:`?(\w+)`?\.)?`?(\w+)`?"
        sql = statement.sql

        def table(match: re.Match[str], group: int) -> str:
            return table_name(match[group] or statement.database, match[group + 1])

        if match := re.match(f"RENAME TABLE {name} TO {name}", sql):
            self.rows[table(match, 3)] = self.rows.pop(table(match, 1), [])
        elif match := re.match(f"DROP TABLE {name}", sql):
            self.rows.pop(table(match, 1), None)
        elif match := re.match(f"ALTER TABLE {name} (.*)", sql):
            rows = [row.values for row in self.rows.get(table(match, 1), [])]
            for clause in re.split(r", (?=ADD|DROP|MODIFY|CHANGE)", match[3]):
                _restructure_rows(rows, clause)


def _restructure_rows(rows: Iterable[dict[str, Any]], clause: str) -> None:
    if match := re.match(r"ADD COLUMN (\w+) .*?(?:DEFAULT '?([^' ]+)'?)?(?: FIRST| AFTER \w+)?$", clause):
        for row in rows:
            row[match[1]] = match[2]
    elif match := re.match(r"DROP COLUMN (\w+)", clause):
        for row in rows:
            row.pop(match[1], None)
    elif match := re.match(r"CHANGE (\w+) (\w+)", clause):
        for row in rows:
            row[match[2]] = row.pop(match[1], None)


def _key(values: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    return [values.get(name) for name in names]


# ---------------------------------------------------------------- comparison with the database


class Comparison(NamedTuple):
    """The result of comparing tables with those of the database."""

    rows: int
    values: int
    """those that are equal"""
    losses: Counter[Loss]
    """those that differ, and how often they were met"""


def compare(
    changes: Iterable[Change | Statement], points: Sequence[Point], variant: str, same: Same
) -> tuple[Comparison, Tables]:
    """Apply the changes, and compare all tables with the database's at every point."""
    ordered = list(changes)
    tables, place, rows, values, losses = Tables(), 0, 0, 0, Counter[Loss]()
    for point in points:
        while place < len(ordered) and ordered[place].line < point.sent[variant]:
            tables.apply(ordered[place])
            place += 1
        for truth in point.tables.values():
            more_rows, more_values, lost = compare_table(tables.rows.get(truth.name, []), truth, variant, same)
            rows, values = rows + more_rows, values + more_values
            losses.update(lost)
    return Comparison(rows, values, losses), tables


def compare_table(rows: Sequence[Row], truth: TableTruth, variant: str, same: Same) -> tuple[int, int, list[Loss]]:
    """The numbers of rows and of equal values, and what differs."""
    left, found, equal, losses = list(rows), 0, 0, list[Loss]()
    for expected in truth.rows:
        key = key_text({name: expected[name] for name in truth.key})
        differing = _nearest(left, expected, truth, same)
        if differing is None:
            losses.append(Loss(variant, truth.name, None, key, "missing"))
            continue
        place, names = differing
        del left[place]
        found += 1
        equal += len(truth.columns) - len(names)
        losses.extend(Loss(variant, truth.name, name, key, expected[name]) for name in names)
    for row in left:
        names = truth.key or [name for name, value in row.values.items() if value is not None]
        losses.append(
            Loss(variant, truth.name, None, key_text({name: row.values.get(name) for name in names}), "too many")
        )
    return found, equal, losses


def _nearest(
    rows: Sequence[Row], expected: Mapping[str, str | None], truth: TableTruth, same: Same
) -> tuple[int, list[str]] | None:
    """The place of the row with the expected key, and its columns that differ; None if there is no such row.

    In a table without a primary key, this is the row with the fewest differences.
    """

    def differences(row: Row, names: Sequence[str] | None) -> list[str]:
        return [
            column.name
            for column in truth.columns
            if (names is None or column.name in names)
            and not same(
                row.values.get(column.name), column.type, expected[column.name], row.unexpected.get(column.name)
            )
        ]

    if truth.key:
        place = next((place for place, row in enumerate(rows) if not differences(row, truth.key)), None)
        return None if place is None else (place, differences(rows[place], None))
    every = ((place, differences(row, None)) for place, row in enumerate(rows))
    return min(every, key=lambda one: len(one[1]), default=None)


def unknown_losses(comparison: Comparison, known: Mapping[Loss, str]) -> list[Loss]:
    """What differs although it is no known loss."""
    return sorted((loss for loss in comparison.losses if loss not in known), key=str)


def restored_losses(comparison: Comparison, known: Mapping[Loss, str]) -> set[str]:
    """The reasons of known losses that do not differ."""
    return {why for loss, why in known.items() if loss not in comparison.losses}


def difference(ours: Sequence[Change], expected: Sequence[Change]) -> list[tuple[Any, Any]]:
    """Pairs of changes that differ, beginning with the first. A column that a change lacks is NULL."""
    pairs = zip([_filled(change) for change in ours], [_filled(change) for change in expected], strict=False)
    wrong = [(one, other) for one, other in pairs if one != other]
    return wrong if len(ours) == len(expected) else [*wrong, (len(ours), len(expected))]


def _filled(change: Change) -> dict[str, Any]:
    images = {"before": change.before, "row": change.row}
    known = {name: {k: v for k, v in (image or {}).items() if v is not None} for name, image in images.items()}
    keys = [] if change.op == "TRUNCATE" else list(change.keys or ())
    own = change._asdict() | known | {"keys": keys, "before_is_known": change.before is not None}
    return {name: value for name, value in own.items() if name not in ("unavailable", "event")}
