"""Convert nested arguments to the types that the signature declares.

A STRUCT may have any of the declared fields, in any order; missing fields are NULL. Inside it, the rules for plain arguments
apply: a narrower integer is accepted; any other value must have the declared type.
"""

from __future__ import annotations

import functools
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import argument_error
from sparkwire.base.printable import printable
from sparkwire.base.sqltype import sql_name

# Arrow has view types since release 16.
_PLAIN = {pa.binary_view(): pa.binary(), pa.string_view(): pa.string()} if hasattr(pa, "binary_view") else {}
_MAX_WIDTH = 16  # [bytes] of a decimal or an interval
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)


def coerce(array: pa.Array, declared: pa.DataType, taker: str, path: str) -> pa.Array:
    """Convert ``array`` to the type ``declared``, without a copy if it has this type already.

    Raises TypeError if that is impossible; ``taker`` and ``path`` name the function and the argument in the message.
    """
    if array.type == declared:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), declared)
    if pa.types.is_struct(declared) and pa.types.is_struct(array.type):
        return _struct(array, declared, taker, path)
    if pa.types.is_list(declared) and pa.types.is_list(array.type):
        items = coerce(array.values, declared.value_type, taker, path)
        return _over(array, pa.list_(items.type), items)
    if pa.types.is_map(declared) and pa.types.is_map(array.type):
        return _map(array, declared, taker, path)
    if not fits(array.type, declared):
        raise TypeError(printable(f"{taker}() expected {path} {sql_name(declared)}, got {sql_name(array.type)}"))
    if pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type):
        return array
    try:
        return array.cast(declared)
    except pa.ArrowInvalid:  # an unsigned number of the same width
        raise argument_error(taker, f"{path} {sql_name(declared)}", pc.max(array)) from None


@functools.lru_cache(maxsize=256)
def plain_type(type: pa.DataType) -> pa.DataType:
    """The type that kernels read for other layouts of the same values: views, dictionaries, lists with other offsets."""
    if pa.types.is_dictionary(type) or pa.types.is_run_end_encoded(type):
        return plain_type(type.value_type)
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(plain_type(field.type)) for field in type])
    if any(is_list(type) for is_list in _LISTS):
        return pa.list_(plain_type(type.value_type))
    return _PLAIN.get(type, type)


def fits(got: pa.DataType, declared: pa.DataType) -> bool:
    """Whether Spark would convert a plain value implicitly: the same type, or a narrower integer."""
    if pa.types.is_integer(declared):
        return bool(pa.types.is_integer(got) and got.bit_width <= declared.bit_width)
    return sql_name(got) == sql_name(declared)


def _struct(array: pa.StructArray, declared: pa.StructType, taker: str, path: str) -> pa.Array:
    names = [field.name for field in declared]
    twice = [name for name, count in Counter(field.name for field in array.type).items() if count > 1]
    if twice:
        raise TypeError(printable(f"{taker}() expected {path} with each field once, got {twice[0]} twice"))
    given = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    unknown = [name for name in given if name not in names]
    if unknown:
        raise TypeError(printable(f"{taker}() expected {path} with the fields {', '.join(names)}, got {unknown[0]}"))
    zeros = pa.py_buffer(bytes(_MAX_WIDTH * (len(array) + 1)))
    columns = [
        coerce(given[field.name], field.type, taker, f"{path}.{field.name}")
        if field.name in given
        else _nulls(len(array), field.type, zeros)
        for field in declared
    ]
    return pa.StructArray.from_arrays(columns, names, mask=array.is_null() if array.null_count else None)


def _nulls(rows: int, type: pa.DataType, zeros: pa.Buffer) -> pa.Array:
    """NULLs for a missing field. All missing fields share memory, because an event may have thirty of them."""
    if pa.types.is_binary(type) or pa.types.is_string(type):
        return pa.Array.from_buffers(type, rows, [zeros, zeros, zeros], null_count=rows)
    if pa.types.is_integer(type) or pa.types.is_boolean(type) or pa.types.is_temporal(type):
        return pa.Array.from_buffers(type, rows, [zeros, zeros], null_count=rows)
    return pa.nulls(rows, type)


def _map(array: pa.MapArray, declared: pa.MapType, taker: str, path: str) -> pa.Array:
    keys = coerce(array.keys, declared.key_type, taker, path)
    items = coerce(array.items, declared.item_type, taker, path)
    type = pa.map_(keys.type, items.type)
    return _over(array, type, pa.StructArray.from_arrays([keys, items], fields=[type.key_field, type.item_field]))


def _over(array: pa.Array, type: pa.DataType, items: pa.Array) -> pa.Array:
    """The rows of ``array`` with other items."""
    return pa.Array.from_buffers(type, len(array), array.buffers()[:2], offset=array.offset, children=[items])
