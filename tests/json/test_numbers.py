"""The text of a decimal, and numbers that a DOUBLE or a DECIMAL holds exactly or not at all."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkwire.json import conversions, values
from sparkwire.json.mysql_types import of_declaration, of_sql
from sparkwire.json.numbers import decimal_texts, floats_of, long_decimals
from sparkwire.json.typed_images import JsonRows, Versions, read_images
from sparkwire.json.types import Type, type_of


def read(texts: list[str], declared: Type, requested: Type | None = None) -> list[Any]:
    """The JSON texts as a column, from messages that declare a type."""
    rows = [f'{{"a":{text}}}' for text in texts]
    data = "".join(rows).encode()
    ends = np.cumsum([len(row.encode()) for row in rows])
    begins = np.concatenate(([0], ends[:-1]))
    objects = values.roots(np.frombuffer(data, np.uint8), begins, ends, np.ones(len(rows), np.bool_))
    types = {"a": requested or declared}
    images = read_images(JsonRows(objects, types), types, Versions(np.zeros(len(rows), np.int32), [{"a": declared}]))
    unexpected = {row for entry in images.unexpected for row in entry.rows.tolist()}
    column: list[Any] = images.column.field(0).to_pylist()
    assert unexpected == {k for k, value in enumerate(column) if value is None and texts[k] != "null"}
    return column


def unscaled(number: int, size: int = 20) -> str:
    """A decimal as Connect's JSON has it."""
    return json.dumps(base64.b64encode(number.to_bytes(size, "big", signed=True)).decode())


@pytest.mark.parametrize("scale", [0, 6, 7, 10, 37])
def test_text_of_decimal(scale: int) -> None:
    """No exponent, and all digits of the scale."""
    numbers = [0, 1, -1, 10, 123456789, -(10**scale)]
    column = pa.array([None, *(Decimal(n).scaleb(-scale) for n in numbers)], pa.decimal128(38, scale))
    expected = [None]
    for number in numbers:
        digits = str(abs(number)).rjust(scale + 1, "0")
        text = digits[: len(digits) - scale] + "." * (scale > 0) + digits[len(digits) - scale :]
        expected.append("-" * (number < 0) + text)
    assert decimal_texts(column).to_pylist() == expected
    assert decimal_texts(column[2:]).to_pylist() == expected[2:]


SAME = ["0E-10", "0", "0.0", "1E-8", "1e-8", "0.00000001", "1000.0", "1E+3", "1000.0000000000"]
PLAIN = [*["0.0000000000"] * 3, *["0.0000000100"] * 3, *["1000.0000000000"] * 3]
ODD = ["0.00000000001", "1e999999999", "true"]


