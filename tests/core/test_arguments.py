"""Values for columns and constants: each gives a result or a clear error message."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from sparkwire.catalogue import SAMPLES
from sparkwire.core.function import Function

EVENT = SAMPLES["event"]
SEQUENCE = FUNCTIONS["dbus_sequence"]
PARTITION = FUNCTIONS["dbus_key_partition"]
NOT_UTF8 = b"\xff\xfe"
VIEW = pa.binary_view() if hasattr(pa, "binary_view") else pa.binary()  # from pyarrow 16 on


def text(data: bytes, rows: int = 1) -> pa.Array:
    """STRING without validation, as Spark passes it."""
    return pa.array([data] * rows, pa.binary()).view(pa.string())


COLUMNS: dict[str, Any] = {
    "a chunked array": pa.chunked_array([[EVENT, None], [], [EVENT]], pa.binary()),
    "a chunk": pa.chunked_array([[EVENT, None, EVENT]], pa.binary()),
    "a table's column": pa.table({"x": pa.array([EVENT, None, EVENT])})["x"],
    "a view": pa.array([EVENT, None, EVENT], VIEW),
    "a dictionary": pa.array([EVENT, None, EVENT], pa.binary()).dictionary_encode(),
    "a list": [EVENT, None, EVENT],
    "a tuple": (EVENT, None, EVENT),
    "a series": pd.Series([EVENT, None, EVENT]),
    "a series over Arrow": pd.Series(pa.array([EVENT, None, EVENT]), dtype=pd.ArrowDtype(pa.binary())),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_columns_of_every_kind(column: Any) -> None:
    assert SEQUENCE.decode(column).to_pylist() == [77, None, 77]


def test_no_chunks() -> None:
    assert SEQUENCE.decode(pa.chunked_array([], pa.binary())).to_pylist() == []


def test_nested() -> None:
    writer = FUNCTIONS["to_dbus_event"]
    expected = writer.decode(pa.array([{"key_long": 5, "value": b"v"}]))
    assert writer.decode([{"key_long": 5, "value": b"v"}]) == expected
    views = pa.StructArray.from_arrays([pa.array([5]), pa.array([b"v"], VIEW)], ["key_long", "value"])
    assert writer.decode(views) == expected
    records = FUNCTIONS["to_kafka_records"]
    large = pa.array([[{"value": b"a"}]], pa.large_list(pa.struct([("value", VIEW)])))
    assert records.decode(large, [0], ["none"], [2]).is_valid().to_pylist() == [True]


TAKES = "dbus_sequence() expected event"
REJECTED: dict[str, tuple[Any, str]] = {
    "None": (None, f"{TAKES} as an Arrow array, a list or a pandas Series, got None"),
    "bytes": (EVENT, f"{TAKES} as an Arrow array, a list or a pandas Series, got a Python bytes"),
    "a number": (7, f"{TAKES} as an Arrow array, a list or a pandas Series, got 7"),
    "numpy": (np.zeros(3, "S9"), f"{TAKES} as an Arrow array, a list or a pandas Series, got a numpy.ndarray"),
    "a scalar": (
        pa.scalar(EVENT),
        f"{TAKES} as an Arrow array, a list or a pandas Series, got a pyarrow.lib.BinaryScalar",
    ),
    "a list of texts": (["a"], f"{TAKES} BINARY, got STRING"),
    "a series of numbers": (pd.Series([1.5]), f"{TAKES} BINARY, got DOUBLE"),
    "a table's texts": (pa.chunked_array([["a"]]), f"{TAKES} BINARY, got STRING"),
    "a mixture": ([EVENT, 1], f"{TAKES} BINARY, got values of another type ("),
    "objects": ([object()], f"{TAKES} BINARY, got values of another type ("),
}


@pytest.mark.parametrize(("column", "sentence"), REJECTED.values(), ids=REJECTED)
def test_a_value_that_is_not_a_column_gives_a_clear_error(column: Any, sentence: str) -> None:
    with pytest.raises(TypeError) as rejected:
        SEQUENCE.decode(column)
    assert str(rejected.value).startswith(sentence)
    assert "\n" not in str(rejected.value)


@pytest.mark.parametrize(
    ("n", "error", "sentence"),
    [
        (
            pa.array([2**63], pa.uint64()),
            TypeError,
            "dbus_key_partition() expected (event BINARY, n INT), got (BINARY, UINT64): the second, n: INT, got UINT64",
        ),
        (pa.array([2**31], pa.uint32()), ValueError, "dbus_key_partition() expected n INT, got 2147483648"),
        ([2**31], TypeError, "dbus_key_partition() expected n INT, got values of another type ("),
        (None, TypeError, "dbus_key_partition() expected n as an Arrow array, a list or a pandas Series, got None"),
        ([3, 4], TypeError, "dbus_key_partition() expected columns of the same number of rows, got event of 1, n of 2"),
        ([], TypeError, "dbus_key_partition() expected columns of the same number of rows, got event of 1, n of 0"),
    ],
)
def test_a_second_column(n: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error) as rejected:
        PARTITION.decode(pa.array([EVENT]), n)
    assert str(rejected.value).startswith(sentence)


def test_integers_of_any_width_that_fit() -> None:
    for n in ([3], pa.array([3], pa.uint8()), pa.array([3], pa.uint32()), pd.Series([3])):
        assert PARTITION.decode(pa.array([EVENT]), n).to_pylist() == [2]
    index = FUNCTIONS["kafka_offset_index"]
    assert len(index.decode([SAMPLES["offset_index"]], pa.array([2**40], pa.uint64()))) == 1
    with pytest.raises(
        ValueError, match=r"kafka_offset_index\(\) expected base_offset BIGINT, got 9223372036854775808$"
    ):
        index.decode([b""], pa.array([2**63], pa.uint64()))


@pytest.mark.parametrize(
    ("function", "columns"),
    [
        ("to_kafka_message", ([b"k"] * 1000, [b"a"])),
        ("kafka_offset_index", ([b""] * 9, [1])),
        ("kafka_search_offset", ([b""], [1] * 9)),
        ("to_kafka_records", ([[]], [0, 0], ["none"], [2])),
    ],
)
def test_columns_of_different_lengths_are_rejected(function: str, columns: tuple[list[Any], ...]) -> None:
    types = [argument.type for argument in FUNCTIONS[function].arguments]
    arrays = [pa.array(column, type) for column, type in zip(columns, types, strict=False)]
    with pytest.raises(TypeError, match=rf"{function}\(\) expected columns of the same number of rows, got "):
        FUNCTIONS[function].decode(*arrays)


@pytest.mark.parametrize(
    ("function", "constant", "sentence"),
    [
        ("kafka_records", {"verify_crc": "yes"}, "kafka_records() expected verify_crc BOOLEAN, got 'yes'"),
        ("kafka_records", {"verify_crc": 1}, "kafka_records() expected verify_crc BOOLEAN, got 1"),
        ("kafka_records", {"max_batch_bytes": 1.5}, "kafka_records() expected max_batch_bytes BIGINT, got 1.5"),
        ("kafka_records", {"max_batch_bytes": "5"}, "kafka_records() expected max_batch_bytes BIGINT, got '5'"),
        ("kafka_records", {"max_batch_bytes": True}, "kafka_records() expected max_batch_bytes BIGINT, got True"),
        (
            "kafka_records",
            {"max_batch_bytes": 2**63},
            "kafka_records() expected max_batch_bytes BIGINT, got 9223372036854775808",
        ),
        ("dbus_to_json", {"encoding": 5}, "dbus_to_json() expected encoding STRING, got 5"),
        ("dbus_to_json", {"encoding": b"JSON"}, "dbus_to_json() expected encoding STRING, got a Python bytes"),
    ],
)
def test_constants_must_have_their_type(function: str, constant: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TypeError) as rejected:
        FUNCTIONS[function].decode(pa.array([b""], pa.binary()), **constant)
    assert str(rejected.value) == sentence


def test_a_repeated_field_is_rejected() -> None:
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["sequence", "sequence"])
    with pytest.raises(TypeError, match=r"to_dbus_event\(\) expected event with each field once, got sequence twice"):
        FUNCTIONS["to_dbus_event"].decode(twice)


@pytest.mark.parametrize("field", ["byte_order", "opcode", "key_type", "event_type", "key"])
def test_text_that_is_not_utf8_in_an_event(field: str) -> None:
    fields = [text(NOT_UTF8), pa.array(["LONG"])] if field == "key" else [text(NOT_UTF8)]
    column = pa.StructArray.from_arrays(fields, [field, "key_type"][: len(fields)])
    with pytest.raises(ValueError, match=r"^to_dbus_event\(\) expected .*, got '\\\\xff\\\\xfe'$"):
        FUNCTIONS["to_dbus_event"].decode(column)


@pytest.mark.parametrize("field", ["operation", "before", "after"])
def test_text_that_is_not_utf8_in_a_change(field: str) -> None:
    with pytest.raises(ValueError, match=r"^to_datahub_blob\(\) expected .*, got '\\\\xff\\\\xfe'$"):
        FUNCTIONS["to_datahub_blob"].decode(pa.StructArray.from_arrays([text(NOT_UTF8)], [field]))


def test_text_that_is_not_utf8_is_no_json() -> None:
    json = FUNCTIONS["dbus_to_json"].decode([EVENT])[0].as_py().encode()
    rows = pa.array([b'{"a":"\xff"}', json, json.replace(b'"value"', b'"v\xff":1,"value"')], pa.binary()).view(
        pa.string()
    )
    got = FUNCTIONS["dbus_from_json"].decode(rows).to_pylist()
    assert got[0] is None
    assert got[1] == EVENT
    assert got[2] is None


def test_an_encoding_that_is_not_utf8() -> None:
    with pytest.raises(ValueError, match=r"dbus_to_json\(\) expected encoding .*, got '\\\\xff\\\\xfe'$"):
        FUNCTIONS["dbus_to_json"].decode([EVENT, EVENT], text(NOT_UTF8, 2))


# -- nested and optional arguments

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
