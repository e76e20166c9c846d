"""Debezium's messages of MariaDB: the scenario of ``tests/data/debezium/mariadb.tar.xz`` once more.

`mariadb.sql` is the scenario, as `postgres.sql` is that of PostgreSQL; the run and the comparison are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.data.generators.comparison import Compared
from tests.data.generators.debezium.scenario import Database, compared, run
from tests.data.generators.debezium_mariadb.truth import tables
from tests.data.generators.debezium_mariadb.variants import REDELIVERY, VARIANTS, settings
from tests.integration.capture import DEBEZIUM
from tests.integration.mariadb import MISSING, programs_of_mariadb, running_mariadb

SCENARIO = Path(__file__).with_name("mariadb.sql")
ARTIFACTS = (f"io.debezium:debezium-connector-mariadb:{DEBEZIUM}", f"io.debezium:debezium-storage-file:{DEBEZIUM}")


def make(place: Path) -> Iterator[Compared]:
    """Make the data in an empty directory."""
    if programs_of_mariadb() is None:
        pytest.fail(MISSING, pytrace=False)
    with running_mariadb() as server:
        server.run("RESET MASTER;")
        database = server._replace(database="shopdb")

        def execute(sql: str) -> None:
            (server if sql.startswith("CREATE DATABASE") else database).run(sql)

        def settings_of(connector: str) -> dict[str, str]:
            return settings(connector, server.port, place)

        scenario = Database(SCENARIO, VARIANTS, settings_of, execute, lambda: tables(database), ARTIFACTS, REDELIVERY)
        run(place, scenario)
    yield compared("mariadb", scenario, place)
