"""Merge into a table of Delta or Iceberg with MERGE.

A change is applied only if its order is greater than the row's, so a repeated batch changes nothing. A second table,
``…__deleted``, has the deleted rows with their order, so that late changes do not restore them. It is written first: a merge that
stops between the two writes has not deleted anything yet, and can run again.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

import pyspark.sql.functions as F
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, DataType, DayTimeIntervalType, StructField, StructType

from sparkwire.base.sqltype import sql_string
from sparkwire.cdc.change_columns import DELETED, ORDER, TIME
from sparkwire.errors import WriteConflictError
from sparkwire.spark.current import ChangedTable, events, latest, stored_steps, with_history
from sparkwire.spark.frames import quoted
from sparkwire.spark.merge_facts import BatchFacts, literal
from sparkwire.spark.merge_types import agreed, aligned, stored_schema

_BESIDE: Final = "__deleted"
_TRUNCATE: Final = "_truncate_"
_SOURCE: Final = "sparkwire.source"
_CONFLICT: Final = re.compile(
    r"DELTA_CONCURRENT|Concurrent\w+Exception|CommitFailedException|conflicting (files|deletes)"
)
_GROUP_FILTER: Final = "spark.sql.optimizer.runtime.rowLevelOperationGroupFilter.enabled"
_PATH: Final = re.compile(r"^(\w+)\.`(.+)`$")


class TableTarget(NamedTuple):
    """A table that supports MERGE, with its SQL name."""

    name: str

    @property
    def beside(self) -> TableTarget:
        """The table of deleted rows."""
        if self.name.endswith("`"):
            return TableTarget(f"{self.name[:-1].rstrip('/')}{_BESIDE}`")
        return TableTarget(self.name + _BESIDE)

    def exists(self, spark: SparkSession) -> bool:
        path = _PATH.match(self.name)
        if path is None:
            return bool(spark.catalog.tableExists(self.name))
        try:
            spark.read.format(path[1]).load(path[2]).schema  # noqa: B018
        except PySparkException as error:
            if "DATA_SOURCE_NOT_FOUND" in str(error):
                raise
            return False
        return True

    def create(self, spark: SparkSession, schema: StructType) -> None:
        empty, path = spark.createDataFrame([], schema), _PATH.match(self.name)
        if path is not None:
            empty.write.format(path[1]).mode("ignore").save(path[2])
        else:
            empty.writeTo(self.name).using(self._provider(spark)).create()

    def _provider(self, spark: SparkSession) -> str:
        """The provider of a new table, from its catalog. Raises ValueError if the catalog has no tables with MERGE."""
        catalog = self.name.partition(".")[0] if self.name.count(".") > 1 else "spark_catalog"
        for name in (catalog, spark.conf.get("spark.sql.defaultCatalog", "") or "", "spark_catalog"):
            implementation = (spark.conf.get(f"spark.sql.catalog.{name}", "") or "").lower()
            for provider in ("iceberg", "delta"):
                if provider in implementation:
                    return provider
        raise ValueError(
            f"the table {self.name} does not exist, and its catalog has neither Delta nor Iceberg: create it there, or name a "
            "directory, which has a / in its name, for Parquet"
        )

    def source(self, spark: SparkSession) -> str | None:
        """The name of the source table; None if unknown."""
        properties = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {self.name}").collect()}
        return properties.get(_SOURCE)

    def note_source(self, spark: SparkSession, name: str | None) -> None:
        if name is not None:
            spark.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ('{_SOURCE}' = {sql_string(name)})")

    def agree(self, spark: SparkSession, schema: StructType, keys: Sequence[str]) -> StructType:
        """Create the table, or add missing columns and widen types. Returns the new schema."""
        for field in schema:
            if isinstance(field.dataType, DayTimeIntervalType):
                raise ValueError(f"Delta and Iceberg have no type INTERVAL: cast the column {field.name} before merge")
        if not self.exists(spark):
            self.create(spark, schema)
            return schema
        stored = spark.table(self.name).schema
        both = agreed(stored, schema, keys, self.name)
        new = [
            f"{quoted(field.name)} {field.dataType.simpleString()}" for field in both if field.name not in stored.names
        ]
        if new:
            spark.sql(f"ALTER TABLE {self.name} ADD COLUMNS ({', '.join(new)})")
        for field in stored:
            if field.dataType.simpleString() != both[field.name].dataType.simpleString():
                self._widen(spark, field.name, field.dataType, both[field.name].dataType)
        return both

    def _widen(self, spark: SparkSession, column: str, old: DataType, new: DataType) -> None:
        try:
            if "delta" in str(spark.sql(f"DESCRIBE TABLE EXTENDED {self.name}").collect()).lower():
                spark.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
            spark.sql(f"ALTER TABLE {self.name} ALTER COLUMN {quoted(column)} TYPE {new.simpleString()}")
        except PySparkException as error:
            raise ValueError(
                f"column {column} of {self.name} is {old.simpleString().upper()}, and cannot become "
                f"{new.simpleString().upper()} there: cast it, or name another target"
            ) from error


def merge_into_table(changes: DataFrame, table: ChangedTable, target: TableTarget, keep: bool) -> None:
    """Merge one batch."""
    spark = changes.sparkSession
    schema = stored_schema(table, keep)
    if exists := target.exists(spark):
        schema = target.agree(spark, schema, table.keys)
    changes, table = aligned(changes, table, schema)
    steps = events(changes, table)
    last = latest(steps, table).persist()
    try:
        facts = BatchFacts.of(last, target.source(spark) if exists else None)
        if not facts.rows:
            return
        if not exists:
            target.agree(spark, schema, table.keys)
            target.note_source(spark, facts.name)
        if facts.lacking or (facts.silent and table.may_lack_values):
            if target.beside.exists(spark):  # it may also lack the new columns
                target.beside.agree(spark, _beside_schema(schema), [])
            steps = _with_stored(steps, last, table, target, spark)
            rows = with_history(steps, table, latest(steps, table)).persist()
        else:
            rows = last
        try:
            _merge(rows, table, schema, target, facts, keep)
        finally:
            rows.unpersist()
    except Exception as error:  # PySpark has no class for most of the connectors' exceptions
        if _CONFLICT.search(str(error)):
            raise WriteConflictError(
                f"another job writes to {target.name}: only one merge at a time may write to a table. Run this merge again"
            ) from error
        raise
    finally:
        last.unpersist()


def _with_stored(
    steps: DataFrame, last: DataFrame, table: ChangedTable, target: TableTarget, spark: SparkSession
) -> DataFrame:
    """The changes, and the stored rows of their keys as earlier changes."""
    keys = last.where("NOT is_truncate").select(*(F.col(name).alias(f"of_{name}") for name in table.key_names()))
    for stored, there in ((target, True), (target.beside, False)):
        if not stored.exists(spark):
            continue
        df = spark.table(stored.name)
        live = ~F.col(DELETED) if DELETED in df.columns else F.lit(there)
        same = F.lit(True)
        for key, name in zip(table.keys, table.key_names(), strict=True):
            same = same & F.col(quoted(key)).eqNullSafe(F.col(f"of_{name}"))
        df = df.where(f"NOT {_TRUNCATE}") if not there else df
        steps = steps.unionByName(stored_steps(df.join(keys, same, "left_semi"), table, None, live))
    return steps


def _merge(
    rows: DataFrame, table: ChangedTable, schema: StructType, target: TableTarget, facts: BatchFacts, keep: bool
) -> None:
    spark, order = rows.sparkSession, schema[ORDER].dataType
    if facts.truncated is not None or (facts.deleted and not keep):
        _remember(rows, table, schema, target.beside, keep)
    changed = rows.where("NOT is_truncate")
    if facts.truncated is not None:
        changed = changed.where(f"at > {literal(facts.truncated, order)}")
    if target.beside.exists(spark):
        gone = spark.table(target.beside.name)
        changed = changed if keep else _without_late(changed, table, gone)
        truncated = gone.where(_TRUNCATE).agg(F.max(ORDER).alias("truncated"))
        changed = changed.crossJoin(F.broadcast(truncated)).where("truncated IS NULL OR at > truncated")
    places = {name: f"s.row.c{k}" for k, name in enumerate(table.columns)}
    places |= {name: f"s.{alias}" for name, alias in zip(table.keys, table.key_names(), strict=True)}
    places |= {ORDER: "s.at", TIME: "s.time"} | ({DELETED: "NOT s.live"} if keep else {})
    newer = f"(t.{ORDER} IS NULL OR s.at > t.{ORDER})"
    deletes = f"UPDATE SET {DELETED} = TRUE, {ORDER} = s.at, {TIME} = s.time" if keep else "DELETE"
    returns = f"({newer} OR s.at = t.{ORDER} AND t.{DELETED})" if keep else newer
    pairs = ", ".join(f"t.{quoted(name)} = {value}" for name, value in places.items())
    inserted = f"({', '.join(map(quoted, places))}) VALUES ({', '.join(places.values())})"
    clauses = [
        f"WHEN MATCHED AND NOT s.live AND {newer} THEN {deletes}",
        f"WHEN MATCHED AND s.live AND {returns} THEN UPDATE SET {pairs}",
        f"WHEN NOT MATCHED {'' if keep else 'AND s.live '}THEN INSERT {inserted}",
    ]
    if facts.truncated is not None:
        end = literal(facts.truncated, order)
        ended = f"UPDATE SET {DELETED} = TRUE" if keep else "DELETE"
        clauses.append(
            f"WHEN NOT MATCHED BY SOURCE AND t.{ORDER} < {end} {f'AND NOT t.{DELETED} ' if keep else ''}THEN {ended}"
        )
    _run(changed, target, table, clauses)


def _remember(rows: DataFrame, table: ChangedTable, schema: StructType, beside: TableTarget, keep: bool) -> None:
    """Store the deleted rows, and the last TRUNCATE."""
    spark = rows.sparkSession
    beside.agree(spark, _beside_schema(schema), [])
    gone = rows.where("is_truncate" if keep else "NOT live")
    places = {name: f"CASE WHEN s.has_values THEN s.row.c{k} END" for k, name in enumerate(table.columns)}
    places |= {name: f"s.{alias}" for name, alias in zip(table.keys, table.key_names(), strict=True)}
    places |= {ORDER: "s.at", TIME: "s.time", _TRUNCATE: "s.is_truncate"}
    insert = f"WHEN NOT MATCHED THEN INSERT ({', '.join(map(quoted, places))}) VALUES ({', '.join(places.values())})"
    gone = gone.withColumn("has_values", F.lit(table.may_lack_values))
    # Without an update clause, this is an append in one pass: a newer delete is stored in addition to the older one.
    _run(gone, beside, table, [insert], f" AND t.{_TRUNCATE} = s.is_truncate AND t.{ORDER} >= s.at")


def _beside_schema(schema: StructType) -> StructType:
    """The schema of the table of deleted rows, from the target's."""
    return StructType([*(field for field in schema if field.name != DELETED), StructField(_TRUNCATE, BooleanType())])


