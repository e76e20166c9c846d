"""Corrupt bytes of every kind: the functions return the same as the oracle, byte for byte."""

from __future__ import annotations

import random
import struct
import zlib

import pyarrow as pa
import pytest
from crc32c import crc32c

from sparkwire import FUNCTIONS
from sparkwire.kafka import parse
from sparkwire.kafka.framing import BLOCK_ENTRIES
from tests.support import kafka_cases as golden
from tests.support.arrow import ask, plain
from tests.support.oracles import kafka as oracle

SOURCES = [log.data for log in golden.logs() if len(log.data) < 6000]
ROUNDS = range(16)


def resealed(entry: bytes) -> bytes:
    """The same with a valid checksum, so that readers accept it."""
    if len(entry) > 21 and entry[16] == 2:
        return entry[:17] + crc32c(entry[21:]).to_bytes(4, "big") + entry[21:]
    return entry[:12] + zlib.crc32(entry[16:]).to_bytes(4, "big") + entry[16:]


def some_entries(chance: random.Random) -> list[bytes]:
    """Entries of any magic, with any codec."""
    result = []
    for _ in range(chance.randrange(1, 5)):
        data = chance.choice(SOURCES)
        position, stop, _, _ = chance.choice(list(oracle.entries(data)))
        result.append(data[position:stop])
    return result


def mutated(chance: random.Random) -> bytes:
    """A few consecutive entries, with one or two kinds of corruption."""
    entries = some_entries(chance)
    for _ in range(chance.randrange(3)):
        at = chance.randrange(len(entries))
        entry = bytearray(entries[at])
        match chance.randrange(7):
            case 0:  # a bit
                entry[chance.randrange(len(entry))] ^= 1 << chance.randrange(8)
            case 1:  # a byte that no checksum covers
                entry[chance.randrange(min(12, len(entry) - 1), len(entry))] = chance.choice((0, 1, 2, 127, 128, 255))
                entry = bytearray(resealed(bytes(entry)))
            case 2:  # the size
                size = chance.choice(
                    (0, 1, 13, 14, 22, 48, 49, len(entry) - 13, len(entry) - 11, 2 * len(entry), -1, 2**31 - 1)
                )
                entry[8:12] = struct.pack(">i", size)
            case 3:  # truncated
                del entry[chance.randrange(len(entry)) :]
            case 4:  # other bytes between entries
                entry += chance.choice(
                    (bytes(chance.randrange(40)), chance.randbytes(chance.randrange(40)), b"\xff" * 20)
                )
            case 5:  # a number of the header, with a valid checksum
                if len(entry) > 61 and entry[16] == 2:
                    at_byte = chance.choice((22, 23, 26, 27, 53, 57, 60))
                    entry[at_byte] ^= 1 << chance.randrange(8)
                    entry = bytearray(resealed(bytes(entry)))
            case 6:  # the magic
                if len(entry) > 16:
                    entry[16] = chance.choice((0, 1, 2, 3, 255))
        entries[at] = bytes(entry)
    return b"".join(entries)


@pytest.mark.parametrize("seed", ROUNDS)
def test_log_bytes(seed: int) -> None:
    chance = random.Random(seed)
    rows = [mutated(chance) for _ in range(40)]
    unchecked = FUNCTIONS["kafka_records"].decode(pa.array(rows, pa.binary()), verify_crc=False)
    answers = zip(rows, ask("kafka_records", rows), ask("kafka_batches", rows), plain(unchecked), strict=True)
    for data, one, batches, without_check in answers:
        assert one == oracle.records(data), data.hex()
        assert batches == oracle.batches(data), data.hex()
        assert without_check == oracle.records(data, verify_crc=False), data.hex()


