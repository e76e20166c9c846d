"""Spark packages that need an older Spark: run that Spark in a separate environment, like `make matrix`."""

from __future__ import annotations

import os
import subprocess
from typing import Final, NamedTuple

import pytest

from sparkwire.spark.connectors import CONNECTORS, newest_spark
from tests.integration.jars import resolve
from tests.support import ROOT, WHOLE, matrix

only_whole: Final = pytest.mark.skipif(not WHOLE, reason="make integration WHOLE=1 runs it")


class Package(NamedTuple):
    """A package, with a Spark that it supports."""

    coordinates: str
    """of the package, or of several with commas between them"""
    spark: str


def connector(format: str, version: str) -> Package:
    """The connector of a table format for a minor version of Spark, with the newest release of that version."""
    [*_, spark] = [one.spark for one in matrix.ENVIRONMENTS if one.spark.startswith(f"{version}.") and not one.numba]
    return Package(getattr(CONNECTORS[version], format), spark)


CONNECTOR_PACKAGES = {
    f"{format}-{version}": (format, connector(format, version))
    for format in ("delta", "iceberg")
    for version, connectors in CONNECTORS.items()
    if getattr(connectors, format)
}
"""the packages of the table in docs/changes.md, with their table formats"""
OLDEST = tuple(connector(format, min(CONNECTORS)) for format in ("delta", "iceberg"))
DELTA = connector("delta", newest_spark("delta"))
_ICEBERG_ALONE = connector("iceberg", newest_spark("iceberg"))
# With the database of its catalog: of the catalogs without a server, only a JDBC catalog has views. Derby is not enough for it.
ICEBERG = _ICEBERG_ALONE._replace(coordinates=f"{_ICEBERG_ALONE.coordinates},com.h2database:h2:2.4.240")
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
    jars = ",".join(map(str, resolve(*package.coordinates.split(","))))
    settings = {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "udfs"), str(ROOT)]),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "PYSPARK_SUBMIT_ARGS": f"--jars {jars} pyspark-shell",
        "TZ": "UTC",
    }
    return [python], os.environ | settings
