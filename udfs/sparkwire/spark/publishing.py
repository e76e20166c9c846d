"""Run the statements that put the functions into a catalog."""

from __future__ import annotations

from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from sparkwire.publishing import statements


def publish(spark: SparkSession, schema: str, wheel: str, environment_version: str) -> None:
    """See ``sparkwire.publish``."""
    for statement in statements(schema, wheel, environment_version):
        try:
            spark.sql(statement)
        except ParseException as refused:
            raise NotImplementedError(
                f"publish needs Unity Catalog, and Spark {spark.version} does not parse its CREATE FUNCTION ... LANGUAGE "
                "PYTHON: in open-source Spark functions last as long as a session, sparkwire.register(spark) at its start"
            ) from refused
