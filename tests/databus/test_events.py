"""`dbus_events`: streams as Databus sends them, and corrupt ones."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from sparkwire import FUNCTIONS
from tests.support.arrow import ask
from tests.support.databus_cases import EVENTS, STREAMS, golden_bytes, golden_events
from tests.support.databus_damage import damaged_rows, streams
from tests.support.oracles import databus as oracle


def split(stream: bytes) -> Any:
    [rows] = ask("dbus_events", [stream])
    return rows


@pytest.mark.parametrize("file", STREAMS + EVENTS)
def test_golden_stream(file: str) -> None:
    """Positions, sizes and verdicts are the same as in Java's own iteration."""
    expected = [
        {"position": java["position"], "event": event, "status": java["scanEvent"], "error": None}
        for java, event in golden_events(file)
    ]
    assert split(golden_bytes(file)) == expected


def test_versions_and_orders_mixed() -> None:
    events = [event for four in zip(*(golden_events(file) for file in EVENTS), strict=False) for _, event in four]
    rows = split(b"".join(events))
    assert [row["event"] for row in rows] == events
    assert {row["status"] for row in rows} == {"OK"}
    orders = ask("dbus_byte_order", events[:4])
    assert orders == ["BIG_ENDIAN", "LITTLE_ENDIAN", "BIG_ENDIAN", "LITTLE_ENDIAN"]


def test_corruption_against_the_oracle() -> None:
    """Flips, cuts, garbage, zeros and `02` with zeros between and inside events; every corrupt record as a stream."""
    column = [*streams(seed=2, count=1000), *damaged_rows()]
    for stream, rows in zip(column, ask("dbus_events", column), strict=True):
        assert rows == oracle.split(stream), stream.hex()


def test_rows_cover_the_stream() -> None:
    """Every byte is in exactly one row, for any corruption."""
    column = streams(seed=3, count=500)
    for stream, rows in zip(column, ask("dbus_events", column), strict=True):
        assert b"".join(row["event"] for row in rows) == stream
        assert [row["position"] for row in rows] == positions(rows)
        assert all(row["event"] for row in rows)


def positions(rows: list[dict[str, bytes]]) -> list[int]:
    return [sum(len(row["event"]) for row in rows[:i]) for i in range(len(rows))]


@pytest.mark.parametrize("file", STREAMS)
def test_cut_at_every_byte(file: str) -> None:
    """The events before the cut stay; the rest of the truncated event is the last row."""
    events = [event for _, event in golden_events(file)][:4]
    stream = b"".join(events)
    column = [stream[:size] for size in range(len(stream) + 1)]
    for part, rows in zip(column, ask("dbus_events", column), strict=True):
        whole = [event for i, event in enumerate(events) if sum(map(len, events[: i + 1])) <= len(part)]
        assert [row["event"] for row in rows if row["status"] == "OK"] == whole
        tail = part[sum(map(len, whole)) :]
        torn = [(row["event"], row["status"], row["error"]) for row in rows[len(whole) :]]
        assert torn == ([(tail, "PARTIAL", "TRUNCATED")] if tail else [])


@pytest.mark.parametrize("file", EVENTS)
@pytest.mark.parametrize(
    ("junk", "error"),
    [
        (bytes(200), "BAD_LENGTH"),  # zeros have a right CRC
        (b"\2" + bytes(200), "BAD_MAGIC"),  # to Java a valid event of size 0, forever
        (b"\xff" * 200, "BAD_MAGIC"),
        (b'{"error":"relay out of memory"}', "BAD_MAGIC"),  # a relay's error in place of an event
    ],
)
def test_resumes_after_other_bytes(file: str, junk: bytes, error: str) -> None:
    events = [event for _, event in golden_events(file)][:3]
    rows = split(events[0] + junk + events[1] + events[2])
    assert [row["event"] for row in rows] == [events[0], junk, events[1], events[2]]
    assert [row["status"] for row in rows] == ["OK", "ERR", "OK", "OK"]
    assert rows[1]["error"] == error


