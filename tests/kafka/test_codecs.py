"""Codecs against other libraries: blocks of lz4, gzip members one by one; and the memory for decompression."""

from __future__ import annotations

import gzip
import random
import struct
import zlib

import cramjam
import lz4.block
import numpy as np
import numpy.typing as npt
import pytest

from sparkwire.kafka.codecs import BY_NAME, CODECS, NAMES, lz4_block, readable, writable
from sparkwire.kafka.framings import LZ4_ROOM
from sparkwire.kafka.inflate import DECODERS, FAILED, OVER_LIMIT, Arena, inflate
from tests.kafka.test_damage import batch, record, rows
from tests.support.child import run_python

WORDS = (b"alice", b"bob", b"carol", b"x")


def content(chance: random.Random, most: int = 3000) -> bytes:
    """Zeros, noise, words or letters."""
    size = chance.randrange(most)
    match chance.randrange(4):
        case 0:
            return bytes(size)
        case 1:
            return chance.randbytes(size)
        case 2:
            return b"".join(chance.choice(WORDS) for _ in range(size // 4))
    return bytes(chance.choice(b"abcdefgh") for _ in range(size))


def damaged(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def array(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


def test_the_table() -> None:
    """Ids and names are unique. Every readable codec has a plan, except the one without compression."""
    assert len({codec.id for codec in CODECS}) == len({codec.name for codec in CODECS}) == len(CODECS)
    assert [codec.name for magic in (0, 1, 2) for codec in readable(magic) if codec.plan is None] == ["none"] * 3
    assert NAMES[:5] == ("none", "gzip", "snappy", "lz4", "zstd") == writable()[:5]
    assert writable(0) == writable(1) == NAMES[:4]


@pytest.mark.parametrize("seed", range(8))
def test_lz4_blocks(seed: int) -> None:
    """The package accepts the same blocks as the reference decoder."""
    chance = random.Random(seed)
    for _ in range(40):
        block = lz4.block.compress(content(chance) or b"a", store_size=False)
        for data in [block, *(damaged(block, chance) for _ in range(6))]:
            room = min(-(-255 * len(data) // LZ4_ROOM) * LZ4_ROOM, 1 << 16)
            out = bytearray(room)
            try:
                size = lz4_block(memoryview(data), memoryview(out))
            except cramjam.DecompressionError:
                size = FAILED
            try:
                expected = lz4.block.decompress(data, uncompressed_size=room)
            except lz4.block.LZ4BlockError:
                assert size < 0, data.hex()
            else:
                assert out[:size] == expected, data.hex()


@pytest.mark.parametrize("seed", range(8))
def test_gzip_members(seed: int) -> None:
    """With other bytes after the last member, for which the library rejects all members."""
    chance = random.Random(seed)
    for _ in range(20):
        plain = [content(chance) for _ in range(chance.randrange(1, 4))]
        data = b"".join(gzip.compress(part, chance.choice((0, 1, 6, 9)), mtime=0) for part in plain)
        expected = b"".join(plain)
        for after in (b"", b"x", bytes(100)):
            assert inflated(data + after, len(expected)) == expected
            assert inflated(data + after, len(expected) + 1) == expected
            assert inflated(data + after, len(expected) - 1) == OVER_LIMIT
        broken = damaged(gzip.compress(expected, mtime=0), chance)
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            result = member.decompress(broken)
        except zlib.error:
            result = b""
        assert inflated(broken + b"x", 1 << 20) == (result if member.eof else FAILED), broken.hex()


def inflated(data: bytes, limit: int) -> bytes | int:
    """The decompressed payload of gzip, or the error."""
    arena = Arena(64)
    if limit < 0:
        return OVER_LIMIT
    size = inflate(array(data), [(BY_NAME["gzip"].id, 0, len(data), limit // 3)], arena, limit)
    return arena.bytes[:size].tobytes() if size >= 0 else size


def test_a_block_with_a_size_before_it_is_invalid() -> None:
    """The library treats a block's first bytes as a size if possible; Kafka does not."""
    data = bytes.fromhex(
        "00000000000000000000005100000000027f67931b00030000000000000000000000000000000000000000ffffffffffffffffffffffffffff"
        "0000000104224d18604082110000000c000000c016000000010a68656c6c6f0000000000"
    )
    assert [row["error"] for row in rows(data)] == ["DECOMPRESS_FAILED"]


def xerial(blocks: list[bytes]) -> bytes:
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)


def lz4_frame(blocks: list[bytes]) -> bytes:
    framed = b"".join(struct.pack("<I", len(block)) + block for block in blocks)
    return bytes.fromhex("04224d18604082") + framed + bytes(4)


@pytest.mark.parametrize("codec", ["snappy", "lz4"])
@pytest.mark.parametrize("piece", [1, 3, 100, 255, 256, 257, 5000])
def test_blocks_of_any_size(codec: str, piece: int) -> None:
    """From one byte on; the library might treat the bytes as a size."""
    payload = b"".join(record(b"value %d " % i * (i % 9), i) for i in range(300))
    parts = [payload[at : at + piece] for at in range(0, len(payload), piece)]
    if codec == "snappy":
        data = batch(xerial([bytes(cramjam.snappy.compress_raw(part)) for part in parts]), 2, 300)
    else:
        data = batch(lz4_frame([lz4.block.compress(part, store_size=False) for part in parts]), 3, 300)
    assert [row["value"] for row in rows(data)] == [b"value %d " % i * (i % 9) for i in range(300)]


PEAK = """
import resource, struct, sys
import cramjam, lz4.block
import pyarrow as pa
from sparkwire import FUNCTIONS
from tests.kafka.test_codecs import lz4_frame, xerial
from tests.kafka.test_damage import batch, record, varint

def attack(name):
    if name == "header keys":
        records = []
        for i in range(20_000):
            headers = b"".join(varint(9) + b"\\xff" + (16 * i + k).to_bytes(8, "big") + varint(-1) for k in range(16))
            body = b"\\0" + varint(0) + varint(i) + varint(-1) + varint(-1) + varint(16) + headers
            records.append(varint(len(body)) + body)
        return batch(b"".join(records), 0, 20_000)
    block = bytes(cramjam.snappy.compress_raw(b"abc")) if name == "xerial" else lz4.block.compress(b"abcd", store_size=False)
    blocks = [block] * 600_000
    return batch(xerial(blocks), 2) if name == "xerial" else batch(lz4_frame(blocks), 3)

data = attack(sys.argv[1])
decode = FUNCTIONS["kafka_records"].decode
decode(pa.array([batch(xerial([b"\\x01\\0a"]), 2) + batch(lz4_frame([b"\\x10a"]), 3)], pa.binary()))
column = pa.array([data], pa.binary())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
decode(column)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / len(data))
"""


@pytest.mark.process
@pytest.mark.parametrize("name", ["xerial", "lz4", "header keys"])
def test_memory_is_bounded_by_the_input(name: str) -> None:
    """A separate process, whose peak memory is measured."""
    assert float(run_python("-c", PEAK, name)) <= 12


REJECTED = """
import resource
import cramjam
import pyarrow as pa
from sparkwire import FUNCTIONS
from tests.kafka.test_damage import batch, record

data = pa.array([batch(bytes(cramjam.snappy.compress_raw(record(bytes(200 << 20)))), 2)], pa.binary())
decode = FUNCTIONS["kafka_records"].decode
decode(pa.array([batch(bytes(cramjam.snappy.compress_raw(record(bytes(6 << 20)))), 2)], pa.binary()))
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (128 << 20), resource.RLIM_INFINITY))
try:
    print(len(decode(data)), "row")
except MemoryError as rejected:
    print(rejected)
"""


@pytest.mark.process
def test_out_of_memory_is_no_corruption() -> None:
    """A separate process with limited memory."""
    sentence = run_python("-c", REJECTED, environment={"ARROW_DEFAULT_MEMORY_POOL": "system"}).strip()
    assert sentence.startswith("malloc of size ")


def test_a_library_that_runs_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zstandard reports it like corruption, with another message."""

    def reject(source: memoryview, out: memoryview) -> int:
        raise cramjam.DecompressionError("Allocation error : not enough memory")

    monkeypatch.setitem(DECODERS, BY_NAME["zstd"].id, reject)
    with pytest.raises(MemoryError, match=r"^Allocation error : not enough memory$"):
        rows(batch(bytes(cramjam.zstd.compress(record(b"a"))), 4))
