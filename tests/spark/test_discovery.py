"""Data sources that Spark finds by itself, and when `register` leaves it to that."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import sparkwire
from sparkwire.spark import discovery
from sparkwire.spark.discovery import MODULES, finds_sources
from tests.support.child import run_python

# A process of its own: in the others' session Spark may have looked before.
UNREGISTERED = """
import sparkwire
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
samples = sparkwire.samples()
print(spark.read.format("kafka_log").load(f"{samples}/kafka/orders-0").count())
spark.sql(f"CREATE TEMPORARY VIEW events USING databus OPTIONS (path '{samples}/databus/relay_v1.bin')")
print(spark.table("events").count())
"""


def test_sources_are_there_without_register(spark: SparkSession) -> None:
    samples = sparkwire.samples()
    expected = [
        spark.read.format("kafka_log").load(f"{samples}/kafka/orders-0").count(),
        spark.read.format("databus").load(f"{samples}/databus/relay_v1.bin").count(),
    ]
    assert [int(line) for line in run_python("-c", UNREGISTERED).split()] == expected


@pytest.fixture
def certain(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment of a process in which it is certain that Spark finds the sources."""
    package = Path(sparkwire.__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", str(package))
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", os.environ["PYSPARK_PYTHON"])
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    discovery._imports_them.cache_clear()
    assert finds_sources(spark)
    discovery._imports_them.cache_clear()
    return monkeypatch


def test_a_python_that_spark_has_started_is_not_sure(spark: SparkSession, certain: pytest.MonkeyPatch) -> None:
    certain.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert not finds_sources(spark)


def test_another_python_for_the_driver(spark: SparkSession, certain: pytest.MonkeyPatch) -> None:
    certain.setenv("PYSPARK_DRIVER_PYTHON", "ipython")
    assert not finds_sources(spark)


def test_settings_that_change_the_environment(spark: SparkSession, certain: pytest.MonkeyPatch, tmp_path: Path) -> None:
    certain.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert finds_sources(spark)
    (tmp_path / "spark-env.sh").touch()
    assert not finds_sources(spark)


def test_a_package_elsewhere(spark: SparkSession, certain: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What Spark would find there is another version of it."""
    for name in MODULES:
        shutil.copy(Path(sparkwire.__file__).parents[1] / f"{name}.py", tmp_path)
    certain.setenv("PYTHONPATH", str(tmp_path))
    assert not finds_sources(spark)


def test_a_cluster(spark: SparkSession, certain: pytest.MonkeyPatch) -> None:
    certain.setattr(type(spark.conf), "get", lambda conf, name: {"spark.master": "spark://driver:7077"}[name])
    assert not finds_sources(spark)
