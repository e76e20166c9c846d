"""Delta and Iceberg tables kept up to date from DataHub messages: a session with their jars, in a separate process.

    python -m tests.integration.neighbours FORMAT DIRECTORY

Prints the final rows of two tables: one is filled by a MERGE by hand, and one by `sparkwire.merge` of a stream.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

import sparkwire

# Messages of one table in the order of their sequence ids: inserts, then some updates and deletes.
MESSAGES = """
    SELECT id AS n, to_datahub_blob(named_struct(
               'op', CASE WHEN id < 100 THEN 'INSERT' WHEN id % 3 = 0 THEN 'DELETE' ELSE 'UPDATE' END,
               'sequence_id', CAST(1000 + id AS STRING), 'event_time_ms', id, 'table', 'orders', 'primary_key', array('id'),
               'before_map', CASE WHEN id >= 100 THEN map('id', CAST(id % 100 AS STRING)) END,
               'after_map', CASE WHEN id < 100 OR id % 3 != 0
                                 THEN map('id', CAST(id % 100 AS STRING), 'amount', CAST(id * 10 AS STRING)) END)) AS value
    FROM   range(250)
"""

# The last change of each key, as the source of a MERGE.
CHANGES = """
    SELECT key, max_by(struct(amount, operation), sequence_id) AS last
    FROM   (SELECT CAST(coalesce(datahub_after_map(value), datahub_before_map(value))['id'] AS INT) AS key,
                   CAST(datahub_after_map(value)['amount'] AS BIGINT) AS amount,
                   datahub_operation(value) AS operation,
                   CAST(datahub_sequence_id(value) AS BIGINT) AS sequence_id
            FROM   messages WHERE datahub_is_valid(value))
    GROUP  BY key
"""

MERGE = """
    MERGE INTO {table} AS t USING changes AS c ON t.id = c.key
    WHEN MATCHED AND c.last.operation = 'DELETE' THEN DELETE
    WHEN MATCHED THEN UPDATE SET amount = c.last.amount
    WHEN NOT MATCHED AND c.last.operation != 'DELETE' THEN INSERT (id, amount) VALUES (c.key, c.last.amount)
"""

_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # For a log with a few commits; by default, each access to a table runs 50 tasks.
    "spark.databricks.delta.snapshotPartitions": "1",
}
_ICEBERG = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.tables": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.tables.type": "hadoop",
    # A stream's batches have a separate session and catalog. This session would show outdated tables.
    "spark.sql.catalog.tables.cache-enabled": "false",
}
SETTINGS: Mapping[str, dict[str, str]] = {"delta": _DELTA, "iceberg": _ICEBERG}
COLUMNS = {"id": "STRING", "amount": "STRING"}
NAMESPACES = {"delta": "shop", "iceberg": "tables.shop"}


def session(format: str, directory: str) -> SparkSession:
    """A session with all functions, and with the format's catalog, whose tables are in ``directory``."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    places = {
        "spark.sql.warehouse.dir": f"{directory}/{format}",
        "spark.sql.catalog.tables.warehouse": f"{directory}/{format}",
    }
    # A few hundred rows: compiling a plan takes longer than running it.
    interpreted = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    others = interpreted | {"spark.sql.shuffle.partitions": "1", "spark.sql.session.timeZone": "UTC"}
    settings = SETTINGS[format] | places | others
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    sparkwire.register(spark)
    return spark


def merge(messages: DataFrame, table: str) -> None:
    """Update the table. Changes that have been merged before have no effect."""
    messages.createOrReplaceTempView("messages")
    messages.sparkSession.sql(CHANGES).createOrReplaceTempView("changes")
    messages.sparkSession.sql(MERGE.format(table=table))


def main() -> None:
    format, directory = sys.argv[1:]
    spark = session(format, directory)
    shop = NAMESPACES[format]
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {shop}")
    spark.sql(f"CREATE TABLE {shop}.by_hand (id INT, amount BIGINT) USING {format}")

    messages = spark.sql(MESSAGES).coalesce(1)
    messages.orderBy("n").coalesce(1).write.option("maxRecordsPerFile", 100).parquet(f"{directory}/arriving")
    arrived = spark.read.parquet(f"{directory}/arriving")
    merge(arrived, f"{shop}.by_hand")

    arriving = spark.readStream.schema(arrived.schema).option("maxFilesPerTrigger", 1).parquet(f"{directory}/arriving")
    changes = sparkwire.changes(arriving, format="datahub", table="orders", keys="id", columns=COLUMNS)
    query = sparkwire.merge(
        changes,
        f"{shop}.merged",
        "id",
        checkpoint=f"{directory}/checkpoint",
        trigger={"availableNow": True},
        deletes="keep",  # the catalog of Iceberg has no views
    )
    assert query is not None
    query.awaitTermination()
    merged = sparkwire.merged(spark, f"{shop}.merged").where("NOT _deleted_")
    for table in (spark.table(f"{shop}.by_hand"), merged):
        print(json.dumps(sorted([int(row["id"]), int(row["amount"])] for row in table.collect())), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
