"""Debezium's messages of PostgreSQL: the scenario of ``tests/data/debezium/postgres.tar.xz`` once more.

`postgres.sql` is the scenario: what is before ``-- @snapshot`` is there when the connectors begin, and at each ``-- @point`` the
database says what its tables hold. It runs against PostgreSQL 15 with three connectors of Debezium's embedded engine, from
Maven Central; `variants` says how each record is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.data.generators.comparison import Compared
from tests.data.generators.debezium.scenario import Database, compared, run
from tests.data.generators.debezium.truth import tables
from tests.data.generators.debezium.variants import VARIANTS, settings
from tests.integration.postgres import MISSING, programs_of_postgres, running_postgres

SCENARIO = Path(__file__).with_name("postgres.sql")
_PORT = "port=55432"  # of the connections that the scenario opens inside a transaction


def make(place: Path) -> Iterator[Compared]:
    """Make the data in an empty directory."""
    if programs_of_postgres() is None:
        pytest.fail(MISSING, pytrace=False)
    with running_postgres() as server:
        database = server.new_database("shoppg")

        def execute(sql: str) -> None:
            database.run(sql.replace(_PORT, f"port={database.port}"))

        def settings_of(connector: str) -> dict[str, str]:
            return settings(connector, server.port)

        scenario = Database(SCENARIO, VARIANTS, settings_of, execute, lambda: tables(database))
        run(place, scenario)
    yield compared("postgres", scenario, place)
