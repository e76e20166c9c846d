"""Formats read by their tables alone: what the slow reader finds is what the kernels answer, for sound and for corrupt bytes."""

from __future__ import annotations

import random
import struct
import zlib
from typing import Any

import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from sparkwire.base.grammar import Covered, Field, Layout, PresentIf, Repeated, Sized, Struct, Varint, size_of
from sparkwire.core.explain import Line, Walker
from sparkwire.databus.layout import EVENT_V1, EVENT_V2, V2_METADATA, V2_PAYLOAD
from sparkwire.kafka.indexes import TXN_INDEX
from sparkwire.kafka.layout import BATCH, MESSAGE, OVERHEAD, RECORD, WHOLE_BATCH
from tests.kafka.test_oracle import mutated, mutated_messages, resealed
from tests.support import kafka_cases as golden
from tests.support.arrow import ask, plain
from tests.support.databus_damage import damaged_rows, golden_rows, mutants
from tests.support.oracles import kafka as oracle
from tests.support.table_reader import Reader, Values

Row = dict[str, Any]


# -- Kafka


def decompressed(values: Values, payload: bytes) -> bytes:
    return oracle.decompress(values["attributes"] & 7, payload, values["magic"])


def check_log(data: bytes, rows: list[Row], batches: list[Row]) -> int:
    """The batches of a log that are whole; how many records they have."""
    by_entry: dict[int, list[Row]] = {}
    for row in rows:
        by_entry.setdefault(row["position"], []).append(row)
    count = 0
    for batch in batches:
        begin, size = batch["position"], batch["size"]
        if batch["magic"] == 2 and size is not None and batch["error"] in (None, "CRC_MISMATCH"):
            count += check_batch(data[begin : begin + size], by_entry.get(begin, []), batch)
    return count


def check_batch(entry: bytes, rows: list[Row], batch: Row) -> int:
    if rows and rows[0]["error"] in ("UNKNOWN_CODEC", "DECOMPRESS_FAILED"):
        with pytest.raises(oracle.Unreadable):
            Reader(entry, unpack=decompressed).read(WHOLE_BATCH)
        return 0
    read = Reader(entry, unpack=decompressed if batch["record_count"] > 0 else None).read(WHOLE_BATCH)
    assert read.checks["crc"] == batch["crc_valid"], entry.hex()
    values = read.values
    names = {"base_offset": "offset"} | {
        field.name: field.name for field in BATCH.fields if field.name in batch and field.name not in ("size",)
    }
    assert {name: batch[name] for name in names} == {name: values[field] for name, field in names.items()}
    items = values.get("record", [])
    if read.wrong and len(items) == values["record_count"]:
        items = items[:-1]  # the last one has bytes after it
    sound = [row for row in rows if row["error"] is None]
    if values["record_count"] > 0:
        assert [row["error"] for row in rows] == [None] * len(items) + ["BAD_RECORD"] * read.wrong, entry.hex()
    for item, row in zip(items, sound, strict=True):
        assert (item["key"], item["value"]) == (row["key"], row["value"])
        headers = [{"key": each["key"].decode("utf-8", "replace"), "value": each["value"]} for each in item["header"]]
        assert headers == row["headers"]
        assert oracle.wrapped(values["offset"] + item["offset_delta"], 64) == row["offset"]
        late = values["attributes"] & 8
        time = (
            values["max_timestamp"] if late else oracle.wrapped(values["base_timestamp"] + item["timestamp_delta"], 64)
        )
        assert (None if time == -1 else time) == row["timestamp_ms"]
    return len(items)


def check_logs(logs: list[bytes]) -> int:
    records = plain(FUNCTIONS["kafka_records"].decode(pa.array(logs, pa.binary()), verify_crc=False))
    return sum(map(check_log, logs, records, ask("kafka_batches", logs)))


def test_golden_logs() -> None:
    assert check_logs([log.data for log in golden.logs() if len(log.data) < 20_000]) > 1000


def test_damaged_logs() -> None:
    assert check_logs([case.data for case in golden.damaged() if len(case.data) < 12_000]) > 1000


@pytest.mark.parametrize("seed", range(20, 26))
def test_mutated_logs(seed: int) -> None:
    chance = random.Random(seed)
    check_logs([mutated(chance) for _ in range(40)])


