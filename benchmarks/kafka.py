"""Kafka: log bytes to columns compared with aiokafka and kafka-python, codecs with the library's own time; messages."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import cramjam
import pyarrow as pa
from aiokafka.record._crecords import DefaultRecordBatchBuilder, MemoryRecords
from kafka.record import MemoryRecords as PythonMemoryRecords

from benchmarks.report import Row, above, faster, no_slower, table
from benchmarks.timing import Timing, amount, interleave
from sparkwire.core.builders import columns_of
from sparkwire.core.column import binary_of
from sparkwire.kafka.batch_headers import header_block
from sparkwire.kafka.cluster.internal_json import decode_internal_record
from sparkwire.kafka.codecs import BY_NAME, NAMES
from sparkwire.kafka.entry_payloads import EVERY_OFFSET, payloads_of
from sparkwire.kafka.framing import IGNORED, frame_blocks, framing_of
from sparkwire.kafka.inflate import DECODERS, planned_blocks
from sparkwire.kafka.messages import MessageColumn
from sparkwire.kafka.records import RECORDS_TABLE, scan_records

COLUMNS = ("offset", "timestamp", "key", "value")
COLUMNS_TABLE = [column for column in RECORDS_TABLE if column.name in COLUMNS]
MESSAGE_COLUMNS = (
    "crc", "crc_valid", "magic", "attributes", "compression", "timestamp", "timestamp_type", "key", "key_size", "value",
    "value_size", "error",
)  # fmt: skip
PER_BATCH = 100
LOG_BYTES = amount(8 << 20, trial=1 << 20)
PEER_BYTES = amount(2 << 20, trial=1 << 18)  # bytes that the peers read; their time is scaled
PYTHON_BYTES = amount(1 << 18, trial=1 << 16)
MESSAGES = amount(500_000, trial=2000)
_WORDS = ("alice", "bob", "carol", "view", "purchase", "search", "add_to_cart", "SKU-1234", "amount")


def values(size: int, count: int = 4000) -> list[bytes]:
    """JSON-like values of ``size`` bytes."""
    chance = random.Random(5)
    result = []
    for _ in range(count):
        text = f'{{"id":{chance.randrange(10**6)},"user":"{chance.choice(_WORDS)}",'
        while len(text) < size:
            text += f'"{chance.choice(_WORDS)}":"{chance.choice(_WORDS)}{chance.randrange(10**4)}",'
        result.append(text[:size].encode())
    return result


def log(total: int, size: int, codec: int = 0, pool: Sequence[bytes] = ()) -> tuple[bytes, int]:
    """Batches of 100 records with about ``total`` bytes before compression, and their number of records."""
    out, offset, pool = bytearray(), 0, pool or values(size)
    while offset * (size + 20) < total:
        builder = DefaultRecordBatchBuilder(
            magic=2, compression_type=codec, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
            batch_size=1 << 30,
        )  # fmt: skip
        for i in range(PER_BATCH):
            number = offset + i
            builder.append(
                i, 1_605_339_932_000 + 3 * number, b"key%05d" % (number % 10**5), pool[number % len(pool)], []
            )
        batch = bytearray(builder.build())
        batch[0:8] = struct.pack(">q", offset)
        out += batch
        offset += PER_BATCH
    return bytes(out), offset


def columns(data: pa.Array) -> dict[str, pa.Array]:
    """Checked, decompressed, offset, timestamp, key and value as Arrow columns."""
    return columns_of(scan_records(data, columns=COLUMNS), COLUMNS_TABLE)


def everything(data: pa.Array) -> dict[str, pa.Array]:
    return columns_of(scan_records(data), RECORDS_TABLE)


def aiokafka_columns(data: bytes) -> list[pa.Array]:
    """The same four columns by aiokafka's C extension."""
    result: list[list[Any]] = [[], [], [], []]
    offset, timestamp, key, value = (column.append for column in result)
    records = MemoryRecords(data)
    while (batch := records.next_batch()) is not None:
        if not batch.validate_crc():
            raise ValueError("checksum")
        for record in batch:
            offset(record.offset)
            timestamp(record.timestamp)
            key(record.key)
            value(record.value)
    types = (pa.int64(), pa.timestamp("ms", "UTC"), pa.binary(), pa.binary())
    return [pa.array(column, type) for column, type in zip(result, types, strict=True)]


