"""The arguments of `sparkwire.changes`, checked against a DataFrame."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyspark.sql.functions as F
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegralType, StringType, StructType

from sparkwire.base.printable import type_error, value_error
from sparkwire.changes.declarations import FORMATS, SYSTEMS
from sparkwire.core.names import Table, table_of
from sparkwire.debezium.layout import UNAVAILABLE
from sparkwire.spark.frames import quoted

_CHOICES: Final = {
    "order": ("offset", "source"),
    "before": ("key", "full"),
    "nulls": ("written", "absent"),
    "epochs": ("continue", "replace"),
}
"""the values of arguments"""
_TEXT_TYPE: Final = re.compile(r"`(?:[^`]|``)*`|\b(?:var)?char\s*\(\s*\d+\s*\)", re.IGNORECASE)
"""a type of texts with a length, or a name in back quotes"""


class Request(NamedTuple):
    """The arguments of `sparkwire.changes`."""

    df: DataFrame
    column: str
    format: str
    table: str
    key: str | None = None
    headers: str | None = None
    topic: str | None = "topic"
    partition: str | None = "partition"
    offset: str | None = "offset"
    epoch: Any = 0
    order: str = "offset"
    keys: Sequence[str] | str | None = None
    schemas: Any = None
    columns: Any = None
    wire_format: str = "confluent"
    before: str = "key"
    placeholder: str = UNAVAILABLE
    nulls: str = "written"
    renamed: Mapping[str, str] | None = None
    epochs: str = "continue"
    function: str = "changes"
    """the function that a user has called"""

    def checked(self) -> Request:
        """The request with lists of keys and columns. Raises ValueError or TypeError if an argument is invalid."""
        if not isinstance(self.table, str):
            raise type_error(f"{self.function}() expected table to be the name of a table, got {self.table!r}")
        if self.format not in FORMATS:
            raise ValueError(f"changes() expected format to be one of {', '.join(FORMATS)}, got {self.format!r}")
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise value_error(f'changes() expected {name} to be "{choices[0]}" or "{choices[1]}", got {value!r}')
        _check_renamed(self.renamed or {}, self.format)
        for name in ("topic", "partition", "offset"):
            value = getattr(self, name)
            if value is not None and value != name:
                self.named(name, value)
        for name in ("partition", "offset"):
            column = self.find(getattr(self, name))
            if column is not None and not (name == "offset" and self.has_text_offsets):
                _check_integers(name, self.df.select(F.col(quoted(column))))
        if self.headers is not None:
            _check_headers(self, self.headers)
        keys = (self.keys,) if isinstance(self.keys, str) else None if self.keys is None else tuple(self.keys)
        return self._replace(keys=keys, columns=self._types_of_columns())

    @property
    def source(self) -> Table:
        return table_of(self.table)

    @property
    def has_text_offsets(self) -> bool:
        """Whether the column of offsets has texts of digits."""
        column = self.find(self.offset)
        return column is not None and isinstance(self.df.schema[column].dataType, StringType)

    def find(self, name: str | None) -> str | None:
        """The column of the DataFrame with this name, by Spark's rule; None if there is none."""
        if name is None:
            return None
        names = self.df.columns
        if name in names:
            return name
        return next(
            (column for column in names if not is_case_sensitive(self.df) and column.lower() == name.lower()), None
        )

    def epoch_column(self) -> Column | None:
        """The column of epochs; None if the epoch is a number."""
        if isinstance(self.epoch, bool) or not isinstance(self.epoch, int | str | Column):
            raise TypeError(
                f"changes() expected epoch to be a number, the name of a column or a Column, got {self.epoch!r}"
            )
        if isinstance(self.epoch, int):
            if not -(2**31) <= self.epoch < 2**31:
                raise value_error(f"changes() expected epoch to be a number of 32 bits, got {self.epoch}")
            return None
        epoch = self.epoch
        column = F.col(quoted(self.named("epoch", epoch))) if isinstance(epoch, str) else epoch
        _check_integers("epoch", self.df.select(column))
        return column.cast("bigint")

    def named(self, argument: str, name: str) -> str:
        """The column of the DataFrame with this name. Raises ValueError if there is none."""
        found = self.find(name)
        if found is None:
            raise value_error(
                f"{self.function}() expected {argument} to name a column of the DataFrame, got {name!r}. "
                f"It has {', '.join(self.df.columns)}"
            )
        return found

    def type_of(self, argument: str, column: str) -> DataType:
        """The type of a column. Raises ValueError if it does not exist."""
        try:
            return self.df.select(F.col(column)).schema[0].dataType
        except PySparkException:
            raise value_error(
                f"{self.function}() expected {argument} to name a column of the DataFrame, got {column!r}. "
                f"It has {', '.join(self.df.columns)}"
            ) from None

    def check_messages(self, argument: str, column: str) -> None:
        """Raise TypeError if a column is neither BINARY nor STRING, and ValueError if it does not exist."""
        type = self.type_of(argument, column)
        if not isinstance(type, BinaryType | StringType):
            raise type_error(
                f"{self.function}() expected {column} to be BINARY or STRING, got {type.simpleString().upper()}"
            )

    def _types_of_columns(self) -> dict[str, str] | None:
        """The names and types of columns: from a mapping, a StructType, or DDL text."""
        columns = self._of_ddl(self.columns) if isinstance(self.columns, str) else self.columns
        if columns is None:
            return None
        if isinstance(columns, StructType):
            names = [field.name for field in columns]
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise value_error(f"{self.function}() expected columns to name each column once, got {twice[0]} twice")
            columns = {field.name: field.dataType.simpleString() for field in columns}
        if not isinstance(columns, Mapping):
            raise type_error(
                f"{self.function}() expected columns to be a mapping, DDL text or a StructType, got {columns!r}"
            )
        if not columns:
            raise value_error(f"{self.function}() expected columns to name the columns of the table, got none")
        return {str(name): _TEXT_TYPE.sub(_as_string, str(type)) for name, type in columns.items()}

    def _of_ddl(self, text: str) -> StructType:
        """The columns in DDL text. Raises ValueError if it is invalid."""
        try:
            return self.df.sparkSession.createDataFrame([], _TEXT_TYPE.sub(_as_string, text)).schema
        except PySparkException as error:
            reason = str(error).strip().partition("\n")[0]
            raise value_error(
                f'{self.function}() expected columns to be DDL text such as "id INT, name STRING", got {text!r}: {reason} '
                "Types of Debezium, such as MicroTimestamp, need a mapping"
            ) from None


