"""``register`` makes Spark's workers run a Python with this package, or warns about the setting."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import sparkwire


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
    without_sparkwire(tmp_path)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    environment |= {
        "PATH": f"{tmp_path}{os.pathsep}{environment['PATH']}",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    child = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:sparkwire", "-c", _FIRST_LINES],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr[-2000:]
    assert child.stdout.split() == ["341", "1"]
