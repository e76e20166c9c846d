"""A table is a fold over its changes: what the steps of a key say of its last row, and of rows that left the key.

A *step* is what one message says of one key: the row lives or not, some values, and perhaps that its life begins or ends there.
The *state* of a key is what its steps say together. Each part is that of the greatest order:

    at, live     the last step, and whether the row exists after it
    born, ref    where the row's life began or ended; of a changed key the event through which its first values come
    older        for each column the last step that has it, if it is not the last one

`sparkwire.current` folds all steps. `sparkwire.merge` folds those of a batch, and of the rows that the table has for these keys:
a stored row is a few steps, too. These sentences hold for both:

1. Joining states is associative, commutative and idempotent, so steps may be late, repeated, cut into batches and shuffled.
2. A row exists if its last step leaves it alive, and is later than the last TRUNCATE.
3. A value counts if it is not older than the row's life, and later than the last TRUNCATE.
4. Otherwise it is the value of the row that departed with ``ref``, as the steps before that departure say. The first departure
   of an event counts, because a connector that restarts sends its messages again.
5. Otherwise it is unknown, and ``unavailable`` names it. If a departure comes after the table stores a later row of its key, its
   values are gone: they are unknown, never guessed.

`folded` finds states from steps, for each key alone. `resolved` follows ``ref`` from key to key. Rows whose last message has all
columns need neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.core.column import bools_of
from sparkwire.kernels import Bools, Ints

MEMORY: Final = "_merge_"
"""the column of a merged table for the orders of older values; NULL in nearly all rows"""
TOPIC: Final = "_topic_"
"""the column of a merged table for the topic of a row's last change, if the changes know it"""
TRUNCATE, DEPARTURE = "TRUNCATE", "DEPARTURE"
"""what an entry is: a row of the table that is no row of its key"""

OLD_KEY_RANK: Final = 1
LIVE_RANK: Final = 4
"""Of steps with one order, the greatest rank is the last: one that ends a row has rank 0, or `OLD_KEY_RANK` if the row gets
another key. A live one has `LIVE_RANK`, and one more if it has all values."""

_STORED_RANK: Final = LIVE_RANK - 1
_LINE: Final = "\n"


# ---------------------------------------------------------------- events


def event_texts(positions: pa.Array, old_keys: pa.Array, new_keys: pa.Array) -> pa.Array:
    """Identify changes of keys that are two messages, for `_event_`; NULL where a key is NULL.

    All arguments are STRING arrays. A position may be NULL: then the event does not identify one change, see `event_kinds`.
    """
    return pc.binary_join_element_wise(positions.fill_null(""), old_keys, new_keys, _LINE)


def event_kinds(event: str) -> tuple[str, str]:
    """SQL: whether two messages share `_event_`, and whether it identifies one change. A single message has no line break.

    Without a position, the same keys may change twice, and nothing shows which message belongs to which.
    """
    is_pair = f"coalesce(contains({event}, chr(10)), FALSE)"
    return is_pair, f"({is_pair} AND NOT startswith({event}, chr(10)))"


# ---------------------------------------------------------------- states of keys


