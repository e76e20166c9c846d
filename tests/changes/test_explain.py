"""``sparkwire.explain`` of messages in JSON: the system, and a line for each member."""

from __future__ import annotations

import json

import pytest

import sparkwire
from sparkwire.core.explain import Line
from tests.support import cdc_golden as golden
from tests.support.system_messages import canal, envelope, goldengate, maxwell


def lines_of(data: bytes, title: str) -> list[Line]:
    """The lines of a message of a system. They have all its bytes, in order."""
    (part,) = sparkwire.explain(data).parts
    assert part.format == f"a message of {title}"
    assert part.confidence[1] == f"likely: it has the members of a message of {title}"
    assert b"".join(line.data for line in part.lines) == data
    assert [line.position for line in part.lines] == [
        sum(line.size for line in part.lines[:k]) for k in range(len(part.lines))
    ]
    return part.lines


def note_of(lines: list[Line], field: str) -> str | None:
    [note] = [line.note for line in lines if line.field == field]
    return note


@pytest.mark.parametrize(
    ("system", "variant", "title"),
    [("canal", "flat", "Canal"), ("maxwell", "full", "Maxwell")],
)
def test_golden_messages(system: str, variant: str, title: str) -> None:
    """Every member of the root object has a line with its value."""
    for record in golden.records(system, variant)[::9]:
        assert record.value is not None
        message = json.loads(record.value)
        first, *members, last = lines_of(record.value, title)
        assert (first.data, last.data) == (b"{", b"}")
        assert [line.field for line in members] == list(message)
        for line in members:
            value = message[line.field]
            assert line.value == value or json.loads(line.value or "null") == value


def test_the_role_of_a_member() -> None:
    lines = lines_of(json.dumps(canal("DELETE", [{"id": "1"}], es=1714557600000)).encode(), "Canal")
    assert note_of(lines, "type") == "the operation: DELETE"
    assert note_of(lines, "es") == "when it happened: 2024-05-01T10:00:00Z"
    lines = lines_of(json.dumps(maxwell("bootstrap-insert", {"id": 1}, ts=1714557600)).encode(), "Maxwell")
    assert note_of(lines, "type") == "the operation: READ"
    assert note_of(lines, "ts") == "when it happened: 2024-05-01T10:00:00Z"
    lines = lines_of(json.dumps(canal("CREATE", None)).encode(), "Canal")
    assert note_of(lines, "type") == "the operation: no change of a row"


def test_members_inside_of_others() -> None:
    """An object has lines of its own members if they have a role."""
    lines = lines_of(json.dumps(envelope("u")).encode(), "Debezium")
    assert note_of(lines, "op") == "the operation: UPDATE"
    assert "source.table" in [line.field for line in lines]
    [first, *_] = (sparkwire.samples() / "datahub" / "messages.jsonl").read_bytes().splitlines()
    lines = lines_of(first, "DataHub")
    assert note_of(lines, "payload.op") == "the operation: INSERT"
    assert (note_of(lines, "payload.timestamp.eventTime") or "").startswith("when it happened: 20")


def test_a_time_that_is_no_number() -> None:
    lines = lines_of(json.dumps(canal(es="now")).encode(), "Canal")
    assert (note_of(lines, "es") or "").startswith("BAD_FIELD: expected an integer; ")


def test_a_time_that_is_a_text() -> None:
    lines = lines_of(json.dumps(goldengate()).encode(), "Oracle GoldenGate")
    assert (note_of(lines, "op_ts") or "").endswith("when it happened: 2023-11-14T22:13:20Z")
    lines = lines_of(json.dumps(goldengate(op_ts="now")).encode(), "Oracle GoldenGate")
    assert (note_of(lines, "op_ts") or "").startswith("BAD_FIELD: expected a time in ISO 8601; ")


def test_spaces_and_empty_objects_keep_their_bytes() -> None:
    data = b' {\n "type" : "insert",\n "data" : { } ,\n "database":"d", "table":"t" }\n '
    assert [line.field for line in lines_of(data, "Maxwell")] == [
        "message", "type", "data", "database", "table", "message",
    ]  # fmt: skip


def test_an_empty_object_whose_members_would_have_roles() -> None:
    message = {
        "schema": {},
        "payload": {"op": "MHEARTBEAT", "timestamp": {"eventTime": 1605340013000}},
        "version": "0.0.1",
    }
    lines = lines_of(json.dumps(message).encode(), "DataHub")
    assert [(line.data, line.note) for line in lines if line.field == "schema"] == [
        (b'"schema": {', "an object"),
        (b"}, ", "the end"),
    ]


def test_a_schema_registrys_header() -> None:
    data = bytes.fromhex("000000002a") + json.dumps(envelope()).encode()
    first, second, *_ = lines_of(data, "Debezium")
    assert (first.field, second.field, second.value) == ("magic", "schema_id", "42")


@pytest.mark.parametrize("data", [b'{"type":"insert","data":{}', b"{}", b'{"id":1}', b"[1]", b""])
def test_other_bytes_are_no_message(data: bytes) -> None:
    assert all("a message of" not in part.format for part in sparkwire.explain(data).parts)
