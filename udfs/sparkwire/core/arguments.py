"""Match the caller's values with the arguments of a function's signature.

A column may be an Arrow array, a column of a pyarrow Table, a list, or a pandas Series. Any other value raises TypeError with the
function's name, the expected type and the actual one.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import argument_error
from sparkwire.base.printable import type_error
from sparkwire.base.sqltype import arrow_type, sql_name
from sparkwire.core.column import INT32_MAX, plain_value

_ARGUMENT = re.compile(r"(\w+) (.+?)( CONSTANT)?(?: = (.+))?", re.DOTALL)
_LITERALS: Mapping[str, bool | None] = {"true": True, "false": False, "NULL": None}
_BYTES_OR_TEXT = "BINARY | STRING"
_SHOWN = 40  # maximum number of characters of a value in a message
_FIELDS = 6  # maximum number of fields of a STRUCT that are listed


class Argument(NamedTuple):
    """One argument of a function, as its signature declares it.

    A caller may pass a STRUCT with only some of the declared fields; the decoder gets all of them.
    """

    name: str
    sql: str
    type: pa.DataType
    constant: bool
    required: bool
    default: Any
    or_text: bool = False
    """whether a BINARY argument also accepts a STRING column"""

    @property
    def declared_type(self) -> str:
        """The type as written in a signature."""
        return _BYTES_OR_TEXT if self.or_text else self.sql

    def takes(self, got: pa.DataType) -> bool:
        """Whether the argument accepts a column of this type. `coerce` checks the inside of nested types."""
        if pa.types.is_null(got) or self.takes_text(got):
            return True
        return bool(got.id == self.type.id) if pa.types.is_nested(self.type) else fits(got, self.type)

    def takes_text(self, got: pa.DataType) -> bool:
        """Whether the column is a STRING column for an argument that accepts BINARY or STRING."""
        return self.or_text and bool(pa.types.is_string(got) or pa.types.is_large_string(got))


def parse(arguments: str) -> tuple[Argument, ...]:
    """Parse the text between the parentheses of a signature."""
    return tuple(_argument(text) for text in _split(arguments))


def column(value: Any, argument: Argument, function: str) -> pa.Array:
    """Convert a caller's column to an Arrow array of the declared type, or of type null.

    Raises TypeError if the value is not a column of this type, and ValueError if a number does not fit into the declared type.
    """
    array = _array(value, argument, function)
    if not argument.takes(array.type):
        raise type_error(f"{function}() expected {argument.name} {_taken(argument)}, got {sql_name(array.type)}")
    if pa.types.is_null(array.type) or argument.takes_text(array.type):
        return array
    return coerce(array, argument.type, function, argument.name)


def _array(value: Any, argument: Argument, function: str) -> pa.Array:
    if isinstance(value, pa.ChunkedArray):
        value = _one_chunk(value)
    if isinstance(value, pa.Array):
        plain = plain_type(value.type)
        return value if plain == value.type else value.cast(plain)
    if not (isinstance(value, list | tuple) or _is_series(value)):
        raise type_error(
            f"{function}() expected {argument.name} as an Arrow array, a list or a pandas Series, got {kind(value)}"
        )
    try:
        array = pa.array(value, from_pandas=_is_series(value))
        return array.cast(argument.type) if _both_integers(array.type, argument.type) else array
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        takes = f"{argument.name} {brief(argument.sql)}"
        raise type_error(
            f"{function}() expected {takes}, got values of another type ({str(error).splitlines()[0]})"
        ) from None


def _is_series(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas" and type(value).__name__ == "Series"


def _both_integers(got: pa.DataType, declared: pa.DataType) -> bool:
    return bool(pa.types.is_integer(got) and pa.types.is_integer(declared))


def _one_chunk(value: pa.ChunkedArray) -> pa.Array:
    larger = {pa.binary(): pa.large_binary(), pa.string(): pa.large_string()}
    if value.nbytes > INT32_MAX and value.type in larger:
        value = value.cast(larger[value.type])
    return value.chunk(0) if value.num_chunks == 1 else pa.concat_arrays([*value.chunks, pa.array([], value.type)])


def _taken(argument: Argument) -> str:
    return brief(argument.declared_type)


def same_length(columns: Mapping[str, pa.Array], function: str) -> None:
    """Raise TypeError if the columns have different lengths, because kernels read them in parallel."""
    if len({len(column) for column in columns.values()}) > 1:
        got = ", ".join(f"{name} of {len(column)}" for name, column in columns.items())
        raise type_error(f"{function}() expected columns of the same number of rows, got {got}")


def constant(value: Any, argument: Argument, function: str) -> Any:
    """The value of a constant argument. The caller passes the value itself, or a column that repeats it.

    Raises TypeError if the type differs from the declared one. Raises ValueError for a column of several values, or for NULL if
    the function does not accept it.
    """
    if isinstance(value, pa.Array):
        if len(value) == 0:
            return argument.default
        if not argument.takes(value.type):
            raise type_error(f"{function}() expected {argument.name} {argument.sql}, got {sql_name(value.type)}")
        if len(pc.unique(value)) > 1:
            raise argument_error(function, f"a constant for {argument.name}", "a column of several values")
        value = plain_value(value[0])
    if value is None:
        if argument.required or argument.default is not None:
            raise argument_error(function, f"{argument.name} {argument.sql}", "NULL")
        return None
    if not _has_type(value, argument.type):
        raise type_error(f"{function}() expected {argument.name} {argument.sql}, got {kind(value)}")
    return value


def _has_type(value: Any, declared: pa.DataType) -> bool:
    if pa.types.is_boolean(declared):
        return isinstance(value, bool)
    if pa.types.is_integer(declared):
        bound = 1 << (declared.bit_width - 1)
        return isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound
    return isinstance(value, str) if pa.types.is_string(declared) else True


def brief(declaration: str) -> str:
    """An argument's declaration or type, without the fields of a STRUCT."""
    around, struct, _ = declaration.partition("STRUCT<")
    return around + "STRUCT" + ">" * around.count("<") if struct else declaration


