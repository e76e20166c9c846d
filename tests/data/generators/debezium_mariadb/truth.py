"""The tables of the scenario, printed by MariaDB."""

from __future__ import annotations

from typing import Any

from tests.integration.mariadb import MariaDB

_AS_GOLDEN = "SET time_zone = '+00:00', sql_mode = '';\n"
_TABLES = """
SELECT JSON_ARRAY(
    table_name, column_name, column_type, is_nullable = 'NO', data_type, numeric_precision, character_set_name)
FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' ORDER BY table_name, ordinal_position;
"""
_KEYS = """
SELECT JSON_ARRAY(table_name, column_name) FROM information_schema.key_column_usage
WHERE table_schema = DATABASE() AND constraint_name = 'PRIMARY' ORDER BY table_name, ordinal_position;
"""


def tables(database: MariaDB) -> list[dict[str, Any]]:
    """Lines of JSON in the form of the golden data: each table, then its rows."""
    columns: dict[str, list[list[Any]]] = {}
    for table, *column in database.json(_AS_GOLDEN + _TABLES):
        columns.setdefault(table, []).append(column)
    keys: dict[str, list[str]] = {table: [] for table in columns}
    for table, name in database.json(_AS_GOLDEN + _KEYS):
        keys[table].append(name)
    said: list[dict[str, Any]] = []
    for table, own in columns.items():
        texts = ", ".join(_text(name, type, precision) for name, _, _, type, precision, _ in own)
        order = ", ".join(f"`{name}`" for name in keys[table])
        rows = database.json(
            f"{_AS_GOLDEN}SELECT JSON_ARRAY({texts}) FROM `{table}`{f' ORDER BY {order}' if order else ''};"
        )
        name = f"shopdb.{table}"
        told = [
            {"name": column, "type": type + _charset(charset), "notnull": bool(notnull)}
            for column, type, notnull, _, _, charset in own
        ]
        about = {"kind": "table", "table": name, "topic": f"shop.{name}", "key": keys[table]}
        said.append(about | {"columns": told, "rows": len(rows)})
        names = [column[0] for column in own]
        said += [{"kind": "row", "table": name, "row": dict(zip(names, row, strict=True))} for row in rows]
    return said


def _charset(name: str | None) -> str:
    return f" charset {name}" if name not in (None, "utf8mb4") else ""


def _text(name: str, type: str, precision: int | None) -> str:
    """The client's output for a value: bytes in hex, and a float with all its digits."""
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
