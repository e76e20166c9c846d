"""Decimals and floating-point numbers: from bytes and texts, exactly or not at all, and the one text of a decimal.

The text of a decimal is plain: no exponent, and all digits of its scale. ``1.5`` with a scale of 3 is ``1.500``.
"""

from __future__ import annotations

from contextlib import suppress
from decimal import Context, Decimal
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.core.column import bools_of, primitive, spans_of
from sparkwire.json import plain_texts
from sparkwire.json.types import DIGITS, Type
from sparkwire.kernels import Bools

_MAX_DIGITS: Final = 100_000
"""limit for the digits of the text of a decimal, because PostgreSQL's decimals can have many more"""
_WIDE: Final = Context(prec=10**6, Emax=10**6, Emin=-(10**6))
_DECIMAL: Final = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_SAFE_DIGITS: Final = 15
"""a DOUBLE holds each number of so many digits"""
_JAVA_DIGITS: Final = 17
"""how many digits Java may write of a DOUBLE"""
_JAVA_PLAIN: Final = 1e7
"""from here on, Java writes an exponent"""
_WHOLE: Final = float(1 << 53)
"""a DOUBLE of at least this size is an integer"""
_NO_DIGITS: Final = r"^[-+]?0*\.?0*|\.|[eE].*$"
_FLOAT_DIGITS: Final = (7, 8, 9)
"""how many digits Java may write of a FLOAT, whose shortest text can have fewer"""
_WORD: Final = 64  # [bits]


# ---------------------------------------------------------------- texts of decimals


def plain_text(unscaled: int, scale: int) -> str:
    """The text of a decimal; a negative scale counts zeros before the point."""
    return format(Decimal(unscaled).scaleb(-scale, _WIDE), "f")


def decimal_texts(decimals: pa.Array) -> pa.Array:
    """STRING: the texts of a column of decimals."""
    texts = decimals.cast(pa.string())
    others = pc.match_substring(texts, "E").fill_null(False)
    if not pc.any(others).as_py():
        return texts
    plain = [format(value, "f") for value in decimals.filter(others).to_pylist()]
    return pc.replace_with_mask(texts, others, pa.array(plain, pa.string()))


def long_decimals(texts: pa.Array, precision: int, scale: int) -> pa.Array:
    """STRING: the texts of decimals of any number of digits; NULL if one does not fit these digits."""
    encoded = texts.dictionary_encode()
    numbers = (_exact(text, precision, scale) for text in encoded.dictionary.to_pylist())
    plain = [None if number is None else _padded(number, scale) for number in numbers]
    return pa.array(plain, pa.string()).take(encoded.indices)


def _padded(number: Decimal, scale: int) -> str:
    return format(number.quantize(Decimal(1).scaleb(-max(scale, 0)), context=_WIDE), "f")


def without_exponents(texts: pa.Array) -> pa.Array:
    """JSON numbers as plain texts, such as the ``1E-8`` that Java writes of a decimal. Other texts stay."""
    others = pc.match_substring_regex(texts, r"^-?[0-9.]+[eE]-[0-9]{1,2}$").fill_null(False)
    if not pc.any(others).as_py():
        return texts
    plain = [format(Decimal(text), "f") for text in texts.filter(others).to_pylist()]
    return pc.replace_with_mask(texts, others, pa.array(plain, pa.string()))


# ---------------------------------------------------------------- decimals


def decimals_of_bytes(raw: pa.Array, type: Type) -> pa.Array:
    """Decimals from BINARY, the unscaled numbers; STRING if the type has more than 38 digits."""
    scale = type.arguments[1]
    if not pa.types.is_decimal(type.arrow) or scale < 0:
        texts = pa.array([text_of_bytes(value, scale) for value in raw.to_pylist()], pa.string())
        return texts if pa.types.is_string(type.arrow) else decimals_of(texts, type.arrow)
    low, high, fits = _words(raw)
    whole = np.stack([low, high.view(np.uint64)], axis=1)
    return _with_filters(_of_words(whole, fits, pa.decimal128(DIGITS, scale)), type.arrow)


