"""No Databus kernel reads outside its row: guard pages, neighbouring rows that would change results, checked loads.

What may kill its process runs in a child.
"""

from __future__ import annotations

from typing import Any

import pytest

from sparkwire import FUNCTIONS
from sparkwire.kernels import CHECKED
from tests.support.arrow import ask, plain
from tests.support.child import run_python
from tests.support.databus_damage import golden_rows, mutants, streams
from tests.support.guard import guarded_column
from tests.support.oracles import databus as oracle

EVENT_FUNCTIONS = [f"dbus_{name}" for name in oracle.NAMES] + ["dbus_event"]


def tempting_rows() -> list[bytes]:
    """Every prefix of a few events, mutants with wrong lengths, and the shortest events."""
    few = golden_rows()[::97]
    cuts = [event[:size] for event in few for size in range(len(event) + 1)]
    return [*cuts, *mutants(seed=4, count=1500), b"", b"\0", b"\2"]


@pytest.fixture(scope="module")
def cuts() -> list[tuple[bytes, bytes, dict[str, Any]]]:
    """A few events, cut at every position: the bytes before and after the cut, and the oracle's results for the former."""
    few = golden_rows()[::97]
    pairs = [(event[:size], event[size:]) for event in few for size in range(len(event) + 1)]
    return [(front, rest, oracle.decode(front)) for front, rest in pairs]


@pytest.mark.parametrize("function", EVENT_FUNCTIONS)
def test_neighbours_do_not_matter(function: str, cuts: list[tuple[bytes, bytes, dict[str, Any]]]) -> None:
    """After each cut, the next row has the rest: a kernel that reads too far finds a whole event."""
    alone = ask(function, [front for front, _, _ in cuts])
    assert ask(function, [row for front, rest, _ in cuts for row in (front, rest)])[::2] == alone
    name = function.removeprefix("dbus_")
    assert alone == [answers if name == "event" else answers[name] for _, _, answers in cuts]


@pytest.mark.process
@pytest.mark.parametrize("at_end", [True, False])
def test_guard_pages(at_end: bool) -> None:
    run_python("-c", f"from tests.databus.test_memory import read_beside_guard_pages as f; f(at_end={at_end})")


def read_beside_guard_pages(*, at_end: bool) -> None:
    """Every function on whole columns beside a guard page, and on each row alone."""
    rows, torn = tempting_rows(), streams(seed=5, count=150)
    column = guarded_column(rows, at_end=at_end)
    for function in EVENT_FUNCTIONS:
        assert plain(FUNCTIONS[function].decode(column)) == ask(function, rows)
    assert plain(FUNCTIONS["dbus_events"].decode(guarded_column(torn, at_end=at_end))) == ask("dbus_events", torn)
    alone = [("dbus_event", row) for row in rows[::2]] + [("dbus_events", row) for row in [*rows[1::2], *torn]]
    for function, row in alone:
        assert plain(FUNCTIONS[function].decode(guarded_column([row], at_end=at_end))) == ask(function, [row])


@pytest.mark.process
def test_checked_build() -> None:
    """The same kernels with every load checked: a read outside the column would be an IndexError."""
    environment = {"SPARKWIRE_CHECKED": "1"}
    run_python("-c", "from tests.databus.test_memory import read_checked as f; f()", environment=environment)


def read_checked() -> None:
    assert CHECKED
    rows, torn = tempting_rows(), streams(seed=6, count=300)
    assert ask("dbus_event", rows) == [oracle.decode(row) for row in rows]
    assert ask("dbus_events", torn) == [oracle.split(stream) for stream in torn]
    for row in rows[::7]:
        assert ask("dbus_event", [row]) == [oracle.decode(row)]
        assert ask("dbus_events", [row]) == [oracle.split(row)]
