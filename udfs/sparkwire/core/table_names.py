"""Tables by their names, as queries give them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

_MOST_LISTED: Final = 10
_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


class Table(NamedTuple):
    """A source table; of a database or schema that is None, any."""

    name: str
    database: str | None = None
    schema: str | None = None


def table_of(text: str) -> Table:
    """``table``, ``database.table`` or ``database.schema.table``, names with dots in back quotes.

    ValueError where the text is none of these.
    """
    parts = [match[2] or match[1].replace("``", "`") for match in _PART.finditer(text)]
    if not 1 <= len(parts) <= 3 or _PART.sub("", text) != "." * (len(parts) - 1):
        raise ValueError(f"table is 'table', 'database.table' or 'database.schema.table', got {text!r}")
    *outer, name = parts
    return Table(name, *outer)


def table_name(*parts: str | None) -> str:
    """The parts of a table's name, without those that are missing, as `table_of` reads them."""
    return ".".join(_quoted(part) for part in parts if part)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`" if set(name) & set(".`") else name


def unknown_table(table: str, tables: Sequence[str], where: str) -> ValueError:
    """The error for a table that is not one of those that ``where``, a plural, has."""
    if not tables:
        return ValueError(f"{where} have no table {table}, or any other: give columns")
    more = f" and {len(tables) - _MOST_LISTED} more" if len(tables) > _MOST_LISTED else ""
    return ValueError(
        f"{where} have no table {table}, only {', '.join(tables[:_MOST_LISTED])}{more}: choose one of these"
    )
