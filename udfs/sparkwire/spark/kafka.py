"""Restore topics: write tables as partition directories with which a broker can start.

    import sparkwire

    sparkwire.kafka.write(df, "/restored", compression="zstd")
    print(sparkwire.kafka.check("/restored"))

``df.write.format("kafka_log")`` writes the same files from rows that are already in order. docs/guide/way-back.md is the guide.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypedDict

from pyspark.sql import DataFrame, SparkSession

from sparkwire.spark.functions.discovery import explained

if TYPE_CHECKING:
    from typing import Unpack

_MODES: Final = ("errorifexists", "append", "overwrite")

Offsets = int | str | Mapping[str, Mapping[int | str, int]]
"""one offset for each partition, or by topic and partition, as a mapping or as JSON"""


class WriteOptions(TypedDict, total=False):
    """The options of `write`, those of ``df.write.format("kafka_log")``. A size may have a unit (``"128m"``)."""

    topic: str
    partition: int | str
    compression: str
    batchBytes: int | str
    segmentBytes: int | str
    indexIntervalBytes: int | str
    leaderEpoch: int | str
    offsets: Literal["keep", "assign"]
    startingOffset: int | str
    sourcePath: str
    startOffset: Offsets
    endOffset: Offsets
    timestampType: Literal["CreateTime", "LogAppendTime"]
    maxMessageBytes: int | str
    jobId: str


def write(
    df: DataFrame,
    path: str,
    *,
    mode: Literal["errorifexists", "append", "overwrite"] = "errorifexists",
    order: Sequence[str] | None = None,
    tasks: int | None = None,
    **options: Unpack[WriteOptions],
) -> None:
    """Order rows and write them as partition directories. Each log starts and ends at the same offsets as the source log.

    Parameters
    ----------
    df
        columns topic, partition, offset, timestamp or timestamp_ms [ms since epoch], key, value, headers. Topic and partition
        may be options; only the offset is required. If the source has transactions, read it with ``isolationLevel``
        ``read_committed``
    path
        the directory, a local path or a URI
    mode
        ``append`` writes after the last offset of a partition. ``overwrite`` replaces each partition of the rows completely.
        ``errorifexists`` fails if a partition has records
    order
        columns by which ``offsets="assign"`` numbers the rows of a partition; by default the timestamp
    tasks
        number of tasks that write, each a range of the ordered rows; by default the number of partitions of Spark's sort
    options
        options of ``df.write.format("kafka_log")``: compression, batchBytes, segmentBytes, indexIntervalBytes, leaderEpoch,
        offsets, startingOffset, sourcePath, startOffset, endOffset, timestampType, maxMessageBytes. ``sourcePath`` is the log
        that you have read. With it, a partition that has no rows left becomes empty; without it, the partition stays unchanged

    Raises
    ------
    ValueError
        if a column or an option is wrong. A wrong row fails the query, and nothing is written.

    Examples
    --------
    >>> source = "/backup/orders-*"
    >>> orders = spark.read.format("kafka_log").option("isolationLevel", "read_committed").load(source)
    >>> kept = orders.where("NOT (CAST(key AS STRING) <=> 'u-17')")  # NULL keys stay
    >>> sparkwire.kafka.write(kept, "/cleaned", sourcePath=source, compression="zstd")
    """
    if mode not in _MODES:
        raise ValueError(f"write takes mode {', '.join(_MODES)}, got {mode!r}")
    texts = {name: _text(value) for name, value in options.items()}
    numbering = {name.lower(): value for name, value in texts.items()}.get("offsets", "").lower() == "assign"
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
    writer = ordered.write.format("kafka_log").options(**texts)
    if mode == "errorifexists":
        writer = writer.option("ifExists", "error")
    _activate(df.sparkSession)
    with explained():
        writer.mode("overwrite" if mode == "overwrite" else "append").save(path)


def _text(value: object) -> str:
    """An option as Spark passes it."""
    return json.dumps(value) if isinstance(value, Mapping) else str(value)


def _activate(spark: SparkSession) -> None:
    """Make a session the active one of this thread, because Spark looks up data sources in the active session."""
    spark.createDataFrame([], "nothing INT")


def _time_of(df: DataFrame) -> str:
    present = {name.lower() for name in df.columns}
    names = [name for name in ("timestamp_ms", "timestamp") if name in present]
    if not names:
        raise ValueError("write needs order, the columns by which rows are numbered: they have no timestamp")
    return names[0]
