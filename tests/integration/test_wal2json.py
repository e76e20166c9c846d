"""Changes of wal2json follow a PostgreSQL server: after each part of random transactions, the tables equal the database's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.data.generators import wal2json
from tests.data.generators.wal2json.scenario import TABLES, Scenario, create
from tests.integration import postgres
from tests.support import wal2json_golden as golden
from tests.support.cdc_golden import Column, Record, TableTruth
from tests.support.decoded import as_changes, changes_of
from tests.support.table_replay import Tables, compare_table

PARTS = 4
_PROGRAMS = postgres.programs_of_postgres()
_PLUGINS = [] if _PROGRAMS is None else list(Path(_PROGRAMS).parent.glob("lib/wal2json.so"))


@pytest.mark.skipif(not _PLUGINS, reason="could not get wal2json: install Debian's package postgresql-15-wal2json")
@pytest.mark.parametrize("order", ["offset", "source"])
def test_changes_follow_the_database(order: str) -> None:
    scenario, tables, sent = Scenario(2025), Tables(), 0
    with postgres.running_postgres() as database:
        database.run(create())
        database.run("SELECT pg_create_logical_replication_slot('two', 'wal2json');")
        for _ in range(PARTS):
            database.run("\n".join(scenario.transactions()))
            lines = wal2json.messages(database)
            records = [Record("shop", 0, sent + k, None, line.encode(), []) for k, line in enumerate(lines)]
            sent += len(records)
            for name, (keys, columns) in TABLES.items():
                for change in as_changes(changes_of(records, "wal2json", name, keys=keys, order=order), name):
                    tables.apply(change)
                rows = wal2json.rows(database, name)
                truth = TableTruth(name, list(keys), [Column(*column) for column in columns.items()], rows)
                found, _, losses = compare_table(tables.rows.get(name, []), truth, golden.VARIANT, golden.same)
                assert (found, losses) == (len(rows), [])
    assert tables.unknown == 0