def folded(steps: pa.Table, places: Mapping[str, str], *, keep: bool = False) -> pa.Table:
    """Fold the steps of each key into the state of its last row, and into those of the rows that departed.

    Parameters
    ----------
    steps
        whole keys, one after the other; of each key the newest step first:

        - ``nth``: 1 in the first row of each key;
        - ``at``, ``topic``, ``time`` and the columns ``key_0`` …;
        - ``counts``: whether the step is later than the last TRUNCATE;
        - ``live``, ``has_values``: whether the row exists, and whether the message has values;
        - ``bounds``: whether a life begins or ends;
        - ``arrival``, ``departure``: the event of a change of the key, in the step of the new key and in that of the old one;
        - ``unavailable ARRAY<STRING>``: the columns that the step does not have;
        - ``moved ARRAY<STRUCT<name, at>>``: those of them that a stored row has through its ``ref``;
        - ``is_stored``, ``of_entry``: whether the step is of a stored row, or of a stored departure; ``is_entry``: whether it is
          that departure;
        - ``new_epoch``, and ``split``: an error, if the step and the one after it are of one epoch, and not comparable;
        - the columns of ``places``, and ``unexpected MAP<STRING, STRING>``.
    places
        the names of value columns in ``steps``, by the names of the table's columns
    keep
        whether a deleted row shows its last values

    Returns
    -------
    pa.Table
        the key, ``at``, ``topic``, ``time``, ``live``, the values, and:

        - ``event``: of a departure; else NULL;
        - ``born``, ``ref``;
        - ``unavailable``: the columns without a value of this life;
        - ``older``: name and order of each value that is older than ``at``;
        - ``moved``: those of ``unavailable`` with a stored value;
        - ``unexpected``, ``split``, and ``is_entry`` of a departure;
        - the columns ``read_…`` of the steps, as the stored row or departure has them.
    """
    return _Fold(steps, places, keep).states()