@pytest.mark.parametrize("seed", ROUNDS)
def test_prefixes_and_searches(seed: int) -> None:
    chance = random.Random(seed)
    rows = [mutated(chance) for _ in range(40)]
    for data, size, following in zip(rows, ask("kafka_valid_bytes", rows), ask("kafka_next_offset", rows), strict=True):
        intact = []
        for position, stop, error, _ in oracle.entries(data):
            if error:
                break
            intact.append((stop, oracle.batches(data[position:stop])[0]["last_offset"]))
        assert size == (intact[-1][0] if intact else 0)
        assert following == (oracle.wrapped(intact[-1][1] + 1, 64) if intact else None)


def mutated_messages(magic: int, seed: int) -> list[bytes]:
    chance = random.Random(seed)
    messages = [message for message, _ in golden.messages(magic) if len(message) < 300]
    rows = []
    for _ in range(300):
        message = bytearray(chance.choice(messages))
        for _ in range(chance.randrange(3)):
            at = chance.randrange(min(len(message), 30))
            match chance.randrange(4):
                case 0:
                    message[at] ^= 1 << chance.randrange(8)
                case 1:
                    message[at:] = message[at:] + b"tail"
                case 2:
                    del message[chance.randrange(1, len(message) + 1) :]
                case 3:
                    message[at] = chance.choice((0, 255))
                    message[:4] = zlib.crc32(message[4:]).to_bytes(4, "big")
        rows.append(bytes(message))
    return rows


@pytest.mark.parametrize("seed", ROUNDS)
@pytest.mark.parametrize("magic", [0, 1])
def test_messages(magic: int, seed: int) -> None:
    rows = mutated_messages(magic, seed)
    for data, answer in zip(rows, ask("kafka_message", rows), strict=True):
        assert answer == oracle.message(data), data.hex()


def test_cut_at_every_byte() -> None:
    """If valid log bytes are truncated, the complete entries stay, and the truncated entry is a row."""
    for data in [data for data in SOURCES if len(data) < 700]:
        cuts = [data[:size] for size in range(len(data))]
        assert ask("kafka_records", cuts) == [oracle.records(cut) for cut in cuts]
        assert ask("kafka_batches", cuts) == [oracle.batches(cut) for cut in cuts]


def test_one_row_is_many_rows() -> None:
    """Results do not depend on neighbours, blocks and arenas: all logs at once, each alone, and split into entries."""
    logs = [log.data for log in golden.logs()]
    together = ask("kafka_records", logs)
    assert together == [ask("kafka_records", [data])[0] for data in logs]
    for data, rows in zip(logs[::9], together[::9], strict=True):
        pieces = [data[position:stop] for position, stop, _, _ in oracle.entries(data)]
        apart = [row | {"position": None} for piece in ask("kafka_records", pieces) for row in piece]
        assert apart == [row | {"position": None} for row in rows]


@pytest.mark.parametrize("piece", [1, 300, 5000])
def test_results_do_not_depend_on_pieces(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For any number of bytes at a time, and for any position at which room runs out or a codec begins."""
    rows = [mutated(random.Random(seed)) for seed in range(60)] + [log.data for log in golden.logs()]
    whole = ask("kafka_records", rows)
    monkeypatch.setattr(parse, "CACHEFUL", piece)
    assert ask("kafka_records", rows) == whole


@pytest.mark.parametrize("count", [BLOCK_ENTRIES - 1, BLOCK_ENTRIES, 2 * BLOCK_ENTRIES + 7])
def test_more_entries_than_one_block_holds(count: int) -> None:
    entries = []
    for offset in range(count):
        covered = bytes([0, 0]) + struct.pack(">ii", -1, -1)
        entries.append(struct.pack(">qiI", offset, 4 + len(covered), zlib.crc32(covered)) + covered)
    data = pa.array([b"".join(entries[:99]), b"".join(entries[99:])], pa.binary())
    for name in ("kafka_records", "kafka_batches"):
        answer = FUNCTIONS[name].decode(data)
        offsets = answer.flatten().field("offset" if name == "kafka_records" else "last_offset")
        assert offsets.to_pylist() == list(range(count))
        assert answer.offsets.to_pylist() == [0, 99, count]
