"""Read Databus, Kafka, DataHub, Debezium and Avro bytes with Apache Spark.

Kafka's segments become a table, a topic of Debezium's changes the table now, and SQL functions read BINARY columns::

    import sparkwire
    sparkwire.register(spark)

    records = spark.read.format("kafka_log").option("isolationLevel", "read_committed").load("/backup/orders-0")
    orders = sparkwire.changes(records, format="debezium", table="public.orders", key="key")

    sparkwire.current(orders)
    sparkwire.merge(orders, "/lake/orders")

    spark.sql("SELECT dbus_opcode(value), count(*) FROM events GROUP BY 1")

The modules `avro`, `databus`, `datahub`, `debezium`, `kafka` and `registry` are for one format each. `sql_functions` has the SQL
functions for DataFrame code. ``FUNCTIONS["dbus_opcode"].decode(array)`` decodes an Arrow array without Spark.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sparkwire.base.lazy import lazy_names

if TYPE_CHECKING:
    from sparkwire import avro, databus, datahub, debezium, errors, kafka, registry, sql_functions
    from sparkwire.catalogue import FUNCTIONS
    from sparkwire.catalogue.explanation import explain
    from sparkwire.catalogue.file_tables import read
    from sparkwire.spark.changes.changes import changes, changes_by_table
    from sparkwire.spark.changes.current import current
    from sparkwire.spark.changes.merge import merge, merged
    from sparkwire.spark.doctor import doctor
    from sparkwire.spark.functions.unity import publish
    from sparkwire.spark.registration import register

__all__ = [
    "FUNCTIONS", "avro", "changes", "changes_by_table", "current", "databus", "datahub", "debezium", "doctor",
    "errors", "explain", "kafka", "merge", "merged", "publish", "read", "register", "registry", "samples",
    "sql_functions",
]  # fmt: skip
__version__ = "0.1.0"

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "FUNCTIONS": "sparkwire.catalogue",
        "avro": "sparkwire.avro",
        "changes": "sparkwire.spark.changes.changes",
        "changes_by_table": "sparkwire.spark.changes.changes",
        "current": "sparkwire.spark.changes.current",
        "databus": "sparkwire.databus",
        "datahub": "sparkwire.datahub",
        "debezium": "sparkwire.debezium",
        "doctor": "sparkwire.spark.doctor",
        "errors": "sparkwire.errors",
        "explain": "sparkwire.catalogue.explanation",
        "kafka": "sparkwire.kafka",
        "merge": "sparkwire.spark.changes.merge",
        "merged": "sparkwire.spark.changes.merge",
        "publish": "sparkwire.spark.functions.unity",
        "read": "sparkwire.catalogue.file_tables",
        "register": "sparkwire.spark.registration",
        "registry": "sparkwire.registry",
        "sql_functions": "sparkwire.sql_functions",
    },
    packages=("changes",),
)


def samples() -> Path:
    """The folder of bundled sample data: files of each format and of a cluster, with a README in each.

    Examples
    --------
    >>> spark.read.format("binaryFile").load(f"{sparkwire.samples()}/databus/*.bin")
    """
    return Path(__file__).parent / "data"