class _Fold:
    """Steps in ascending order. Every array of indexes refers to them; -1 stands for no step."""

    def __init__(self, steps: pa.Table, places: Mapping[str, str], keep: bool) -> None:
        self.steps, self.places, self.keep = steps.combine_chunks(), places, keep
        self.rows = steps.num_rows
        self.index = np.arange(self.rows)
        self.is_last = np.asarray(steps["nth"])[::-1] == 1
        self.is_first = np.concatenate(([True], self.is_last[:-1]))[: self.rows]
        self.first = np.maximum.accumulate(np.where(self.is_first, self.index, 0))
        lasts = np.flatnonzero(self.is_last)
        self.last = lasts[np.searchsorted(lasts, self.index)]
        self.counts, self.live, self.is_stored, self.is_entry = map(
            self.flag, ("counts", "live", "is_stored", "is_entry")
        )
        self.lacks, self.moves = self.named("unavailable"), self.named("moved")

    def flag(self, name: str) -> Bools:
        result: Bools = bools_of(self.steps[name].combine_chunks().fill_null(False))[::-1]
        return result

    def named(self, name: str) -> dict[str, Ints]:
        """The steps whose list has a name, by the name. Items are texts, or STRUCTs with a field ``name``."""
        lists = self.steps[name].combine_chunks()
        items, parents = lists.flatten(), np.asarray(pc.list_parent_indices(lists))
        texts = pc.struct_field(items, "name") if pa.types.is_struct(items.type) else items
        encoded = texts.dictionary_encode()
        codes = np.asarray(encoded.indices.fill_null(-1))
        found = enumerate(encoded.dictionary.to_pylist())
        return {text: self.rows - 1 - parents[codes == code] for code, text in found}

    def mask(self, steps: Ints | None) -> Bools:
        mask = np.zeros(self.rows, np.bool_)
        if steps is not None:
            mask[steps] = True
        return mask

    def latest(self, mask: Bools) -> Ints:
        """For each step, the last one of its key up to it that the mask has."""
        found = np.maximum.accumulate(np.where(mask, self.index, -1))
        return np.where(found >= self.first, found, -1)

    def before(self, found: Ints) -> Ints:
        """The same for the step before each."""
        return np.where(self.is_first, -1, np.concatenate(([-1], found[:-1]))[: self.rows])

    def taken(self, name: str, steps: Ints, known: Bools | None = None) -> pa.Array:
        """The values of steps; NULL where they are not ``known``."""
        known = steps >= 0 if known is None else known & (steps >= 0)
        places = pa.array(self.rows - 1 - steps, pa.int64(), mask=~known)
        return self.steps[name].take(places).combine_chunks()

    def states(self) -> pa.Table:
        has_values = self.flag("has_values")
        departs = self.flag_of_departures()
        bounds = self.latest(self.flag("bounds"))
        # A stored departure alone says nothing of the key's row.
        has_row = self.latest(~self.flag("of_entry"))[self.last] >= 0
        lasts, departures = np.flatnonzero(self.is_last & has_row), np.flatnonzero(departs)
        out = np.concatenate((lasts, departures))
        is_departure = np.arange(len(out)) >= len(lasts)
        births = np.concatenate((bounds[lasts], self.before(bounds)[departures]))
        # The table has a later row of the key, so nobody knows the values of the row that left.
        is_gone = is_departure & ~self.is_entry[out] & (self.latest(self.is_stored)[self.last[out]] > out)
        births = np.where(is_gone, out, births)
        # A deleted row shows the values that it had when it was last there, also if a TRUNCATE has ended it.
        is_kept = self.keep & ~is_departure & ~(self.live & self.counts)[out]
        there = self.latest(self.live)[out]
        at = np.where(is_kept & (there >= 0), there, out)
        births = np.where(is_kept, bounds[at], births)
        unsplit = self.epochs_without_split()
        columns, unavailable, older, moved, unclear = {}, [], [], [], np.full(len(out), -1)
        reasons = dict[str, Ints]()
        for name, place in self.places.items():
            lacking = self.mask(self.lacks.get(name))
            told = self.latest(has_values & ~lacking & self.counts)[at]
            if is_kept.any():
                told = np.where(is_kept, self.latest(has_values & ~lacking)[at], told)
            counts = (told >= 0) & (told >= births)
            source = np.where(counts, told, -1)
            if name in self.moves:
                stored = self.latest(self.mask(self.moves[name]) & self.counts)[out]
                has_moved = ~counts & (stored >= 0) & (stored >= births)
                source = np.where(has_moved, stored, source)
                moved.append((name, np.flatnonzero(has_moved), self.moved_orders(name, stored[has_moved])))
            columns[place] = self.taken(place, source)
            unavailable.append((name, np.flatnonzero(~counts)))
            is_older = counts & (told != out)
            older.append((name, np.flatnonzero(is_older), self.taken("at", told[is_older])))
            reasons[name] = source
            deciding = np.where(counts, np.where(told != out, told, -1), births)
            unclear = np.where((deciding >= 0) & ~unsplit[np.maximum(deciding, 0)], deciding, unclear)
        keys = [name for name in self.steps.column_names if name.startswith("key_")]
        result = {name: self.taken(name, out) for name in (*keys, "at", "topic", "time")}
        stored = np.where(is_departure, np.where(self.is_entry[out], out, -1), self.latest(self.is_stored)[out])
        result |= {
            "live": pa.array(self.live[out] & self.counts[out]),
            **columns,
            "unexpected": self.unexpected(out, reasons),
            "event": self.taken("departure", out, is_departure),
            "born": self.taken("at", births),
            "ref": self.taken("arrival", births),
            "unavailable": _lists(len(out), [(name, rows, None) for name, rows in unavailable]),
            "older": _lists(len(out), older, self.steps.schema.field("at").type),
            "moved": _lists(len(out), moved, self.steps.schema.field("at").type),
            "split": self.splits(unclear),
            "is_entry": pa.array(self.is_entry[out] & is_departure),
            **{name: self.taken(name, stored) for name in self.steps.column_names if name.startswith("read_")},
        }
        return pa.table(result)

    def flag_of_departures(self) -> Bools:
        departs: Bools = bools_of(self.steps["departure"].combine_chunks().is_valid())[::-1]
        return departs & self.counts

    def moved_orders(self, name: str, steps: Ints) -> pa.Array:
        """The orders of stored values that came through a ``ref``."""
        lists = self.steps["moved"].take(pa.array(self.rows - 1 - steps)).to_pylist()
        orders = [next(item["at"] for item in items if item["name"] == name) for items in lists]
        return pa.array(orders, self.steps.schema.field("at").type)

    def epochs_without_split(self) -> Bools:
        """For each step, whether all steps of its key and epoch are comparable."""
        starts = self.is_last | self.flag("new_epoch")  # the newest step of each epoch
        group = np.cumsum(np.concatenate(([0], starts[:-1].astype(np.int64))))[: self.rows]
        split: Bools = bools_of(self.steps["split"].combine_chunks().is_valid())[::-1]
        groups = np.unique(group[split])
        return ~np.isin(group, groups)

    def splits(self, unclear: Ints) -> pa.Array:
        """The errors of states that depend on a step whose epoch has a split."""
        if not (unclear >= 0).any():
            return pa.nulls(len(unclear), pa.string())
        texts = self.steps["split"].to_pylist()[::-1]
        first, last = self.first, self.last
        found = [
            next((text for text in texts[first[at] : last[at] + 1] if text is not None), None) if at >= 0 else None
            for at in unclear
        ]
        return pa.array(found, pa.string())

    def unexpected(self, out: Ints, sources: Mapping[str, Ints]) -> pa.Array:
        """The unexpected values of each state: those of its last step, and of the steps that its values come from."""
        maps = self.steps["unexpected"].combine_chunks()
        type = self.steps.schema.field("unexpected").type
        if maps.null_count == len(maps):
            return pa.nulls(len(out), type)
        has = bools_of(maps.is_valid())[::-1]
        texts = {self.rows - 1 - at: dict(maps[int(at)].as_py()) for at in np.flatnonzero(has[::-1])}
        results: list[dict[str, str]] = [{} for _ in out]
        names = list(self.places)
        for result, at in zip(results, out, strict=True):
            result |= {name: text for name, text in texts.get(int(at), {}).items() if name not in names}
        for name, source in sources.items():
            for k in np.flatnonzero((source >= 0) & has[np.maximum(source, 0)]):
                if name in (found := texts[int(source[k])]):
                    results[k][name] = found[name]
        return pa.array([list(result.items()) or None for result in results], type)


