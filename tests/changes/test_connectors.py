"""The connectors of Delta and Iceberg for each Spark, and the page that lists them."""

from __future__ import annotations

import re

import pytest

from sparkwire.spark.connectors import CONNECTORS, connector_advice
from tests.support import ROOT, matrix


def test_the_page_lists_the_connectors() -> None:
    page = (ROOT / "docs" / "changes.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d\.\d) \| (\S+) \| (\S+) \|$", page, re.MULTILINE)
    listed = {spark: tuple(None if one == "none" else one.strip("`") for one in rest) for spark, *rest in rows}
    assert listed == CONNECTORS


def test_every_supported_spark_is_listed() -> None:
    assert set(CONNECTORS) == {environment.spark[:3] for environment in matrix.ENVIRONMENTS}


def test_coordinates_are_for_their_spark() -> None:
    for version, connectors in CONNECTORS.items():
        scala = "2.12" if version == "3.5" else "2.13"
        assert all(f"_{scala}:" in one for one in connectors.available.values())
        assert f"-{version}_" in (connectors.iceberg or f"-{version}_")


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        ("4.2.1", "Spark 4.2 needs io.delta:delta-spark_4.2_2.13:4.4.0 (Delta) in spark.jars.packages"),
        (
            "4.1.4",
            (
                "Spark 4.1 needs io.delta:delta-spark_4.1_2.13:4.4.0 (Delta) or "
                "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0 (Iceberg) in spark.jars.packages"
            ),
        ),
        (
            "4.3.0",
            (
                "neither Delta nor Iceberg is known for Spark 4.3: use Spark 4.2 with "
                "io.delta:delta-spark_4.2_2.13:4.4.0 (Delta), or Spark 4.1 with "
                "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0 (Iceberg)"
            ),
        ),
    ],
)
def test_advice_names_the_coordinates_for_the_running_spark(version: str, advice: str) -> None:
    assert connector_advice(version) == advice
