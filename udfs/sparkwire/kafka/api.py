"""Restore topics: tables as partition directories that a broker starts on; and a cluster as tables.

    import sparkwire

    sparkwire.kafka.write(df, "/restored", compression="zstd")
    print(sparkwire.kafka.check("/restored"))

``df.write.format("kafka_log")`` writes the same, of rows that are in order already. The guide is docs/guide/way-back.md.
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
    """The options of ``df.write.format("kafka_log")``, as `write` takes them; sizes may have a unit (``"128m"``)."""

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
    """Order rows and write them as partition directories; each log starts and ends where the source log does.

    Parameters
    ----------
    df
        columns topic, partition, offset, timestamp or timestamp_ms [ms since epoch], key, value, headers. Topic and partition
        may be options; all but the offset may be missing. Read records of transactions with ``isolationLevel``
        ``read_committed``
    path
        the directory, local or by URI
    mode
        ``append`` writes after the last offset of a partition. ``overwrite`` replaces each partition of the rows completely.
        ``errorifexists`` fails if a partition has records
    order
        with ``offsets="assign"`` the columns that number the rows of a partition: by default the timestamp
    tasks
        how many write, each a range of the rows in order; by default as many as Spark makes of a sort
    options
        of ``df.write.format("kafka_log")``: compression, batchBytes, segmentBytes, indexIntervalBytes, leaderEpoch, offsets,
        startingOffset, sourcePath, startOffset, endOffset, timestampType, maxMessageBytes. With ``sourcePath``, the log that
        you have read, a partition without remaining rows becomes empty; without it, it stays as it is

    Raises
    ------
    ValueError
        if a column or an option is wrong. A wrong row fails the query, which then writes nothing.

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
    """Report what a broker would do at its start with the partition directories in a directory. Changes nothing.

    Parameters
    ----------
    path
        the directory, as a broker's ``log.dirs`` names it, or one partition's
    clean
        whether the broker had a clean shutdown: it then trusts the files; otherwise it verifies every batch. By default as the
        directory says.

    Returns
    -------
    Report
        its ``findings``, in the order of partitions and files: what the broker would ``reject``, take for a ``stray``,
        ``truncate``, ``delete``, ``rebuild``, ``restore`` or ``serve`` though it is wrong; printed, a line each

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
    """A cluster (KRaft) from its directories: who owns which topic, where partitions are, who may read them, how far groups are.

    Parameters
    ----------
    spark
        the session that reads
    path
        a directory of ``log.dirs`` of a controller or a broker, or a copy of one; or several, of several brokers. Of their
        metadata that is taken which has come furthest
    at
        as it was after the record of this offset of `__cluster_metadata`, or at this time; by default as it is now. Groups and
        transactions follow a time, segments are those of now
    options
        of ``spark.read.format("kafka_log")``: ``remotePath``, the bucket to which brokers have moved segments, and
        ``encryptionKeys``

    Returns
    -------
    Cluster
        DataFrames: ``brokers``, ``topics``, ``partitions``, ``configs``, ``acls``, ``users``, ``quotas``, ``features``,
        ``groups``, ``transactions``, ``segments``. Secrets are not in them.

    Raises
    ------
    FileNotFoundError
        when a table of the metadata is requested, and no directory has any.
    ValueError
        where what was before the log has been deleted without a whole snapshot, or a record cannot be read.

    Examples
    --------
    >>> here = sparkwire.kafka.cluster(spark, "/var/kafka")
    >>> here.partitions.where("size(isr) < size(replicas)")
    """
    from sparkwire.spark.kafka_cluster import Cluster

    return Cluster(spark, [path] if isinstance(path, str) else list(path), at, {**options})


def picture(path: str, *, topic: str | None = None, partition: int | None = None, **options: object) -> Picture:
    """A partition as a picture: its bytes, times, tiers, codecs, transactions, epochs, gaps and corruption over its offsets.

    Made from the headers of batches alone, in this process. Needs the extra ``picture``.

    Parameters
    ----------
    path
        a partition's directory, a broker's, a bucket of tiered storage
    topic, partition
        which one, where there are several
    options
        of ``spark.read.format("kafka_log")``: remotePath, encryptionKeys, startingOffset, endingOffset

    Returns
    -------
    Picture
        a notebook shows it, ``save`` writes it to a file, ``figure`` is matplotlib's

    Raises
    ------
    ValueError
        where that is not one partition.

    Examples
    --------
    >>> sparkwire.kafka.picture("/var/kafka", topic="orders", partition=0).save("orders-0.png")
    """
    from sparkwire.kafka.drawing import batches_of, draw

    return draw(batches_of(path, topic, partition, {name: str(value) for name, value in options.items()}))
