"""Names of tables in queries, and of columns in results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from sparkwire.base.printable import printable

_MAX_LISTED: Final = 10
_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


class Table(NamedTuple):
    """A source table. None for the database or schema matches any."""

    name: str
    database: str | None = None
    schema: str | None = None


def table_of(text: str) -> Table:
    """Parse ``table``, ``database.table`` or ``database.schema.table``. Names with dots are in back quotes.

    Raises ValueError if the text has another form.
    """
    parts = [match[2] or match[1].replace("``", "`") for match in _PART.finditer(text)]
    if not 1 <= len(parts) <= 3 or _PART.sub("", text) != "." * (len(parts) - 1):
        raise ValueError(f"table is 'table', 'database.table' or 'database.schema.table', got {text!r}")
    *outer, name = parts
    return Table(name, *outer)


def table_name(*parts: str | None) -> str:
    """The name of a table in the form that `table_of` parses; missing parts are left out."""
    return ".".join(_quoted(part) for part in parts if part)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`" if set(name) & set(".`") else name


def unknown_table(table: str, tables: Sequence[str], where: str) -> ValueError:
    """The error for a table that does not exist in ``where``, a plural noun."""
    if not tables:
        return ValueError(printable(f"{where} have no table {table}, or any other: pass columns"))
    similar = [name for name in tables if _differ_in_case(table_of(table), table_of(name))]
    if similar:
        return ValueError(
            printable(f"{where} have no table {table}, but {' and '.join(similar)}: write it in this case")
        )
    more = f" and {len(tables) - _MAX_LISTED} more" if len(tables) > _MAX_LISTED else ""
    return ValueError(
        printable(f"{where} have no table {table}, only {', '.join(tables[:_MAX_LISTED])}{more}: choose one of these")
    )


def _differ_in_case(one: Table, other: Table) -> bool:
    """Whether two names are of one table, if case does not count."""
    outer = {part.casefold() for part in other[1:] if part is not None}
    return one.name.casefold() == other.name.casefold() and all(
        part is None or part.casefold() in outer for part in one[1:]
    )


def distinct_names(names: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Make names unique: a name that is taken, or differs from an earlier one only in case, gets ``_2``, ``_3`` ….

    Spark treats ``id`` and ``ID`` as the same column, as Parquet files also require.

    Examples
    --------
    >>> distinct_names(["id", "ID", "_error_"], taken=["_error_"])
    ['id', 'ID_2', '_error__2']
    """
    used, requested = {name.lower() for name in taken}, {name.lower() for name in names}
    distinct: list[str] = []
    for name in names:
        free, k = name, 1
        while free.lower() in used or (k > 1 and free.lower() in requested):
            k += 1
            free = f"{name}_{k}"
        used.add(free.lower())
        distinct.append(free)
    return distinct
