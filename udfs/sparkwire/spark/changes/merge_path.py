"""Merge into a Delta table at a path, in a session without Delta.

Spark computes all rows that the table has afterwards, and its executors write them as Parquet. Then delta-rs commits these files,
see `sparkwire.changes.delta_log`. A session with Delta merges into the same table by `merge_table`.

Of a statement, this module needs ``as_join(relation, columns)``: a query for all rows after the statement, with these columns and
`CHANGED`.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Any, Final, NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkwire.base.printable import printable, value_error
from sparkwire.changes.delta_log import DeltaLog, delete_folder, new_folder, rows_in
from sparkwire.changes.fold import MEMORY
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.merge_statement import CHANGED, EXACT, Statement, named_view
from sparkwire.spark.changes.merge_table import NEEDS_MAPPING, seen_rows, types_in
from sparkwire.spark.changes.merge_types import Traits, agreed, check_made, noted_of, stored_schema
from sparkwire.spark.frames import quoted

_STORABLE: Final = (
    ArrayType, BinaryType, BooleanType, ByteType, DateType, DecimalType, DoubleType, FloatType, IntegerType, LongType, MapType,
    ShortType, StringType, StructType, TimestampNTZType, TimestampType,
)  # fmt: skip
_WITH_DELTA: Final = "or start the session with Delta (docs/changes.md)"
_WRITE_OPTIONS: Final = {"compression": "snappy", "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
_READ_OPTIONS: Final = {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
}
_GLOB: Final = re.compile(r"([\[\]{}*?\\])")
_PATIENCE: Final = 10  # [s] for a metric after its job
_log = logging.getLogger("sparkwire")


class PathTarget:
    """One version of a Delta table (`opened`). `run` replaces it."""

    tells_changed, counts_entries = True, False
    exact_settings: Sequence[str] = tuple(EXACT)

    def __init__(self, path: str, keep: bool) -> None:
        self.path, self.keep = path, keep
        self.log = DeltaLog.of(path)
        self.noted: dict[str, Any] = {}
        self.traits = Traits()

    @classmethod
    @contextmanager
    def opened(cls, spark: SparkSession, path: str, keep: bool) -> Iterator[PathTarget]:
        yield cls(path, keep)

    @property
    def exists(self) -> bool:
        return self.log is not None

    @property
    def table_name(self) -> str | None:
        """The name of the table whose changes the target has."""
        return self.noted.get("table")

    def agree(self, table: ChangedTable, is_case_sensitive: bool) -> StructType:
        """The columns after the merge. Raises ValueError if the changes do not fit the target."""
        self.keys, self.schema = list(table.keys), stored_schema(table)
        if self.log is not None:
            self.log.check_writable()
            stored, noted = _schema(self.log), self.log.noted
            if noted is not None:
                self.noted = noted
                check_made(self.path, noted, table.keys, self.keep)
            elif not _is_begun(self.log):
                raise value_error(f"merge did not create the table {self.path}: name another target")
            self.schema = agreed(stored, self.schema, self.path, is_case_sensitive)
        self.traits = Traits.of(self.noted).with_columns(table, None if self.log is None else stored)
        check_storable(self.schema)
        return self.schema

    @contextmanager
    def prepared(self, spark: SparkSession, table_name: str | None) -> Iterator[str]:
        """The stored rows, as SQL. ``table_name``: the name of the table whose changes the target has from now on."""
        self.table_name_after = table_name
        with named_view(self._rows(spark)) as name:
            yield name

    def note(self, table_name: str | None, traits: Traits) -> None:
        """What the property of the table says after the merge."""
        self.table_name_after, self.traits = table_name, traits

    def settle(self, table_name: str | None, traits: Traits) -> None:
        """Note the traits that hold after the commit."""
        self.note(table_name, traits)
        self._made_ready()

    def refreshed(self) -> Traits:
        """The traits of the table: no other merge can change them before the commit of this one."""
        return self.traits

    def stored_rows(self, spark: SparkSession) -> DataFrame:
        """All rows of a table that exists."""
        return self._rows(spark)

    def _rows(self, spark: SparkSession) -> DataFrame:
        if self.log is None:
            return spark.createDataFrame([], self.schema)
        stored = _stored_rows(spark, self.log)
        names = set(stored.columns)
        return stored.select(
            *(
                (F.col(quoted(field.name)) if field.name in names else F.lit(None))
                .cast(field.dataType)
                .alias(field.name)
                for field in self.schema
            )
        )

    def run(self, spark: SparkSession, relation: str, statement: Statement) -> int | None:
        """Write the version after the statement, unless it has the same rows and columns. Returns the number of changed rows."""
        log = self.log or self._made_ready()
        rows = spark.sql(statement.as_join(relation, self.schema.names))
        counted = Observed.of(
            rows,
            F.expr(
                f"to_json(struct(count_if({CHANGED}) AS written, count_if({CHANGED} AND {MEMORY}.entry IS NULL) AS changed, "
                "count(*) AS rows))"
            ),
        )
        with new_folder(self.path) as folder:
            counted.rows.drop(CHANGED).write.options(**_WRITE_OPTIONS).parquet(_uri(f"{self.path}/{folder}"))
            counts = json.loads(counted.result(rows))
            self._check_complete(folder, counts["rows"], rows)
        self._made_ready()  # after the statement, so that one that fails changes nothing
        if counts["written"] == 0 and counts["rows"] == log.rows and _schema(log) == self.schema:
            delete_folder(self.path, folder)
        else:
            self.log = log.commit(folder, self.schema.jsonValue())
        return int(counts["changed"])

    def _check_complete(self, folder: str, count: int, rows: DataFrame) -> None:
        """Raise OSError if files are missing: under a local path, each machine of a cluster may have its own."""
        found = rows_in(self.path, folder)
        if found != count and found != rows.count():  # Spark observes the rows of a repeated task twice
            raise OSError(
                printable(
                    f"the files of this merge in {self.path} have {found} rows, and Spark has written more: name a path that "
                    "is the same directory on all machines of the cluster"
                )
            )

    def _made_ready(self) -> DeltaLog:
        """The table, with its property and what its columns need. Creates it."""
        if self.log is None:
            self.log = DeltaLog.create(self.path, _without_local_times(self.schema).jsonValue())
        # New columns come with the rows, in one commit.
        stored = _schema(self.log).names
        traits = self.traits._replace(untold=tuple(name for name in self.traits.untold if name in stored))
        noted = noted_of(self.keys, self.keep, self.table_name_after, traits)
        if noted != self.noted:
            self.log.note(noted)
            self.noted = noted
        if _has_local_times(self.schema):
            self.log.allow_local_times()
        return self.log


def check_storable(schema: StructType) -> None:
    """Raise ValueError if delta-rs or Spark's writer of Parquet does not have a type, or a name."""
    for column in schema:
        for type in types_in(column.dataType):
            if not isinstance(type, _STORABLE) or (isinstance(type, StringType) and type != StringType()):
                raise value_error(
                    f"column {column.name} has the type {type.simpleString().upper()}, which a path cannot have: cast it "
                    "in the changes before merge"
                )
            if isinstance(type, StructType) and not type.fields:
                raise value_error(f"column {column.name} has a STRUCT without fields: drop it before merge")
    for type in types_in(schema):
        seen: dict[str, str] = {}
        for name in type.names if isinstance(type, StructType) else ():
            if NEEDS_MAPPING.search(name) or not name:
                raise value_error(
                    f"the name {name!r} of a column has characters that a path cannot have: rename it in the changes "
                    f"(withColumnRenamed), {_WITH_DELTA}"
                )
            other = seen.setdefault(name.lower(), name)
            if other != name:
                raise value_error(f"Delta takes the columns {other} and {name} for one: rename one in the changes")


