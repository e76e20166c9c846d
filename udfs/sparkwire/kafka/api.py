"""Restore topics: write tables as partition directories with which a broker can start. Read a cluster as tables.

    import sparkwire

    sparkwire.kafka.write(df, "/restored", compression="zstd")
    print(sparkwire.kafka.check("/restored"))

``df.write.format("kafka_log")`` writes the same files from rows that are already in order. docs/guide/way-back.md is the guide.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Unpack

    from pyspark.sql import DataFrame, SparkSession

    from sparkwire.kafka.drawing import Picture
    from sparkwire.kafka.write.check import Report
    from sparkwire.spark.kafka_cluster import Cluster


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


class ClusterOptions(TypedDict, total=False):
    """The options of ``spark.read.format("kafka_log")`` that `cluster` takes."""

    remotePath: str
    encryptionKeys: str


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
    from sparkwire.spark.kafka import write

    write(df, path, mode, order, tasks, {name: _text(value) for name, value in options.items()})


def _text(value: object) -> str:
    """An option as Spark passes it."""
    return json.dumps(value) if isinstance(value, Mapping) else str(value)


def check(path: str, *, clean: bool | None = None) -> Report:
    """Report what a broker that starts would do with the partition directories in a directory. It changes no files.

    Parameters
    ----------
    path
        a directory of a broker's ``log.dirs``, or the directory of one partition
    clean
        whether the broker had a clean shutdown. If so, it trusts the files; otherwise it verifies every batch. By default, a
        file in the directory determines this.

    Returns
    -------
    Report
        its ``findings``, in the order of partitions and files: files that the broker would ``reject``, treat as a ``stray``,
        ``truncate``, ``delete``, ``rebuild``, ``restore``, ``split``, or ``serve`` although they are wrong. ``print`` shows a
        line for each

    Raises
    ------
    FileNotFoundError
        if the directory does not exist.

    Examples
    --------
    >>> print(sparkwire.kafka.check("/restored"))
    """
    from sparkwire.kafka.write.check import check

    return check(path, clean)


def cluster(
    spark: SparkSession,
    path: str | Sequence[str],
    *,
    at: int | datetime | None = None,
    **options: Unpack[ClusterOptions],
) -> Cluster:
    """Read the metadata of a KRaft cluster from its directories: topics, partitions, ACLs, positions of consumer groups, and
    more.

    Parameters
    ----------
    spark
        the session that reads
    path
        a directory of ``log.dirs`` of a controller or a broker, or a copy of one; or a list of such directories of several
        brokers. It reads the metadata log with the largest offset
    at
        the offset of a record of `__cluster_metadata`, or a time: the state after that record or at that time. By default, the
        current state. Groups and transactions support a time only; segments are always the current ones
    options
        options of ``spark.read.format("kafka_log")``: ``remotePath``, the bucket to which brokers have moved segments, and
        ``encryptionKeys``

    Returns
    -------
    Cluster
        DataFrames: ``brokers``, ``topics``, ``partitions``, ``configs``, ``acls``, ``users``, ``quotas``, ``features``,
        ``groups``, ``transactions``, ``segments``. They contain no secrets.

    Raises
    ------
    FileNotFoundError
        if you access a table of the metadata, and no directory has metadata.
    ValueError
        if older records of the log were deleted and no complete snapshot replaces them, or a record cannot be read.

    Examples
    --------
    >>> here = sparkwire.kafka.cluster(spark, "/var/kafka")
    >>> here.partitions.where("size(isr) < size(replicas)")
    """
    from sparkwire.spark.kafka_cluster import Cluster

    return Cluster(spark, [path] if isinstance(path, str) else list(path), at, {**options})


def picture(path: str, *, topic: str | None = None, partition: int | None = None, **options: object) -> Picture:
    """Draw a partition: its bytes, times, tiers, codecs, transactions, epochs, gaps and corruption over its offsets.

    It reads only the headers of batches, in this process. It needs the extra ``picture``.

    Parameters
    ----------
    path
        the directory of a partition or a broker, or a bucket of tiered storage
    topic, partition
        the partition to draw, if there are several
    options
        options of ``spark.read.format("kafka_log")``: remotePath, encryptionKeys, startingOffset, endingOffset

    Returns
    -------
    Picture
        the picture. A notebook shows it, ``save`` writes it to a file, ``figure`` is the matplotlib figure

    Raises
    ------
    ValueError
        if the arguments do not select exactly one partition.

    Examples
    --------
    >>> sparkwire.kafka.picture("/var/kafka", topic="orders", partition=0).save("orders-0.png")
    """
    from sparkwire.kafka.drawing import batches_of, draw

    return draw(batches_of(path, topic, partition, {name: str(value) for name, value in options.items()}))
