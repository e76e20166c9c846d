"""The tables of the scenario, printed by MariaDB."""

from __future__ import annotations

from typing import Any

from tests.data.generators.mariadb_tables import read
from tests.integration.mariadb import MariaDB


def tables(database: MariaDB) -> list[dict[str, Any]]:
    """Lines of JSON in the form of the golden data: each table, then its rows."""
    said: list[dict[str, Any]] = []
    for table in read(database):
        name = f"shopdb.{table.name}"
        columns = [
            {"name": column.name, "type": column.type, "notnull": column.is_not_null} for column in table.columns
        ]
        about = {"kind": "table", "table": name, "topic": f"shop.{name}", "key": table.key}
        said.append(about | {"columns": columns, "rows": len(table.rows)})
        said += [{"kind": "row", "table": name, "row": row} for row in table.rows]
    return said
