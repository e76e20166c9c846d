"""Convert Connect's wire values to their semantic types, and values of one type exactly to another.

A value that Spark cannot hold is NULL and rejected: an infinite date, a year after 9999, a time with nanoseconds, or a text that
is not a time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.sqltype import TIMESTAMP
from sparkwire.core.column import bools_of, build, lists, micros, primitive, struct, timestamps
from sparkwire.json.numbers import decimal_texts, decimals_of, floats_of, long_decimals, text_of_bytes
from sparkwire.json.plain_texts import local_times
from sparkwire.json.types import DIGITS, LOCAL, Type, is_decimal
from sparkwire.kernels import Bools, Bytes, Ints, int64, kernel
from sparkwire.kernels.load import store_u8
from sparkwire.kernels.text import decimal_width, write_digits

_FIRST_DAY: Final = -719_162
_LAST_DAY: Final = 2_932_896
"""0001-01-01 and 9999-12-31 [days since epoch], the range of Spark's dates"""
_MAX_BYTES: Final = 1 << 20
_FAR: Final = 1 << 62
"""parts of a second that are out of the range of a time of day"""


class Converted(NamedTuple):
    """A typed column, with the rows whose value it cannot hold."""

    column: pa.Array
    invalid: Bools


def convert(raw: pa.Array, type: Type) -> Converted:
    """Convert a column of the type's ``wire`` type to its ``arrow`` type."""
    if type.kind in ("array", "map"):
        return _collection(raw, type)
    if type.kind == "struct" and type.logical != "VariableScaleDecimal":
        return _struct(raw, type)
    read = _READERS.get("number" if type.kind == "number" else type.logical)
    if read is None:
        return Converted(raw, np.zeros(len(raw), np.bool_))
    column = read(raw, type)
    return Converted(column, bools_of(pc.and_(raw.is_valid(), column.is_null())))


def _collection(raw: pa.Array, type: Type) -> Converted:
    if raw.offset:
        raw = pa.concat_arrays([raw])
    parts = [raw.keys, raw.items] if type.kind == "map" else [raw.values]
    parts_read = [convert(part, inner) for part, inner in zip(parts, type.inner, strict=True)]
    invalid = np.zeros(len(raw), np.bool_)
    offsets = np.asarray(raw.offsets)
    items = np.logical_or.reduce([part.invalid for part in parts_read])
    if items.any():
        sums = np.concatenate(([0], np.cumsum(items)))
        invalid = sums[offsets[1:]] > sums[offsets[:-1]]
    valid = bools_of(raw.is_valid()) & ~invalid
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    children = [part.column for part in parts_read]
    if type.kind == "map":
        entry = type.arrow.field(0).type
        children = [pa.Array.from_buffers(entry, len(children[0]), [None], children=children)]
    column = pa.Array.from_buffers(type.arrow, len(raw), [bitmap, raw.buffers()[1]], children=children)
    return Converted(column, invalid & bools_of(raw.is_valid()))


def _struct(raw: pa.Array, type: Type) -> Converted:
    fields = [convert(part, inner) for part, inner in zip(raw.flatten(), type.inner, strict=True)]
    valid = bools_of(raw.is_valid())
    invalid = valid & np.logical_or.reduce([part.invalid for part in fields])
    return Converted(
        struct(dict(zip(type.names, (part.column for part in fields), strict=True)), valid & ~invalid), invalid
    )


# ---------------------------------------------------------------- dates and times


def _numbers(raw: pa.Array) -> tuple[Ints, Bools]:
    return np.asarray(raw.fill_null(0).cast(pa.int64())), bools_of(raw.is_valid())


def _date(raw: pa.Array, _: Type) -> pa.Array:
    days, valid = _numbers(raw)
    return primitive(days.astype(np.int32), valid & (days >= _FIRST_DAY) & (days <= _LAST_DAY), pa.date32())


def _local(column: pa.Array) -> pa.Array:
    return column.view(LOCAL)


def _timestamp(raw: pa.Array, _: Type) -> pa.Array:
    numbers, valid = _numbers(raw)
    return _local(timestamps(numbers, "ms", valid))


def _instant(raw: pa.Array, _: Type) -> pa.Array:
    numbers, valid = _numbers(raw)
    return timestamps(numbers, "ms", valid)


