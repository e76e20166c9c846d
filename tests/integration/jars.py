"""Jars of Maven Central, by Spark's own resolver (`spark.jars.packages`); none of it is on the tests' own class path.

A resolver is a child process: a session takes packages only when it starts. What it has fetched it keeps in the user's Ivy cache.
"""

from __future__ import annotations

import urllib.request
from functools import cache
from pathlib import Path

import pyspark
import pytest

from tests.support.child import one_at_a_time, run_python

_RESOLVER = """
import sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.jars.packages", sys.argv[1]).getOrCreate()
print(spark.conf.get("spark.jars"))
"""


@cache
def resolve(*coordinates: str) -> tuple[Path, ...]:
    """The jars of these artifacts and of all that they need, without those that Spark brings itself.

    ``coordinates`` are Maven's, ``group:artifact:version``. Where they cannot be had the test fails and says so.
    """
    wanted = ",".join(coordinates)
    try:
        with one_at_a_time("resolver"):  # they share Ivy's cache
            listed = run_python("-c", _RESOLVER, wanted)
    except AssertionError as error:
        pytest.fail(f"make integration could not get {wanted} from Maven Central: {_reason(str(error))}", pytrace=False)
    return tuple(Path(url.removeprefix("file:")) for url in listed.strip().split(","))


def jar_of_tests(group: str, artifact: str, version: str, folder: Path) -> Path:
    """An artifact's classes of its own tests, which Spark's resolver does not fetch."""
    url = f"https://repo1.maven.org/maven2/{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}-test.jar"
    path = folder / url.rpartition("/")[2]
    try:
        urllib.request.urlretrieve(url, path)
    except OSError as error:
        pytest.fail(f"make integration could not get {url}: {error}", pytrace=False)
    return path


def _reason(log: str) -> str:
    """The line of the resolver's log that tells most."""
    telling = [line.strip() for line in log.splitlines() if "not found" in line or "unresolved" in line]
    return telling[0] if telling else log.strip().rpartition("\n")[2]


def spark_jar(name: str) -> Path:
    """The jar ``name-<version>.jar`` that PySpark has with it."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob(f"{name}-[0-9]*.jar")
    return jar
