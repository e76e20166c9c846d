"""Contracts of every function in the catalogue."""

from __future__ import annotations

import random
from functools import cache
from typing import Any, Final

import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from sparkwire.catalogue import FORMATS, SAMPLES
from sparkwire.core.function import Function
from tests.support.arrow import enlarged

every_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda f: f.name)

ROWS = 40  # number of rows for functions without BINARY arguments
RECORDS: Final = [
    [{"key": b"k", "value": bytes(n), "timestamp_ms": n, "headers": [{"key": "h", "value": None}], "offset": offset}]
    for n, offset in ((0, 0), (1, 7), (200, 1 << 40))
]
TAKEN: Final[dict[str, list[Any]]] = {
    "n": [1, 2, 1000],
    "to_kafka_message magic": [0, 1],
    "to_kafka_records magic": [2],
    "to_kafka_records base_offset": [0, 7, 1 << 40],
    "to_kafka_records records": [[], *RECORDS, [*RECORDS[0], *RECORDS[-1]]],
    "timestamp_type": ["CreateTime", "LogAppendTime"],
    "compression": ["none", "gzip", "snappy", "lz4", "zstd", "LZ4"],
}
"""values for arguments that do not accept every value of their type, by argument, or by function and argument"""
VALUES: Final[dict[pa.DataType, list[Any]]] = {
    pa.string(): ["", "a", 'é"\\\n\U0001f600', "[]", '{"a": {"b": [1, null]}}', "1600000000000"],
    pa.binary(): [b"", b"\x00", bytes(range(256)), b"value"],
    pa.bool_(): [True, False],
    pa.int16(): [-1, 0, 7],
    pa.int32(): [-1, 0, 7],
    pa.int64(): [-1, 0, 7, 1_600_000_000_000],
}
CONSTANTS: Final = {
    "schema": '{"type":"record","name":"R","fields":[{"name":"a","type":"long"},{"name":"b","type":["null","string"]}]}'
}
"""values for constants without a default, by argument"""


