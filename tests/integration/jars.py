"""Get jars of Maven Central with Spark's resolver (`spark.jars.packages`). They are not on the tests' class path.

The resolver is a child process, because Spark accepts packages only when its JVM starts. The jars are in the user's Ivy cache.
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
    """The jars of these artifacts and their dependencies, except those that Spark already has.

    ``coordinates`` are Maven's, ``group:artifact:version``. If they cannot be downloaded, the test fails with a clear message.
    """
    wanted = ",".join(coordinates)
    try:
        with one_at_a_time("resolver"):  # resolvers share Ivy's cache
            listed = run_python("-c", _RESOLVER, wanted)
    except AssertionError as error:
        pytest.fail(f"could not get {wanted} from Maven Central: {_reason(str(error))}", pytrace=False)
    return tuple(Path(url.removeprefix("file:")) for url in listed.strip().split(","))


def jar(coordinates: str, folder: Path, classifier: str = "") -> Path:
    """The jar of one artifact, without dependencies. Spark's resolver finds no test classes and no artifacts of other servers.

    ``classifier`` is Maven's: ``-test`` selects the test classes of an artifact.
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
    """The most informative line of the resolver's log."""
    telling = [line.strip() for line in log.splitlines() if "not found" in line or "unresolved" in line]
    return telling[0] if telling else log.strip().rpartition("\n")[2]


def spark_jar(name: str) -> Path:
    """The jar ``name-<version>.jar`` of PySpark."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob(f"{name}-[0-9]*.jar")
    return jar
