"""The tables of the scenario at a point, printed by MariaDB."""

from __future__ import annotations

from typing import Any

from tests.data.generators.canal.variants import DATABASES
from tests.data.generators.mariadb_tables import Column, read
from tests.integration.mariadb import MariaDB


def tables(server: MariaDB) -> list[dict[str, Any]]:
    """Lines of JSON in the form of the golden data: each table, then its rows."""
    said: list[dict[str, Any]] = []
    for database in DATABASES:
        for table in read(server._replace(database=database)):
            place = {"db": database, "table": table.name}
            columns = [_described(column) for column in table.columns]
            about = {"kind": "table", **place, "key": table.key, "columns": columns}
            said.append(about | {"rows": len(table.rows)})
            said += [{"kind": "row", **place, "row": row} for row in table.rows]
    return said


def _described(column: Column) -> dict[str, Any]:
    described = {"name": column.name, "type": column.type, "notnull": column.is_not_null}
    return described | ({"generated": True} if column.is_generated else {})
