"""Written messages and sets: the same bytes as Kafka's, and readable by other readers."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import aiokafka.record.memory_records
import kafka.record.memory_records
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkwire import FUNCTIONS
from sparkwire.kafka import codecs
from sparkwire.kafka.batch_bytes import bound_records
from sparkwire.kafka.layout import BATCH_SIZE
from sparkwire.kafka.to_records import records_of
from tests.support import kafka_cases as golden
from tests.support.arrow import enlarged, plain
from tests.support.kafka_cases import Row
from tests.support.oracles import kafka as oracle

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
RECORD = pa.struct([("key", pa.binary()), ("value", pa.binary()), ("timestamp_ms", pa.int64()), ("headers", HEADERS)])
FORMATS = [(magic, codec) for magic in (0, 1, 2) for codec in oracle.CODECS if magic == 2 or codec != "zstd"]
HEADER_SIZES = (26, 34, 61)  # size of a compressed entry without its payload, by magic [bytes]
every_format = pytest.mark.parametrize(("magic", "codec"), FORMATS)


def write(
    rows: Sequence[Sequence[Row] | None], magic: int, codec: str = "none", base_offset: int | list[int] = 0
) -> list[Any]:
    """The results of ``to_kafka_records`` for lists of records, with one offset or an offset for each list."""
    return write_array(pa.array(rows, pa.list_(RECORD)), magic, codec, base_offset)


def write_array(records: pa.Array, magic: int, codec: str = "none", base_offset: int | list[int] = 0) -> list[Any]:
    n = len(records)
    offsets = [base_offset] * n if isinstance(base_offset, int) else base_offset
    options = pa.array(offsets), pa.array([codec] * n), pa.array([magic] * n, pa.int32())
    return plain(FUNCTIONS["to_kafka_records"].decode(records, *options))


def write_messages(key: Any, value: Any, *rest: Any) -> list[Any]:
    types = pa.binary(), pa.binary(), pa.int64(), pa.int32()
    columns = [pa.array(column, type) for column, type in zip((key, value, *rest), types, strict=False)]
    return plain(FUNCTIONS["to_kafka_message"].decode(*columns))


def read(data: bytes) -> list[Row]:
    rows: list[Row] = plain(FUNCTIONS["kafka_records"].decode(pa.array([data], pa.binary())))[0]
    return rows


def record(key: bytes | None = None, value: bytes | None = None, timestamp_ms: int | None = None, **more: Any) -> Row:
    return {"key": key, "value": value, "timestamp_ms": timestamp_ms, "headers": None} | more


def expected(records: Sequence[Row], magic: int) -> list[Row]:
    """The fields of records as readers return them."""
    if magic == 2:
        return [row | {"headers": row["headers"] or []} for row in records]
    return [row | {"headers": None, "timestamp_ms": row["timestamp_ms"] if magic else None} for row in records]


def fields(rows: Sequence[Row]) -> list[Row]:
    return [{name: row[name] for name in ("key", "value", "timestamp_ms", "headers")} for row in rows]


# -- Kafka's own bytes


def writable(batch: Row) -> bool:
    """Whether a producer without transactions, or a broker for it, writes such an entry."""
    return (
        batch["isValid"]
        and batch["records"]
        and batch["timestampType"] != "LogAppendTime"
        and not batch["isControl"]
        and batch["producerId"] == -1
        and batch["deleteHorizonMs"] is None
        and all(row["offset"] == batch["baseOffset"] + i for i, row in enumerate(batch["records"]))
        and not (batch["magic"] == 1 and any(row["magic"] == 0 for row in batch["records"]))
    )


def test_sets_are_the_same_as_kafkas() -> None:
    """Every such entry of the golden logs; for compressed entries, the input of the codec."""
    entries: dict[tuple[int, str], list[tuple[int, bytes]]] = defaultdict(list)
    for log in golden.logs():
        if log.name.startswith(("rdkafka/rdkafka_v0", "rdkafka/rdkafka_v1")):
            continue  # librdkafka leaves a wrapper's offset 0
        for batch in filter(writable, log.batches):
            data = log.data[batch["position"] : batch["position"] + batch["size"]]
            entries[batch["magic"], batch["codec"]].append((batch["baseOffset"], data))
    for (magic, codec), known in entries.items():
        lists = [fields(oracle.records(data)) for _, data in known]
        written = write(lists, magic, codec, [base for base, _ in known])
        for (_, data), ours in zip(known, written, strict=True):
            if magic == 2:  # a broker sets the leader epoch, which no checksum covers
                data = data[:12] + b"\xff" * 4 + data[16:]
            assert opened(ours, magic, codec) == opened(data, magic, codec), data.hex()
    assert set(entries) == set(FORMATS)
    assert all(len(entries[magic, "none"]) > 150 for magic in (0, 1, 2))


def opened(entry: bytes, magic: int, codec: str) -> tuple[bytes, ...]:
    """An entry with a decompressed payload, without the size, the checksum and the payload's size."""
    if codec == "none":
        return (entry,)
    header, payload = entry[: HEADER_SIZES[magic]], entry[HEADER_SIZES[magic] :]
    inflated = oracle.decompress(oracle.CODECS.index(codec), payload, magic)
    if magic == 2:
        return header[:8], header[12:17], header[21:], inflated
    return header[:8], header[16:-4], inflated


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_are_the_same_as_kafkas(magic: int) -> None:
    known = [(message, java, oracle.message(message)) for message, java in golden.messages(magic) if java["isValid"]]
    plain_ones = [
        (m, row) for m, java, row in known if java["codec"] == "none" and java["timestampType"] != "LogAppendTime"
    ]
    assert len(plain_ones) > 150
    columns = [[row[name] for _, row in plain_ones] for name in ("key", "value", "timestamp_ms")]
    assert write_messages(*columns, [magic] * len(plain_ones)) == [message for message, _ in plain_ones]


