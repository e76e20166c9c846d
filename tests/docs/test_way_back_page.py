"""Run the page on restoring topics over a topic that was written for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sparkwire
from tests.support import ROOT
from tests.support.client_streams import end, event

PAGE = (ROOT / "docs" / "guide" / "way-back.md").read_text("utf-8")
BLOCKS = re.findall("```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def disk(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directories of two brokers, and a backup of the first as a table."""
    top = tmp_path_factory.mktemp("disk")
    rows = spark.range(600).selectExpr(
        "'orders' topic", "CAST(id % 2 AS INT) partition", "id * 2 offset", "1600000000000 + id timestamp_ms",
        "concat('user-', id % 40) key",
        """IF(id % 90 = 3, NULL, concat('{"id":', id, ',"email":"a', id, '@b.c"}')) value""",
    )  # fmt: skip
    sparkwire.kafka.write(rows, str(top / "kafka"))
    sparkwire.kafka.write(rows, str(top / "old"))
    sparkwire.kafka.write(rows.selectExpr("'__consumer_offsets' topic", "* EXCEPT (topic)"), str(top / "old"))
    rows.write.parquet(str(top / "backup" / "orders"))
    for name, key in (("a", b"user-16"), ("b", b"user-17")):
        (top / "relay" / name).mkdir(parents=True)
        (top / "relay" / name / "events").write_bytes(event(10, 40, key) + end(10))
    return top


@pytest.mark.parametrize("number", [0, 1, 2, *range(5, len(BLOCKS) - 1)])
def test_a_block_runs(
    spark: SparkSession, disk: Path, tmp_path: Path, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    run(spark, disk, tmp_path, number)
    if number == 0:
        assert "orders-0: 1 segments, offsets 0 to 1196" in capsys.readouterr().out
    elif number == len(BLOCKS) - 3:
        result = spark.read.format("kafka_log").load(str(tmp_path)).groupBy("key").count().where("count > 1")
        assert result.isEmpty()


def test_a_person_is_erased(spark: SparkSession, disk: Path, tmp_path: Path) -> None:
    """Its two blocks in order; the second one checks the first."""
    assert "after = " in BLOCKS[4]
    names = run(spark, disk, tmp_path, 3)
    run(spark, disk, tmp_path, 4, names)
    assert (names["log"].count(), names["after"].count()) == (600, 570)
    assert all(b"@b.c" not in path.read_bytes() for path in tmp_path.rglob("*.log"))


def test_a_person_is_erased_from_events(spark: SparkSession, disk: Path, tmp_path: Path) -> None:
    assert "/relay" in BLOCKS[-1]
    run(spark, disk, tmp_path, len(BLOCKS) - 1)
    assert sum(b"user-16" in path.read_bytes() for path in tmp_path.rglob("*.bin")) == 1
    assert all(b"user-17" not in path.read_bytes() for path in tmp_path.rglob("*.bin"))


def run(
    spark: SparkSession,
    disk: Path,
    tmp_path: Path,
    number: int,
    names: dict[str, Any] | None = None,
    overwrites: bool = False,
) -> dict[str, Any]:
    """Run a block. ``disk`` replaces the directories that it reads, ``tmp_path`` those that it writes.

    ``overwrites``: use the mode `overwrite`, even if the block does not name it.
    """
    places = {
        "/relay": disk / "relay",
        "/var/kafka": disk / "kafka",
        "/old": disk / "old",
        "/backup": disk / "backup",
        "/restored": tmp_path,
    }
    code = BLOCKS[number].replace("1_000_000", "10_000")
    for place, instead in places.items():
        code = code.replace(f'"{place}', f'"{instead}').replace(f'f"{place}', f'f"{instead}')
    if overwrites and "mode=" not in code:
        code = re.sub(r"(kafka\.write\([^)]*)\)", r'\1, mode="overwrite")', code)
    names = {"spark": spark, "sparkwire": sparkwire} if names is None else names
    exec(code, names)
    return names
