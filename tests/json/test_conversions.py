"""Values of one type as another: exactly, or NULL."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sparkwire.base.sqltype import TIMESTAMP
from sparkwire.json.conversions import fit
from sparkwire.json.types import LOCAL

DAY, NOON = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12)
MIDNIGHT = datetime.datetime(2024, 2, 29)


@pytest.mark.parametrize(
    ("old", "new", "values", "expected"),
    [
        (LOCAL, pa.date32(), [MIDNIGHT, NOON], [DAY, None]),
        (pa.date32(), LOCAL, [DAY], [MIDNIGHT]),
        (LOCAL, TIMESTAMP, [NOON], [None]),
        (pa.float64(), pa.decimal128(10, 2), [0.5, 1 / 3, float("nan"), 1e30], [Decimal("0.50"), None, None, None]),
        (pa.float64(), pa.float32(), [0.5, 0.1, float("inf")], [0.5, None, float("inf")]),
        (pa.int64(), pa.decimal128(10, 2), [7, -7, 10**9], [Decimal("7.00"), Decimal("-7.00"), None]),
        (pa.decimal128(12, 4), pa.decimal128(10, 2), [Decimal("1.5000"), Decimal("1.2345")], [Decimal("1.50"), None]),
        (pa.decimal128(12, 4), pa.int32(), [Decimal("5.0000"), Decimal("5.5000")], [5, None]),
        (pa.decimal128(38, 0), pa.decimal128(20, 0), [Decimal(10**30), Decimal(5)], [None, Decimal(5)]),
        (pa.int64(), pa.int8(), [127, 128, -129], [127, None, None]),
        (pa.int64(), pa.float64(), [2**53, 2**53 + 1], [float(2**53), None]),
        (pa.int16(), pa.bool_(), [0, 1, 5], [False, True, None]),
        (pa.string(), pa.int32(), ["12", "-3", "007", "x", "1.0"], [12, -3, None, None, None]),
        (pa.string(), pa.decimal128(5, 2), ["1.5", "1.505", "x"], [Decimal("1.50"), None, None]),
        (pa.int32(), pa.string(), [12], ["12"]),
        (pa.binary(), pa.string(), [b"a"], [None]),
        (pa.list_(pa.int32()), pa.list_(pa.int8()), [[1, None], [300], None, []], [[1, None], None, None, []]),
    ],
)
def test_fit(old: pa.DataType, new: pa.DataType, values: list[Any], expected: list[Any]) -> None:
    """A value that would lose something is NULL; with a NULL before it, and in a slice, it is the same."""
    assert fit(pa.array(values, old), new).to_pylist() == expected
    assert fit(pa.array([None, *values], old)[1:], new).to_pylist() == expected
    assert fit(pa.array([], old), new).to_pylist() == []