def test_frames_are_the_same_as_the_java_clients() -> None:
    """A value that does not shrink, and a value that does, each with several blocks."""
    rows = [record(value=random.Random(1).randbytes(200_000)), record(value=bytes(200_000))]
    for magic, checksum in ((0, "1a"), (1, "82"), (2, "82")):
        payload = write([rows], magic, "lz4")[0][HEADER_SIZES[magic] :]
        assert payload[:7].hex() == "04224d186040" + checksum
        second = payload[11 + int.from_bytes(payload[7:11], "little") % (1 << 31) :]
        assert second[:4] == (65536 | 1 << 31).to_bytes(4, "little")  # stored uncompressed
        assert payload[-4:] == bytes(4)
    payload = write([rows], 2, "snappy")[0][61:]
    assert payload[:16].hex() == "82534e41505059000000000100000001"
    assert oracle.snappy_block(payload[20 : 20 + int.from_bytes(payload[16:20], "big")])[32767:] != b""
    payload = write([rows], 2, "gzip")[0][61:]
    assert payload[:10].hex() == "1f8b08000000000000ff"
    payload = write([rows], 2, "zstd")[0][61:]
    assert payload[:6].hex() == "28b52ffd0058"  # neither size nor checksum, a window of 2 MiB


# -- other readers


def some_records(magic: int) -> list[Row]:
    chance = random.Random(magic)
    headers = [
        {"key": "h", "value": b"1"},
        {"key": "h", "value": None},
        {"key": "", "value": b""},
        {"key": "ä€😀", "value": b"2"},
    ]
    return [
        record(
            chance.choice((None, b"", b"key", chance.randbytes(300))),
            chance.choice((None, b"", b"value" * 50, chance.randbytes(3000))),
            1_600_000_000_000 + chance.randrange(-5000, 5000),
            headers=headers[: chance.randrange(5)] if magic == 2 else None,
        )
        for _ in range(200)
    ]


PEERS = [(peer, *format) for peer in ("kafka-python", "aiokafka") for format in FORMATS]
PEERS.remove(("aiokafka", 0, "lz4"))  # aiokafka does not read this


