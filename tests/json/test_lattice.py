"""Which type holds the values of two others: one table for Connect, SQL, Avro, JSON Schema and merged tables."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import DecimalType, DoubleType, IntegerType, LongType

from sparkwire.avro.schema import Schema, parse
from sparkwire.avro.versions import combined as combined_schemas
from sparkwire.json.types import LOCAL, combined, type_of, wider
from sparkwire.registry.json_schema import _either
from sparkwire.spark.changes import merge_types

TYPES = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32(), LOCAL, pa.string()),
    *(pa.decimal128(*digits) for digits in ((3, 0), (10, 2), (19, 0), (38, 19), (38, 20))),
)


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations_with_replacement(TYPES, 2)], ids=str)
@pytest.mark.parametrize("checked", [False, True])
def test_the_result_holds_both(one: pa.DataType, other: pa.DataType, checked: bool) -> None:
    found = wider(one, other, checked=checked)
    assert found == wider(other, one, checked=checked)
    if found is not None:
        assert wider(found, one, checked=checked) == wider(found, other, checked=checked) == found


def test_a_bigint_has_19_digits_everywhere() -> None:
    """So it goes together with DECIMAL(38,19), and with no decimal of more digits after the point."""
    assert wider(pa.int64(), pa.decimal128(38, 19)) == pa.decimal128(38, 19)
    assert wider(pa.int64(), pa.decimal128(38, 20)) is None
    assert merge_types.wider(LongType(), DecimalType(38, 19)) == DecimalType(38, 19)
    assert merge_types.wider(LongType(), DecimalType(38, 20)) is None
    assert str(combined(map(type_of, ("int64", "Decimal(38,19)")))) == "Decimal(38,19)"

    def record(type: Any) -> Schema:
        return parse({"type": "record", "name": "R", "fields": [{"name": "f", "type": type}]})

    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 19}
    [field] = combined_schemas([record("long"), record(decimal)]).fields
    assert (field.schema.precision, field.schema.scale) == (38, 19)


def test_what_differs() -> None:
    """A reader that reports inexact values may take BIGINT as DOUBLE; a table does not change from INT to DOUBLE."""
    assert wider(pa.int64(), pa.float64()) is None
    assert _either(pa.int64(), pa.float64()) == pa.float64()
    assert merge_types.wider(IntegerType(), DecimalType(5, 2)) == DecimalType(12, 2)
    assert merge_types.wider(IntegerType(), DoubleType()) is None
    pairs = {("int8", "float"): "float", ("int32", "float"): "double", ("Date", "MicroTimestamp"): "MicroTimestamp"}
    assert {pair: str(combined(map(type_of, pair))) for pair in pairs} == pairs
