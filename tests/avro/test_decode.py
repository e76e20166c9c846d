"""Avro to columns and to JSON: equal to fastavro and to the oracle on random schemas and data."""

from __future__ import annotations

import io
import json
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwire import FUNCTIONS
from sparkwire.avro.arrow_columns import Decoded, decode, plan
from sparkwire.avro.schema import parse
from sparkwire.base.error_codes import OK
from sparkwire.core.column import spans_of
from tests.support.oracles import avro as oracle

DATA = 6  # a schema


def read(schema: Any, rows: list[bytes | None], reader: Any = None) -> Decoded:
    writer = parse(schema)
    decoded = decode(plan([writer], writer if reader is None else parse(reader)), spans_of(pa.array(rows, pa.binary())))
    decoded.column.validate(full=True)
    return decoded


def values(schema: Any, rows: list[bytes | None], reader: Any = None) -> list[Any]:
    decoded = read(schema, rows, reader)
    result: list[Any] = decoded.column.to_pylist(maps_as_pydicts="strict")
    return result


def jsons(schema: Any, rows: list[bytes | None]) -> list[Any]:
    texts = FUNCTIONS["avro_json"].decode(pa.array(rows, pa.binary()), schema=json.dumps(schema))
    texts.validate(full=True)
    return [None if text is None else json.loads(text) for text in texts.to_pylist()]


def compared(chance: Random) -> None:
    """A random schema, random data: fastavro, our columns and our JSON say the same of the oracle's bytes."""
    text = oracle.random_schema(chance)
    schema = parse(text)
    data = [oracle.random_datum(chance, schema) for _ in range(DATA)]
    rows: list[bytes | None] = [oracle.encode(schema, datum, chance) for datum in data]
    ready = fastavro.parse_schema(text)
    for row, datum in zip(rows, data, strict=True):
        assert row is not None
        assert fastavro.schemaless_reader(io.BytesIO(row), ready, None) == oracle.as_fastavro(schema, datum)
    assert values(text, rows) == [oracle.as_column(schema, datum) for datum in data]
    assert jsons(text, rows) == [oracle.as_json(schema, datum) for datum in data]


@pytest.mark.parametrize("seed", range(8))
def test_as_fastavro(seed: int) -> None:
    chance = Random(seed)
    for _ in range(40):
        compared(chance)


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_as_fastavro_on_what_hypothesis_writes(chance: Random) -> None:
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


def test_numbers_that_json_has_not() -> None:
    nan, infinite = bytes.fromhex("000000000000f87f"), bytes.fromhex("000000000000f0ff")
    assert jsons("double", [nan, infinite]) == ["NaN", "-Infinity"]
    assert jsons("float", [b"\0\0\x80\x7f"]) == ["Infinity"]
