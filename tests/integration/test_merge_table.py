"""Merge into Delta and Iceberg: the table is correct although changes are repeated and reordered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.merge_table import lacking, plain, shuffled
from tests.integration.packages import DELTA, ICEBERG, Package, run_python

TWO = "the changes are of two tables, t and u: filter them by _table_, or name the table in sparkwire.changes with its database"

CONFLICT = "another job writes to shop.wide: only one merge at a time may write to a table. Run this merge again"

LATE = [
    ["INSERT", 10, [10]], ["DELETE", 20, []], ["UPDATE", 15, []], ["DELETE", 20, []], ["TRUNCATE", 12, []], ["INSERT", 25, [25]],
]  # fmt: skip
"""a change, its order, and the values in the table after it"""


LOOKS: list[list[Any]] = [
    ["INSERT", 1, False, [[1, 1]]],
    ["DELETE", 2, False, []],
    ["DELETE", 3, True, []],  # the first delete, which created the table, is not noted
    ["INSERT", 4, False, [[3, 4]]],
    ["DELETE", 5, False, []],
    ["UPDATE", 4, True, []],
    ["DELETE", 6, False, []],
    ["UPDATE", 8, True, []],  # somebody else wrote to the table of deleted rows
    ["DELETE", 10, True, []],
    ["UPDATE", 11, False, [[5, 11]]],
]
"""a change, its order, whether the deleted rows are read, and the rows in the table after it"""


STREAMS: list[list[Any]] = [
    ["streamed", plain(lacking().table)],
    ["stored twice", 0],
    ["after streams and batches", [[0, 1]]],
]


@pytest.mark.parametrize(("kind", "package"), [("delta", DELTA), ("iceberg", ICEBERG)])
def test_merge_gives_the_correct_table(tmp_path: Path, kind: str, package: Package) -> None:
    said = run_python(package, "-m", "tests.integration.merge_table", kind, str(tmp_path))
    document = [json.loads(line) for line in said.splitlines() if line.startswith('["')]
    assert document == [
        *STREAMS,
        ["shuffled", plain(shuffled().table)],
        ["kept", plain(lacking().table)],
        ["grown", [[1, 1, "x"], [3, 3, None]]],
        ["wide", [[1, 2**40, "x"], [2, 2, None]]],
        ["rejected", "shop.other is not a table of merge, because it has no column _order_: name another target"],
        ["rejected", TWO],
        *(["late", *step] for step in LATE * 2),
        ["keys with NULL", [[None, 1, 4]]],
        *(["looks", op, order, reads if kind == "delta" else order > 2, rows] for op, order, reads, rows in LOOKS),
        ["stopped", "whole", 1, [0, 0, 0], [3, None]],
        ["stopped", "filled", 1, [1, 0, 0], [3, 10]],
        ["ranges", [True, kind != "delta", True], [[1, 3]]],
        ["by hash", [True, False], 1],
        ["conflict", CONFLICT],
        ["after the conflict", [[1, 9], [2, 3]]],
        ["after a loss", [[1, 11], [2, 3]], []],
    ]


def test_merge_on_spark_connect(tmp_path: Path) -> None:
    said = run_python(DELTA, "-m", "tests.integration.merge_table", "delta", str(tmp_path), "connect")
    document = [json.loads(line) for line in said.splitlines() if line.startswith('["')]
    assert document == [*STREAMS, ["looked up", [False, True]]]
