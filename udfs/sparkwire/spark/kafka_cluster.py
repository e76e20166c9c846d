"""Read a Kafka cluster from its directories: DataFrames of its metadata, internal topics and segments."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from sparkwire.base.printable import printable, value_error
from sparkwire.core.column import FIRST_MICROSECOND, LAST_MICROSECOND
from sparkwire.kafka.cluster.metadata import ClusterState, MetadataChange
from sparkwire.kafka.cluster.tables import TABLES
from sparkwire.spark.functions.discovery import explained
from sparkwire.spark.functions.udf import best_interface, udf

if TYPE_CHECKING:
    from typing import Unpack

_log = logging.getLogger("sparkwire")

Row = dict[str, Any]

METADATA: Final = "__cluster_metadata-0"
_SNAPSHOT: Final = re.compile(r"(\d{20})-\d{10}\.checkpoint$")
_OPTIONS: Final = ("remotePath", "encryptionKeys")
_OF_HEADER: Final = ("base_offset", "last_offset", "base_timestamp_ms", "max_timestamp_ms")
"""columns that an incomplete batch has, too, although its records do not exist"""
_NOTHING: Final = ("matches no file", "does not exist", "has no segment")


class ClusterOptions(TypedDict, total=False):
    """The options of ``spark.read.format("kafka_log")`` that `cluster` takes."""

    remotePath: str
    encryptionKeys: str


class MetadataLog(NamedTuple):
    """The metadata in one directory: a snapshot, and the later changes in the log."""

    changes: list[MetadataChange]
    end: int
    """the offset after the last change"""


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
    return Cluster(spark, [path] if isinstance(path, str) else list(path), at, {**options})


class Cluster:
    """The result of ``sparkwire.kafka.cluster``. It creates each DataFrame on first use."""

    def __init__(
        self, spark: SparkSession, paths: Sequence[str], at: int | datetime | None, options: Mapping[str, Any]
    ) -> None:
        self._spark = spark
        self._paths = paths
        self._at = _checked_at(at)
        self._remote = {name: str(value) for name, value in options.items()}
        unknown = options.keys() - _OPTIONS
        if unknown:
            raise value_error(f"cluster takes the options {', '.join(_OPTIONS)}, got {', '.join(sorted(unknown))}")

    def __repr__(self) -> str:
        return printable(f"Cluster({', '.join(self._paths)})")

    @property
    def brokers(self) -> DataFrame:
        """Registered brokers."""
        return self._table("brokers", self._state.broker_rows())

    @property
    def topics(self) -> DataFrame:
        """Topics with their ids."""
        return self._table("topics", self._state.topic_rows())

    @property
    def partitions(self) -> DataFrame:
        """Partitions with their replicas and leaders."""
        return self._table("partitions", self._state.partition_rows())

    @property
    def configs(self) -> DataFrame:
        """Configurations that differ from their defaults. Secret values are hidden."""
        return self._table("configs", self._state.config_rows())

    @property
    def acls(self) -> DataFrame:
        """Access control lists."""
        return self._table("acls", self._state.acl_rows())

    @property
    def users(self) -> DataFrame:
        """SCRAM users without their secrets."""
        return self._table("users", self._state.user_rows())

    @property
    def quotas(self) -> DataFrame:
        """Client quotas. A NULL name in an entity is the default entity."""
        return self._table("quotas", self._state.quota_rows())

    @property
    def features(self) -> DataFrame:
        """Features of the cluster with their versions."""
        return self._table("features", self._state.feature_rows())

    @cached_property
    def segments(self) -> DataFrame:
        """Segments, read from the headers of their batches."""
        columns = (
            "topic, partition, tier, file, position, size, base_offset, last_offset, timestamp_type, base_timestamp_ms, "
            "max_timestamp_ms, delete_horizon_ms"
        )
        logs = self._logs("*-*", rows="batches", columns=columns, remote=True)
        if logs is None:
            return self._table("segments", [])
        first = F.min(F.coalesce("base_offset", "last_offset"))
        # With log append time, all records have the largest timestamp. A delete horizon replaces the base timestamp.
        earliest = F.expr(
            "CASE WHEN timestamp_type = 'LogAppendTime' THEN max_timestamp_ms "
            "WHEN delete_horizon_ms IS NULL THEN base_timestamp_ms END"
        )
        tables = (
            logs.where("topic IS NOT NULL")
            .withColumns({name: F.when(F.col("size").isNotNull(), F.col(name)) for name in _OF_HEADER})
            .groupBy("topic", "partition", "tier", "file")
            .agg(
                first.alias("base_offset"),
                (F.max("last_offset") + 1).alias("next_offset"),
                F.max(F.expr("position + size")).alias("bytes"),
                _timestamp(F.min(earliest)).alias("first_timestamp"),
                _timestamp(F.max("max_timestamp_ms")).alias("last_timestamp"),
            )
        )
        return _commented("segments", tables)

    @cached_property
    def groups(self) -> DataFrame:
        """Committed offsets of consumer groups, and their lag behind the end of the available segments."""
        records = self._records("__consumer_offsets", "kafka_group_record")
        if records is None:
            return self._table("groups", [])
        ends = self.segments.groupBy("topic", "partition").agg(F.max("next_offset").alias("end_offset"))
        offsets = records.where("kind = 'OFFSET'")
        keys = ["group", "topic", "partition"]
        last = _last(offsets, keys).where("version IS NOT NULL AND error IS NULL")
        committed_at = _timestamp(F.col("commit_timestamp_ms"))
        behind = F.greatest(F.col("end_offset") - F.col("committed_offset"), F.lit(0))
        lag = F.when(F.col("end_offset").isNotNull(), behind)  # greatest() ignores NULL
        tables = (
            last.withColumnRenamed("offset", "committed_offset")
            .join(ends, ["topic", "partition"], "left")
            .select(*keys, "committed_offset", "end_offset", lag.alias("lag"), committed_at.alias("committed_at"))
        )
        return _commented("groups", tables)

    @cached_property
    def transactions(self) -> DataFrame:
        """Transactional ids with the state of their last transaction."""
        records = self._records("__transaction_state", "kafka_transaction_record")
        if records is None:
            return self._table("transactions", [])
        last = _last(records, ["transactional_id"]).where("version IS NOT NULL AND error IS NULL")
        return _commented("transactions", last)

    # -- metadata

    @cached_property
    def _state(self) -> ClusterState:
        logs = [log for path in self._paths if (log := self._log(path)) is not None]
        if not logs:
            raise FileNotFoundError(
                printable(
                    f"{', '.join(self._paths)} has no {METADATA}: name a directory of log.dirs of a controller or a broker "
                    "(KRaft)"
                )
            )
        return ClusterState().apply(max(logs, key=lambda log: log.end).changes)

    def _log(self, path: str) -> MetadataLog | None:
        """The metadata in a directory; None if it has none."""
        folder = path if path.rstrip("/").endswith(METADATA) else f"{path.rstrip('/')}/{METADATA}"
        rows = _without_truncated_tail(self._rows(folder))
        snapshots = self._rows(f"{folder}/*.checkpoint")
        if rows is None and snapshots is None:
            return None
        begin, changes = self._snapshot(snapshots or [])
        with_offset = [row for row in rows or [] if row["offset"] is not None]
        after = [row for row in with_offset if row["offset"] >= begin and self._is_requested(row)]
        first = min((row["offset"] for row in with_offset), default=begin)
        if first > begin:
            raise value_error(
                f"{folder} begins at offset {first}, and no complete snapshot has the records before it"
                + (f" {self._at}" if self._at is not None else "")
                + next((f": {_unreadable(row)}" for row in snapshots or [] if row["error"]), "")
            )
        end = max((row["offset"] + 1 for row in after), default=begin)
        _check_whole(folder, rows or [], begin, end)
        self._check_requested(folder, with_offset, begin)
        return MetadataLog(changes + [change for row in after for change in _change(row)], end)

    def _check_requested(self, folder: str, rows: Sequence[Row], begin: int) -> None:
        """Raise ValueError if there are no metadata as of the requested offset or time."""
        if self._at is None:
            return
        last = max((row["offset"] for row in rows), default=begin - 1)
        if isinstance(self._at, int) and not 0 <= self._at <= max(last, begin - 1):
            raise value_error(f"at {self._at} is no offset of {folder}: its last one is {max(last, begin - 1)}")
        if not begin and not any(self._is_requested(row) for row in rows):
            first = min((row["timestamp_ms"] for row in rows if row["timestamp_ms"]), default=0)
            raise value_error(f"at {self._at} is before the first record of {folder}, of {first} [ms since epoch]")

    def _snapshot(self, rows: Iterable[dict[str, Any]]) -> tuple[int, list[MetadataChange]]:
        """The newest complete snapshot before the requested offset or time: the offset after its end, and its records."""
        by_file: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            by_file.setdefault(row["file"], []).append(row)
        snapshot: tuple[int, list[MetadataChange]] = 0, []
        for file, records in by_file.items():
            name = _SNAPSHOT.search(file)
            types = [row["type"] for row in records]
            if name is None or "SnapshotFooterRecord" not in types or any(row["error"] for row in records):
                continue
            end = int(name[1])
            header: dict[str, int] = next(
                (json.loads(row["value"]) for row in records if row["type"] == "SnapshotHeaderRecord"), {}
            )
            if self._is_before(end, header.get("lastContainedLogTimestamp", 0)) and end >= snapshot[0]:
                snapshot = end, [change for row in records for change in _change(row)]
        return snapshot

    def _is_before(self, end: int, timestamp: int) -> bool:
        if self._at is None:
            return True
        return end - 1 <= self._at if isinstance(self._at, int) else timestamp <= self._at.timestamp() * 1000

    def _is_requested(self, row: dict[str, Any]) -> bool:
        return self._is_before(row["offset"] + 1, row["timestamp_ms"] or 0)

    def _rows(self, path: str) -> list[dict[str, Any]] | None:
        """The decoded records at a path; None if nothing exists there."""
        columns = "topic, offset, timestamp_ms, key, value, file, position, error"
        frame = self._load(path, columns=columns, controlRecords="true")
        if frame is None:
            return None
        decode = udf("kafka_internal_record", best_interface(self._spark))
        decoded = decode(F.lit("__cluster_metadata"), F.col("key"), F.col("value"))
        chosen = frame.select(
            "offset", "timestamp_ms", "file", "position", decoded.alias("r"), F.col("error").alias("corrupt")
        ).selectExpr(
            "offset", "timestamp_ms", "file", "position", "corrupt", "r.type", "r.value",
            "coalesce(corrupt, r.error) AS error",
        )  # fmt: skip
        return sorted(
            (row.asDict() for row in chosen.collect()),
            key=lambda row: (row["file"], row["position"], -1 if row["offset"] is None else row["offset"]),
        )

    # -- logs

    def _records(self, topic: str, function: str) -> DataFrame | None:
        """The decoded records of an internal topic; None if it does not exist."""
        columns = "offset, timestamp, key, value, error, file, producer_id, is_transactional, is_control, control_type"
        logs = self._logs(f"{topic}-*", columns=columns, controlRecords="true")
        if logs is None:
            return None
        if isinstance(self._at, datetime):
            logs = logs.where(F.col("timestamp") <= F.lit(self._at))
        decoded = udf(function, best_interface(self._spark))(F.col("key"), F.col("value"))
        valid = _effective(logs.where("error IS NULL"))
        return valid.select(F.col("offset").alias("_offset"), decoded.alias("r")).select("_offset", "r.*")

    def _logs(self, pattern: str, remote: bool = False, **options: str) -> DataFrame | None:
        """The segments of all directories that match a pattern; None if there are none."""
        if remote:
            options |= self._remote
        frames = [self._load(f"{path.rstrip('/')}/{pattern}", **options) for path in self._paths]
        existing = [frame for frame in frames if frame is not None]
        return reduce(DataFrame.unionByName, existing) if existing else None

    def _load(self, path: str, **options: str) -> DataFrame | None:
        try:
            with explained():
                return self._spark.read.format("kafka_log").options(replicas="all", **options).load(path)
        except PySparkException as error:
            if any(text in str(error) for text in _NOTHING):
                return None
            raise

    def _table(self, name: str, rows: Sequence[dict[str, Any]]) -> DataFrame:
        values = [tuple(row[column.name] for column in TABLES[name].columns) for row in rows]
        return self._spark.createDataFrame(values, TABLES[name].ddl())


def _commented(name: str, table: DataFrame) -> DataFrame:
    """The columns of a table, with their comments."""
    columns = TABLES[name].columns
    return table.select(
        *(F.col(column.name).alias(column.name, metadata={"comment": column.doc}) for column in columns)
    )


def _effective(records: DataFrame) -> DataFrame:
    """The records that a coordinator uses: all but control records and those of aborted and open transactions.

    Unlike with ``read_committed``, an open transaction does not hide the later records of others.
    """
    directory = F.regexp_extract("file", "^(.*)/", 1)
    later = Window.partitionBy(directory, "producer_id").orderBy("offset").rowsBetween(0, Window.unboundedFollowing)
    marker = F.first("control_type", ignorenulls=True).over(later)
    transactions = records.where("is_transactional").withColumn("_marker", marker)
    committed = transactions.where("NOT is_control AND _marker = 'COMMIT'").drop("_marker")
    return records.where("NOT is_transactional AND NOT is_control").unionByName(committed)


def _timestamp(millis: Column) -> Column:
    """TIMESTAMP of a time [ms since epoch]; NULL outside Spark's range, as in `kafka_log`."""
    is_inside = millis.between(FIRST_MICROSECOND // 1000, LAST_MICROSECOND // 1000)
    return F.when(is_inside, F.timestamp_millis(millis))


def _checked_at(at: int | datetime | None) -> int | datetime | None:
    """Check ``at``. Raises ValueError if it is neither an offset nor a possible time of a record."""
    if at is None or (isinstance(at, int) and not isinstance(at, bool)):
        return at
    try:
        if isinstance(at, datetime) and at.timestamp() >= 0:
            return at
    except (OverflowError, ValueError, OSError):  # a year outside the range of the machine's time zone
        pass
    raise ValueError(f"at is an offset of the metadata or a time from 1970 on, got {at!r}")


def _without_truncated_tail(rows: list[Row] | None) -> list[Row] | None:
    """The records before a corrupt tail, which a broker would truncate at its start. Logs a warning."""
    if rows is None:
        return None
    valid = next((k for k in range(len(rows), 0, -1) if rows[k - 1]["corrupt"] is None), 0)
    if valid < len(rows):
        torn = rows[valid]
        _log.warning(
            "%s is unreadable from byte %d on (%s), as after a copy from a running broker: reading ends there",
            printable(torn["file"]), torn["position"], printable(torn["corrupt"]),
        )  # fmt: skip
    return rows[:valid]


def _check_whole(folder: str, rows: Iterable[Row], begin: int, end: int) -> None:
    """Raise ValueError if the log lacks an offset from ``begin`` to before ``end``. The metadata log has no gaps."""
    following, unreadable = begin, ""
    for row in rows:
        offset = row["offset"]
        if row["error"]:
            unreadable = f": {_unreadable(row)}"
        if offset is not None and following < offset < end:
            raise value_error(f"{folder} has no records {following} to {offset - 1}{unreadable}")
        if offset is not None:
            following = max(following, offset + 1)


def _unreadable(row: Row) -> str:
    at = f"byte {row['position']}" if row["offset"] is None else f"offset {row['offset']}"
    return f"{row['file']} cannot be read at {at}: {row['error']}"


def _change(row: dict[str, Any]) -> Iterable[MetadataChange]:
    if row["error"]:
        raise value_error(_unreadable(row))
    if row["type"] is not None and row["value"] is not None:
        yield MetadataChange(row["type"], json.loads(row["value"]))


def _last(records: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The last record of each key. Earlier records may still exist, if compaction has not removed them."""
    names = [name for name in records.columns if name not in keys]
    return records.groupBy(*keys).agg(F.max_by(F.struct(*names), "_offset").alias("r")).select(*keys, "r.*")
