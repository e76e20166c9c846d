"""Random histories of a table, with the table itself as a dictionary; and messages that report them, as rows of a change table.

`ChangeHistory` changes the table. `Log` reports the changes as messages in a topic with partitions, which may be made anew.
`change_row` renders a message as a row of a change table; other functions may render it in the format of a capture system.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final, NamedTuple

KEYS: Final = ("shop", "id")
VALUES: Final = ("n", "note", "page")
"""the columns; a message may lack note and page, which a database may store separately"""
SCHEMA: Final = (
    "source STRING, _op_ STRING, _order_ STRUCT<epoch: INT, partition: INT, offset: BIGINT>, _time_ TIMESTAMP, _table_ STRING, "
    "_transaction_ STRING, _keys_ ARRAY<STRING>, "
    "_before_ STRUCT<shop: INT, id: STRING, n: BIGINT, note: STRING, page: BINARY>, "
    "shop INT, id STRING, n BIGINT, note STRING, page BINARY, "
    "_unavailable_ ARRAY<STRING>, _unexpected_ MAP<STRING, STRING>, _error_ STRING, _event_ STRING"
)
ONE_MESSAGE, HALVES, MESSAGES, FLATTENED = "one message", "halves", "messages", "flattened"
"""How a change of a key is reported: a message with both keys; two messages with one order; or two messages of their own. Their
event has a position (MESSAGES), or only the keys (FLATTENED). There, each delete has a tombstone, or is one."""
FORMS: Final = (ONE_MESSAGE, HALVES, MESSAGES, FLATTENED)
NONE: Final = (None, None, None)
Key = tuple[int | None, str | None]
Row = tuple[Any, ...]
"""n, note, page"""


class Change(NamedTuple):
    """A change of the table: an INSERT, READ, UPDATE, DELETE, or TRUNCATE."""

    op: str
    key: Key = (None, None)
    row: Row = NONE
    old_key: Key | None = None
    """of a change of the key"""
    old_row: Row = NONE
    lacking: tuple[str, ...] = ()
    """unchanged columns whose values the message does not have"""


@dataclass
class ChangeHistory:
    """A table that changes. With ``number``, no key is in two histories, so that one query may read several."""

    random: Random
    truncates: bool = False
    moves: bool = True
    lacks: bool = True
    null_keys: bool = False
    number: int = 0
    move_anywhere: bool = True
    """whether a row may move to another shop"""
    shops: int = 40
    """of few shops, rows have the keys of other rows before them"""
    table: dict[Key, Row] = field(default_factory=dict, init=False)
    changes: list[Change] = field(default_factory=list, init=False)

    def run(self, steps: int) -> ChangeHistory:
        for _ in range(steps):
            self.step()
        return self

    def step(self) -> None:
        draw = self.random.random()
        if self.truncates and draw < 0.02:
            self.table.clear()
            self.changes.append(Change("TRUNCATE"))
        elif draw < 0.35 or not self.table:
            self.insert()
        else:
            key = self.random.choice(list(self.table))
            if draw < 0.45:
                self.changes.append(Change("DELETE", key, old_row=self.table.pop(key)))
            elif draw < 0.65 and self.moves:
                self.move(key)
            else:
                self.update(key)

    def free(self, shop: int | None) -> Key | None:
        names = [f"{self.number}{letter}" for letter in "abcd"]
        ids = [*names, *([None] if self.null_keys and shop is not None else [])]
        left = [(shop, id) for id in ids if (shop, id) not in self.table]
        return self.random.choice(left) if left else None

    def shop(self) -> int | None:
        if self.null_keys and self.random.random() < 0.1:
            return None
        return 1000 * self.number + self.random.randrange(self.shops)

    def row(self) -> Row:
        text = self.random.choice([None, "", "x", "long " * self.random.randrange(3)])
        return self.random.randrange(10**9), text, self.random.randbytes(2)

    def insert(self) -> None:
        key = self.free(self.shop())
        if key:
            self.table[key] = self.row()
            self.changes.append(Change(self.random.choice(["INSERT", "INSERT", "READ"]), key, self.table[key]))

    def update(self, key: Key) -> None:
        old = self.table[key]
        self.table[key], lacking = self.partly(old)
        self.changes.append(Change("UPDATE", key, self.table[key], old_row=old, lacking=lacking))

    def move(self, old: Key) -> None:
        key = self.free(self.shop() if self.move_anywhere and self.random.random() < 0.5 else old[0])
        if key is None:
            return
        old_row = self.table.pop(old)
        self.table[key], lacking = self.partly(old_row)
        self.changes.append(Change("UPDATE", key, self.table[key], old, old_row, lacking))

    def partly(self, old: Row) -> tuple[Row, tuple[str, ...]]:
        """A new row, and the unchanged values that its message lacks."""
        new = list(self.row())
        lacking = [name for name in ("note", "page") if self.lacks and self.random.random() < 0.4]
        for name in lacking:
            new[VALUES.index(name)] = old[VALUES.index(name)]
        return tuple(new), tuple(lacking)


class Message(NamedTuple):
    """A message of a topic."""

    epoch: int
    partition: int
    offset: int
    op: str
    key: Key
    row: Row
    time: datetime | None
    before: Row | None = None
    """the old key and the old values that the message has"""
    lacking: tuple[str, ...] = ()
    event: str | None = None


@dataclass
class Log:
    """A topic with the messages of a history. A topic that is made anew has another number of partitions."""

    random: Random
    form: str = ONE_MESSAGE
    partitions: Sequence[int] = (1,)
    """the number of partitions in each epoch"""
    repeats: bool = False
    """whether the connector sends some messages again"""
    messages: list[Message] = field(default_factory=list, init=False)
    epoch: int = field(default=0, init=False)
    offsets: dict[int, int] = field(default_factory=dict, init=False)
    points: list[int] = field(default_factory=list, init=False)
    """the number of messages after each change"""

    def write(self, changes: Sequence[Change]) -> Log:
        """Report all changes, and make the topic anew after each part of them."""
        size, first = len(changes) // len(self.partitions) + 1, 0
        for number, change in enumerate(changes):
            if number and number % size == 0:
                self.epoch, self.offsets, first = self.epoch + 1, {}, number
            self._say(change, number)
            if self.repeats and self.random.random() < 0.05:
                again = range(max(first, number - self.random.randrange(12)), number + 1)
                if self.form != FLATTENED or _are_known([changes[n] for n in again]):
                    for n in again:
                        self._say(changes[n], n)
            self.points.append(len(self.messages))
        return self

    def orders(self) -> dict[Key, tuple[int, int, int]]:
        """The order of the last message of each key."""
        return {message.key: message[:3] for message in self.messages}

    def delivered(self) -> Iterator[Message]:
        """The messages in random order, some of them twice."""
        some = [*self.messages, *self.random.choices(self.messages, k=len(self.messages) // 3)]
        self.random.shuffle(some)
        yield from some

    def _say(self, change: Change, number: int) -> None:
        time = datetime(2024, 1, 1) + timedelta(minutes=number)
        old = change.key if change.old_key is None else change.old_key
        before = (*old, *self.random.choice([change.old_row, NONE]))
        if change.op == "TRUNCATE":
            self._append("TRUNCATE", change.key, NONE, time)
        elif change.op == "DELETE":
            self._delete(change.key, change.old_row, time, before)
        elif change.old_key is None:
            if change.op == "UPDATE" and self.form == HALVES and not change.lacking:
                self._append("UPDATE_BEFORE", change.key, change.old_row, time, before)
                self._append(change.op, change.key, change.row, time, same_order=True)
            else:
                op = "UPSERT" if self.form == FLATTENED else change.op
                self._append(op, change.key, change.row, time, lacking=change.lacking)
        elif self.form in (MESSAGES, FLATTENED):
            event = f"{number if self.form == MESSAGES else ''}\n{old}\n{change.key}"
            self._delete(old, change.old_row, time, before, event)
            op = "UPSERT" if self.form == FLATTENED else "INSERT"
            self._append(op, change.key, change.row, time, (*old, *NONE), change.lacking, event)
        elif self.form == HALVES and not change.lacking:
            self._append("UPDATE_BEFORE", old, change.old_row, time, before, of=change.key)
            self._append("UPDATE", change.key, change.row, time, same_order=True)
        else:
            op = self.random.choice(["INSERT", "UPDATE"])
            self._append(op, change.key, change.row, time, before, change.lacking, f"{number} {old} {change.key}")

    def _delete(self, key: Key, row: Row, time: datetime, before: Row, event: str | None = None) -> None:
        if self.form != FLATTENED:
            reported = self.random.choice([row, NONE, (0, "", b"")])
            self._append("DELETE", key, reported, time, before, event=event)
        if self.form in (MESSAGES, FLATTENED):
            tombstone = event if self.form == FLATTENED else None
            self._append("DELETE", key, NONE, time, event=tombstone)

    def _append(
        self,
        op: str,
        key: Key,
        row: Row,
        time: datetime,
        before: Row | None = None,
        lacking: tuple[str, ...] = (),
        event: str | None = None,
        *,
        same_order: bool = False,
        of: Key | None = None,
    ) -> None:
        """``same_order``: that of the message before. ``of``: the key that selects the partition."""
        partition = self._partition(key if of is None else of)
        if not same_order:
            self.offsets[partition] = self.offsets.get(partition, -1) + self.random.choice([1, 1, 5])
        offset = self.offsets[partition]
        self.messages.append(Message(self.epoch, partition, offset, op, key, row, time, before, lacking, event))

    def _partition(self, key: Key) -> int:
        """By the hash of the key; of a message with two keys by the shop, which a move does not change."""
        hashed = key if self.form in (MESSAGES, FLATTENED) else key[:1]
        return zlib.crc32(repr(hashed).encode()) % self.partitions[self.epoch]


def _are_known(changes: Sequence[Change]) -> bool:
    """Whether the changes, when they are repeated without a position, say all that they said at first.

    An UPDATE of a row that is gone at their end may lack values, and the row's first message is not among them.
    """
    at_end: dict[Key, bool] = {}
    for change in changes:
        if change.old_key is not None:
            at_end[change.old_key] = False
        at_end[change.key] = change.op != "DELETE"
    begun: set[Key] = set()
    for change in changes:
        source = change.key if change.old_key is None else change.old_key
        if change.lacking and change.old_key is None and source not in begun and not at_end[source]:
            return False
        if change.op in ("INSERT", "READ") or change.old_key is not None:
            begun.add(change.key)
    return True


def change_row(message: Message) -> tuple[Any, ...]:
    """A message as a row of a change table, see `SCHEMA`."""
    lacking = list(message.lacking)
    values = (None if name in lacking else value for name, value in zip(VALUES, message.row, strict=True))
    head = ("s", message.op, message[:3], message.time, "shop.orders", str(message.time), list(KEYS), message.before)
    return (*head, *message.key, *values, lacking or None, None, None, message.event)


CORRUPT: Final = ("s", "DELETE", (9, 0, 0), None, None, None, None, None, 1, "0a", *NONE, None, None, "BAD_JSON", None)
"""a row with an error, which does not count"""


def reported(history: ChangeHistory, form: str = MESSAGES, partitions: Sequence[int] = (1,)) -> list[tuple[Any, ...]]:
    """The messages about a history, in order, as rows of a change table."""
    return [change_row(message) for message in Log(Random(1), form, partitions).write(history.changes).messages]


def delivered(history: ChangeHistory, form: str = MESSAGES, partitions: Sequence[int] = (1,)) -> list[tuple[Any, ...]]:
    """The messages about a history in random order, some of them twice, and a row with an error."""
    messages = Log(Random(1), form, partitions).write(history.changes).delivered()
    return [CORRUPT, *map(change_row, messages)]


def as_table(rows: list[Any]) -> dict[Key, Row]:
    """Collected rows of ``current`` as a dictionary. Fails if a key occurs twice."""
    by_name = {(row["shop"], row["id"]): (row["n"], row["note"], _plain(row["page"])) for row in rows}
    assert len(by_name) == len(rows)
    return by_name


def unknown_values(rows: list[Any], model: dict[Key, Row]) -> set[tuple[Key, str]]:
    """The key and column of each value that a table does not know. Fails if another value is not the model's."""
    table, unknown = as_table(rows), set()
    named = {(row["shop"], row["id"]): row["_unavailable_"] or () for row in rows}
    for key, names in named.items():
        for name in names:
            assert table[key][VALUES.index(name)] is None
            unknown.add((key, name))
    without = {
        key: tuple(None if (key, name) in unknown else value for name, value in zip(VALUES, row, strict=True))
        for key, row in model.items()
    }
    assert table == without
    return unknown


def _plain(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
