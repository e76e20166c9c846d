"""The golden Kafka bytes as cases: written by Kafka and librdkafka, with the results of Kafka 3.8.0.

Every result is a field of Java's record. For values longer than 256 bytes, Java's record has a digest. Then the result is the
value with this digest that the oracle reads.
"""

from __future__ import annotations

import base64
import hashlib
import json
import tarfile
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from tests.support import DATA as DATA_FOLDER
from tests.support.cases import Case
from tests.support.oracles import kafka as oracle

DATA = DATA_FOLDER / "kafka"
SEGMENTS = ("segments_v0", "segments_v1", "segments_v2", "segments_other", "wire")
DAMAGED = ("foreign_frames", "corrupt")

Row = dict[str, Any]


class Log(NamedTuple):
    """Log bytes with Java's lines about them."""

    name: str
    data: bytes
    java: list[Row]

    @property
    def batches(self) -> list[Row]:
        return [line for line in self.java if line["type"] == "batch"]


class Damaged(NamedTuple):
    """Corrupt log bytes with Java's verdict."""

    name: str
    data: bytes
    java: Row


@cache
def archive(name: str) -> dict[str, bytes]:
    """The files in an archive, by path."""
    with tarfile.open(DATA / f"{name}.tar.xz") as files:
        return {f.name: files.extractfile(f).read() for f in files.getmembers() if f.isfile()}  # type: ignore[union-attr]


def lines(text: bytes) -> list[Row]:
    return [json.loads(line) for line in text.decode().split("\n") if line]


@cache
def logs(archives: tuple[str, ...] = SEGMENTS) -> tuple[Log, ...]:
    """All valid log bytes."""
    return tuple(
        Log(path, data, lines(files[path.rsplit(".", 1)[0] + ".jsonl"]))
        for files in map(archive, archives)
        for path, data in files.items()
        if path.endswith((".log", ".bin"))
    )


@cache
def damaged() -> tuple[Damaged, ...]:
    """All corrupt log bytes and odd frames."""
    return tuple(
        Damaged(java["file"], archive(name)[f"{name}/{java['file']}"], java)
        for name in DAMAGED
        for java in lines(archive(name)[f"{name}/expected.jsonl"])
    )


def messages(magic: int) -> Iterator[tuple[bytes, Row]]:
    """Single messages with Java's lines about them."""
    files = archive("messages")
    container, position = files[f"single_messages_v{magic}.bin"], 0
    for java in lines(files[f"single_messages_v{magic}.jsonl"]):
        size = int.from_bytes(container[position : position + 4], "big")
        yield container[position + 4 : position + 4 + size], java
        position += 4 + size


# -- expected results from Java's records


def is_value(stored: Any, value: bytes | None) -> bool:
    """Whether Java's entry for a key or value matches this value."""
    if stored is None or value is None:
        return stored is None and value is None
    if isinstance(stored, dict):
        return bool(len(value) == stored["len"] and hashlib.sha256(value).hexdigest() == stored["sha256"])
    return base64.b64decode(stored) == value


def no_time(value: int | None) -> int | None:
    return None if value == -1 else value


def micros(ms: int | None) -> int | None:
    return None if ms is None or not oracle.FIRST_MS <= ms <= oracle.LAST_MS else ms * 1000


def record_answer(batch: Row, java: Row, read: Row) -> Row:
    """The expected row of ``kafka_records`` for Java's record; ``read`` has long values."""

    def value(stored: Any, data: bytes | None) -> bytes | None:
        if isinstance(stored, dict):
            assert is_value(stored, data)
            return data
        return None if stored is None else base64.b64decode(stored)

    modern = batch["magic"] == 2
    time = no_time(java["timestamp"])
    stored = zip(java.get("headers") or [], read["headers"] or [], strict=True)
    headers = [{"key": name, "value": value(content, header["value"])} for (name, content), header in stored]
    # An inner message of magic 0 has no timestamp type, regardless of its wrapper's (KAFKA-4298).
    typed = modern or java.get("magic", batch["magic"]) == 1
    return {
        "offset": java["offset"],
        "timestamp": micros(time),
        "timestamp_ms": time,
        "timestamp_type": batch["timestampType"] if typed else None,
        "key": value(java["key"], read["key"]),
        "value": value(java["value"], read["value"]),
        "headers": headers if modern else None,
        "position": batch["position"],
        "magic": batch["magic"],
        "compression": batch["codec"],
        "producer_id": batch["producerId"] if modern else None,
        "producer_epoch": batch["producerEpoch"] if modern else None,
        "sequence": java["sequence"] if modern else None,
        "partition_leader_epoch": batch["partitionLeaderEpoch"] if modern else None,
        "is_transactional": bool(batch["isTransactional"]),
        "is_control": bool(batch["isControl"]),
        "control_type": java.get("controlType"),
        "error": None,
    }


