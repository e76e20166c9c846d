"""`dbus_to_json`: byte for byte the text that Databus writes; for corrupt events the oracle's text or NULL."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from tests.support.databus_damage import damaged_rows, golden_rows, mutants
from tests.support.databus_json_cases import JAVA_NAMES, golden
from tests.support.oracles import databus_json as oracle

ENCODINGS = tuple(JAVA_NAMES)


def to_json(rows: list[bytes] | list[bytes | None], encoding: str = "JSON") -> list[Any]:
    array = FUNCTIONS["dbus_to_json"].decode(pa.array(rows, pa.binary()), encoding)
    array.validate(full=True)
    texts: list[Any] = array.to_pylist()
    return texts


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_golden_event(encoding: str) -> None:
    events = list(golden())
    assert len(events) == 1654
    for event, text in zip(events, to_json([event.event for event in events], encoding), strict=True):
        assert event.is_text(text, encoding), event.name


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_oracle_writes_as_java_does(encoding: str) -> None:
    for event in golden():
        assert event.is_text(oracle.to_json(event.event, encoding), encoding), event.name


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_corrupt_events(encoding: str) -> None:
    """For any corruption: the text if every field of the text exists, else NULL."""
    few = golden_rows()[::73]
    cuts = [event[:size] for event in few for size in range(len(event))]
    rows = [*damaged_rows(), *cuts, *mutants(seed=7, count=4000)]
    texts = to_json(rows, encoding)
    for row, text in zip(rows, texts, strict=True):
        assert text == oracle.to_json(row, encoding), row.hex()
    assert None in texts
    assert sum(text is not None for text in texts) > 1000


def test_any_bytes_as_text() -> None:
    """Random bytes, most of them from the places where UTF-8 readers differ, in the value of an event."""
    chance = random.Random(8)
    edges = bytes.fromhex("417f22 5c 00 1f 80 8f 90 9f a0 bf c0 c2 df e0 e4 ed ee ef f0 f1 f4 f5 f8 ff 0a 0d 09")
    pools = [edges, b"ab\xed\xa0\x80", 'é€😀"\\ plain text, 8 and more'.encode()]
    values = [bytes(chance.choices(pool, k=chance.randrange(30))) for pool in pools for _ in range(3000)]
    events = with_values(values)
    for value, text in zip(values, to_json(events, "JSON_PLAIN_VALUE"), strict=True):
        assert text.endswith(f'"value":{oracle.quoted(oracle.java_string(value))}}}\n'), value.hex()


@pytest.mark.parametrize("size", [0, 1, 2, 3, 55, 56, 57, 58, 59, 113, 114, 115, 171, 5000])
def test_base64_lines(size: int) -> None:
    """A line break after every 57 bytes, so after 57 and not after 56."""
    [text] = to_json(with_values([bytes(k % 251 for k in range(size))]))
    assert text.count("\\n") == size // 57
    assert text.endswith('\\n"}\n') == (size > 0 and size % 57 == 0)


def with_values(values: list[bytes]) -> list[bytes]:
    """V1 events with LONG keys and these values; their other fields do not matter here."""
    return [b"\0" + bytes(4) + (61 + len(value)).to_bytes(4, "big") + bytes(52) + value for value in values]


def test_spellings_of_the_encoding() -> None:
    events = golden_rows()[:300:7]
    assert to_json(events, "JSON_PLAIN") == to_json(events, "JSON_PLAIN_VALUE")
    with pytest.raises(ValueError, match="AVRO") as rejected:
        to_json(events, "AVRO")
    assert str(rejected.value) == "dbus_to_json() expected encoding JSON, JSON_PLAIN_VALUE, JSON_PLAIN, got 'AVRO'"


def test_events_for_which_java_throws() -> None:
    """V2 without a kind of key, or with opcode 3; an unknown version."""
    event = next(event for event in golden_rows() if event[:5] == b"\x02\xca\xfe\xde\xed")
    attributes = int.from_bytes(event[21:23], "big")
    changed = [attributes & ~0b1100, attributes | 0b11]
    rows = [event[:21] + bits.to_bytes(2, "big") + event[23:] for bits in changed]
    assert to_json([*rows, b"\x01" + event[1:], b"", None, event])[:-1] == [None] * 5
