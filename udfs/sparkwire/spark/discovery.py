"""Data sources that Spark finds by itself.

Whoever first asks a Spark for a source in Python makes it start its Python, and take ``DefaultSource`` of every top-level module
that is named ``pyspark_*``; `MODULES` lie beside this package. So the sources are there without ``register``, and where that is
certain ``register`` need not wait for that start.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pyspark.sql.functions as F
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

import sparkwire

MODULES = ("pyspark_sparkwire_databus", "pyspark_sparkwire_kafka_log")

OFFERED = hasattr(F, "arrow_udf")
"""From Spark 4.1 on. In 4.0 ``register`` cannot replace what was found, which on a cluster need not be what workers have."""

_PRINT_FOLDERS = """\
import sys
from importlib.util import find_spec
from pathlib import Path
for name in sys.argv[1:]:
    print(Path(find_spec(name).origin).parent)
"""


def finds_sources(spark: SparkSession) -> bool:
    """Whether this Spark finds the sources of this very package, and its workers import them, as far as that is certain.

    It looks, and later reads, with the Python that its environment names and without what was added to the session. That is
    this process's environment where Spark is local, Python has started it, and no ``spark-env.sh`` changes it.
    """
    if not OFFERED or not isinstance(spark, SparkSession) or "PYSPARK_GATEWAY_PORT" in os.environ or _has_settings():
        return False
    workers = os.environ.get("PYSPARK_PYTHON", "python3")
    is_one = os.environ.get("PYSPARK_DRIVER_PYTHON", workers) == workers
    return bool(is_one and spark.conf.get("spark.master").startswith("local")) and _imports_them(workers)


def _has_settings() -> bool:
    folder = os.environ.get("SPARK_CONF_DIR", Path(_find_spark_home(), "conf"))
    return Path(folder, "spark-env.sh").exists()


@cache
def _imports_them(python: str) -> bool:
    """Whether a fresh process of this Python would import `MODULES`, those beside this package."""
    if shutil.which(python) is None:
        return False
    command = [python, "-P", "-c", _PRINT_FOLDERS, *MODULES]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    here = str(Path(sparkwire.__file__).parents[1])
    return answer.stdout.splitlines() == [here] * len(MODULES)
