"""The tables of the scenario, printed by PostgreSQL."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.integration.postgres import Postgres

_AS_GOLDEN = (
    "SET timezone = 'UTC'; SET intervalstyle = 'postgres'; SET bytea_output = 'hex'; SET extra_float_digits = 1; "
    "SET datestyle = 'ISO, YMD';\n"
)
_TABLES = """
SELECT json_build_object(
    'table', 'app.' || relname,
    'key', COALESCE((
        SELECT json_agg(attname ORDER BY array_position(i.indkey::int[], a.attnum::int))
        FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
        WHERE i.indrelid = c.oid AND i.indisprimary), '[]'),
    'replica_identity', CASE relreplident WHEN 'd' THEN 'default' WHEN 'f' THEN 'full' WHEN 'i' THEN 'index' END,
    'columns', (
        SELECT json_agg(json_strip_nulls(json_build_object(
            'name', attname, 'type', format_type(atttypid, atttypmod), 'notnull', attnotnull,
            'base', (SELECT format_type(t.typbasetype, t.typtypmod) FROM pg_type t WHERE t.oid = atttypid AND t.typtype = 'd')
        )) ORDER BY attnum)
        FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped))
FROM pg_class c WHERE relkind = 'r' AND relnamespace = 'app'::regnamespace ORDER BY relname;
"""


def tables(database: Postgres) -> list[dict[str, Any]]:
    """Lines of JSON in the form of the golden data: each table, then its rows."""
    document = [json.loads(line) for line in database.run(_AS_GOLDEN + _TABLES)]
    lines = database.run(_AS_GOLDEN + "\n".join(map(_select, document)))
    rows = [json.loads(line) for line in lines]
    said: list[dict[str, Any]] = []
    for table in document:
        own = [row for name, row in rows if name == table["table"]]
        topic = f"shop.{table['table']}"
        said.append({"kind": "table", **table, "topic": topic, "rows": len(own)})
        names = [column["name"] for column in table["columns"]]
        said += [{"kind": "row", "table": table["table"], "row": dict(zip(names, row, strict=True))} for row in own]
    return said


def _select(table: dict[str, Any]) -> str:
    name, texts = table["table"], ", ".join(map(_text, table["columns"]))
    schema, _, plain = name.partition(".")
    order = ", ".join(f'"{column}"::text' for column in table["key"] or [table["columns"][0]["name"]])
    return f"""SELECT json_build_array('{name}', json_build_array({texts})) FROM {schema}."{plain}" ORDER BY {order};"""


def _text(column: dict[str, Any]) -> str:
    """The output of the type. A cast to text would strip the blanks of char(n), and write an address with /32."""
    name, type = f'"{column["name"]}"', column["type"]
    if blanks := re.fullmatch(r"character\((\d+)\)", type):
        return f"rpad({name}::text, {blanks[1]})"
    return {"bytea": f"encode({name}, 'hex')", "inet": f"abbrev({name})"}.get(type, f"{name}::text")
