"""`dbus_from_json`: the same result as Databus's own import, except the differences named here; and the reverse."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from tests.support.arrow import ask
from tests.support.databus_cases import golden_lines
from tests.support.databus_json_cases import golden

# Fields of the event that are not what Databus's import returns, by the number of the golden text, and why.
NOT_THE_BUFFERS = {"physical_partition_id": 9}  # Databus uses its buffer's partition; here it is -1
NO_OPCODE: dict[str, Any] = {"attributes": 0, "opcode": None}  # Databus: always UPSERT
DATA = NOT_THE_BUFFERS | NO_OPCODE
DIFFERENCES: dict[int, dict[str, Any] | None] = {
    0: DATA,
    1: DATA,
    2: DATA | {"attributes": 4},  # traceEnabled
    4: NOT_THE_BUFFERS | {"attributes": 0x102, "opcode": "DELETE", "is_replicated": True},  # Databus ignores both
    7: DATA,  # "key":5.9
    8: DATA,  # "srcId":70000
    9: DATA,  # "srcId":-3
    14: DATA,  # a line break in Base64
    15: None,  # a character that is not Base64; Databus: an empty value
    16: DATA
    | {"value": base64.b64decode("H4sIAAAAAAAAAMtIzcnJBwCGphA2BQAAAA=="), "value_size": 25, "length": 86},  # gunzipped
    18: DATA,  # a schema id of 18 bytes
    23: {"timestamp_nanos": 1},  # endOfPeriod; Databus writes a new end
    24: {"timestamp_nanos": 1},
}
BYTE_KEY = 5  # Databus: "key expected"

EVENT = {
    "key": 5,
    "sequence": 77,
    "logicalPartitionId": 3,
    "physicalPartitionId": 9,
    "timestampInNanos": 1400000000000000001,
    "srcId": 40,
    "schemaId": "AQIDBAUGBwgJCgsMDQ4PEA==",
    "valueEnc": "JSON",
    "value": "aGVsbG8=",
}


def from_json(*texts: str | None) -> list[bytes | None]:
    events = FUNCTIONS["dbus_from_json"].decode(pa.array(texts, pa.string()))
    events.validate(full=True)
    answers: list[bytes | None] = events.to_pylist()
    return answers


def event_of(**changes: Any) -> dict[str, Any] | None:
    """The fields of an ordinary event with changes; `absent` removes a name."""
    fields = {name: value for name, value in (EVENT | changes).items() if value != "absent"}
    [event] = ask("dbus_event", from_json(json.dumps(fields)))
    assert event is None or event["is_valid"]
    answers: dict[str, Any] | None = event
    return answers


def rejected(**changes: Any) -> bool:
    return event_of(**changes) is None


def test_import_as_databus_does() -> None:
    lines = golden_lines("json_import")
    events = from_json(*(line["json"] for line in lines))
    for i, (line, event) in enumerate(zip(lines, events, strict=True)):
        theirs = base64.b64decode(line["bufferEvents"][0]) if "bufferEvents" in line else None
        if i == BYTE_KEY:
            assert theirs is None
            assert ask("dbus_key_bytes", [event]) == [b"hi"]
        elif i not in DIFFERENCES:
            assert event == theirs, line["json"]
        else:
            assert different(event, theirs) == DIFFERENCES[i], line["json"]


def different(ours: bytes | None, theirs: bytes | None) -> dict[str, Any] | None:
    """The fields that differ from Databus."""
    [our, their] = ask("dbus_event", [ours, theirs])
    if our is None:
        return None
    return {name: answer for name, answer in our.items() if answer != their[name] and "crc" not in name}


def test_back_to_the_same_text() -> None:
    """Every V1 event becomes the same text again."""
    texts = [event.java["json"] for event in golden() if event.java["version"] == 0 and "json" in event.java]
    assert len(texts) == 664 + 97 + 96
    events = from_json(*texts)
    assert ask("dbus_to_json", events) == texts
    assert set(ask("dbus_error", events)) == {None}
    assert set(ask("dbus_byte_order", events)) == {"BIG_ENDIAN"}


def test_both_encodings_are_the_same_event() -> None:
    """If the value is text, the plain encoding is lossless."""
    events = [event for event in golden() if event.java["version"] == 0 and has_text(event.java)]
    assert len(events) > 200
    plain = from_json(*(event.java["jsonPlain"] for event in events))
    assert plain == from_json(*(event.java["json"] for event in events))
    assert plain == from_json(*(event.java["jsonPlain"].replace("_VALUE", "", 1) for event in events))


def has_text(java: dict[str, Any]) -> bool:
    try:
        return "valueSha256" not in java and base64.b64decode(java["value"]).decode("utf-8") is not None
    except UnicodeDecodeError:
        return False


@pytest.mark.parametrize(
    ("number", "as_long", "as_short"),
    [
        (5.9, 5, 5),
        (-5.9, -5, -5),
        (1e3, 1000, 1000),
        (32768, 32768, -32768),
        (70000, 70000, 4464),
        (2**63, -(2**63), 0),
        (2**64 + 7, 7, 7),
        (-(2**63) - 1, 2**63 - 1, -1),
        (1e300, 2**63 - 1, -1),  # a double becomes the largest integer, and its lowest bits are -1
        (-1e300, -(2**63), 0),
        (3e9, 3000000000, -1),
        (70000.5, 70000, 4464),
    ],
)
def test_numbers_are_java_numbers(number: float, as_long: int, as_short: int) -> None:
    event = event_of(key=number, sequence=number, timestampInNanos=number, srcId=number, logicalPartitionId=number)
    assert event is not None
    assert (event["key_long"], event["sequence"], event["timestamp_nanos"]) == (as_long,) * 3
    assert (event["src_id"], event["logical_partition_id"]) == (as_short,) * 2


def test_an_end_of_period_keeps_its_fields() -> None:
    event = event_of(endOfPeriod="True", opcode="DELETE", traceEnabled=True)
    assert event is not None
    assert (event["src_id"], event["sequence"], event["key_long"], event["value"]) == (-2, 77, 5, b"hello")
    assert (event["opcode"], event["is_trace"], event["physical_partition_id"]) == ("DELETE", True, 9)
    # Missing fields are the same as in an end of period that Databus writes.
    [bare] = ask("dbus_event", from_json('{"sequence":77,"timestampInNanos":1,"endOfPeriod":true}'))
    assert (bare["length"], bare["attributes"], bare["key_long"], bare["value"]) == (61, 0, 0, b"")
    assert (bare["physical_partition_id"], bare["logical_partition_id"]) == (-1, 0)
    assert rejected(endOfPeriod=True, sequence="absent")
    assert rejected(endOfPeriod=True, valueEnc="absent")


def test_keys() -> None:
    def key(**changes: Any) -> Any:
        event = event_of(**changes)
        return event and (event["key_type"], event["key"])

    assert key(key="absent", keyBytes="a2V5") == ("BYTES", "key")
    assert key(key=None, keyBytes="") == ("BYTES", "")
    assert key(keyBytes="a2V5") == ("LONG", "5")
    assert key(key="absent", keyBytes=None) is None
    assert key(key="5", keyBytes="a2V5") is None
    assert key(key="absent", keyBytes=5) is None
    assert key(key=True) is None


def test_values() -> None:
    def value(**changes: Any) -> Any:
        event = event_of(**changes)
        return event and event["value"]

    assert value(value=" aGV\tsbG\r\n8= ") == b"hello"
    assert value(value="") == b""
    for bad in ("aGVsbG8", "aGVsbG8==", "aGVsbG8=x", "=", "aGVs-G8=", "aGVsé"):
        assert value(value=bad) is None, bad
    assert value(valueEnc="JSON_PLAIN", value="é😀\ud800") == "é😀?".encode()
    for bad_type in (None, 5, True, ["x"], {"a": 1}):
        assert value(value=bad_type) is None
        assert value(valueEnc="JSON_PLAIN", value=bad_type) is None
    for encoding in (None, "json", "", 5, ["JSON"], "absent"):
        assert value(valueEnc=encoding) is None, encoding


def test_required_fields() -> None:
    for name in EVENT:
        assert rejected(**{name: "absent"})
        assert rejected(**{name: None})
        assert rejected(**{name: {}})
    assert rejected(opcode="INSERT")
    assert rejected(opcode=1)
    assert rejected(isReplicated="true")
    assert rejected(traceEnabled=1)
    assert rejected(schemaId="AQID")
    assert not rejected(opcode=None, isReplicated=None, traceEnabled=None, unknown=[1, {"a": None}])


def test_invalid_json() -> None:
    text = json.dumps(EVENT)
    bad = [
        *(text[:size] for size in range(len(text))),
        text + "x",
        text * 2,
        text.replace("77", "077"),
        text.replace("77", "NaN"),
        text.replace("77", "Infinity"),
        text.replace("77", "9" * 10_000),
        text.replace('"', "'"),
        "[" * 100_000,
        '{"a":' * 100_000,
        "\ufeff" + text,
        "null",
        "5",
        f"[{text}]",
        text.replace("aGV", "aGV\n"),
    ]
    assert from_json(*bad) == [None] * len(bad)
    [again] = from_json(f" \n{text}\r\n")
    assert again == from_json(text)[0]


def test_nulls() -> None:
    text = json.dumps(EVENT)
    assert [event is None for event in from_json(None, text, "", None)] == [True, False, True, True]
    assert from_json() == []
    function = FUNCTIONS["dbus_from_json"]
    column = pa.array(["", text, None], pa.string())
    assert function.decode(column[1:]).to_pylist() == [*from_json(text), None]
    assert function.decode(column.cast(pa.large_string())).equals(function.decode(column))
    assert function.decode(pa.nulls(2)).to_pylist() == [None, None]


def test_not_a_v2_text() -> None:
    """Databus imports only V1: a V2 text has neither schema id nor value."""
    texts = [event.java["json"] for event in golden() if event.java["version"] == 2 and "json" in event.java]
    assert set(from_json(*texts)) == {None}
