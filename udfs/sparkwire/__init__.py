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

from sparkwire.base.lazy import lazy_names

__version__ = "0.1.0"

__getattr__, __dir__, _lazy = lazy_names(__name__, packages=("changes",))
__all__ = [*_lazy, "samples"]


def samples() -> Path:
    """The folder of bundled sample data: files of each format and of a cluster, with a README in each.

    Examples
    --------
    >>> spark.read.format("binaryFile").load(f"{sparkwire.samples()}/databus/*.bin")
    """
    return Path(__file__).parent / "catalogue" / "samples"
