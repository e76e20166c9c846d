"""Values as texts, spelt as in JSON: what decimals of more than 38 digits, and versions of mixed types, have in a column."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparkwire.avro.schema import Schema

_EPOCH: Final = datetime.datetime(1970, 1, 1)
_DIGITS: Final = {"millis": 3, "micros": 6, "nanos": 9}
NO_SCALE: Final = -1
"""where there is no decimal"""
_MOST_DIGITS: Final = 4000
"""that Python makes a text of"""
_PLAIN: Final = (1e-3, 1e7)
"""numbers that Java writes without an exponent"""


def text_column(schema: Schema, values: pa.Array) -> pa.Array:
    """STRING: the values of a schema's column."""
    if pa.types.is_string(values.type):
        return values
    if pa.types.is_integer(values.type) and not schema.logical:
        return values.cast(pa.string())
    spell = _spelling(schema)
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    return pa.array([None if value is None else spell(value) for value in values.to_pylist()], pa.string())


def _spelling(schema: Schema) -> Callable[[Any], str]:
    logical = schema.logical
    if logical == "decimal":
        return lambda value: f"{value:f}"
    if logical == "date":
        return lambda value: (_EPOCH + datetime.timedelta(days=value)).date().isoformat()
    if logical == "uuid":
        return lambda value: str(uuid.UUID(bytes=value))
    if schema.kind in ("float", "double"):
        return lambda value: java_number(value, schema.kind == "float")
    if schema.kind == "boolean":
        return lambda value: "true" if value else "false"
    return lambda value: _time_text(logical, value)


def _time_text(logical: str, value: int) -> str:
    """A time of day or a timestamp; those of milliseconds are in a column as microseconds."""
    digits = _DIGITS[logical.rpartition("-")[2]]
    if logical == "time-millis":
        value *= 1000
    seconds, fraction = divmod(value, 10**9 if digits == 9 else 10**6)
    at = _EPOCH + datetime.timedelta(seconds=seconds)
    text = f"{fraction:0{max(digits, 6)}d}"[:digits]
    if logical.startswith("time-"):
        return f"{at:%H:%M:%S}.{text}"
    return f"{at.isoformat()}.{text}{'' if logical.startswith('local-') else 'Z'}"


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


def decimal_texts(numbers: pa.Array, scales: NDArray[np.int32], precision: int) -> tuple[pa.Array, NDArray[np.int64]]:
    """STRING: big-endian numbers with their scales; and the places of those that have more digits than ``precision``."""
    most, texts, too_long = 10 ** min(precision, _MOST_DIGITS), list[str | None](), list[int]()
    for place, (number, scale) in enumerate(zip(numbers.to_pylist(), scales.tolist(), strict=True)):
        if number is None or scale == NO_SCALE:
            texts.append(None)
            continue
        unscaled = int.from_bytes(number, "big", signed=True)
        if abs(unscaled) < most and number:
            texts.append(_scaled(unscaled, scale))
        else:
            texts.append(None)
            too_long.append(place)
    return pa.array(texts, pa.string()), np.array(too_long, np.int64)


def _scaled(unscaled: int, scale: int) -> str:
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    text = f"{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}" if scale else digits
    return f"-{text}" if unscaled < 0 else text
