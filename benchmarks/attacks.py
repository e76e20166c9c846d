"""Bytes made to cost as much as they can: none may be decoded at less than ``FLOOR`` on one core.

An attack is one cell of ``SIZE`` bytes. The rate is that of the process's own time, one thread; the table of a run names the
worst of each format by its figure. To add one: a line in the format's table.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

from benchmarks.report import Row, above
from benchmarks.timing import Timing
from sparkwire import FUNCTIONS
from sparkwire.catalogue import SAMPLES

FLOOR: Final = 40.0  # [MB/s]
SIZE: Final = 8_000_000  # [bytes]
ROUNDS: Final = 3

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
        *(claim("datahub_change", name, attack) for name, attack in DATAHUB.items()),
        *(claim("datahub_shard_key", name, attack) for name, attack in DATAHUB.items() if "key" in name),
    ]


def claim(function: str, name: str, attack: Attack) -> Row:
    column = pa.array([attack()], pa.binary())
    decode = FUNCTIONS[function].decode
    decode(column)
    size = len(column[0].as_buffer())
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        decode(column)
        taken.append(size / 1e6 / (time.process_time() - began))
    return above(f"{function}: {name}", Timing(tuple(taken)), "MB/s", FLOOR)
