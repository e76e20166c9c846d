"""Conversion of columns to JSON, compared with Python's ``json``: missing values, slices and all types."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from sparkwire.json.columns import array_of, base64_of, items_of, joined, number_of, object_of, string_of

VALUES = ("a", None, 'é€😀"\\\n', "")


def objects(*columns: list[str | None]) -> list[Any]:
    """Objects from Python's ``json``, without the missing members of each row."""
    rows = zip(*columns, strict=True)
    return [{f"k{k}": value for k, value in enumerate(row) if value is not None} for row in rows]


@pytest.mark.parametrize("type", [pa.string(), pa.large_string(), pa.binary()])
def test_objects_of_every_combination(type: pa.DataType) -> None:
    rows = list(product(VALUES, repeat=3))
    columns = [list(column) for column in zip(*rows, strict=True)]
    arrays = [
        string_of(pa.array([v if v is None else v.encode() for v in column], pa.binary()).cast(type))
        for column in columns
    ]
    texts = object_of({f"k{k}": array for k, array in enumerate(arrays)}, len(rows))
    texts.validate(full=True)
    assert [json.loads(text) for text in texts.to_pylist()] == objects(*columns)
    cut = object_of({f"k{k}": array[7:20] for k, array in enumerate(arrays)}, 13)
    assert cut.equals(texts[7:20])


@pytest.mark.parametrize("first", [None, "x"])
def test_members_of_no_row_and_of_every_row(first: str | None) -> None:
    arrays = {
        "k0": pa.array([first] * 2, pa.string()),
        "k1": pa.array(["1", None]),
        "k2": "true",
        "k3": pa.nulls(2, pa.string()),
    }
    members = arrays | {"k0": string_of(arrays["k0"])}
    begin = {} if first is None else {"k0": "x"}
    assert [json.loads(text) for text in object_of(members, 2).to_pylist()] == [
        begin | {"k1": 1, "k2": True},
        begin | {"k2": True},
    ]
    assert object_of({"k3": arrays["k3"]}, 2, end="}\n").to_pylist() == ["{}\n", "{}\n"]
    assert object_of({"k2": "true"}, 0).to_pylist() == []


def test_arrays() -> None:
    lists = pa.array([["a", None], None, [], ["b"]], pa.list_(pa.string()))
    for given, expected in ((lists, ['["a",null]', None, "[]", '["b"]']), (lists[1:], [None, "[]", '["b"]'])):
        assert array_of(given, string_of(given.flatten())).to_pylist() == expected


@pytest.mark.parametrize("type", [pa.string(), pa.large_string()])
def test_a_text_that_is_missing(type: pa.DataType) -> None:
    first = pa.array(["before", "a", None], type)[1:]
    assert joined("<", first, "é", pa.array(["b", "c"]), ">").to_pylist() == ["<aéb>", None]


@pytest.mark.parametrize(
    "numbers",
    [
        pa.array([1.0, -2.5, None, 5e9], pa.float32()),
        pa.array([1.0, -2.5, None, 1e20, 0.1]),
        pa.array([1, 0, None], pa.int32()),
        pa.array([True, False, None]),
    ],
)
def test_numbers(numbers: pa.Array) -> None:
    texts = number_of(numbers)
    assert [None if text is None else json.loads(text) for text in texts.to_pylist()] == [
        None if number is None else json.loads(str(number).lower()) for number in numbers.to_pylist()
    ]
    assert number_of(numbers[:0]).to_pylist() == []


def test_numbers_that_json_does_not_have() -> None:
    texts = number_of(pa.array([float("nan"), None, float("inf"), float("-inf"), 3.0]))
    assert texts.to_pylist() == ['"NaN"', None, '"Infinity"', '"-Infinity"', "3.0"]


def test_base64() -> None:
    assert base64_of(pa.array([b"", b"a", None, bytes(60)], pa.binary())).to_pylist() == [
        '""',
        '"YQ=="',
        None,
        f'"{"A" * 80}"',
    ]


def test_items() -> None:
    offsets = pa.array([0, 2, 2, 3], pa.int32())
    assert items_of(offsets, pa.array(['"a":1', '"b":2', '"c":3']), "{}").to_pylist() == [
        '{"a":1,"b":2}',
        "{}",
        '{"c":3}',
    ]
