"""The current table of Databus events as a declarative pipeline: definitions for `spark-pipelines run` of Spark 4.2 or later.

It reads ``events(stream STRING, position, event BINARY)``, a stream of whole windows, and keeps ``current_rows``. For each key,
Spark's AUTO CDC keeps the change with the highest SCN, and within one SCN the last one. The order of arrival and repetitions do
not matter. A DELETE removes its key. The target needs a connector with row-level operations: Iceberg, but not Delta 4.4.
"""

import pyspark.sql.functions as F
from pyspark import pipelines
from pyspark.sql import DataFrame, SparkSession

import sparkwire.sql_functions as W

spark = SparkSession.active()


@pipelines.temporary_view
def changes() -> DataFrame:
    """Every change with its key, the sequence that orders it, and whether it is a DELETE."""
    valid = spark.readStream.table("events").where(W.dbus_is_valid("event"))
    return valid.where(W.dbus_src_id("event") >= 0).select(
        "stream",
        W.dbus_src_id("event").alias("src_id"),
        W.dbus_key_long("event").alias("key_long"),
        W.dbus_key_bytes("event").alias("key_bytes"),
        F.struct(W.dbus_sequence("event").alias("scn"), "position").alias("version"),
        (W.dbus_opcode("event").eqNullSafe("DELETE")).alias("is_delete"),
        W.dbus_value("event").alias("value"),
        W.dbus_schema_id("event").alias("schema_id"),
    )


pipelines.create_streaming_table("current_rows", format="iceberg")
pipelines.create_auto_cdc_flow(
    target="current_rows",
    source="changes",
    keys=["stream", "src_id", "key_long", "key_bytes"],
    sequence_by="version",
    apply_as_deletes="is_delete",
    except_column_list=["is_delete"],
)
