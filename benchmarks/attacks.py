"""Bytes made to cost as much as they can: none may be decoded at less than ``FLOOR`` on one core.

An attack is one cell of ``SIZE`` bytes. The rate is that of the process's own time, one thread; the table of a run names the
worst of each format by its figure. To add one: a line in the format's table.
"""

from __future__ import annotations

import gzip
import json
import random
import struct
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import cramjam
import crc32c
import pyarrow as pa

from benchmarks.report import Row, above, below
from benchmarks.timing import Timing, amount
from sparkwire import FUNCTIONS
from sparkwire.avro.typed_values import typed
from sparkwire.catalogue import SAMPLES
from sparkwire.kafka.files import kafka_log

FLOOR: Final = 10.0  # [MB/s]
FLOOR_OF_OBJECTS: Final = 0.05  # of bytes each of which becomes a Python object [MB/s]
FLOOR_OF_BLOCKS: Final = 3.0  # of blocks of 5 bytes, each a call of the library [MB/s]
SIZE: Final = amount(8_000_000, trial=80_000)  # [bytes]
ROUNDS: Final = amount(3, trial=1)

Attack = Callable[[], bytes]


def repeated(pattern: bytes, before: bytes = b"", after: bytes = b"") -> Attack:
    """``pattern`` as often as it fits."""
    return lambda: before + pattern * ((SIZE - len(before) - len(after)) // len(pattern)) + after


def _long_header(size: int) -> bytes:
    """A V2 header that says it is ``size`` bytes long, and so is its event; its checksum is wrong."""
    return bytes.fromhex("02cafedeed") + struct.pack(">i", size) + bytes(8) + struct.pack(">i", size) + bytes(30)


DATABUS: Final[Mapping[str, Attack]] = {
    "zeros": repeated(b"\0"),
    "V1 headers of zeros with a length": repeated(b"\0\0\0\x40"),
    "V2 headers of 64 KiB, every 9 bytes": repeated(bytes.fromhex("02cafedeed0000ffff")),
    "the same, lengths that agree": repeated(bytes.fromhex("02cafedeed0000ff00")),
    "V2 headers of 1 KiB, every 9 bytes": repeated(bytes.fromhex("02cafedeed00000400")),
    "an event, then a header of half the stream": repeated(SAMPLES["event"] + _long_header(SIZE // 2)),
    "an event, then a byte": repeated(SAMPLES["event"] + b"\xff"),
}


def _batch(payload: bytes, codec: int, count: int = 1) -> bytes:
    """A record batch with a right checksum."""
    covered = struct.pack(">hiqqqhii", codec, count - 1, 0, 0, -1, -1, -1, count) + payload
    return struct.pack(">qiibI", 0, 9 + len(covered), 0, 2, crc32c.crc32c(covered)) + covered


def _xerial() -> bytes:
    blocks = (struct.pack(">i", 5) + bytes.fromhex("030861 6263")) * (SIZE // 9)
    return _batch(b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + blocks, 2)


def _lz4() -> bytes:
    blocks = (struct.pack("<I", 5) + b"\x40abcd") * (SIZE // 9)
    return _batch(bytes.fromhex("04224d18604082") + blocks + bytes(4), 3)


def _record(value: bytes) -> bytes:
    body = b"\0\0\0\1" + _varint(len(value)) + value + b"\0"
    return _varint(len(body)) + body


def _varint(value: int) -> bytes:
    folded, out = 2 * value, bytearray()
    while folded > 127:
        out.append(folded & 127 | 128)
        folded >>= 7
    return bytes([*out, folded])


def _bombs(count: int, value: int) -> bytes:
    return _batch(bytes(cramjam.zstd.compress(_record(bytes(value)), 3)), 4) * count


def _plain(size: int) -> bytes:
    return _batch(_record(bytes(1000)) * (size // 1007), 0, size // 1007)


_EMPTY_MESSAGE: Final = bytes(2) + b"\xff" * 8  # magic 0, neither key nor value

KAFKA: Final[Mapping[str, Attack]] = {
    "zeros": repeated(b"\0"),
    "01, each byte a size of 16 MB": lambda: b"\1" * (4 * SIZE),
    "0, 1 and 2 at random: sizes of all lengths": lambda: bytes(random.Random(1).choices(b"\0\1\2", k=SIZE)),
    "an entry that claims the rest, every 29 bytes": repeated(
        struct.pack(">qi", 0, 1 << 20) + bytes(4) + b"\2" + bytes(12)
    ),
    "messages of 26 bytes": repeated(bytes(8) + struct.pack(">iI", 14, zlib.crc32(_EMPTY_MESSAGE)) + _EMPTY_MESSAGE),
    "records of 7 bytes": lambda: _batch(b"\x0c\0\0\0\1\1\0" * (SIZE // 7), 0, SIZE // 7),
    "empty gzip members": lambda: _batch(gzip.compress(b"", mtime=0) * (SIZE // 20), 1),
    "the same, and a byte": lambda: _batch(gzip.compress(b"", mtime=0) * (SIZE // 20) + b"x", 1),
    "snappy in blocks of 5 bytes": _xerial,
    "lz4 in blocks of 5 bytes": _lz4,
    "40 MB plain, then 760 bombs of 1 MB": lambda: _plain(5 * SIZE) + _bombs(760, 1_000_000),
    "760 bombs of 1 MB, then 40 MB plain": lambda: _bombs(760, 1_000_000) + _plain(5 * SIZE),
}
"""Of ``kafka_records``. Bombs count as what they become: decompressing is no attack, what comes on top of it is."""

KAFKA_LOG: Final[Mapping[str, Attack]] = {
    "zeros": KAFKA["zeros"],
    "a byte after each small batch": lambda: (_batch(_record(b"x"), 0) + b"\xff") * (SIZE // 77),
    "headers of 30 bytes, magic 1": repeated(struct.pack(">qiIbb", 0, 1 << 20, 0, 1, 0) + bytes(12)),
    "an entry that claims the rest, every 29 bytes": KAFKA["an entry that claims the rest, every 29 bytes"],
    "batches in the value of one whose size lies": lambda: (
        struct.pack(">qiibI", 0, SIZE // 2, 0, 2, 0) + _batch(_record(b"x"), 0) * (SIZE // 76)
    ),
    "messages of 26 bytes": KAFKA["messages of 26 bytes"],
}
"""Of the data source, as a segment."""

_INTS: Final = {"type": "array", "items": "int"}


def _twice(levels: int) -> dict[str, Any]:
    """A record with the one below it twice: so many levels are ``2 ** levels`` ints."""
    schema: dict[str, Any] = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}]}
    for level in range(1, levels + 1):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"R{level - 1}"}]
        schema = {"type": "record", "name": f"R{level}", "fields": fields}
    return schema


AVRO_JSON: Final[Mapping[str, tuple[Any, Attack]]] = {
    "records twice within each other, 20 levels": (_twice(20), lambda: bytes(1 << 20)),
    "blocks of one int": (_INTS, repeated(b"\2\0", after=b"\0")),
    "blocks of one int, and their sizes": (_INTS, repeated(b"\1\2\0", after=b"\0")),
    "empty texts": ({"type": "array", "items": "string"}, lambda: b"\xff\xff\xff\7" + bytes((1 << 23) + 1)),
    "a map of one key": ({"type": "map", "values": "null"}, repeated(b"\2\2a", after=b"\0")),
}
"""Schema and datum; of ``avro_json``, and of a typed function where a column can be made of it."""

BOMB_BYTES: Final = 760_000_000


def _message(schema: str = "{}", after: str = "{}") -> tuple[bytes, bytes]:
    """A message around what is repeated in its schema or its image, in two halves."""
    payload = f'{{"op":"INSERT","timestamp":{{"eventTime":1}},"after":{{"dataColumn":{after}}}}}'
    before, _, rest = f'{{"schema":{schema},"payload":{payload}}}'.partition("HERE")
    return before.encode(), rest.encode()


def _in_schema(member: str, pattern: str) -> Attack:
    return repeated(pattern.encode(), *_message(schema=f'{{"{member}":[HERE1]}}'))


def _in_image(pattern: str, last: str = '"z":1', ends: tuple[str, str] = ("{", "}")) -> Attack:
    return repeated(pattern.encode(), *_message(after=f"{ends[0]}HERE{last}{ends[1]}"))


def _deep() -> bytes:
    before, after = _message(after='{"a":HERE}')
    depth = (SIZE - len(before) - len(after)) // 2
    return before + b"[" * depth + b"]" * depth + after


def _names() -> bytes:
    """A key of many names, and an image that has them all."""
    names = [f"n{k}" for k in range(SIZE // 22)]
    before, after = _message(f'{{"primaryKey":{json.dumps(names, separators=(",", ":"))}}}', "HERE")
    return before + json.dumps(dict.fromkeys(names, 1), separators=(",", ":")).encode() + after


DATAHUB: Final[Mapping[str, Attack]] = {
    "a key of one name, again and again": _in_schema("primaryKey", '"a",'),
    "a key of as many names as the image": _names,
    "columns that are numbers": _in_schema("dataColumn", "1,"),
    "columns that are empty objects": _in_schema("dataColumn", "{},"),
    "columns of one name": _in_schema("dataColumn", '{"name":"a","type":"DATE"},'),
    "an image of one name, again and again": _in_image('"a":1,'),
    "an image of half surrogate pairs": _in_image('"a":"\\ud800",'),
    "an image of escapes": _in_image("\\u0001", last='":1', ends=('{"', "}")),
    "an image of dates": _in_image('"d":-62135596800000,'),
    "nesting": _deep,
    "nesting that never ends": repeated(b'{"a":['),
    "quotes": repeated(b'{"":""', b"", b""),
}


def rows() -> list[Row]:
    """The claims, one an attack."""
    return [
        *(claim("dbus_events", name, attack) for name, attack in DATABUS.items()),
        *(
            claim(
                "kafka_records",
                name,
                attack,
                BOMB_BYTES * ("bombs" in name),
                FLOOR_OF_BLOCKS if "blocks of 5 bytes" in name else FLOOR,
            )
            for name, attack in KAFKA.items()
        ),
        bombs_beyond_the_bound(),
        *(log_claim(name, attack) for name, attack in KAFKA_LOG.items()),
        *(json_claim(name, schema, attack) for name, (schema, attack) in AVRO_JSON.items()),
        *(
            typed_claim(name, schema, attack)
            for name, (schema, attack) in AVRO_JSON.items()
            if schema["type"] != "record"
        ),
        *(claim("datahub_change", name, attack) for name, attack in DATAHUB.items()),
        *(claim("datahub_shard_key", name, attack) for name, attack in DATAHUB.items() if "key" in name),
    ]


def bombs_beyond_the_bound() -> Row:
    """1 MB of bombs, each more than a batch may become: what they take is bounded for each cell, whatever its size."""
    bomb = _bombs(1, 300_000_000)
    column = pa.array([bomb * (1_000_000 // len(bomb))], pa.binary())
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        FUNCTIONS["kafka_records"].decode(column)
        taken.append(time.process_time() - began)
    return below("kafka_records: a cell of bombs beyond the bound", Timing(tuple(taken)), "s", 2)


def claim(function: str, name: str, attack: Attack, inflated: int = 0, floor: float = FLOOR) -> Row:
    column = pa.array([attack()], pa.binary())
    decode = FUNCTIONS[function].decode
    return rate(f"{function}: {name}", lambda: decode(column), len(column[0].as_buffer()) + inflated, floor)


def log_claim(name: str, attack: Attack) -> Row:
    """The bytes as the segment of a topic, its plan and its tasks."""
    with tempfile.TemporaryDirectory() as folder:
        segment = Path(folder, f"{0:020}.log")
        segment.write_bytes(attack())

        def read() -> None:
            query = kafka_log.query({"path": folder})
            for task in kafka_log.plan(query):
                for _ in kafka_log.read(query, task):
                    pass

        return rate(f"kafka_log: {name}", read, segment.stat().st_size)


def json_claim(name: str, schema: Any, attack: Attack) -> Row:
    """With what reads the schema, made for each round."""
    column, decode = pa.array([attack()], pa.binary()), FUNCTIONS["avro_json"].decode
    versions = iter(range(ROUNDS + 1))

    def read() -> None:
        decode(column, schema=json.dumps({**schema, "doc": f"version {next(versions)}"}))

    return rate(
        f"avro_json: {name}", read, len(column[0].as_buffer()), FLOOR_OF_OBJECTS if "20 levels" in name else FLOOR
    )


def typed_claim(name: str, schema: Any, attack: Attack) -> Row:
    column, decoder = pa.array([attack()], pa.binary()), typed(schema)
    return rate(f"avro.decode: {name}", lambda: decoder.decode(column), len(column[0].as_buffer()))


def rate(work: str, read: Callable[[], object], size: int, floor: float = FLOOR) -> Row:
    """Bytes for each second of this process, after one round that compiles."""
    read()
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        read()
        taken.append(size / 1e6 / (time.process_time() - began))
    return above(work, Timing(tuple(taken)), "MB/s", floor)
