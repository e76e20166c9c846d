"""Corrupt Avro data give NULL and an error code. Time and memory are bounded, and no byte outside the row is read."""

from __future__ import annotations

import json
import tracemalloc
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from sparkwire.avro import arrow_columns, json_readers
from sparkwire.avro.arrow_columns import decode, plan
from sparkwire.avro.json_readers import RecursiveJson
from sparkwire.avro.schema import parse
from sparkwire.base.error_codes import ERRORS, OK
from sparkwire.core import column as columns
from sparkwire.core.column import spans_of
from tests.support.child import run_python
from tests.support.guard import guarded_column
from tests.support.oracles import avro as oracle

INTS = {"type": "array", "items": "int"}
NULLS = {"type": "array", "items": "null"}
EMPTY = {"type": "array", "items": {"type": "record", "name": "Empty", "fields": []}}
TEXTS = {"type": "map", "values": "string"}
NODE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
NESTED = {"type": "record", "name": "Deep", "fields": [{"name": "in", "type": {"type": "array", "items": "Deep"}}]}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 0}
DATE = {"type": "int", "logicalType": "date"}
varint = oracle.varint

CASES: list[tuple[str, Any, bytes, str | None]] = [
    ("nothing", "int", b"", "TRUNCATED"),
    ("a varint is cut", "long", b"\xff", "TRUNCATED"),
    ("a varint without end", "long", b"\xff" * 11, "BAD_FIELD"),
    ("an int beyond 32 bits", "int", varint(1 << 31), "BAD_FIELD"),
    ("a boolean of 2", "boolean", b"\2", "BAD_FIELD"),
    ("half a double", "double", b"\0" * 7, "TRUNCATED"),
    ("a text of negative length", "string", varint(-1), "BAD_LENGTH"),
    ("a text of 2^62 bytes", "string", varint(1 << 62), "BAD_LENGTH"),
    ("a text beyond the datum", "string", varint(3) + b"ab", "TRUNCATED"),
    ("a text that is not UTF-8", "string", varint(2) + b"\xc3\x28", "BAD_FIELD"),
    ("half a fixed", {"type": "fixed", "name": "F", "size": 4}, b"abc", "TRUNCATED"),
    ("a branch that is not there", ["null", "int"], b"\4\2", "BAD_FIELD"),
    ("a negative branch", ["null", "int"], b"\1\2", "BAD_FIELD"),
    ("a symbol that is not there", {"type": "enum", "name": "E", "symbols": ["A"]}, b"\2", "BAD_FIELD"),
    ("a count of 2^62", INTS, varint(1 << 62), "BAD_LENGTH"),
    ("the lowest count", INTS, varint(-(1 << 63)) + varint(0), "BAD_LENGTH"),
    ("a count beyond the datum", INTS, varint(5) + b"\2\2", "TRUNCATED"),
    ("a block beyond the datum", INTS, varint(-1) + varint(9) + b"\2\0", "TRUNCATED"),
    ("a block of negative size", INTS, varint(-1) + varint(-9) + b"\2\0", "BAD_LENGTH"),
    ("no end of the blocks", INTS, varint(1) + b"\2", "TRUNCATED"),
    ("a map without end", TEXTS, (varint(1) + b"\2a\2b") * 3, "TRUNCATED"),
    ("a thousand nulls", NULLS, varint(1000) + b"\0", None),
    ("2^30 nulls", NULLS, varint(1 << 30) + b"\0", "BAD_LENGTH"),
    ("nulls again and again", NULLS, varint(1000) * 9 + b"\0", "BAD_LENGTH"),
    ("2^30 records without fields", EMPTY, varint(1 << 30) + b"\0", "BAD_LENGTH"),
    ("a decimal of 4 digits of 3", DECIMAL, b"\4" + (1000).to_bytes(2, "big"), "BAD_FIELD"),
    ("a decimal without bytes", DECIMAL, b"\0", "BAD_FIELD"),
    ("a decimal of 40 bytes", DECIMAL, varint(40) + b"\0\1" * 20, "BAD_FIELD"),
    ("a small decimal of 40 bytes", DECIMAL, varint(40) + b"\0" * 39 + b"\7", None),
    ("a day after the year 9999", DATE, varint(2932897), "BAD_FIELD"),
]
RECURSIVE: list[tuple[Any, bytes, str | None]] = [
    (NODE, b"\2" * 1000 + b"\0", None),
    (NODE, b"\2" * 2000 + b"\0", None),
    (NODE, b"\2" * 100_000 + b"\0", "BAD_LENGTH"),
    (NESTED, b"\2" * 100_000, "BAD_LENGTH"),
]


def errors_of(schema: Any, rows: list[bytes]) -> list[str | None]:
    """The errors of decoding to columns. Also checks that decoding to JSON gives the same errors."""
    parsed, column = parse(schema), pa.array(rows, pa.binary())
    decoded = decode(plan([parsed], parsed), spans_of(column))
    decoded.column.validate(full=True)
    result = [None if code == OK else ERRORS[code] for code in decoded.errors]
    assert json_errors(schema, rows) == result
    return result


