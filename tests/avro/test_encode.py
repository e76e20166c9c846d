"""The encoder writes back the results of the decoder."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sparkwire.avro.schema import text_of
from sparkwire.avro.typed_values import encoded, typed

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
DATE = {"type": "int", "logicalType": "date"}
FIXED = {"type": "fixed", "name": "F", "size": 2000, "logicalType": "decimal", "precision": 38, "scale": 2}
SECOND_DAY = datetime.date(1970, 1, 2)
MILLI = datetime.datetime(1970, 1, 1, 0, 0, 0, 1000, datetime.UTC)


def members(first: Any, second: Any) -> dict[str, Any]:
    """What a union with a logical type becomes: a STRUCT with the member of the branch."""
    return {"member0": first, "member1": second}


@pytest.mark.parametrize(
    ("schema", "data", "values"),
    [
        (["int", "long"], [b"\2\2", b"\2\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"], [1, -(2**63)]),
        (["null", "int", "long"], [b"\4\2", b"\0"], [1, None]),
        (["int", MILLIS], [b"\0\2", b"\2\2"], [members(1, None), members(None, MILLI)]),
        ([DATE, MILLIS], [b"\0\2", b"\2\2"], [members(SECOND_DAY, None), members(None, MILLI)]),
        (["null", "int", MILLIS], [b"\2\2", b"\4\2", b"\0"], [members(1, None), members(None, MILLI), None]),
        (["null", DATE], [b"\2\2"], [datetime.date(1970, 1, 2)]),
        (["float", "double"], [b"\2" + bytes(8)], [0.0]),
        (FIXED, [(12345).to_bytes(2000, "big")], [Decimal("123.45")]),
    ],
)
def test_decoded_data_are_encoded_to_the_same_bytes(schema: Any, data: list[bytes], values: list[Any]) -> None:
    column = typed(schema).decode(pa.array(data, pa.binary()))
    assert column.to_pylist() == values
    assert encoded(column, text_of(schema)).to_pylist() == data


def test_a_number_of_the_narrow_branch_comes_back_as_the_wide_one() -> None:
    """The column does not contain the branch."""
    column = typed(["int", "long"]).decode(pa.array([b"\0\2"], pa.binary()))
    assert encoded(column, text_of(["int", "long"])).to_pylist() == [b"\2\2"]
