"""Debezium's messages of PostgreSQL: the scenario of ``tests/data/debezium/postgres.tar.xz`` once more.

`postgres.sql` is the scenario: what is before ``-- @snapshot`` is there when the connectors begin, and at each ``-- @point`` the
database says what its tables hold. It runs against PostgreSQL 15 with three connectors of Debezium's embedded engine, from
Maven Central; `variants` says how each record is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.data.generators.debezium.comparison import differences as compare
from tests.data.generators.debezium.scenario import run
from tests.support import debezium_golden as golden


def differences(place: Path) -> Iterator[str]:
    """Make the data in an empty directory; a sentence for each difference from those that are stored."""
    run(place)
    made = {str(file.relative_to(place)): file.read_bytes() for file in place.rglob("*.json*")}
    yield from compare(golden.files("postgres"), made)
