"""Combine the columns of a stored table and new changes: add new columns, widen types, and reject any other change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkwire.changes.columns import DELETED, ORDER, TIME
from sparkwire.spark.changes.current import ChangedTable
from sparkwire.spark.frames import quoted

_INTEGERS: Final = (ByteType, ShortType, IntegerType, LongType)
_DIGITS: Final = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}


def stored_schema(table: ChangedTable, keep: bool) -> StructType:
    """The schema of the merged table: the table's columns, order, time, and with ``keep`` the mark of deleted rows."""
    own = [StructField(name, table.schema[name].dataType) for name in table.columns]
    order = StructField(ORDER, table.schema[ORDER].dataType)
    deleted = [StructField(DELETED, BooleanType())] if keep else []
    return StructType([*own, order, StructField(TIME, TimestampType()), *deleted])


def agreed(stored: StructType, new: StructType, keys: Sequence[str], target: str) -> StructType:
    """The combined columns. Raises ValueError if they cannot be combined."""
    for name in (ORDER, TIME):
        if name not in stored.names:
            raise ValueError(f"{target} is not a table of merge, because it has no column {name}: name another target")
    for name in keys:
        if name not in stored.names:
            raise ValueError(f"{target} does not have the key column {name}: name another target, or pass its keys")
    if (DELETED in stored.names) != (DELETED in new.names):
        now = "keep" if DELETED in stored.names else "remove"
        raise ValueError(f'{target} was made with deletes="{now}": continue with it, or name another target')
    fields = []
    for field in stored:
        type = field.dataType
        if field.name in new.names:
            wide = wider(type, new[field.name].dataType)
            if wide is None:
                raise ValueError(
                    f"column {field.name} of {target} is {type.simpleString().upper()}, and the changes have "
                    f"{new[field.name].dataType.simpleString().upper()}: cast it, or name another target"
                )
            type = wide
        fields.append(StructField(field.name, type))
    return StructType([*fields, *(field for field in new if field.name not in stored.names)])


def wider(old: DataType, new: DataType) -> DataType | None:
    """The type that holds the values of both exactly; None if none exists."""
    if old == new or _plain(old) == _plain(new):
        return old
    if isinstance(old, _INTEGERS) and isinstance(new, _INTEGERS):
        return max(old, new, key=lambda one: _DIGITS[one.__class__])
    if {old.__class__, new.__class__} == {FloatType, DoubleType}:
        return DoubleType()
    if {old.__class__, new.__class__} == {DateType, TimestampNTZType}:
        return TimestampNTZType()
    decimals = [_as_decimal(type) for type in (old, new)]
    if decimals[0] and decimals[1] and DecimalType in (old.__class__, new.__class__):
        scale = max(d.scale for d in decimals if d)
        whole = max(d.precision - d.scale for d in decimals if d)
        return DecimalType(whole + scale, scale) if whole + scale <= 38 else None
    return None


def _plain(type: DataType) -> str:
    """The type without nullability, which depends on a table's catalog."""
    return str(type.simpleString())


def _as_decimal(type: DataType) -> DecimalType | None:
    if isinstance(type, DecimalType):
        return type
    return DecimalType(_DIGITS[type.__class__], 0) if isinstance(type, _INTEGERS) else None


def aligned(changes: DataFrame, table: ChangedTable, schema: StructType) -> tuple[DataFrame, ChangedTable]:
    """The changes with the columns and types of the merged table."""
    own = [field for field in schema if field.name not in (ORDER, TIME, DELETED)]
    columns = [name for name in changes.columns if name not in {field.name for field in own}]
    out = changes.select(*map(quoted, columns), *(_cast(field, table) for field in own))
    return out, ChangedTable([field.name for field in own], table.keys, out.schema)


def _cast(field: StructField, table: ChangedTable) -> Column | str:
    """The column of the changes with the type of the merged table: only its name, if it has that type."""
    if field.name not in table.columns:
        return F.lit(None).cast(field.dataType).alias(field.name)
    name = quoted(field.name)
    if table.schema[field.name].dataType == field.dataType:
        return name
    return F.col(name).cast(field.dataType).alias(field.name)