@pytest.mark.parametrize(("peer", "magic", "codec"), PEERS)
def test_peers_read_the_same(peer: str, magic: int, codec: str) -> None:
    written = some_records(magic)
    [data] = write([written], magic, codec, 1000)
    memory_records = (kafka if peer == "kafka-python" else aiokafka).record.memory_records
    batches = memory_records.MemoryRecords(data)
    rows = []
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc()
        rows += [(r.offset, r.key, r.value, r.timestamp, list(r.headers)) for r in batch]
    assert rows == [
        (
            1000 + i,
            row["key"],
            row["value"],
            row["timestamp_ms"] if magic else None,
            [(header["key"], header["value"]) for header in row["headers"] or ()],
        )
        for i, row in enumerate(written)
    ]


@every_format
def test_the_oracle_reads_the_same(magic: int, codec: str) -> None:
    written = some_records(magic)[:50]
    rows = oracle.records(write([written], magic, codec, 7)[0])
    assert fields(rows) == expected(written, magic)
    assert [row["offset"] for row in rows] == list(range(7, 57))


# -- the circle

circle = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
blobs = st.none() | st.binary(max_size=40)
stamps = st.none() | st.integers(-(2**63), 2**63 - 1).filter(lambda stamp: stamp != -1)
headers = st.lists(st.fixed_dictionaries({"key": st.text(max_size=5), "value": blobs}), max_size=3)
records = st.builds(record, blobs, blobs, stamps, headers=st.none() | headers)


@circle
@given(
    st.lists(st.none() | st.lists(records, max_size=5), min_size=1, max_size=4),
    st.integers(0, 2**63 - 10),
    st.sampled_from(FORMATS),
)
def test_records_round_trip(rows: list[list[Row] | None], base_offset: int, format: tuple[int, str]) -> None:
    magic, codec = format
    if magic < 2:
        rows = [row and [record | {"headers": None} for record in row] for row in rows]
    for row, data in zip(rows, write(rows, magic, codec, base_offset), strict=True):
        if row is None:
            assert data is None
            continue
        got = read(data)
        assert fields(got) == expected(row, magic)
        assert [r["offset"] for r in got] == [base_offset + i for i in range(len(row))]
        assert {(r["magic"], r["compression"], r["error"]) for r in got} <= {(magic, codec, None)}


@circle
@given(st.lists(st.tuples(blobs, blobs, stamps, st.sampled_from([None, 0, 1])), min_size=1, max_size=8))
def test_messages_round_trip(rows: list[tuple[Any, ...]]) -> None:
    written = pa.array(write_messages(*zip(*rows, strict=True)), pa.binary())
    for (key, value, stamp, magic), got in zip(
        rows, FUNCTIONS["kafka_message"].decode(written).to_pylist(), strict=True
    ):
        magic = (0 if stamp is None else 1) if magic is None else magic
        assert (got["key"], got["value"], got["magic"], got["error"]) == (key, value, magic, None)
        assert got["timestamp_ms"] == (stamp if magic else None)


@pytest.mark.parametrize("size", [0, 1, 49, 50, 51, 63, 64, 8170, 8191, 8192, 32700, 65400, 65536, 1_100_000])
def test_sizes_at_which_varints_and_blocks_end(size: int) -> None:
    written = [
        record(key=bytes(size), value=random.Random(size).randbytes(size), headers=[{"key": "k" * size, "value": None}])
    ]
    for codec in oracle.CODECS:
        assert fields(read(write([written * 3], 2, codec)[0])) == written * 3


def test_a_batch_has_no_more_than_the_bound_of_its_records() -> None:
    """Large keys and values, and timestamps as far apart as possible. A batch once was longer than the bound of its records."""
    chance = random.Random(5)
    rows = [
        record(
            key=bytes(chance.choice((0, 70, 9000))),
            value=bytes(chance.choice((0, 70, 9000))),
            timestamp_ms=chance.choice((-(2**61), 0, 2**61)),
            headers=[{"key": "k" * chance.choice((1, 70)), "value": None}] * chance.randrange(3),
        )
        for _ in range(300)
    ]
    column = pa.array([rows], pa.list_(RECORD)).flatten()
    key, value, times, headers = column.flatten()
    offsets = np.arange(len(rows), dtype=np.int64)
    bounds = np.empty(len(rows), np.int64)
    bound_records(records_of(offsets, np.asarray(times), key, value, headers), bounds)
    for count in (1, 2, 10, len(rows)):
        size = len(write([rows[:count]], 2)[0]) - BATCH_SIZE
        assert bounds[:count].sum() - 14 * count <= size <= bounds[:count].sum()


