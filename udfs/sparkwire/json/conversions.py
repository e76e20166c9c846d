"""Convert Connect's wire values to their semantic types, and values of one type exactly to another.

A value that Spark cannot hold is NULL and rejected: an infinite date, a year after 9999, a time with nanoseconds, or a text that
is not a time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from decimal import Context, Decimal
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.sqltype import TIMESTAMP
from sparkwire.core.column import bools_of, build, lists, micros, primitive, spans_of, struct, timestamps
from sparkwire.json import plain_texts
from sparkwire.json.plain_texts import local_times
from sparkwire.json.types import DIGITS, LOCAL, Type
from sparkwire.kernels import Bools, Bytes, Ints, int64, kernel
from sparkwire.kernels.load import store_u8
from sparkwire.kernels.text import decimal_width, write_digits

_FIRST_DAY: Final = -719_162
_LAST_DAY: Final = 2_932_896
"""0001-01-01 and 9999-12-31 [days since epoch], the range of Spark's dates"""
_MAX_DIGITS: Final = 1000
"""upper limit for the digits of a decimal text, because PostgreSQL's decimals can have many more"""
_MAX_BYTES: Final = 1 << 20
_DECIMAL: Final = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_FLOAT_DIGITS: Final = (7, 8, 9)
"""how many digits Java may write of a FLOAT, whose shortest text can have fewer"""
_FAR: Final = 1 << 62
"""parts of a second that are out of the range of a time of day"""
_WORD: Final = 64  # [bits]


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


# ---------------------------------------------------------------- decimals


def decimals_of_bytes(raw: pa.Array, type: Type) -> pa.Array:
    """Decimals from BINARY, the unscaled numbers; STRING if the type has more than 38 digits."""
    scale = type.arguments[1]
    if not pa.types.is_decimal(type.arrow) or scale < 0:
        texts = [_decimal_text(value, scale) for value in raw.to_pylist()]
        return decimals_of(pa.array(texts, pa.string()), type.arrow)
    low, high, fits = _words(raw)
    whole = np.stack([low, high.view(np.uint64)], axis=1)
    return _with_filters(primitive_decimal(whole, fits, pa.decimal128(DIGITS, scale)), type.arrow)


def primitive_decimal(words: npt.NDArray[np.uint64], valid: Bools, type: pa.DataType) -> pa.Array:
    """Decimals from words of 64 bits, the lower one first."""
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(type, len(words), [bitmap, pa.py_buffer(words)])


