"""wal2json's messages of PostgreSQL: the data of ``tests/data/wal2json`` once more.

`scenario` has the transactions. After each of six parts, the slot's messages are read, and every row of every table.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.data.generators.comparison import Compared, compare_lines, differing_fields, stored_lines
from tests.data.generators.wal2json.scenario import TABLES, Scenario, create, named, quoted
from tests.integration.postgres import MISSING, Postgres, programs_of_postgres, running_postgres
from tests.support import DATA

_SEED, _MOMENTS = 76, 6
_STORED = DATA / "wal2json"
_OPTIONS = {
    "format-version": "2",
    **dict.fromkeys(
        ("include-lsn", "include-timestamp", "include-pk", "include-xids", "include-transaction", "include-types"), "1"
    ),
}
_OF_THE_RUN = ("xid", "timestamp", "lsn", "nextlsn")
"""members that differ in each run"""


def make(place: Path) -> Iterator[Compared]:
    """Make the data in an empty directory."""
    if programs_of_postgres() is None:
        pytest.fail(MISSING, pytrace=False)
    scenario, lines, moments = Scenario(_SEED), list[str](), list[dict[str, Any]]()
    with running_postgres() as database:
        database.run(create())
        database.run("SELECT pg_create_logical_replication_slot('two', 'wal2json');")
        for _ in range(_MOMENTS):
            database.run("\n".join(scenario.transactions()))
            new = messages(database)
            lines += new
            moments.append({"messages": len(new), "tables": {name: rows(database, name) for name in TABLES}})
    (place / "messages.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    (place / "moments.json").write_text(json.dumps(moments, ensure_ascii=False), "utf-8")
    yield compare_lines("messages", stored_lines(_STORED / "messages.jsonl.xz"), lines, _essence)
    stored = json.loads(lzma.decompress((_STORED / "moments.json.xz").read_bytes()))["moments"]
    yield Compared(len(moments), "moments read again", list(differing_fields("moments", stored, moments)))


def messages(database: Postgres) -> list[str]:
    """The messages since the last call."""
    options = ", ".join(f"'{name}', '{value}'" for name, value in _OPTIONS.items())
    return database.run(f"SELECT data FROM pg_logical_slot_get_changes('two', NULL, NULL, {options});")


def rows(database: Postgres, table: str) -> list[dict[str, str | None]]:
    """The rows of a table, each column as PostgreSQL's text."""
    keys, columns = TABLES[table]
    members = ", ".join(f"{quoted(column)}, {named(column)}::text" for column in columns)
    order = ", ".join(map(named, keys))
    return [
        json.loads(line)
        for line in database.run(f"SELECT json_build_object({members}) FROM {named(table)} ORDER BY {order};")
    ]


def _essence(line: str) -> Any:
    return {name: value for name, value in json.loads(line).items() if name not in _OF_THE_RUN}
