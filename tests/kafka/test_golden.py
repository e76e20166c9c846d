"""All bytes that Kafka and librdkafka wrote, compared with what Kafka 3.8.0 reads from them."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from tests.support import ROOT
from tests.support import kafka_cases as golden
from tests.support.arrow import ask, plain
from tests.support.kafka_cases import Damaged, Log, Row

# Stored by librdkafka's mock cluster with a CRC of 0, by its design.
BAD_CRC = "rdkafka/rdkafka_v2_txn_zstd.bin"

every_log = pytest.mark.parametrize("log", golden.logs(), ids=lambda log: log.name)


def ask_with(function: str, data: bytes, numbers: list[int]) -> list[Any]:
    """The results for several numbers on the same bytes."""
    columns = pa.array([data] * len(numbers), pa.binary()), pa.array(numbers, pa.int64())
    return plain(FUNCTIONS[function].decode(*columns))


def intact(log: Log) -> int:
    """Size of the valid entries [bytes]."""
    bad = [batch["position"] for batch in log.batches if not batch["isValid"]]
    end: int = min([*bad, log.java[-1]["endPosition"]])
    return end


@every_log
def test_records(log: Log) -> None:
    rows = ask("kafka_records", [log.data])[0]
    assert [row for row in rows if row["error"] is None] == golden.record_answers(log)
    broken = [(row["position"], row["error"]) for row in rows if row["error"]]
    expected = [(batch["position"], "CRC_MISMATCH") for batch in log.batches if not batch["isValid"]]
    if log.java[-1]["trailingBytes"]:
        expected.append((log.java[-1]["endPosition"], "BAD_LENGTH"))  # zeros of a preallocated file
    assert broken == expected


@every_log
def test_batches(log: Log) -> None:
    rows = ask("kafka_batches", [log.data])[0]
    tail = rows[len(log.batches) :]
    assert rows[: len(log.batches)] == [golden.batch_answer(batch) for batch in log.batches]
    assert [(row["position"], row["size"], row["error"]) for row in tail] == (
        [(log.java[-1]["endPosition"], None, "BAD_LENGTH")] if log.java[-1]["trailingBytes"] else []
    )


@every_log
def test_valid_prefix(log: Log) -> None:
    assert ask("kafka_valid_bytes", [log.data]) == [intact(log)]
    last = [batch["lastOffset"] for batch in log.batches if batch["position"] < intact(log)]
    assert ask("kafka_next_offset", [log.data]) == [last[-1] + 1 if last else None]


def test_unchecked_records() -> None:
    log = next(log for log in golden.logs() if log.name == BAD_CRC)
    rows = FUNCTIONS["kafka_records"].decode(pa.array([log.data], pa.binary()), verify_crc=False).to_pylist()[0]
    assert [(row["offset"], row["error"]) for row in rows] == [
        (record["offset"], None) for batch in log.batches for record in batch["records"]
    ]


@pytest.mark.parametrize("magic", [0, 1])
def test_messages(magic: int) -> None:
    bytes_of, java = zip(*golden.messages(magic), strict=True)
    for message, line, answers in zip(bytes_of, java, ask("kafka_message", bytes_of), strict=True):
        assert golden.is_value(line["key"], answers["key"])
        assert golden.is_value(line["value"], answers["value"])
        expected = golden.message_answer(line, message) | {"key": answers["key"], "value": answers["value"]}
        assert answers == expected
        for name, answer in expected.items():
            assert ask(f"kafka_{name}", [message]) == [answer]


# -- corruption: what Kafka's own readers say


@cache
def damage() -> list[tuple[Damaged, list[Row]]]:
    """Each corrupt log with its rows of ``kafka_records``, which decodes all logs as one column."""
    logs = golden.damaged()
    return list(zip(logs, ask("kafka_records", [log.data for log in logs]), strict=True))


def java_records(java: Row) -> list[tuple[int, int | None]]:
    """Offset and timestamp of each record that Java's file reader returns from valid batches."""
    compact = java["compactRecords"]
    return [
        (record[0], golden.no_time(record[1])) if compact else (record["offset"], golden.no_time(record["timestamp"]))
        for batch in java["batches"]
        if batch["isValid"] and batch["magic"] in (0, 1, 2)
        for record in batch.get("records") or []
    ]


