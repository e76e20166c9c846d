"""Departures and arrivals of changed keys: which belong together, and what the table has to remember."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sparkwire.changes.key_events import is_unique
from sparkwire.changes.merge_memory import resolve_moves

E, F, UNIQUE = "\n1\n2", "\n2\n3", "4711\n1\n2"
"""events: two without a position, and one with it"""
SCHEMA = pa.schema(
    [
        ("key_0", pa.int32()),
        ("at", pa.struct([("partition", pa.int32()), ("offset", pa.int64())])),
        ("c1", pa.string()),
        ("is_stored", pa.bool_()),
        ("is_last", pa.bool_()),
        ("departure", pa.string()),
        ("arrival", pa.string()),
        ("arrived", pa.string()),
        ("missing", pa.list_(pa.string())),
    ]
)


def row(key: int | None, at: tuple[int, int], c1: str | None = None, **more: Any) -> dict[str, Any]:
    own: dict[str, Any] = dict.fromkeys(("departure", "arrival", "arrived"))
    own |= {"is_stored": False, "is_last": False, "missing": []}
    return {"key_0": key, "at": dict(zip(("partition", "offset"), at, strict=True)), "c1": c1, **own, **more}


def departure(key: int | None, at: tuple[int, int], c1: str | None, event: str = E, **more: Any) -> dict[str, Any]:
    return row(key, at, c1, departure=event, **more)


def arrival(key: int, at: tuple[int, int], event: str = E, **more: Any) -> dict[str, Any]:
    """A row that lacks the value of ``c1``."""
    return row(
        key,
        at,
        arrival=event,
        arrived=event if is_unique(event) else f"{event}{at}",
        missing=["w"],
        is_last=True,
        **more,
    )


def resolved(*rows: dict[str, Any], remembers: bool = True) -> list[tuple[Any, ...]]:
    """(key, entry, event, value, waits, is gone) of each row that the table does not have."""
    result = resolve_moves(pa.Table.from_pylist(list(rows), SCHEMA), ["key_0"], {"w": "c1"}, remembers)
    names = ("key_0", "entry", "event", "c1", "waits", "is_forgotten")
    return sorted((tuple(one[name] for name in names) for one in result.to_pylist()), key=str)


def test_a_pair_in_one_merge_leaves_nothing_to_remember() -> None:
    found = resolved(departure(1, (0, 2), "a", is_last=True), arrival(2, (1, 1)))
    assert found == [(1, None, None, "a", None, False), (2, None, None, "a", None, False)]


def test_a_departure_is_remembered_until_its_arrival_comes() -> None:
    assert resolved(departure(1, (0, 2), "a", is_last=True)) == [
        (1, None, None, "a", None, False),
        (None, "DEPARTURE", E, "a", None, False),
    ]
    assert resolved(departure(None, (0, 2), "a", is_stored=True), arrival(2, (1, 1))) == [
        (2, None, None, "a", None, False),
        (None, "DEPARTURE", E, "a", None, True),
    ]


def test_an_arrival_waits_until_its_departure_comes() -> None:
    assert resolved(arrival(2, (1, 1))) == [
        (2, None, None, None, ["w"], False),
        (None, "ARRIVAL", E, None, None, False),
    ]
    entry = row(None, (1, 1), arrival=E, arrived=f"{E}(1, 1)", is_stored=True)
    waiting = row(2, (1, 1), arrived=f"{E}(1, 1)", missing=["w"], is_stored=True, is_last=True)
    assert resolved(entry, waiting, departure(1, (0, 2), "a")) == [
        (2, None, None, "a", None, False),
        (None, "ARRIVAL", E, None, None, True),
    ]


def test_a_stored_row_that_learns_nothing_is_not_written() -> None:
    entry = row(None, (1, 1), arrival=E, arrived=f"{E}(1, 1)", is_stored=True)
    waiting = row(2, (1, 1), arrived=f"{E}(1, 1)", missing=["w"], is_stored=True, is_last=True)
    assert resolved(entry, waiting, departure(None, (5, 2), "z", F, is_stored=True)) == []


def test_a_pair_is_remembered_while_a_row_waits_through_it() -> None:
    """Key 2 came from key 1, whose departure has not come, and became key 3."""
    found = resolved(
        departure(2, (1, 2), None, F, arrived=f"{E}(1, 1)", missing=["w"], is_last=True),
        row(2, (1, 1), arrival=E, arrived=f"{E}(1, 1)", missing=["w"]),
        arrival(3, (2, 1), F),
    )
    assert found == [
        (2, None, None, None, ["w"], False),
        (3, None, None, None, ["w"], False),
        (None, "ARRIVAL", E, None, None, False),
        (None, "ARRIVAL", F, None, None, False),
        (None, "DEPARTURE", F, None, ["w"], False),
    ]


def test_the_nth_departure_belongs_to_the_nth_arrival() -> None:
    stored = departure(None, (0, 2), "a", is_stored=True)
    assert resolved(departure(1, (0, 10), "b"), stored, arrival(2, (1, 1))) == [
        (2, None, None, "a", None, False),
        (None, "DEPARTURE", E, "a", None, True),
        (None, "DEPARTURE", E, "b", None, False),
    ]


def test_half_of_a_change_in_one_message_is_not_remembered() -> None:
    """The other half is late."""
    assert resolved(arrival(2, (1, 1)), remembers=False) == [(2, None, None, None, None, False)]
    assert resolved(departure(1, (0, 2), "a", is_last=True), remembers=False) == [(1, None, None, "a", None, False)]


def test_the_departure_of_a_unique_event_is_kept_for_repeated_messages() -> None:
    left = departure(1, (0, 2), "a", UNIQUE, is_last=True)
    kept = (None, "DEPARTURE", UNIQUE, "a", None, False)
    assert resolved(left, arrival(2, (1, 1), UNIQUE)) == [
        (1, None, None, "a", None, False),
        (2, None, None, "a", None, False),
        kept,
    ]
    stored = departure(None, (0, 2), "a", UNIQUE, is_stored=True)
    again = departure(1, (0, 9), "another row's", UNIQUE)
    assert resolved(stored, again, arrival(2, (1, 7), UNIQUE)) == [(2, None, None, "a", None, False)]
    first = row(2, (1, 1), arrival=UNIQUE, arrived=UNIQUE, missing=["w"])
    assert resolved(left, again, arrival(2, (1, 7), UNIQUE), first)[-1] == kept


def test_a_unique_event_that_lacks_nothing_is_not_kept() -> None:
    complete = row(2, (1, 1), "b", arrival=UNIQUE, arrived=UNIQUE, is_last=True)
    stored = departure(None, (0, 2), "a", UNIQUE, is_stored=True)
    assert resolved(departure(1, (0, 2), "a", UNIQUE), complete) == [(2, None, None, "b", None, False)]
    assert resolved(stored, complete)[1:] == [(None, "DEPARTURE", UNIQUE, "a", None, True)]


def test_a_row_waits_for_a_unique_event_without_an_entry() -> None:
    assert resolved(arrival(2, (1, 1), UNIQUE)) == [(2, None, None, None, ["w"], False)]
    waiting = row(2, (1, 1), arrived=UNIQUE, missing=["w"], is_stored=True, is_last=True)
    assert resolved(waiting, departure(1, (0, 2), "a", UNIQUE)) == [
        (2, None, None, "a", None, False),
        (None, "DEPARTURE", UNIQUE, "a", None, False),
    ]