def test_many_records() -> None:
    """Offsets and counts beyond one byte of a varint."""
    written = [record(value=str(i).encode(), timestamp_ms=i * i) for i in range(20_000)]
    got = read(write([written], 2, "none", 5)[0])
    assert [(row["offset"], row["value"], row["timestamp_ms"]) for row in got] == [
        (5 + i, str(i).encode(), i * i) for i in range(20_000)
    ]


# -- rows and columns


def test_empty_and_null_arrays() -> None:
    for magic, codec in FORMATS:
        assert write([[], None, [record()]], magic, codec)[:2] == [b"", None]
    assert write_array(pa.array([[], None], pa.list_(pa.null())), 2) == [b"", None]
    assert write([], 2) == []


@every_format
def test_a_slice(magic: int, codec: str) -> None:
    rows = [some_records(magic)[k : 2 * k] for k in range(6)] + [None, [record()]]
    array = pa.array(rows, pa.list_(RECORD))
    whole = write(rows, magic, codec)
    assert [write([row], magic, codec)[0] for row in rows] == whole
    assert write_array(array[2:7], magic, codec) == whole[2:7]


def test_large_types() -> None:
    rows = [some_records(2)[:20], None]
    assert write_array(enlarged(pa.array(rows, pa.list_(RECORD))), 2) == write(rows, 2)


def test_null_arrays_may_have_items() -> None:
    array = pa.array([[record(b"a")], [record(b"b")], [record(b"c")]], pa.list_(RECORD))
    mask = pa.py_buffer(bytes([0b101]))
    holed = pa.Array.from_buffers(array.type, 3, [mask, array.buffers()[1]], children=[array.values])
    whole = write_array(array, 2)
    assert write_array(holed, 2) == [whole[0], None, whole[2]]


def test_options_differ_from_row_to_row() -> None:
    rows = [[record(b"k", b"v" * 90, 9)]] * 4
    array = pa.array(rows, pa.list_(RECORD))
    codecs = ["none", "zstd", None, "lz4"]
    mixed = FUNCTIONS["to_kafka_records"].decode(
        array, pa.array([1, 2, 3, 4]), pa.array(codecs), pa.array([0, 2, None, 1], pa.int8())
    )
    assert plain(mixed) == [
        write(rows[:1], 0, "none", 1)[0],
        write(rows[:1], 2, "zstd", 2)[0],
        None,
        write(rows[:1], 1, "lz4", 4)[0],
    ]


def test_codecs_in_any_case() -> None:
    rows = [[record(b"k", b"v" * 90, 9)]]
    assert write(rows, 2, "ZStd") == write(rows, 2, "zstd")


def test_fields_may_be_missing() -> None:
    assert write_array(pa.array([[{"value": b"v"}]]), 2) == write([[record(value=b"v")]], 2)
    headed = pa.array([[{"headers": [{"key": "h", "value": None}], "key": b"k"}]])
    assert write_array(headed, 2) == write([[record(b"k", headers=[{"key": "h", "value": None}])]], 2)


def test_messages_without_a_timestamp_are_of_magic_0() -> None:
    with_stamps = write_messages([b"k"] * 3, [b"v"] * 3, [5, None, -1])
    assert [message[4] for message in with_stamps] == [1, 0, 1]
    assert write_messages([b"k"], [b"v"]) == with_stamps[1:2] == write_messages([b"k"], [b"v"], [5], [0])
    assert write_messages([b"k"], [b"v"], [None], [1]) == with_stamps[2:]
    function = FUNCTIONS["to_kafka_message"]
    nothing = plain(function.decode(pa.nulls(2), pa.nulls(2)))
    assert nothing == write_messages([None, None], [None, None])
    named = function.decode(pa.nulls(1), pa.nulls(1), magic=pa.array([1], pa.int32()))
    assert plain(named) == write_messages([None], [None], [None], [1])


