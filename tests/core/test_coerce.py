"""Nested and optional arguments of functions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sparkwire.core.function import Function

DECLARED = "STRUCT<id BIGINT, names ARRAY<STRUCT<name STRING, data BINARY>>, texts MAP<STRING, STRING>>"


def seen_by(declared: str, array: pa.Array) -> Any:
    """The column that the decoder gets for ``array``."""
    got = []

    def decoder(column: pa.Array) -> pa.Array:
        got.append(column)
        return pa.nulls(len(column), pa.int32())

    Function(f"f(x {declared}) -> INT", "", decoder, "").decode(array)
    got[0].validate(full=True)
    return got[0].to_pylist()


def test_any_fields_in_any_order() -> None:
    array = pa.array([{"names": [{"data": b"1"}], "id": 7}, None, {"names": None, "id": None}])
    assert seen_by(DECLARED, array) == [
        {"id": 7, "names": [{"name": None, "data": b"1"}], "texts": None},
        None,
        {"id": None, "names": None, "texts": None},
    ]


def test_slices_at_every_level() -> None:
    rows = [{"id": k, "names": [{"name": str(k)}] * k, "texts": [(str(k), None)] * (k % 2)} for k in range(6)]
    names = pa.list_(pa.struct([("name", pa.string())]))
    array = pa.array(rows, pa.struct([("texts", pa.map_(pa.string(), pa.null())), ("id", pa.int8()), ("names", names)]))
    whole, cut = seen_by(DECLARED, array), seen_by(DECLARED, array[2:5])
    assert cut == whole[2:5]
    assert cut[1]["names"] == [{"name": "3", "data": None}] * 3
    assert cut[1]["texts"] == [("3", None)]


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (pa.array([{"ident": 1}]), "f() expected x with the fields id, names, texts, got ident"),
        (pa.array([{"id": "1"}]), "f() expected x.id BIGINT, got STRING"),
        (pa.array([{"names": ["a"]}]), "f() expected x.names STRUCT<name STRING, data BINARY>, got STRING"),
        (pa.array([{"names": [{"size": 1}]}]), "f() expected x.names with the fields name, data, got size"),
        (pa.array([{"names": [{"name": 1}]}]), "f() expected x.names.name STRING, got BIGINT"),
    ],
)
def test_other_fields_are_rejected(array: pa.Array, sentence: str) -> None:
    with pytest.raises(TypeError) as rejected:
        seen_by(DECLARED, array)
    assert str(rejected.value) == sentence


def test_another_kind_is_rejected() -> None:
    with pytest.raises(TypeError, match=r"f\(\) expected \(x ARRAY<INT>\), got \(BIGINT\)"):
        seen_by("ARRAY<INT>", pa.array([1]))
    with pytest.raises(TypeError, match=r"f\(\) expected \(x STRUCT\), got \(BIGINT\)"):
        seen_by(DECLARED, pa.array([1]))
    with pytest.raises(TypeError, match=r"f\(\) expected \(x ARRAY<ARRAY<STRUCT>>\), got \(BIGINT\)"):
        seen_by(f"ARRAY<ARRAY<{DECLARED}>>", pa.array([1]))


def test_a_column_may_be_left_out() -> None:
    seen: list[str] = []

    def decoder(a: pa.Array, b: pa.Array | None) -> pa.Array:
        seen.append("left out" if b is None else "given")
        return a

    function = Function("f(a INT, b INT = NULL) -> INT", "", decoder, "")
    one, none = pa.array([1, 2], pa.int32()), pa.array([None, 3], pa.int32())
    assert function.decode(one).to_pylist() == [1, 2]
    assert function.decode(one, none).to_pylist() == [1, 2]
    assert function.decode(none, b=one).to_pylist() == [None, 3]
    assert function.decode(one, pa.nulls(2)).to_pylist() == [1, 2]
    assert seen == ["left out", "given", "given", "given"]
    with pytest.raises(TypeError, match=r"f\(\) expected \(a INT, b INT = NULL\), got \(b => INT\)"):
        function.decode(b=one)