def _micro_timestamp(raw: pa.Array, _: Type) -> pa.Array:
    return _local(micros(*_numbers(raw)))


def _nano_timestamp(raw: pa.Array, _: Type) -> pa.Array:
    numbers, valid = _numbers(raw)
    return _local(timestamps(numbers, "ns", valid & (numbers % 1000 == 0)))


def _zoned_timestamp(raw: pa.Array, _: Type) -> pa.Array:
    return parsed(raw, TIMESTAMP)


def _iso_timestamp(raw: pa.Array, _: Type) -> pa.Array:
    zoned = pc.if_else(pc.ends_with(raw, "Z"), raw, None)
    column = _local(parsed(zoned, TIMESTAMP))
    return column if zoned.null_count == raw.null_count else pc.coalesce(column, local_times(raw))


def _iso_date(raw: pa.Array, _: Type) -> pa.Array:
    days = parsed(pc.replace_substring_regex(raw, "Z$", ""), pa.date32())
    return _date(days.cast(pa.int32()), _)


def parsed(texts: pa.Array, type: pa.DataType) -> pa.Array:
    """Parse texts in ISO 8601, with fractions to microseconds; NULL for other texts."""
    with suppress(pa.ArrowInvalid):
        return _in_range(texts.cast(type))
    distinct = pc.replace_substring_regex(texts, r"(\.\d{6})0+(\D|$)", r"\1\2").dictionary_encode()
    parsed = [_one(text, type) for text in distinct.dictionary]
    return _in_range(pa.concat_arrays([pa.nulls(0, type), *parsed]).take(distinct.indices))


def instants(texts: pa.Array) -> pa.Array:
    """TIMESTAMP from texts such as ``2024-02-29 01:02:03.5``, with ``Z`` or an offset; without one, they are in UTC."""
    local = local_times(texts).cast(TIMESTAMP)
    others = pc.and_(texts.is_valid(), local.is_null())
    if not pc.any(others).as_py():
        return local
    return pc.coalesce(local, parsed(pc.if_else(others, texts, None), TIMESTAMP))


def _one(text: pa.Scalar, type: pa.DataType) -> pa.Array:
    with suppress(pa.ArrowInvalid):
        return pa.array([text.as_py()]).cast(type)
    return pa.nulls(1, type)


def _in_range(column: pa.Array) -> pa.Array:
    if not pa.types.is_timestamp(column.type):
        return column
    moments = micros(np.asarray(column.cast(pa.int64()).fill_null(0)), bools_of(column.is_valid()))
    return moments if column.type.tz else _local(moments)


def _clock(per_second: int) -> Callable[[pa.Array, Type], pa.Array]:
    digits = len(str(per_second)) - 1

    def read(raw: pa.Array, _: Type) -> pa.Array:
        numbers, valid = _numbers(raw)
        valid = valid & (numbers > -_FAR) & (numbers < _FAR)
        sizes = np.empty(len(numbers), np.int64)
        measure_clocks(numbers, valid, per_second, digits, sizes)
        return build(sizes, lambda offsets, out: write_clocks(numbers, per_second, digits, offsets, out), pa.string())

    return read


def _iso_time(raw: pa.Array, _: Type) -> pa.Array:
    return pc.replace_substring_regex(raw, "Z$", "")


@kernel
def measure_clocks(numbers: Ints, valid: Bools, per_second: int, digits: int, sizes: Ints) -> None:
    """The size of each time of day as text [bytes]; -1 if it is not valid."""
    for i in range(numbers.size):
        sizes[i] = -1
        if valid[i]:
            number = abs(numbers[i])
            hours, fraction = number // (3600 * per_second), number % per_second
            shown = digits
            while shown > 0 and fraction % 10 == 0:
                fraction //= 10
                shown -= 1
            size = max(2, decimal_width(hours)) + 6 + (1 if numbers[i] < 0 else 0)
            sizes[i] = size + (shown + 1 if shown > 0 else 0)


