"""Read JSON values as columns of their wire types: in every form that Connect's ``JsonConverter`` accepts, and MySQL's."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.core.column import bools_of, lists, maps, primitive, struct
from sparkwire.json import values
from sparkwire.json.conversions import Converted, convert
from sparkwire.json.grammar import ARRAY, ESCAPED, FALSE, INTEGER, NULL, OBJECT, REAL, STRING, TRUE
from sparkwire.json.images import Images
from sparkwire.json.mysql_types import read_texts
from sparkwire.json.numbers import decimals_of, decimals_of_bytes, floats_of, long_decimals
from sparkwire.json.scan import tree_of
from sparkwire.json.types import Type, type_of
from sparkwire.json.values import Values
from sparkwire.kernels import Bools, Ints

_VARIABLE: Final = type_of("VariableScaleDecimal")
_WORDS: Final = ("NaN", "Infinity", "-Infinity")
"""numbers that JSON does not have; they are strings"""
_BOUNDS: Final = tuple(pa.scalar(Decimal(bound), pa.decimal128(19, 0)) for bound in (-(2**63) - 1, 2**63))


def read(items: Values, type: Type) -> Converted:
    """A column of the type's ``wire`` type. Values of other kinds are invalid."""
    column = _READERS[type.kind](items, type)
    missing = ~bools_of(column.column.is_valid())
    return Converted(column.column, column.invalid | (missing & (items.kinds > NULL)))


def _plain(column: pa.Array) -> Converted:
    return Converted(column, np.zeros(len(column), np.bool_))


def _integer(items: Values, type: Type) -> Converted:
    numbers, valid = values.integers(items)
    if (items.kinds == REAL).any():
        numbers, valid = _with_whole_reals(items, numbers, valid)
    if type.kind == "int64":
        return _plain(primitive(numbers, valid))
    dtype = np.dtype(type.kind)
    bounds = np.iinfo(dtype)
    return _plain(primitive(numbers.astype(dtype), valid & (numbers >= bounds.min) & (numbers <= bounds.max)))


def _with_whole_reals(items: Values, numbers: Ints, valid: Bools) -> tuple[Ints, Bools]:
    """Whole numbers with a fraction or an exponent count, such as 5.0 and 1e3."""
    rows = np.flatnonzero(items.kinds == REAL)
    whole = decimals_of(values.texts(items.at(rows)), pa.decimal128(19, 0))
    wide = pc.and_(pc.greater(whole, _BOUNDS[0]), pc.less(whole, _BOUNDS[1])).fill_null(False)
    numbers, valid = numbers.copy(), valid.copy()
    numbers[rows] = np.asarray(pc.if_else(wide, whole, None).fill_null(0).cast(pa.int64()))
    valid[rows] = bools_of(wide)
    return numbers, valid


def _is_text(items: Values) -> Bools:
    is_text: Bools = (items.kinds == STRING) | (items.kinds == ESCAPED)
    return is_text


def _float(items: Values, type: Type) -> Converted:
    floats = floats_of(values.texts(items.only((items.kinds == INTEGER) | (items.kinds == REAL))), type.wire)
    is_text = _is_text(items)
    if is_text.any():
        words = values.texts(items.only(is_text))
        is_word = pc.is_in(words, pa.array(_WORDS))
        floats = pc.coalesce(floats, pc.cast(pc.if_else(is_word, words, None), type.wire))
    return _plain(floats)


def _boolean(items: Values, _: Type) -> Converted:
    return _plain(primitive(items.kinds == TRUE, (items.kinds == TRUE) | (items.kinds == FALSE)))


def _string(items: Values, _: Type) -> Converted:
    return _plain(values.texts(items.only(_is_text(items))))


def _bytes(items: Values, type: Type) -> Converted:
    if type.logical == "Decimal":
        return _plain(_decimals(items, type))
    return _plain(values.from_base64(values.texts(items.only(_is_text(items))), padded=True))


def _decimals(items: Values, type: Type) -> pa.Array:
    """Decimals, each one as Base64 of its unscaled number or as a JSON number (``decimal.format``)."""
    data = values.from_base64(values.texts(items.only(_is_text(items))), padded=True)
    decimals = decimals_of_bytes(data, type)
    is_number = (items.kinds == INTEGER) | (items.kinds == REAL)
    is_object = items.kinds == OBJECT
    if not is_number.any() and not is_object.any():
        return decimals
    texts = values.texts(items.only(is_number))
    if is_object.any():
        texts = pc.coalesce(texts, _variable(items))
    is_short = pa.types.is_decimal(type.arrow)
    return pc.coalesce(decimals, decimals_of(texts, type.arrow) if is_short else long_decimals(texts, *type.arguments))


