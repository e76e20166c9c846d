"""The names of a target: which kind it is, and with ``deletes="remove"`` its table and its view."""

from __future__ import annotations

import re
import uuid
from os import PathLike, fspath
from typing import Final, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from sparkwire.base.printable import value_error
from sparkwire.core.sources.storage import place_of
from sparkwire.spark.frames import quoted

NO_TABLE: Final = re.compile(
    r"TABLE_OR_VIEW_NOT_FOUND|SCHEMA_NOT_FOUND|PATH_NOT_FOUND|DELTA_(MISSING_DELTA_TABLE|TABLE_NOT_FOUND|SCHEMA_NOT_SET)"
    r"|UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY|DATA_SOURCE_NOT_FOUND"
)
_ROWS: Final = "__rows"
_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_NAME: Final = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")


class TableName(NamedTuple):
    """The name of a table in SQL, in parts."""

    parts: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> TableName:
        """Raises ValueError if the text is not a name."""
        if not _NAME.fullmatch(text):
            raise value_error(
                f"merge() expected a path, or the name of a table such as catalog.schema.`table 1`, got {text}: put "
                "parts of a name with other characters in back quotes"
            )
        return cls(tuple(match[1].replace("``", "`") if match[1] else match[2] for match in _PART.finditer(text)))

    @property
    def is_path(self) -> bool:
        """Whether it is the path of a Delta table. Such a table has no view."""
        return len(self.parts) == 2 and self.parts[0].lower() == "delta" and "/" in self.parts[1]

    @property
    def rows(self) -> TableName:
        """The table under a view of this name."""
        return TableName((*self.parts[:-1], self.parts[-1] + _ROWS))

    @property
    def catalog(self) -> str | None:
        """The first part, if it may be a catalog."""
        return self.parts[0] if len(self.parts) > 2 else None

    def __str__(self) -> str:
        return ".".join(map(quoted, self.parts))

    @property
    def shown(self) -> str:
        """The name as messages show it."""
        return ".".join(part if re.fullmatch(r"\w+", part) else quoted(part) for part in self.parts)


def target_of(spark: SparkSession, target: str | PathLike[str]) -> TableName | str:
    """The table that a target names; the path of its table in a session without Delta.

    A relative path is relative to Python's working directory, which may differ from Spark's.
    """
    name = fspath(target)
    table = TableName.of(name) if "`" in name or "/" not in name else TableName(("delta", name))
    if not table.is_path:
        return table
    path = table.parts[1]
    place = place_of(path)
    path = (path if place.root else place.path).rstrip("/")
    return TableName(("delta", path)) if has_delta(spark) else path


def has_delta(spark: SparkSession) -> bool:
    """Whether Spark itself reads and writes Delta tables at paths."""
    return "delta" in (spark.conf.get("spark.sql.catalog.spark_catalog", "") or "").lower()


def schema_of(spark: SparkSession, name: TableName) -> StructType | None:
    """The schema of a table or view; None if it does not exist.

    Spark Connect caches that a table does not exist, by the content and the number of the call. The process of each stream
    numbers its calls from 0. An option makes the call unique. `Catalog.tableExists` has no options.
    """
    try:
        return spark.read.option("sparkwire.call", uuid.uuid4().hex).table(str(name)).schema
    except PySparkException as error:
        if NO_TABLE.search(str(error)):
            return None
        raise
