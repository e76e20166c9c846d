"""Changes of keys whose messages come in two merges.

A capture system may report a change of the key as two messages: a DELETE of the old key, the *departure*, and an INSERT of the
new key, the *arrival*, with the same event. The arrival may lack values, which the departure's row has. If only one of them has
come, the table remembers it in an entry:

- DEPARTURE: the last values of the old key, until the arrival comes.
- ARRIVAL: until the departure comes. A row that lacks values names them, and its arrival.

The n-th departure with an event belongs to the n-th arrival with it. A unique event (`key_events`) is one change. A connector may
send its messages again, when the old key has another row. So the first departure belongs to all arrivals. Its entry stays,
unless an arrival lacks nothing. There is no ARRIVAL.

A third entry is TRUNCATE, the last one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.changes.key_events import is_unique

MEMORY: Final = "_merge_"
"""the column of a merged table for what a merge has to remember; NULL in nearly all rows"""
TOPIC: Final = "_topic_"
"""the column of a merged table for the topic of a row's last change, if the changes know it"""
TRUNCATE: Final = "TRUNCATE"
DEPARTURE, ARRIVAL = "DEPARTURE", "ARRIVAL"
"""what an entry is: a row of the table that belongs to no key"""


def resolve_moves(rows: pa.Table, keys: Sequence[str], values: Mapping[str, str], remembers: bool) -> pa.Table:
    """Give rows the values that came with an arrival, and decide what the table has to remember.

    Parameters
    ----------
    rows
        the last rows of keys, and all departures and arrivals:

        - ``at``, and ``is_stored``: whether the row is one of the table;
        - ``is_last``: whether the row is the last of its key;
        - ``departure STRING``, ``arrival STRING``: the event, if the row is a departure or an arrival;
        - ``arrived STRING``: identifies the last arrival in the key's rows up to this one, and in this one;
        - ``missing ARRAY<STRING>``: the columns whose values came with that arrival;
        - the columns of ``keys`` and ``values``, and any others
    keys
        columns that entries do not have
    values
        the columns of values, by the name of the table's column
    remembers
        whether departures and arrivals are separate messages; else both are always in the same batch

    Returns
    -------
    pa.Table
        The rows that differ from those of the table, without ``is_last``, ``departure`` and ``missing``. New columns are
        ``event``, ``waits ARRAY<STRING>`` and two others. ``entry`` is DEPARTURE, ARRIVAL, or NULL for the row of a key.
        ``is_forgotten`` shows whether the table has to forget an entry. ``arrived`` stays for rows that wait, and for an ARRIVAL.
    """
    return _Rows(rows, keys, values, remembers).resolved()


