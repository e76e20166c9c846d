"""The fold of a table's changes, in random histories, against a replay of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sparkwire.changes.fold import folded, resolved
from tests.support import fold_model
from tests.support.fold_model import COLUMNS, Rows, Step, Table, cut, history, repeated, replay

HISTORIES = 1000


def compared(shown: Rows, wanted: Rows) -> tuple[int, int]:
    """The numbers of values, and of those that are unknown although messages told them. No value is wrong."""
    assert shown.keys() == wanted.keys()
    values = unknown = 0
    for key, row in wanted.items():
        for name in COLUMNS:
            values += 1
            unknown += name in row and name not in shown[key]
            assert name not in shown[key] or shown[key][name] == row.get(name), (key, name, shown[key], row)
    return values, unknown


def unknown_share(random: Random, batches: Sequence[Sequence[Sequence[Step]]], ends: Sequence[Rows] = ()) -> float:
    """Merge the batches of all histories, and return the share of unknown values that messages told.

    The tables are compared after each batch; or, if the caller knows them, at the end.
    """
    table, so_far, values, unknown = Table(), [dict[tuple[int, str], Step]() for _ in batches], 0, 0
    for number in range(len(batches[0])):
        steps = [step.of(k) for k, own in enumerate(batches) for step in own[number]]
        table.merge(random.sample(steps, len(steps)))
        for k, own in enumerate(batches):
            so_far[k] |= {(step.order, step.kind): step for step in own[number]}
        if ends and number < len(batches[0]) - 1:
            continue
        wanted = ends or [replay(list(steps.values())) for steps in so_far]
        for shown, right in zip(table.rows(len(batches)), wanted, strict=True):
            more = compared(shown, right)
            values, unknown = values + more[0], unknown + more[1]
    return unknown / values


@pytest.mark.parametrize("losses", [0, 0.1])
def test_in_order(losses: float) -> None:
    """After each batch, the tables are those of the database, and no value is unknown."""
    random = Random(1)
    assert unknown_share(random, [cut(random, history(random, 30, losses)) for _ in range(HISTORIES)]) == 0


@pytest.mark.parametrize("losses", [0, 0.1])
def test_in_any_order(losses: float) -> None:
    """Batches are shuffled, and some come twice. A value may be unknown, and is never wrong."""
    random, batches = Random(2), []
    for _ in range(HISTORIES):
        own = cut(random, history(random, 30, losses))
        random.shuffle(own)
        batches.append([*own, *random.sample(own, 2)])
    assert 0 < unknown_share(random, batches) < 0.05


@pytest.mark.parametrize("shuffles", [False, True])
def test_with_restarts(shuffles: bool) -> None:
    """A connector sends its last messages again; at the end, the tables are those of the database, in any order of batches."""
    random, batches = Random(3), []
    histories = [history(random, 30) for _ in range(HISTORIES)]
    for steps in histories:
        own = repeated(random, steps)
        if shuffles:
            random.shuffle(own)
        batches.append(cut(random, own))
    unknown = unknown_share(random, batches, [replay(steps) for steps in histories])
    assert unknown < (0.1 if shuffles else 0.01)


# ---------------------------------------------------------------- single states


def test_events_in_a_circle_end() -> None:
    """Two events cannot be before each other. A connector that counts them anew may say so; then nobody knows the values."""
    table = Table()
    table.merge(
        [
            step.of(0)
            for step in (
                Step("arrive", "p", 5, {}, "e2"),
                Step("depart", "p", 10, {}, "e1"),
                Step("arrive", "q", 11, {}, "e1"),
                Step("depart", "q", 20, {}, "e2"),
                Step("arrive", "r", 30, {"a": 1}, "e1"),
            )
        ]
    )
    assert table.rows(1) == [{"r": {"a": 1}}]


def test_a_departure_alone_is_no_row_of_its_key() -> None:
    """A merge reads all departures, and the rows of few keys."""
    table = Table()
    table.merge([Step("begin", "p", 1, {"a": 1, "b": 2, "c": 3}).of(0), Step("depart", "p", 2, {}, "e").of(0)])
    departure = table.states.filter(pc.is_valid(table.states["event"]))
    assert departure.num_rows == 1
    table.states = departure
    assert table.folded([])["event"].to_pylist() == ["0/e"]


def test_an_earlier_departure_replaces_the_stored_one() -> None:
    """The statement finds the stored one by what the merge has read."""
    table = Table()
    table.merge([Step("begin", "p", 5, {"a": 1}).of(0), Step("depart", "p", 9, {}, "e").of(0)])
    steps = table.folded([Step("begin", "q", 1, {"a": 7}).of(0), Step("depart", "q", 2, {}, "e").of(0)])
    read = pa.array(range(steps.num_rows))
    states = resolved(steps.append_column("read_at", read), {name: name for name in COLUMNS})
    departures = [row for row in states.to_pylist() if row["event"]]
    [stored] = [row["read_at"] for row in steps.append_column("read_at", read).to_pylist() if row["is_entry"]]
    assert [(row["key_0"], row["read_at"]) for row in departures if row["is_needed"]] == [("0/q", stored)]


def test_large_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Spark passes them with `spark.sql.execution.arrow.useLargeVarTypes`."""

    def folded_large(steps: pa.Table, places: Mapping[str, str]) -> pa.Table:
        names = steps["unavailable"].cast(pa.list_(pa.large_string()))
        return folded(steps.set_column(steps.schema.get_field_index("unavailable"), "unavailable", names), places)

    batch = [Step("begin", "p", 1, {"a": 1, "b": 2}).of(0), Step("set", "p", 2, {"a": 3}).of(0)]
    expected = Table().folded(batch)
    monkeypatch.setattr(fold_model, "folded", folded_large)
    assert Table().folded(batch).to_pylist() == expected.to_pylist()
