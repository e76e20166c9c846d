"""kafka-python and aiokafka read the golden bytes like sparkwire, as far as they can."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka.record._crecords import MemoryRecords as CMemoryRecords
from aiokafka.record.memory_records import MemoryRecords as AioMemoryRecords
from kafka.record import MemoryRecords

from tests.support import kafka_cases as golden
from tests.support.arrow import ask
from tests.support.kafka_cases import Log

# Neither reads a wrapper of magic 1 around messages of magic 0, as the cleaner of 0.10.0 wrote them.
NOT_FOR_PEERS = ("v1_kafka4298_wrapper1_inner0",)

LOGS = [log for log in golden.logs() if not log.name.startswith(NOT_FOR_PEERS)]


def found_by(reader: Any, data: bytes) -> Iterator[tuple[Any, ...]]:
    """Offset, timestamp, key, value and headers of every record."""
    records = reader(data)
    while (batch := records.next_batch()) is not None:
        for record in batch:
            time = None if record.timestamp in (None, -1) else record.timestamp
            headers = [(key, value) for key, value in record.headers or []]
            yield record.offset, time, bytes_of(record.key), bytes_of(record.value), headers


def bytes_of(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def ours(data: bytes) -> list[tuple[Any, ...]]:
    return [
        (
            row["offset"],
            row["timestamp_ms"],
            row["key"],
            row["value"],
            [(header["key"], header["value"]) for header in row["headers"] or []],
        )
        for row in ask("kafka_records", [data])[0]
    ]


def intact(log: Log) -> bytes:
    """The bytes of a log up to the first other entry."""
    (size,) = ask("kafka_valid_bytes", [log.data])
    return log.data[:size]


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_kafka_python(log: Log) -> None:
    data = intact(log)
    assert ours(data) == list(found_by(MemoryRecords, data))


def is_read_by_aiokafka(log: Log) -> bool:
    return all(batch["magic"] > 0 or batch["codec"] != "lz4" for batch in log.batches)


@pytest.mark.parametrize("log", [log for log in LOGS if is_read_by_aiokafka(log)], ids=lambda log: log.name)
def test_aiokafka(log: Log) -> None:
    data = intact(log)
    mixed = len({batch["magic"] for batch in log.batches}) > 1
    # The first entry selects the C reader, which cannot change; a mixed log needs the Python reader.
    reader = AioMemoryRecords if mixed else CMemoryRecords
    assert ours(data) == list(found_by(reader, data))
