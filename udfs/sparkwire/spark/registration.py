"""Register the catalogue in a session: its functions, data sources, and the views that describe them."""

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

from sparkwire.base.printable import printable
from sparkwire.base.sqltype import sql_string
from sparkwire.catalogue import FUNCTIONS, SAMPLES
from sparkwire.kernels.cache import COMPILING, announcement, is_cold
from sparkwire.spark.functions.udf import TIME_ZONE, Interface, best_interface, udf

FUNCTIONS_VIEW = "sparkwire_functions"
_DESCRIBED = ("name", "signature", "doc", "example")
SAMPLES_VIEW = "sparkwire_samples"


def register(spark: SparkSession, interface: Interface | None = None) -> None:
    """Make every function available in the SQL of this session. You may call it more than once.

    Also creates the views ``sparkwire_functions`` (name, signature, doc, example) and ``sparkwire_samples``,
    one row of sample bytes for the examples.

    Parameters
    ----------
    spark
        The session, classic or Connect.
    interface
        How Spark passes the columns: "arrow" needs PySpark 4.1, "pandas" copies every value. By default, the faster one that
        this PySpark supports.

    Examples
    --------
    >>> sparkwire.register(spark)
    >>> spark.sql("SELECT dbus_opcode(event), count(*) FROM events GROUP BY ALL")
    """
    _choose_workers_python(spark)
    _announce_compiling(spark)
    chosen = interface or best_interface(spark)
    if chosen == "pandas":
        # Workers see only settings that were set explicitly. Without the time zone, they could not convert timestamps.
        spark.conf.set(TIME_ZONE, spark.conf.get(TIME_ZONE))
    # Run the three steps in parallel, because each mostly waits for Spark.
    with ThreadPoolExecutor() as meanwhile:
        others = [meanwhile.submit(_register_sources, spark), meanwhile.submit(_create_views, spark)]
        for name in FUNCTIONS:
            spark.udf.register(name, udf(name, chosen))
        for other in others:
            other.result()


def _choose_workers_python(spark: SparkSession) -> None:
    """Make the workers of a local master run a Python that has sparkwire, or warn if only the user can do it.

    In a classic session, the workers run this interpreter, unless the user has configured another one. The workers of a Connect
    server run what its own environment names.
    """
    if not (isinstance(spark, SparkSession) and _is_local(spark)):
        return
    named = os.environ.get("PYSPARK_PYTHON") or spark.conf.get("spark.pyspark.python", None)
    if named is None:
        spark.sparkContext.pythonExec = sys.executable
        return
    python = shutil.which(named)
    if python is not None and Path(python).parent == Path(sys.executable).parent:
        return
    if (
        python is None
        or subprocess.run([python, "-c", "import sparkwire"], capture_output=True, check=False).returncode
    ):
        warnings.warn(
            printable(
                f"Spark's Python workers run {python or named}, which has no sparkwire: before the session begins, "
                f"set PYSPARK_PYTHON to {sys.executable}"
            ),
            stacklevel=3,
        )


def _is_local(spark: SparkSession) -> bool:
    return (spark.conf.get("spark.master", "") or "").startswith("local")


def _announce_compiling(spark: SparkSession) -> None:
    """Announce once on the driver that the first queries wait for compilation, if workers share this machine's cache."""
    if _is_local(spark) and not announcement.made and is_cold():
        announcement.made = True
        logging.getLogger("sparkwire").warning(COMPILING)


def _create_views(spark: SparkSession) -> None:
    _view(spark, FUNCTIONS_VIEW, _described())
    samples = ", ".join(f"X'{sample.hex()}' AS {name}" for name, sample in SAMPLES.items())
    _view(spark, SAMPLES_VIEW, f"SELECT {samples}")


def _register_sources(spark: SparkSession) -> None:
    if find_spec("pyspark.sql.datasource"):  # exists from Spark 4.0 on
        from sparkwire.spark import sources

        sources.register(spark)


def _described() -> str:
    """A query that returns the catalogue. It is one literal, because Spark parses hundreds of VALUES five times slower."""
    rows = [{column: getattr(function, column) for column in _DESCRIBED} for function in FUNCTIONS.values()]
    type = f"ARRAY<STRUCT<{', '.join(f'{column} STRING' for column in _DESCRIBED)}>>"
    return f"SELECT inline(from_json({sql_string(json.dumps(rows, ensure_ascii=False))}, '{type}'))"


def _view(spark: SparkSession, name: str, query: str) -> None:
    # Use a query instead of createDataFrame: it needs no job and no Python worker, and is the same on classic and Connect.
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {query}")