def _has_local_times(schema: StructType) -> bool:
    return any(isinstance(type, TimestampNTZType) for type in types_in(schema))


def _without_local_times(schema: StructType) -> StructType:
    """The columns that a table may have before it has the feature of local times."""
    fields = [field for field in schema if not any(isinstance(t, TimestampNTZType) for t in types_in(field.dataType))]
    return StructType(fields)


def _uri(path: str) -> str:
    """The path as Spark reads it: without a scheme, it would be one of the session's default file system."""
    return f"file://{path}" if path.startswith("/") else path


def _schema(log: DeltaLog) -> StructType:
    """The stored columns, without what other programs note about them."""
    schema = StructType.fromJson(log.schema)
    return StructType([StructField(field.name, field.dataType) for field in schema])


def _is_begun(log: DeltaLog) -> bool:
    """Whether a table without our property is one that a killed merge has just created: the next one continues."""
    return log.version <= 1 and MEMORY in _schema(log).names and not log.files()


def _stored_rows(spark: SparkSession, log: DeltaLog) -> DataFrame:
    """All rows of a version: those that readers see, and what a merge remembers."""
    files, schema = log.files(), _schema(log)
    if not files:
        return spark.createDataFrame([], schema)
    # Spark would read brackets, braces, stars and question marks as a glob.
    paths = [_GLOB.sub(r"\\\1", _uri(f"{log.path}/{name}")) for name in files]
    return spark.read.schema(schema).options(**_READ_OPTIONS).parquet(*paths)


def merged_path(spark: SparkSession, path: str) -> DataFrame:
    """The rows that exist, and with ``deletes="keep"`` the deleted ones. Raises ValueError if there is no table of merge."""
    log = DeltaLog.of(path)
    if log is None:
        raise value_error(f"{path} has no table of merge yet")
    noted: Mapping[str, Any] | None = log.noted
    if noted is None:
        text = "has no table of merge yet" if _is_begun(log) else "has a Delta table that merge did not create"
        raise value_error(f"{path} {text}")
    return seen_rows(_stored_rows(spark, log), keep=noted["deletes"] == "keep")


class Observed(NamedTuple):
    """An aggregate that Spark computes while it reads the rows."""

    rows: DataFrame
    """read these"""
    aggregate: Column
    observation: Observation

    @classmethod
    def of(cls, rows: DataFrame, aggregate: Column) -> Observed:
        observation = Observation()
        return cls(rows.observe(observation, aggregate.alias("aggregate")), aggregate, observation)

    def result(self, rows: DataFrame) -> Any:
        """The aggregate, after the job. If Spark does not report it, it is computed from ``rows``."""
        metrics = _metrics(self.observation)
        return metrics["aggregate"] if metrics else rows.agg(self.aggregate).collect()[0][0]


def _metrics(observation: Observation) -> dict[str, Any]:
    """The metrics; empty if Spark does not report them.

    Spark Connect does not report those of a checkpoint, and Spark none of rows that its optimizer found to be none. A busy
    driver may drop them, and then Spark would wait without an end.
    """
    found: list[dict[str, Any]] = []

    def get() -> None:
        try:
            found.append(observation.get)
        except Exception as error:  # noqa: BLE001 PySpark has no class for it
            _log.info("Spark has no observed metric: %s", printable(str(error)))
            found.append({})

    thread = Thread(target=get, daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    if not found:
        _log.info("Spark has not reported an observed metric within %d s", _PATIENCE)
    return found[0] if found else {}
