"""Merge into a table of Delta or Iceberg with one MERGE, which is one commit.

With ``deletes="remove"`` the table is ``<name>__rows``, and ``<name>`` is a view of the rows that exist. What a merge has to
remember is in the table, too: deleted rows, the last TRUNCATE, and rows that left their key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, DayTimeIntervalType, MapType, StructType, TimestampNTZType

from sparkwire.base.printable import value_error
from sparkwire.base.sqltype import sql_string
from sparkwire.changes.columns import DELETED
from sparkwire.changes.delta_log import NOTED, noted_in, noted_text
from sparkwire.changes.fold import MEMORY
from sparkwire.errors import WriteConflictError
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.merge_names import NO_TABLE, TableName, schema_of
from sparkwire.spark.changes.merge_statement import REBASE, Statement
from sparkwire.spark.changes.merge_types import Traits, agreed, check_made, noted_of, sql_type, stored_schema, visible
from sparkwire.spark.connectors import connector_advice
from sparkwire.spark.frames import quoted

_VIEW: Final = "sparkwire.view"
"""a property of the view"""
_IS_WIDER: Final = "CANNOT_UP_CAST_DATATYPE"
"""the error of a view if a column of its table has become wider"""
NEEDS_MAPPING: Final = re.compile(r"[ ,;{}()\n\t=]")
"""what Delta accepts in the name of a column only if it maps the names to others"""
_EXISTS: Final = re.compile(r"ALREADY_EXISTS|already exists", re.IGNORECASE)
_IS_NOT_EMPTY: Final = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"


class TableTarget:
    """A table that supports MERGE."""

    counts_entries = True
    """whether the number of changed rows includes those that are no row of their key"""

    def __init__(self, spark: SparkSession, name: TableName, keep: bool) -> None:
        self.spark, self.target, self.keep = spark, name, keep
        self.has_view = not keep and not name.is_path
        self.rows = name.rows if self.has_view else name
        self.name = name.shown
        self.stored = schema_of(spark, self.rows)
        self.noted: dict[str, Any] = {}
        self.traits = Traits()

    @classmethod
    @contextmanager
    def opened(cls, spark: SparkSession, name: TableName, keep: bool) -> Iterator[TableTarget]:
        yield cls(spark, name, keep)

    @property
    def exists(self) -> bool:
        return self.stored is not None

    @property
    def tells_changed(self) -> bool:
        """Whether a MERGE returns the number of changed rows: Delta's does."""
        return self.is_delta

    @property
    def exact_settings(self) -> Sequence[str]:
        """What a MERGE needs of the session: Spark 3.5 rejects dates before 1900 by default, and later ones do not."""
        return (REBASE,) if self.spark.version.startswith("3.") else ()

    @property
    def table_name(self) -> str | None:
        """The name of the table whose changes the target has."""
        return self.noted.get("table")

    def stored_rows(self, spark: SparkSession) -> DataFrame:
        """All rows of a table that exists."""
        return spark.table(str(self.rows))

    def refreshed(self) -> Traits:
        """The traits that the table has now."""
        return Traits.of(_noted_in(properties_of(self.spark, self.rows) or {}))

    def note(self, table_name: str | None, traits: Traits) -> None:
        """Note the table whose changes the target has, and its traits."""
        noted, self.traits = noted_of(self.table.keys, self.keep, table_name, traits), traits
        if noted != self.noted:
            self._note(noted)
            self.noted = noted

    def settle(self, table_name: str | None, traits: Traits) -> None:
        """Note the traits that hold after the statement."""
        self.note(table_name, traits)

    def agree(self, table: ChangedTable, is_case_sensitive: bool) -> StructType:
        """The columns after the merge. Raises ValueError if the changes do not fit the target."""
        self.table, self.schema = table, stored_schema(table)
        for field in self.schema:
            if isinstance(field.dataType, DayTimeIntervalType):
                raise value_error(f"Delta and Iceberg have no type INTERVAL: cast the column {field.name} before merge")
        if self.stored is None:
            self._check_free()
            self.provider = self._provider()
            self.is_delta = self.provider == "delta"
            self.traits = Traits().with_columns(table, None)
            return self.schema
        properties = properties_of(self.spark, self.rows) or {}
        if _VIEW in properties:
            raise self._made_otherwise()
        self.is_delta = "delta.minReaderVersion" in properties
        if NOTED in properties:
            self.noted = _noted_in(properties)
            check_made(self.name, self.noted, table.keys, self.keep)
        elif not self._is_begun(self.stored):
            raise value_error(f"merge did not create {self.rows.shown}: name another target")
        self.traits = Traits.of(self.noted).with_columns(table, self.stored)
        self.schema = agreed(self.stored, self.schema, self.rows.shown, is_case_sensitive)
        return self.schema

    def _check_free(self) -> None:
        """Raise ValueError if the target has no table, but something else has its name, or its table no longer exists."""
        other = self.target.rows if self.keep and not self.target.is_path else self.target
        properties = properties_of(self.spark, other)
        if properties is None:
            return
        if self.keep:
            if NOTED in properties:
                raise self._made_otherwise()
        elif _VIEW in properties:
            raise value_error(
                f"the table {self.rows.shown} does not exist, and its view {self.name} does: restore the table, "
                "or drop the view and read the changes from their beginning"
            )
        elif NOTED in properties:
            raise self._made_otherwise()
        else:
            raise value_error(f"{self.name} exists, and merge did not create it: name another target")

    def _made_otherwise(self) -> ValueError:
        made = "remove" if self.keep else "keep"
        return value_error(f'{self.name} was made with deletes="{made}": continue with it, or name another target')

    def _provider(self) -> str:
        """The provider of a new table, from its catalog. Raises ValueError if the catalog has no tables with MERGE."""
        if self.target.is_path:
            return "delta"
        conf = self.spark.conf
        for name in (self.target.catalog, self.spark.catalog.currentCatalog(), "spark_catalog"):
            implementation = (conf.get(f"spark.sql.catalog.{name}", "") or "").lower()
            for provider in ("iceberg", "delta"):
                if provider in implementation:
                    return provider
        raise value_error(
            f"the table {self.name} does not exist, and its catalog has neither Delta nor Iceberg: "
            f"{connector_advice(self.spark.version)} (docs/changes.md), or name a path, which has a / in its name"
        )

    @contextmanager
    def prepared(self, spark: SparkSession, table_name: str | None) -> Iterator[str]:
        """The stored rows, as SQL. Creates the table and its view, or adds columns and widens types."""
        is_new = self.stored is None
        if self.stored is None:
            self.noted = noted_of(self.table.keys, self.keep, table_name, self.traits)
            self._create(self.noted)
        else:
            self.note(table_name, self.traits)
            self._alter(self.stored)
        if self.has_view:
            self._make_view(is_new)
        yield str(self.rows)

    def _create(self, noted: dict[str, Any]) -> None:
        """Create the table. This writes no files of data, so an interrupted merge leaves none."""
        columns = ", ".join(f"{quoted(field.name)} {sql_type(field.dataType)}" for field in self.schema)
        needed = features(self.schema) if self.is_delta else {}
        properties = ", ".join([_property(noted), *_as_properties(needed)])
        try:
            self.spark.sql(f"CREATE TABLE {self.rows} ({columns}) USING {self.provider} TBLPROPERTIES ({properties})")
        except PySparkException as error:
            if _EXISTS.search(str(error)) and properties_of(self.spark, self.rows) is not None:
                raise WriteConflictError(f"another job has created {self.rows.shown}: run this merge again") from error
            if _EXISTS.search(str(error)) and self.target.is_path and not self._has_files():
                self._create_again(noted)
            elif _EXISTS.search(str(error)) or _IS_NOT_EMPTY in str(error):
                raise value_error(
                    f"the directory of {self.rows.shown} is not empty, and has no table: a job that began to create it may "
                    "have been killed. Delete the directory, or name another target"
                ) from error
            else:
                raise

    def _has_files(self) -> bool:
        """Whether the directory of a path has files other than those of Delta's log."""
        files = self.spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(self.target.parts[1])
        return not files.select("path").isEmpty()

    def _create_again(self, noted: dict[str, Any]) -> None:
        """Create the table of a path where a killed job has left a directory for Delta's log, but no commit.

        To CREATE TABLE, such a table exists. To a transaction, it does not.
        """
        empty = self.spark.createDataFrame([], self.schema)
        empty.write.format("delta").mode("error").options(**features(self.schema)).save(self.target.parts[1])
        self._note(noted)

    def _is_begun(self, stored: StructType) -> bool:
        """Whether a table without our property is one that `_create_again` has just created."""
        return self.target.is_path and MEMORY in stored.names and self.spark.table(str(self.rows)).isEmpty()

    def _note(self, noted: dict[str, Any]) -> None:
        self.spark.sql(f"ALTER TABLE {self.rows} SET TBLPROPERTIES ({_property(noted)})")

    def _alter(self, stored: StructType) -> None:
        new = [
            f"{quoted(field.name)} {sql_type(field.dataType)}"
            for field in self.schema
            if field.name not in stored.names
        ]
        needed = dict(features(self.schema).items() - features(stored).items()) if self.is_delta else {}
        if needed:
            self.spark.sql(f"ALTER TABLE {self.rows} SET TBLPROPERTIES ({', '.join(_as_properties(needed))})")
        if new:
            self.spark.sql(f"ALTER TABLE {self.rows} ADD COLUMNS ({', '.join(new)})")
        for field in stored:
            wide = self.schema[field.name].dataType
            if field.dataType.simpleString() != wide.simpleString():
                self._widen(field.name, field.dataType, wide)

    def _widen(self, column: str, old: DataType, new: DataType) -> None:
        try:
            if self.is_delta:
                self.spark.sql(f"ALTER TABLE {self.rows} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
            self.spark.sql(f"ALTER TABLE {self.rows} ALTER COLUMN {quoted(column)} TYPE {new.simpleString()}")
        except Exception as error:  # PySpark has no class for the exceptions of catalogs
            raise value_error(
                f"column {column} of {self.name} is {old.simpleString().upper()}, and cannot become "
                f"{new.simpleString().upper()} there: cast it, or name another target"
            ) from error

    def _make_view(self, is_new: bool) -> None:
        """Create the view of the rows that exist, also if somebody has dropped it, or if its columns differ."""
        wanted = [self.schema[name] for name in visible(self.schema, keep=False)]
        shown = None if is_new else self._shown()
        if shown is not None and [(f.name, f.dataType.simpleString()) for f in shown] == [
            (f.name, f.dataType.simpleString()) for f in wanted
        ]:
            return
        columns = ", ".join(quoted(field.name) for field in wanted)
        try:
            self.spark.sql(
                f"CREATE OR REPLACE VIEW {self.target} TBLPROPERTIES ({sql_string(_VIEW)} = 'true') "
                f"AS SELECT {columns} FROM {self.rows} WHERE NOT {DELETED}"
            )
        except Exception as error:  # PySpark has no class for the exceptions of catalogs
            if is_new:
                with suppress(Exception):
                    self.spark.sql(f"DROP TABLE {self.rows}")
            raise value_error(
                f'deletes="remove" needs a catalog with views, and the view {self.name} cannot be created: pass '
                f'deletes="keep", or name a target in another catalog ({str(error).strip().partition(chr(10))[0]})'
            ) from error

    def _shown(self) -> StructType | None:
        """The columns of the view; None if there is no view, or if it cannot be read: a column of the table has become wider."""
        try:
            return schema_of(self.spark, self.target)
        except PySparkException as error:
            if _IS_WIDER in str(error):
                return None
            raise

    def run(self, spark: SparkSession, relation: str, statement: Statement) -> int | None:
        """Run the MERGE. Returns the number of changed rows; None if the table's format does not report it."""
        counts = spark.sql(statement.as_merge(relation)).collect()
        return int(counts[0]["num_affected_rows"]) if counts and "num_affected_rows" in counts[0] else None


def features(schema: StructType) -> dict[str, str]:
    """The properties that a Delta table needs for these columns: an older table does not accept all types and names."""
    needed = {}
    if any(isinstance(type, TimestampNTZType) for type in types_in(schema)):
        needed["delta.feature.timestampNtz"] = "supported"
    names = (field.name for type in types_in(schema) if isinstance(type, StructType) for field in type)
    if any(NEEDS_MAPPING.search(name) for name in names):
        needed |= {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
    return needed


def types_in(type: DataType) -> Iterator[DataType]:
    """A type and all types in it."""
    yield type
    match type:
        case StructType():
            inner = [field.dataType for field in type]
        case ArrayType():
            inner = [type.elementType]
        case MapType():
            inner = [type.keyType, type.valueType]
        case _:
            inner = []
    for element in inner:
        yield from types_in(element)


def _as_properties(properties: Mapping[str, str]) -> list[str]:
    return [f"{sql_string(name)} = {sql_string(value)}" for name, value in sorted(properties.items())]


def _property(noted: dict[str, Any]) -> str:
    return f"{sql_string(NOTED)} = {sql_string(noted_text(noted))}"


def _noted_in(properties: Mapping[str, str]) -> dict[str, Any]:
    noted: dict[str, Any] = noted_in(properties[NOTED]) if NOTED in properties else {}
    return noted


def properties_of(spark: SparkSession, name: TableName) -> dict[str, str] | None:
    """The properties of a table or view; None if it does not exist. A view may exist without its table."""
    try:
        with _without_logs():
            return {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    except PySparkException as error:
        if NO_TABLE.search(str(error)):
            return None
        raise


@contextmanager
def _without_logs() -> Iterator[None]:
    """Keep PySpark from logging an exception with its Java trace before anybody has seen it."""
    if find_spec("pyspark.logger") is None:  # before Spark 4.0
        yield
        return
    logger = import_module("pyspark.logger").PySparkLogger.getLogger("SQLQueryContextLogger")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def merged_table(spark: SparkSession, name: TableName) -> DataFrame:
    """The rows that exist, and with ``deletes="keep"`` the deleted ones."""
    rows = spark.table(str(name))
    if MEMORY not in rows.columns:
        return rows
    noted = _noted_in(properties_of(spark, name) or {})
    return seen_rows(rows, keep=noted.get("deletes") == "keep")


def seen_rows(rows: DataFrame, *, keep: bool) -> DataFrame:
    """What readers see of all rows of a table: the rows that exist, and with ``keep`` the deleted ones."""
    rows = rows.where(f"{MEMORY}.entry IS NULL" if keep else f"NOT {DELETED}")
    return rows.select(*map(quoted, visible(rows.schema, keep=keep)))