def test_messages_of_a_slice() -> None:
    keys = pa.array([b"a", None, b"bc", b"d"], pa.large_binary())
    whole = plain(FUNCTIONS["to_kafka_message"].decode(keys, keys))
    assert plain(FUNCTIONS["to_kafka_message"].decode(keys[1:3], keys[1:3])) == whole[1:3]
    assert plain(FUNCTIONS["to_kafka_message"].decode(keys[:0], keys[:0])) == []


@pytest.mark.parametrize(
    ("rows", "options", "sentence"),
    [
        ([[]], ("lzma", 2), f"compression {codecs.listed(codecs.writable())}, got 'lzma'"),
        ([[]], ("none", 3), "magic 0, 1 or 2, got 3"),
        ([[]], ("none", -1), "magic 0, 1 or 2, got -1"),
        ([[]], ("zstd", 1), "compression zstd with magic 2 only, got magic 1"),
        ([[record(headers=[{"key": "h", "value": None}])]], ("none", 1), "headers with magic 2 only, got magic 1"),
        ([[record(headers=[{"key": None, "value": b""}])]], ("none", 2), "headers with a key, got NULL"),
        ([[record(headers=[None])]], ("none", 2), "headers with a key, got NULL"),
        ([[None]], ("none", 2), "records that are not NULL, got NULL among them"),
    ],
)
def test_records_that_cannot_be_written_are_a_clear_error(
    rows: list[list[Row]], options: tuple[str, int], sentence: str
) -> None:
    with pytest.raises(ValueError, match=r"^to_kafka_records") as rejected:
        write(rows, options[1], options[0])
    assert str(rejected.value) == f"to_kafka_records() expected {sentence}"


@pytest.mark.parametrize("base_offset", [-1, 2**63 - 1])
def test_offsets_are_from_0_on(base_offset: int) -> None:
    assert write([[]], 2, "none", 2**63 - 1) == [b""]
    with pytest.raises(
        ValueError, match=rf"^to_kafka_records\(\) expected a base_offset .* records, got {base_offset}$"
    ):
        write([[record()]], 2, "none", base_offset)


def test_impossible_messages_are_a_clear_error() -> None:
    with pytest.raises(ValueError, match=r"^to_kafka_message\(\) expected magic 0 or 1, got 2$"):
        write_messages([b""], [b""], [1], [2])


def test_unknown_fields_are_an_error() -> None:
    with pytest.raises(
        TypeError,
        match=r"^to_kafka_records\(\) expected records with the fields key, .*, headers, offset, got position$",
    ):
        write_array(pa.array([[{"position": 1}]]), 2)
    with pytest.raises(TypeError, match=r"^to_kafka_records\(\) expected records.key BINARY, got STRING$"):
        write_array(pa.array([[{"key": "k"}]]), 2)


# -- offsets that records have


def test_records_keep_their_offsets() -> None:
    """If a batch cannot hold the range of offsets, there are several batches."""
    offsets = [5, 7, 8, 2**31 + 5, 2**31 + 6, 2**40, 2**63 - 2]
    rows = [record(value=b"%d" % offset, timestamp_ms=1, offset=offset) for offset in offsets]
    options = pa.array([0]), pa.array(["zstd"]), pa.array([2], pa.int32())
    [data] = plain(FUNCTIONS["to_kafka_records"].decode(pa.array([rows]), *options, pa.array([7], pa.int32())))
    assert [(row["offset"], row["value"]) for row in read(data)] == [(o, b"%d" % o) for o in offsets]
    batches = plain(FUNCTIONS["kafka_batches"].decode(pa.array([data], pa.binary())))[0]
    assert [(b["base_offset"], b["last_offset"]) for b in batches] == [
        (5, 8), (2**31 + 5, 2**31 + 6), (2**40, 2**40), (2**63 - 2, 2**63 - 2),
    ]  # fmt: skip
    assert {batch["partition_leader_epoch"] for batch in batches} == {7}
    assert [row["offset"] for row in oracle.records(data)] == offsets


@every_format
def test_gaps(magic: int, codec: str) -> None:
    """Gaps as after compaction; other readers see the same offsets."""
    rows = [record(value=b"v", timestamp_ms=1, offset=offset) for offset in (3, 4, 9, 1000)]
    [data] = write_array(pa.array([rows]), magic, codec)
    assert [row["offset"] for row in read(data)] == [3, 4, 9, 1000]
    assert [row["offset"] for row in oracle.records(data)] == [3, 4, 9, 1000]