def _lists(rows: int, entries: Sequence[tuple[str, Ints, pa.Array | None]], at: pa.DataType | None = None) -> pa.Array:
    """An array of lists from the names in each row, with their orders if ``at`` is the type of an order."""
    of_rows = np.concatenate([found for _, found, _ in entries]) if entries else np.zeros(0, np.int64)
    codes = np.repeat(np.arange(len(entries)), [len(found) for _, found, _ in entries])
    sequence = np.argsort(of_rows, kind="stable")
    names = pa.array([name for name, *_ in entries], pa.string()).take(pa.array(codes[sequence], pa.int64()))
    items = names
    if at is not None:
        orders = pa.concat_arrays([ats for *_, ats in entries]) if entries else pa.nulls(0, at)
        fields = [pa.field("name", pa.string()), pa.field("at", at)]
        items = pa.StructArray.from_arrays([names, orders.take(pa.array(sequence))], fields=fields)
    counts = np.bincount(of_rows, minlength=rows) if len(of_rows) else np.zeros(rows, np.int64)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), items)


# ---------------------------------------------------------------- stored states


def unfolded(rows: pa.Table, places: Mapping[str, str]) -> pa.Table:
    """The steps that say what stored rows and departures say, for `folded`, in any order.

    ``rows`` has the columns of a state in `folded`, ``event`` for a departure, and ``has_values``: whether a deleted row has its
    last values. The result has ``rank``, too, which sorts steps with one order: a stored live step is later than all that end a
    row, and earlier than the live steps of messages.
    """
    rows = rows.combine_chunks()
    live, has_values, ats, borns, refs, events = (
        rows[name].to_pylist() for name in ("live", "has_values", "at", "born", "ref", "event")
    )
    lists = [rows[name].to_pylist() for name in ("unavailable", "older", "moved")]
    steps = []
    for row, (at, event) in enumerate(zip(ats, events, strict=True)):
        unavailable, older, moved = (column[row] or [] for column in lists)
        later = list(dict.fromkeys([*unavailable, *(item["name"] for item in (*older, *moved))]))
        is_entry = event is not None
        rank = _STORED_RANK if live[row] else -1 if is_entry else 0
        last = _Step(row, at, rank, live[row], has_values[row] and not is_entry, not live[row], later)
        if is_entry:
            steps.append(last._replace(event=event))
        elif live[row] and borns[row] == at:
            steps.append(last._replace(bounds=True, ref=refs[row], moved=moved))
        elif has_values[row] and not live[row]:  # the last values, before the row ended
            steps += [last._replace(rank=-1, live=True, bounds=False), last._replace(has_values=False)]
        else:
            steps.append(last)
        if not live[row] and not is_entry:
            continue
        names_at = dict[Any, set[str]]()
        for item in older:
            names_at.setdefault(_text(item["at"]), set()).add(item["name"])
        orders = {_text(item["at"]): item["at"] for item in older}
        born = borns[row]
        if born is not None and (is_entry or born != at):
            orders.setdefault(_text(born), born)
        for text, order in orders.items():
            lacking = [name for name in places if name not in names_at.get(text, ())]
            rank = _STORED_RANK if order != at else last.rank - 1
            earlier = _Step(row, order, rank, True, True, False, lacking)
            if born is not None and text == _text(born):
                earlier = earlier._replace(bounds=True, ref=refs[row], moved=moved)
            steps.append(earlier)
    return _steps_table(rows, steps, places)


