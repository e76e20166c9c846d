"""One row of the catalogue: a SQL function, declared by its signature.

    Function(
        "dbus_sequence(event BINARY) -> BIGINT",
        "The window's sequence number (SCN).",
        decoder,
        "dbus_sequence(event) -> 1000",
    )

Everything else follows from such rows: registration, the column functions for DataFrames, the
function reference, the tests that every function obeys.

An argument without a default is a *column*: the decoder gets its Arrow array. With the default NULL it
is a column that may be left out: the decoder gets None. With any other default it is a *constant*: the
decoder gets a Python value, the same for all rows of the query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.coerce import coerce, fits
from sparkwire.column import all_null, masked
from sparkwire.sqltype import arrow_type, sql_name
from sparkwire.wire import Layout

_SIGNATURE = re.compile(r"(\w+)\((.*)\) -> (.+)", re.DOTALL)
_ARGUMENT = re.compile(r"(\w+) (.+?)(?: = (.+))?", re.DOTALL)
_LITERALS: Mapping[str, bool | None] = {"true": True, "false": False, "NULL": None}


class Argument(NamedTuple):
    """One argument of a function, as its signature declares it.

    A STRUCT takes any of its declared fields, and the decoder gets them all.
    """

    name: str
    sql: str
    type: pa.DataType
    constant: bool
    required: bool
    default: Any


@dataclass(frozen=True)
class Function:
    """A SQL function over binary columns.

    Parameters
    ----------
    signature
        ``name(argument TYPE [= default], ...) -> TYPE``.
    doc
        What it answers, with units in brackets.
    decoder
        Arrow columns in, one Arrow column of the declared type out. Pure: its answer for a row
        depends on nothing but that row.
    example
        A SQL expression over the view ``sparkwire_samples`` and its answer as text, ``expr -> answer``.
    called_on_null
        False: NULL in any column gives NULL, whatever the decoder answers. True: the decoder sees to
        NULLs itself.
    field_docs
        What each field of the answer's STRUCT means, or of the STRUCT that its ARRAY has.
    literals
        Names of STRING columns that mostly are one value, such as a codec: in DataFrame code a Python text there is
        that value, and not the name of a column.
    """

    signature: str
    doc: str
    decoder: Callable[..., pa.Array]
    example: str
    called_on_null: bool = False
    field_docs: Mapping[str, str] = field(default_factory=dict)
    literals: tuple[str, ...] = ()

    @cached_property
    def _parts(self) -> tuple[str, tuple[Argument, ...], str]:
        match = _SIGNATURE.fullmatch(self.signature)
        if match is None:
            raise ValueError(f"not a signature: {self.signature!r}")
        name, arguments, returns = match.groups()
        return name, tuple(_argument(text) for text in _split(arguments)), returns

    @property
    def name(self) -> str:
        return self._parts[0]

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return self._parts[1]

    @property
    def returns(self) -> str:
        """The SQL type of the answer."""
        return self._parts[2]

    @cached_property
    def return_type(self) -> pa.DataType:
        """The Arrow type of the answer."""
        return arrow_type(self.returns)

    @property
    def example_expression(self) -> str:
        return self.example.rpartition(" -> ")[0]

    @property
    def example_answer(self) -> str:
        """As ``CAST(... AS STRING)`` gives it, ``NULL`` for NULL."""
        return self.example.rpartition(" -> ")[2]

    def decode(self, *args: Any, **named: Any) -> pa.Array:
        """Accessor for every row.

        Parameters
        ----------
        args, named
            one Arrow array of n rows for each column argument; for each constant a Python value,
            or an Arrow array that repeats one value.

        Returns
        -------
        pa.Array
            n rows of ``return_type``.

        Raises
        ------
        TypeError
            where the number or the types of the arguments are not those of the signature.
        ValueError
            where a constant has a value that the function does not take.
        """
        columns, constants = self._bind(args, named)
        if self.called_on_null:
            return self.decoder(*columns, **constants)
        given = [column for column in columns if column is not None]
        if any(pa.types.is_null(column.type) for column in given):
            return all_null(self.return_type, len(given[0]))
        return masked(self.decoder(*columns, **constants), given)

    def _bind(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[pa.Array | None], dict[str, Any]]:
        names = [argument.name for argument in self.arguments]
        given = dict(zip(names, args, strict=False)) | dict(named)
        missing = [a for a in self.arguments if a.required and a.name not in given]
        twice = set(names[: len(args)]) & set(named)
        if len(args) > len(names) or missing or twice or set(named) - set(names):
            raise TypeError(self._refusal(args, named))
        columns: list[pa.Array | None] = []
        constants: dict[str, Any] = {}
        for argument in self.arguments:
            if argument.constant:
                constants[argument.name] = self._constant(argument, given.get(argument.name, argument.default))
            elif argument.name in given:
                columns.append(self._column(argument, given[argument.name], args, named))
            else:
                columns.append(None)
        return columns, constants

    def _column(self, argument: Argument, value: pa.Array, args: Sequence[Any], named: Mapping[str, Any]) -> pa.Array:
        if not _takes(argument, value.type):
            raise TypeError(self._refusal(args, named))
        if pa.types.is_null(value.type):
            return value
        return coerce(value, argument.type, self.name, argument.name)

    def _constant(self, argument: Argument, value: Any) -> Any:
        if isinstance(value, pa.Array):
            if len(value) == 0:
                return argument.default
            if not _takes(argument, value.type):
                got = sql_name(value.type)
                raise TypeError(f"{self.name} takes {argument.name} {argument.sql}, got {got}")
            if len(pc.unique(value)) > 1:
                raise ValueError(f"{self.name} takes a constant for {argument.name}, got a column of several values")
            value = value[0].as_py()
        if value is None and argument.default is not None:
            raise ValueError(f"{self.name} takes {argument.name} {argument.sql}, got NULL")
        return value

    def _refusal(self, args: Sequence[Any], named: Mapping[str, Any]) -> str:
        got = [_kind(value) for value in args] + [f"{name} => {_kind(value)}" for name, value in named.items()]
        arguments = self.signature.partition(" -> ")[0].removeprefix(f"{self.name}(").removesuffix(")")
        takes = f"({', '.join(_brief(text.strip()) for text in _split(arguments))})"
        return f"{self.name} takes {takes}, got {'(' + ', '.join(got) + ')' if got else 'no argument'}"


class Format(NamedTuple):
    """What a wire format adds to the catalogue; everything that lists formats reads it there."""

    name: str
    """of its package, its cases (``tests/<name>_cases.py``), its benchmarks and its examples (``sql/examples/<name>.sql``)"""
    title: str
    prefix: str
    """what the names of its functions begin with: ``dbus_`` and ``to_dbus_``"""
    functions: tuple[Function, ...]
    samples: Mapping[str, bytes]
    """what the examples of its functions read: columns of the view ``sparkwire_samples``"""
    struct: str = ""
    """the function that answers in one pass what all those above it answer, if there is one"""
    twins: Mapping[str, Layout] = MappingProxyType({})
    """by title: big-endian layouts whose fields are written out as plain SQL (``sql/native/<name>.sql``)"""


def _brief(argument: str) -> str:
    """An argument's declaration without the fields of its STRUCT."""
    around, struct, _ = argument.partition("STRUCT<")
    return around + "STRUCT" + ">" * around.count("<") if struct else argument


def _kind(value: Any) -> str:
    return sql_name(value.type) if isinstance(value, pa.Array) else repr(value)


def _takes(argument: Argument, got: pa.DataType) -> bool:
    """Whether such a column is of the right kind; what is inside of a nested one, `coerce` sees."""
    expected = argument.type
    if pa.types.is_null(got):
        return True
    return bool(got.id == expected.id) if pa.types.is_nested(expected) else fits(got, expected)


def _argument(text: str) -> Argument:
    match = _ARGUMENT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not an argument: {text!r}")
    name, sql, default = match.groups()
    return Argument(name, sql, arrow_type(sql), default not in (None, "NULL"), default is None, _literal(default))


def _literal(text: str | None) -> Any:
    if text is None or text in _LITERALS:
        return None if text is None else _LITERALS[text]
    return text.strip("'") if text.startswith("'") else int(text)


def _split(arguments: str) -> list[str]:
    """Split at the commas that stand outside angle brackets."""
    parts, depth = [""], 0
    for character in arguments:
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part.strip()]