def counted(declaration: str) -> str:
    """A declaration or type with the number of fields instead of the fields, for each STRUCT of more than ``_FIELDS``."""
    before, struct, rest = declaration.partition("STRUCT<")
    if not struct:
        return declaration
    depth = 1
    for end, character in enumerate(rest):  # noqa: B007  # the bracket that closes the STRUCT
        depth += (character == "<") - (character == ">")
        if depth == 0:
            break
    fields = _split(rest[:end])
    inner = f"{len(fields)} fields" if len(fields) > _FIELDS else ",".join(map(counted, fields))
    return f"{before}STRUCT<{inner}{counted(rest[end:])}"


def declared(arguments: str) -> str:
    """The arguments of a signature, for a message."""
    return f"({', '.join(brief(text.strip()) for text in _split(arguments))})"


def kind(value: Any) -> str:
    """The value or its type, for a message."""
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return sql_name(value.type)
    if value is None or isinstance(value, bool | int | float | str):
        shown = repr(value)
        return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
    return f"a {type(value).__module__}.{type(value).__qualname__}".replace("a builtins.", "a Python ")


def _argument(text: str) -> Argument:
    match = _ARGUMENT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not an argument: {text!r}")
    name, sql, declared_constant, default = match.groups()
    is_constant = declared_constant is not None or default not in (None, "NULL")
    or_text = sql == _BYTES_OR_TEXT
    type = pa.binary() if or_text else arrow_type(sql)
    return Argument(
        name, sql_name(type) if or_text else sql, type, is_constant, default is None, _literal(default), or_text
    )


def _literal(text: str | None) -> Any:
    if text is None or text in _LITERALS:
        return None if text is None else _LITERALS[text]
    return text.strip("'") if text.startswith("'") else int(text)


def _split(arguments: str) -> Sequence[str]:
    """Split at commas that are not inside angle brackets."""
    parts, depth = [""], 0
    for character in arguments:
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part.strip()]


# -- nested arguments
#
# A STRUCT may have any of the declared fields, in any order; missing fields are NULL. Inside it, the rules for plain arguments
# apply: a narrower integer is accepted; any other value must have the declared type.

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
        raise type_error(f"{taker}() expected {path} {sql_name(declared)}, got {sql_name(array.type)}")
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
        raise type_error(f"{taker}() expected {path} with each field once, got {twice[0]} twice")
    fields = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    unknown = [name for name in fields if name not in names]
    if unknown:
        raise type_error(f"{taker}() expected {path} with the fields {', '.join(names)}, got {unknown[0]}")
    zeros = pa.py_buffer(bytes(_MAX_WIDTH * (len(array) + 1)))
    columns = [
        coerce(fields[field.name], field.type, taker, f"{path}.{field.name}")
        if field.name in fields
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
