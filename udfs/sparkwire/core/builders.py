"""Build the functions of the catalogue: for one field of a scan, for all fields as a STRUCT, or for the rows of a table.

A *scan* is the result of one pass over a column: a class of the format that computes each step on first use. A scalar function
takes one result from the scan, and the struct function of a format takes all of them. So each result has one implementation. A
one-to-many function returns the rows of a *table*: a sequence of ``Column``, which a data source can also use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from sparkwire.core.column import Identity, identity_of, struct
from sparkwire.core.function import Function

Scan = TypeVar("Scan")

_KEPT: Final = 64 << 20
"""the largest batch to keep until the next one [bytes], as large as a batch of Spark 4.1"""


class Shared(Generic[Scan]):
    """Share one scan of each batch among all functions that a query calls on it.

    Spark passes each function a new batch with the same buffers. This object keeps the last batch with its scan, so that no other
    batch can reuse its memory. It never shares mutable buffers, or a batch that is too large to keep.

    Threads may share the object: it replaces the batch and its scan together, so that each thread uses its own batch. In the
    worst case, a batch is scanned twice, or two threads compute the same step.
    """

    def __init__(self, scan: Callable[[pa.Array], Scan]) -> None:
        self.scan = scan
        self._latest: tuple[Identity, pa.Array, Scan] | None = None

    def __call__(self, column: pa.Array) -> Scan:
        identity = identity_of(column) if column.nbytes <= _KEPT else None
        if identity is None:
            return self.scan(column)
        latest = self._latest
        if latest is None or latest[0] != identity:
            latest = self._latest = (identity, column, self.scan(column))
        return latest[2]


@dataclass(frozen=True)
class Accessor(Generic[Scan]):
    """The decoder of a scalar function: it scans the column, and ``read`` takes one result from the scan."""

    scan: Callable[[pa.Array], Scan]
    read: Callable[[Scan], pa.Array]

    def __call__(self, column: pa.Array) -> pa.Array:
        return self.read(self.scan(column))


class Column(NamedTuple, Generic[Scan]):
    """The complete description of a table's column.

    A sequence of these defines signatures, comments, the reference and the columns of a data source.
    """

    name: str
    sql: str
    """its SQL type"""
    doc: str
    """its meaning, with units in brackets"""
    accessor: Callable[[Scan], pa.Array]
    example: str = ""
    """if the column is also a function: a SQL expression and its result"""


class ColumnTable(list["Column[Scan]"], Generic[Scan]):
    """The columns of a table, in order. Append a column, or decorate the function that returns it with ``column``."""

    def column(
        self, sql: str, example: str = "", doc: str = ""
    ) -> Callable[[Callable[[Scan], pa.Array]], Callable[[Scan], pa.Array]]:
        """A decorator that adds a column with the name and docstring of a function; ``doc`` replaces the docstring."""

        def add(function: Callable[[Scan], pa.Array]) -> Callable[[Scan], pa.Array]:
            means = doc or " ".join((function.__doc__ or "").split())
            self.append(Column(function.__name__, sql, means, function, example))
            return function

        return add


def columns_of(scanned: Scan, table: Sequence[Column[Scan]]) -> dict[str, pa.Array]:
    """The selected columns of a table, from a scan."""
    return {column.name: column.accessor(scanned) for column in table}


def struct_type(table: Sequence[Column[Scan]]) -> str:
    """The SQL type of a table's rows."""
    return f"STRUCT<{', '.join(f'{column.name} {column.sql}' for column in table)}>"


def scalar_functions(
    declaration: str, table: Sequence[Column[Scan]], scan: Callable[[pa.Array], Scan]
) -> tuple[Function, ...]:
    """Create one function for each column of a table.

    ``declaration`` is the signature without the result; ``{}`` is replaced by the column's name: ``dbus_{}(event BINARY)``.
    """
    return tuple(
        Function(f"{declaration.format(name)} -> {sql}", doc, Accessor(scan, accessor), example)
        for name, sql, doc, accessor, example in table
    )


def struct_function(
    declaration: str, table: Sequence[Column[Scan]], scan: Callable[[pa.Array], Scan], doc: str, example: str
) -> Function:
    """Create the function that returns all columns of a table from one scan.

    ``declaration`` is the signature without the result: ``dbus_event(event BINARY)``.
    """

    def decode(column: pa.Array) -> pa.Array:
        return struct(columns_of(scan(column), table))

    return Function(f"{declaration} -> {struct_type(table)}", doc, decode, example, field_docs=_docs(table))


class ManyRows(Protocol):
    """A scan that returns any number of rows for each row of a column."""

    def lists(self, entries: pa.Array) -> pa.Array:
        """Group ``entries``, which has one item for each resulting row, to one ARRAY for each row of the column."""


RowsScan = TypeVar("RowsScan", bound=ManyRows)


def rows_function(
    declaration: str,
    table: Sequence[Column[RowsScan]],
    scan: Callable[..., RowsScan],
    doc: str,
    example: str,
) -> Function:
    """Create the one-to-many function that returns a table's rows, ``ARRAY<STRUCT<...>>``.

    ``declaration`` is the signature without the result: ``dbus_events(stream BINARY)``. ``scan`` gets the arguments of a
    decoder: the columns, and the constants by name.
    """

    def decode(*columns: pa.Array, **constants: Any) -> pa.Array:
        scanned = scan(*columns, **constants)
        return scanned.lists(struct(columns_of(scanned, table)))

    returns = f"ARRAY<{struct_type(table)}>"
    return Function(f"{declaration} -> {returns}", doc, decode, example, field_docs=_docs(table))


def _docs(table: Sequence[Column[Scan]]) -> dict[str, str]:
    return {column.name: column.doc for column in table}
