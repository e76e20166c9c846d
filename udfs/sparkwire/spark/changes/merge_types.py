"""Combine a stored table and new changes: add new columns, widen types, and reject any other change.

The property of a table says what it may have (`Traits`), and a merge looks for nothing else. So a table without TRUNCATEs, older
values or departures costs nothing for them. A merge notes a trait before it stores the first row that has it. After the
statement, it notes that an epoch has ended rows, and that all rows have the new columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
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

from sparkwire.base.printable import value_error
from sparkwire.changes.columns import DELETED, ORDER, TIME, UNAVAILABLE, UNEXPECTED
from sparkwire.changes.fold import MEMORY, TOPIC
from sparkwire.json import types
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.merge_stored import memory_type
from sparkwire.spark.frames import from_arrow_type, quoted

_FLOATS: Final = (FloatType, DoubleType)
_WIDENED: Final = (ByteType, ShortType, IntegerType, LongType, *_FLOATS, DecimalType, DateType, TimestampNTZType)


def stored_schema(table: ChangedTable) -> StructType:
    """The schema of a merged table: the table's columns, those of `current`, and what a merge has to remember."""
    of_table = [StructField(name, nullable(table.schema[name].dataType)) for name in table.columns]
    fixed = {ORDER: nullable(table.schema[ORDER].dataType), TIME: TimestampType()}
    if table.may_lack_values or table.missing_is_unknown:
        fixed[UNAVAILABLE] = ArrayType(StringType())
    if table.has_unexpected:
        fixed[UNEXPECTED] = MapType(StringType(), StringType())
    fixed[DELETED] = BooleanType()
    if table.topic:
        fixed[TOPIC] = StringType()
    fixed[MEMORY] = nullable(memory_type(table.schema[ORDER].dataType))
    return StructType([*of_table, *(StructField(name, type) for name, type in fixed.items())])


def check_made(target: str, noted: Mapping[str, Any], keys: Sequence[str], keep: bool) -> None:
    """Raise ValueError if the target was made with another key, or another way to delete."""
    if noted["keys"] != list(keys):
        raise value_error(
            f"{target} has the key {', '.join(noted['keys'])}, and the changes have {', '.join(keys)}: pass its keys, "
            "or name another target"
        )
    if noted["deletes"] != ("keep" if keep else "remove"):
        raise value_error(
            f'{target} was made with deletes="{noted["deletes"]}": continue with it, or name another target'
        )


def visible(schema: StructType, *, keep: bool) -> list[str]:
    """The columns of a merged table that its readers see; with ``keep`` also `_deleted_`."""
    hidden = {MEMORY, TOPIC} if keep else {MEMORY, TOPIC, DELETED}
    return [name for name in schema.names if name not in hidden]


def check_names(table: ChangedTable, is_case_sensitive: bool) -> None:
    """Raise ValueError if a column has a name for sparkwire's own columns, or differs from another only in case."""
    for name in table.columns:
        if len(name) > 2 and name.startswith("_") and name.endswith("_"):
            raise value_error(
                f"the table has a column {name}, and names that begin and end with _ are those of sparkwire's columns: "
                "rename it in the changes (withColumnRenamed), or read the table through a view with another name"
            )
    seen: dict[str, str] = {}
    for name in table.columns if not is_case_sensitive else ():
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise value_error(
                f"Spark takes the columns {other} and {name} for one: set spark.sql.caseSensitive, or "
                "rename one in the changes"
            )


def agreed(stored: StructType, new: StructType, target: str, is_case_sensitive: bool) -> StructType:
    """The combined columns. Raises ValueError if they cannot be combined."""
    for name in (ORDER, TIME, DELETED, MEMORY):
        if name not in stored.names:
            raise value_error(f"{target} has no column {name}, so merge did not create it: name another target")
    stored_names = {name.lower(): name for name in stored.names}
    for name in new.names if not is_case_sensitive else ():
        if stored_names.get(name.lower(), name) != name:
            raise value_error(
                f"{target} has the column {stored_names[name.lower()]}, and the changes have {name}: rename it in the changes"
            )
    fields = []
    for field in stored:
        type = nullable(field.dataType)
        if field.name in new.names:
            wide = wider(type, new[field.name].dataType)
            if wide is None and field.name == ORDER:
                raise value_error(
                    f"{target} has the order {_parts(type)}, and the changes have {_parts(new[ORDER].dataType)}: pass "
                    "the order to sparkwire.changes that made the target, or name another target"
                )
            if wide is None:
                raise value_error(
                    f"column {field.name} of {target} is {type.simpleString().upper()}, and the changes have "
                    f"{new[field.name].dataType.simpleString().upper()}: cast it, or name another target"
                )
            type = wide
        fields.append(StructField(field.name, type))
    return StructType([*fields, *(field for field in new if field.name not in stored.names)])


def _parts(order: DataType) -> str:
    """The parts of an order, or the type of one without parts."""
    return f"({', '.join(order.names)})" if isinstance(order, StructType) else order.simpleString().upper()