def is_inner_bad(rows: list[Row]) -> bool:
    """Whether a set has a message that only Kafka's file reader returns, which does not verify it."""
    bad = [row for row in rows if row["error"] in ("CRC_MISMATCH", "BAD_MAGIC") and row["magic"] in (0, 1)]
    return any(row["compression"] not in (None, "none") and row["offset"] is not None for row in bad)


def test_nothing_readable_is_lost() -> None:
    """Every record of Java's file reader is returned, in order, except if docs/differences.md says that we are stricter."""
    for damaged, rows in damage():
        mine = [(row["offset"], row["timestamp_ms"]) for row in rows if row["error"] is None]
        theirs = java_records(damaged.java)
        if is_inner_bad(rows):
            theirs = [record for record in theirs if record in mine]
        behind = iter(mine)
        assert all(record in behind for record in theirs), damaged.name


def java_trouble(damaged: Damaged) -> list[int]:
    """Positions of the errors that Java finds [bytes]."""
    trouble = [
        batch["position"]
        for batch in damaged.java["batches"]
        if not batch["isValid"] or batch.get("recordsError") or batch["magic"] not in (0, 1, 2)
    ]
    end = damaged.java["fileRecords"]["endPosition"]
    if trouble and "size" in damaged.name:  # Java continues inside the range of the wrong size
        trouble, end = trouble[:1], len(damaged.data)
    if end < len(damaged.data) and end not in trouble:
        trouble.append(end)
    return trouble


def test_corruption_is_one_row() -> None:
    """There is an error exactly where Java finds one, and each corruption is one row."""
    for damaged, rows in damage():
        broken = [row["position"] for row in rows if row["error"]]
        if not any(name in damaged.name for name in ("_msg_inner_", "payload_flip")):
            assert broken == java_trouble(damaged), damaged.name
        else:
            assert len(broken) <= 1, damaged.name


def test_recovery() -> None:
    """`kafka_valid_bytes` is the size that `LogSegment.recover` keeps, except for an unknown magic."""
    logs = golden.damaged()
    for damaged, size in zip(logs, ask("kafka_valid_bytes", [log.data for log in logs]), strict=True):
        kept = damaged.java["logSegmentRecover"]["sizeAfter"]
        batches = damaged.java["batches"]
        unknown = [b["position"] for b in batches if b["magic"] not in (0, 1, 2) and b["position"] < kept]
        assert size == min([*unknown, kept]), damaged.name


def test_documented_differences_of_recovery() -> None:
    """docs/differences.md has the differences, and the number of logs for each."""
    page = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    logs = golden.damaged()
    differing = [
        any(b["magic"] not in (0, 1, 2) for b in log.java["batches"])
        for log in logs
        if ask("kafka_valid_bytes", [log.data]) != [log.java["logSegmentRecover"]["sizeAfter"]]
    ]
    assert f"Of {len(logs)} corrupt logs `kafka_valid_bytes` differs" in page
    assert f"| a magic of 3 or more in an entry | {sum(differing)} |" in page
    assert all(differing)


def test_consumer() -> None:
    """The records that Kafka's consumer returns before it stops are those before the first error."""
    compared = 0
    for damaged, rows in damage():
        java = damaged.java["consumer"]
        first = next((i for i, row in enumerate(rows) if row["error"]), None)
        if java["error"] is None or first is None:
            continue  # it stops without an error, or at a batch without records (count 0), which file readers skip
        error = rows[first]
        if error["error"] == "DECOMPRESS_FAILED":
            continue  # it returns the records that it had decompressed before the failure
        if error["error"] == "CRC_MISMATCH" and error["magic"] != 2 and error["compression"] != "none":
            continue  # it does not check wrappers
        assert first == java["records"], damaged.name
        compared += 1
    assert compared > 200


# -- indexes and look-ups


