"""Jars of Maven Central, by Spark's own resolver (`spark.jars.packages`); none of it is on the tests' own class path.

A resolver is a child process: Spark takes packages only when its JVM starts. What it has fetched is in the user's Ivy cache.
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
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

gateway = launch_gateway(SparkConf(loadDefaults=False).set("spark.jars.packages", sys.argv[1]))
print(gateway.jvm.System.getProperty("spark.jars"))
gateway.shutdown()
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
        pytest.fail(f"could not get {wanted} from Maven Central: {_reason(str(error))}", pytrace=False)
    return tuple(Path(url.removeprefix("file:")) for url in listed.strip().split(","))


def jar(coordinates: str, folder: Path, classifier: str = "") -> Path:
    """One artifact's jar, without what it needs: Spark's resolver finds neither classes of tests nor what is on another server.

    ``classifier`` is Maven's: ``-test`` for the classes of an artifact's own tests.
    """
    group, artifact, version = coordinates.split(":")
    place = f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}{classifier}.jar"
    path = folder / place.rpartition("/")[2]
    try:
        urllib.request.urlretrieve(f"https://repo1.maven.org/maven2/{place}", path)
    except OSError as error:
        pytest.fail(f"could not get {coordinates} from Maven Central: {error}", pytrace=False)
    return path


def _reason(log: str) -> str:
    """The line of the resolver's log that tells most."""
    telling = [line.strip() for line in log.splitlines() if "not found" in line or "unresolved" in line]
    return telling[0] if telling else log.strip().rpartition("\n")[2]


def spark_jar(name: str) -> Path:
    """The jar ``name-<version>.jar`` that PySpark has with it."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob(f"{name}-[0-9]*.jar")
    return jar