def _text(items: Values, type: Type) -> Converted:
    return _plain(read_texts(items, type))


def _variable(items: Values) -> pa.Array:
    """STRING: the decimals of objects with a scale and an unscaled number, which Debezium writes of NUMERIC."""
    return convert(read(items.only(items.kinds == OBJECT), _VARIABLE).column, _VARIABLE).column


def _number(items: Values, _: Type) -> Converted:
    texts = values.texts(items.only(_is_text(items) | (items.kinds == INTEGER) | (items.kinds == REAL)))
    return _plain(pc.coalesce(texts, _variable(items)) if (items.kinds == OBJECT).any() else texts)


def _array(items: Values, type: Type) -> Converted:
    listed = values.items(items)
    inner = read(listed.together(), type.inner[0])
    invalid = _any_of(inner.invalid, listed.firsts)
    return Converted(lists(listed.firsts, inner.column, (items.kinds == ARRAY) & ~invalid), invalid)


def _any_of(flags: Bools, firsts: npt.NDArray[np.int32]) -> Bools:
    """Whether any item of each row is flagged."""
    sums = np.concatenate(([0], np.cumsum(flags)))
    any_of: Bools = sums[firsts[1:]] > sums[firsts[:-1]]
    return any_of


def _map(items: Values, type: Type) -> Converted:
    """A map, which is an object, or an array of pairs if the keys are not strings."""
    if type.inner[0].kind != "string":
        return _pairs(items, type)
    images = Images(items.only(items.kinds == OBJECT))
    visible = np.arange(len(images.rows)) if images.superseded is None else np.flatnonzero(~images.superseded)
    firsts = np.searchsorted(visible, images.listed.firsts).astype(np.int32)
    inner = read(images.listed.counted_values.at(visible), type.inner[1])
    invalid = _any_of(inner.invalid, firsts)
    names = images.names.take(primitive(visible))
    return Converted(maps(firsts, names, inner.column, (items.kinds == OBJECT) & ~invalid), invalid)


def _pairs(items: Values, type: Type) -> Converted:
    listed = values.items(items)
    pairs = listed.together()
    is_pair = (pairs.kinds == ARRAY) & (pairs.counts == 2)
    both = values.items(pairs.only(is_pair)).together()
    first = np.where(is_pair, 2 * (np.cumsum(is_pair) - 1), -1)
    keys = read(both.at_or_absent(first), type.inner[0])
    entries = read(both.at_or_absent(np.where(is_pair, first + 1, -1)), type.inner[1])
    nameless = ~bools_of(keys.column.is_valid())
    invalid = _any_of(~is_pair | nameless | keys.invalid | entries.invalid, listed.firsts)
    named = np.flatnonzero(~nameless)  # a map cannot have a NULL key, so the row is rejected
    firsts = np.searchsorted(named, listed.firsts).astype(np.int32)
    names, inner = (column.take(primitive(named)) for column in (keys.column, entries.column))
    return Converted(maps(firsts, names, inner, (items.kinds == ARRAY) & ~invalid), invalid)


def _struct(items: Values, type: Type) -> Converted:
    is_object = items.kinds == OBJECT
    begins = np.where(is_object, items.starts, 0)
    documents = values.documents(
        items.data, begins, begins + np.where(is_object, items.sizes, 0), tree_of([(n,) for n in type.names]), True
    )
    fields = [read(documents.value(k).only(is_object), inner) for k, inner in enumerate(type.inner)]
    invalid = is_object & np.logical_or.reduce([field.invalid for field in fields])
    columns = dict(zip(type.names, (field.column for field in fields), strict=True))
    return Converted(struct(columns, is_object & ~invalid), invalid)


_READERS: Final[dict[str, Callable[[Values, Type], Converted]]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), _integer),
    "float": _float,
    "double": _float,
    "boolean": _boolean,
    "string": _string,
    "bytes": _bytes,
    "number": _number,
    "text": _text,
    "array": _array,
    "map": _map,
    "struct": _struct,
}