def index_files() -> list[tuple[str, bytes, int, Row]]:
    result = []
    for name in golden.SEGMENTS[:4]:
        files = golden.archive(name)
        for path, text in files.items():
            if path.endswith(".lookups.jsonl"):
                opened = golden.lines(text)[0]
                folder, base = path.rsplit("/", 1)
                folder += "/rebuilt" if opened["usesRebuiltIndex"] else ""
                for kind in ("index", "timeindex"):
                    file = f"{folder}/{base.removesuffix('.lookups.jsonl')}.{kind}"
                    if file in files:
                        result.append((file, files[file], opened["baseOffset"], opened))
    return result


def without_zeros(data: bytes, opened: Row) -> Row:
    """Java counts the preallocated entries of an active segment; here, the number at the end of an entry is not 0."""
    size = len(data.rstrip(b"\0"))
    entries = {"offsetIndexEntries": -(-size // 8), "timeIndexEntries": -(-size // 12)}
    last = {
        "offsetIndexLastOffset": opened["baseOffset"] + int.from_bytes(data[(size - 1) // 8 * 8 :][:4], "big"),
        "timeIndexLastTimestamp": int.from_bytes(data[(size - 1) // 12 * 12 :][:8], "big"),
        "timeIndexLastOffset": opened["baseOffset"] + int.from_bytes(data[(size - 1) // 12 * 12 :][8:12], "big"),
    }
    return opened | entries | last


@pytest.mark.parametrize(("path", "data", "base", "opened"), index_files(), ids=lambda value: str(value)[:60])
def test_indexes(path: str, data: bytes, base: int, opened: Row) -> None:
    if path.startswith(("v2_active_untrimmed_index/", "v2_preallocated_zero_tail/")):
        opened = without_zeros(data, opened)
    if path.endswith(".timeindex"):
        (entries,) = ask_with("kafka_time_index", data, [base])
        last = (opened["timeIndexLastTimestamp"], opened["timeIndexLastOffset"])
        assert len(entries) == opened["timeIndexEntries"]
        assert not entries or (entries[-1]["timestamp_ms"], entries[-1]["offset"]) == last
    else:
        (entries,) = ask_with("kafka_offset_index", data, [base])
        assert len(entries) == opened["offsetIndexEntries"]
        assert not entries or entries[-1]["offset"] == opened["offsetIndexLastOffset"]


def lookups(kind: str) -> list[tuple[str, list[Row]]]:
    return [
        (path, [line for line in golden.lines(text) if line["op"] == kind])
        for name in golden.SEGMENTS[:4]
        for path, text in golden.archive(name).items()
        if path.endswith(".lookups.jsonl")
    ]


@pytest.mark.parametrize(("path", "asked"), lookups("translateOffset"), ids=lambda value: str(value)[:60])
def test_search_offset(path: str, asked: list[Row]) -> None:
    log = next(log for log in golden.logs() if log.name == path.removesuffix(".lookups.jsonl") + ".log")
    result = ask_with("kafka_search_offset", log.data, [line["target"] for line in asked])
    for line, answer in zip(asked, result, strict=True):
        java = line["result"]
        assert answer == (java and {"offset": java["offset"], "position": java["position"]}), line["target"]


def test_headers_map() -> None:
    """If a key repeats, the last header counts, even if it is null; each row keeps its own headers."""
    rows: list[list[tuple[str, bytes | None]] | None] = [
        [("a", b"1"), ("b", b"2"), ("a", b"3")],
        None,
        [],
        [("b", b"4"), ("b", None)],
    ]
    headers = [None if row is None else [{"key": key, "value": value} for key, value in row] for row in rows]
    argument = FUNCTIONS["kafka_headers_map"].arguments[0].type
    column = pa.array([[{"key": "x", "value": b""}], *headers], argument)[1:]
    answer = FUNCTIONS["kafka_headers_map"].decode(column)
    answer.validate(full=True)
    expected = [[("b", b"2"), ("a", b"3")], None, [], [("b", None)]]
    assert answer.to_pylist() == expected


def test_headers_maps_of_every_log() -> None:
    for log in golden.logs():
        headers = FUNCTIONS["kafka_records"].decode(pa.array([log.data])).flatten().field("headers")
        maps = FUNCTIONS["kafka_headers_map"].decode(headers).to_pylist()
        for pairs, one in zip(headers.to_pylist(), maps, strict=True):
            assert (one and dict(one)) == (pairs and {pair["key"]: pair["value"] for pair in pairs})