def wider(old: DataType, new: DataType) -> DataType | None:
    """The type that holds the values of both exactly; None if none exists."""
    if old == new or _plain(old) == _plain(new):
        return old
    if not all(isinstance(type, _WIDENED) for type in (old, new)):
        return None
    found = types.wider(to_arrow_type(old), to_arrow_type(new))
    is_float = isinstance(old, _FLOATS), isinstance(new, _FLOATS)
    # No table format changes a column of integers to one of floating-point numbers.
    return None if found is None or is_float[0] != is_float[1] else from_arrow_type(found)


def nullable(type: DataType) -> DataType:
    """The type whose items and fields may be NULL: Spark does not cast to one whose may not."""
    if isinstance(type, StructType):
        return StructType([StructField(field.name, nullable(field.dataType)) for field in type])
    if isinstance(type, ArrayType):
        return ArrayType(nullable(type.elementType))
    return MapType(nullable(type.keyType), nullable(type.valueType)) if isinstance(type, MapType) else type


def _plain(type: DataType) -> str:
    """The type without nullability, which depends on a table's catalog."""
    return str(type.simpleString())


def sql_type(type: DataType) -> str:
    """The type in SQL, with quoted names of fields.

    >>> sql_type(StructType().add("row", IntegerType()).add("two words", IntegerType()))
    'struct<`row`: int, `two words`: int>'
    """
    if isinstance(type, StructType):
        return f"struct<{', '.join(f'{quoted(field.name)}: {sql_type(field.dataType)}' for field in type)}>"
    if isinstance(type, ArrayType):
        return f"array<{sql_type(type.elementType)}>"
    if isinstance(type, MapType):
        return f"map<{sql_type(type.keyType)}, {sql_type(type.valueType)}>"
    if isinstance(type, TimestampType):
        return "timestamp_ltz"  # a session may say that TIMESTAMP has no time zone
    return str(type.simpleString())


def aligned(
    changes: DataFrame, table: ChangedTable, schema: StructType, columns_so_far: Sequence[str]
) -> tuple[DataFrame, ChangedTable]:
    """The changes with the types of the merged table, and all columns that changes had so far.

    A column that these changes do not have is NULL, or unavailable if its value is unknown.
    """
    fields = [field for field in schema if field.name in columns_so_far]
    columns = [name for name in changes.columns if name not in {field.name for field in fields}]
    lacking = [field.name for field in fields if field.name not in table.columns]
    if lacking and table.missing_is_unknown:
        names = F.array(*map(F.lit, lacking))
        changes = changes.withColumn(
            UNAVAILABLE, F.concat(F.coalesce(UNAVAILABLE, F.array().cast("array<string>")), names)
        )
    out = changes.select(*map(quoted, columns), *(_cast(field, table) for field in fields))
    return out, ChangedTable([field.name for field in fields], table.keys, out.schema)


def _cast(field: StructField, table: ChangedTable) -> Column | str:
    """The column of the changes with the type of the merged table: only its name, if it has that type."""
    if field.name not in table.columns:
        return F.lit(None).cast(field.dataType).alias(field.name)
    name = quoted(field.name)
    if table.schema[field.name].dataType == field.dataType:
        return name
    return F.col(name).cast(field.dataType).alias(field.name)


class Traits(NamedTuple):
    """The traits of a table."""

    truncates: bool = False
    """it may have a TRUNCATE"""
    partial: bool = False
    """it may have rows with older values"""
    departures: bool = False
    """it may have departures"""
    epoch: int | None = None
    """the greatest epoch, if an epoch ends the rows of earlier ones"""
    untold: tuple[str, ...] = ()
    """new columns whose values are unknown in rows that no merge has written since"""
    columns: tuple[str, ...] = ()
    """all columns that changes had; another one is the user's own, and no merge changes it"""

    @classmethod
    def of(cls, noted: Mapping[str, Any]) -> Traits:
        found = noted.get("traits", {})
        lists = {name: tuple(found.get(name, ())) for name in ("untold", "columns")}
        return cls(**{**found, **lists})

    def with_columns(self, table: ChangedTable, stored: StructType | None) -> Traits:
        """The traits with the columns of the changes. ``stored``: the columns of a table that exists."""
        earlier: Sequence[str] = table.columns
        if stored is not None and table.missing_is_unknown:  # the table may also have columns of its owner
            earlier = [name for name in stored.names if name in self.columns]
        new = [name for name in table.columns if name not in earlier]
        return self._replace(
            untold=tuple(dict.fromkeys([*self.untold, *new])),
            columns=tuple(dict.fromkeys([*self.columns, *table.columns])),
        )

    def as_noted(self) -> dict[str, Any]:
        """What the property says; nothing of a table that has none of them."""
        found = {name: value for name, value in self._asdict().items() if value != self._field_defaults[name]}
        found |= {name: list(value) for name, value in found.items() if isinstance(value, tuple)}  # as JSON has them
        return {"traits": found} if found else {}


def noted_of(keys: Sequence[str], keep: bool, table_name: str | None, traits: Traits) -> dict[str, Any]:
    """What the property of a table says."""
    noted = {"keys": list(keys), "deletes": "keep" if keep else "remove", "table": table_name}
    return noted | traits.as_noted()
