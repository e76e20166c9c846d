"""Facts about a batch of changes before its merge, from one aggregate over its last rows.

The aggregate is one JSON text, because Spark returns some types of observed metrics only as Java objects. Orders and keys are
texts in it, which `literal` makes literals of SQL.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StructType,
    TimestampType,
)

from sparkwire.base.sqltype import sql_string
from sparkwire.changes.columns import ORDER, TWO_TABLES
from sparkwire.spark.changes.current import ChangedTable, lacks_values
from sparkwire.spark.frames import quoted

NEW: Final = "(NOT live AND (known_at IS NULL OR known_at < at))"
"""the condition for a delete or TRUNCATE that is not stored yet"""
_RANGES: Final = (ByteType, ShortType, IntegerType, LongType, DateType)
"""types of keys whose range lets a table skip files"""


class BatchFacts(NamedTuple):
    """Facts about the last rows of a batch."""

    lacking: int
    """number of live rows that lack values"""
    silent: int
    """number of deleted rows that lack their values"""
    truncated: Any
    """the order of the last TRUNCATE"""
    name: str | None
    """the name of the table"""

    @classmethod
    def of(cls, last: DataFrame, table: ChangedTable) -> BatchFacts:
        """Compute the facts. Raises ValueError if the changes are of two tables."""
        row = last.agg(_as_json(_expressions("FALSE", table))).collect()[0]
        return cls(**_read(row[0], None))


class TableFacts(NamedTuple):
    """Facts about the last rows of a batch for a table of Delta or Iceberg."""

    lacking: int
    silent: int
    truncated: Any
    name: str | None
    rows: int
    least: Any
    """the least order; None if there is no row"""
    greatest: Any
    """the greatest order of the deletes and TRUNCATEs that are not stored yet"""
    new_deletes: int
    new_truncates: int
    null_keys: int
    """number of rows with NULL in a column of the key"""
    bounds: list[tuple[str, str] | None]
    """the least and the greatest value of each column of the key"""

    @classmethod
    def column(cls, table: ChangedTable) -> Column:
        """The aggregate with the facts."""
        order, null = table.schema[ORDER].dataType, " OR ".join(f"{name} IS NULL" for name in table.key_names())
        bounds = (
            _bounds(name, table.schema[key].dataType) for key, name in zip(table.keys, table.key_names(), strict=True)
        )
        facts = {
            "rows": "count(1)",
            "least": _text("min(at)", order),
            "greatest": _text(f"max(CASE WHEN {NEW} THEN at END)", order),
            "new_deletes": f"count_if({NEW} AND NOT is_truncate)",
            "new_truncates": f"count_if({NEW} AND is_truncate)",
            "null_keys": f"count_if(NOT is_truncate AND ({null}))",
            "bounds": f"array({', '.join(bounds)})",
        }
        return _as_json(_expressions("known_at >= at", table) | facts)

    @classmethod
    def read(cls, text: str, source: str | None) -> TableFacts:
        """Read the aggregate. Raises ValueError if the changes are of two tables, or of another table than ``source``."""
        return cls(**_read(text, source))


def _bounds(name: str, type: DataType) -> str:
    """The least and the greatest value of a column of the key, if they let a table skip files."""
    if not isinstance(type, _RANGES):
        return "CAST(NULL AS ARRAY<STRING>)"
    return f"CASE WHEN count({name}) > 0 THEN array({_text(f'min({name})', type)}, {_text(f'max({name})', type)}) END"


def _expressions(known: str, table: ChangedTable) -> dict[str, str]:
    """Aggregates of the last rows, as SQL. ``known``: whether a deleted row is already stored, so that it needs no values."""
    silent = f"{lacks_values(dead_too=True)} AND NOT live AND NOT coalesce({known}, FALSE)"
    return {
        "lacking": f"count_if({lacks_values(dead_too=False)})" if table.may_lack_values else "0",
        "silent": f"count_if({silent})",
        "truncated": _text("max(CASE WHEN is_truncate THEN at END)", table.schema[ORDER].dataType),
        "first": "min(least_table)",
        "last": "max(greatest_table)",
    }


def _as_json(facts: dict[str, str]) -> Column:
    """One expression of SQL, which takes one call to the JVM."""
    pairs = ", ".join(f"{sql_string(name)}, {fact}" for name, fact in facts.items())
    return F.expr(f"to_json(named_struct({pairs}), map('ignoreNullFields', 'false'))")


def _read(text: str, source: str | None) -> dict[str, Any]:
    """Replace the names of tables by one. Raises ValueError if there are two."""
    row: dict[str, Any] = json.loads(text)
    names = sorted({name for name in (row.pop("first"), row.pop("last"), source) if name is not None})
    if len(names) > 1:
        raise ValueError(TWO_TABLES % tuple(names[:2]))
    return row | {"name": names[0] if names else None}


def _text(value: str, type: DataType) -> str:
    """An expression of SQL as text for `literal`, whatever the session's time zone is. The fields of a STRUCT are texts."""
    if isinstance(type, StructType):
        parts = (
            f"{sql_string(field.name)}, {_text(f'{value}.{quoted(field.name)}', field.dataType)}" for field in type
        )
        return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(parts)}) END"
    if isinstance(type, BinaryType):
        return f"hex({value})"
    return f"CAST({f'unix_micros({value})' if isinstance(type, TimestampType) else value} AS STRING)"


def literal(text: Any, type: DataType) -> str:
    """A SQL literal."""
    if text is None:
        return f"CAST(NULL AS {type.simpleString()})"
    if isinstance(type, StructType):
        parts = (f"{sql_string(field.name)}, {literal(text[field.name], field.dataType)}" for field in type)
        return f"named_struct({', '.join(parts)})"
    if isinstance(type, BinaryType):
        return f"X'{text}'"
    if isinstance(type, TimestampType):
        return f"timestamp_micros({text})"
    return f"CAST({sql_string(text)} AS {type.simpleString()})"
