"""What a merge must make of its batches: scenarios, each of one key or a few, that share tables and merges.

The same scenarios run against a directory (`tests/spark/test_merge_statements.py`), Delta and Iceberg
(`tests/integration/test_merge_table.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

SCHEMA: Final = (
    "_op_ STRING, _order_ STRUCT<epoch INT, partition INT, offset BIGINT>, _time_ TIMESTAMP, _table_ STRING, "
    "_before_ STRUCT<name: STRING, id: INT, v: INT, w: STRING>, name STRING, id INT, v INT, w STRING, "
    "_unavailable_ ARRAY<STRING>, _unexpected_ MAP<STRING, STRING>, _error_ STRING, _event_ STRING"
)
KEYS: Final = ("name", "id")


class Change(NamedTuple):
    """A change of one key; ``at`` is its offset, or (epoch, partition, offset)."""

    op: str
    at: int | tuple[int, int, int]
    id: int | None
    v: int | None = None
    w: str | None = None
    lacks: Sequence[str] = ()
    old: int | None = None
    """the id before a change of the key"""
    event: str | None = None
    """if the change of the key is messages of their own"""
    why: str | None = None
    """the text of a ``w`` that does not fit"""

    def row(self, name: str) -> tuple[Any, ...]:
        order = self.at if isinstance(self.at, tuple) else (0, 0, self.at)
        before = None if self.old is None else (name, self.old, None, None)
        lacks, event = list(self.lacks) or None, self.event and f"{self.event} of {name}\n"
        unexpected = None if self.why is None else {"w": self.why}
        key = (None, None) if self.op == "TRUNCATE" else (name, self.id)
        return self.op, order, None, "t", before, *key, self.v, self.w, lacks, unexpected, None, event


class Scenario(NamedTuple):
    """The changes of each batch, the rows afterwards (id, v, w), and the rows that are deleted."""

    batches: Sequence[Sequence[Change]]
    rows: Sequence[tuple[int | None, int | None, str | None]] = ()
    deleted: Sequence[tuple[int | None, int | None, str | None]] = ()


def _of(op: str) -> Callable[..., Change]:
    def change(at: int | tuple[int, int, int], id: int | None = None, *values: Any, **more: Any) -> Change:
        return Change(op, at, id, *values, **more)

    return change


insert, update, upsert, delete = (_of(op) for op in ("INSERT", "UPDATE", "UPSERT", "DELETE"))
update_before, truncate = _of("UPDATE_BEFORE"), _of("TRUNCATE")
LACKS: Final = {"lacks": ("w",)}
TWICE: Final = "\n"
"""an event without a position, so several changes of a key may have it"""
AWAY: Final = (0, 1, 1)
"""the first offset of another partition"""

ROWS: Final = {
    "an insert": Scenario([[insert(1, 1, 10, "a")]], [(1, 10, "a")]),
    "an update": Scenario([[insert(1, 1, 10, "a")], [update(2, 1, 11, "b")]], [(1, 11, "b")]),
    "an update to NULL": Scenario([[insert(1, 1, 10, "a")], [update(2, 1)]], [(1, None, None)]),
    "a delete": Scenario([[insert(1, 1, 10, "a")], [delete(2, 1)]], deleted=[(1, 10, "a")]),
    "an insert and a delete in one batch": Scenario(
        [[insert(1, 1, 10, "a"), update(2, 1, 11, "b"), delete(3, 1)]], deleted=[(1, 11, "b")]
    ),
    "a delete of an unknown key, then a late insert": Scenario(
        [[delete(5, 1)], [insert(1, 1, 10, "a")]], deleted=[(1, None, None)]
    ),
    "a late update": Scenario([[insert(5, 1, 10, "a")], [update(4, 1, 9, "b")]], [(1, 10, "a")]),
    "a late update of a deleted row": Scenario(
        [[insert(1, 1, 10, "a")], [delete(5, 1)], [update(4, 1, 9, "b")]], deleted=[(1, 10, "a")]
    ),
    "a late delete": Scenario([[insert(1, 1, 1), insert(9, 1, 2)], [delete(5, 1)]], [(1, 2, None)]),
    "a repeated batch": Scenario([[insert(1, 1, 10, "a"), update(2, 1, 11, "b")]] * 3, [(1, 11, "b")]),
    "a repeated delete": Scenario([[insert(1, 1, 10, "a")], *[[delete(2, 1)]] * 2], deleted=[(1, 10, "a")]),
    "an insert after a delete": Scenario(
        [[insert(1, 1, 10, "a")], [delete(2, 1)], [insert(3, 1, 20, "b")]], [(1, 20, "b")]
    ),
    "both halves of an update in one batch": Scenario(
        [[insert(1, 1, 10, "a")], [update_before(2, 1, 10, "a"), update(2, 1, 11, "b")]], [(1, 11, "b")]
    ),
    "both halves of an update in two batches": Scenario(
        [[insert(1, 1, 10, "a")], [update_before(2, 1, 10, "a")], [update(2, 1, 11, "b")]], [(1, 11, "b")]
    ),
    "the first half of an update again": Scenario(
        [[insert(1, 1, 10, "a")], [update(2, 1, 11, "b")], [update_before(2, 1, 10, "a")]], [(1, 11, "b")]
    ),
    "a greater epoch with a smaller offset": Scenario(
        [[insert(100, 1, 10, "a")], [update((1, 3, 1), 1, 11, "b")]], [(1, 11, "b")]
    ),
    "a smaller epoch is late": Scenario(
        [[insert((1, 0, 1), 1, 10, "a")], [update((0, 3, 100), 1, 9, "b")]], [(1, 10, "a")]
    ),
    "keys in two partitions": Scenario(
        [[insert(1, 1, 10, "a"), insert((0, 1, 1), 2, 20, "b")], [update((0, 1, 2), 2, 21), update(2, 1, 11)]],
        [(1, 11, None), (2, 21, None)],
    ),
}
MOVES: Final = {
    "a change of the key in one message": Scenario(
        [[insert(1, 1, 10, "a")], [update(2, 2, 11, "b", old=1)]], [(2, 11, "b")], [(1, 10, "a")]
    ),
    "a change of the key in one message, and the old key again": Scenario(
        [[insert(1, 1, 10, "a")], [update(2, 2, 11, "b", old=1), insert(3, 1, 30, "c")]], [(1, 30, "c"), (2, 11, "b")]
    ),
}
LACKING: Final = {
    "the table's value stays": Scenario([[insert(1, 1, 10, "a")], [update(2, 1, 11, **LACKS)]], [(1, 11, "a")]),
    "the batch's value stays": Scenario(
        [[insert(1, 1, 10, "a")], [update(2, 1, 11, "b"), update(3, 1, 12, **LACKS)]], [(1, 12, "b")]
    ),
    "the table's value stays through two rows": Scenario(
        [[insert(1, 1, 10, "a")], [update(2, 1, 11, **LACKS), update(3, 1, 12, **LACKS)]], [(1, 12, "a")]
    ),
    "no value in a late row": Scenario([[insert(5, 1, 10, "a")], [update(4, 1, 9, **LACKS)]], [(1, 10, "a")]),
    "the value comes after the row that lacks it": Scenario(
        [[update(5, 1, 11, **LACKS)], [insert(1, 1, 10, "a")]], [(1, 11, "a")]
    ),
    "an older value and then a newer one, both late": Scenario(
        [[update(9, 1, 11, **LACKS)], [insert(1, 1, 10, "a")], [update(5, 1, 10, "b")], [update(3, 1, 10, "c")]],
        [(1, 11, "b")],
    ),
    "a value that nobody knows": Scenario([[update(2, 1, 11, **LACKS)]], [(1, 11, None)]),
    "no value across a delete": Scenario(
        [[insert(1, 1, 10, "a")], [delete(2, 1)], [upsert(3, 1, 11, **LACKS)]], [(1, 11, None)]
    ),
    "no value across a delete in the batch": Scenario(
        [[insert(1, 1, 10, "a")], [delete(2, 1), upsert(3, 1, 11, **LACKS)]], [(1, 11, None)]
    ),
    "no value past an insert": Scenario([[insert(1, 1, 10, "a")], [insert(2, 1, 11, **LACKS)]], [(1, 11, None)]),
    "the last values of a row that lacks them": Scenario(
        [[insert(1, 1, 10, "a")], [update(2, 1, 11, **LACKS), delete(3, 1)]], deleted=[(1, 11, "a")]
    ),
    "a change of the key in one message": Scenario(
        [[insert(1, 1, 10, "a")], [update(2, 2, 11, old=1, **LACKS)]], [(2, 11, "a")], [(1, 10, "a")]
    ),
    "two changes of the key in one batch": Scenario(
        [[insert(1, 1, 10, "a")], [update(2, 2, 11, old=1, **LACKS), update(3, 3, 12, old=2, **LACKS)]],
        [(3, 12, "a")],
        [(1, 10, "a"), (2, 11, "a")],
    ),
    "an exchange of two keys": Scenario(
        [
            [insert(1, 1, 10, "a"), insert(2, 2, 20, "b")],
            [update(3, 9, 10, old=1, **LACKS), update(4, 1, 20, old=2, **LACKS), update(5, 2, 10, old=9, **LACKS)],
        ],
        [(1, 20, "b"), (2, 10, "a")],
        [(9, 10, "a")],
    ),
}
EVENTS: Final = {
    "the departure first": Scenario(
        [[insert(1, 1, 10, "a")], [delete(2, 1, event="E")], [insert(AWAY, 2, 11, old=1, event="E", **LACKS)]],
        [(2, 11, "a")],
        [(1, 10, "a")],
    ),
    "the departure first, and the old key again": Scenario(
        [
            [insert(1, 1, 10, "a")],
            [delete(2, 1, event="E"), insert(3, 1, 30, "c")],
            [insert(AWAY, 2, 11, old=1, event="E", **LACKS)],
        ],
        [(1, 30, "c"), (2, 11, "a")],
    ),
    "the arrival first": Scenario(
        [[insert(1, 1, 10, "a")], [insert(AWAY, 2, 11, old=1, event="E", **LACKS)], [delete(2, 1, event="E")]],
        [(2, 11, "a")],
        [(1, 10, "a")],
    ),
    "the arrival first, and its row again": Scenario(
        [
            [insert(1, 1, 10, "a")],
            [insert(AWAY, 2, 11, old=1, event="E", **LACKS)],
            [update((0, 1, 2), 2, 12, **LACKS)],
            [delete(2, 1, event="E")],
        ],
        [(2, 12, "a")],
        [(1, 10, "a")],
    ),
    "the arrival first, and a new value": Scenario(
        [
            [insert(1, 1, 10, "a")],
            [insert(AWAY, 2, 11, old=1, event="E", **LACKS)],
            [update((0, 1, 2), 2, 12, "n")],
            [delete(2, 1, event="E")],
        ],
        [(2, 12, "n")],
        [(1, 10, "a")],
    ),
    "a departure that has not come": Scenario(
        [[insert(1, 1, 10, "a")], [insert(AWAY, 2, 11, old=1, event="E", **LACKS)]], [(1, 10, "a"), (2, 11, None)]
    ),
    "both in one batch": Scenario(
        [[insert(1, 1, 10, "a")], [delete(2, 1, event="E"), insert(AWAY, 2, 11, old=1, event="E", **LACKS)]],
        [(2, 11, "a")],
        [(1, 10, "a")],
    ),
    "both, and a repetition of both batches": Scenario(
        [
            [insert(1, 1, 10, "a"), delete(2, 1, event="E")],
            [insert(AWAY, 2, 11, old=1, event="E", **LACKS)],
            [insert(1, 1, 10, "a"), delete(2, 1, event="E"), insert(AWAY, 2, 11, old=1, event="E", **LACKS)],
        ],
        [(2, 11, "a")],
        [(1, 10, "a")],
    ),
    "a chain that comes backwards": Scenario(
        [
            [insert(1, 1, 10, "a")],
            [insert((0, 2, 1), 3, 12, old=2, event="F", **LACKS)],
            [insert(AWAY, 2, 11, old=1, event="E", **LACKS), delete((0, 1, 2), 2, event="F")],
            [delete(2, 1, event="E")],
        ],
        [(3, 12, "a")],
        [(1, 10, "a"), (2, 11, None)],
    ),
    "an event without a position, which may happen twice": Scenario(
        [
            [insert(1, 1, 10, "a")],
            [delete(2, 1, event=TWICE), insert(3, 1, 20, "b"), delete(4, 1, event=TWICE)],
            [insert(AWAY, 2, 11, old=1, event=TWICE, **LACKS)],
        ],
        [(2, 11, None)],
        [(1, 20, "b")],
    ),
    "both again, with other offsets": Scenario(
        [
            [insert(1, 1, 10, "a")],
            [delete(2, 1, event="E"), insert(AWAY, 2, 11, old=1, event="E", **LACKS)],
            [delete(3, 1, event="E"), insert((0, 1, 2), 2, 11, old=1, event="E", **LACKS)],
        ],
        [(2, 11, "a")],
        [(1, 10, "a")],
    ),
    "both again in one batch": Scenario(
        [
            [insert(1, 1, 10, "a")],
            [
                *(delete(at, 1, event="E") for at in (2, 3)),
                *(insert((0, 1, at), 2, 11, old=1, event="E", **LACKS) for at in (1, 2)),
            ],
        ],
        [(2, 11, "a")],
        [(1, 10, "a")],
    ),
    "both again, when the old key has another row": Scenario(
        [
            [insert(1, 1, 10, "a")],
            [delete(2, 1, event="E"), insert(AWAY, 2, 11, old=1, event="E", **LACKS), insert(3, 1, 30, "c")],
            [delete((0, 1, 2), 2)],
            [delete(4, 1, event="E"), insert((0, 1, 3), 2, 11, old=1, event="E", **LACKS), insert(5, 1, 30, "c")],
        ],
        [(1, 30, "c"), (2, 11, "a")],
    ),
    "the arrival again, after a delete of its row": Scenario(
        [
            [insert(1, 1, 10, "a"), insert(AWAY, 2, 20, "b")],
            [delete((0, 1, 2), 2), delete(2, 1, event="E"), insert((0, 1, 3), 2, 11, old=1, event="E", **LACKS)],
            [delete((0, 1, 4), 2), delete(3, 1, event="E")],
            [insert((0, 1, 5), 2, 11, old=1, event="E", **LACKS)],
        ],
        [(2, 11, "a")],
        [(1, 10, "a")],
    ),
    "a new value and the departure in one batch": Scenario(
        [
            [insert(1, 1, 10, "a")],
            [insert(AWAY, 2, 11, old=1, event="E", **LACKS)],
            [update((0, 1, 2), 2, 12, "n"), delete(2, 1, event="E")],
        ],
        [(2, 12, "n")],
        [(1, 10, "a")],
    ),
    "the arrival again, with another offset, while it waits": Scenario(
        [
            [insert(1, 1, 10, "a")],
            [insert(AWAY, 2, 11, old=1, event="E", **LACKS)],
            [insert((0, 1, 2), 2, 11, old=1, event="E", **LACKS)],
            [delete(2, 1, event="E")],
        ],
        [(2, 11, "a")],
        [(1, 10, "a")],
    ),
}
NULL_KEYS: Final = {
    "a key with NULL": Scenario(
        [[insert(1, None, 10, "a"), insert(2, 1, 20, "b")], [update(3, None, 11, "c")]], [(None, 11, "c"), (1, 20, "b")]
    ),
    "a deleted key with NULL": Scenario(
        [[insert(1, None, 10, "a")], [delete(3, None)], [update(2, None, 9, "b")]], deleted=[(None, 10, "a")]
    ),
}
TRUNCATES: Final = {
    "rows before, at and after it": Scenario(
        [
            [insert(1, 1, 10, "a"), insert(2, 2, 20, "b"), delete(3, 2)],
            [insert(4, 3, 30, "c"), truncate(6), insert(6, 4, 40, "d"), insert(7, 5, 50, "e")],
        ],
        [(5, 50, "e")],
        [(1, 10, "a"), (2, 20, "b"), (3, 30, "c"), (4, 40, "d")],
    ),
    "late rows after it": Scenario(
        [
            [insert(1, 1, 10, "a")],
            [truncate(6)],
            [insert(5, 2, 20, "b"), update(4, 1, 11, "a"), insert(6, 3, 30, "c"), insert(7, 4, 40, "d")],
        ],
        [(4, 40, "d")],
        [(1, 10, "a")],
    ),
    "late, after later rows": Scenario(
        [[insert(1, 1, 10, "a"), insert(9, 2, 20, "b")], [truncate(6)]], [(2, 20, "b")], [(1, 10, "a")]
    ),
    "late, between a value and the row that lacks it": Scenario(
        [[insert(1, 1, 10, "a"), update(9, 1, 11, **LACKS)], [truncate(6)]], [(1, 11, None)]
    ),
    "again, and an earlier one": Scenario(
        [
            [insert(1, 1, 10, "a")],
            [truncate(6)],
            [insert(7, 2, 20, "b")],
            [truncate(6)],
            [truncate(3), insert(5, 3, 30, "c")],
        ],
        [(2, 20, "b")],
        [(1, 10, "a")],
    ),
    "a later one": Scenario(
        [[truncate(2), insert(3, 1, 10, "a")], [truncate(6), insert(7, 3, 30, "c")], [insert(5, 2, 20, "b")]],
        [(3, 30, "c")],
        [(1, 10, "a")],
    ),
    "a change of the key to a row that it has removed": Scenario(
        [
            [insert(1, 1, 10, "a"), insert(2, 2, 20, "b")],
            [truncate(3), insert(4, 1, 11, "c"), delete(5, 1, event="E"), insert(6, 2, 12, old=1, event="E", **LACKS)],
        ],
        [(2, 12, "c")],
        [(1, 11, "c")],
    ),
    "of an earlier epoch": Scenario(
        [[insert((1, 0, 1), 1, 10, "a"), insert(9, 2, 20, "b")], [truncate(100)]],
        [(1, 10, "a")],
        [(2, 20, "b")],
    ),
    "a partition of an epoch that it has superseded": Scenario(
        [[insert((0, 3, 100), 1, 10, "a")], [truncate((1, 0, 1))], [insert((0, 2, 7), 2, 20, "b")]],
        deleted=[(1, 10, "a")],
    ),
    "the row of the batch is late": Scenario(
        [[insert(5, 1, 10, "a")], [update(4, 1, 9, "b"), truncate(6)]], deleted=[(1, 10, "a")]
    ),
}
GROUPS: Final = {
    "plain": ROWS,
    "other": {
        f"{group}: {name}": scenario
        for group, own in {"moves": MOVES, "lacking": LACKING, "events": EVENTS, "NULL": NULL_KEYS}.items()
        for name, scenario in own.items()
    },
}
"""scenarios that share a table. With those of the first one, a merge needs its statement alone"""


def batches(scenarios: dict[str, Scenario]) -> list[list[tuple[Any, ...]]]:
    """The rows of each batch."""
    number = max(len(scenario.batches) for scenario in scenarios.values())
    return [
        [
            change.row(name)
            for name, scenario in scenarios.items()
            for change in (scenario.batches[k] if k < len(scenario.batches) else ())
        ]
        for k in range(number)
    ]


def result(rows: Sequence[Any], name: str) -> list[list[Any]]:
    """The rows of a scenario: id, v, w."""
    own = [[row["id"], row["v"], row["w"]] for row in rows if row["name"] == name]
    return sorted(own, key=lambda one: (one[0] is not None, one[0]))


def wanted(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(row) for row in rows]
