"""Put the catalogue into a session: its functions by name, and the views that describe them."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession

from sparkwire.base.sqltype import sql_string
from sparkwire.catalogue import FUNCTIONS, SAMPLES
from sparkwire.kernels.cache import COMPILING, announcement, is_cold
from sparkwire.spark.udf import TIME_ZONE, Interface, best_interface, udf

FUNCTIONS_VIEW = "sparkwire_functions"
_DESCRIBED = ("name", "signature", "doc", "example", "since", "deprecated", "replaced_by")
SAMPLES_VIEW = "sparkwire_samples"


def register(spark: SparkSession, interface: Interface | None = None) -> None:
    """See ``sparkwire.register``."""
    _choose_workers_python(spark)
    _announce_compiling(spark)
    chosen = interface or best_interface(spark)
    if chosen == "pandas":
        # Workers see what was set alone: without it they could not tell instants.
        spark.conf.set(TIME_ZONE, spark.conf.get(TIME_ZONE))
    # Each of the three mostly waits for Spark.
    with ThreadPoolExecutor() as meanwhile:
        others = [meanwhile.submit(_register_sources, spark), meanwhile.submit(_create_views, spark)]
        for name in FUNCTIONS:
            spark.udf.register(name, udf(name, chosen))
        for other in others:
            other.result()


def _choose_workers_python(spark: SparkSession) -> None:
    """Make the workers of a local master run a Python that has sparkwire, or warn where only the user can.

    A classic session lets us choose: its workers run this interpreter, unless the user has named another one.
    """
    if not _is_local(spark):
        return
    named = os.environ.get("PYSPARK_PYTHON") or spark.conf.get("spark.pyspark.python", None)
    if named is None and isinstance(spark, SparkSession):
        spark.sparkContext.pythonExec = sys.executable
        return
    python = shutil.which(named or "python3")
    if python is not None and Path(python).parent == Path(sys.executable).parent:
        return
    if (
        python is None
        or subprocess.run([python, "-c", "import sparkwire"], capture_output=True, check=False).returncode
    ):
        warnings.warn(
            f"Spark's Python workers run {python or named}, which has no sparkwire: before the session begins, "
            f"set PYSPARK_PYTHON to {sys.executable}",
            stacklevel=4,
        )


def _is_local(spark: SparkSession) -> bool:
    return (spark.conf.get("spark.master", "") or "").startswith("local")


def _announce_compiling(spark: SparkSession) -> None:
    """Say on the driver, once a process, what the first queries wait for where its workers share this machine's cache."""
    if _is_local(spark) and not announcement.made and is_cold():
        announcement.made = True
        logging.getLogger("sparkwire").warning(COMPILING)


def _create_views(spark: SparkSession) -> None:
    _view(spark, FUNCTIONS_VIEW, _described())
    samples = ", ".join(f"X'{sample.hex()}' AS {name}" for name, sample in SAMPLES.items())
    _view(spark, SAMPLES_VIEW, f"SELECT {samples}")


def _register_sources(spark: SparkSession) -> None:
    if find_spec("pyspark.sql.datasource"):  # from 4.0 on
        from sparkwire.spark import sources

        sources.register(spark)


def _described() -> str:
    """The query whose rows are the catalogue's: one literal, which Spark reads five times faster than hundreds in VALUES."""
    rows = [{column: getattr(function, column) or None for column in _DESCRIBED} for function in FUNCTIONS.values()]
    type = f"ARRAY<STRUCT<{', '.join(f'{column} STRING' for column in _DESCRIBED)}>>"
    return f"SELECT inline(from_json({sql_string(json.dumps(rows, ensure_ascii=False))}, '{type}'))"


def _view(spark: SparkSession, name: str, query: str) -> None:
    # A query, not createDataFrame: no job, no Python worker, the same text on classic and on Connect.
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {query}")
