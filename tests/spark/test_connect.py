"""All features on Spark Connect, in a separate process, because a process has either a classic or a Connect session."""

from __future__ import annotations

import json
from typing import Any

import pytest

import sparkwire
from sparkwire import FUNCTIONS
from tests.kafka.test_files import rows as segment_rows
from tests.support import databus_cases
from tests.support.child import run_python


@pytest.fixture(scope="module")
def seen(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The results of the checks whose tests are selected: each test is named as its check."""
    selected = [item.name.removeprefix("test_") for item in request.session.items if item.path == request.path]
    document: dict[str, Any] = json.loads(run_python("-m", "tests.support.connect_session", *selected))
    return document


def test_functions(seen: dict[str, Any]) -> None:
    assert seen["functions"] == ["UPSERT", 77, 4, len(FUNCTIONS)]


def test_sources(seen: dict[str, Any]) -> None:
    orders = sparkwire.samples() / "kafka" / "orders-0"
    records, committed = (
        len(segment_rows(orders, isolationLevel=f"read_{view}")) for view in ("uncommitted", "committed")
    )
    data_events = sum(java["sourceId"] > 0 for java, _ in databus_cases.golden_events("window_stream"))
    assert seen["sources"] == [records, committed, records, data_events]
    assert committed < records


def test_typed_payloads(seen: dict[str, Any]) -> None:
    assert seen["typed_payloads"] == {"given": 21, "id": 1, "a": 21, "_schema_id_": "1", "_error_": None}


def test_rejection(seen: dict[str, Any]) -> None:
    assert seen["rejection"] == "TypeError: dbus_opcode() expected (event BINARY), got (STRING)"


def test_consumers(seen: dict[str, Any]) -> None:
    assert seen["consumers"]["report"] == [["s", 0, 1, 1], ["s", 0, 2, 1], ["s", 1, 1, 1], ["s", 1, 2, 0]]
    reported = ["on_start_consumption", "on_start_data_event_sequence", "on_start_source", "on_data_event"]
    assert seen["consumers"]["callbacks"][:4] == reported


def test_changes(seen: dict[str, Any]) -> None:
    assert [" ".join(map(str, row)) for row in seen["changes"]] == [
        "I N Y 1 comment", "U Y N 1 comment", "U N Y 1 com1", "D Y N 1 com1",
    ]  # fmt: skip
