"""Put the catalogue into a session: its functions by name, and the views that describe them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from pyspark.sql import SparkSession

from sparkwire.catalogue import FUNCTIONS, SAMPLES
from sparkwire.spark.udf import TIME_ZONE, Interface, best_interface, udf

FUNCTIONS_VIEW = "sparkwire_functions"
SAMPLES_VIEW = "sparkwire_samples"


def register(spark: SparkSession, interface: Interface | None = None) -> None:
    """See ``sparkwire.register``."""
    chosen = interface or best_interface(spark)
    if chosen == "pandas":
        # Workers see what was set alone: without it they could not tell instants.
        spark.conf.set(TIME_ZONE, spark.conf.get(TIME_ZONE))
    for name in FUNCTIONS:
        spark.udf.register(name, udf(name, chosen))
    if find_spec("pyspark.sql.datasource"):  # from 4.0 on
        from sparkwire.spark import sources

        sources.register(spark)
    rows = (_row(f.name, f.signature, f.doc, f.example) for f in FUNCTIONS.values())
    _view(spark, FUNCTIONS_VIEW, "name, signature, doc, example", rows)
    samples = ", ".join(f"X'{sample.hex()}'" for sample in SAMPLES.values())
    _view(spark, SAMPLES_VIEW, ", ".join(SAMPLES), [f"({samples})"])


def _view(spark: SparkSession, name: str, columns: str, rows: Iterable[str]) -> None:
    # VALUES, not createDataFrame: no job, no Python worker, the same text on classic and on Connect.
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT * FROM VALUES {', '.join(rows)} AS t({columns})")


def _row(*texts: str) -> str:
    return "(" + ", ".join(_literal(text) for text in texts) + ")"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
