"""Facts about a table in the log of Delta: its size, and the greatest order in a table of deleted rows.

A batch with later orders need not read the deleted rows. Each append to their table notes its greatest order as the commit's user
metadata, so both are written in one step. It also notes the version that the table had when the merge began. If the append is not
the next version, somebody else wrote in between: then the note does not count, and the merge reads the table.
"""

from __future__ import annotations

import json
import logging
from decimal import Decimal
from typing import Any, Final, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

OPTION: Final = "userMetadata"
"""Delta's option of a write"""
_AFTER, _GREATEST = "sparkwire.after", "sparkwire.greatest"
_NUMBERS: Final = (ByteType, ShortType, IntegerType, LongType, TimestampType)
_log = logging.getLogger("sparkwire")


def size_of(spark: SparkSession, table: str) -> int | None:
    """The size of a table [bytes]; None if Delta does not return it.

    Delta keeps the snapshot that this reads for the next query over the table.
    """
    try:
        size = spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]["sizeInBytes"]
    except PySparkException as error:
        _log.info("cannot read the size of %s: %s", table, error)
        return None
    return None if size is None else int(size)


class NewestCommit(NamedTuple):
    """The newest commit of a table of deleted rows."""

    version: int
    greatest: Any
    """the greatest order in the table, as texts of `merge_facts.literal`; None if it is not known"""

    @classmethod
    def of(cls, spark: SparkSession, table: str) -> NewestCommit | None:
        """None if Delta does not return the log."""
        try:
            newest = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()
        except PySparkException as error:
            _log.info("cannot read the history of %s: %s", table, error)
            return None
        return cls(newest[0]["version"], _greatest(newest[0]["version"], newest[0][OPTION])) if newest else None

    def note(self, greatest: Any) -> str:
        """The user metadata of an append, after which ``greatest`` is the greatest order in the table."""
        return json.dumps({_AFTER: self.version, _GREATEST: greatest})

    def is_before(self, least: Any, type: DataType) -> bool:
        """Whether all orders in the table are known to be smaller than ``least``."""
        stored, new = _comparable(self.greatest, type), _comparable(least, type)
        return stored is not None and new is not None and stored < new


def _greatest(version: int, note: str | None) -> Any:
    try:
        noted = json.loads(note or "null")
    except ValueError:  # the note of another writer
        return None
    if not isinstance(noted, dict) or noted.get(_AFTER) != version - 1:
        return None
    return noted.get(_GREATEST)


def _comparable(text: Any, type: DataType) -> Any:
    """A value that Python compares as Spark compares the order; None if there is none."""
    if isinstance(type, StructType):
        if not isinstance(text, dict) or set(text) != set(type.names):
            return None
        parts = [
            (0,) if text[field.name] is None else (1, _comparable(text[field.name], field.dataType)) for field in type
        ]
        return None if (1, None) in parts else tuple(parts)
    if not isinstance(text, str):
        return None
    if isinstance(type, _NUMBERS):
        return int(text)
    if isinstance(type, DecimalType):
        return Decimal(text)
    if isinstance(type, BinaryType):
        return bytes.fromhex(text)
    return text if type == StringType() else None
