"""Programs that run straight through: a block at a time they answer what the machine for single rows answers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkwire.avro import columns
from sparkwire.avro.columns import Decoded, Plan, decode, plan
from sparkwire.avro.schema import parse
from sparkwire.avro.straight import ROWS
from sparkwire.core.column import spans_of
from tests.support.oracles.avro import varint

ENUM = {"type": "enum", "name": "E", "symbols": ["A", "BB", "a symbol of more than sixteen bytes"]}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
Kinds = list[tuple[str, int | None]]
"""of each field its type, and which branch is null"""
PLAIN: list[Any] = ["int", "long", "string", "bytes", "boolean", "float", "double", "enum", "decimal", "date"]
TEXTS = ("", "short", "ä" * 9, "plain text that is longer than any sixteen bytes", "x" * 64, "y" * 300, "z" * 63 + "ö")
NUMBERS = (0, -1, 63, -65, 1 << 20, -(1 << 31), (1 << 31) - 1, 1 << 40, 1 << 55, -(1 << 63), (1 << 63) - 1)


def type_of(name: str) -> Any:
    return {"enum": ENUM, "decimal": DECIMAL, "date": {"type": "int", "logicalType": "date"}}.get(name, name)


def datum(rng: random.Random, name: str) -> bytes:
    """One value."""
    text = rng.choice(TEXTS).encode()
    number = rng.choice(NUMBERS)
    written = {
        "int": lambda: varint(number if -(1 << 31) <= number < 1 << 31 else 5),
        "long": lambda: varint(number),
        "string": lambda: varint(len(text)) + text,
        "bytes": lambda: varint(len(text)) + text,
        "boolean": lambda: bytes([rng.randrange(2)]),
        "float": lambda: rng.randbytes(4),
        "double": lambda: rng.randbytes(8),
        "enum": lambda: varint(rng.randrange(3)),
        "decimal": lambda: varint(2) + rng.randbytes(2),
        "date": lambda: varint(rng.randrange(-1000, 30000)),
    }
    return written[name]()


def schema_of(kinds: Kinds) -> dict[str, Any]:
    """A record of a field for each type, in a union with null where that has a branch."""
    named: set[str] = set()
    fields = []
    for k, (name, null) in enumerate(kinds):
        type = "E" if name == "enum" and name in named else type_of(name)
        named.add(name)
        fields.append({"name": f"f{k}", "type": type if null is None else ["null", type][:: 1 if null == 0 else -1]})
    return {"type": "record", "name": "R", "fields": fields}


def row(rng: random.Random, kinds: Kinds) -> bytes:
    parts = []
    for name, null in kinds:
        is_null = null is not None and rng.random() < 0.3
        parts.append(b"" if null is None else varint(null if is_null else 1 - null))
        parts.append(b"" if is_null else datum(rng, name))
    return b"".join(parts)


def mutated(rng: random.Random, data: bytes) -> bytes:
    if not data or rng.random() < 0.5:
        return data[: rng.randrange(len(data) + 1)]
    k = rng.randrange(len(data))
    return data[:k] + rng.randbytes(1) + data[k + 1 :]


def row_by_row(plan: Plan, column: pa.Array) -> Decoded:
    return decode(plan._replace(straight=np.zeros_like(plan.straight)), spans_of(column))


@pytest.mark.parametrize("seed", range(60))
def test_a_block_at_a_time_as_row_by_row(seed: int) -> None:
    rng = random.Random(seed)
    kinds = [(rng.choice(PLAIN), rng.choice((None, 0, 1))) for _ in range(rng.randrange(1, 9))]
    schema = parse(schema_of(kinds))
    rows: list[bytes | None] = [row(rng, kinds) for _ in range(rng.choice((1, 5, ROWS, 3 * ROWS + 7)))]
    for _ in range(rng.choice((0, 0, 1, 3, 50))):
        k = rng.randrange(len(rows))
        rows[k] = rng.choice((None, mutated(rng, rows[k] or b"\0")))
    chosen = plan([schema], schema)
    assert chosen.straight.all()
    column = pa.array(rows, pa.binary())
    got, expected = decode(chosen, spans_of(column)), row_by_row(chosen, column)
    assert got.errors.tolist() == expected.errors.tolist()
    got.column.validate(full=True)
    assert same(got.column, expected.column)


def same(a: pa.Array, b: pa.Array) -> bool:
    """The same values: of floats the same bytes, as NaN is not equal to itself."""
    for one, other in zip(a.flatten(), b.flatten(), strict=True):
        if pa.types.is_floating(one.type):
            whole = pa.int32() if one.type == pa.float32() else pa.int64()
            one, other = one.view(whole), other.view(whole)
        if not one.equals(other):
            return False
    return bool(a.is_valid().equals(b.is_valid()))


def test_data_that_are_right_and_nulls_never_need_the_machine_for_single_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(columns, "run")
    rng = random.Random(1)
    kinds: Kinds = [(name, null) for name in PLAIN for null in (None, 0)]
    schema = parse(schema_of(kinds))
    rows = [None if k % 7 == 3 else row(rng, kinds) for k in range(2 * ROWS)]
    decoded = decode(plan([schema], schema), spans_of(pa.array(rows, pa.binary())))
    assert decoded.column.is_valid().to_pylist() == [value is not None for value in rows]


def test_what_a_reader_adds_and_leaves_out() -> None:
    writer = {"type": "record", "name": "R", "fields": [
        {"name": "a", "type": "string"}, {"name": "b", "type": "long"}, {"name": "c", "type": "double"},
        {"name": "d", "type": "int"},
    ]}  # fmt: skip
    reader = {"type": "record", "name": "R", "fields": [
        {"name": "d", "type": ["null", "int"]}, {"name": "x", "type": "long", "default": 7},
        {"name": "y", "type": ["null", "string"], "default": None},
    ]}  # fmt: skip
    one = varint(3) + b"abc" + varint(1 << 50) + bytes(8) + varint(-4)
    chosen = plan([parse(writer)], parse(reader))
    assert chosen.straight.all()
    decoded = decode(chosen, spans_of(pa.array([one, None] * ROWS, pa.binary())))
    assert decoded.column.to_pylist() == [{"d": -4, "x": 7, "y": None}, None] * ROWS


@pytest.mark.parametrize(
    "inner", [{"type": "array", "items": "int"}, {"type": "map", "values": "int"}, ["int", "string"]]
)
def test_what_loops_or_branches_is_left_to_the_machine_for_single_rows(inner: Any) -> None:
    schema = parse({"type": "record", "name": "R", "fields": [{"name": "f", "type": inner}]})
    assert not plan([schema], schema).straight.any()
