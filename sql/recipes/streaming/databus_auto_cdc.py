"""The current table of Databus events as a declarative pipeline: definitions for `spark-pipelines run` of Spark 4.2 or later.

Reads ``events(stream STRING, position, event BINARY)``, a stream of whole windows. Keeps ``current_rows``: Spark's AUTO CDC takes
of each key the change with the highest scn, of one scn the last, in whatever order they come and however often; a DELETE removes
its key. Its table must be of a connector with row-level operations (Iceberg; Delta 4.4 has none that Spark knows of).
"""

import pyspark.sql.functions as F
from pyspark import pipelines
from pyspark.sql import DataFrame, SparkSession

import sparkwire.sql_functions as W

spark = SparkSession.active()


@pipelines.temporary_view
def changes() -> DataFrame:
    """Every change with its key, one sequence to order them by, and whether it deletes."""
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
