"""Columns to JSON, against Python's own: whatever is missing, however columns are cut and typed."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from sparkwire.core.json_columns import array_of, joined, object_of, string_of

VALUES = ("a", None, 'é€😀"\\\n', "")


def objects(*columns: list[str | None]) -> list[Any]:
    """As Python makes them: without the members that a row has not."""
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
def test_members_that_no_row_has_and_that_every_row_has(first: str | None) -> None:
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
