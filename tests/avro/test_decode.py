"""Decoding of Avro to columns and to JSON equals fastavro and the oracle on random schemas and data."""

from __future__ import annotations

import io
import json
import struct
import sys
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwire import FUNCTIONS
from sparkwire.avro import json_readers
from sparkwire.avro.arrow_columns import Decoded, decode, plan
from sparkwire.avro.json_readers import MAX_BYTES, RecursiveJson
from sparkwire.avro.schema import parse
from sparkwire.base.error_codes import OK
from sparkwire.core.column import spans_of
from tests.support.arrow import with_dicts
from tests.support.oracles import avro as oracle

DATA = 6  # a schema


def read(schema: Any, rows: list[bytes | None], reader: Any = None) -> Decoded:
    writer = parse(schema)
    decoded = decode(plan([writer], writer if reader is None else parse(reader)), spans_of(pa.array(rows, pa.binary())))
    decoded.column.validate(full=True)
    return decoded


def values(schema: Any, rows: list[bytes | None], reader: Any = None) -> list[Any]:
    decoded = read(schema, rows, reader)
    result: list[Any] = with_dicts(decoded.column)
    return result


def jsons(schema: Any, rows: list[bytes | None]) -> list[Any]:
    texts = FUNCTIONS["avro_json"].decode(pa.array(rows, pa.binary()), schema=json.dumps(schema))
    texts.validate(full=True)
    return [None if text is None else json.loads(text) for text in texts.to_pylist()]


def by_fastavro(schema: Any, rows: list[bytes | None]) -> list[Any]:
    """The same as ``jsons``, with the decoder for recursive schemas."""
    texts = RecursiveJson(parse(schema)).read(spans_of(pa.array(rows, pa.binary()))).texts
    return [None if text is None else json.loads(text) for text in texts.to_pylist()]


def compared(chance: Random) -> None:
    """Check that fastavro, our columns and our JSON agree on the oracle's bytes for a random schema and random data."""
    text = oracle.random_schema(chance)
    schema = parse(text)
    data = [oracle.random_datum(chance, schema) for _ in range(DATA)]
    rows: list[bytes | None] = [oracle.encode(schema, datum, chance) for datum in data]
    ready = fastavro.parse_schema(text)
    for row, datum in zip(rows, data, strict=True):
        assert row is not None
        assert fastavro.schemaless_reader(io.BytesIO(row), ready, None) == oracle.as_fastavro(schema, datum)
    assert values(text, rows) == [oracle.as_column(schema, datum) for datum in data]
    expected = [oracle.as_json(schema, datum) for datum in data]
    assert jsons(text, rows) == expected
    assert by_fastavro(text, rows) == expected


@pytest.mark.parametrize("seed", range(8))
def test_as_fastavro(seed: int) -> None:
    chance = Random(seed)
    for _ in range(40):
        compared(chance)


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_as_fastavro_on_data_of_hypothesis(chance: Random) -> None:
    compared(chance)


def test_nulls_and_leftover_bytes() -> None:
    assert values(["null", "int"], [None, b"\0", b"\2\4", b"\2\4rest"]) == [None, None, 2, 2]
    assert list(read("int", [None, b"\4"]).errors) == [OK, OK]


def test_no_rows() -> None:
    assert values({"type": "array", "items": "string"}, []) == []
    schema = pa.array([], pa.string())
    assert len(FUNCTIONS["avro_json"].decode(pa.array([], pa.binary()), schema)) == 0


def test_buffers_grow() -> None:
    schema = {"type": "array", "items": {"type": "map", "values": ["null", "string", "bytes"]}}
    chance = Random(5)
    parsed = parse(schema)
    data = [[[(f"key {k}", (1, "text" * 200)) for k in range(60)] for _ in range(50)] for _ in range(2)]
    rows: list[bytes | None] = [oracle.encode(parsed, datum, chance) for datum in data]
    assert values(schema, rows) == [oracle.as_column(parsed, datum) for datum in data]
    assert jsons(schema, rows) == [oracle.as_json(parsed, datum) for datum in data]


@pytest.mark.parametrize("keys", [2, 40])
def test_the_last_of_a_repeated_key_counts(keys: int) -> None:
    schema = {"type": "map", "values": "int"}
    pairs = [(f"k{k % 30}", k) for k in range(keys)] + [("k1", -1)]
    rows: list[bytes | None] = [oracle.encode(parse(schema), [("a", 1)]), oracle.encode(parse(schema), pairs)]
    assert values(schema, rows) == [{"a": 1}, dict(pairs)]


def test_a_recursive_schema_is_json() -> None:
    schema = {
        "type": "record",
        "name": "Node",
        "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "Node"]}],
    }
    assert jsons(schema, [b"\2\2\4\0"]) == [{"v": 1, "next": {"v": 2, "next": None}}]
    with pytest.raises(ValueError, match=r"^record Node is recursive, .*avro_json$"):
        read(schema, [])


def test_a_large_datum_of_a_recursive_schema_is_too_large() -> None:
    """Every byte of it would become a Python object."""
    schema = json.dumps(
        {"type": "record", "name": "N", "fields": [{"name": "n", "type": {"type": "array", "items": "N"}}]}
    )
    largest = b"\x02" + bytes(3)  # a node in a node; the bytes after it are no part of the datum
    rows = pa.array([largest.ljust(MAX_BYTES, b"\0"), largest.ljust(MAX_BYTES + 1, b"\0"), b"\x02"], pa.binary())
    assert FUNCTIONS["avro_error"].decode(rows, schema=schema).to_pylist() == [None, "TOO_LARGE", "TRUNCATED"]
    assert FUNCTIONS["avro_json"].decode(rows, schema=schema).to_pylist() == ['{"n":[{"n":[]}]}', None, None]