def _check_renamed(renamed: Mapping[str, str], format: str) -> None:
    """Raise ValueError if a member has another name that no setting of the system gives it."""
    system = SYSTEMS.get(format)
    names = [path for role in system.renamable for path in system.paths(role)] if system else []
    unknown = [name for name in renamed if name not in names]
    if unknown:
        renamable = ", ".join(names) or f"nothing, because {format} has no members with other names"
        raise value_error(f"changes() expected renamed to name {renamable}, got {unknown[0]!r}")
    odd = [name for name in renamed.values() if not isinstance(name, str) or not name or "." in name]
    if odd:
        raise value_error(f"changes() expected renamed to have names of members, got {odd[0]!r}")


def _check_integers(name: str, column: DataFrame) -> None:
    """Raise TypeError if a column has other values than integers."""
    type = column.schema[0].dataType
    if not isinstance(type, IntegralType):
        shown = type.simpleString().upper()
        raise type_error(f"changes() expected a column of integers for {name}, got {shown}: cast it to BIGINT")


def check_place(role: str, df: DataFrame, column: str) -> None:
    """Raise TypeError if a column cannot contain the file or the position of an event."""
    if role == "position":
        _check_integers(role, df.select(F.col(quoted(column))))
    elif not isinstance(type := df.schema[column].dataType, StringType | IntegralType):
        raise type_error(
            f"changes() expected a column of texts for {column}, got {type.simpleString().upper()}: rename it"
        )


def is_case_sensitive(df: DataFrame) -> bool:
    return str(df.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"


def _as_string(type: re.Match[str]) -> str:
    """STRING for a type of texts with a length; a name in back quotes as it is."""
    return type[0] if type[0].startswith("`") else "STRING"


def _check_headers(request: Request, column: str) -> None:
    """Raise TypeError if a column does not have Kafka's headers."""
    type = request.type_of("headers", column)
    item = type.elementType if isinstance(type, ArrayType) else None
    kinds = [field.dataType for field in item] if isinstance(item, StructType) else []
    if len(kinds) != 2 or not all(isinstance(kind, StringType | BinaryType) for kind in kinds):
        raise type_error(
            "changes() expected headers to name a column of ARRAY<STRUCT<key STRING, value BINARY>>, "
            f"got {type.simpleString().upper()}"
        )
