"""The facts about a table before reading its changes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Final, NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructType, TimestampType

from sparkwire.base.printable import printable, value_error
from sparkwire.changes.columns import (
    BEFORE,
    COLUMN,
    DOCS,
    ERROR,
    EVENT,
    HEAD,
    KEYS,
    KEYS_KNOWN,
    MISSING_IS_UNKNOWN,
    NEVER,
    ORDER,
    REPLACES_EPOCHS,
    TAIL,
    TIME,
    TOPIC,
    UNAVAILABLE,
    UNEXPECTED,
    check_columns,
    check_keys,
    table_columns,
)
from sparkwire.spark.changes.orders import OrderColumns

_LOST: Final = (
    "the changes have no metadata of sparkwire.changes, such as the name of the column of topics: Iceberg stores none. So %s "
    'compares rows of different topics, and ignores epochs="replace". Store the changes in Delta or Parquet'
)


class ChangedTable(NamedTuple):
    """A table: its columns and key, and the schema of its change table."""

    columns: list[str]
    keys: list[str]
    schema: StructType
    """the schema of the change table, with the metadata of its columns"""

    @classmethod
    def of(cls, changes: DataFrame, keys: Sequence[str] | str | None, function: str) -> ChangedTable:
        """Raises ValueError if ``changes`` is not a change table, or the keys are unknown."""
        schema = changes.schema
        check_columns(schema.names, function)
        if {*HEAD, *TAIL} <= set(schema.names) and not any(field.metadata for field in schema):
            warnings.warn(printable(_LOST % function), stacklevel=3)
        columns = table_columns(schema.names, _fields(schema))
        key_columns = (
            [keys] if isinstance(keys, str) else list(keys) if keys is not None else keys_of(changes, function)
        )
        check_keys(key_columns, columns, function)
        return cls(columns, key_columns, schema)

    @property
    def values(self) -> list[str]:
        """The columns that are not part of the key."""
        return [name for name in self.columns if name not in self.keys]

    @property
    def order(self) -> OrderColumns:
        return OrderColumns(self.schema[ORDER].dataType, self.topic is not None)

    @property
    def topic(self) -> str | None:
        """The column with the records' topics, if the change table has it."""
        name = (self.schema[ORDER].metadata or {}).get(TOPIC)
        return name if name in self.schema.names else None

    @property
    def may_lack_values(self) -> bool:
        """Whether a row may have `_unavailable_` columns."""
        return bool(self.values) and self.may_have(UNAVAILABLE)

    @property
    def missing_is_unknown(self) -> bool:
        """Whether a column that the changes do not have has an unknown value, instead of NULL."""
        return UNAVAILABLE in self.schema.names and MISSING_IS_UNKNOWN in (self.schema[UNAVAILABLE].metadata or {})

    @property
    def replaces_epochs(self) -> bool:
        """Whether each epoch begins with a complete snapshot, so that it ends all rows of earlier ones."""
        return bool((self.schema[ORDER].metadata or {}).get(REPLACES_EPOCHS))

    @property
    def time_type(self) -> DataType:
        return self.schema[TIME].dataType if TIME in self.schema.names else TimestampType()

    @property
    def has_unexpected(self) -> bool:
        """Whether a row may have `_unexpected_` values."""
        return self.may_have(UNEXPECTED)

    @property
    def has_events(self) -> bool:
        """Whether a change of a key may be several messages."""
        return EVENT in self.schema.names

    @property
    def may_move(self) -> bool:
        """Whether a row may have another key in `_before_`."""
        before = _fields(self.schema)
        return before is not None and self.may_have(BEFORE) and set(self.keys) <= set(before)

    def may_have(self, name: str) -> bool:
        """Whether a column of the change table exists, and is not NULL in every row."""
        return name in self.schema.names and not (self.schema[name].metadata or {}).get(NEVER)

    def places(self) -> dict[str, str]:
        """The names of the table's columns in the rows of `events`. No column of a table can have such a name there."""
        places = {name: f"c{k}" for k, name in enumerate(self.columns)}
        return places | dict(zip(self.keys, self.key_names(), strict=True))

    def value_places(self) -> dict[str, str]:
        """The same for the columns that are not part of the key."""
        return {name: place for name, place in self.places().items() if name not in self.keys}

    def key_names(self) -> list[str]:
        return [f"key_{k}" for k in range(len(self.keys))]


def with_new_names(changes: DataFrame) -> DataFrame:
    """Changes whose columns somebody has renamed: `_before_`, `_unavailable_` and `_unexpected_` get the new names, too."""
    schema = changes.schema
    new = _new_names(schema)
    if not new:
        return changes
    pairs = F.create_map(*(F.lit(text) for pair in new.items() for text in pair))
    fields = [F.col(BEFORE)[name].alias(new.get(name, name)) for name in _fields(schema) or ()]
    renamed = {
        BEFORE: F.when(F.col(BEFORE).isNotNull(), F.struct(*fields)),
        UNAVAILABLE: F.transform(UNAVAILABLE, lambda name: F.coalesce(F.try_element_at(pairs, name), name)),
        UNEXPECTED: F.transform_keys(UNEXPECTED, lambda name, _: F.coalesce(F.try_element_at(pairs, name), name)),
    }
    there = {name: column for name, column in renamed.items() if name in schema.names}
    result = changes.withColumns(there)
    for name in there:
        result = result.withMetadata(name, schema[name].metadata)
    return result


def _new_names(schema: StructType) -> dict[str, str]:
    """The new names of columns that somebody has renamed, by their names in the messages."""
    named = {field.name: (field.metadata or {}).get(COLUMN) for field in schema if field.name not in DOCS}
    of_messages = _fields(schema) or ()
    renamed = {old: new for new, old in named.items() if old is not None and old in of_messages and old != new}
    # If a column has the old name, it counts, unless somebody has renamed that one, too.
    return {old: new for old, new in renamed.items() if old not in named or named[old] not in (None, old)}


def _fields(schema: StructType) -> list[str] | None:
    """The columns in `_before_`; None if the change table has none."""
    if BEFORE not in schema.names:
        return None
    type = schema[BEFORE].dataType
    return type.names if isinstance(type, StructType) else None


def keys_of(changes: DataFrame, function: str) -> list[str]:
    """The primary key's columns, from `changes` if it knew them, else from the messages, which this reads.

    Raises ValueError if the messages contain no key, or different ones.
    """
    give = f"pass keys=[…], the names of the primary key's columns, to {function}"
    if KEYS not in changes.columns:
        raise value_error(f"the key of the table is not known: {give}")
    noted = (changes.schema[KEYS].metadata or {}).get(KEYS_KNOWN)
    if noted:
        return list(noted)
    if changes.isStreaming:
        raise value_error(f"the key of the table is not known before the stream is read: {give}")
    right = changes.where(f"{ERROR} IS NULL") if ERROR in changes.columns else changes
    key_lists = [list(row[0]) for row in right.select(KEYS).where(F.size(KEYS) > 0).distinct().limit(2).collect()]
    if not key_lists:
        raise value_error(
            f"no message names the primary key of the table: {give}. Of a table without a key, two equal rows count as one"
        )
    if len(key_lists) > 1:
        raise value_error(f"messages name different primary keys, {key_lists[0]} and {key_lists[1]}: {give}")
    return key_lists[0]
