"""The input of the Java writers: lines with the batches in Kafka's results, and their records.

The results have a digest for a long value, and the time of the log instead of the producer's. So the records come from the
oracle; the tests compare each of them with the results.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from crc32c import crc32c

from tests.support.kafka_cases import Log, Row
from tests.support.oracles import kafka as oracle

OLD, MIDDLE, NEW = "0.8.2.2", "0.10.0.1", "3.8.0"
_LEVELS = {"v2_gzip": (None, 9), "v2_lz4": (None, 17), "v2_zstd": (None, 19, -5)}
"""compression levels, in turn, by folder; the codec's default in other folders"""
_OF_LOG = 8
"""the bit in the attributes: the log's time replaces those of the records"""


class Batch(NamedTuple):
    """A batch, or a message of magic 0 or 1: its stored bytes, and the input to write them."""

    log: Log
    number: int
    version: str
    codec: str
    data: bytes
    lines: str


def batches(log: Log) -> Iterator[Batch]:
    """The batches of a file, in order."""
    folder = log.name.partition("/")[0]
    levels = _LEVELS.get(folder, (None,))
    is_new = False
    for number, batch in enumerate(log.batches):
        is_new = is_new or batch["magic"] == 2
        data = log.data[batch["position"] : batch["position"] + batch["size"]]
        lines = "\n".join(_lines(batch, data, levels[number % len(levels)]))
        yield Batch(log, number, _version(log.name, batch["magic"], is_new), batch["codec"], data, lines)


def _version(name: str, magic: int, is_new: bool) -> str:
    """The version of Kafka that wrote a batch. ``is_new``: the batch is after the first batch of magic 2 in its log."""
    if is_new or "_k38_" in name:
        return NEW
    return MIDDLE if magic == 1 or "_from_v1_producer_" in name else OLD


def _lines(batch: Row, data: bytes, level: int | None) -> Iterator[str]:
    yield _columns(
        "batch",
        batch["magic"],
        batch["codec"],
        level,
        *(batch[name] for name in ("timestampType", "baseOffset", "lastOffset", "maxTimestamp", "producerId")),
        *(batch[name] for name in ("producerEpoch", "baseSequence", "isTransactional", "isControl")),
        batch["partitionLeaderEpoch"],
        batch["deleteHorizonMs"],
    )
    for record, java in zip(_records(batch, data), batch["records"], strict=True):
        headers = [side for header in record["headers"] or () for side in (header["key"].encode(), header["value"])]
        time = -1 if record["timestamp_ms"] is None else record["timestamp_ms"]
        magic = java.get("magic", batch["magic"])
        yield _columns("record", record["offset"], time, magic, record["key"], record["value"], *headers)


def _records(batch: Row, data: bytes) -> list[Row]:
    """The records of a batch with the producer's times."""
    entry = bytearray(data)
    if batch["timestampType"] == "LogAppendTime":
        if batch["magic"] == 2:
            entry[22] ^= _OF_LOG
            entry[17:21] = crc32c(bytes(entry[21:])).to_bytes(4, "big")
        else:
            entry[17] ^= _OF_LOG
            entry[12:16] = zlib.crc32(entry[16:]).to_bytes(4, "big")
    return oracle.records(bytes(entry))


def _columns(*values: Any) -> str:
    return "\t".join(map(_column, values))


def _column(value: Any) -> str:
    if value is None:
        return "-"
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