@pytest.mark.parametrize(("magic", "codec"), [case for case in FORMATS if case[0] > 0])
def test_log_append_time(magic: int, codec: str) -> None:
    """A broker appends a set at once: all records have the latest of their timestamps."""
    rows = [record(value=b"v", timestamp_ms=time) for time in (5, 9, 7)]
    options = pa.array([0]), pa.array([codec]), pa.array([magic], pa.int32()), pa.array([0], pa.int32())
    types = pa.array(["LogAppendTime"])
    [data] = plain(FUNCTIONS["to_kafka_records"].decode(pa.array([rows]), *options, types))
    assert [(row["timestamp_ms"], row["timestamp_type"]) for row in read(data)] == [(9, "LogAppendTime")] * 3
    assert [row["timestamp_ms"] for row in oracle.records(data)] == [9, 9, 9]


@pytest.mark.parametrize(
    ("offsets", "got"),
    [([1, 1], "1 after 1"), ([2, 1], "1 after 2"), ([-1], "-1"), ([1, None], "NULL among them")],
)
def test_offsets_that_do_not_ascend(offsets: list[int | None], got: str) -> None:
    rows = [record(value=b"v", offset=offset) for offset in offsets]
    with pytest.raises(ValueError, match=rf"^to_kafka_records\(\) expected .*offset.*, got {got}$"):
        write_array(pa.array([rows]), 2)
    with pytest.raises(
        ValueError, match=r"^to_kafka_records\(\) expected timestamp_type CreateTime or LogAppendTime, got 'x'$"
    ):
        FUNCTIONS["to_kafka_records"].decode(
            pa.array([[]], pa.list_(RECORD)), [0], ["none"], [2], pa.array([0], pa.int32()), ["x"]
        )
    with pytest.raises(ValueError, match=r"LogAppendTime with magic 1 and 2 only, got magic 0$"):
        FUNCTIONS["to_kafka_records"].decode(
            pa.array([[]], pa.list_(RECORD)), [0], ["none"], [0], pa.array([0], pa.int32()), ["LogAppendTime"]
        )


def test_each_set_may_have_offsets_or_not() -> None:
    """For any neighbouring rows."""
    rows = [
        [record(value=b"a"), record(value=b"b")],
        [],
        [record(value=b"c", offset=7), record(value=b"d", offset=3 + 6)],
    ]
    result = write_array(
        pa.array(rows, pa.list_(pa.struct([*RECORD, pa.field("offset", pa.int64())]))), 2, base_offset=100
    )
    assert [[row["offset"] for row in read(data)] for data in result] == [[100, 101], [], [7, 9]]
    mixed = [*rows, [record(value=b"a", offset=1), record(value=b"b")]]
    for some in (mixed, mixed[-1:]):
        with pytest.raises(ValueError, match="an offset in each record or in none, got NULL among them"):
            write_array(pa.array(some, pa.list_(pa.struct([*RECORD, pa.field("offset", pa.int64())]))), 2)


def test_null_is_the_default_of_optional_fields() -> None:
    rows = pa.array([[record(value=b"a")]] * 3, pa.list_(RECORD))
    given = [pa.array([0] * 3), pa.array(["none"] * 3), pa.array([2] * 3, pa.int32())]
    plainly = plain(FUNCTIONS["to_kafka_records"].decode(rows, *given))
    epochs, types = pa.array([None, None, 4], pa.int32()), pa.array([None, "CreateTime", None])
    result = plain(FUNCTIONS["to_kafka_records"].decode(rows, *given, epochs, types))
    assert result[:2] == plainly[:2]
    assert [row["partition_leader_epoch"] for data in result for row in read(data)] == [-1, -1, 4]
    assert plain(FUNCTIONS["to_kafka_records"].decode(rows, *given, pa.nulls(3), pa.nulls(3))) == plainly
    assert plain(FUNCTIONS["to_kafka_records"].decode(rows, given[0], given[1], pa.nulls(3, pa.int32()))) == [None] * 3
