"""Read integers, decimals, dates and local times from texts in the form in which databases write them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparkwire.core.column import binary_of, empty, micros, primitive
from sparkwire.json.texts import read_integer
from sparkwire.json.types import LOCAL
from sparkwire.kernels import Bools, Bytes, Ints, int64, kernel, u8
from sparkwire.kernels.text import day_of, days_in_month

_DIGITS: Final = 18  # of a decimal, which always fit into 64 bits
_ZERO, _NINE, _MINUS, _POINT, _COLON, _SPACE, _T = b"09-.: T"
_DATE, _TIME = len("yyyy-MM-dd"), len("yyyy-MM-dd HH:mm:ss")
_DAY: Final = 86_400  # [s]
_MICROS: Final = 6  # digits of a fraction that Spark holds


class Numbers(NamedTuple):
    """A number for each text, and which texts have one."""

    numbers: Ints
    valid: Bools


def integers(texts: pa.Array, type: pa.DataType) -> pa.Array:
    """Integers; NULL for texts with a plus or a leading zero, for any other text, and for numbers outside the type."""
    bounds = np.iinfo(type.to_pandas_dtype())
    data, offsets, _ = binary_of(texts)
    numbers, valid = _room(texts)
    read_plain_integers(data, offsets, int(bounds.min), int(bounds.max), numbers, valid)
    return primitive(numbers.astype(bounds.dtype), valid)


def decimals(texts: pa.Array, type: pa.DataType) -> Numbers:
    """The unscaled numbers of decimals with at most 18 digits. No other text has one, though it may be a decimal of the type."""
    data, offsets, _ = binary_of(texts)
    result = _room(texts)
    read_plain_decimals(data, offsets, type.scale, 10 ** min(type.precision, _DIGITS), *result)
    return result


def dates(texts: pa.Array) -> pa.Array:
    """DATE from texts such as ``2024-02-29``; NULL for other texts and for zero dates."""
    data, offsets, _ = binary_of(texts)
    numbers, valid = _room(texts)
    read_dates(data, offsets, numbers, valid)
    return primitive(numbers.astype(np.int32), valid, pa.date32())


def local_times(texts: pa.Array) -> pa.Array:
    """TIMESTAMP_NTZ from texts such as ``2024-02-29 01:02:03.5``; NULL for other texts and for zero dates."""
    data, offsets, _ = binary_of(texts)
    numbers, valid = _room(texts)
    read_local_times(data, offsets, numbers, valid)
    return micros(numbers, valid).view(LOCAL)


def _room(texts: pa.Array) -> Numbers:
    return Numbers(empty(len(texts), np.int64), empty(len(texts), np.bool_))


@kernel
def read_plain_integers(
    data: Bytes, offsets: NDArray[Any], lowest: int, highest: int, numbers: Ints, valid: Bools
) -> None:
    """Read integers without a plus, leading zeros or a negative zero."""
    for i in range(numbers.size):
        start, end = int64(offsets[i]), int64(offsets[i + 1])
        numbers[i], valid[i] = 0, False
        if start == end:
            continue
        first = start + (1 if u8(data, start) == _MINUS else 0)
        is_zero = end - start == 1 and u8(data, start) == _ZERO
        if is_zero or (_digits_end(data, first, end) == end and first < end and u8(data, first) != _ZERO):
            number, fits = read_integer(data, start, end - start)
            if fits and lowest <= number <= highest:
                numbers[i], valid[i] = number, True


@kernel
def _digits_end(data: Bytes, pos: int, end: int) -> int:
    """The position after the digits at ``pos``."""
    while pos < end and _ZERO <= u8(data, pos) <= _NINE:
        pos += 1
    return pos


@kernel
def read_plain_decimals(
    data: Bytes, offsets: NDArray[Any], scale: int, bound: int, numbers: Ints, valid: Bools
) -> None:
    """Read decimals without an exponent, up to ``bound`` and with up to ``scale`` decimals, as unscaled numbers."""
    for i in range(numbers.size):
        start, end = int64(offsets[i]), int64(offsets[i + 1])
        numbers[i], valid[i] = 0, False
        if start == end:
            continue
        negative = u8(data, start) == _MINUS
        first = start + (1 if negative else 0)
        point = _digits_end(data, first, end)
        last = point
        if point < end and u8(data, point) == _POINT:
            last = _digits_end(data, point + 1, end)
            if last == point + 1:
                continue
        shown = max(last - point - 1, 0)
        if last != end or point == first or shown > scale or point - first + scale > _DIGITS:
            continue
        number = int64(0)
        for pos in range(first, end):
            if pos != point:
                number = number * 10 + int64(u8(data, pos)) - _ZERO
        for _ in range(shown, scale):
            number *= 10
        if number < bound:
            numbers[i], valid[i] = -number if negative else number, True


@kernel
def read_dates(data: Bytes, offsets: NDArray[Any], days: Ints, valid: Bools) -> None:
    """Read dates [days since epoch]."""
    for i in range(days.size):
        start, end = int64(offsets[i]), int64(offsets[i + 1])
        days[i], valid[i] = 0, False
        if end - start == _DATE:
            days[i], valid[i] = _date(data, start)


@kernel
def read_local_times(data: Bytes, offsets: NDArray[Any], times: Ints, valid: Bools) -> None:
    """Read dates with times [us since epoch]. A fraction has up to nine digits; those after the sixth are zeros."""
    for i in range(times.size):
        start, end = int64(offsets[i]), int64(offsets[i + 1])
        times[i], valid[i] = 0, False
        if end - start < _TIME:
            continue
        day, is_date = _date(data, start)
        between = u8(data, start + _DATE)
        hour, minute, second = (
            _two_digits(data, start + _DATE + 1),
            _two_digits(data, start + _DATE + 4),
            _two_digits(data, start + _DATE + 7),
        )
        is_time = (between == _SPACE or between == _T) and 0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60
        is_time &= u8(data, start + _DATE + 3) == _COLON and u8(data, start + _DATE + 6) == _COLON
        fraction, is_fraction = _fraction(data, start + _TIME, end)
        if is_date and is_time and is_fraction:
            seconds = day * _DAY + hour * 3600 + minute * 60 + second
            times[i], valid[i] = seconds * 1_000_000 + fraction, True


@kernel
def _date(data: Bytes, pos: int) -> tuple[int, bool]:
    """The day of ``yyyy-MM-dd`` [days since epoch], and whether it is one of Spark's dates."""
    high, low = _two_digits(data, pos), _two_digits(data, pos + 2)
    month, day = _two_digits(data, pos + 5), _two_digits(data, pos + 8)
    year = high * 100 + low
    if high < 0 or low < 0 or year == 0 or month < 1 or month > 12 or day < 1:
        return int64(0), False
    if u8(data, pos + 4) != _MINUS or u8(data, pos + 7) != _MINUS or day > days_in_month(year, month):
        return int64(0), False
    return day_of(year, month, day), True


@kernel
def _two_digits(data: Bytes, pos: int) -> int:
    """The number that two digits are; -1 if they are not digits."""
    tens, ones = int64(u8(data, pos)) - _ZERO, int64(u8(data, pos + 1)) - _ZERO
    return tens * 10 + ones if 0 <= tens <= 9 and 0 <= ones <= 9 else -1


@kernel
def _fraction(data: Bytes, pos: int, end: int) -> tuple[int, bool]:
    """The microseconds of a fraction such as ``.5``, and whether it is one; there may be none."""
    if pos == end:
        return int64(0), True
    shown = end - pos - 1
    if u8(data, pos) != _POINT or shown < 1 or shown > 9 or _digits_end(data, pos + 1, end) != end:
        return int64(0), False
    number = int64(0)
    for k in range(_MICROS):
        number = number * 10 + (int64(u8(data, pos + 1 + k)) - _ZERO if k < shown else 0)
    for k in range(_MICROS, shown):
        if u8(data, pos + 1 + k) != _ZERO:
            return int64(0), False
    return number, True