def json_errors(schema: Any, rows: list[bytes]) -> list[str | None]:
    column, text = pa.array(rows, pa.binary()), json.dumps(schema)
    result: list[str | None] = FUNCTIONS["avro_error"].decode(column, schema=text).to_pylist()
    texts = FUNCTIONS["avro_json"].decode(column, schema=text)
    texts.validate(full=True)
    assert [text is None for text in texts.to_pylist()] == [error is not None for error in result]
    return result


@pytest.mark.parametrize(("name", "schema", "row", "error"), CASES, ids=[case[0] for case in CASES])
def test_codes(name: str, schema: Any, row: bytes, error: str | None) -> None:
    """The error of a corrupt row between valid rows."""
    good = oracle.encode(parse(schema), oracle.random_datum(Random(1), parse(schema)))
    assert errors_of(schema, [good, row, good]) == [None, error, None]


@pytest.mark.parametrize(("schema", "row", "error"), RECURSIVE)
def test_codes_of_recursive_data(schema: Any, row: bytes, error: str | None) -> None:
    assert json_errors(schema, [row]) == [error]


def test_deep_data_in_a_field_that_is_not_selected() -> None:
    writer = {"type": "record", "name": "R", "fields": [{"name": "deep", "type": NODE}, {"name": "a", "type": "int"}]}
    reader = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    read = plan([parse(writer)], parse(reader))
    rows = pa.array([b"\2" * 100_000 + b"\0\4", b"\2\2\0\4"], pa.binary())
    decoded = decode(read, spans_of(rows))
    assert decoded.column.to_pylist() == [None, {"a": 2}]
    assert ERRORS[decoded.errors[0]] == "BAD_LENGTH"


def test_a_bad_branch_in_a_field_that_is_not_selected() -> None:
    writer = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "deep", "type": NODE}]}
    read = plan([parse(writer)], parse({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}))
    decoded = decode(read, spans_of(pa.array([b"\2\2\4", b"\4\2\0"], pa.binary())))
    assert decoded.column.to_pylist() == [None, {"a": 2}]
    assert decoded.reasons.to_pylist() == ["BAD_FIELD", None]


def test_corrupt_sizes_take_little_memory() -> None:
    rows = [varint(1 << 30) + b"\0", varint(1000) + b"\0", varint((1 << 31) - 1) + b"\2" * 100] * 1000
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    parsed = parse(INTS)
    decoded = decode(plan([parsed], parsed), spans_of(pa.array(rows, pa.binary())))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (decoded.errors != OK).all()
    assert pa.total_allocated_bytes() - before + peak < 4_000_000


def test_rows_that_no_column_can_hold_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte selects a symbol of 1000 characters. Rows that fit are read, also after rows that do not fit."""
    for module in (arrow_columns, columns, json_readers):
        monkeypatch.setattr(module, "INT32_MAX", 100_000)
    schema = {"type": "array", "items": {"type": "enum", "name": "E", "symbols": ["S" * 1000]}}
    few, many = varint(20) + bytes(20) + b"\0", varint(90) + bytes(90) + b"\0"
    assert errors_of(schema, [few, many, few, few]) == [None, "TOO_LARGE", None, None]


def damaged(chance: Random, row: bytes) -> bytes:
    """The row, truncated, with a flipped bit, or with bytes from another position."""
    if row and chance.randrange(3) == 0:
        return row[: chance.randrange(len(row))]
    out = bytearray(row or b"\0")
    for _ in range(chance.randrange(1, 4)):
        out[chance.randrange(len(out))] = chance.choice([0, 1, 2, 127, 128, 255, chance.randrange(256)])
    return bytes(out)


def loaded(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def run_damaged(seeds: range) -> int:
    """Random schemas and corrupt data beside a guard page: every row has a result, which is the same in every form."""
    read = 0
    for seed in seeds:
        chance = Random(seed)
        schema = oracle.random_schema(chance)
        parsed, text = parse(schema), json.dumps(schema)
        rows = [damaged(chance, oracle.encode(parsed, oracle.random_datum(chance, parsed), chance)) for _ in range(20)]
        for at_end in (True, False):
            column = guarded_column(rows, at_end=at_end)
            decoded = decode(plan([parsed], parsed), spans_of(column))
            decoded.column.validate(full=True)
            said = [None if code == OK else ERRORS[code] for code in decoded.errors]
            assert FUNCTIONS["avro_error"].decode(column, schema=text).to_pylist() == said
            texts = FUNCTIONS["avro_json"].decode(column, schema=text)
            assert texts.null_count == sum(e is not None for e in said)
            recursive = RecursiveJson(parsed).read(spans_of(column))
            assert recursive.errors.tolist() == decoded.errors.tolist()
            assert list(map(loaded, recursive.texts.to_pylist())) == list(map(loaded, texts.to_pylist()))
        read += len(rows)
    return read


@pytest.mark.process
def test_damaged_data_beside_a_guard_page() -> None:
    script = "from tests.avro.test_damage import run_damaged; print(run_damaged(range(150)))"
    assert run_python("-c", script) == "3000\n"


@pytest.mark.process
def test_damaged_data_in_the_checked_build() -> None:
    script = "from tests.avro.test_damage import run_damaged; print(run_damaged(range(500, 530)))"
    assert run_python("-c", script, environment={"SPARKWIRE_CHECKED": "1"}) == "600\n"
