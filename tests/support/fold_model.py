"""Random histories of messages about the rows of a table, what a database does with them, and a merged table as a fold.

`Table` keeps states in Arrow, as `sparkwire.merge` keeps them in a table, and folds each batch with `sparkwire.changes.fold`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from random import Random
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.changes.fold import LIVE_RANK, folded, resolved, unfolded

COLUMNS: Final = ("a", "b", "c")
KEYS: Final = "pqrstu"
_PLACES: Final = {name: name for name in COLUMNS}
_NAMES = pa.list_(pa.string())
_ORDERS = pa.list_(pa.struct([("name", pa.string()), ("at", pa.int64())]))
_MAP = pa.map_(pa.string(), pa.string())
_STATE = {
    "key_0": pa.string(), "at": pa.int64(), "topic": pa.string(), "time": pa.timestamp("us"), "live": pa.bool_(),
    **dict.fromkeys(COLUMNS, pa.int64()), "unexpected": _MAP, "event": pa.string(), "born": pa.int64(), "ref": pa.string(),
    "unavailable": _NAMES, "older": _ORDERS, "moved": _ORDERS, "has_values": pa.bool_(),
}  # fmt: skip
Rows = dict[str, dict[str, int]]
"""the values of each key's row; an unknown value is absent"""


class Step(NamedTuple):
    """What a message says of one key. A change of the key in one message is two steps with one event."""

    kind: str
    """begin, set, delete, depart, arrive, truncate; before, for the row before a set of all columns, in a message of its own
    with the same order; lost, for a message that cannot be read"""
    key: str | None
    order: int
    values: Mapping[str, int] = MappingProxyType({})
    event: str | None = None

    def of(self, number: int) -> Step:
        """The step in one of several histories, which share a table and no key."""
        key, event = (None if text is None else f"{number}/{text}" for text in (self.key, self.event))
        return self._replace(key=key or f"{number}/", event=event)


def replay(steps: Sequence[Step]) -> Rows:
    """What a database does: one step after the other. The first departure of an event counts."""
    rows: Rows = {}
    left: Rows = {}
    before: Rows = {}
    for step in sorted(steps, key=lambda step: (step.order, step.kind != "before")):
        key, event = step.key or "", step.event or ""
        if step.kind == "truncate":
            rows, before = {}, {}
        elif step.kind in ("delete", "depart", "before"):
            row = rows.pop(key, before.get(key, {}))
            if step.kind == "depart":
                left.setdefault(event, row)
            before[key] = dict(step.values)
        elif step.kind != "lost":
            old = {"set": rows.get(key, before.get(key, {})), "begin": {}, "arrive": left.get(event, {})}[step.kind]
            rows[key] = {**old, **step.values}
    return rows


def history(random: Random, length: int, losses: float = 0) -> list[Step]:
    """Rows come, change some columns, change their key, several times in one transaction, and go. Some messages are lost."""
    live, steps, order = dict[str, dict[str, int]](), list[Step](), 0
    while len(steps) < length:
        order += random.randrange(1, 3)
        values = {c: order * 10 + k for k, c in enumerate(COLUMNS) if random.random() < 0.5}
        key = random.choice(KEYS)
        kind = random.choice(["set"] * 4 + ["move"] * 3 + ["delete"] + ["truncate"] * (random.random() < 0.2))
        if kind == "truncate":
            live, new = {}, [Step("truncate", None, order)]
        elif key not in live:
            live[key] = {c: order * 10 + k for k, c in enumerate(COLUMNS)}
            new = [Step("begin", key, order, live[key])]
        elif kind == "delete":
            del live[key]
            new = [Step("delete", key, order)]
        elif kind == "move" and len(live) < len(KEYS):
            other, event = random.choice(sorted(set(KEYS) - set(live))), f"e{order}"
            live[other] = {**live.pop(key), **values}
            new = [Step("depart", key, order, {}, event), Step("arrive", other, order + 1, values, event)]
            order += 1
        else:
            old, live[key] = live[key], {**live[key], **values}
            new = [Step("set", key, order, values)]
            if random.random() < 0.3:
                new = [Step("before", key, order, old), Step("set", key, order, live[key])]
        lost = {one.order for one in new if random.random() < losses}
        steps += [one._replace(kind="lost") if one.order in lost else one for one in new]
    return steps


