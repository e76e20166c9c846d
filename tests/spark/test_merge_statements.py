"""The statement of a merge over a directory: each scenario of `merge_scenarios`, and errors before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sparkwire
from tests.support import merge_scenarios as scenarios

pytestmark = pytest.mark.usefixtures("interpreted")

EACH = [(group, name) for group, own in scenarios.GROUPS.items() for name in own]


@pytest.fixture(scope="module")
def merged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Any]]:
    """The rows of a group after all merges, the deleted ones too."""

    @cache
    def rows_of(group: str) -> list[Any]:
        target = tmp_path_factory.mktemp("merged") / "table"
        for rows in scenarios.batches(scenarios.GROUPS[group]):
            changes = spark.createDataFrame(rows, scenarios.SCHEMA).coalesce(1)
            sparkwire.merge(changes, target, scenarios.KEYS, deletes="keep")
        found: list[Any] = sparkwire.merged(spark, target).collect()
        return found

    return rows_of


@pytest.mark.filterwarnings("ignore:all .* keys of .* are late")
@pytest.mark.parametrize(("group", "name"), EACH)
def test_rows_after_merges(merged: Callable[[str], list[Any]], group: str, name: str) -> None:
    scenario, rows = scenarios.GROUPS[group][name], merged(group)
    live = [row for row in rows if not row["_deleted_"]]
    deleted = [row for row in rows if row["_deleted_"]]
    assert scenarios.result(live, name) == scenarios.wanted(scenario.rows)
    assert scenarios.result(deleted, name) == scenarios.wanted(scenario.deleted)


@pytest.mark.filterwarnings("ignore:all .* keys of .* are late")
@pytest.mark.parametrize("name", scenarios.TRUNCATES)
def test_rows_after_a_truncate(spark: SparkSession, tmp_path: Path, name: str) -> None:
    scenario = scenarios.TRUNCATES[name]
    for rows in scenarios.batches({name: scenario}):
        sparkwire.merge(spark.createDataFrame(rows, scenarios.SCHEMA), tmp_path / "t", scenarios.KEYS, deletes="keep")
    rows = sparkwire.merged(spark, tmp_path / "t").collect()
    assert scenarios.result([row for row in rows if not row["_deleted_"]], name) == scenarios.wanted(scenario.rows)
    assert scenarios.result([row for row in rows if row["_deleted_"]], name) == scenarios.wanted(scenario.deleted)
