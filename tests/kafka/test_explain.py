"""``kafka_explain``: every byte once, the values of the accessors, the errors where they arise."""

from __future__ import annotations

import gzip
import random
import re
import struct
from typing import Any

import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from sparkwire.base.error_codes import ERRORS
from sparkwire.catalogue import SAMPLES
from sparkwire.core.explain import DECOMPRESSED, MOST_LINES
from sparkwire.kafka import explain
from sparkwire.kafka.explain import MOST_INFLATED
from tests.kafka.test_oracle import mutated, resealed
from tests.support import kafka_cases as golden
from tests.support.arrow import ask
from tests.support.log_files import entry
from tests.support.oracles import kafka as oracle

CODE = re.compile(rf"\b({'|'.join(ERRORS)}): ")
RECORD = re.compile(r"(\w+\[\d+\])\.record\[(\d+)\]\.(\w+)$")
# Fields of a header by the column of `kafka_batches` that returns them.
HEADER = {
    "base_offset": "offset",
    "crc": "crc",
    "magic": "magic",
    "partition_leader_epoch": "partition_leader_epoch",
    "producer_id": "producer_id",
    "producer_epoch": "producer_epoch",
    "base_sequence": "base_sequence",
    "record_count": "record_count",
}


def own(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines about the input, without decompressed bytes."""
    return [line for line in lines if not (line["note"] or "").startswith(DECOMPRESSED)]


def check(rows: list[bytes]) -> None:
    answers = zip(rows, ask("kafka_explain", rows), ask("kafka_records", rows), ask("kafka_batches", rows), strict=True)
    for data, lines, records, batches in answers:
        position = 0
        for line in own(lines):
            assert (line["position"], 2 * line["size"]) == (position, len(line["hex"])), data.hex()
            position += line["size"]
        assert "".join(line["hex"] for line in own(lines)) == data.hex()
        codes = [code for line in lines for code in CODE.findall(line["note"] or "")]
        assert sorted(codes) == sorted(record["error"] for record in records if record["error"]), data.hex()
        check_headers(lines, batches)
        check_records(lines, records, batches)


def check_headers(lines: list[dict[str, Any]], batches: list[dict[str, Any]]) -> None:
    values = {line["field"]: line["value"] for line in lines}
    begins = {line["position"]: line["field"].split(".")[0] for line in reversed(own(lines))}
    for batch in batches:
        entry = begins[batch["position"]]
        for column, field in HEADER.items():
            # Other bytes have no record_count; the base offset of a wrapper is unknown.
            if batch[column] is not None and f"{entry}.{field}" in values:
                assert values[f"{entry}.{field}"] == str(batch[column]), (entry, field)


def check_records(lines: list[dict[str, Any]], records: list[dict[str, Any]], batches: list[dict[str, Any]]) -> None:
    """Keys and values of the records of batches, with their positions."""
    entries = {batch["position"]: f"batch[{number}]" for number, batch in enumerate(batches)}
    by_name: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    for line in lines:
        match = RECORD.match(line["field"])
        if match:
            by_name.setdefault((match[1], int(match[2])), {})[match[3]] = line
    numbers: dict[int, int] = {}
    for record in records:
        number = numbers.get(record["position"], 0)
        numbers[record["position"]] = number + 1
        if record["magic"] != 2 or record["error"]:
            continue
        shown = by_name[entries[record["position"]], number]
        assert int(shown["length"]["value"]) > 0
        for name in ("key", "value"):
            size = int(shown[f"{name}_size"]["value"])
            assert max(size, -1) == (-1 if record[name] is None else len(record[name]))
            if size > 0:
                assert shown[name]["hex"] == record[name].hex()


SMALL = [log.data for log in golden.logs() if len(log.data) < 9000]


def test_golden_logs() -> None:
    assert len(SMALL) > 20
    check(SMALL)


def test_every_byte_of_a_valid_log_has_a_line() -> None:
    (lines,) = ask("kafka_explain", [SAMPLES["segment"]])
    assert not [line for line in lines if line["field"].endswith((".rest", ".left_over"))]


def test_corrupt_logs() -> None:
    damaged = [case.data for case in golden.damaged() if len(case.data) < 12_000]
    assert len(damaged) > 300
    check(damaged[::3])


@pytest.mark.parametrize("seed", range(6))
def test_mutated_logs(seed: int) -> None:
    chance = random.Random(seed)
    check([mutated(chance) for _ in range(30)])


def message_entry(offset: int, value: bytes, attributes: int = 0) -> bytes:
    """A log entry of magic 1 with a null key."""
    body = struct.pack(">bbqii", 1, attributes, 0, -1, len(value)) + value
    return resealed(struct.pack(">qiI", offset, len(body) + 4, 0) + body)


@pytest.mark.parametrize("seed", range(4))
def test_corrupt_messages_of_compressed_sets(seed: int) -> None:
    chance = random.Random(seed)
    logs = []
    for _ in range(40):
        messages = [bytearray(message_entry(number, b"value")) for number in range(chance.randrange(1, 5))]
        message = chance.choice(messages)
        message[chance.randrange(len(message))] = chance.choice((0, 1, 2, 3, 127, 255))
        if chance.random() < 0.5:
            message[:] = resealed(bytes(message))
        logs.append(
            message_entry(9, gzip.compress(b"".join(messages), mtime=0), attributes=1) + message_entry(10, b"next")
        )
    check(logs)


def test_cut_at_every_byte() -> None:
    segment = SAMPLES["segment"]
    check([segment[:size] for size in range(len(segment) + 1)])


def note(data: bytes, field: str) -> str:
    (lines,) = ask("kafka_explain", [data])
    (result,) = [line["note"] for line in lines if line["field"] == field]
    return str(result)


def test_lines() -> None:
    segment = SAMPLES["segment"]
    assert note(segment, "message[0].crc").startswith("right: stored 3352727408, computed 3352727408")
    assert note(segment, "batch[1].attributes").startswith("lz4, CreateTime")
    assert note(segment, "batch[1].payload") == "lz4, 84 bytes when decompressed"
    assert note(segment, "batch[1].record[0].offset_delta") == "decompressed; offset 1267; from base_offset"
    assert note(segment, "batch[2].attributes").startswith("none, CreateTime, transactional, control")
    assert note(segment, "batch[2].record[0].key") == "ABORT"
    flipped = segment[:-3] + b"\1" + segment[-2:]
    assert note(flipped, "batch[2].crc").startswith(
        "CRC_MISMATCH: the bytes that it covers are not those that were written; wrong: stored 2423199836, computed "
    )
    assert note(segment[:-2], "batch[2].size").startswith(
        "TRUNCATED: 64 bytes follow; the batch has 66 bytes, 64 are here"
    )
    assert note(bytes(40), "entry[0].size").startswith("BAD_LENGTH: no entry has 0 bytes")


def test_a_truncated_batch_has_its_records() -> None:
    whole = entry(7, [b"first", b"second"])
    (lines,) = ask("kafka_explain", [whole[:-4]])
    assert {line["field"]: line["value"] for line in lines}["batch[0].record[0].value"] == "first"
    assert lines[-1]["field"] == "batch[0].record[1].value"
    assert lines[-1]["note"] == "cut: 3 of its 6 bytes"
    assert note(whole[:-4], "batch[0].crc") == "CRC-32C of everything after it"


def test_decompressed_messages_follow_their_payload() -> None:
    logs = [log.data for log in golden.logs() if log.name.startswith("v1_gzip/")]
    begin, stop, _, _ = next(oracle.entries(logs[0]))
    longer = logs[0][begin:stop] + b"left"
    longer = longer[:8] + struct.pack(">i", len(longer) - 12) + longer[12:]
    (lines,) = ask("kafka_explain", [resealed(longer)])
    fields = [line["field"] for line in lines]
    at = fields.index("message[0].payload")
    assert fields[at + 1].startswith("message[0].inner[0].")
    assert fields[-1] == "message[0].unclaimed"


def test_many_records_are_one_line() -> None:
    records = pa.array([[{"value": b"v"}] * 5000], pa.list_(pa.struct([("value", pa.binary())])))
    segment = FUNCTIONS["to_kafka_records"].decode(
        records, pa.array([0]), pa.array(["none"]), pa.array([2], pa.int32())
    )
    (lines,) = FUNCTIONS["kafka_explain"].decode(segment).to_pylist()
    assert MOST_LINES < len(lines) < MOST_LINES + 10
    assert lines[-1]["field"] == "batch[0].rest"
    assert lines[-1]["note"] == "not explained: there are too many lines"
    assert sum(line["size"] for line in lines) == len(segment[0].as_py())


def test_a_bomb_is_not_decompressed() -> None:
    records = pa.array([[{"value": bytes(MOST_INFLATED)}]], pa.list_(pa.struct([("value", pa.binary())])))
    arguments = pa.array([0]), pa.array(["zstd"]), pa.array([2], pa.int32())
    bomb = FUNCTIONS["to_kafka_records"].decode(records, *arguments)[0].as_py()
    assert len(bomb) < 4096
    result = note(bomb, "batch[0].payload")
    assert result.startswith(f"TOO_LARGE: it becomes more than {MOST_INFLATED} bytes, the bound of an explanation")


def test_payloads_are_decompressed_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    segment = next(log.data for log in golden.logs() if log.name.startswith("v2_gzip/"))
    monkeypatch.setattr(explain, "MOST_INFLATED", 50_000)
    lines = explain.explain(segment).lines
    sizes = {True: 0, False: 0}
    for line in lines:
        sizes[(line.note or "").startswith(DECOMPRESSED)] += line.size
    assert 0 < sizes[True] < 200_000
    assert sizes[False] == len(segment)


def test_null_and_neighbours() -> None:
    rows = [None, SAMPLES["segment"], None, b"", bytes(5)]
    answer = FUNCTIONS["kafka_explain"].decode(pa.array(rows, pa.binary()))
    answer.validate(full=True)
    assert answer.to_pylist() == [None if row is None else ask("kafka_explain", [row])[0] for row in rows]