def kafka_python_iterates(data: bytes) -> int:
    """Read checksum, key and value of every record, and keep nothing."""
    total = 0
    records = PythonMemoryRecords(data)
    while (batch := records.next_batch()) is not None:
        if not batch.validate_crc():
            raise ValueError("checksum")
        for record in batch:
            total += len(record.key) + len(record.value)
    return total


def library_calls(data: bytes) -> Callable[[], None]:
    """Only the calls of the codec library for these payloads, with prepared arguments."""
    calls: list[tuple[Callable[[memoryview, memoryview], int], memoryview, memoryview]] = []
    source = binary_of(pa.array([data], pa.binary()))
    whole = source.data.data
    for frames in frame_blocks(framing_of(source, IGNORED)):
        entries = header_block(source.data, frames)
        payloads = payloads_of(source.data, entries, EVERY_OFFSET)
        planned, ends = planned_blocks(source.data, entries, payloads)
        first = 0
        for i, codec in enumerate(payloads.codec):
            blocks = slice(first, int(ends[i]))
            first = blocks.stop
            if codec == BY_NAME["lz4"].id:  # the library's decoder of frames
                out = memoryview(bytearray(int(planned.room[blocks].sum())))
                calls.append((cramjam.lz4.decompress_into, whole[payloads.first[i] : payloads.last[i]], out))
                continue
            for number, start, size, room in zip(*(column[blocks] for column in planned), strict=True):
                calls.append((DECODERS[int(number)], whole[start : start + size], memoryview(bytearray(int(room)))))

    def run() -> None:
        for call, payload, out in calls:
            call(payload, out)

    return run


def messages(count: int, size: int = 100) -> pa.Array:
    """Messages of magic 1 with keys of 10 bytes."""
    pool = values(size)
    rows = []
    for i in range(count):
        covered = struct.pack(">bbqi10si", 1, 0, 1_605_339_932_000 + i, 10, b"key%07d" % i, size) + pool[i % len(pool)]
        rows.append(struct.pack(">I", zlib.crc32(covered)) + covered)
    return pa.array(rows, pa.binary())


def message_columns(data: pa.Array) -> list[pa.Array]:
    result = MessageColumn(data)
    return [getattr(result, name)() for name in MESSAGE_COLUMNS]


_PLAIN = struct.Struct(">Ibbqi")


def struct_messages(data: Sequence[Any]) -> int:
    """The same fields with struct and zlib, a tuple for each message."""
    result = []
    for message in data:
        crc, magic, attributes, timestamp, key_size = _PLAIN.unpack_from(message)
        key = message[18 : 18 + key_size]
        (value_size,) = struct.unpack_from(">i", message, 18 + key_size)
        value = message[22 + key_size : 22 + key_size + value_size]
        right = zlib.crc32(message[4:]) == crc
        result.append((crc, right, magic, attributes, timestamp, key, key_size, value, value_size))
    return len(list(zip(*result, strict=True)))


def rows() -> list[Row]:
    """The claims about Kafka."""
    return [
        *plain_rows(100, 15, 60), *plain_rows(1000, 7, 10), *codec_rows(), *message_rows(), *metadata_rows(), *growth_rows(),
    ]  # fmt: skip


