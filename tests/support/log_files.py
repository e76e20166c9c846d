"""Segments for the tests of streams, encoded only with `struct` and written like a broker."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import crc32c

from tests.kafka.test_damage import record

CREATED = 1_600_000_000_000


def entry(base: int, values: Iterable[bytes], epoch: int = 0, time: int | None = None) -> bytes:
    """A record batch of values, starting at an offset."""
    records = [record(value, number) for number, value in enumerate(values)]
    count, at = len(records), CREATED + base % 10**9 if time is None else time
    covered = struct.pack(">hiqqqhii", 0, count - 1, at, at, -1, -1, -1, count) + b"".join(records)
    return struct.pack(">qiibI", base, 9 + len(covered), epoch, 2, crc32c.crc32c(covered)) + covered


def entries(first: int, stop: int, tag: str = "", size: int = 1, epoch: int = 0) -> list[bytes]:
    """Batches of ``size`` records each. A record's value contains its origin: tag and offset."""
    return [
        entry(base, (f"{tag}{offset}".encode() for offset in range(base, min(base + size, stop))), epoch)
        for base in range(first, stop, size)
    ]


def segment(folder: Path, base: int, data: Iterable[bytes]) -> Path:
    """Write a segment file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base:020}.log"
    path.write_bytes(b"".join(data))
    return path


def with_timestamp_type(row: dict[str, Any]) -> dict[str, Any]:
    """A row of ``kafka_records`` with the number of its timestamp type in Kafka's ``TimestampType``."""
    numbers = {"CreateTime": 0, "LogAppendTime": 1, None: -1 if row["magic"] == 0 else None}
    return row | {"timestampType": numbers[row["timestamp_type"]]}
