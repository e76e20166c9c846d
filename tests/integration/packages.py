"""Spark packages that need an older Spark: run that Spark in a separate environment, like `make matrix`."""

from __future__ import annotations

import os
import subprocess
from typing import NamedTuple

import pytest

from tests.integration.jars import resolve
from tests.support import ROOT, matrix


class Package(NamedTuple):
    """A package, with the newest Spark that it supports."""

    coordinates: str
    spark: str


DELTA = Package("io.delta:delta-spark_4.2_2.13:4.4.0", "4.2.1")
ICEBERG = Package("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", "4.1.4")
# For later versions, Maven Central has the connector, but not the token provider that it needs.
KAFKA_SOURCE = Package("org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0", "4.0.5")


def run_python(package: Package, *arguments: str) -> str:
    """The output of a child process whose Spark has the package. Fails with the child's standard error."""
    command, environment = python(package)
    child = subprocess.run(
        [*command, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if child.returncode != 0:
        lines = [
            line for line in child.stderr.splitlines() if not line.lstrip().startswith("at ")
        ]  # stack traces of Java
        raise AssertionError(f"exit {child.returncode}: " + "\n".join(lines)[-6000:])
    return child.stdout


def python(package: Package) -> tuple[list[str], dict[str, str]]:
    """The command and environment of a Python whose Spark has the package."""
    [environment] = [environment for environment in matrix.ENVIRONMENTS if environment.spark == package.spark]
    missing = matrix.install(environment)
    if missing:
        pytest.fail(f"could not get {environment.title}: {missing}", pytrace=False)
    python = str(environment.path / "bin" / "python")
    jars = ",".join(map(str, resolve(package.coordinates)))
    settings = {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "udfs"), str(ROOT)]),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "PYSPARK_SUBMIT_ARGS": f"--jars {jars} pyspark-shell",
        "TZ": "UTC",
    }
    return [python], os.environ | settings
