"""What ``rows`` of every format asks of a DataFrame's columns, and keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import BinaryType, StructField, StructType

from sparkwire.core.column_names import distinct_names


def check_binary(df: DataFrame, column: str) -> None:
    """TypeError where a column is not BINARY."""
    type = df.select(F.col(column)).schema[0].dataType
    if not isinstance(type, BinaryType):
        raise TypeError(f"rows takes a BINARY column, and {column} is {type.simpleString().upper()}")


def check_names(kept: StructType, own: StructType) -> None:
    """ValueError where a column has the name of one that ``rows`` adds."""
    taken = {name.lower() for name in own.names}
    for name in kept.names:
        if name.lower() in taken:
            raise ValueError(
                f"rows has two columns named {name}, that of its input or payload and its own: rename or drop one"
            )


def is_name_in(column: str, names: Iterable[str]) -> bool:
    """Whether a column, as it is requested, has the name of one of these."""
    return column.strip("`").lower() in {name.lower() for name in names}


def others(df: DataFrame, column: str) -> tuple[StructType, list[Column]]:
    """All but one column of ``df``, and how to select them for ``mapInArrow``, which fails on a name with a dot."""
    read = column.strip("`").lower()
    kept = StructType([field for field in df.schema if field.name.lower() != read])
    return kept, [F.col(quoted(name)).alias(f"kept_{k}") for k, name in enumerate(kept.names)]


def renamed(schema: StructType, names: Sequence[str]) -> StructType:
    """The schema with these names."""
    fields = zip(schema.fields, names, strict=True)
    return StructType([StructField(name, field.dataType, metadata=field.metadata) for field, name in fields])


def with_distinct_names(schema: StructType, taken: Iterable[str]) -> StructType:
    """The schema; a column has another name where one of these, or an earlier column, has its name."""
    return renamed(schema, distinct_names(schema.names, taken))


def quoted(name: str) -> str:
    """A column's name as Spark reads it, whatever is in it."""
    return f"`{name.replace('`', '``')}`"
