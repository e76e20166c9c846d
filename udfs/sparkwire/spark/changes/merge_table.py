"""Merge into a table of Delta or Iceberg with MERGE.

A change is applied only if its order is greater than the row's, so a repeated batch changes nothing. A second table,
``…__deleted``, has the deleted rows with their order, so that late changes do not restore them. Both tables are written at the
same time. A merge may stop when only one of them is written. If the batch is given again, it writes the other one: the deletes
come from the batch, whatever the table has. Deleted rows with values from the table are an exception. They are stored first,
because the MERGE removes these values.

The last rows of the batch are computed once and stored. Facts about them (`TableFacts`) determine which further steps run. Of the
table of deleted rows, only those from the batch's least order on are read. For a stream in order, these are none, and the log of
a Delta table says so (`NewestCommit`).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

import pyspark.sql.functions as F
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, DataType, DayTimeIntervalType, StructField, StructType

from sparkwire.base.sqltype import sql_string
from sparkwire.changes.columns import DELETED, ORDER, TIME
from sparkwire.errors import WriteConflictError
from sparkwire.spark.changes.current import ChangedTable, events, latest, stored_steps, with_history
from sparkwire.spark.changes.merge_facts import NEW, TableFacts, literal
from sparkwire.spark.changes.merge_log import OPTION, NewestCommit, size_of
from sparkwire.spark.changes.merge_types import agreed, aligned, stored_schema
from sparkwire.spark.changes.observed import stored_with
from sparkwire.spark.frames import quoted
from sparkwire.spark.settings import changed_settings

_BESIDE: Final = "__deleted"
_TRUNCATE: Final = "_truncate_"
_SOURCE: Final = "sparkwire.source"
_DELTA: Final = "delta.minReaderVersion"
"""a property of every Delta table"""
_CONFLICT: Final = re.compile(
    r"DELTA_CONCURRENT|Concurrent\w+Exception|CommitFailedException|conflicting (files|deletes)"
)
_LOST: Final = re.compile(r"CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND|Checkpoint block \S+ not found")
_ATTEMPTS: Final = 3
_NO_MEMORY: Final = re.compile(r"acquire \d+ bytes (of )?memory")
_HASHED_ROWS: Final = 1_000_000
"""the most rows of a batch that MERGE joins by hash"""
_GROUP_FILTER: Final = "spark.sql.optimizer.runtime.rowLevelOperationGroupFilter.enabled"
_DELTA_STORES_SOURCE: Final = "spark.databricks.delta.merge.materializeSource"
_HASH_JOIN: Final = "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold"
_HASHED_SIZE: Final = "64MB"
"""the most shuffled data in one partition for a join by hash; Spark expects at least its advisory size of a partition"""
_FILTERED_SIZE: Final = 32 << 20
"""the least size of a table that MERGE filters by the range of keys [bytes]: to compile a range takes longer than to read less"""
_NO_TABLE: Final = re.compile(
    r"TABLE_OR_VIEW_NOT_FOUND|SCHEMA_NOT_FOUND|PATH_NOT_FOUND|DELTA_(MISSING_DELTA_TABLE|TABLE_NOT_FOUND|SCHEMA_NOT_SET)"
)
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
        return self.schema(spark) is not None

    def schema(self, spark: SparkSession) -> StructType | None:
        """The schema of the table; None if it does not exist.

        Spark Connect caches that a table does not exist, by the content and the number of the call. The process of each stream
        numbers its calls from 0. An option makes the call unique. `Catalog.tableExists` has no options.
        """
        try:
            return spark.read.option("sparkwire.call", uuid.uuid4().hex).table(self.name).schema
        except PySparkException as error:
            if _NO_TABLE.search(str(error)):
                return None
            raise

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

    def properties(self, spark: SparkSession) -> dict[str, str]:
        return {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {self.name}").collect()}

    def note_source(self, spark: SparkSession, name: str | None) -> None:
        if name is not None:
            spark.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ('{_SOURCE}' = {sql_string(name)})")

    def agree(self, spark: SparkSession, schema: StructType, keys: Sequence[str]) -> StructType:
        """Create the table, or add missing columns and widen types. Returns the new schema."""
        for field in schema:
            if isinstance(field.dataType, DayTimeIntervalType):
                raise ValueError(f"Delta and Iceberg have no type INTERVAL: cast the column {field.name} before merge")
        stored = self.schema(spark)
        if stored is None:
            self.create(spark, schema)
            return schema
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
    hashed_rows = _HASHED_ROWS
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _merge_once(changes, table, target, keep, hashed_rows)
        except Exception as error:  # PySpark has no class for most of the connectors' exceptions
            if _CONFLICT.search(str(error)):
                raise WriteConflictError(
                    f"another job writes to {target.name}: only one merge at a time may write to a table. Run this merge again"
                ) from error
            no_memory = hashed_rows > 0 and _NO_MEMORY.search(str(error)) is not None
            if attempt == _ATTEMPTS or not (no_memory or _LOST.search(str(error))):
                raise
            if no_memory:
                hashed_rows = 0
        else:
            return


def _merge_once(changes: DataFrame, table: ChangedTable, target: TableTarget, keep: bool, hashed_rows: int) -> None:
    spark = changes.sparkSession
    schema = stored_schema(table, keep)
    if exists := target.exists(spark):
        schema = target.agree(spark, schema, table.keys)
    properties = target.properties(spark) if exists else {}
    source, beside = properties.get(_SOURCE), target.beside.exists(spark)
    is_delta, gone, order = _DELTA in properties, None, schema[ORDER].dataType
    with ThreadPoolExecutor(2) as pool:
        # Spark reads the logs while Python makes the plan.
        newest = pool.submit(NewestCommit.of, spark, target.beside.name) if is_delta and beside else None
        size = pool.submit(size_of, spark, target.name) if is_delta else None
        changes, table = aligned(changes, table, schema)
        steps = events(changes, table)
        rows, facts = _stored(_last(steps, table), table, source)
        commit = newest.result() if newest else None
        if facts.least is not None and beside and not (commit and commit.is_before(facts.least, order)):
            gone = _gone_since(spark, target.beside, facts.least, order)
        if gone is not None:
            rows, facts = _stored(_with_known(rows, gone, table), table, source)
        if facts.least is None:
            return
        if not exists:
            target.agree(spark, schema, table.keys)
            target.note_source(spark, facts.name)
        filled = facts.lacking > 0 or (facts.silent > 0 and table.may_lack_values)
        if filled:
            rows = _with_values(steps, rows, table, target, schema).localCheckpoint()
        remembered = None
        if facts.new_truncates or (facts.new_deletes and not keep):
            note = commit.note(facts.greatest) if commit and gone is None else None
            stored = target.beside.agree(spark, _beside_schema(schema), [])
            remembered = pool.submit(_remember, rows, table, stored, target.beside, keep, note)
        if remembered and filled:
            remembered.result()
        target_size = size.result() if size else None
        is_small = target_size is not None and target_size < _FILTERED_SIZE
        with changed_settings(spark, _settings(spark, hashed=facts.rows <= hashed_rows)):
            _merge(rows, table, schema, target, facts, keep, in_range=not is_small)
        if remembered:
            remembered.result()


def _stored(rows: DataFrame, table: ChangedTable, source: str | None) -> tuple[DataFrame, TableFacts]:
    """Compute and store the rows and their facts."""
    stored, facts = stored_with(rows, TableFacts.column(table))
    return stored, TableFacts.read(facts, source)


def _last(steps: DataFrame, table: ChangedTable) -> DataFrame:
    """The last rows of the batch. ``known_at`` is the order of a stored delete or TRUNCATE; see `_with_known`."""
    last = latest(steps, table)
    known_at = "CASE WHEN FALSE THEN at END AS known_at"
    names = (quoted(name) for name in last.columns if name != "row")
    return last.selectExpr(*names, known_at, *_values(table))


def _values(table: ChangedTable) -> list[str]:
    """The columns of a row that are not part of the key."""
    return [f"row.{place}" for name, place in table.places().items() if name not in table.keys]


def _gone_since(spark: SparkSession, beside: TableTarget, least: Any, order: DataType) -> DataFrame | None:
    """The stored deletes and TRUNCATEs with the order ``least`` or a greater one; None if there are none.

    For a stream in order there are none, and the table finds that out without reading its files.
    """
    gone = spark.table(beside.name)
    if isinstance(order, StructType) and least[order[0].name] is not None:  # tables have statistics only of the fields
        first = order[0]
        gone = gone.where(f"{ORDER}.{quoted(first.name)} >= {literal(least[first.name], first.dataType)}")
    gone = gone.where(f"{ORDER} >= {literal(least, order)}")
    return None if gone.isEmpty() else gone


def _with_known(rows: DataFrame, gone: DataFrame, table: ChangedTable) -> DataFrame:
    """The last rows with ``known_at``, without the late rows: those from before a stored delete or TRUNCATE."""
    truncated = gone.where(_TRUNCATE).agg(F.max(ORDER).alias("truncated"))
    of = [f"of_{name}" for name in table.key_names()]
    deleted = (
        gone.where(f"NOT {_TRUNCATE}")
        .groupBy(*(F.col(quoted(key)).alias(name) for key, name in zip(table.keys, of, strict=True)))
        .agg(F.max(ORDER).alias("deleted"))
    )
    same = ~F.col("is_truncate")
    for name, other in zip(table.key_names(), of, strict=True):
        same = same & F.col(name).eqNullSafe(F.col(other))
    known = F.when(F.col("is_truncate"), F.col("truncated")).otherwise(F.col("deleted"))
    joined = rows.join(deleted, same, "left").crossJoin(F.broadcast(truncated)).withColumn("known_at", known)
    late = "live AND known_at > at OR NOT is_truncate AND truncated >= at"
    return joined.where(f"NOT coalesce({late}, FALSE)").select(rows.columns)


def _with_values(
    steps: DataFrame, rows: DataFrame, table: ChangedTable, target: TableTarget, schema: StructType
) -> DataFrame:
    """The last rows with all their values, from the changes and the stored rows of their keys."""
    spark, names = rows.sparkSession, [*table.key_names(), "is_truncate"]
    keys = rows.select(*(F.col(name).alias(f"of_{name}") for name in names), "known_at")
    for stored, there in ((target, True), (target.beside, False)):
        if not stored.exists(spark):
            continue
        if not there:  # it may also lack the new columns
            stored.agree(spark, _beside_schema(schema), [])
        df = spark.table(stored.name)
        live = f"NOT {DELETED}" if DELETED in df.columns else str(there)
        same = ~F.col("of_is_truncate")
        for key, name in zip(table.keys, table.key_names(), strict=True):
            same = same & F.col(quoted(key)).eqNullSafe(F.col(f"of_{name}"))
        df = df.where(f"NOT {_TRUNCATE}") if not there else df
        steps = steps.unionByName(stored_steps(df.join(keys, same, "left_semi"), table, None, live))
    same = F.lit(True)
    for name in names:
        same = same & F.col(name).eqNullSafe(F.col(f"of_{name}"))
    full = with_history(steps, table, latest(steps, table)).join(keys, same)
    return full.select(*names, "at", "live", "time", "known_at", *_values(table))


def _merge(
    rows: DataFrame,
    table: ChangedTable,
    schema: StructType,
    target: TableTarget,
    facts: TableFacts,
    keep: bool,
    *,
    in_range: bool,
) -> None:
    """Run the MERGE. ``in_range``: with the range of the keys, which lets the table skip files."""
    end = None if facts.truncated is None else literal(facts.truncated, schema[ORDER].dataType)
    changed = rows.where("NOT is_truncate")
    if end is not None:
        changed = changed.where(f"at > {end}")
    places = {name: f"s.{column}" for name, column in table.flat_places().items()}
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
    if end is not None:
        ended = f"UPDATE SET {DELETED} = TRUE" if keep else "DELETE"
        clauses.append(
            f"WHEN NOT MATCHED BY SOURCE AND t.{ORDER} < {end} {f'AND NOT t.{DELETED} ' if keep else ''}THEN {ended}"
        )
    _run(changed, target, _condition(table, facts, in_range), clauses)


def _condition(table: ChangedTable, facts: TableFacts, in_range: bool) -> str:
    """The condition of the MERGE: equal keys, and if ``in_range`` the range of the keys."""
    operator = "<=>" if facts.null_keys else "="
    parts = []
    for key, name, bounds in zip(table.keys, table.key_names(), facts.bounds, strict=True):
        parts.append(f"t.{quoted(key)} {operator} s.{name}")
        if in_range and bounds and bounds[0] is not None and not facts.null_keys:
            least, greatest = (literal(bound, table.schema[key].dataType) for bound in bounds)
            parts.append(f"t.{quoted(key)} BETWEEN {least} AND {greatest}")
    return " AND ".join(parts)


def _remember(
    rows: DataFrame, table: ChangedTable, stored: StructType, beside: TableTarget, keep: bool, note: str | None
) -> None:
    """Store the deletes and the last TRUNCATE, unless they are already stored. ``note``: see `NewestCommit`."""
    columns = {
        name: F.col(column)
        for name, column in table.flat_places().items()
        if name in table.keys or table.may_lack_values
    }
    columns |= {ORDER: F.col("at"), TIME: F.col("time"), _TRUNCATE: F.col("is_truncate")}
    new = rows.where(NEW).where("is_truncate" if keep else "TRUE")
    values = (columns.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in stored)
    writer = new.select(*values).writeTo(beside.name)
    (writer if note is None else writer.option(OPTION, note)).append()


def _beside_schema(schema: StructType) -> StructType:
    """The schema of the table of deleted rows, from the target's."""
    return StructType([*(field for field in schema if field.name != DELETED), StructField(_TRUNCATE, BooleanType())])


def _run(source: DataFrame, target: TableTarget, condition: str, clauses: Sequence[str]) -> None:
    spark, view = source.sparkSession, f"sparkwire_merge_{uuid.uuid4().hex}"
    source.createOrReplaceTempView(view)
    try:
        spark.sql(f"MERGE INTO {target.name} t USING {view} s ON {condition} {' '.join(clauses)}")
    finally:
        spark.catalog.dropTempView(view)


def _settings(spark: SparkSession, *, hashed: bool) -> dict[str, str]:
    """The settings of the session during a MERGE. ``hashed``: join by hash where one side is small, instead of sorting both."""
    settings = {_DELTA_STORES_SOURCE: "none"}  # it is stored already
    if hashed:
        settings[_HASH_JOIN] = _HASHED_SIZE
    if spark.version.startswith("4.1."):  # which plans the source as a subquery for this filter (SPARK-54873)
        settings[_GROUP_FILTER] = "false"
    return settings