def text_of_bytes(value: bytes | None, scale: int | None) -> str | None:
    """The text of an unscaled number in big-endian two's complement; None if it is missing, or if the text is too long."""
    if not value or scale is None or abs(scale) > _MAX_DIGITS or len(value) > _MAX_DIGITS:
        return None
    return plain_text(int.from_bytes(value, "big", signed=True), scale)


def _of_words(words: npt.NDArray[np.uint64], valid: Bools, type: pa.DataType) -> pa.Array:
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


def decimals_of(texts: pa.Array, type: pa.DataType) -> pa.Array:
    """Decimals from texts; NULL if a number has more digits than the type."""
    numbers, valid = plain_texts.decimals(texts, type)
    words = np.stack([numbers, numbers >> (_WORD - 1)], axis=1).view(np.uint64)
    column = _of_words(words, valid, type)
    others = bools_of(texts.is_valid()) & ~valid
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
    return pa.array([_exact(text, type.precision, type.scale) for text in numbers.to_pylist()], type)


def _exact(text: str | None, precision: int, scale: int) -> Decimal | None:
    """The decimal, if it fits exactly. Arrow must not see another one: it rounds 1e-77, and 1e-9999999 crashes it."""
    with suppress(ArithmeticError):
        sign, digits, exponent = Decimal(text or "NaN").as_tuple()
        shown = "".join(map(str, digits)).rstrip("0")
        if not isinstance(exponent, int) or not shown.strip("0"):
            return Decimal(0) if isinstance(exponent, int) else None
        exponent += len(digits) - len(shown)
        shown = shown.lstrip("0")
        if -exponent <= scale and len(shown) + exponent <= precision - scale:
            return Decimal((sign, tuple(map(int, shown)), exponent))
    return None


# ---------------------------------------------------------------- floating-point numbers


def floats_of(texts: pa.Array, type: pa.DataType, *, exact: bool = False) -> pa.Array:
    """Floating-point numbers from texts of numbers; NULL if a number does not fit. ``Infinity`` and ``NaN`` are numbers.

    A number fits if the DOUBLE has the same digits. Unless ``exact``, the texts may also be Java's. Before version 19, its last
    digits of a number with a fraction may be others, which still identify the DOUBLE. Such a text has at most 17 digits, and an
    exponent from ten million on.
    """
    doubles = texts.cast(pa.float64())
    sizes, amounts = pc.binary_length(texts), pc.abs(doubles)
    is_large = pc.or_(
        pc.greater_equal(amounts, 0 if exact else _WHOLE),
        pc.and_(pc.greater_equal(amounts, _JAVA_PLAIN), pc.invert(pc.match_substring(texts, "E"))),
    )
    checked = pc.or_(
        pc.and_(pc.greater(sizes, _SAFE_DIGITS), is_large), pc.and_(pc.equal(doubles, 0), pc.greater(sizes, 4))
    )
    checked = pc.or_(checked, pc.is_inf(doubles)).fill_null(False)
    is_long = pc.greater(sizes, _JAVA_DIGITS + 1).fill_null(False)
    if pc.any(is_long).as_py():
        digits = pc.replace_substring_regex(texts.filter(is_long), _NO_DIGITS, "")
        checked = pc.or_(
            checked, pc.replace_with_mask(is_long, is_long, pc.greater(pc.binary_length(digits), _JAVA_DIGITS))
        )
    if pc.any(checked).as_py():
        pairs = zip(texts.filter(checked).to_pylist(), doubles.filter(checked).to_pylist(), strict=True)
        differs = pa.array([not _is_same(text, double) for text, double in pairs], pa.bool_())
        doubles = pc.if_else(pc.replace_with_mask(checked, checked, differs), None, doubles)
    return as_floats(doubles, type)


def _is_same(text: str, double: float) -> bool:
    """Whether the number in the text is the DOUBLE, to all digits of the text."""
    if not np.isfinite(double):
        return text.lstrip("+-")[:1].isalpha()
    with suppress(ArithmeticError):
        number = Decimal(text).normalize(_WIDE)
        digits = len(number.as_tuple().digits)
        return Decimal(f"{double:.{digits - 1}e}") == number
    return False


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