@kernel
def write_clocks(numbers: Ints, per_second: int, digits: int, offsets: npt.NDArray[np.int32], out: Bytes) -> None:
    """Write ``HH:mm:ss``, with a fraction if it is not zero, and a minus if it is negative."""
    for i in range(numbers.size):
        at, end = int64(offsets[i]), int64(offsets[i + 1])
        if at == end:
            continue
        number = abs(numbers[i])
        if numbers[i] < 0:
            store_u8(out, at, np.uint8(0x2D))
            at += 1
        seconds, fraction = number // per_second, number % per_second
        hours = seconds // 3600
        at = write_digits(out, at, hours, max(2, decimal_width(hours)))
        store_u8(out, at, np.uint8(0x3A))
        at = write_digits(out, at + 1, seconds // 60 % 60, 2)
        store_u8(out, at, np.uint8(0x3A))
        at = write_digits(out, at + 1, seconds % 60, 2)
        if at < end:
            store_u8(out, at, np.uint8(0x2E))
            shown = end - at - 1
            for _ in range(digits - shown):
                fraction //= 10
            write_digits(out, at + 1, fraction, shown)


def _micro_duration(raw: pa.Array, _: Type) -> pa.Array:
    return raw.view(pa.duration("us"))


def _nano_duration(raw: pa.Array, _: Type) -> pa.Array:
    numbers, valid = _numbers(raw)
    return primitive(numbers // 1000, valid & (numbers % 1000 == 0), pa.duration("us"))


# ---------------------------------------------------------------- other types


def _variable(raw: pa.Array, _: Type) -> pa.Array:
    scales, values = raw.flatten()
    pairs = zip(values.to_pylist(), scales.to_pylist(), strict=True)
    return pa.array([text_of_bytes(value, scale) for value, scale in pairs], pa.string())


def _number(raw: pa.Array, type: Type) -> pa.Array:
    return decimals_of(raw, type.arrow) if pa.types.is_decimal(type.arrow) else long_decimals(raw, *type.arguments)


def _enum(raw: pa.Array, _: Type) -> pa.Array:
    """The text of an enum. While streaming, MariaDB's connector writes a comma within a value as ``\\,``."""
    return pc.replace_substring(raw, "\\,", ",")


def _enum_set(raw: pa.Array, _: Type) -> pa.Array:
    return split_members(raw)


def split_members(raw: pa.Array) -> pa.Array:
    """ARRAY<STRING>: texts split at commas; an empty text has no members."""
    members = pc.split_pattern(raw, ",")
    counts = np.asarray(members.value_lengths().fill_null(0), np.int64)
    empty = bools_of(pc.equal(raw, "").fill_null(False))
    is_selected = ~np.repeat(empty, counts)
    offsets = np.concatenate(([0], np.cumsum(np.where(empty, 0, counts)))).astype(np.int32)
    return lists(offsets, members.flatten().filter(pa.array(is_selected)), bools_of(raw.is_valid()))


def _bits(raw: pa.Array, type: Type) -> pa.Array:
    """Bits with the most significant byte first. On the wire, it is last, and trailing zero bytes are left out."""
    width = (type.arguments[0] + 7) // 8
    padded = width if width <= _MAX_BYTES else 0  # a bit varying without a length declares the maximum
    values = [None if value is None else value[::-1].rjust(padded, b"\0") for value in raw.to_pylist()]
    return pa.array(values, pa.binary())


_READERS: Final[dict[str, Callable[[pa.Array, Type], pa.Array]]] = {
    "Date": _date,
    "Timestamp": _timestamp,
    "MicroTimestamp": _micro_timestamp,
    "NanoTimestamp": _nano_timestamp,
    "ZonedTimestamp": _zoned_timestamp,
    "Instant": _instant,
    "IsoTimestamp": _iso_timestamp,
    "IsoDate": _iso_date,
    "IsoTime": _iso_time,
    "Time": _clock(1000),
    "MicroTime": _clock(10**6),
    "NanoTime": _clock(10**9),
    "MicroDuration": _micro_duration,
    "NanoDuration": _nano_duration,
    "VariableScaleDecimal": _variable,
    "number": _number,
    "Enum": _enum,
    "EnumSet": _enum_set,
    "Bits": _bits,
}


# ---------------------------------------------------------------- from one type to another


def fit_type(column: pa.Array, type: Type) -> pa.Array:
    """Convert values exactly to the SQL type of ``type``. A decimal of more than 38 digits has all digits of its scale."""
    if type.kind == "array" and pa.types.is_list(column.type):
        return _fit_lists(column, partial(fit_type, type=type.inner[0])).cast(type.arrow)
    fitted = fit(column, type.arrow)
    is_long = pa.types.is_string(type.arrow) and is_decimal(type)
    return long_decimals(fitted, *type.arguments) if is_long else fitted


def fit(column: pa.Array, type: pa.DataType) -> pa.Array:
    """Convert values exactly to another type; NULL if a value does not fit, or would lose something."""
    if column.type == type:
        return column
    if pa.types.is_list(column.type) and pa.types.is_list(type):
        return _fit_lists(column, partial(fit, type=type.value_type)).cast(type)
    if pa.types.is_decimal(type) and (pa.types.is_string(column.type) or pa.types.is_floating(column.type)):
        return decimals_of(column.cast(pa.string()), type)
    if pa.types.is_decimal(column.type) and pa.types.is_string(type):
        return decimal_texts(column)
    if pa.types.is_decimal(column.type) and pa.types.is_floating(type):
        return floats_of(decimal_texts(column), type, exact=True)
    if not _may_become(column.type, type):
        return pa.nulls(len(column), type)
    result = _cast(column, type)
    if pa.types.is_string(type):
        return result
    again = _cast(result, column.type)
    same = pc.equal(again, column)
    if pa.types.is_floating(column.type):
        same = pc.or_(same, pc.and_(pc.is_nan(again), pc.is_nan(column)))
    return pc.if_else(same, result, None)


def _fit_lists(column: pa.Array, fit_items: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """The lists whose items all fit."""
    items = column.flatten()
    fitted = fit_items(items)
    lost = bools_of(pc.and_(items.is_valid(), fitted.is_null()))
    counts = np.asarray(column.value_lengths().fill_null(0), np.int64)
    firsts = np.concatenate(([0], np.cumsum(counts)))
    sums = np.concatenate(([0], np.cumsum(lost)))
    valid = bools_of(column.is_valid()) & (sums[firsts[1:]] == sums[firsts[:-1]])
    return lists(firsts.astype(np.int32), fitted, valid)


def _cast(column: pa.Array, type: pa.DataType) -> pa.Array:
    """The values as another type; NULL if Arrow cannot convert one."""
    if pa.types.is_boolean(column.type) and pa.types.is_decimal(type):
        column = column.cast(pa.int64())
    if pa.types.is_integer(column.type) and pa.types.is_decimal(type):
        column = column.cast(pa.decimal128(DIGITS, 0))
    if pa.types.is_decimal(column.type) and pa.types.is_boolean(type):
        column = column.cast(pa.string()).cast(pa.float64())
    if pa.types.is_floating(column.type) and pa.types.is_integer(type):
        column = _inside(column, type)
    with suppress(pa.ArrowInvalid):
        return column.cast(type, safe=pa.types.is_decimal(type))  # an unsafe cast ignores the precision of a decimal
    distinct = column.dictionary_encode()
    parts = [_cast_one(distinct.dictionary.slice(i, 1), type) for i in range(len(distinct.dictionary))]
    return pa.concat_arrays([pa.nulls(0, type), *parts]).take(distinct.indices)


def _inside(numbers: pa.Array, type: pa.DataType) -> pa.Array:
    """The floating-point numbers in the range of integers. What a processor makes of others differs: x86-64 and aarch64 do."""
    bounds = np.iinfo(type.to_pandas_dtype())
    inside = pc.and_(pc.greater_equal(numbers, float(bounds.min)), pc.less(numbers, float(bounds.max) + 1))
    return pc.if_else(inside, numbers, None)


def _cast_one(value: pa.Array, type: pa.DataType) -> pa.Array:
    with suppress(pa.ArrowInvalid):
        return value.cast(type)
    return pa.nulls(1, type)


def _may_become(old: pa.DataType, new: pa.DataType) -> bool:
    if pa.types.is_string(new):
        return not pa.types.is_nested(old) and not pa.types.is_binary(old) and not pa.types.is_duration(old)
    numbers = [_is_number(type) for type in (old, new)]
    # A local time and an instant differ by an unknown time zone.
    times = [pa.types.is_date(type) or type == LOCAL for type in (old, new)]
    return all(numbers) or all(times) or (pa.types.is_string(old) and pa.types.is_integer(new))


def _is_number(type: Any) -> bool:
    return bool(
        pa.types.is_integer(type)
        or pa.types.is_floating(type)
        or pa.types.is_decimal(type)
        or pa.types.is_boolean(type)
    )
