"""Kernels and oracle return the same results for golden, corrupt and mutated events."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import pytest

from sparkwire.databus.event_fields import FIELDS
from tests.support.arrow import ask
from tests.support.databus_cases import EVENTS, STREAMS, cases, golden_events, golden_lines
from tests.support.databus_damage import damaged_rows, golden_rows, mutants
from tests.support.oracles import databus as oracle
from tests.support.oracles.databus_writer import write

ACCESSORS = [f"dbus_{name}" for name in oracle.NAMES]


def test_the_oracle_agrees_with_java() -> None:
    """The oracle itself, compared with every accessor of all golden events."""
    checked = cases()
    assert len(checked) == 1460
    for case in checked:
        answers = {f"dbus_{name}": answer for name, answer in oracle.decode(case.data).items()}
        assert answers == dict(case.answers), case.name


def test_the_independent_writer_writes_the_same_bytes_as_databus() -> None:
    """All golden events, byte for byte, except those with a part that their attributes do not announce."""
    events = [event for file in EVENTS + STREAMS for java, event in golden_events(file) if not _denies_a_part(java)]
    assert len(events) == 1652
    for event in events:
        assert write(oracle.decode(event)) == event


def _denies_a_part(java: dict[str, Any]) -> bool:
    return java.get("name") == "crafted: payload flag cleared although part present"


def test_crc_is_java_crc() -> None:
    """Databus's own CRC-32 on Java's vectors."""
    for vector in golden_lines("crc_vectors"):
        assert oracle.crc(base64.b64decode(vector["data"])) == vector["crc"]


def test_oracle_and_cases_know_every_accessor() -> None:
    assert [f"dbus_{column.name}" for column in FIELDS] == ACCESSORS


@pytest.fixture(scope="module")
def rows() -> list[bytes | None]:
    """Valid, corrupt and mutated events, and every prefix of a few, in one column with NULLs."""
    few = golden_rows()[::73]
    cuts = [event[:size] for event in few for size in range(len(event))]
    mixed: list[bytes | None] = [*golden_rows(), *damaged_rows(), *cuts, *mutants(seed=1, count=20_000)]
    mixed[::101] = [None] * len(mixed[::101])
    return mixed


@pytest.fixture(scope="module")
def expected(rows: list[bytes | None]) -> list[dict[str, object] | None]:
    return [None if row is None else oracle.decode(row) for row in rows]


@pytest.mark.parametrize("function", ACCESSORS)
def test_accessor(function: str, rows: list[bytes | None], expected: list[dict[str, object] | None]) -> None:
    name = function.removeprefix("dbus_")
    compare(rows, ask(function, rows), [answers and answers[name] for answers in expected])


def test_struct(rows: list[bytes | None], expected: list[dict[str, object] | None]) -> None:
    got = ask("dbus_event", rows)
    compare(rows, got, expected)
    assert list(got[1]) == oracle.NAMES


def compare(rows: Sequence[bytes | None], got: Sequence[object], expected: Sequence[object]) -> None:
    """Fails with the shortest row whose result differs."""
    assert len(got) == len(expected)
    wrong = [i for i in range(len(rows)) if got[i] != expected[i]]
    if wrong:
        i = min(wrong, key=lambda i: len(rows[i] or b""))
        row = (rows[i] or b"").hex()
        pytest.fail(f"{len(wrong)} rows differ, the shortest {row}: got {got[i]}, expected {expected[i]}")
