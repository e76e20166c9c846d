"""Tables by their names, as queries give them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

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
