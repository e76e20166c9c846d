"""Corrupt bytes: limits of memory and time, and reading after corruption at which Kafka stops."""

from __future__ import annotations

import gzip
import struct
import time
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import cramjam
import crc32c
import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from sparkwire.kafka.inflate import ROW_BYTES
from tests.support import kafka_cases as golden
from tests.support.arrow import ask, plain
from tests.support.oracles import kafka as oracle

MIB = 1 << 20


def varint(value: int) -> bytes:
    folded = value << 1 ^ value >> 63
    out = bytearray()
    while folded > 127:
        out.append(folded & 127 | 128)
        folded >>= 7
    return bytes([*out, folded])


def record(value: bytes, number: int = 0) -> bytes:
    body = b"\0" + varint(0) + varint(number) + varint(-1) + varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def batch(payload: bytes, codec: int = 0, count: int = 1, base: int = 0) -> bytes:
    """A record batch with a valid checksum."""
    covered = struct.pack(">hiqqqhii", codec, count - 1, 0, 0, -1, -1, -1, count) + payload
    crc = crc32c.crc32c(covered)
    return struct.pack(">qiibI", base, 9 + len(covered), 0, 2, crc) + covered


def wrapper(payload: bytes, codec: int, magic: int = 1) -> bytes:
    """A compressed message with a valid checksum."""
    covered = struct.pack(">bb", magic, codec) + (bytes(8) if magic else b"")
    covered += struct.pack(">ii", -1, len(payload)) + payload
    return struct.pack(">qiI", 0, 4 + len(covered), zlib.crc32(covered)) + covered


def snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def lz4(data: bytes) -> bytes:
    """A frame of independent 4 MiB blocks."""
    out = bytes.fromhex("04224d186070") + b"\x73"
    for at in range(0, len(data), 4 * MIB):
        block = bytes(cramjam.lz4.compress_block(data[at : at + 4 * MIB], store_size=False))
        out += struct.pack("<I", len(block)) + block
    return out + bytes(4)


CODECS: dict[int, Callable[[bytes], bytes]] = {
    1: lambda data: gzip.compress(data, 9, mtime=0),
    2: snappy,
    3: lz4,
    4: lambda data: bytes(cramjam.zstd.compress(data, 3)),
}
every_codec = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: oracle.CODECS[codec])


def rows(data: bytes, **options: Any) -> list[dict[str, Any]]:
    (answer,) = plain(FUNCTIONS["kafka_records"].decode(pa.array([data], pa.binary()), **options))
    result: list[dict[str, Any]] = answer
    return result


# -- bounds of memory


@every_codec
def test_bound_is_exact(codec: int) -> None:
    payload = record(bytes(100_000))
    data = batch(CODECS[codec](payload), codec)
    assert [row["error"] for row in rows(data, max_batch_bytes=len(payload))] == [None]
    (rejected,) = rows(data, max_batch_bytes=len(payload) - 1)
    assert (rejected["error"], rejected["offset"], rejected["compression"]) == ("TOO_LARGE", 0, oracle.CODECS[codec])


@every_codec
def test_bomb_is_not_allocated(codec: int) -> None:
    """A payload of 64 MiB with a limit of 1 MiB takes only a few MiB."""
    bomb = CODECS[codec](bytes(64 * MIB))
    data = batch(bomb, codec) + batch(record(b"good"), base=7)
    rows(data, max_batch_bytes=MIB)
    before = pa.total_allocated_bytes()
    pa.default_memory_pool().release_unused()
    tracemalloc.start()
    result = rows(data, max_batch_bytes=MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(row["error"], row["value"]) for row in result] == [("TOO_LARGE", None), (None, b"good")]
    assert peak < 16 * MIB
    assert pa.total_allocated_bytes() - before < 16 * MIB


