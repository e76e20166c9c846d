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
from tests.data.generators.debezium.comparison import differences
from tests.data.generators.debezium.scenario import run
from tests.integration.postgres import MISSING, programs_of_postgres
from tests.support import debezium_golden as golden


def make(place: Path) -> Iterator[Compared]:
    """Make the data in an empty directory."""
    if programs_of_postgres() is None:
        pytest.fail(MISSING, pytrace=False)
    run(place)
    made = {str(file.relative_to(place)): file.read_bytes() for file in place.rglob("*.json*")}
    messages = sum(text.count(b"\n") for name, text in made.items() if name.startswith("messages."))
    yield Compared(messages, "messages of PostgreSQL written again", list(differences(golden.files("postgres"), made)))