def plain_rows(size: int, over_aiokafka: float, over_kafka_python: float) -> list[Row]:
    data, count = log(LOG_BYTES, size)
    some, some_count = log(PEER_BYTES, size)
    few, few_count = log(PYTHON_BYTES, size)
    column = pa.array([data], pa.binary())
    assert columns(column)["value"].slice(0, some_count) == aiokafka_columns(some)[3]
    times = interleave(
        {
            "ours": lambda: columns(column),
            "all": lambda: everything(column),
            "aiokafka": lambda: aiokafka_columns(some),
            "kafka-python": lambda: kafka_python_iterates(few),
        },
        warm=4,
    )
    ours, aiokafka, python = (
        times[name].per(n) for name, n in (("ours", count), ("aiokafka", some_count), ("kafka-python", few_count))
    )
    work = f"batches of 100 x {size} B, CRC checked, to 4 columns"
    return [
        faster(work, ours, "aiokafka to the same columns", aiokafka, over_aiokafka, 1, "records"),
        faster(work, ours, "kafka-python iterating", python, over_kafka_python, 1, "records"),
        faster(f"batches of 100 x {size} B to all 18 columns", times["all"].per(count), "aiokafka to 4 columns",
               aiokafka, over_aiokafka / 2, 1, "records"),
    ]  # fmt: skip


def codec_rows() -> list[Row]:
    """The time for each codec is the time of the library's calls plus the time for the same records uncompressed."""
    result = []
    for size in (100, 1000):
        plain, count = log(LOG_BYTES // 2, size)
        plain_column = pa.array([plain], pa.binary())
        for codec in map(NAMES.index, ("lz4", "snappy", "zstd", "gzip")):
            data, same = log(LOG_BYTES // 2, size, codec)
            assert same == count
            column = pa.array([data], pa.binary())
            candidates: dict[str, Callable[[], object]] = {
                "ours": partial(columns, column),
                "plain": partial(columns, plain_column),
                "library": library_calls(data),
            }
            times = interleave(candidates, warm=4)
            parts = zip(times["library"].samples, times["plain"].samples, strict=True)
            whole = Timing(tuple(library + decoding for library, decoding in parts))
            work = f"batches of 100 x {size} B, {NAMES[codec]}, to 4 columns"
            result.append(no_slower(work, times["ours"], "the library's calls + uncompressed", whole, 1.3))
    return result


def message_rows() -> list[Row]:
    column = messages(MESSAGES)
    few = column[: MESSAGES // 10].to_pylist()
    times = interleave(
        {"ours": lambda: message_columns(column), "struct": lambda: struct_messages(few)},
        warm=4,
    )
    ours, peer = times["ours"].per(MESSAGES), times["struct"].per(len(few))
    work = "messages of magic 1, 132 B, CRC checked, to 12 columns"
    return [faster(work, ours, "struct + zlib", peer, 10, 1, "messages")]


def metadata_rows() -> list[Row]:
    """A log of KRaft's metadata, mostly changes of partitions."""
    records = [
        bytes([1, 5, 1]) + struct.pack(">i16s", partition, b"sixteen bytes id")
        + bytes([2, 0, 13, 4]) + struct.pack(">iii", 1, 2, 3) + bytes([1, 4]) + struct.pack(">i", 2)
        for partition in range(1000)
    ]  # fmt: skip
    data, count = log(LOG_BYTES // 4, len(records[0]), pool=records)
    column = pa.array([data], pa.binary())
    topic = pa.array(["__cluster_metadata"] * count)

    def as_json() -> object:
        result = columns(column)
        return decode_internal_record(topic, pa.nulls(count, pa.binary()), result["value"])

    taken = interleave({"ours": as_json}, warm=2)["ours"]
    rate = Timing(tuple(count / seconds / 1e6 for seconds in taken.samples))
    return [above("a log of metadata, kafka_internal_record, a core", rate, "M records/s", 0.03)]


def growth_rows() -> list[Row]:
    """Ten times the bytes take ten times as long."""
    part, _ = log(LOG_BYTES // 2, 1000)
    once, tenfold = pa.array([part * 10], pa.binary()), pa.array([part * 100], pa.binary())
    times = interleave({"once": lambda: columns(once), "tenfold": lambda: columns(tenfold)}, rounds=5)
    return [no_slower("a log of 400 MB, a tenth of it", times["tenfold"].per(10), "one of 40 MB", times["once"], 1.15)]


def main() -> None:
    print(table(rows()))


if __name__ == "__main__":
    main()