def test_bomb_of_gigabytes() -> None:
    """A small batch that decompresses to 3 GiB, with the default limit."""
    chunk = bytes(cramjam.zstd.compress(bytes(128 * MIB), 1))
    before = pa.default_memory_pool().max_memory() or 0
    result = rows(batch(chunk * 24, 4))
    assert [row["error"] for row in result] == ["TOO_LARGE"]
    assert (pa.default_memory_pool().max_memory() or 0) - before < 600 * MIB


@every_codec
def test_wrong_sizes_inside_a_batch(codec: int) -> None:
    """A record that claims more bytes than exist takes only the existing bytes."""
    data = batch(CODECS[codec](varint(2**31 - 1) + bytes(100)), codec, count=2**31 - 1)
    assert [row["error"] for row in rows(data)] == ["BAD_RECORD"]


@pytest.mark.parametrize("codec", sorted(set(CODECS) - {4}))  # no zstd in magic 1
def test_wrong_sizes_inside_a_wrapper(codec: int) -> None:
    """The same for an inner message."""
    data = wrapper(CODECS[codec](struct.pack(">qi", 0, 2**31 - 1) + bytes(100)), codec)
    assert [row["error"] for row in rows(data)] == ["BAD_RECORD"]


@pytest.mark.parametrize("stated", [2**31 - 1, 2**32 - 1, 10 * MIB])
def test_snappy_with_a_wrong_stated_size(stated: int) -> None:
    body = bytearray()
    size = stated
    while size > 127:
        body.append(size & 127 | 128)
        size >>= 7
    data = batch(bytes([*body, size]) + bytes(20), 2)
    expected = "DECOMPRESS_FAILED" if stated >= 2**31 else "TOO_LARGE"
    assert [row["error"] for row in rows(data, max_batch_bytes=MIB)] == [expected]


@pytest.mark.parametrize("bound", [0, -1])
def test_bound_is_positive(bound: int) -> None:
    with pytest.raises(
        ValueError, match=rf"^kafka_records\(\) expected max_batch_bytes BIGINT of 1 or more, got {bound}$"
    ):
        rows(b"", max_batch_bytes=bound)