class _Step(NamedTuple):
    """A step of a stored state; ``row`` is the place of the state."""

    row: int
    at: Any
    rank: int
    live: bool
    has_values: bool
    bounds: bool
    unavailable: Sequence[str]
    ref: str | None = None
    event: str | None = None
    moved: Sequence[Mapping[str, Any]] = ()


def _steps_table(rows: pa.Table, steps: Sequence[_Step], places: Mapping[str, str]) -> pa.Table:
    names = pa.list_(pa.string())
    orders = rows.schema.field("moved").type
    taken = rows.take(pa.array([step.row for step in steps], pa.int64()))
    keys = [name for name in rows.column_names if name.startswith(("key_", "read_"))]
    is_entry = [events is not None for events in taken["event"].to_pylist()]
    return pa.table(
        {
            **{name: taken[name] for name in (*keys, "topic", "time", *places.values(), "unexpected")},
            "at": pa.array([step.at for step in steps], rows.schema.field("at").type),
            "rank": pa.array([step.rank for step in steps], pa.int8()),
            "live": pa.array([step.live for step in steps], pa.bool_()),
            "has_values": pa.array([step.has_values for step in steps], pa.bool_()),
            "bounds": pa.array([step.bounds for step in steps], pa.bool_()),
            "arrival": pa.array([step.ref for step in steps], pa.string()),
            "departure": pa.array([step.event for step in steps], pa.string()),
            "unavailable": pa.array([step.unavailable for step in steps], names),
            "moved": pa.array([step.moved for step in steps], orders),
            "is_stored": pa.array([not entry for entry in is_entry], pa.bool_()),
            "is_entry": pa.array([step.event is not None for step in steps], pa.bool_()),
            "of_entry": pa.array(is_entry, pa.bool_()),
        }
    )


def _text(order: Any) -> str:
    return repr(order)


# ---------------------------------------------------------------- values that move from key to key


def resolved(states: pa.Table, places: Mapping[str, str]) -> pa.Table:
    """Fill in the values that came with a change of the key.

    ``states`` are those of `folded`: all departures, and all rows that lack values and have a ``ref``. Of the columns
    ``unavailable``, those remain that no step told. The others are in ``moved``, with their orders. ``is_needed`` says of a
    departure whether a row has values through it, or may get some: its arrival has not come, or lacks values.
    """
    return _Chain(states.combine_chunks(), places).states()


