"""Types, names and columns of DataFrames: check, select and rename them, and store rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

import pyspark.sql.functions as F
from pyspark.errors import PySparkNotImplementedError
from pyspark.sql import Column, DataFrame
from pyspark.sql.pandas import types
from pyspark.sql.types import BinaryType, StructField, StructType

from sparkwire.base.printable import type_error
from sparkwire.core.names import distinct_names

# A timestamp without a zone is TIMESTAMP_NTZ, which Spark before 4.2 does not do by default.
from_arrow_type: Final = partial(types.from_arrow_type, prefer_timestamp_ntz=True)
from_arrow_schema: Final = partial(types.from_arrow_schema, prefer_timestamp_ntz=True)


def check_binary(df: DataFrame, column: str) -> None:
    """Raise TypeError if a column is not BINARY."""
    type = df.select(F.col(column)).schema[0].dataType
    if not isinstance(type, BinaryType):
        raise type_error(f"rows takes a BINARY column, and {column} is {type.simpleString().upper()}")


def is_name_in(column: str, names: Iterable[str]) -> bool:
    """Whether the name of a column matches one of these names, by Spark's rules."""
    return column.strip("`").lower() in {name.lower() for name in names}


def others(df: DataFrame, column: str) -> tuple[StructType, list[Column]]:
    """All columns of ``df`` except one, and expressions that select them for ``mapInArrow``, which fails on names with dots."""
    read = column.strip("`").lower()
    schema = StructType([field for field in df.schema if field.name.lower() != read])
    return schema, [F.col(quoted(name)).alias(f"other_{k}") for k, name in enumerate(schema.names)]


def renamed(schema: StructType, names: Sequence[str]) -> StructType:
    """The schema with other names."""
    fields = zip(schema.fields, names, strict=True)
    return StructType([StructField(name, field.dataType, metadata=field.metadata) for field, name in fields])


def with_distinct_names(schema: StructType, taken: Iterable[str]) -> StructType:
    """The schema with renamed columns, so that all names are distinct from each other and from ``taken``."""
    return renamed(schema, distinct_names(schema.names, taken))


def quoted(name: str) -> str:
    """A column's name in back quotes, so that it may contain any character."""
    return f"`{name.replace('`', '``')}`"


def checkpointed(rows: DataFrame) -> DataFrame:
    """Store the rows on the workers, so that every read returns the same ones. If a worker is lost, a query over them fails."""
    try:
        return rows.localCheckpoint()
    except PySparkNotImplementedError as error:
        raise NotImplementedError("merge into a table on Spark Connect needs Spark 4.0 or later") from error