def repeated(random: Random, steps: Sequence[Step]) -> list[Step]:
    """The same history from a connector that restarts twice, and sends its last messages again with later orders."""
    ends = sorted(random.sample(range(len(steps) // 2, len(steps) + 1), 2))
    sent, at = list[Step](), 0
    for end in ends:
        sent += steps[at:end]
        at = end - random.randrange(8)
    sent += steps[at:]
    orders = accumulate((a.kind != "before" for a in sent[:-1]), initial=0)
    return [step._replace(order=order) for order, step in zip(orders, sent, strict=True)]


def cut(random: Random, steps: Sequence[Step], parts: int = 6) -> list[list[Step]]:
    ends = sorted(random.sample(range(1, len(steps)), parts - 1))
    return [list(steps[a:b]) for a, b in zip([0, *ends], [*ends, len(steps)], strict=True)]


class Table:
    """The merged tables of several histories: states of keys, stored departures, and the last TRUNCATE of each history."""

    def __init__(self) -> None:
        self.states = _empty()
        self.truncated: dict[str, int] = {}

    def merge(self, batch: Sequence[Step]) -> None:
        for step in batch:
            if step.kind == "truncate":
                number = _number(step.key)
                self.truncated[number] = max(self.truncated.get(number, -1), step.order)
        states = self.folded(batch)
        if not states.num_rows:
            return
        chained = resolved(states, _PLACES)
        needed = pc.or_(pc.is_null(chained["event"]), chained["is_needed"])
        kept = chained.filter(needed)
        live = kept["live"]
        for name in COLUMNS:  # a deleted row keeps no values
            stays = pc.or_(live, pc.is_valid(kept["event"]))
            kept = kept.set_column(kept.schema.get_field_index(name), name, pc.if_else(stays, kept[name], None))
        departures = kept.filter(pc.is_valid(kept["event"]))
        assert departures.num_rows == len(pc.unique(departures["event"]))  # one departure of each event is enough
        for key, at in zip(departures["key_0"].to_pylist(), departures["at"].to_pylist(), strict=True):
            assert at > self.truncated.get(_number(key), -1)  # no value from before a TRUNCATE counts
        self.states = kept.append_column("has_values", live).select(list(_STATE)).cast(pa.schema(_STATE))

    def folded(self, batch: Sequence[Step]) -> pa.Table:
        """What the steps of a batch and of the table say of each key, before values move from key to key."""
        steps = pa.concat_tables([_steps(batch), unfolded(self.states, _PLACES).select(_steps([]).column_names)])
        return folded(self._sorted(steps), _PLACES)

    def rows(self, histories: int) -> list[Rows]:
        """The rows of each history that exist."""
        tables: list[Rows] = [{} for _ in range(histories)]
        for row in self.states.to_pylist():
            number, _, key = row["key_0"].partition("/")
            if row["event"] is None and row["live"]:
                unknown = row["unavailable"]
                assert all((row[name] is None) == (name in unknown) for name in COLUMNS)
                tables[int(number)][key] = {name: row[name] for name in COLUMNS if name not in unknown}
        return tables

    def _sorted(self, steps: pa.Table) -> pa.Table:
        """The steps as Spark gives them to the fold."""
        steps = steps.sort_by([("key_0", "ascending"), ("at", "descending"), ("rank", "descending")])
        keys, ats = steps["key_0"].to_pylist(), np.asarray(steps["at"])
        events, numbers, own = steps["departure"].to_pylist(), list[int](), 0
        for k, key in enumerate(keys):
            own = own + 1 if k and keys[k - 1] == key else 1
            numbers.append(own)
        copies = [
            k + 1 < len(keys) and (keys[k], ats[k], events[k]) == (keys[k + 1], ats[k + 1], events[k + 1])
            for k in range(len(keys))
        ]
        steps = steps.set_column(
            steps.schema.get_field_index("departure"),
            "departure",
            pa.array([None if copy else event for copy, event in zip(copies, events, strict=True)], pa.string()),
        )
        more = {
            "nth": pa.array(numbers),
            "counts": pa.array([at > self.truncated.get(_number(key), -1) for key, at in zip(keys, ats, strict=True)]),
            "new_epoch": pa.array(np.zeros(len(keys), np.bool_)),
            "split": pa.nulls(len(keys), pa.string()),
        }
        for name, column in more.items():
            steps = steps.append_column(name, column)
        return steps


def _number(key: str | None) -> str:
    return (key or "").partition("/")[0]


def _empty() -> pa.Table:
    return pa.schema(_STATE).empty_table()


def _steps(batch: Sequence[Step]) -> pa.Table:
    """The steps of messages, as `sparkwire.spark.changes.steps` makes them."""
    some = [step for step in batch if step.kind not in ("truncate", "lost")]
    gone = [step.kind in ("delete", "depart", "before") for step in some]
    columns: dict[str, Any] = {
        "key_0": pa.array([step.key for step in some], pa.string()),
        "topic": pa.nulls(len(some), pa.string()),
        "time": pa.nulls(len(some), pa.timestamp("us")),
        **{name: pa.array([step.values.get(name) for step in some], pa.int64()) for name in COLUMNS},
        "unexpected": pa.nulls(len(some), _MAP),
        "at": pa.array([step.order for step in some], pa.int64()),
        "rank": pa.array([0 if dead else LIVE_RANK for dead in gone], pa.int8()),
        "live": pa.array([not dead for dead in gone], pa.bool_()),
        "has_values": pa.array(
            [bool(step.values) or not dead for step, dead in zip(some, gone, strict=True)], pa.bool_()
        ),
        "bounds": pa.array([step.kind != "set" for step in some], pa.bool_()),
        "arrival": pa.array([step.event if step.kind == "arrive" else None for step in some], pa.string()),
        "departure": pa.array([step.event if step.kind == "depart" else None for step in some], pa.string()),
        "unavailable": pa.array([[name for name in COLUMNS if name not in step.values] for step in some], _NAMES),
        "moved": pa.array([[] for _ in some], _ORDERS),
        "is_stored": pa.array([False] * len(some), pa.bool_()),
        "is_entry": pa.array([False] * len(some), pa.bool_()),
        "of_entry": pa.array([False] * len(some), pa.bool_()),
    }
    return pa.table(columns)