@pytest.mark.parametrize("seed", range(4))
def test_mutated_records(seed: int) -> None:
    """Batches that are not compressed, with some byte of their records changed and a right checksum."""
    chance = random.Random(seed)
    batches = []
    for log in (log.data for log in golden.logs() if log.name.startswith("v2_none/")):
        batches += [
            log[begin:stop] for begin, stop, error, _ in oracle.entries(log) if error is None and stop - begin < 4000
        ]
    rows = []
    for _ in range(150):
        entry = bytearray(chance.choice(batches))
        for _ in range(chance.randrange(1, 3)):
            entry[chance.randrange(57, len(entry))] = chance.choice((0, 1, 2, 3, 127, 128, 255))
        rows.append(resealed(bytes(entry)))
    check_logs(rows)


@pytest.mark.parametrize("magic", [0, 1])
def test_messages(magic: int) -> None:
    messages = [message for message, _ in golden.messages(magic)]
    rows = messages[:300] + [row for seed in range(3) for row in mutated_messages(magic, seed)]
    for message, row in zip(rows, ask("kafka_message", rows), strict=True):
        if row["magic"] not in (0, 1):
            continue
        read = Reader(message).read(MESSAGE)
        values = read.values
        assert values.get("crc") == row["crc"]
        assert values.get("attributes") == row["attributes"]
        assert [values.get(name) for name in ("key_size", "value_size")] == [row["key_size"], row["value_size"]], (
            message.hex()
        )
        content = values.get("payload" if (values.get("attributes") or 0) & 7 else "value")
        assert (values.get("key"), content) == (row["key"], row["value"]), message.hex()
        if "payload" not in values and values.get("value_size", 0) < 0:
            continue  # only whoever opens the payload misses it
        ends_early = read.wrong or "value_size" not in values
        assert row["error"] in ("TRUNCATED", "BAD_LENGTH") if ends_early else row["error"] != "BAD_LENGTH", (
            message.hex()
        )


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_compressed_sets(magic: int) -> None:
    logs = [log.data for log in golden.logs() if log.name.startswith(f"v{magic}_k38_") and "none" not in log.name]
    count = 0
    for data, rows in zip(logs, ask("kafka_records", logs), strict=True):
        for begin, stop, _, _ in oracle.entries(data):
            read = Reader(data[begin + OVERHEAD : stop], unpack=decompressed).read(MESSAGE)
            own = [row for row in rows if row["position"] == begin]
            messages = [(message["key"], message["value"]) for message in read.values["inner"]]
            assert messages == [(row["key"], row["value"]) for row in own]
            count += len(own)
    assert count > 10


def test_entries_of_an_index() -> None:
    file = random.Random(3).randbytes(TXN_INDEX.size * 50)
    table = struct_of(TXN_INDEX)
    assert read_all(table, file) == ask("kafka_txn_index", [file])[0]


def struct_of(layout: Layout) -> Struct:
    return Struct("file", Repeated(Struct("entry", *layout.fields)))


def read_all(table: Struct, file: bytes) -> list[Values]:
    entries: list[Values] = Reader(file).read(table).values["entry"]
    return entries


# -- Databus

# What a V1 event has no bytes of its own for.
NUMBERS = (
    "version", "header_crc", "value_crc", "length", "attributes", "sequence", "physical_partition_id", "timestamp_nanos",
    "src_id", "key_long",
)  # fmt: skip
CONTENTS = ("key_bytes", "value", "metadata", "schema_id", "metadata_schema_id", "key_schema_id")


def check_events(events: list[bytes]) -> int:
    checked = 0
    for event, answers in zip(events, ask("dbus_event", events), strict=True):
        if answers["byte_order"] is None:
            continue
        is_v2 = answers["version"] == 2
        read = Reader(event, answers["byte_order"] == "LITTLE_ENDIAN").read(EVENT_V2 if is_v2 else EVENT_V1)
        for name in (*NUMBERS, *CONTENTS):
            assert read.values.get(name) == answers[name], (name, event.hex())
        for name in ("header_crc", "value_crc"):
            assert read.checks.get(name) == answers[f"{name}_valid"], (name, event.hex())
        if answers["error"] is None:
            assert not read.wrong, event.hex()
        elif read.checks.get("header_crc") and read.checks.get("value_crc"):
            assert read.wrong or answers["error"] != "BAD_LENGTH", event.hex()
        checked += 1
    return checked


def test_golden_events() -> None:
    assert check_events(golden_rows()) > 200


def test_damaged_events() -> None:
    assert check_events(damaged_rows()[::2]) > 300


@pytest.mark.parametrize("seed", range(10, 14))
def test_mutated_events(seed: int) -> None:
    check_events(mutants(seed, 250))


# -- a format that nobody knows

