"""Convert values to texts: logical types for JSON, decimals of more than 38 digits, and versions of different types."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparkwire.avro.schema import Schema
from sparkwire.json.numbers import decimal_texts, plain_text

UNITS: Final = {"millis": "ms", "micros": "us", "nanos": "ns"}
_BETWEEN: Final = len("2024-01-31")  # the rest is the time of day
NO_SCALE: Final = -1
"""marks a missing decimal"""
_MAX_DIGITS: Final = 4000
"""maximum number of digits that Python converts to a text"""
_PLAIN: Final = (1e-3, 1e7)
"""the range that Java writes without an exponent"""


class JsonTexts(NamedTuple):
    """Data as JSON, with the errors of the rows that could not be read."""

    texts: pa.Array
    """STRING, NULL if the row is NULL or cannot be read"""
    errors: NDArray[np.int8]
    """codes of `errors`"""


def text_column(schema: Schema, values: pa.Array) -> pa.Array:
    """STRING: the values of a schema's column as texts."""
    if pa.types.is_string(values.type):
        return values
    if schema.logical == "date" or (pa.types.is_integer(values.type) and not schema.logical):
        return values.cast(pa.string())
    if "time" in schema.logical:
        return _time_texts(schema.logical, values)
    if pa.types.is_decimal(values.type):
        return decimal_texts(values)
    spell = _spelling(schema)
    nothing = (None, b"")  # a field of a record that is NULL has no bytes, though the field is not NULL
    return pa.array([None if value in nothing else spell(value) for value in values.to_pylist()], pa.string())


def _spelling(schema: Schema) -> Callable[[Any], str]:
    if schema.logical == "uuid":
        return lambda value: str(uuid.UUID(bytes=value))
    if schema.logical == "duration":
        return duration_text
    if schema.kind in ("float", "double"):
        return lambda value: java_number(value, schema.kind == "float")
    return lambda value: "true" if value else "false"


def _time_texts(logical: str, values: pa.Array) -> pa.Array:
    """Times of day or timestamps in ISO 8601. Columns store timestamps of milliseconds as microseconds."""
    unit = UNITS[logical.rpartition("-")[2]]
    if logical.startswith("time-"):
        return values.view(pa.time32(unit) if unit == "ms" else pa.time64(unit)).cast(pa.string())
    numbers = values.view(pa.int64())
    instants = (pc.divide(numbers, 1000) if unit == "ms" else numbers).view(pa.timestamp(unit))
    texts = pc.utf8_replace_slice(instants.cast(pa.string()), _BETWEEN, _BETWEEN + 1, "T")
    return texts if logical.startswith("local-") else pc.binary_join_element_wise(texts, "Z", "")


def duration_text(value: bytes) -> str:
    """The text of a duration, which has months, days and milliseconds: ``P1M2DT3.004S``."""
    months, days, millis = struct.unpack("<III", value)
    return f"P{months}M{days}DT{millis // 1000}.{millis % 1000:03d}S"


def java_number(value: float, narrow: bool = False) -> str:
    """A number as Java and Spark write it: 1.0, 1.0E20, NaN."""
    if not np.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    shortest = Decimal(str(np.float32(value)) if narrow else repr(float(value)))
    if value == 0 or _PLAIN[0] <= abs(value) < _PLAIN[1]:
        text = f"{shortest:f}"
        return text if "." in text else f"{text}.0"
    sign, digits, _ = shortest.normalize().as_tuple()
    exponent = shortest.adjusted()
    first, *others = map(str, digits)
    return f"{'-' if sign else ''}{first}.{''.join(others) or '0'}E{exponent}"


def long_decimal_texts(
    numbers: pa.Array, scales: NDArray[np.int32], schema: Schema
) -> tuple[pa.Array, NDArray[np.int64]]:
    """STRING: big-endian numbers with their scales, as decimals of the schema; also the indexes of those that do not fit it."""
    most, texts, too_long = 10 ** min(schema.precision, _MAX_DIGITS), list[str | None](), list[int]()
    for place, (number, scale) in enumerate(zip(numbers.to_pylist(), scales.tolist(), strict=True)):
        if number is None or scale == NO_SCALE:
            texts.append(None)
            continue
        shift, rest = schema.scale - scale, 0
        unscaled = int.from_bytes(number, "big", signed=True)
        if number and max(schema.scale, abs(shift)) <= _MAX_DIGITS and abs(unscaled) < 10**_MAX_DIGITS:
            unscaled, rest = divmod(unscaled * 10 ** max(shift, 0), 10 ** max(-shift, 0))
        else:
            rest = 1
        if abs(unscaled) < most and not rest:
            texts.append(plain_text(unscaled, schema.scale))
        else:
            texts.append(None)
            too_long.append(place)
    return pa.array(texts, pa.string()), np.array(too_long, np.int64)