def _without_late(rows: DataFrame, table: ChangedTable, deleted: DataFrame) -> DataFrame:
    """Leave out rows that were deleted after their last change."""
    gone = deleted.where(f"NOT {_TRUNCATE}").select(
        *(F.col(quoted(key)).alias(f"of_{name}") for key, name in zip(table.keys, table.key_names(), strict=True)),
        F.col(ORDER).alias("gone_at"),
    )
    late = F.col("live") & (F.col("gone_at") > F.col("at"))
    for name in table.key_names():
        late = late & F.col(name).eqNullSafe(F.col(f"of_{name}"))
    return rows.join(gone, late, "left_anti")


def _run(source: DataFrame, target: TableTarget, table: ChangedTable, clauses: Sequence[str], also: str = "") -> None:
    spark, view = source.sparkSession, f"sparkwire_merge_{uuid.uuid4().hex}"
    same = " AND ".join(f"t.{quoted(k)} <=> s.{name}" for k, name in zip(table.keys, table.key_names(), strict=True))
    source.createOrReplaceTempView(view)
    try:
        with _without_group_filter(spark):
            spark.sql(f"MERGE INTO {target.name} t USING {view} s ON {same}{also} {' '.join(clauses)}")
    finally:
        spark.catalog.dropTempView(view)


@contextmanager
def _without_group_filter(spark: SparkSession) -> Iterator[None]:
    """Disable a filter for which Spark 4.1 plans the source as a subquery. It fails if the source reads a table (SPARK-54873)."""
    if not spark.version.startswith("4.1."):
        yield
        return
    before = spark.conf.get(_GROUP_FILTER, None)
    spark.conf.set(_GROUP_FILTER, "false")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_GROUP_FILTER)
        else:
            spark.conf.set(_GROUP_FILTER, before)
