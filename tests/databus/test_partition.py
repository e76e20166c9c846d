"""`dbus_key_partition` against a model of Java's rules, for every kind of key."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from tests.support.arrow import plain
from tests.support.databus_damage import golden_rows
from tests.support.oracles import databus as oracle
from tests.support.oracles.databus_json import java_string

PARTITION = FUNCTIONS["dbus_key_partition"]
KEYS = {
    # The results of Java 17 (except the magnitude of -2^63): Long.parseLong, else String.hashCode.
    "": 0,
    "7": 7,
    "-7": 7,
    "+7": 7,
    "007": 7,
    "0000000000000000000000000000012": 12,
    "9223372036854775807": 2**63 - 1,
    "-9223372036854775808": 2**63,
    "٤٢": 42,
    "-": 45,
    "+": 43,
    "hello": 99162322,
    "1 ": 1551,
    "+-1": 42767,
    "１２": 12,
    "polygenelubricants": 2**31,
    "\U0001f600": 1772899,
    "9223372036854775808": 1773151197,
}


def java_hash(text: str) -> int:
    """The int `String.hashCode`."""
    hashed = 0
    for unit in np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2"):
        hashed = (31 * hashed + int(unit)) % 2**32
    return hashed - 2**32 if hashed >= 2**31 else hashed


def java_number(key: bytes) -> int:
    """The magnitude of KeyModFilter's number for a text key; Python's `int` accepts more texts than Java."""
    text = java_string(key)
    digits = text[1:] if text[:1] in ("-", "+") else text
    if digits and all(c.isdecimal() and ord(c) < 0x10000 for c in digits) and -(2**63) <= int(text) < 2**63:
        return abs(int(text))
    return abs(java_hash(text))


def events(keys: list[bytes]) -> pa.Array:
    column = pa.StructArray.from_arrays([pa.array(keys, pa.binary())], ["key_bytes"])
    return FUNCTIONS["to_dbus_event"].decode(column)


def partitions(column: pa.Array, n: int) -> list[int | None]:
    return plain(PARTITION.decode(column, pa.array([n] * len(column), pa.int32())))


def test_texts() -> None:
    for key, magnitude in KEYS.items():
        assert java_number(key.encode()) == magnitude, key
    for n in (1, 2, 7, 1000, 2**31 - 1):
        assert partitions(events([key.encode() for key in KEYS]), n) == [size % n for size in KEYS.values()]


def test_any_text() -> None:
    chance = random.Random(9)
    alphabet = ["", "0", "1", "9", "-", "+", "a", "é", "٣", "\uff19", "\U0001d7d9", "\U00010400", "\uffff"]
    keys = ["".join(chance.choices(alphabet, k=chance.randrange(24))).encode() for _ in range(5000)]
    keys += [bytes(chance.choices(b"\x7f\x80\xc3\xe2\x82\xf0\x9f1", k=6)) for _ in range(5000)]
    assert partitions(events(keys), 1009) == [java_number(key) % 1009 for key in keys]


def test_every_golden_event() -> None:
    rows = golden_rows()
    expected = []
    for row in rows:
        known = oracle.decode(row)
        number = known["key_long"] if known["key_long"] is not None else java_number(known["key_bytes"])
        expected.append(abs(number) % 5)
    assert partitions(pa.array(rows, pa.binary()), 5) == expected


def test_no_key_no_partition() -> None:
    rows = [b"", golden_rows()[0][:40], None]
    assert partitions(pa.array(rows, pa.binary()), 4) == [None, None, None]
    n = pa.array([3, None], pa.int32())
    assert plain(PARTITION.decode(pa.array(golden_rows()[:2], pa.binary()), n))[1] is None


@pytest.mark.parametrize("n", [0, -3])
def test_n_is_positive(n: int) -> None:
    with pytest.raises(ValueError, match=rf"dbus_key_partition\(\) expected n of at least 1, got {n}"):
        partitions(pa.array(golden_rows()[:3], pa.binary()), n)
