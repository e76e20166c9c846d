"""Other files of Kafka's local storage: compared with Kafka's own programs, and corrupt bytes of every kind."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from sparkwire.kernels import CHECKED
from tests.support import kafka_storage_files as golden
from tests.support.arrow import ask, enlarged, plain
from tests.support.child import run_python
from tests.support.guard import guarded_column
from tests.support.kafka_storage_files import Dumped, Record, Row
from tests.support.oracles import kafka_storage as oracle

Pair = tuple[bytes | None, bytes | None]
FILES: dict[str, Callable[[bytes], list[Row]]] = {
    "kafka_txn_index": oracle.txn_index,
    "kafka_producer_snapshot": oracle.producer_snapshot,
    "kafka_leader_epochs": oracle.leader_epochs,
}
RECORDS: dict[str, Callable[[bytes | None, bytes | None], Row | None]] = {
    "kafka_group_record": oracle.group_record,
    "kafka_transaction_record": oracle.transaction_record,
}


def ask_pairs(function: str, pairs: list[Pair]) -> list[Any]:
    """The results for keys and values."""
    keys, values = zip(*pairs, strict=True)
    return plain(FUNCTIONS[function].decode(pa.array(keys, pa.binary()), pa.array(values, pa.binary())))


# -- what Kafka says


def aborted(line: Row) -> Row:
    """A line of a transaction index as the function returns it."""
    return {re.sub("([A-Z])", r"_\1", name).lower(): value for name, value in line.items()}


def as_dumped(row: Row) -> Row:
    """A row of a snapshot as the dump prints it."""
    known = {
        "producerId": row["producer_id"],
        "producerEpoch": row["producer_epoch"],
        "coordinatorEpoch": row["coordinator_epoch"],
        "currentTxnFirstOffset": row["current_txn_first_offset"],
        "lastTimestamp": row["timestamp_ms"],
    }
    if row["last_sequence"] == -1:  # the dump has no other fields of a producer without data
        return known
    data = {"lastSequence": row["last_sequence"], "lastOffset": row["last_offset"], "offsetDelta": row["offset_delta"]}
    return known | data


def without_derived(line: Row) -> Row:
    """A line of a snapshot's dump without derived fields."""
    return {name: value for name, value in line.items() if name not in ("firstSequence", "timestamp")}


@pytest.mark.parametrize("file", golden.dumped(".txnindex"), ids=lambda file: file.path)
def test_txn_index(file: Dumped) -> None:
    assert ask("kafka_txn_index", [file.data]) == [[aborted(line) for line in file.lines]]


@pytest.mark.parametrize("file", golden.dumped(".snapshot"), ids=lambda file: file.path)
def test_producer_snapshot(file: Dumped) -> None:
    (rows,) = ask("kafka_producer_snapshot", [file.data])
    assert [row.pop("error") for row in rows] == [None] * len(file.lines)
    assert [as_dumped(row) for row in rows] == [without_derived(line) for line in file.lines]


def test_the_dumps_show_both_kinds() -> None:
    lines = [line for file in golden.dumped(".snapshot") for line in file.lines]
    assert {line["currentTxnFirstOffset"] is None for line in lines} == {True, False}
    assert len(lines) > 100


def test_leader_epochs() -> None:
    for data in golden.checkpoints():
        stored = [line.split() for line in data.decode().splitlines()[2:]]
        (rows,) = ask("kafka_leader_epochs", [data])
        assert [(row["epoch"], row["start_offset"]) for row in rows] == [(int(e), int(s)) for e, s in stored]


@pytest.mark.parametrize(("text", "rows"), [(b"", 0), (b"0", 0), (b"0\n", 0), (b"\n", 1), (b"1\n", 1), (b"0\n\n", 1)])
def test_leader_epochs_of_a_broker_that_was_killed(text: bytes, rows: int) -> None:
    """Kafka's `CheckpointFile` reads no entries if a line is missing, and rejects an empty line."""
    assert ask("kafka_leader_epochs", [text]) == [[{"epoch": None, "start_offset": None}] * rows]


