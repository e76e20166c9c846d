"""The Python parameters of a function, for ``help()``, editors, and the generated column functions."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import pyarrow as pa

from sparkwire.core.arguments import Argument
from sparkwire.core.function import Function

Kind = Literal["Column", "str", "int", "float", "bool", "bytes", "None"]

_VALUES: Final[dict[pa.DataType, Kind]] = {
    pa.binary(): "bytes",
    pa.string(): "str",
    pa.bool_(): "bool",
    pa.float64(): "float",
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32(), pa.int64()), "int"),
}
"""the Python types that Spark converts to a literal, by the argument's type"""


class Parameter(NamedTuple):
    """A parameter of a column function."""

    name: str
    kinds: tuple[Kind, ...]
    """the accepted types; a ``str`` is the name of a column, unless ``literal``"""
    literal: bool
    """whether a ``str`` is a value"""
    required: bool
    default: Any


def default_of(argument: Argument) -> str:
    """The default of an optional argument, as a SQL literal."""
    if argument.default is None:
        return "NULL"
    return str(argument.default).lower() if isinstance(argument.default, bool) else str(argument.default)


def parameters(function: Function) -> list[Parameter]:
    """The parameters in the order of the signature."""
    return [_parameter(argument, argument.name in function.literals) for argument in function.arguments]


def _parameter(argument: Argument, literal: bool) -> Parameter:
    value = _VALUES.get(argument.type)
    kinds: list[Kind] = ["Column"]
    if not (argument.constant or literal):
        kinds.append("str")
    if value is not None and value not in kinds:
        kinds.append(value)
    if not argument.required and argument.default is None:
        kinds.append("None")
    return Parameter(argument.name, tuple(kinds), argument.constant or literal, argument.required, argument.default)
