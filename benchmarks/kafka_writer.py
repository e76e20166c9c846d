"""Kafka's writers compared with kafka-python's builder, record by record."""

from __future__ import annotations

import kafka.record.memory_records
import numpy as np
import pyarrow as pa

from benchmarks.report import Row, below, faster
from benchmarks.timing import amount, interleave
from sparkwire import FUNCTIONS
from sparkwire.kafka.codecs import BY_NAME, compressed

RECORDS = amount(50_000, trial=2000)
BATCH = 100  # records
SIZE = 1000  # size of a value [bytes]
KEY = 16  # [bytes]
FIRST = 1_600_000_000_000  # [ms since epoch]
LOOPED = 1_000  # records that the builder's loop writes; its time is scaled
COMPRESSED = amount(10_000, trial=1000)  # records that codecs compress
CODECS = ("gzip", "snappy", "lz4", "zstd")
_SHORT = 32  # size of the repeated part of values, so that they are compressible [bytes]


def columns(shrink: bool) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Keys, values and timestamps."""
    rng = np.random.default_rng(7)
    values = rng.integers(0, 256, (RECORDS, SIZE), np.uint8)
    if shrink:
        values[:, _SHORT:] = np.tile(values[:, :_SHORT], SIZE // _SHORT + 1)[:, : SIZE - _SHORT]
    keys = rng.integers(0, 256, (RECORDS, KEY), np.uint8)
    return _blobs(keys), _blobs(values), pa.array(FIRST + np.arange(RECORDS))


def _blobs(rows: np.ndarray) -> pa.Array:
    n, size = rows.shape
    offsets = np.arange(n + 1, dtype=np.int32) * size
    return pa.Array.from_buffers(pa.binary(), n, [None, pa.py_buffer(offsets), pa.py_buffer(rows.ravel())])


def batches(key: pa.Array, value: pa.Array, timestamp: pa.Array) -> pa.Array:
    """The records in arrays of ``BATCH``."""
    records = pa.StructArray.from_arrays([key, value, timestamp], ["key", "value", "timestamp_ms"])
    return pa.ListArray.from_arrays(np.arange(0, RECORDS + 1, BATCH, dtype=np.int32), records)


def written(records: pa.Array, magic: int, codec: str) -> pa.Array:
    n = len(records)
    offset, compression = pa.repeat(pa.scalar(0, pa.int64()), n), pa.repeat(codec, n)
    version = pa.repeat(pa.scalar(magic, pa.int32()), n)
    return FUNCTIONS["to_kafka_records"].decode(records, offset, compression, version)


def built(rows: list[tuple[int, bytes, bytes]], magic: int) -> list[memoryview]:
    """The same by kafka-python."""
    made = []
    for first in range(0, len(rows), BATCH):
        builder = kafka.record.memory_records.MemoryRecordsBuilder(magic, 0, 2**30)
        for timestamp, key, value in rows[first : first + BATCH]:
            builder.append(timestamp, key, value)
        builder.close()
        made.append(builder.buffer())
    return made


def rows() -> list[Row]:
    """The claims about Kafka's writers."""
    key, value, timestamp = columns(shrink=False)
    records = batches(key, value, timestamp)
    some = list(zip(*(column[:LOOPED].to_pylist() for column in (timestamp, key, value)), strict=True))
    assert built(some[:BATCH], 1) == [written(records[:1], 1, "none")[0].as_py()]
    times = interleave(
        {
            "batches": lambda: written(records, 2, "none"),
            "sets": lambda: written(records, 1, "none"),
            "messages": lambda: FUNCTIONS["to_kafka_message"].decode(key, value, timestamp),
            "builder of batches": lambda: built(some, 2),
            "builder of sets": lambda: built(some, 1),
        }
    )
    ours = {name: times[name].per(RECORDS) for name in ("batches", "sets", "messages")}
    theirs = {name: times[f"builder of {name}"].per(LOOPED) for name in ("batches", "sets")}
    work = "records of 1 KB to record batches of 100"
    return [
        faster(work, ours["batches"], "kafka-python's builder", theirs["batches"], 8, 1, "records"),
        below("the same, one record", ours["batches"].per(1e-9), "ns", 500),
        faster("to message sets of magic 1", ours["sets"], "kafka-python's builder", theirs["sets"], 15, 1, "records"),
        faster("to messages", ours["messages"], "kafka-python's builder", theirs["sets"], 15, 1, "records"),
        *compressed_rows(),
    ]


def compressed_rows() -> list[Row]:
    """Compressed batches compared with the codec alone on the same bytes, one piece for each batch."""
    records = batches(*columns(shrink=True))[: COMPRESSED // BATCH]
    sections = [memoryview(batch)[61:] for batch in written(records, 2, "none").to_pylist()]
    return [against_codec(records, sections, codec) for codec in CODECS]


def against_codec(records: pa.Array, sections: list[memoryview], codec: str) -> Row:
    number = BY_NAME[codec].id
    candidates = {
        "ours": lambda: written(records, 2, codec),
        "alone": lambda: [compressed(number, section, 2) for section in sections],
    }
    times = interleave(candidates, rounds=5)
    ours, alone = (times[name].per(COMPRESSED) for name in candidates)
    return faster(f"to batches compressed with {codec}", ours, "the codec alone", alone, 0.25, 1, "records")
