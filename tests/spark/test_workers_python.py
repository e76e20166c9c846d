"""``register`` sees that Spark's workers will run a Python without this package, and says so."""

from __future__ import annotations

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


def test_another_python(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert registered(spark) == []
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    advice = f"activate this Python's environment, or set PYSPARK_PYTHON to {sys.executable}"
    sentence = f"Spark's Python workers run {other}, which has no sparkwire: before the session begins, {advice}"
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    assert registered(spark) == [sentence]
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert registered(spark) == [sentence]
    other.write_text("#!/bin/sh\nexit 0\n")
    assert registered(spark) == []
