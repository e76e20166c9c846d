"""Sort rows and write them with the data source `kafka_log`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

_MODES = ("errorifexists", "append", "overwrite")


def write(
    df: DataFrame, path: str, mode: str, order: Sequence[str] | None, tasks: int | None, options: Mapping[str, str]
) -> None:
    """See ``sparkwire.kafka.write``."""
    if mode not in _MODES:
        raise ValueError(f"write takes mode {', '.join(_MODES)}, got {mode!r}")
    numbering = {name.lower(): value for name, value in options.items()}.get("offsets", "").lower() == "assign"
    if order and not numbering:
        raise ValueError(
            "write takes order with offsets='assign' alone: rows that keep their offsets are in their order"
        )
    if not numbering and "offset" not in df.columns:
        raise ValueError('write needs a column offset, or offsets="assign", which numbers the rows')
    within = order or ([_time_of(df)] if numbering else ["offset"])
    present = {name.lower() for name in df.columns}
    keys = [*(name for name in ("topic", "partition") if name in present), *within]
    ordered = (df.repartitionByRange(tasks, *keys) if tasks else df.repartitionByRange(*keys)).sortWithinPartitions(
        *keys
    )
    writer = ordered.write.format("kafka_log").options(**options)
    if mode == "errorifexists":
        writer = writer.option("ifExists", "error")
    _activate(df.sparkSession)
    writer.mode("overwrite" if mode == "overwrite" else "append").save(path)


def _activate(spark: SparkSession) -> None:
    """Make a session the active one of this thread, because Spark looks up data sources in the active session."""
    spark.createDataFrame([], "nothing INT")


def _time_of(df: DataFrame) -> str:
    present = {name.lower() for name in df.columns}
    names = [name for name in ("timestamp_ms", "timestamp") if name in present]
    if not names:
        raise ValueError("write needs order, the columns by which rows are numbered: they have no timestamp")
    return names[0]
