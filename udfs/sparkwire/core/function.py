"""One row of the catalogue: a SQL function, declared by its signature.

    Function(
        "dbus_sequence(event BINARY) -> BIGINT",
        "The window's sequence number (SCN).",
        decoder,
        "dbus_sequence(event) -> 1000",
    )

Everything else is derived from such rows: registration, the column functions for DataFrames, the function reference, and the
tests that every function must pass.

An argument without a default is a *column*: the decoder gets its Arrow array. With the default NULL, it is an optional column: if
it is left out, the decoder gets None. With any other default, or declared as ``name TYPE CONSTANT``, it is a *constant*: the
decoder gets a Python value, the same for all rows of the query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

import pyarrow as pa

from sparkwire.base.grammar import Layout
from sparkwire.base.printable import type_error
from sparkwire.base.sqltype import arrow_type
from sparkwire.core.arguments import (
    Argument,
    brief,
    column,
    constant,
    counted,
    declared,
    kind,
    parse,
    plain_type,
    same_length,
)
from sparkwire.core.column import masked

_SIGNATURE = re.compile(r"(\w+)\((.*)\) -> (.+)", re.DOTALL)


@dataclass(frozen=True)
class Function:
    """A SQL function over binary columns.

    Parameters
    ----------
    signature
        ``name(argument TYPE [CONSTANT] [= default], ...) -> TYPE``; ``BINARY | STRING`` accepts columns of either type.
    doc
        Description of the result, with units in brackets.
    decoder
        A function from Arrow columns to one Arrow column of the declared type. It must be pure: its result for a row depends only
        on that row.
    example
        A SQL expression over the view ``sparkwire_samples`` and its result as text, ``expression -> result``.
    called_on_null
        False: NULL in a required column returns NULL, whatever the decoder returns. NULL in an optional column is its default,
        which the decoder handles. True: the decoder handles all NULLs.
    field_docs
        The meaning of each field of the result's STRUCT, or of the STRUCT in its ARRAY.
    literals
        Names of STRING columns that usually have one value, such as a codec. In DataFrame code, a Python text for such an
        argument is this value, not the name of a column.
    """

    signature: str
    doc: str
    decoder: Callable[..., pa.Array]
    example: str
    called_on_null: bool = False
    field_docs: Mapping[str, str] = field(default_factory=dict)
    literals: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line: the signature, with the number of fields of a long STRUCT, and the first sentence of the doc."""
        return f"<{counted(self.signature)}: {self.doc.partition('. ')[0].removesuffix('.')}>"

    @cached_property
    def _parts(self) -> tuple[str, tuple[Argument, ...], str]:
        match = _SIGNATURE.fullmatch(self.signature)
        if match is None:
            raise ValueError(f"not a signature: {self.signature!r}")
        name, arguments, returns = match.groups()
        return name, parse(arguments), returns

    @property
    def name(self) -> str:
        return self._parts[0]

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return self._parts[1]

    @property
    def returns(self) -> str:
        """The SQL type of the result."""
        return self._parts[2]

    @cached_property
    def return_type(self) -> pa.DataType:
        """The Arrow type of the result."""
        return arrow_type(self.returns)

    @property
    def example_expression(self) -> str:
        return self.example.rpartition(" -> ")[0]

    @property
    def example_result(self) -> str:
        """The result of the example as ``CAST(... AS STRING)`` returns it; ``NULL`` for NULL."""
        return self.example.rpartition(" -> ")[2]

    def decode(self, *args: Any, **named: Any) -> pa.Array:
        """Compute the result for every row.

        Parameters
        ----------
        args, named
            for each column argument, a column of n rows: an Arrow array, a column of a pyarrow Table, a list or a pandas
            Series. For each constant, a Python value, or an Arrow array that repeats one value.

        Returns
        -------
        pa.Array
            n rows of ``return_type``.

        Raises
        ------
        TypeError
            if the number or types of the arguments differ from the signature, or the columns differ in length.
        ValueError
            if the value of an argument is invalid.
        MemoryError
            if memory runs out. This is no statement about the bytes.
        """
        plain = self._plain(args, named)
        if plain is not None:
            result = self.decoder(*args, **plain)
            return result if self.called_on_null else masked(result, args)
        columns, constants = self._bind(args, named)
        if any(constants[a.name] is None for a in self.arguments if a.constant and a.required):
            return pa.nulls(0, self.return_type)  # an empty batch does not contain the value of the constant
        if self.called_on_null:
            return self.decoder(*columns, **constants)
        needed = [a.required for a in self.arguments if not a.constant]
        required = [
            column for column, is_needed in zip(columns, needed, strict=True) if is_needed and column is not None
        ]
        if any(pa.types.is_null(column.type) for column in required):
            return pa.nulls(len(required[0]), self.return_type)
        return masked(self.decoder(*columns, **constants), required)

    @cached_property
    def _declared(self) -> tuple[list[pa.DataType], dict[str, Any]] | None:
        """The types of the columns and the defaults of the constants; None if a call must pass more than the columns."""
        columns = [a.type for a in self.arguments if not a.constant]
        if any(a.required == a.constant for a in self.arguments):
            return None
        return columns, {a.name: a.default for a in self.arguments if a.constant}

    def _plain(self, args: Sequence[Any], named: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The constants of a call that passes exactly the columns with their declared types, as most queries do; else None."""
        declared = self._declared
        if declared is None or named or len(args) != len(declared[0]):
            return None
        for array, type in zip(args, declared[0], strict=True):
            if not isinstance(array, pa.Array) or array.type != type or len(array) != len(args[0]):
                return None
        return declared[1]

    def _bind(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[pa.Array | None], dict[str, Any]]:
        names = [argument.name for argument in self.arguments]
        passed = dict(zip(names, args, strict=False)) | dict(named)
        missing = [a for a in self.arguments if a.required and a.name not in passed]
        twice = set(names[: len(args)]) & set(named)
        if len(args) > len(names) or missing or twice or set(named) - set(names):
            raise type_error(self._call_error(args, named))
        columns: dict[str, pa.Array | None] = {}
        constants: dict[str, Any] = {}
        for argument in self.arguments:
            value = passed.get(argument.name, argument.default)
            if argument.constant:
                constants[argument.name] = constant(value, argument, self.name)
            elif argument.name in passed:
                if isinstance(value, pa.Array) and not argument.takes(plain_type(value.type)):
                    wrong = f"the {_nth(names.index(argument.name))}, {argument.name}: {brief(argument.sql)}, got {kind(value)}"
                    raise type_error(
                        f"{self._call_error(args, named)}: {wrong}" if len(names) > 1 else self._call_error(args, named)
                    )
                columns[argument.name] = column(value, argument, self.name)
            else:
                columns[argument.name] = None
        same_length({name: column for name, column in columns.items() if column is not None}, self.name)
        return list(columns.values()), constants

    def _call_error(self, args: Sequence[Any], named: Mapping[str, Any]) -> str:
        got = [kind(value) for value in args] + [f"{name} => {kind(value)}" for name, value in named.items()]
        takes = declared(self.signature.partition(" -> ")[0].removeprefix(f"{self.name}(").removesuffix(")"))
        return f"{self.name}() expected {takes}, got {'(' + ', '.join(got) + ')' if got else 'no argument'}"


_ORDINALS: Final = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


def _nth(place: int) -> str:
    return _ORDINALS[place] if place < len(_ORDINALS) else f"{place + 1}th"


class Format(NamedTuple):
    """A wire format in the catalogue. All code that lists formats uses it.

    The docstring of the format's package is the text of its page.
    """

    name: str
    """the name of its package, cases (``tests/support/<name>_cases.py``), benchmarks and examples (``sql/examples/<name>.sql``)
    """
    title: str
    prefix: str
    """the prefix of its functions' names: with ``dbus_``, also ``to_dbus_``"""
    functions: tuple[Function, ...]
    samples: Mapping[str, bytes]
    """sample bytes for the examples of its functions, by their columns in the view ``sparkwire_samples``"""
    struct: str = ""
    """the struct function, which returns the results of all functions before it in one pass, if any"""
    native_layouts: Mapping[str, Layout] = MappingProxyType({})
    """big-endian layouts with a native SQL equivalent of each field (``sql/native/<name>.sql``), by title"""
    arguments: Mapping[str, str] = MappingProxyType({})
    """the meaning of each argument, by its name; ``event STRUCT`` if ``event`` is a STRUCT of the event's fields"""

    def meaning(self, argument: Argument) -> str:
        """The meaning of an argument of its functions."""
        fields = f"{argument.name} STRUCT"
        return self.arguments[fields if pa.types.is_struct(argument.type) else argument.name]

    @property
    def by_name(self) -> Mapping[str, Function]:
        """The functions by their names."""
        return {function.name: function for function in self.functions}


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