def dumped_offset(row: Row) -> str:
    """DumpLogSegments' text of a committed offset."""
    data = {"offset": row["offset"]}
    data |= {"leaderEpoch": row["leader_epoch"]} if row["version"] >= 3 else {}
    data |= {"metadata": row["metadata"], "commitTimestamp": row["commit_timestamp_ms"]}
    data |= {"expireTimestamp": row["expire_timestamp_ms"]} if row["version"] == 1 else {}
    return json.dumps({"version": str(row["version"]), "data": data}, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("record", golden.decoded("consumer_offsets"), ids=lambda record: record.java[:60])
def test_consumer_offsets(record: Record) -> None:
    (row,) = ask_pairs("kafka_group_record", [(record.key, record.value)])
    if record.java.startswith(("Unknown record type", "Error at offset")):
        assert row["error"] == ("BAD_MAGIC" if record.java.startswith("Unknown") else "TRUNCATED")
        return
    assert row["error"] is None
    key_text, payload = record.java.split(" payload: ")
    key = json.loads(key_text)
    kind = {"0": "OFFSET", "1": "OFFSET", "2": "GROUP"}.get(key["type"], "OTHER")
    assert row["kind"] == kind
    if kind == "OTHER":
        assert {name: value for name, value in row.items() if value is not None} == {
            "kind": "OTHER",
            "version": int(key["type"]),
        }
        return
    assert {name: row[name] for name in key["data"]} == key["data"]
    if payload == "<DELETE>":
        assert row["version"] is row["offset"] is row["generation"] is None
    elif kind == "OFFSET":
        assert dumped_offset(row) == payload
    else:
        value = json.loads(payload)
        state = {
            "protocolType": row["protocol_type"],
            "generation": row["generation"],
            "protocol": row["protocol"],
            "leader": row["leader"],
        }
        assert str(row["version"]) == value["version"]
        assert state.items() <= value["data"].items()
        assert row["members"] == len(value["data"]["members"])


@pytest.mark.parametrize("record", golden.decoded("transaction_state"), ids=lambda record: record.java[:80])
def test_transaction_state(record: Record) -> None:
    (row,) = ask_pairs("kafka_transaction_record", [(record.key, record.value)])
    assert row["error"] is None
    text = f"transaction_metadata::transactionalId={row['transactional_id']} payload: "
    if record.value is None:
        assert record.java == f"{text}<DELETE>"
    else:
        partitions = ",".join(f"{p['topic']}-{p['partition']}" for p in row["partitions"] or [])
        assert record.java == (
            f"{text}producerId:{row['producer_id']},producerEpoch:{row['producer_epoch']},state={row['state']},"
            f"partitions=[{partitions}],txnLastUpdateTimestamp={row['last_update_timestamp_ms']},"
            f"txnTimeoutMs={row['timeout_ms']}"
        )


NAMES = {
    "commitTimestamp": "commit_timestamp_ms",
    "expireTimestamp": "expire_timestamp_ms",
    "transactionTimeoutMs": "timeout_ms",
    "transactionStatus": "state",
    "transactionPartitions": "partitions",
    "transactionLastUpdateTimestampMs": "last_update_timestamp_ms",
    "transactionStartTimestampMs": "start_timestamp_ms",
}


def our_value(name: str, value: Any) -> Any:
    """A value of Kafka's JSON in the form that the functions return."""
    if name == "members":
        return len(value)
    if name == "state":
        return oracle.STATES[value]
    if name == "partitions" and value is not None:
        return [{"topic": t["topic"], "partition": p} for t in value for p in t["partitionIds"]]
    return None if name.endswith("timestamp_ms") and value == -1 else value


@pytest.mark.parametrize("kind", ["OFFSET", "GROUP", "TRANSACTION"])
def test_every_version_that_kafka_writes(kind: str) -> None:
    function = "kafka_transaction_record" if kind == "TRANSACTION" else "kafka_group_record"
    lines = [line for line in golden.written() if line["kind"] == kind]
    pairs: list[Pair] = [(bytes.fromhex(line["key"]), bytes.fromhex(line["value"])) for line in lines]
    assert {line["version"] for line in lines} == set(range(2 if kind == "TRANSACTION" else 5))
    for line, row in zip(lines, ask_pairs(function, pairs), strict=True):
        expected = {"version": line["version"], "error": None}
        for java_name, value in {**line["keyData"], **line["data"]}.items():
            name = NAMES.get(java_name) or re.sub("([A-Z])", r"_\1", java_name).lower()
            if name != "current_state_timestamp":
                expected[name] = our_value(name, value)
        assert {name: row[name] for name in expected} == expected
        assert all(row[name] is None for name in row if name not in expected and name != "kind")


# -- corruption


def files(function: str) -> list[bytes]:
    """Valid files for a function."""
    if function == "kafka_leader_epochs":
        return [*golden.checkpoints(), b"0\r\n2\r\n0 0\r\n3\t 9223372036854775807\r\n"]
    suffix = ".txnindex" if function == "kafka_txn_index" else ".snapshot"
    return [file.data for file in golden.dumped(suffix)]


def pairs_of(function: str) -> list[Pair]:
    """Valid records for a function."""
    topic, kinds = (
        ("transaction_state", ["TRANSACTION"])
        if function == "kafka_transaction_record"
        else ("consumer_offsets", ["OFFSET", "GROUP"])
    )
    result: list[Pair] = [(record.key, record.value) for record in golden.decoded(topic)]
    lines = [line for line in golden.written() if line["kind"] in kinds]
    return result + [(bytes.fromhex(line["key"]), bytes.fromhex(line["value"])) for line in lines]


def mutated(chance: random.Random, data: bytes) -> bytes:
    """The same with some corruption, or none."""
    damaged = bytearray(data)
    for _ in range(chance.randrange(3)):
        at = chance.randrange(len(damaged) + 1)
        match chance.randrange(5):
            case 0:
                del damaged[at:]
            case 1:
                damaged[at : at + 1] = bytes([chance.choice((0, 1, 10, 32, 45, 57, 127, 128, 255))])
            case 2:
                damaged[at:at] = chance.choice((b"\n", b" 7", b"-", bytes(4), b"\xff" * 5, b"9" * 19))
            case 3:
                if at < len(damaged):
                    damaged[at] ^= 1 << chance.randrange(8)
            case 4:
                damaged[at : at + 4] = chance.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0"))
    return bytes(damaged)


def damaged_files(function: str, seed: int, count: int) -> list[bytes]:
    chance = random.Random(seed)
    intact = files(function)
    return [mutated(chance, chance.choice(intact)) for _ in range(count)]


def damaged_pairs(function: str, seed: int, count: int) -> Iterator[Pair]:
    chance = random.Random(seed)
    intact = pairs_of(function)
    for _ in range(count):
        key, value = chance.choice(intact)
        assert key is not None
        yield (
            None if chance.randrange(40) == 0 else mutated(chance, key),
            None if value is None or chance.randrange(20) == 0 else mutated(chance, value),
        )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("function", FILES)
def test_corrupt_files(function: str, seed: int) -> None:
    rows = damaged_files(function, seed, 250)
    for data, answer in zip(rows, ask(function, rows), strict=True):
        assert answer == FILES[function](data), data.hex()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("function", RECORDS)
def test_corrupt_records(function: str, seed: int) -> None:
    pairs = list(damaged_pairs(function, seed, 500))
    for (key, value), answer in zip(pairs, ask_pairs(function, pairs), strict=True):
        assert answer == RECORDS[function](key, value), (key, value)


@pytest.mark.parametrize("function", RECORDS)
def test_cut_at_every_byte(function: str) -> None:
    for key, value in pairs_of(function)[:60]:
        pairs: list[Pair] = [(key, (value or b"")[:size]) for size in range(len(value or b""))]
        pairs += [((key or b"")[:size], value) for size in range(len(key or b""))]
        assert ask_pairs(function, pairs) == [RECORDS[function](*pair) for pair in pairs]


@pytest.mark.parametrize("function", RECORDS)
def test_records_obey_the_contract(function: str) -> None:
    """The contracts of `test_contracts` for functions of one column."""
    pairs = [*damaged_pairs(function, 99, 200), (None, None), (None, b"x"), (b"", b"")]
    keys, values = (pa.array(column, pa.binary()) for column in zip(*pairs, strict=True))
    answer = FUNCTIONS[function].decode(keys, values)
    answer.validate(full=True)
    assert answer.type == FUNCTIONS[function].return_type
    whole = plain(answer)
    assert [
        plain(FUNCTIONS[function].decode(keys[i : i + 1], values[i : i + 1]))[0] for i in range(len(pairs))
    ] == whole
    assert plain(FUNCTIONS[function].decode(keys[7:-2], values[7:-2])) == whole[7:-2]
    assert plain(FUNCTIONS[function].decode(enlarged(keys), enlarged(values))) == whole
    assert plain(FUNCTIONS[function].decode(pa.nulls(2), pa.nulls(2))) == [None, None]
    assert plain(FUNCTIONS[function].decode(keys[:0], values[:0])) == []


def test_wrong_counts_end_with_the_bytes() -> None:
    """2^31 - 1 members or partitions that do not exist, and partitions whose topics would fill the memory."""
    group = bytes.fromhex("0000") + b"\0\0" + bytes(4) + b"\xff\xff\xff\xff" + b"\x7f\xff\xff\xff"
    (row,) = ask_pairs("kafka_group_record", [(b"\0\2\0\1g", group)])
    assert (row["members"], row["error"]) == (2**31 - 1, "TRUNCATED")
    head = bytes.fromhex("0000") + bytes(14) + b"\1" + b"\0\0\0\1"
    long = head + b"\x7f\xff" + b"t" * 32767 + b"\0\0\x10\0" + bytes(4 * 4096)
    (row,) = ask_pairs("kafka_transaction_record", [(b"\0\0\0\1x", long)])
    assert (len(row["partitions"]), row["error"]) == ((1 << 26) // 32767, "TOO_LARGE")


@pytest.mark.process
@pytest.mark.parametrize("at_end", [True, False])
def test_guard_pages(at_end: bool) -> None:
    run_python("-c", f"from tests.kafka.test_storage import read_beside_guard_pages as f; f(at_end={at_end})")


def read_beside_guard_pages(*, at_end: bool) -> None:
    """Every function on whole columns beside a guard page, and on each row alone."""
    for function in FILES:
        rows = damaged_files(function, 7, 120)
        assert plain(FUNCTIONS[function].decode(guarded_column(rows, at_end=at_end))) == ask(function, rows)
        for row in rows:
            assert plain(FUNCTIONS[function].decode(guarded_column([row], at_end=at_end))) == ask(function, [row])
    for function in RECORDS:
        pairs = list(damaged_pairs(function, 7, 250))
        columns = [guarded_column(column, at_end=at_end) for column in zip(*pairs, strict=True)]
        assert plain(FUNCTIONS[function].decode(*columns)) == ask_pairs(function, pairs)
        for key, value in pairs:
            alone = [guarded_column([part], at_end=at_end) for part in (key, value)]
            assert plain(FUNCTIONS[function].decode(*alone)) == ask_pairs(function, [(key, value)])


@pytest.mark.process
def test_checked_build() -> None:
    """The same kernels with every load checked: a read outside of the column would be an IndexError."""
    run_python(
        "-c", "from tests.kafka.test_storage import read_checked as f; f()", environment={"SPARKWIRE_CHECKED": "1"}
    )


def read_checked() -> None:
    assert CHECKED
    for function, read in FILES.items():
        rows = damaged_files(function, 8, 200)
        assert ask(function, rows) == [read(row) for row in rows]
    for function, read_record in RECORDS.items():
        pairs = list(damaged_pairs(function, 8, 400))
        assert ask_pairs(function, pairs) == [read_record(*pair) for pair in pairs]
