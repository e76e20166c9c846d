"""What holds for every function of the catalogue, whatever it decodes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS, Function
from sparkwire.catalogue import SAMPLES
from tests.arrow import plain

# Functions of bytes alone: with their constants left at the defaults they take one BINARY column.
DECODERS = [
    f for f in FUNCTIONS.values() if f.arguments[0].type == pa.binary() and all(a.constant for a in f.arguments[1:])
]
every_decoder = pytest.mark.parametrize("function", DECODERS, ids=lambda f: f.name)
every_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda f: f.name)


def rows_for(function: Function) -> list[bytes]:
    """Bytes that the function can read, cut at every place and flipped, and bytes that nobody wrote."""
    chance = random.Random(function.arguments[0].name)
    rows = [b""]
    for sample in SAMPLES.values():
        rows.append(sample)
        rows += [sample[:end] for end in range(0, len(sample), max(1, len(sample) // 60))]
        for _ in range(30):
            flipped = bytearray(sample)
            flipped[chance.randrange(len(sample))] ^= 1 << chance.randrange(8)
            rows.append(bytes(flipped))
    rows += [chance.randbytes(chance.randrange(1, 200)) for _ in range(100)]
    return rows + [bytes(size) for size in (1, 17, 61, 100)]


def answers(function: Function, rows: Sequence[bytes | None], type: pa.DataType | None = None) -> list[Any]:
    array = function.decode(pa.array(rows, type or pa.binary()))
    array.validate(full=True)
    assert array.type == function.return_type
    return plain(array)


@every_decoder
def test_one_batch_is_many_batches(function: Function) -> None:
    rows = rows_for(function)
    assert [answers(function, [row])[0] for row in rows[::7]] == answers(function, rows)[::7]


@every_decoder
def test_a_slice_is_its_rows(function: Function) -> None:
    rows: list[bytes | None] = [*rows_for(function), None]
    array = pa.array(rows, pa.binary())
    whole = answers(function, rows)
    assert plain(function.decode(array[5:-3])) == whole[5:-3]
    assert plain(function.decode(array[len(rows) - 1 :])) == [None]


@every_decoder
def test_large_binary_is_binary(function: Function) -> None:
    rows = rows_for(function)
    assert answers(function, rows, pa.large_binary()) == answers(function, rows)


@every_decoder
def test_null_gives_null(function: Function) -> None:
    rows: list[bytes | None] = [None, *SAMPLES.values(), None]
    got = answers(function, rows)
    assert got[0] is None
    assert got[-1] is None
    assert got[1:-1] == answers(function, rows[1:-1])
    assert answers(function, [None, None]) == [None, None]
    assert plain(function.decode(pa.nulls(2))) == [None, None]


@every_decoder
def test_no_rows(function: Function) -> None:
    assert answers(function, []) == []


@every_function
def test_wrong_arguments_are_one_sentence(function: Function) -> None:
    wrong: list[list[pa.Array]] = [[], [pa.array([1.5])], [pa.array([True])] * 9]
    for arguments in wrong:
        with pytest.raises(TypeError) as refused:
            function.decode(*arguments)
        sentence = str(refused.value)
        assert sentence.startswith(f"{function.name} takes (")
        assert ", got " in sentence
        assert "\n" not in sentence


@every_function
def test_an_unknown_name_is_refused(function: Function) -> None:
    given = [pa.array([b""], pa.binary())] * sum(a.required for a in function.arguments)
    with pytest.raises(TypeError, match=r"no_such_argument => 'x'"):
        function.decode(*given, no_such_argument="x")


@every_function
def test_documented(function: Function) -> None:
    assert function.doc.endswith(".")
    assert function.example_expression.count(function.name) >= 1
    assert function.example_answer
