"""Merge into Delta and Iceberg: the table is correct although changes are repeated and reordered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.merge_table import lacking, plain, shuffled
from tests.integration.packages import DELTA, ICEBERG, Package, run_python

TWO = "the changes are of two tables, t and u: filter them by _table_, or name the table in sparkwire.changes with its database"

CONFLICT = "another job writes to shop.wide: only one merge at a time may write to a table. Run this merge again"


@pytest.mark.parametrize(("kind", "package"), [("delta", DELTA), ("iceberg", ICEBERG)])
def test_merge_gives_the_correct_table(tmp_path: Path, kind: str, package: Package) -> None:
    said = run_python(package, "-m", "tests.integration.merge_table", kind, str(tmp_path))
    document = [json.loads(line) for line in said.splitlines() if line.startswith("[")]
    assert document == [
        ["shuffled", plain(shuffled().table)],
        ["kept", plain(lacking().table)],
        ["streamed", plain(lacking().table)],
        ["grown", [[1, 1, "x"], [3, 3, None]]],
        ["wide", [[1, 2**40, "x"], [2, 2, None]]],
        ["rejected", "shop.other is not a table of merge, because it has no column _order_: name another target"],
        ["rejected", TWO],
        ["conflict", CONFLICT],
        ["after the conflict", [[1, 9], [2, 3]]],
    ]