def _words(raw: pa.Array) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], Bools]:
    """Big-endian two's complement numbers as a lower and a higher word, and which of them have at most 38 digits."""
    data, starts, sizes = spans_of(raw)
    inside = (sizes > 0) & (sizes <= 16)
    last = starts + sizes - 1
    first = data[np.where(inside, starts, 0)]
    sign = np.where(inside & (first >= 0x80), np.uint64(0xFF), np.uint64(0))
    words = [np.zeros(len(starts), np.uint64) for _ in range(2)]
    widest = int(sizes.max(initial=0, where=inside))
    for k in range(16):
        has = inside & (sizes > k) if k < widest else np.zeros(0, np.bool_)
        byte = np.where(has, data[np.where(has, last - k, 0)].astype(np.uint64), sign) if len(has) else sign
        words[k // 8] |= byte << np.uint64(8 * (k % 8))
    low, high = words[0], words[1].view(np.int64)
    most, rest = divmod(10**DIGITS, 1 << _WORD)
    # For a negative number, use the complement, which is one less than its absolute value.
    negative = high < 0
    amount, amount_low = np.where(negative, ~high, high), np.where(negative, ~low, low)
    small = (amount < most) | (
        (amount == most) & (amount_low < np.where(negative, np.uint64(rest - 1), np.uint64(rest)))
    )
    return low, high, inside & small


def _with_filters(decimals: pa.Array, type: pa.DataType) -> pa.Array:
    if decimals.type == type:
        return decimals
    with suppress(pa.ArrowInvalid):
        return decimals.cast(type)
    bound = pa.scalar(Decimal(10) ** (type.precision - type.scale) - Decimal(1).scaleb(-type.scale), decimals.type)
    inside = pc.and_(pc.less_equal(decimals, bound), pc.greater_equal(decimals, pc.negate(bound)))
    return pc.if_else(inside, decimals, None).cast(type)


def _decimal_text(value: bytes | None, scale: int) -> str | None:
    """The number in plain digits, with ``scale`` digits after the point."""
    if not value or abs(scale) > 100_000 or len(value) > _MAX_DIGITS * 100:
        return None
    number = int.from_bytes(value, "big", signed=True)
    return format(Decimal(number).scaleb(-scale, Context(prec=10**6, Emax=10**6, Emin=-(10**6))), "f")


def _variable(raw: pa.Array, _: Type) -> pa.Array:
    scales, values = raw.flatten()
    pairs = zip(values.to_pylist(), scales.to_pylist(), strict=True)
    return pa.array([None if s is None else _decimal_text(value, s) for value, s in pairs], pa.string())


def _number(raw: pa.Array, type: Type) -> pa.Array:
    return decimals_of(raw, type.arrow)


def floats_of(texts: pa.Array, type: pa.DataType) -> pa.Array:
    """Floating-point numbers from texts of numbers; NULL if a number does not fit. ``Infinity`` is one."""
    numbers = as_floats(texts.cast(pa.float64()), type)
    if pc.all(pc.is_finite(numbers)).as_py() is not False:
        return numbers
    is_word = pc.match_substring_regex(texts, "^-?[A-Za-z]")
    return pc.if_else(pc.or_(pc.is_finite(numbers), is_word), numbers, None)


def as_floats(numbers: pa.Array, type: pa.DataType) -> pa.Array:
    """DOUBLE numbers as this type. Of FLOAT, NULL if the digits of the number are not those of a FLOAT."""
    if type != pa.float32():
        return numbers
    floats = numbers.cast(type)
    fits = pc.equal(floats.cast(pa.float64()), numbers)
    if pc.all(fits).as_py() is not False:
        return floats
    fits = pc.or_(fits, pc.equal(floats.cast(pa.string()).cast(pa.float64()), numbers))
    fits = pc.or_(fits, pc.is_nan(numbers))
    others = pc.invert(fits).fill_null(False)
    if pc.any(others).as_py():
        pairs = zip(floats.filter(others).to_pylist(), numbers.filter(others).to_pylist(), strict=True)
        longer = [any(float(f"{single:.{digits}g}") == number for digits in _FLOAT_DIGITS) for single, number in pairs]
        fits = pc.replace_with_mask(fits, others, pa.array(longer, pa.bool_()))
    return pc.if_else(fits, floats, None)


def decimals_of(texts: pa.Array, type: pa.DataType) -> pa.Array:
    """Decimals from texts; NULL if a number has more digits than the type."""
    if pa.types.is_string(type):
        return texts
    numbers, known = plain_texts.decimals(texts, type)
    words = np.stack([numbers, numbers >> (_WORD - 1)], axis=1).view(np.uint64)
    column = primitive_decimal(words, known, type)
    others = bools_of(texts.is_valid()) & ~known
    if not others.any():
        return column
    return pc.replace_with_mask(
        column, primitive(others, type=pa.bool_()), _other_decimals(texts.filter(pa.array(others)), type)
    )


def _other_decimals(texts: pa.Array, type: pa.DataType) -> pa.Array:
    """Decimals with an exponent or with many digits. Arrow reads only those that cannot overflow, which it does in silence."""
    if 0 < type.scale < DIGITS:
        plain = rf"^-?[0-9]{{1,{DIGITS - type.scale}}}(\.[0-9]{{1,{type.scale}}})?$"
    else:
        plain = rf"^-?[0-9]{{1,{DIGITS}}}$" if type.scale == 0 else "^0$"
    if pc.all(pc.match_substring_regex(texts, plain)).as_py():
        with suppress(pa.ArrowInvalid):
            return texts.cast(type)
    numbers = pc.if_else(pc.match_substring_regex(texts, _DECIMAL), texts, None)
    return pa.array([_decimal_or_none(text, type) for text in numbers.to_pylist()], type)


def _decimal_or_none(text: str | None, type: pa.DataType) -> Decimal | None:
    """The decimal, if it fits the type exactly. Arrow must not see another one: it rounds 1e-77, and 1e-9999999 crashes it."""
    with suppress(ArithmeticError):
        sign, digits, exponent = Decimal(text or "NaN").as_tuple()
        shown = "".join(map(str, digits)).rstrip("0")
        if not isinstance(exponent, int) or not shown.strip("0"):
            return Decimal(0) if isinstance(exponent, int) else None
        exponent += len(digits) - len(shown)
        shown = shown.lstrip("0")
        if -exponent <= type.scale and len(shown) + exponent <= type.precision - type.scale:
            return Decimal((sign, tuple(map(int, shown)), exponent))
    return None


# ---------------------------------------------------------------- other types


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
    kept = ~np.repeat(empty, counts)
    offsets = np.concatenate(([0], np.cumsum(np.where(empty, 0, counts)))).astype(np.int32)
    return lists(offsets, members.flatten().filter(pa.array(kept)), bools_of(raw.is_valid()))


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


def fit(column: pa.Array, type: pa.DataType) -> pa.Array:
    """Convert values exactly to another type; NULL if a value does not fit, or would lose something."""
    if column.type == type:
        return column
    if pa.types.is_list(column.type) and pa.types.is_list(type):
        return _fit_lists(column, type)
    if pa.types.is_decimal(type) and (pa.types.is_string(column.type) or pa.types.is_floating(column.type)):
        return decimals_of(column.cast(pa.string()), type)
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


def _fit_lists(column: pa.Array, type: pa.DataType) -> pa.Array:
    """The lists whose items all fit."""
    items = column.flatten()
    fitted = fit(items, type.value_type)
    lost = bools_of(pc.and_(items.is_valid(), fitted.is_null()))
    counts = np.asarray(column.value_lengths().fill_null(0), np.int64)
    firsts = np.concatenate(([0], np.cumsum(counts)))
    sums = np.concatenate(([0], np.cumsum(lost)))
    valid = bools_of(column.is_valid()) & (sums[firsts[1:]] == sums[firsts[:-1]])
    return lists(firsts.astype(np.int32), fitted, valid).cast(type)


def _cast(column: pa.Array, type: pa.DataType) -> pa.Array:
    """The values as another type; NULL if Arrow cannot convert one."""
    if pa.types.is_boolean(column.type) and pa.types.is_decimal(type):
        column = column.cast(pa.int64())
    if pa.types.is_integer(column.type) and pa.types.is_decimal(type):
        column = column.cast(pa.decimal128(DIGITS, 0))
    if pa.types.is_decimal(column.type) and pa.types.is_floating(type):
        column = column.cast(pa.string())  # Arrow's cast of a decimal may not give the nearest number
    if pa.types.is_decimal(column.type) and pa.types.is_boolean(type):
        column = column.cast(pa.string()).cast(pa.float64())
    with suppress(pa.ArrowInvalid):
        return column.cast(type, safe=pa.types.is_decimal(type))  # an unsafe cast ignores the precision of a decimal
    distinct = column.dictionary_encode()
    parts = [_cast_one(distinct.dictionary.slice(i, 1), type) for i in range(len(distinct.dictionary))]
    return pa.concat_arrays([pa.nulls(0, type), *parts]).take(distinct.indices)


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
