"""Read the tables of a scenario with MariaDB's own SELECT."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.integration.mariadb import MariaDB

_AS_GOLDEN = "SET time_zone = '+00:00', sql_mode = '';\n"
_COLUMNS = """
SELECT JSON_ARRAY(
    table_name, column_name, column_type, is_nullable = 'NO', extra LIKE '%GENERATED%',
    data_type, numeric_precision, character_set_name)
FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' ORDER BY table_name, ordinal_position;
"""
_KEYS = """
SELECT JSON_ARRAY(table_name, column_name) FROM information_schema.key_column_usage
WHERE table_schema = DATABASE() AND constraint_name = 'PRIMARY' ORDER BY table_name, ordinal_position;
"""


class Column(NamedTuple):
    name: str
    type: str
    """with the character set, except the server's"""
    is_not_null: bool
    is_generated: bool


class Table(NamedTuple):
    """A table with its rows in the order of the key."""

    name: str
    key: list[str]
    columns: list[Column]
    rows: list[dict[str, str | None]]
    """the server's text of each value: bytes in hex, and a float with all its digits"""


def read(database: MariaDB) -> Iterator[Table]:
    """All tables of a database, in the order of their names."""
    columns: dict[str, list[Column]] = {}
    texts: dict[str, list[str]] = {}
    for table, name, type, is_not_null, is_generated, base, precision, charset in database.json(_AS_GOLDEN + _COLUMNS):
        column = Column(name, type + _charset(charset), bool(is_not_null), bool(is_generated))
        columns.setdefault(table, []).append(column)
        texts.setdefault(table, []).append(_text(name, base, precision))
    keys: dict[str, list[str]] = {table: [] for table in columns}
    for table, name in database.json(_AS_GOLDEN + _KEYS):
        keys[table].append(name)
    for table, own in columns.items():
        order = ", ".join(f"`{name}`" for name in keys[table])
        values = f"SELECT JSON_ARRAY({', '.join(texts[table])}) FROM `{table}`"
        rows = database.json(f"{_AS_GOLDEN}{values}{f' ORDER BY {order}' if order else ''};")
        names = [column.name for column in own]
        yield Table(table, keys[table], own, [dict(zip(names, row, strict=True)) for row in rows])


def _charset(name: str | None) -> str:
    return f" charset {name}" if name not in (None, "utf8mb4") else ""


def _text(name: str, type: str, precision: int | None) -> str:
    """The SQL expression for a value's text."""
    name = f"`{name}`"
    if type in ("binary", "varbinary") or "blob" in type:
        return f"LOWER(HEX({name}))"
    if type == "bit":
        return f"LPAD(BIN({name} + 0), {precision}, '0')"
    if type == "float":
        return f"CAST(CAST({name} AS DOUBLE) AS CHAR)"
    if type in ("point", "geometry"):
        return f"ST_ASTEXT({name})"
    return f"CAST({name} AS CHAR)"