@pytest.mark.parametrize("declared", ["decimal(65,10)", "decimal(38,10)"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_mysql_decimal_as_text(declared: str, quote: str) -> None:
    """Of Canal and Maxwell: numbers and texts of numbers, if the column is a STRING or the type has more than 38 digits."""
    type = of_declaration(declared)
    texts = [f"{quote}{text}{quote}" for text in [*SAME, *ODD]]
    assert read(texts, type, of_sql("STRING")) == [*PLAIN, None, None, None]


@pytest.mark.parametrize("requested", ["Decimal(65,10)", "DECIMAL(65,10)", "string"])
def test_connect_decimal_as_text(requested: str) -> None:
    """Of Debezium: bytes, and JSON numbers (``decimal.format=NUMERIC``)."""
    texts = [*SAME, unscaled(0), unscaled(100), unscaled(10**13)]
    expected = [*PLAIN, "0.0000000000", "0.0000000100", "1000.0000000000"]
    assert read(texts, type_of("Decimal(65,10)"), type_of(requested)) == expected


def test_versions_of_a_long_decimal() -> None:
    """A number has one text, whatever the version of the table that it is from."""
    requested = type_of("Decimal(85,30)")
    expected = "1.500000000000000000000000000000"
    assert read([unscaled(15)], type_of("Decimal(65,1)"), requested) == [expected]
    assert read([unscaled(15 * 10**29)], type_of("Decimal(65,30)"), requested) == [expected]
    assert read(['"FQ=="'], type_of("Decimal(12,1)"), requested) == ["2.1" + "0" * 29]
    assert read(["3"], type_of("int32"), requested) == ["3." + "0" * 30]


def test_number_without_a_declared_scale() -> None:
    """Of Maxwell, a decimal may have no declaration. A number has no exponent then; a text is as it is."""
    assert read(["1E-8", "0E-10", "1.50", '"1E-8"'], of_sql("STRING")) == ["0.00000001", "0.0000000000", "1.50", "1E-8"]


def test_long_decimals_that_do_not_fit() -> None:
    texts = ["1.25", "12345", "1.234", "x", None, "-0.00"]
    assert long_decimals(pa.array(texts), 6, 2).to_pylist() == ["1.25", None, None, None, None, "0.00"]


# ---------------------------------------------------------------- numbers that a DOUBLE does not have

BEYOND = 2**53 + 1


@pytest.mark.parametrize("token", [str(BEYOND), f"{BEYOND}.0", "9.007199254740993E15", "9007199254740.993e3"])
def test_number_that_no_double_is(token: str) -> None:
    """9007199254740993 is between two DOUBLEs: it is unexpected from every token of JSON, and from every declared type."""
    assert read([token, "9007199254740992"], type_of("double")) == [None, 2.0**53]
    assert read([token, f'"{token}"', '"9007199254740992"'], of_declaration("double")) == [None, None, 2.0**53]
    assert read([str(BEYOND)], type_of("int64"), type_of("double")) == [None]
    assert read([unscaled(BEYOND)], type_of("Decimal(38,0)"), type_of("double")) == [None]
    assert read([token], type_of("DECIMAL(20,2)"), type_of("double")) == [None]


def test_numbers_that_doubles_are() -> None:
    """The digits of a DOUBLE, in the ways in which Java and Go write them; also those that Java before 19 writes."""
    texts = {
        "0.1": 0.1,
        "-0.0": -0.0,
        "1e22": 1e22,
        "123456789012345680000": 1.2345678901234568e20,
        "1.2345678901234568E20": 1.2345678901234568e20,
        "5.684341886080802E-14": 2.0**-44,
        "0.30000000000000004": 0.1 + 0.2,
        "12345678.123456789": 12345678.123456789,
        "0.1000000000000000055511151231257827": 0.1,
        "4.9E-324": 5e-324,
        "1.7976931348623157E308": 1.7976931348623157e308,
        "0.000000000000000000": 0.0,
        "NaN": None,
        "-Infinity": float("-inf"),
    }
    read = floats_of(pa.array([*texts, None]), pa.float64()).to_pylist()
    assert np.isnan(read[12])
    assert read[:12] + read[13:] == [*list(texts.values())[:12], float("-inf"), None]


def test_numbers_that_lose_digits() -> None:
    texts = [
        "90071992547409.93",
        "0.1234567890123456789",
        "1e-400",
        "1e400",
        "16777216.0000000000001",
        "-9223372036854775807",
    ]
    assert floats_of(pa.array(texts), pa.float64()).to_pylist() == [None] * len(texts)
    assert floats_of(pa.array(["16777217", "0.1", "1e39"]), pa.float32()).to_pylist() == [None, np.float32(0.1), None]


def test_bounds_of_integers() -> None:
    """A DOUBLE outside of BIGINT has no integer; processors do not agree on what its conversion gives."""
    doubles = pa.array([2.0**63, -(2.0**63), 1e300, float("nan"), float("inf"), 2.0**31])
    assert conversions.fit(doubles, pa.int64()).to_pylist() == [None, -(2**63), None, None, None, 2**31]
    assert conversions.fit(doubles, pa.int32()).to_pylist() == [None] * 6
    largest = pa.array([2**63 - 1, 2**62, -(2**63)])
    assert conversions.fit(largest, pa.float64()).to_pylist() == [None, 2.0**62, -(2.0**63)]


def test_decimals_and_doubles() -> None:
    """A decimal with a fraction is the nearest DOUBLE, if that has the decimal's digits."""
    decimals = [Decimal("0.1"), Decimal("0.123456789012345678"), Decimal("1.5")]
    column = pa.array(decimals, pa.decimal128(38, 18))
    assert conversions.fit(column, pa.float64()).to_pylist() == [0.1, None, 1.5]
    assert conversions.fit(column, pa.string()).to_pylist() == [
        "0.100000000000000000",
        "0.123456789012345678",
        "1.500000000000000000",
    ]


def test_a_decimal_of_variable_scale_without_a_schema() -> None:
    """Debezium's object of a scale and a number becomes a DECIMAL, as it does with a schema."""
    objects = ['{"scale":2,"value":"AJY="}', '{"scale":3,"value":"BdwA"}', '{"value":"AJY="}', '{"scale":2}', '{"a":1}']
    for type in (type_of("DECIMAL(12,2)"), type_of("Decimal(12,2)")):
        assert read(objects, type) == [Decimal("1.50"), Decimal("384.00"), None, None, None]
        assert read(objects, type_of("VariableScaleDecimal"), type)[:2] == [Decimal("1.50"), Decimal("384.00")]
    assert read(objects[:1], type_of("DECIMAL(60,4)")) == ["1.5000"]