def test_more_than_arrow_holds_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """No batch of values fails a query: data that one array cannot hold is TOO_LARGE, and uncompressed data always fits."""
    from sparkwire.core import column
    from sparkwire.kafka import inflate, records

    for module in (column, inflate, records):
        monkeypatch.setattr(module, "INT32_MAX", 3 * MIB)
    large, plain = batch(snappy(record(bytes(MIB))), 2), batch(record(bytes(MIB // 2)))
    assert [row["error"] for row in rows(large * 4)] == [None, None, "TOO_LARGE", "TOO_LARGE"]
    cells = [[(row["error"], row["offset"]) for row in cell] for cell in ask("kafka_records", [large] * 4 + [plain])]
    assert cells == [[(None, 0)], [(None, 0)], [("TOO_LARGE", 0)], [("TOO_LARGE", 0)], [(None, 0)]]
    assert [len(cell) for cell in ask("kafka_records", [plain] * 5)] == [1] * 5


def test_rows_of_all_values_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Like those of one value: nine values of 24 kB do not become 19 GB."""
    from sparkwire.kafka import records

    data = many(1000)
    monkeypatch.setattr(records, "MAX_ANSWER_BYTES", 2 * 1000 * (len(record(b"")) + ROW_BYTES))
    assert [len(cell) for cell in ask("kafka_records", [data] * 3)] == [1000, 1000, 1]


def many(count: int) -> bytes:
    """A batch of empty records: 24 kB can have millions."""
    return batch(bytes(cramjam.zstd.compress(record(b"") * count, 3)), 4, count)


def test_result_of_a_value_is_bounded() -> None:
    """The number of rows counts, too: the shortest records take many times their bytes."""
    data = many(100_000)
    size = len(record(b"")) * 100_000
    bound = size + ROW_BYTES * 100_000
    assert len(rows(data, max_value_bytes=bound)) == 100_000
    assert [row["error"] for row in rows(data, max_value_bytes=bound - 1)] == ["TOO_LARGE"]
    assert [row["error"] for row in rows(data * 2, max_value_bytes=bound)][99_999:] == [None, "TOO_LARGE"]


def test_24_kb_do_not_become_gigabytes() -> None:
    before = pa.default_memory_pool().max_memory() or 0
    data = many(1) + batch(bytes(cramjam.zstd.compress(record(b"") * 37_000_000, 3)), 4, 37_000_000)
    assert [row["error"] for row in rows(data)] == [None, "TOO_LARGE"]
    assert (pa.default_memory_pool().max_memory() or 0) - before < 600 * MIB


def test_rejected_payloads_count() -> None:
    """Compression bombs beyond the limit of the value cost nothing; uncompressed records are still read."""
    bomb = batch(CODECS[4](record(bytes(4 * MIB))), 4)
    result = rows(bomb * 3 + batch(record(b"plain")), max_batch_bytes=MIB, max_value_bytes=2 * MIB)
    assert [(row["error"], row["value"]) for row in result] == [("TOO_LARGE", None)] * 3 + [(None, b"plain")]


@pytest.mark.parametrize("bound", [0, -1])
def test_bound_of_a_value_is_positive(bound: int) -> None:
    with pytest.raises(
        ValueError, match=rf"^kafka_records\(\) expected max_value_bytes BIGINT of 1 or more, got {bound}$"
    ):
        rows(b"", max_value_bytes=bound)


def test_a_wrong_size_hides_nothing_without_checksums() -> None:
    """A batch whose size includes the next batch is rejected as with checksums, and the next batch is read."""
    first, second = batch(record(b"first")), batch(record(b"second"), base=7)
    lying = first[:8] + struct.pack(">i", len(first) + len(second) - 12) + first[12:]
    for verify in (True, False):
        result = rows(lying + second, verify_crc=verify)
        assert [(row["error"], row["value"]) for row in result] == [("CRC_MISMATCH", None), (None, b"second")]


# -- bounds of time

HANGS = 30  # linear time is one or two seconds; if each position reads the rest, it takes minutes [s]


def seconds(data: bytes) -> float:
    start = time.perf_counter()
    ask("kafka_batches", [data])
    return time.perf_counter() - start


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_search_is_linear(magic: int) -> None:
    """All positions look like entries that end with the data: each must be rejected without reading all of it."""
    unit = struct.pack(">qi", 0, 1 << 19) + b"\0\0\0\0" + bytes([magic]) + bytes(3)

    def hostile(size: int) -> bytes:
        return b"\xff" * 30 + unit * (size // len(unit))

    assert seconds(hostile(8 << 20)) < HANGS


@pytest.mark.parametrize("magic", [0, 2])
def test_wrong_sizes_are_rejected_in_linear_time(magic: int) -> None:
    """Valid entries, and before each a header that claims the rest: its checksum must not read all of that."""
    intact = wrapper(b"", 0, 0) if magic == 0 else batch(record(b""))
    units = (8 << 20) // (17 + len(intact))
    size = units * (17 + len(intact))
    claims = (struct.pack(">qiIb", 0, size - i * (17 + len(intact)) - 12, 0, magic) for i in range(units))
    data = b"".join(claim + intact for claim in claims)
    start = time.perf_counter()
    (valid_bytes,) = ask("kafka_valid_bytes", [data])
    (entries,) = FUNCTIONS["kafka_batches"].decode(pa.array([data], pa.binary()))
    assert time.perf_counter() - start < HANGS
    assert (valid_bytes, len(entries)) == (0, 2 * units)


def test_many_empty_gzip_members() -> None:
    data = batch(
        gzip.compress(b"", mtime=0) * 50_000
        + gzip.compress(record(b"last"), mtime=0)
        + b"trailing garbage: not a member",
        1,
    )
    start = time.perf_counter()
    assert [row["value"] for row in rows(data)] == [b"last"]
    assert time.perf_counter() - start < HANGS


# -- the way after corruption


def entries_of(name: str) -> list[bytes]:
    log = next(log for log in golden.logs() if log.name.startswith(name))
    return [log.data[b["position"] : b["position"] + b["size"]] for b in log.batches]


@pytest.mark.parametrize("name", ["v0_none", "v1_lz4", "v2_zstd", "mixed"])
@pytest.mark.parametrize(
    "size", [0, 13, 14, -1, 2**31 - 1, 1 << 20, "one short", "one long", "two entries", "to the end"]
)
def test_a_wrong_size_costs_one_entry(name: str, size: int | str) -> None:
    """Kafka drops everything after a size that is too large; here only the entry with the wrong size is lost."""
    parts = entries_of(name)[:12]
    at = 5
    lies = {
        "one short": len(parts[at]) - 13,
        "one long": len(parts[at]) - 11,
        "two entries": len(parts[at]) + len(parts[at + 1]) + 3 - 12,
        "to the end": sum(map(len, parts[at:])) - 12,
    }
    stated = size if isinstance(size, int) else lies[size]
    parts[at] = parts[at][:8] + struct.pack(">i", stated) + parts[at][12:]
    data = b"".join(parts)
    result = rows(data)
    start = len(b"".join(parts[:at]))
    behind = start + len(parts[at])
    assert [row["position"] for row in result if row["error"]] == [start]
    assert result == oracle.records(data)
    good = [row | {"position": 0} for row in result if row["position"] >= behind]
    assert good == [row | {"position": 0} for row in rows(b"".join(parts[at + 1 :]))]
    (bad,) = [row for row in ask("kafka_batches", [data])[0] if row["error"]]
    assert (bad["position"], bad["size"]) == (start, None)


def test_entries_inside_a_value_stay_there() -> None:
    """A batch with a wrong checksum between valid batches hides no entry, so its content is not searched."""
    hidden = batch(record(batch(record(b"inner"))))
    broken = hidden[:17] + bytes(4) + hidden[21:]
    good = batch(record(b"good"), base=9)
    assert [(row["error"], row["value"]) for row in rows(broken + good)] == [("CRC_MISMATCH", None), (None, b"good")]


def test_all_checksums_wrong() -> None:
    """Sizes separate consecutive entries, valid or not."""
    parts = [bytes([*part[:17], part[17] ^ 1, *part[18:]]) for part in entries_of("v2_none")[:5]]
    batches = ask("kafka_batches", [b"".join(parts)])[0]
    assert [(row["size"], row["error"]) for row in batches] == [(len(part), "CRC_MISMATCH") for part in parts]
    assert [row["error"] for row in rows(b"".join(parts))] == ["CRC_MISMATCH"] * 5
    assert all(row["error"] is None for row in rows(b"".join(parts), verify_crc=False))


def test_zeroed_tail_after_a_truncated_batch() -> None:
    part = entries_of("v2_none")[0]
    batches = ask("kafka_batches", [part + part[:40] + bytes(50_000)])[0]
    # Its size extends into the zeros, so its checksum is wrong.
    assert [(row["position"], row["error"]) for row in batches][:2] == [(0, None), (len(part), "CRC_MISMATCH")]
    assert batches[-1]["error"] == "BAD_LENGTH"
    assert batches[-1]["size"] is None


def test_bytes_that_are_not_an_entry() -> None:
    for data, error in [
        (b"\0", "TRUNCATED"),
        (bytes(11), "TRUNCATED"),
        (bytes(12), "BAD_LENGTH"),
        (bytes(5000), "BAD_LENGTH"),
        (b"a text that nobody would take for a log", "TRUNCATED"),
        (struct.pack(">qiib", 5, 100, 0, 3) + bytes(95), "BAD_MAGIC"),
        (struct.pack(">qiib", 5, 30, 0, 2) + bytes(25), "BAD_LENGTH"),
    ]:
        assert [row["error"] for row in ask("kafka_batches", [data])[0]] == [error], data
        assert [row["error"] for row in rows(data)] == [error], data
