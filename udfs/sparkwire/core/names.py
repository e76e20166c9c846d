"""Names of tables in queries and messages, and of columns in results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.printable import value_error
from sparkwire.core.column import bools_of
from sparkwire.kernels import Bools

_MAX_LISTED: Final = 10
_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


class Table(NamedTuple):
    """A source table. None for the database or schema matches any."""

    name: str
    database: str | None = None
    schema: str | None = None


class Names(NamedTuple):
    """STRING: the names that messages have; NULL where a message does not have one."""

    database: pa.Array
    schema: pa.Array
    table: pa.Array

    @classmethod
    def none(cls, rows: int) -> Names:
        """The names of messages that have none."""
        return cls(*[pa.nulls(rows, pa.string())] * len(cls._fields))


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


def topic_name(name: str) -> str:
    """A part of a topic's name: Debezium writes ``_`` for characters that Kafka does not allow."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)


def schema_names(name: str) -> tuple[str, ...]:
    """How schemas may write a name: as it is, as in topics, or with ``_`` for each character that Avro does not allow."""
    of_topic = topic_name(name)
    return name, of_topic, of_topic.replace("-", "_")


def fits(table: Table, names: Names, of_schemas: Names | None = None) -> Bools:
    """Which messages are of the table. NULL fits any name.

    ``of_schemas`` has the names in the schemas of messages, as in topics. These count where a message has no name.
    """
    # A name with two parts may begin with the schema.
    outer = ("database", "schema") if table.schema is None else ("database",)
    fitting = np.ones(len(names.table), np.bool_)
    for wanted, roles in ((table.name, ("table",)), (table.database, outer), (table.schema, ("schema",))):
        if wanted is None:
            continue
        same, nameless = compared([getattr(names, role) for role in roles], wanted)
        if of_schemas is not None and nameless.any():
            of_schema, unknown = compared([getattr(of_schemas, role) for role in roles], *schema_names(wanted))
            nameless &= of_schema | unknown
        fitting &= same | nameless
    return fitting


def compared(columns: Sequence[pa.Array], *wanted: str) -> tuple[Bools, Bools]:
    """Which rows have one of the wanted names in one of the columns, and which have no name."""
    same = [bools_of(pc.equal(column, name).fill_null(False)) for column in columns for name in wanted]
    unknown = [bools_of(column.is_null()) for column in columns]
    return np.logical_or.reduce(same), np.logical_and.reduce(unknown)


def unknown_table(table: str, tables: Sequence[str], where: str) -> ValueError:
    """The error for a table that does not exist in ``where``, a plural noun."""
    if not tables:
        return value_error(f"{where} have no table {table}, or any other: pass columns")
    similar = [name for name in tables if _differ_in_case(table_of(table), table_of(name))]
    if similar:
        return value_error(f"{where} have no table {table}, but {' and '.join(similar)}: write it in this case")
    more = f" and {len(tables) - _MAX_LISTED} more" if len(tables) > _MAX_LISTED else ""
    return value_error(
        f"{where} have no table {table}, only {', '.join(tables[:_MAX_LISTED])}{more}: choose one of these"
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