class _Rows:
    """The rows, and which departure belongs to which arrival."""

    def __init__(self, rows: pa.Table, keys: Sequence[str], values: Mapping[str, str], remembers: bool) -> None:
        self.rows, self.keys, self.values, self.remembers = rows, keys, values, remembers
        self.missing: list[set[str]] = [set(names or ()) for names in rows["missing"].to_pylist()]
        self.arrived: list[str | None] = rows["arrived"].to_pylist()
        self.stored: list[bool] = rows["is_stored"].to_pylist()
        orders = rows["at"].to_pylist()
        departures, arrivals = (_by_event(rows[name].to_pylist(), orders) for name in ("departure", "arrival"))
        self.departure_of: dict[str | None, int] = {}
        """the row of the departure that belongs to an arrival"""
        self.to_keep: set[int] = set()
        """rows of departures and arrivals to remember, because the other one has not come, or may come again"""
        self.partner: dict[int, int] = {}
        """the row of the arrival of a departure"""
        for event in departures.keys() | arrivals.keys():
            if is_unique(event):
                self._connect_one(event, departures[event], arrivals[event])
            else:
                self._connect_pairs(departures[event], arrivals[event])

    def _connect_one(self, event: str, departures: Sequence[int], arrivals: Sequence[int]) -> None:
        """All messages are one change, so the first departure belongs to all arrivals, also to later ones."""
        if departures:
            self.departure_of[event] = departures[0]
            lacks = [bool(self.missing[arrival]) for arrival in arrivals]
            if all(lacks) if lacks else self.remembers:
                self.to_keep.add(departures[0])

    def _connect_pairs(self, departures: Sequence[int], arrivals: Sequence[int]) -> None:
        """The n-th departure belongs to the n-th arrival."""
        for departure, arrival in zip(departures, arrivals, strict=False):
            self.departure_of[self.arrived[arrival]] = departure
            self.partner[departure] = arrival
        if self.remembers:
            pairs = min(len(departures), len(arrivals))
            self.to_keep |= {*departures[pairs:], *arrivals[pairs:]}

    def resolved(self) -> pa.Table:
        is_last, departs, arrives = (self.rows[name].to_pylist() for name in ("is_last", "departure", "arrival"))
        waits = [self._waits(at) for at in range(len(self.missing))]
        kept = self._kept(waits, is_last)
        out: list[tuple[int, str | None, bool]] = []  # row, entry, whether the table forgets it
        for at, stored in enumerate(self.stored):
            if is_last[at] and not (stored and self._is_same(at, waits[at])):
                out.append((at, None, False))
            for entry, event in ((DEPARTURE, departs[at]), (ARRIVAL, arrives[at])):
                if event is None:
                    continue
                if at not in kept and stored:
                    out.append((at, entry, True))
                elif at in kept and not (stored and self._is_same(at, waits[at])):
                    out.append((at, entry, False))
        return self._table(out, waits)

    def _written(self, name: str, at: int) -> tuple[int | None, bool]:
        """The row that has the value of a column or None, and whether a departure that has not come may have it."""
        seen = set()
        while name in self.missing[at]:
            seen.add(at)
            arrival = self.arrived[at]
            if arrival is None:
                return None, False
            before = self.departure_of.get(arrival)
            if before is None or before in seen:
                return None, before is None and self.remembers
            at = before
        return at, False

    def _waits(self, at: int) -> list[str]:
        """The columns whose values have not come."""
        return sorted(name for name in self.missing[at] if self._written(name, at)[1])

    def _is_same(self, at: int, waits: Sequence[str]) -> bool:
        """Whether a stored row has learnt nothing."""
        return set(waits) == self.missing[at]

    def _kept(self, waits: Sequence[Sequence[str]], is_last: Sequence[bool]) -> set[int]:
        """All departures and arrivals to remember: also those through which a row still waits."""
        kept = set(self.to_keep)
        open_ones = [at for at, names in enumerate(waits) if names and (is_last[at] or at in kept)]
        while open_ones:
            before = self.departure_of.get(self.arrived[open_ones.pop()])
            if before is not None and before not in kept:
                kept |= {before, self.partner.get(before, before)}
                open_ones.append(before)
        return kept

    def _table(self, out: Sequence[tuple[int, str | None, bool]], waits: Sequence[list[str]]) -> pa.Table:
        rows = self.rows
        chosen = pa.array([at for at, *_ in out], pa.int64())
        result = rows.take(chosen)
        is_entry = np.array([entry is not None for _, entry, _ in out], bool)
        for name in self.keys:
            result = _with(result, name, _masked(result[name], is_entry))
        is_arrival = np.array([entry == ARRIVAL for _, entry, _ in out], bool)
        for name, place in self.values.items():
            written = [None if entry == ARRIVAL else self._written(name, at)[0] for at, entry, _ in out]
            result = _with(result, place, _masked(rows[place].take(pa.array(written, pa.int64())), is_arrival))
        waiting = [waits[at] if waits[at] and entry != ARRIVAL else None for at, entry, _ in out]
        events = {name: rows[name].to_pylist() for name in ("departure", "arrival")}
        event = [None if entry is None else events[entry.lower()][at] for at, entry, _ in out]
        arrived = [
            self.arrived[at] if names or entry == ARRIVAL else None
            for (at, entry, _), names in zip(out, waiting, strict=True)
        ]
        result = _with(result, "arrived", pa.array(arrived, pa.string()))
        result = result.drop_columns(["is_last", "departure", "arrival", "missing"])
        for name, column in (
            ("entry", pa.array([entry for _, entry, _ in out], pa.string())),
            ("event", pa.array(event, pa.string())),
            ("waits", pa.array(waiting, pa.list_(pa.string()))),
            ("is_forgotten", pa.array([forgotten for *_, forgotten in out], pa.bool_())),
        ):
            result = result.append_column(name, column)
        return result


def _by_event(events: Sequence[str | None], orders: Sequence[Any]) -> defaultdict[str, list[int]]:
    """The rows of each event, in their order."""
    found = defaultdict[str, list[int]](list)
    for at, event in enumerate(events):
        if event is not None:
            found[event].append(at)
    for rows in found.values():
        rows.sort(key=lambda at: _sortable(orders[at]))
    return found


def _sortable(order: Any) -> Any:
    """An order as Spark sorts it: NULL first."""
    parts = order.values() if isinstance(order, Mapping) else [order]
    return [(part is not None, part) for part in parts]


def _masked(column: pa.ChunkedArray, is_null: np.ndarray[Any, Any]) -> pa.ChunkedArray:
    return pc.if_else(pa.array(is_null), pa.scalar(None, column.type), column)


def _with(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), pa.field(name, column.type), column)