class _Chain:
    """States, and which departure belongs to which ``ref``."""

    def __init__(self, states: pa.Table, places: Mapping[str, str]) -> None:
        self.table, self.places = states, places
        self.refs: list[str | None] = states["ref"].to_pylist()
        self.lacking = [set(names) for names in states["unavailable"].to_pylist()]
        self.stored = [{item["name"]: item["at"] for item in items} for items in states["moved"].to_pylist()]
        self.older: dict[int, dict[str, Any]] = {}
        self.events: list[str | None] = states["event"].to_pylist()
        ages = [
            (_sortable(at), not is_entry)
            for at, is_entry in zip(states["at"].to_pylist(), states["is_entry"].to_pylist(), strict=True)
        ]
        self.departures = dict[str, int]()
        self.entries = {
            event: row
            for row, (event, is_entry) in enumerate(zip(self.events, states["is_entry"].to_pylist(), strict=True))
            if is_entry
        }
        for row, event in enumerate(self.events):
            if event is not None and (event not in self.departures or ages[row] < ages[self.departures[event]]):
                self.departures[event] = row

    def states(self) -> pa.Table:
        result, rows = self.table, len(self.refs)
        unavailable, moved = [set[str]() for _ in range(rows)], [dict[str, Any]() for _ in range(rows)]
        for name, place in self.places.items():
            sources = np.arange(rows)
            for row, names in enumerate(self.lacking):
                if name in names:
                    source, order = self.source(name, row)
                    sources[row] = source
                    if source < 0:
                        unavailable[row].add(name)
                    else:
                        moved[row][name] = order
            if (sources != np.arange(rows)).any():
                values = result[place].take(pa.array(sources, pa.int64(), mask=sources < 0))
                result = result.set_column(result.schema.get_field_index(place), place, values)
        # An earlier departure of an event takes the place of the stored one.
        replaced = pa.array([self.entries.get(event or "", row) for row, event in enumerate(self.events)], pa.int64())
        for name in (name for name in result.column_names if name.startswith("read_")):
            result = result.set_column(result.schema.get_field_index(name), name, result[name].take(replaced))
        at = result.schema.field("at").type
        lists = [[{"name": name, "at": order} for name, order in orders.items()] for orders in moved]
        unknown = [[name for name in self.places if name in names] for names in unavailable]
        for column, values in (
            ("unavailable", pa.array(unknown, pa.list_(pa.string()))),
            ("moved", pa.array(lists, pa.list_(pa.struct([("name", pa.string()), ("at", at)])))),
            ("is_needed", pa.array(self.needed())),
        ):
            index = result.schema.get_field_index(column)
            result = result.append_column(column, values) if index < 0 else result.set_column(index, column, values)
        return result

    def source(self, name: str, row: int) -> tuple[int, Any]:
        """The state that has the value of a column, and the value's order; -1 if no step told it."""
        seen = set[int]()
        while name in self.lacking[row]:
            seen.add(row)
            departure = self.departures.get(self.refs[row] or "")
            if departure is None or departure in seen:
                return (row, self.stored[row][name]) if name in self.stored[row] else (-1, None)
            row = departure
        return row, self.order(name, row)

    def order(self, name: str, row: int) -> Any:
        if row not in self.older:
            self.older[row] = {item["name"]: item["at"] for item in self.table["older"][row].as_py()}
        return self.older[row].get(name)

    def needed(self) -> list[bool]:
        arrived = {ref for ref in self.refs if ref is not None}
        lacking = {ref for ref, names in zip(self.refs, self.lacking, strict=True) if ref is not None and names}
        firsts = set(self.departures.values())
        return [
            event is not None and row in firsts and (event in lacking or event not in arrived)
            for row, event in enumerate(self.events)
        ]


def _sortable(order: Any) -> Any:
    """An order as Spark sorts it: NULL first."""
    parts = order.values() if isinstance(order, Mapping) else [order]
    return [(part is not None, part) for part in parts]
