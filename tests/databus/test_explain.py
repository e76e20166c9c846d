"""``dbus_explain``: every byte once, the values of the accessors, the error where it arises."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

import sparkwire
from sparkwire import FUNCTIONS
from sparkwire.base.error_codes import ERRORS
from sparkwire.catalogue import SAMPLES
from sparkwire.core import explain
from tests.support.arrow import ask
from tests.support.databus_damage import damaged_rows, golden_rows, mutants

CODE = re.compile(rf"\b({'|'.join(ERRORS)}): ")
DIGESTS = ("schema_id", "metadata_schema_id", "key_schema_id")
CONTENTS = ("value", "metadata", "key_bytes")
FIELDS = {field.name for field in FUNCTIONS["dbus_event"].return_type}


def check(events: list[bytes]) -> None:
    for event, lines, answers in zip(events, ask("dbus_explain", events), ask("dbus_event", events), strict=True):
        assert "".join(line["hex"] for line in lines) == event.hex()
        position = 0
        for line in lines:
            assert line["position"] == position
            assert 2 * line["size"] == len(line["hex"])
            position += line["size"]
        codes = [code for line in lines for code in CODE.findall(line["note"] or "")]
        assert codes == ([answers["error"]] if answers["error"] else []), event.hex()
        check_values(event, lines, answers)


def check_values(event: bytes, lines: list[dict[str, Any]], answers: dict[str, Any]) -> None:
    for line in lines:
        name, value = line["field"], line["value"]
        if name in FIELDS and not (line["note"] or "").startswith("cut") and name != "version":
            answer = answers[name]
            if name in DIGESTS:
                assert answer is None or answer.hex() == line["hex"] == value, (name, event.hex())
            elif name in CONTENTS:
                assert answer is None or answer.hex() == line["hex"], (name, event.hex())
                assert value is None or value.encode().hex() == line["hex"]
            else:
                assert value == (None if answer is None else str(answer)), (name, event.hex())


def test_golden_events() -> None:
    events = golden_rows()
    assert len(events) > 200
    check(events)
    for event, lines in zip(events[:200], ask("dbus_explain", events[:200]), strict=True):
        # Every byte of a valid event belongs to a field.
        assert not {"rest", "unclaimed", "left_over"} & {line["field"] for line in lines}, event.hex()


def test_corrupt_events() -> None:
    check(damaged_rows()[::6])


@pytest.mark.parametrize("seed", range(4))
def test_mutated_events(seed: int) -> None:
    check(mutants(seed, 250))


def test_cut_at_every_byte() -> None:
    for sample in (SAMPLES["event"], SAMPLES["event_v2"]):
        check([sample[:size] for size in range(len(sample))] + [sample + b"left over"])


def note(event: bytes, field: str) -> str:
    (lines,) = ask("dbus_explain", [event])
    (result,) = [line["note"] for line in lines if line["field"] == field]
    return str(result)


def test_lines() -> None:
    event, event_v2 = SAMPLES["event"], SAMPLES["event_v2"]
    assert note(event, "header_crc").startswith("right: stored 847328966, computed 847328966")
    assert note(event, "attributes").startswith("UPSERT, LONG key")
    assert note(event_v2, "attributes").startswith("UPSERT, SCHEMA key, metadata, payload")
    assert note(event_v2, "metadata_attributes").startswith("CRC-32, schema version 7")
    assert note(event, "timestamp_nanos").startswith("2014-05-13T16:53:20Z")
    assert note(event[:-2], "length").startswith("TRUNCATED: the event has 66 bytes, 64 are here")
    flipped = event[:12] + b"\1" + event[13:]
    crc = "HEADER_CRC_MISMATCH: the bytes that it covers are not those that were written; wrong: stored 847328966, computed "
    assert note(flipped, "header_crc").startswith(crc)
    assert note(event + b"xx", "left_over") == "after the event's end: no error"
    assert note(b"\x07" + event[1:], "version").startswith("BAD_MAGIC: neither V1 (0) nor V2 (2)")
    assert note(b"", "event") == "TRUNCATED: the event has no version"


def test_a_truncated_digest() -> None:
    event = SAMPLES["event_v2"]
    [rows] = ask("dbus_explain", [event])
    [digest] = [row for row in rows if row["field"] == "key_schema_id"]
    assert note(event[: digest["position"] + 3], "key_schema_id").startswith("TRUNCATED: ")
    assert "cut: 3 of its 16 bytes; MD5" in note(event[: digest["position"] + 3], "key_schema_id")


def test_no_verdict_on_a_checksum_whose_bytes_are_not_there() -> None:
    """The event says that it ends before its key does, and its bytes end within the key."""
    (rows,) = ask("dbus_explain", [SAMPLES["event"]])
    [length] = [row for row in rows if row["field"] == "length"]
    event = bytearray(SAMPLES["event"][:57])
    event[length["position"] : length["position"] + length["size"]] = bytes(length["size"])
    assert not {"right", "wrong"} & set(re.findall(r"\w+", note(bytes(event), "value_crc")))


def test_a_negative_length_takes_no_bytes() -> None:
    """The event is as long as its parts; no part reaches back to before its begin."""
    [rows] = ask("dbus_explain", [SAMPLES["event"]])
    [length] = [row for row in rows if row["field"] == "length"]
    event = bytearray(SAMPLES["event"])
    event[length["position"] : length["position"] + length["size"]] = b"\xff" * 4
    [rows] = ask("dbus_explain", [bytes(event)])
    assert "value" not in [row["field"] for row in rows]
    assert (rows[-1]["field"], rows[-1]["size"]) == ("rest", len(b"hello"))


def test_a_flipped_bit_in_a_stream_has_its_position_in_the_stream() -> None:
    event, at = SAMPLES["event"], 2 * len(SAMPLES["event"]) + 18
    stream = bytearray(3 * event)
    stream[at] ^= 0x20
    (part,) = sparkwire.explain(bytes(stream)).parts
    [crc, flipped] = [line for line in part.lines if "flipped" in (line.note or "")]
    assert f"bit 5 of byte {at}, in {flipped.field}" in (crc.note or "")
    assert (crc.field, flipped.field) == ("event[2].header_crc", "event[2].sequence")
    assert flipped.position <= at < flipped.position + flipped.size
    assert f"byte {at} was {event[18]:#04x}" in (flipped.note or "")


def test_a_long_stream_ends_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain, "MOST_LINES", 40)
    (part,) = sparkwire.explain(SAMPLES["event"] * 9).parts
    assert (part.lines[-1].field, part.lines[-1].note) == ("rest", "not explained: there are too many lines")
    assert b"".join(line.data for line in part.lines) == SAMPLES["event"] * 9


def test_little_endian_is_read_in_its_order() -> None:
    little = [event for event in golden_rows() if ask("dbus_byte_order", [event]) == ["LITTLE_ENDIAN"]][:3]
    for event, answer in zip(little, ask("dbus_event", little), strict=True):
        (lines,) = ask("dbus_explain", [event])
        assert {line["field"]: line["value"] for line in lines}["sequence"] == str(answer["sequence"])


def test_null_and_neighbours() -> None:
    rows = [None, SAMPLES["event"], None, b"", SAMPLES["event_v2"]]
    answer = FUNCTIONS["dbus_explain"].decode(pa.array(rows, pa.binary()))
    answer.validate(full=True)
    assert answer.to_pylist() == [None if row is None else ask("dbus_explain", [row])[0] for row in rows]


def test_a_truncated_header_ends_with_the_truncated_field() -> None:
    """TRUNCATED is on that field, not on a value of which no byte exists."""
    event, event_v2 = SAMPLES["event"], SAMPLES["event_v2"]
    for cut in [*(event[:size] for size in (20, 30, 57, 60)), *(event_v2[:size] for size in (8, 12, 30, 44, 50, 60))]:
        [rows] = ask("dbus_explain", [cut])
        assert rows[-1]["size"] > 0
        assert rows[-1]["note"].startswith("TRUNCATED")
