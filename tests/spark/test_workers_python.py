"""``register`` makes Spark's workers run a Python with this package, or warns about the setting."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import ClassVar

import pytest
from pyspark.sql import SparkSession

import sparkwire
from sparkwire.spark import registration


def registered(spark: SparkSession) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sparkwire.register(spark)
    return [str(one.message) for one in caught if "workers" in str(one.message)]


def without_sparkwire(folder: Path) -> Path:
    """A Python in an environment without sparkwire."""
    python = folder / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    return python


def test_a_named_python_without_sparkwire(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert registered(spark) == []
    other = without_sparkwire(tmp_path)
    sentence = f"Spark's Python workers run {other}, which has no sparkwire: before the session begins, "
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    assert registered(spark) == [sentence + f"set PYSPARK_PYTHON to {sys.executable}"]
    other.write_text("#!/bin/sh\nexit 0\n")
    assert registered(spark) == []


def test_a_connect_session_says_nothing_about_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's environment names their Python, and this process does not see it."""

    class Remote:
        conf: ClassVar[dict[str, str]] = {"spark.master": "local[1]"}

    monkeypatch.setenv("PYSPARK_PYTHON", "/nowhere/python")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        registration._choose_workers_python(Remote())


_WITHOUT_REGISTER = """
import sys
import sparkwire
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.sql("SELECT 'orders' topic, 0 partition, 0L offset, 'k' key, 'v' value")
for call in (
    lambda: sparkwire.kafka.write(rows, sys.argv[1]),
    lambda: sparkwire.kafka.cluster(spark, str(sparkwire.samples() / "cluster" / "disk")).topics.collect(),
):
    try:
        call()
    except RuntimeError as error:
        print(error)
"""


@pytest.mark.process
def test_a_source_that_spark_cannot_find(tmp_path: Path) -> None:
    """In an environment that is not activated, the Python that Spark starts has no sparkwire."""
    child = child_elsewhere(tmp_path, _WITHOUT_REGISTER, str(tmp_path / "out"))
    assert child.returncode == 0, child.stderr[-2000:]
    lines = child.stdout.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("Spark cannot find sparkwire's data sources") for line in lines)
    assert all(f"set PYSPARK_PYTHON to {sys.executable} before" in line for line in lines)


_FIRST_LINES = """
import sparkwire
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
sparkwire.register(spark)
orders = spark.read.format("kafka_log").load(f"{sparkwire.samples()}/kafka/orders-0")
print(orders.count(), spark.sql("SELECT count(dbus_opcode(event)) AS n FROM sparkwire_samples").first().n)
"""


@pytest.mark.process
def test_an_environment_that_is_not_activated(tmp_path: Path) -> None:
    """`python3` is another interpreter, and no setting names this one."""
    child = child_elsewhere(tmp_path, _FIRST_LINES)
    assert child.returncode == 0, child.stderr[-2000:]
    assert child.stdout.split() == ["341", "1"]


def child_elsewhere(tmp_path: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program whose `python3` is another interpreter."""
    without_sparkwire(tmp_path)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    environment |= {
        "PATH": f"{tmp_path}{os.pathsep}{environment['PATH']}",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    return subprocess.run(
        [sys.executable, "-W", "error::UserWarning:sparkwire", "-c", code, *arguments],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
