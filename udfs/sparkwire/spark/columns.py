"""The catalogue as column functions for DataFrame code."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any, Final

import pyspark.sql.functions as F
from pyspark.sql import Column

from sparkwire.core.function import Function
from sparkwire.core.parameters import Kind, Parameter, parameters
from sparkwire.spark.udf import best_interface, udf

ColumnFunction = Callable[..., Column]

_TYPES: Final[dict[Kind, Any]] = {
    "Column": Column,
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "bytes": bytes,
    "None": None,
}


def column_function(function: Function) -> ColumnFunction:
    """``function`` over columns: a name or a Column for each of its columns, a Python value wherever it is one value."""
    taken = parameters(function)
    signature = inspect.Signature([_inspected(parameter) for parameter in taken], return_annotation=Column)

    def call(*args: Any, **named: Any) -> Column:
        try:
            given = signature.bind(*args, **named).arguments
        except TypeError:
            got = [*map(repr, args), *(f"{name}={value!r}" for name, value in named.items())]
            takes = function.signature.partition(" -> ")[0].removeprefix(function.name)
            raise TypeError(f"{function.name} takes {takes}, got ({', '.join(got)})") from None
        # All arguments by position, up to the last one given: PySpark's UDFs of old versions know no names.
        last = max(k for k, parameter in enumerate(taken) if parameter.name in given)
        columns = [_column(parameter, given.get(parameter.name, parameter.default)) for parameter in taken[: last + 1]]
        column: Column = udf(function.name, best_interface())(*columns)
        return column

    call.__name__ = call.__qualname__ = function.name
    fields = "".join(f"\n    {name}: {doc}" for name, doc in function.field_docs.items())
    answers = f"Fields:{fields}\n\n" if fields else ""
    call.__doc__ = f"{function.doc}\n\n{function.signature}\n\n{answers}Example: {function.example}\n"
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _column(parameter: Parameter, value: Any) -> Column | str:
    """Names and Columns as they are, anything else as a literal."""
    if isinstance(value, Column) or (isinstance(value, str) and not parameter.literal):
        return value
    return F.lit(value)


def _inspected(parameter: Parameter) -> inspect.Parameter:
    default = inspect.Parameter.empty if parameter.required else parameter.default
    annotation = reduce(or_, (_TYPES[kind] for kind in parameter.kinds))
    return inspect.Parameter(
        parameter.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation
    )
