"""Canal's messages of MariaDB: the scenario of ``tests/data/canal/canal.tar.xz`` once more.

`mariadb.sql` is the scenario: at each ``-- @point`` the database says what its tables hold. It runs twice against MariaDB, with
an instance of Canal for each variant. In the second run, Canal sends some messages twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path

import pytest

from tests.data.generators.canal.comparison import differing_messages, differing_points
from tests.data.generators.canal.scenario import run
from tests.data.generators.canal.variants import REDELIVERED, VARIANTS
from tests.data.generators.comparison import Compared, made_lines
from tests.integration.mariadb import MISSING, programs_of_mariadb, running_mariadb
from tests.support import cdc_golden as golden


def make(place: Path) -> Iterator[Compared]:
    """Make the data in an empty directory."""
    if programs_of_mariadb() is None:
        pytest.fail(MISSING, pytrace=False)
    redelivery = place / "redelivery"
    redelivery.mkdir()
    with running_mariadb() as server:
        run(place, server, VARIANTS)
        yield from _compared("canal", place, VARIANTS)
        run(redelivery, server, REDELIVERED, sends_twice=True)
        yield from _compared("canal-redelivery", redelivery, REDELIVERED, "redelivery/")


def _compared(system: str, place: Path, variants: Collection[str], folder: str = "") -> Iterator[Compared]:
    """Compare a run with the stored data. ``system`` is their name in `cdc_golden`, ``folder`` their place in the archive."""
    for variant in variants:
        name = f"messages.{variant}.jsonl"
        made = made_lines(place / name)
        found = differing_messages(golden.texts(system, name), made)
        yield Compared(len(made), f"messages of {folder}{variant} written again", found)
    points = [f"truth/point{point.number:02}.jsonl" for point in golden.points(system)]
    sentences = (
        differing_points(folder + name, golden.texts(system, name), made_lines(place / name), variants)
        for name in points
    )
    yield Compared(len(points), f"points of {folder}truth read again", list(chain.from_iterable(sentences)))