INVENTED = Struct(
    "message",
    Field("flags", "u8", "bit 0: a name follows"),
    Field("crc", "u32", "of what follows"),
    PresentIf("flags", 1, {1: [Sized("name", Field("name_size", "i16"))]}),
    Repeated(
        Struct("row", Varint("length", "[bytes]"), Varint("number"), ends="length", counts_rest=True),
        Varint("count"),
        "after the last row",
    ),
    covered=[Covered("crc", "crc32", last=["message"])],
)
CONTENT = struct.pack(">h", 3) + b"abc" + bytes([4, 2, 5, 4, 0x80, 1])


def explained(data: bytes) -> list[Line]:
    walker = Walker(data)
    walker.walk(INVENTED)
    return walker.lines


def test_a_table_is_an_explanation() -> None:
    """All five words, without a line of code for the format."""
    lines = explained(b"\1" + zlib.crc32(CONTENT).to_bytes(4) + CONTENT)
    assert [(line.position, line.size, line.field, line.value) for line in lines] == [
        (0, 1, "flags", "1"),
        (1, 4, "crc", str(zlib.crc32(CONTENT))),
        (5, 2, "name_size", "3"),
        (7, 3, "name", "abc"),
        (10, 1, "count", "2"),
        (11, 1, "row[0].length", "1"),
        (12, 1, "row[0].number", "-3"),
        (13, 1, "row[1].length", "2"),
        (14, 2, "row[1].number", "64"),
    ]
    assert (lines[0].note, lines[5].note) == ("bit 0: a name follows", "[bytes]")
    assert (lines[1].note or "").startswith("right: stored ")


def test_a_table_explains_corrupt_bytes() -> None:
    sound = b"\1" + zlib.crc32(CONTENT).to_bytes(4) + CONTENT
    notes = {line.field: line.note or "" for line in explained(sound[:8] + b"\x22" + sound[9:])}
    assert "one flipped bit explains it, bit 6 of byte 8, in name" in notes["crc"]
    assert notes["name"] == "byte 8 was 0x62 if one bit has flipped"
    notes = {line.field: line.note or "" for line in explained(sound[:-1])}
    assert notes["row[1].length"] == "the row has 2 bytes, 1 are here; the row has no number; [bytes]"
    assert "row[1].rest" in notes
    notes = {line.field: line.note or "" for line in explained(sound + b"!")}
    assert notes["count"] == "1 bytes are left after 2 rows"


# -- sizes


def test_events_have_the_size_of_their_table() -> None:
    for event, answers in zip(golden_rows(), ask("dbus_event", golden_rows()), strict=True):
        table = EVENT_V2 if answers["version"] == 2 else EVENT_V1
        read = Reader(event, answers["byte_order"] == "LITTLE_ENDIAN").read(table)
        has_no_part = answers["version"] == 2 and not read.values["attributes"] & (V2_METADATA | V2_PAYLOAD)
        assert size_of(table, read.values) == read.values["header_length" if has_no_part else "length"], event.hex()


def test_records_have_the_size_of_their_table() -> None:
    for log in (log.data for log in golden.logs() if log.name.startswith("v2_none/")):
        for begin, stop, error, _ in oracle.entries(log):
            values = Reader(log[begin:stop]).read(WHOLE_BATCH).values
            assert error is None
            assert size_of(WHOLE_BATCH, values) == stop - begin
            assert [size_of(RECORD, item) for item in values["record"]] != []


@pytest.mark.parametrize("value", [0, -1, 1, 63, -64, 64, -65, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)])
def test_size_of_a_varint(value: int) -> None:
    folded = (value << 1) ^ (value >> 63)
    encoded = []
    while folded > 127:
        encoded.append(folded & 127 | 128)
        folded >>= 7
    encoded.append(folded)
    assert size_of(Varint("number", bits=64), {"number": value}) == len(encoded)
    assert Reader(bytes(encoded)).read(Struct("one", Varint("number", bits=64))).values == {"number": value}


def test_sizes_of_each_word() -> None:
    table = Struct(
        "message",
        Field("flags", "u8"),
        PresentIf("flags", 1, {1: [Sized("name", Field("name_size", "i16"))]}),
        Repeated(Struct("item", Field("number", "i32")), Varint("count")),
        Sized("rest"),
    )
    assert size_of(table, {}) == 2
    assert size_of(table, {"flags": 1, "name": None}) == 4
    assert size_of(table, {"flags": 1, "name": b"abc", "item": [{}] * 70, "rest": b"xy"}) == 1 + 2 + 3 + 2 + 4 * 70 + 2