def test_a_wrong_value_crc_does_not_hide_the_next_event() -> None:
    """The header states the end of the event, so the next event is found although this event's value is corrupt."""
    events = [event for _, event in golden_events("window_stream")][:3]
    broken = events[1][:-1] + bytes([events[1][-1] ^ 1])
    rows = split(events[0] + broken + events[2])
    assert [row["error"] for row in rows] == [None, "VALUE_CRC_MISMATCH", None]
    assert [row["event"] for row in rows] == [events[0], broken, events[2]]


def test_a_short_event_after_zeros_is_no_truncated_tail() -> None:
    """Three zeros and a V2 end of period are fewer bytes than a V1 header: the event is found anyway."""
    eop = next(event for java, event in golden_events("events_v2_be") if java["name"].startswith("createLongKeyEOP"))
    assert len(eop) == 53
    rows = split(bytes(3) + eop)
    assert [(row["event"], row["status"]) for row in rows] == [(bytes(3), "PARTIAL"), (eop, "OK")]


def test_a_long_header_is_read_but_not_searched_for() -> None:
    """A V2 key of 70,000 bytes is read at its position, but a search after corruption does not find it."""
    eop, other = (v2_event(key) for key in (b"", bytes(70_000)))
    assert [row["status"] for row in split(eop + other + eop)] == ["OK", "OK", "OK"]
    rows = split(b"\xff" * 9 + other + eop)
    assert [(row["position"], row["status"]) for row in rows] == [(0, "ERR"), (9 + len(other), "OK")]


def v2_event(key: bytes) -> bytes:
    """A big-endian V2 event with a key of bytes and no part."""
    size = 49 + len(key)
    covered = struct.pack(">IiHqihqi", 0, size, 0x09, 0, 1, 1, 1, len(key)) + key
    return struct.pack(">BIiI", 2, oracle.MAGIC, size, oracle.crc(covered)) + covered


def test_a_stream_of_long_headers_takes_linear_time() -> None:
    """Half a million bytes that claim, every 49 bytes, a header of half their size: a result, not an hour."""
    size = 500_000
    fake = struct.pack(">BIiIIiHqihqi", 2, oracle.MAGIC, size // 2, 1, 1, size // 2, 0x09, 0, 1, 1, 1, size // 2 - 49)
    stream = fake * (size // len(fake))
    assert split(stream) == [{"position": 0, "event": stream, "status": "ERR", "error": "HEADER_CRC_MISMATCH"}]


def test_nothing() -> None:
    assert ask("dbus_events", [b"", None]) == [[], None]
    for size in range(1, 60):
        [row] = split(b"\2" + bytes(size))
        assert (row["position"], row["event"]) == (0, b"\2" + bytes(size))


def test_checksums_of_long_headers_take_linear_time() -> None:
    """Headers that claim half the stream, an event before each: their checksums would be 500 GB to compute one by one."""
    event = next(event for _, event in golden_events("window_stream"))
    count = 80_000
    half = count * (len(event) + 51) // 2
    header = bytes.fromhex("02cafedeed") + struct.pack(">i", half) + bytes(8) + struct.pack(">i", half) + bytes(30)
    rows = split((event + header) * count)
    assert len(rows) == 2 * count
    assert {(row["event"], row["error"]) for row in rows[:count:2]} == {(event, None)}
    assert {(row["event"], row["error"]) for row in rows[1:count:2]} == {(header, "HEADER_CRC_MISMATCH")}


def test_headers_that_a_search_finds() -> None:
    """Headers of up to 64 KiB at any position; the checksum of a long header is combined from parts."""
    for size in (49, 53, 1000, 1100, 5000, 65_535, 65_536, 65_537):
        for junk in (1, 3, 255, 256, 700):
            stream = b"\x09" * junk + v2_with_key(size - 49)
            assert split(stream) == oracle.split(stream), (size, junk)


def v2_with_key(size: int) -> bytes:
    key = (bytes(range(256)) * (size // 256 + 1))[:size]
    return bytes(FUNCTIONS["to_dbus_event"].decode([{"version": 2, "key_bytes": key}])[0].as_py())