def rows_of_bytes(name: str) -> list[bytes]:
    """Valid bytes, these truncated at about 20 positions and with flipped bits, and random bytes."""
    chance = random.Random(name)
    rows = [b""]
    for sample in SAMPLES.values():
        rows.append(sample)
        rows += [sample[:end] for end in range(0, len(sample), max(1, len(sample) // 20))]
        for _ in range(10):
            flipped = bytearray(sample)
            flipped[chance.randrange(len(sample))] ^= 1 << chance.randrange(8)
            rows.append(bytes(flipped))
    rows += [chance.randbytes(chance.randrange(1, 200)) for _ in range(50)]
    return rows + [bytes(size) for size in (1, 17, 61, 100)]


@cache
def columns_for(name: str) -> tuple[pa.Array, ...]:
    """A column for each column argument of a function, all of the same length."""
    function = FUNCTIONS[name]
    arguments = [argument for argument in function.arguments if not argument.constant]
    rows = len(rows_of_bytes("")) if arguments[0].type == pa.binary() else ROWS
    return tuple(column_for(function, k, rows) for k in range(len(arguments)))


def column_for(function: Function, k: int, rows: int) -> pa.Array:
    argument = function.arguments[k]
    if pa.types.is_struct(argument.type):
        return what_is_read_from(function, argument.type, rows)
    if argument.type == pa.binary() and rows > ROWS:
        result = rows_of_bytes(argument.name)
        return pa.array([result[(i + 17 * k) % rows] for i in range(rows)], argument.type)
    chance = random.Random(f"{function.name} {argument.name}")
    taken = TAKEN.get(f"{function.name} {argument.name}", TAKEN.get(argument.name))
    values = [chance.choice(taken) if taken else any_value(argument.type, chance) for _ in range(rows)]
    return pa.array(values, argument.type)


def what_is_read_from(function: Function, type: pa.DataType, rows: int) -> pa.Array:
    """The argument of an encoder: the result of its format's struct function on the samples."""
    [format] = [format for format in FORMATS if function in format.functions]
    read = FUNCTIONS[format.struct].decode(pa.array(list(format.samples.values()), pa.binary()))
    intact = [row for row in read.to_pylist() if row["is_valid"]]
    return pa.array([intact[i % len(intact)] for i in range(rows)], type)


def any_value(type: pa.DataType, chance: random.Random) -> Any:
    if pa.types.is_list(type):
        return [any_value(type.value_type, chance) for _ in range(chance.randrange(4))]
    if pa.types.is_struct(type):
        return {field.name: any_value(field.type, chance) for field in type}
    return chance.choice(VALUES[type])


def decode(function: Function, *columns: pa.Array) -> pa.Array:
    given = {a.name: CONSTANTS[a.name] for a in function.arguments if a.constant and a.required}
    return function.decode(*columns, **given)


def results(function: Function, *columns: pa.Array) -> pa.Array:
    array = decode(function, *columns)
    array.validate(full=True)
    assert array.type == function.return_type
    return array


@cache
def whole_results(name: str) -> pa.Array:
    return results(FUNCTIONS[name], *columns_for(name))


def with_nulls(column: pa.Array, rows: list[int]) -> pa.Array:
    """The column, with NULL in these rows."""
    return column.take(pa.array([None if i in rows else i for i in range(len(column))], pa.int64()))


@every_function
def test_one_batch_is_many_batches(function: Function) -> None:
    columns = columns_for(function.name)
    some = range(0, len(columns[0]), 37)
    alone = [results(function, *(column.take(pa.array([i])) for column in columns)) for i in some]
    assert pa.concat_arrays(alone).equals(whole_results(function.name).take(pa.array(some)))


@every_function
def test_a_slice_is_its_rows(function: Function) -> None:
    columns = [with_nulls(column, [len(column) - 1]) for column in columns_for(function.name)]
    whole = results(function, *columns)
    assert results(function, *(column[5:-3] for column in columns)).equals(whole[5:-3])
    assert results(function, *(column[len(whole) - 1 :] for column in columns)).equals(whole[-1:])


@every_function
def test_large_columns_are_columns(function: Function) -> None:
    columns = columns_for(function.name)
    assert results(function, *map(enlarged, columns)).equals(whole_results(function.name))


@every_function
def test_null_gives_null(function: Function) -> None:
    """NULL in a required column gives NULL, unless the function handles NULLs. In an optional column, NULL is the default."""
    columns = columns_for(function.name)
    whole = whole_results(function.name)
    rows = [0, 3, len(whole) - 1]
    others = pa.array([i for i in range(len(whole)) if i not in rows])
    for k in range(len(columns)):
        nulls = [with_nulls(column, rows) if i == k else column for i, column in enumerate(columns)]
        got = results(function, *nulls)
        assert got.take(others).equals(whole.take(others))
        if not function.called_on_null and function.arguments[k].required:
            assert got.take(pa.array(rows)).null_count == 3
            two = [pa.nulls(2) if i == k else column[:2] for i, column in enumerate(columns)]
            assert decode(function, *two).null_count == 2


@every_function
def test_no_rows(function: Function) -> None:
    assert len(results(function, *(column[:0] for column in columns_for(function.name)))) == 0


TEXTS = [name for name, f in FUNCTIONS.items() if any("STRING" in a.sql for a in f.arguments if not a.constant)]


@pytest.mark.parametrize("name", TEXTS)
def test_text_that_is_not_utf8(name: str) -> None:
    """The function returns a result or raises a clear error message."""
    columns = [spoilt(column) for column in columns_for(name)]
    try:
        FUNCTIONS[name].decode(*columns).validate()  # such texts may be in the result
        said = f"{name}() expected it"
    except ValueError as rejected:
        said = str(rejected)
    assert said.startswith(f"{name}() expected ")
    assert "\n" not in said


def spoilt(array: pa.Array) -> pa.Array:
    """The column with all its texts replaced by invalid UTF-8."""
    type = array.type
    if pa.types.is_string(type):
        odd = [None if text is None else text.encode() + b"\xff" for text in array.to_pylist()]
        return pa.array(odd, pa.binary()).view(pa.string())
    if pa.types.is_struct(type):
        columns = [spoilt(column) for column in array.flatten()]
        return pa.StructArray.from_arrays(columns, [field.name for field in type])
    if pa.types.is_map(type):
        return pa.MapArray.from_arrays(array.offsets, spoilt(array.keys), spoilt(array.items))
    if pa.types.is_list(type):
        return pa.ListArray.from_arrays(array.offsets, spoilt(array.values))
    return array


@every_function
def test_wrong_arguments_give_a_clear_error(function: Function) -> None:
    wrong: list[list[pa.Array]] = [[], [pa.array([1.5])], [pa.array([True])] * 9]
    for arguments in wrong:
        with pytest.raises(TypeError) as rejected:
            function.decode(*arguments)
        sentence = str(rejected.value)
        assert sentence.startswith(f"{function.name}() expected (")
        assert ", got " in sentence
        assert "\n" not in sentence


@every_function
def test_an_unknown_name_is_rejected(function: Function) -> None:
    given = [pa.array([b""], pa.binary())] * sum(a.required for a in function.arguments)
    with pytest.raises(TypeError, match=r"no_such_argument => 'x'"):
        function.decode(*given, no_such_argument="x")


@every_function
def test_documented(function: Function) -> None:
    assert function.doc.endswith(".")
    assert function.example_expression.count(function.name) >= 1
    assert function.example_result
