"""Update Delta, Iceberg and Parquet tables from decoded changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.neighbours import CHANGES, MESSAGES
from tests.integration.packages import CONNECTOR_PACKAGES, OLDEST, Package, run_python
from tests.support import WHOLE


def expected() -> list[list[int]]:
    """The expected table after all messages."""
    table: dict[int, int] = {}
    for n in range(250):
        if n >= 100 and n % 3 == 0:
            table.pop(n % 100, None)
        else:
            table[n % 100] = n * 10
    return sorted([key, amount] for key, amount in table.items())


@pytest.mark.parametrize(("format", "package"), CONNECTOR_PACKAGES.values(), ids=CONNECTOR_PACKAGES)
def test_merge_by_hand_and_of_a_stream(tmp_path: Path, format: str, package: Package) -> None:
    """The oldest connectors always; `test_merge_table` has the newest."""
    if package not in OLDEST and not WHOLE:
        pytest.skip("make integration WHOLE=1 runs it")
    said = run_python(package, "-m", "tests.integration.neighbours", format, str(tmp_path))
    tables = [json.loads(line) for line in said.splitlines() if line.startswith("[")]
    assert tables == [expected()] * 2


def test_parquet(spark: SparkSession, tmp_path: Path) -> None:
    """Store messages in Parquet, read and decode them, and store the typed rows."""
    messages, changes = str(tmp_path / "messages"), str(tmp_path / "changes")
    spark.sql(MESSAGES).write.parquet(messages)
    spark.read.parquet(messages).createOrReplaceTempView("messages")
    spark.sql(CHANGES).write.parquet(changes)
    last = spark.read.parquet(changes).where("last.operation != 'DELETE'").selectExpr("key", "last.amount").collect()
    assert sorted([row.key, row.amount] for row in last) == expected()
