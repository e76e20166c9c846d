"""The catalogue as column functions for DataFrame code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import Column

from sparkwire.function import Function
from sparkwire.spark.udf import best_interface, udf

ColumnFunction = Callable[..., Column]


def column_function(function: Function) -> ColumnFunction:
    """``function`` over columns: names or Columns for its columns, Python values for its constants."""
    arguments = function.arguments
    names = [argument.name for argument in arguments]
    required = sum(argument.required for argument in arguments)

    def call(*args: Any, **named: Any) -> Column:
        given = dict(zip(names, args, strict=False)) | named
        unknown = [name for name in named if name not in names]
        if len(args) > len(names) or unknown or not set(names[:required]) <= set(given):
            got = [*map(repr, args), *(f"{name}={value!r}" for name, value in named.items())]
            takes = function.signature.partition(" -> ")[0].removeprefix(function.name)
            raise TypeError(f"{function.name} takes {takes}, got ({', '.join(got)})")
        # All arguments by position: PySpark's UDFs of old versions know no names.
        values = [given.get(a.name, a.default) for a in arguments[: max(required, _last(names, given))]]
        columns = [F.lit(v) if a.constant or v is None else v for a, v in zip(arguments, values, strict=False)]
        column: Column = udf(function.name, best_interface())(*columns)
        return column

    call.__name__ = call.__qualname__ = function.name
    call.__doc__ = f"{function.doc}\n\n{function.signature}\n\nExample: {function.example}\n"
    return call


def _last(names: list[str], given: dict[str, Any]) -> int:
    return max((k + 1 for k, name in enumerate(names) if name in given), default=0)