def record_answers(log: Log) -> list[Row]:
    """The expected rows for all records that Java reads from valid batches, in order."""
    read = iter([row for row in oracle.records(log.data) if row["error"] is None])
    return [
        record_answer(batch, java, next(read)) for batch in log.batches if batch["isValid"] for java in batch["records"]
    ]


def batch_answer(batch: Row) -> Row:
    """The expected row of ``kafka_batches`` for a valid entry."""
    modern = batch["magic"] == 2
    wrapper = not modern and batch["codec"] != "none"
    stamp = batch["timestampType"]
    return {
        "position": batch["position"],
        "size": batch["size"],
        "base_offset": None if wrapper else batch["baseOffset"],
        "last_offset": batch["lastOffset"],
        "magic": batch["magic"],
        "crc": batch["crc"],
        "crc_valid": batch["isValid"],
        "compression": batch["codec"],
        "timestamp_type": None if stamp == "NoTimestampType" else stamp,
        "base_timestamp_ms": no_time(batch["baseTimestamp"]) if modern else None,
        "max_timestamp_ms": no_time(batch["maxTimestamp"]),
        "record_count": batch["count"] if modern else None if wrapper else 1,
        "partition_leader_epoch": batch["partitionLeaderEpoch"] if modern else None,
        "producer_id": batch["producerId"] if modern else None,
        "producer_epoch": batch["producerEpoch"] if modern else None,
        "base_sequence": batch["baseSequence"] if modern else None,
        "last_sequence": batch["lastSequence"] if modern else None,
        "is_transactional": bool(batch["isTransactional"]),
        "is_control": bool(batch["isControl"]),
        "delete_horizon_ms": batch["deleteHorizonMs"],
        "error": None if batch["isValid"] else "CRC_MISMATCH",
    }


def sizes(message: bytes) -> tuple[int, int]:
    """The stored sizes of key and value. Java reads any negative size as null."""
    at = 14 if message[4] == 1 else 6
    key = int.from_bytes(message[at : at + 4], "big", signed=True)
    at += 4 + max(key, 0)
    return key, int.from_bytes(message[at : at + 4], "big", signed=True)


def message_answer(java: Row, message: bytes) -> Row:
    """The expected results of ``kafka_crc`` … ``kafka_is_valid`` for Java's line; None for values with only a digest."""
    key_size, value_size = sizes(message)
    stored = (None if isinstance(java[name], dict) else java[name] for name in ("key", "value"))
    key, value = (None if text is None else base64.b64decode(text) for text in stored)
    time = no_time(java["timestamp"]) if java["magic"] else None
    error = None if java["isValid"] else "CRC_MISMATCH"
    return {
        "crc": java["crc"],
        "crc_computed": java["computedCrc"],
        "crc_valid": java["isValid"],
        "magic": java["magic"],
        "attributes": java["attributes"],
        "compression": java["codec"],
        "timestamp": micros(time),
        "timestamp_ms": time,
        "timestamp_type": java["timestampType"] if java["magic"] else None,
        "key": key,
        "key_size": key_size,
        "value": value,
        "value_size": value_size,
        "error": error,
        "is_valid": error is None,
    }


SMALL = 8 << 10  # [bytes]


def cases() -> list[Case]:
    """Cases of the single messages, and of the smaller log bytes with every record and header."""
    result = []
    for magic in (0, 1):
        for number, (message, java) in enumerate(messages(magic)):
            if all(not isinstance(java[name], dict) for name in ("key", "value")):
                answer = message_answer(java, message)
                answers = {f"kafka_{name}": value for name, value in answer.items()} | {"kafka_message": answer}
                name = f"message {number} of magic {magic}"
                result.append(Case(name, "tests/data/kafka/messages.tar.xz", message, answers))
    for archive_name in SEGMENTS:
        for log in logs((archive_name,)):
            intact = all(batch["isValid"] for batch in log.batches) and not log.java[-1]["trailingBytes"]
            if intact and len(log.data) <= SMALL:
                answers = {
                    "kafka_records": record_answers(log),
                    "kafka_batches": [batch_answer(batch) for batch in log.batches],
                    "kafka_valid_bytes": len(log.data),
                    "kafka_next_offset": log.batches[-1]["lastOffset"] + 1,
                }
                result.append(Case(log.name, f"tests/data/kafka/{archive_name}.tar.xz", log.data, answers))
    return result
