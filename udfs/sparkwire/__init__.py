"""Read Databus, Kafka, DataHub, Debezium and Avro bytes with Apache Spark.

Kafka's segments become a table, a topic of Debezium's changes the table now, and SQL functions read BINARY columns::

    import sparkwire
    sparkwire.register(spark)

    records = spark.read.format("kafka_log").load("/backup/orders-0")
    orders = sparkwire.changes(records, format="debezium", table="public.orders", key="key")

    sparkwire.current(orders)
    sparkwire.merge(orders, "/lake/orders")

    spark.sql("SELECT dbus_opcode(value), count(*) FROM events GROUP BY 1")

The modules `avro`, `databus`, `datahub`, `debezium`, `kafka` and `registry` are for one format each. `sql_functions` has the SQL
functions for DataFrame code. ``FUNCTIONS["dbus_opcode"].decode(array)`` decodes an Arrow array without Spark.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

# Imported at once: the first import of a module in `sparkwire.changes` would replace a function of the same name.
from sparkwire.changes.api import changes, changes_by_table, current, merge, merged

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from sparkwire import avro, databus, datahub, debezium, errors, kafka, registry, sql_functions
    from sparkwire.catalogue import FUNCTIONS
    from sparkwire.catalogue.diagnosis import Diagnosis
    from sparkwire.catalogue.explanation import Explanation

__all__ = [
    "FUNCTIONS", "avro", "changes", "changes_by_table", "current", "databus", "datahub", "debezium", "doctor",
    "errors", "explain", "kafka", "merge", "merged", "publish", "read", "register", "registry", "samples",
    "sql_functions",
]  # fmt: skip
__version__ = "0.1.0"


# Loaded on first use, so that importing one format does not load all of them.
_MODULES = ("avro", "databus", "datahub", "debezium", "errors", "kafka", "registry", "sql_functions")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"sparkwire.{name}")
    if name == "FUNCTIONS":
        return import_module("sparkwire.catalogue").FUNCTIONS
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def register(spark: SparkSession, interface: Literal["arrow", "pandas"] | None = None) -> None:
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
    from sparkwire.spark.registration import register

    register(spark, interface)


def explain(value: Any) -> Explanation:
    """Explain every byte of a value, its meaning and its errors: as a dump in a terminal, as a table in a notebook.

    Parameters
    ----------
    value
        bytes (Databus events, a Kafka message or the bytes of its log), or a Row of a DataFrame, whose BINARY columns
        it explains. The function detects the format and reports its confidence.

    Raises
    ------
    TypeError
        if it is neither, or a Row without any BINARY value.

    Examples
    --------
    >>> sparkwire.explain(spark.table("events").where("error IS NOT NULL").first())
    """
    from sparkwire.catalogue.explanation import explain

    return explain(value)


def read(
    path: str | Path, format: Literal["kafka_log", "databus"] | None = None, **options: Any
) -> pa.RecordBatchReader:
    """Read files as Arrow record batches without Spark, for pandas, DuckDB or Polars.

    Rows, columns and options are those of the data sources; batches are read while you iterate.

    Parameters
    ----------
    path
        A file, a directory, a glob or a bucket; local or a URI.
    format
        The data source. By default the names of the files and their first bytes decide.
    options
        Options of the data source, such as ``startingOffset=100`` or ``columns="offset, key"``.

    Raises
    ------
    ValueError
        If an option is wrong, or no file at ``path`` is a Kafka segment or holds Databus events.
    FileNotFoundError
        If there is nothing at ``path``.

    Examples
    --------
    >>> sparkwire.read(f"{sparkwire.samples()}/kafka/orders-0", columns="offset, key").read_pandas()
    """
    from sparkwire.catalogue.file_tables import read

    return read(str(path), format, options)


def publish(spark: SparkSession, schema: str, *, wheel: str, environment_version: str = "5") -> None:
    """Create every function as a permanent function in a schema of Unity Catalog.

    Functions that return structs or rows, and functions that write, become Python functions over pandas batches. The others
    become SQL functions that call these. ``python -m sparkwire publish`` prints the same statements. See docs/publish.md.

    Parameters
    ----------
    schema
        ``catalog.schema``
    wheel
        the package to install in the functions' environment: ``/Volumes/.../sparkwire-....whl``, or a requirement
    environment_version
        the version of Databricks' serverless environment in which the functions run

    Raises
    ------
    ValueError
        if ``schema`` does not have two parts.
    NotImplementedError
        in open-source Spark, whose catalogs have no Python functions.

    Examples
    --------
    >>> sparkwire.publish(spark, "main.tools", wheel="/Volumes/main/tools/wheels/sparkwire-0.1.0-py3-none-any.whl")
    """
    from sparkwire.spark.functions.unity import publish

    publish(spark, schema, wheel, environment_version)


def doctor(spark: SparkSession | None = None) -> Diagnosis:
    """Report the versions and settings of this session, and what to do about them. Paste the report into an issue.

    It reports versions on driver and executors, the interface, the compile cache, and the checksum implementation. It measures
    the first round trip of each format. It runs one small job, by default in the session that PySpark's settings define.

    Examples
    --------
    >>> sparkwire.doctor(spark)
    """
    from sparkwire.spark.doctor import doctor

    return doctor(spark)


def samples() -> Path:
    """The folder of bundled sample data: files of each format and of a cluster, with a README in each.

    Examples
    --------
    >>> spark.read.format("binaryFile").load(f"{sparkwire.samples()}/databus/*.bin")
    """
    return Path(__file__).parent / "data"