def test_a_datum_of_a_recursive_schema_with_much_json_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each level copies the JSON of the levels in it."""
    schema = {"type": "record", "name": "M", "fields": [{"name": "much", "type": {"type": "array", "items": "M"}}]}
    two_levels, three_levels = b"\2\0\0", b"\2\2\0\0\0"
    monkeypatch.setattr(json_readers, "MAX_TEXT", len('{"much":[{"much":[]}]}'))
    rows = pa.array([two_levels, three_levels, two_levels], pa.binary())
    assert FUNCTIONS["avro_error"].decode(rows, schema=json.dumps(schema)).to_pylist() == [None, "TOO_LARGE", None]
    assert jsons(schema, [two_levels, three_levels]) == [{"much": [{"much": []}]}, None]


def test_a_recursive_schema_of_many_levels() -> None:
    schema = {"type": "record", "name": "Deep", "fields": [{"name": "in", "type": {"type": "array", "items": "Deep"}}]}
    deep = FUNCTIONS["avro_json"].decode(pa.array([b"\2" * 1000 + b"\0" * 1001]), schema=json.dumps(schema))
    assert deep.to_pylist() == ['{"in":[' * 1001 + "]}" * 1001]
    wide = b"\4" + b"\2\0\0" * 2 + b"\0"
    assert jsons(schema, [wide]) == [{"in": [{"in": [{"in": []}]}] * 2}]


def test_without_fastavro(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    node = {"type": "record", "name": "Alone", "fields": [{"name": "next", "type": ["null", "Alone"]}]}
    assert jsons("int", [b"\2"]) == [1]
    with pytest.raises(
        ModuleNotFoundError,
        match=r"^avro_json of a recursive schema needs .*: install the extra 'registry' of sparkwire$",
    ):
        jsons(node, [b"\0"])


def logical(kind: str, name: str, **rest: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **rest}


def fixed(size: int, name: str, **rest: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size, "logicalType": name, **rest}


VARINT = oracle.varint
TEXTS: list[tuple[Any, bytes, Any]] = [
    (logical("long", "timestamp-nanos"), VARINT(-1), "1969-12-31T23:59:59.999999999Z"),
    (logical("long", "local-timestamp-nanos"), VARINT(1), "1970-01-01T00:00:00.000000001"),
    (fixed(16, "uuid"), bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
    (fixed(12, "duration"), b"\1\0\0\0\2\0\0\0\xbc\x0b\0\0", "P1M2DT3.004S"),
    (logical("string", "uuid"), b'\6a"\\', 'a"\\'),
    (logical("bytes", "decimal", precision=20, scale=14), b"\2\xff", "-0.00000000000001"),
    (logical("bytes", "decimal", precision=50, scale=2), b"\4\1\2", "AQI="),
    (fixed(30, "decimal", precision=60, scale=2), bytes(30), "A" * 40),
    (["int", logical("long", "timestamp-millis")], b"\2" + VARINT(1), "1970-01-01T00:00:00.001Z"),
    (["null", logical("int", "date"), "long"], b"\2" + VARINT(1), "1970-01-02"),
    (["float", "double"], b"\0" + struct.pack("<f", 0.1), 0.1),
    (["float", "double"], b"\2" + struct.pack("<d", 1e300), 1e300),
    (["null"], b"\0", None),
    ("bytes", VARINT(100) + bytes(100), "A" * 134 + "=="),
    ({"type": "map", "values": "int"}, b"\4\2a\2\2a\4\0", {"a": 2}),
]


@pytest.mark.parametrize(("schema", "row", "expected"), TEXTS)
def test_values_that_a_column_alone_cannot_show(schema: Any, row: bytes, expected: Any) -> None:
    assert jsons(schema, [row]) == by_fastavro(schema, [row]) == [expected]


@pytest.mark.parametrize("number", [1.0, -0.0, 1e15, 1e16, 1e23, 123456789012345680.0, 5e-324, 1.7976931348623157e308])
def test_the_digits_of_numbers(number: float) -> None:
    """The text has a fraction or an exponent, and is read back as the same number."""
    rows: list[bytes | None] = [struct.pack("<d", number)]
    for found in (*jsons("double", rows), *by_fastavro("double", rows)):
        assert type(found) is float
        assert struct.pack("<d", found) == rows[0]


def test_numbers_that_json_does_not_have() -> None:
    nan, infinite = bytes.fromhex("000000000000f87f"), bytes.fromhex("000000000000f0ff")
    for read in (jsons, by_fastavro):
        assert read("double", [nan, infinite]) == ["NaN", "-Infinity"]
        assert read("float", [b"\0\0\x80\x7f"]) == ["Infinity"]


@pytest.mark.parametrize(("logical", "size"), [("duration", 12), ("uuid", 16)])
def test_a_fixed_value_in_a_record_that_is_null(logical: str, size: int) -> None:
    fixed = {"type": "fixed", "name": "f", "size": size, "logicalType": logical}
    inner = {"type": "record", "name": "i", "fields": [{"name": "d", "type": fixed}]}
    schema = {"type": "record", "name": "r", "fields": [{"name": "u", "type": ["null", inner]}]}
    null, value = jsons(schema, [b"\0", b"\2" + bytes(size)])
    assert null == {"u": None}
    assert set(value["u"]) <= {"d", "i", "r.i"}
