"""Random histories of a table as rows of a change table, with the table itself as a dictionary."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

KEYS = ("shop", "id")
VALUES = ("n", "note", "page")
"""the columns; a message may lack note and page, which a database may store separately"""
SCHEMA = (
    "source STRING, _op_ STRING, _order_ BIGINT, _time_ TIMESTAMP, _table_ STRING, _transaction_ STRING, _keys_ ARRAY<STRING>, "
    "_before_ STRUCT<shop: INT, id: STRING, n: BIGINT, note: STRING, page: BINARY>, "
    "shop INT, id STRING, n BIGINT, note STRING, page BINARY, "
    "_unavailable_ ARRAY<STRING>, _unexpected_ MAP<STRING, STRING>, _error_ STRING"
)
Key = tuple[int, str]
Row = tuple[Any, ...]
"""n, note, page"""


@dataclass
class ChangeHistory:
    """A table that changes, with the changes in the form of a capture system."""

    random: Random
    truncates: bool = False
    moves: bool = True
    lacks: bool = True
    order: int = field(default=0, init=False)
    table: dict[Key, Row] = field(default_factory=dict, init=False)
    written: dict[Key, int] = field(default_factory=dict, init=False)
    """the order of the last change of each row"""
    changes: list[tuple[Any, ...]] = field(default_factory=list, init=False)
    points: list[tuple[int, dict[Key, Row]]] = field(default_factory=list, init=False)
    """the table after each order"""

    def run(self, steps: int) -> ChangeHistory:
        for _ in range(steps):
            self.step()
            self.points.append((self.order, dict(self.table)))
        return self

    def step(self) -> None:
        draw = self.random.random()
        if self.truncates and draw < 0.02:
            self.table.clear()
            self.say("TRUNCATE")
        elif draw < 0.35 or not self.table:
            self.insert()
        else:
            key = self.random.choice(list(self.table))
            if draw < 0.45:
                self.delete(key)
            elif draw < 0.65 and self.moves:
                self.move(key)
            else:
                self.update(key)

    def free(self, shop: int) -> Key | None:
        ids = [name for name in "abcd" if (shop, name) not in self.table]
        return (shop, self.random.choice(ids)) if ids else None

    def row(self) -> Row:
        text = self.random.choice([None, "", "x", "long " * self.random.randrange(3)])
        return self.random.randrange(10**9), text, self.random.randbytes(2)

    def insert(self) -> None:
        key = self.free(self.random.randrange(40))
        if key:
            self.write(self.random.choice(["INSERT", "INSERT", "READ", "UPSERT"]), key, self.row())

    def delete(self, key: Key) -> None:
        row = self.table.pop(key)
        reported = self.random.choice([row, (None, None, None), (0, "", b"")])
        self.say("DELETE", key, reported, before=(*key, *reported))

    def update(self, key: Key) -> None:
        new, lacking = self.partly(self.table[key])
        if self.random.random() < 0.2 and not lacking:
            self.say("UPDATE_BEFORE", key, self.table[key], before=(*key, *self.table[key]))
            self.order -= 1  # both halves have the same order
        self.write(self.random.choice(["UPDATE", "UPSERT"]), key, new, lacking=lacking)

    def move(self, old: Key) -> None:
        key = self.free(old[0])
        if key is None:
            return
        new, lacking = self.partly(self.table[old])
        before = (*old, *self.random.choice([self.table[old], (None, None, None)]))
        del self.table[old]
        form = self.random.randrange(3)
        if form == 0:  # like Debezium: a delete, then an insert with the old key
            self.say("DELETE", old, (None, None, None), before=(*old, None, None, None))
        if form == 1 and not lacking:  # like DataHub: two halves with the same order
            self.say("UPDATE_BEFORE", old, before[2:], before=before)
            self.order -= 1
            self.write("UPDATE", key, new)
        else:
            self.write(self.random.choice(["INSERT", "UPDATE"]), key, new, before=before, lacking=lacking)

    def partly(self, old: Row) -> tuple[Row, list[str]]:
        """A new row, and the unchanged values that its message lacks."""
        new = list(self.row())
        lacking = [name for name in ("note", "page") if self.lacks and self.random.random() < 0.4]
        for name in lacking:
            new[VALUES.index(name)] = old[VALUES.index(name)]
        return tuple(new), lacking

    def write(
        self, op: str, key: Key, row: Row, *, before: Row | None = None, lacking: list[str] | None = None
    ) -> None:
        self.table[key] = row
        reported = tuple(None if name in (lacking or ()) else value for name, value in zip(VALUES, row, strict=True))
        self.say(op, key, reported, before=before, lacking=lacking)
        self.written[key] = self.order

    def say(
        self,
        op: str,
        key: tuple[Any, Any] = (None, None),
        row: Row = (None, None, None),
        *,
        before: Row | None = None,
        lacking: list[str] | None = None,
    ) -> None:
        self.order += self.random.choice([1, 1, 5])
        head = ("s", op, self.order, None, "shop.orders", None, list(KEYS), before)
        self.changes.append((*head, *key, *row, lacking or None, None, None))

    def delivered(self) -> list[tuple[Any, ...]]:
        """The changes in random order, some repeated, and a corrupt message between them."""
        corrupt = ("s", "DELETE", 10**9, None, None, None, None, None, *next(iter(self.table), (1, "a")))
        rows = [*self.changes, *self.random.choices(self.changes, k=len(self.changes) // 3)]
        rows.append((*corrupt, None, None, None, None, None, "BAD_JSON"))
        self.random.shuffle(rows)
        return rows


def as_table(rows: list[Any]) -> dict[Key, Row]:
    """Collected rows of ``current`` as a dictionary. Fails if a key occurs twice."""
    by_name = {(row["shop"], row["id"]): (row["n"], row["note"], _plain(row["page"])) for row in rows}
    assert len(by_name) == len(rows)
    return by_name


def _plain(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
